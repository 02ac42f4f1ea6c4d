//! The rules, by topic. Of each topic the first that holds writes its line.

use narrows_diagnose::advice::{Findings, Severity};
use narrows_probe::{BoundKind, Confidence, Limit, LimitingFactor};
use narrows_units::{Direction, Metric};

use super::figures::{estimated_row, octets, rate};
use super::{LABEL, WIDTH};
use crate::answer_line::{AnswerLine, Topic};
use crate::document::Document;
use crate::names::title;
use crate::rows::{MetricRow, Remark};

/// What a rule writes: its name and the line.
pub(super) type Rule = (&'static str, String);
/// The same, if one of them holds.
pub(super) type Said = Option<Rule>;

/// What is left of the capacity below this share is next to nothing.
const NOTHING: f64 = 0.1;
/// What is left above this share, with an interval that reaches the capacity, is all of it.
const ALL: f64 = 0.9;
/// An interval that ends at this share of the capacity reaches it.
const REACHES: f64 = 0.95;
/// One connection that gets less than this share of what is free does not use the path.
const UNUSED: f64 = 0.8;
/// Where the other doubts stand.
const MORE: &str = "; --full lists all";
/// No doubt on every result: that no train was long enough for the deepest bucket is known.
const COMMON: [&str; 1] = ["bucket_not_excluded"];

/// The lines of one direction.
pub(super) fn lines(document: &Document, direction: Direction) -> Vec<AnswerLine> {
    let view = View { document, direction };
    let limit = view.limit();
    let action = view.action(limit.as_ref().map(|(rule, _)| *rule));
    let said = [
        (Topic::Carries, view.marked(Metric::IpCapacity, view.carries())),
        (Topic::FreeNow, view.marked(Metric::AvailableIpCapacity, view.free_now())),
        (Topic::Limit, limit),
        (Topic::Do, action),
        (Topic::Doubts, view.doubts()),
    ];
    of_direction(direction, said)
}

/// The lines that have something to say.
pub(super) fn of_direction(direction: Direction, said: impl IntoIterator<Item = (Topic, Said)>) -> Vec<AnswerLine> {
    let lines = said.into_iter().filter_map(|(line, said)| said.map(|(rule, text)| (line, rule, text)));
    lines.map(|(line, rule, text)| AnswerLine { direction, line, rule, text: fitted(&text) }).collect()
}

/// One direction of a document.
struct View<'a> {
    document: &'a Document,
    direction: Direction,
}

impl<'a> View<'a> {
    fn row(&self, metric: Metric) -> Option<&'a MetricRow> {
        self.document.metrics.iter().find(|row| row.metric == metric && row.direction == self.direction)
    }

    /// A row that claims a value with both bounds.
    fn estimate(&self, metric: Metric) -> Option<&'a MetricRow> {
        self.row(metric).filter(|row| row.verdict == BoundKind::Estimated && row.value.is_some())
    }

    fn findings(&self) -> Option<&'a Findings> {
        self.document.findings.iter().find(|found| found.direction == self.direction)
    }

    fn host(&self) -> &'a str {
        &self.document.target.name
    }

    /// The host that sends, or the one that receives, by its name.
    fn end(&self, is_sender: bool) -> &'a str {
        if is_sender == (self.direction != Direction::Reverse) { "this host" } else { self.host() }
    }

    /// What a rule says of a metric, marked if its timing was not valid.
    fn marked(&self, metric: Metric, said: Said) -> Said {
        let (rule, text) = said?;
        let invalid = self.row(metric).is_some_and(|row| row.timing_invalid);
        Some((rule, if invalid { format!("timing invalid: {text}") } else { text }))
    }

    fn carries(&self) -> Said {
        let row = self.row(Metric::IpCapacity)?;
        let toward = match self.direction {
            Direction::Forward => "to",
            Direction::Reverse => "from",
            Direction::RoundTrip => "to and from",
        };
        if let (Some(sustained), Some(peak)) = (self.estimate(Metric::IpCapacity), self.peak()) {
            let depth = self.row(Metric::CommittedBurstOctets).and_then(|row| row.value);
            let bursts = depth.map_or_else(|| "bursts".to_owned(), |depth| format!("bursts up to {}", octets(depth)));
            return Some(("c1", format!("{} sustained; {bursts} pass at {}", estimated_row(sustained)?, rate(peak))));
        }
        Some(match (row.verdict, row.value) {
            (BoundKind::Estimated, Some(_)) => ("c2", format!("{} {toward} {}", estimated_row(row)?, self.host())),
            (BoundKind::LowerBound, Some(value)) => match limiting_end(row) {
                Some(is_sender) => {
                    let verb = if is_sender { "send" } else { "take" };
                    ("c3", format!("at least {}; {} could not {verb} more", rate(value), self.end(is_sender)))
                }
                None => ("c4", format!("at least {}", rate(value))),
            },
            (BoundKind::UpperBound, Some(value)) => ("c4", format!("at most {}", rate(value))),
            _ => {
                let reason = brief_reason(row);
                match self.arrived() {
                    Some((value, by)) => {
                        ("c5", format!("at least {} ({by} arrived); above that {reason}", rate(value)))
                    }
                    None => ("c6", format!("unknown: {reason}")),
                }
            }
        })
    }

    /// The peak rate of a token bucket, above what it lets through for long.
    fn peak(&self) -> Option<u64> {
        let sustained = self.row(Metric::IpCapacity)?.value?;
        self.row(Metric::PeakRate)?.value.filter(|&peak| peak > sustained)
    }

    /// The most that a transfer carried.
    fn arrived(&self) -> Option<(u64, &'static str)> {
        let transfers = [
            (Metric::UdpAchievable, "UDP"),
            (Metric::TcpAchievableSingle, "TCP"),
            (Metric::TcpAchievableParallel, "TCP"),
        ];
        let came = transfers.into_iter().filter_map(|(metric, name)| Some((self.row(metric)?.value?, name)));
        came.max_by_key(|(value, _)| *value)
    }

    fn free_now(&self) -> Said {
        if self.document.is_single_ended() {
            return Some(("f7", format!("not measurable without narrows serve on {}", self.host())));
        }
        let row = self.row(Metric::AvailableIpCapacity)?;
        let Some(value) = row.value else {
            let udp = self.row(Metric::UdpAchievable).and_then(|row| row.value);
            let udp = udp.map_or_else(String::new, |udp| format!("; UDP sustained {}", rate(udp)));
            return Some(("f6", format!("unclear: {}{udp}", brief_reason(row))));
        };
        if row.verdict != BoundKind::Estimated {
            let bound = if row.verdict == BoundKind::UpperBound { "at most" } else { "at least" };
            return Some(("f5", format!("{bound} {}", rate(value))));
        }
        let said = estimated_row(row)?;
        if let Some(share) = self.share_free(row) {
            if share.reaches && share.value >= ALL {
                return Some(("f1", "all of it; no other traffic seen".to_owned()));
            }
            if share.value < NOTHING {
                return Some(("f2", format!("only {said}; other traffic fills the path")));
            }
        }
        if row.caveats.iter().any(|caveat| caveat.id == "elastic_cross_traffic") {
            return Some(("f3", format!("{said} for one more sender; other traffic backed off")));
        }
        let rest = if self.estimate(Metric::IpCapacity).is_some() { "; other traffic takes the rest" } else { "" };
        Some(("f4", format!("{said}{rest}")))
    }

    /// What is free as a share of the capacity, where both are values.
    fn share_free(&self, available: &MetricRow) -> Option<ShareFree> {
        let capacity = self.estimate(Metric::IpCapacity)?;
        let value = available.value? as f64 / capacity.value?.max(1) as f64;
        Some(ShareFree { value, reaches: available.high? as f64 >= REACHES * capacity.low? as f64 })
    }

    fn limit(&self) -> Said {
        let capacity = self.row(Metric::IpCapacity);
        let available = self.row(Metric::AvailableIpCapacity);
        let both = || [capacity, available].into_iter().flatten();
        if let Some(said) = self.limit_of_clock() {
            return Some(said);
        }
        if let Some(is_sender) = both().find_map(limiting_end) {
            let verb = if is_sender { "send" } else { "take" };
            return Some(("l2", format!("{}, not the path: it could not {verb} more", self.end(is_sender))));
        }
        if let Some(said) = self.limit_of_bucket() {
            return Some(said);
        }
        if let Some(said) = available.and_then(|row| self.limit_of_tcp(row)) {
            return Some(said);
        }
        let share = available.filter(|row| row.verdict == BoundKind::Estimated).and_then(|row| {
            let capacity = self.estimate(Metric::IpCapacity)?;
            Some((row.high? as f64) < ALL * capacity.low? as f64)
        });
        match (share, self.estimate(Metric::IpCapacity)) {
            (Some(true), _) => Some(("l6", format!("other traffic; on which link: narrows hops {}", self.host()))),
            (_, Some(_)) => Some(("l7", "the slowest link of the path".to_owned())),
            // What was not asked for was not found either, and limits nothing.
            (_, None) => capacity.map(|_| ("l8", "unknown: the capacity was not found".to_owned())),
        }
    }

    fn limit_of_clock(&self) -> Said {
        let both = [self.row(Metric::IpCapacity), self.row(Metric::AvailableIpCapacity)];
        let both = || both.iter().flatten();
        let stalled = both().any(|row| {
            let stall = row.caveats.iter().any(|caveat| caveat.id == "host_stall");
            row.limited_by == Some(Limit::Clock) || (stall && row.verdict != BoundKind::Estimated)
        });
        if both().any(|row| row.timing_invalid) {
            return Some(("l1", "unknown: this machine did not keep time while it measured".to_owned()));
        }
        stalled.then(|| ("l1", "unknown: a host stalled while it measured".to_owned()))
    }

    fn limit_of_bucket(&self) -> Said {
        let limits = self.findings().map(|found| found.tcp.limits.as_slice()).unwrap_or_default();
        let first = limits.first().copied();
        let row = self.row(Metric::IpCapacity)?;
        let drops = first == Some(LimitingFactor::Policer) || row.caveats.iter().any(|caveat| caveat.id == "policed");
        let found = self.peak().is_some() || first == Some(LimitingFactor::Shaper) || drops;
        let verb = if drops { "drops" } else { "delays" };
        found.then(|| ("l3", format!("a token bucket that {verb} the excess")))
    }

    /// One connection does not use what is free.
    fn limit_of_tcp(&self, available: &MetricRow) -> Said {
        let tcp = self.row(Metric::TcpAchievableSingle)?.value?;
        let found = &self.findings()?.tcp;
        let factor = found.limits.first().copied()?;
        if tcp as f64 >= UNUSED * available.low? as f64 {
            return None;
        }
        let how = found.congestion.as_deref().map_or_else(String::new, |name| format!(" ({name})"));
        Some(("l4", format!("{}: one TCP connection{how} gets {}", self.factor(factor), rate(tcp))))
    }

    fn factor(&self, factor: LimitingFactor) -> String {
        let tcp = self.findings().map(|found| &found.tcp);
        let resent = tcp.and_then(|tcp| tcp.retransmitted).map(|share| format!(" of {:.2} %", share * 100.0));
        let loss = |what: &str| format!("{what}{}", resent.clone().unwrap_or_default());
        let added = tcp.and_then(|tcp| Some(tcp.rtt_loaded_ns? - tcp.rtt_min_ns?)).filter(|added| *added > 0.0);
        match factor {
            LimitingFactor::RandomLoss => loss("random loss"),
            LimitingFactor::Loss => loss("loss"),
            LimitingFactor::Queue => {
                added.map_or_else(|| "full queues".to_owned(), |ns| format!("full queues, +{:.0} ms", ns / 1e6))
            }
            LimitingFactor::PeerWindow => format!("the receive window of {}", self.end(false)),
            LimitingFactor::SendBuffer => format!("the send buffer of {}", self.end(true)),
            LimitingFactor::SendingHost | LimitingFactor::Application | LimitingFactor::Interface => {
                format!("{} of {}", factor.name(), self.end(true))
            }
            LimitingFactor::ReceivingHost => format!("the processor of {}", self.end(false)),
            LimitingFactor::Growing => "the test was too short".to_owned(),
            LimitingFactor::MtuBlackHole
            | LimitingFactor::Pacing
            | LimitingFactor::Reordering
            | LimitingFactor::Shaper
            | LimitingFactor::Policer => factor.name().to_owned(),
        }
    }

    /// What to do about a limit that this rule has told.
    fn action(&self, limit: Option<&str>) -> Said {
        let mut own = self.document.advice.iter().filter(|advice| advice.direction == self.direction);
        let limiting = own.find(|advice| advice.severity == Severity::Limiting);
        // What hosts that did not keep time seem to suffer from is not known.
        if let Some(advice) = limiting.filter(|_| limit.is_some_and(|limit| limit != "l1")) {
            let command = advice.command.as_deref().map(|command| format!("{}: {command}", advice.brief));
            let fits = |text: &String| LABEL + text.chars().count() <= WIDTH && !text.contains('#');
            return Some(("d1", command.filter(fits).unwrap_or_else(|| advice.brief.to_owned())));
        }
        let mut both = [Metric::IpCapacity, Metric::AvailableIpCapacity].into_iter().filter_map(|it| self.row(it));
        let unknown = both.next().is_some_and(|row| row.value.is_none());
        match limit {
            Some("l1" | "l8") => Some(("d2", self.repeat())),
            _ if self.document.is_single_ended() => {
                Some(("d6", "run narrows serve there, for free now, UDP, TCP, each direction".to_owned()))
            }
            _ if unknown => Some(("d2", self.repeat())),
            Some("l3") => Some(("d3", "judge by long transfers, not by the first seconds".to_owned())),
            Some("l6") => Some(("d4", "less traffic or a faster link there; these hosts are fine".to_owned())),
            // One metric alone does not clear the hosts.
            _ if !self.document.is_whole_job() => None,
            limit => limit.map(|_| ("d5", "nothing to fix on these hosts".to_owned())),
        }
    }

    fn repeat(&self) -> String {
        let more = if self.document.kind == "test" { ", or --thorough (about 60 s, 200 MB)" } else { "" };
        format!("repeat on a quiet machine{more}")
    }

    fn doubts(&self) -> Said {
        let own = |row: &&MetricRow| row.direction == self.direction;
        let mut count = 0;
        let mut worst: Option<(&MetricRow, &str)> = None;
        for row in self.document.metrics.iter().filter(own) {
            for caveat in row.caveats.iter().filter(|caveat| is_doubt(caveat)) {
                count += 1;
                let weight = |row: &MetricRow| row.confidence == Some(Confidence::Low);
                if worst.is_none_or(|(other, _)| weight(row) && !weight(other)) {
                    worst = Some((row, caveat.brief));
                }
            }
        }
        let (row, brief) = worst?;
        let first = if count == 1 { "1 on".to_owned() } else { format!("{count}, the first on") };
        let said = format!("{first} {}: {brief}", title(row.metric));
        let fits = LABEL + said.len() + MORE.len() <= WIDTH;
        let more = if fits && self.document.is_whole_job() { MORE } else { "" };
        Some(("w1", said + more))
    }
}

/// A caveat that is not on every result.
pub(crate) fn is_doubt(caveat: &Remark) -> bool {
    !COMMON.contains(&caveat.id.as_str())
}

/// The host that kept the method from seeing more: the sender, or the receiver.
fn limiting_end(row: &MetricRow) -> Option<bool> {
    match row.limited_by? {
        Limit::Sender => Some(true),
        Limit::Receiver => Some(false),
        Limit::Path | Limit::Window | Limit::Shaper | Limit::Clock | Limit::Budget => None,
    }
}

/// What is free beside what the path carries.
struct ShareFree {
    value: f64,
    reaches: bool,
}

fn brief_reason(row: &MetricRow) -> &'static str {
    row.reason.as_ref().map_or("no value was found", |reason| reason.brief)
}

/// In ASCII, and no wider than a line.
fn fitted(text: &str) -> String {
    let ascii: String = text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    if ascii.len() <= WIDTH - LABEL { ascii } else { format!("{}...", ascii[..WIDTH - LABEL - 3].trim_end()) }
}
