//! The rules, by topic. Of each topic the first that holds writes its line.

use narrows_diagnose::advice::Findings;
use narrows_probe::{BoundKind, Confidence, Limit};
use narrows_units::{Direction, Metric};

use super::figures::{ends, estimated_row, octets, rate};
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
pub(super) const ALL: f64 = 0.9;
/// An interval that ends at this share of the capacity reaches it.
const REACHES: f64 = 0.95;
/// Below this share an interval that reaches the capacity leaves open whether all of it is free.
const UNSURE: f64 = 0.75;
/// Where the other doubts stand.
const MORE: &str = "; --full has all";
/// No doubt on every result: that no train was long enough for the deepest bucket is known.
const COMMON: [&str; 1] = ["bucket_not_excluded"];
/// What the limit has told already.
const OF_BUCKETS: [&str; 2] = ["shaped", "policed"];

/// The lines of one direction.
pub(super) fn lines(document: &Document, direction: Direction) -> Vec<AnswerLine> {
    let view = View { document, direction };
    let limit = view.limit();
    let rule = limit.as_ref().map(|(rule, _)| *rule);
    let said = [
        (Topic::Carries, view.marked(Metric::IpCapacity, view.carries())),
        (Topic::FreeNow, view.marked(Metric::AvailableIpCapacity, view.free_now())),
        (Topic::Limit, limit),
        (Topic::Do, view.action(rule)),
        (Topic::Doubts, view.doubts(rule)),
    ];
    of_direction(direction, said)
}

/// The lines that have something to say.
pub(super) fn of_direction(direction: Direction, said: impl IntoIterator<Item = (Topic, Said)>) -> Vec<AnswerLine> {
    let lines = said.into_iter().filter_map(|(line, said)| said.map(|(rule, text)| (line, rule, text)));
    lines.map(|(line, rule, text)| AnswerLine { direction, line, rule, text: fitted(&text) }).collect()
}

/// One direction of a document.
pub(super) struct View<'a> {
    pub(super) document: &'a Document,
    pub(super) direction: Direction,
}

impl<'a> View<'a> {
    pub(super) fn row(&self, metric: Metric) -> Option<&'a MetricRow> {
        self.document.metrics.iter().find(|row| row.metric == metric && row.direction == self.direction)
    }

    /// A row that claims a value with both bounds.
    pub(super) fn estimate(&self, metric: Metric) -> Option<&'a MetricRow> {
        self.row(metric).filter(|row| row.verdict == BoundKind::Estimated && row.value.is_some())
    }

    pub(super) fn findings(&self) -> Option<&'a Findings> {
        self.document.findings.iter().find(|found| found.direction == self.direction)
    }

    pub(super) fn host(&self) -> &'a str {
        &self.document.target.name
    }

    /// The host that sends, or the one that receives, by its name.
    pub(super) fn end(&self, is_sender: bool) -> &'a str {
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
            let depth = depth.or_else(|| self.findings()?.bucket.1);
            let bursts = depth.map_or_else(|| "bursts".to_owned(), |depth| format!("bursts up to {}", octets(depth)));
            let said = |sustained: String| format!("{sustained} sustained; {bursts} pass at {}", rate(peak));
            let long = said(estimated_row(sustained)?);
            return Some(("c1", if fits(&long) { long } else { said(rate(sustained.value?)) }));
        }
        Some(match (row.verdict, row.value) {
            (BoundKind::Estimated, Some(_)) => ("c2", format!("{} {toward} {}", estimated_row(row)?, self.host())),
            (BoundKind::LowerBound, Some(value)) => match limiting_end(row).filter(|_| !self.stalled()) {
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
    pub(super) fn peak(&self) -> Option<u64> {
        let sustained = self.row(Metric::IpCapacity)?.value?;
        let peak = self.row(Metric::PeakRate).and_then(|row| row.value).or_else(|| self.findings()?.bucket.0);
        peak.filter(|&peak| peak > sustained)
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
                return Some(match share.least {
                    least if least >= UNSURE => ("f1", format!("all of it ({}); no other traffic seen", ends(row)?)),
                    least if least >= NOTHING => ("f8", format!("at least {}; it may be all of it", rate(row.low?))),
                    _ => ("f8", "unclear: between 0 and the whole capacity".to_owned()),
                });
            }
            if share.value < NOTHING {
                return Some(("f2", format!("only {said}; other traffic fills the path")));
            }
        }
        if self.stalled() {
            return Some(("f8", format!("unclear, {}", ends(row)?)));
        }
        if row.caveats.iter().any(|caveat| caveat.id == "elastic_cross_traffic") {
            return Some(("f3", format!("{said} for one more sender; other traffic backed off")));
        }
        // Where the link's rate varies nothing says that there is other traffic.
        let varies = row.caveats.iter().any(|caveat| caveat.id == "variable_rate");
        let known = self.estimate(Metric::IpCapacity).is_some() && !varies;
        let rest = if known { "; other traffic takes the rest" } else { "" };
        Some(("f4", format!("{said}{rest}")))
    }

    /// What is free as a share of the capacity, where both are values.
    fn share_free(&self, available: &MetricRow) -> Option<ShareFree> {
        let capacity = self.estimate(Metric::IpCapacity)?;
        let value = available.value? as f64 / capacity.value?.max(1) as f64;
        Some(ShareFree {
            value,
            least: available.low? as f64 / capacity.value?.max(1) as f64,
            reaches: available.high? as f64 >= REACHES * capacity.low? as f64,
        })
    }

    /// What is left to doubt beside a limit that this rule has told.
    fn doubts(&self, limit: Option<&str>) -> Said {
        // What is sure all the same is no doubt.
        let own = |row: &&MetricRow| row.direction == self.direction && row.confidence != Some(Confidence::High);
        let of_limit = |caveat: &Remark| limit == Some("l3") && OF_BUCKETS.contains(&caveat.id.as_str());
        let mut count = 0;
        let mut worst: Option<(&MetricRow, &str)> = None;
        for row in self.document.metrics.iter().filter(own) {
            for caveat in row.caveats.iter().filter(|caveat| is_doubt(caveat) && !of_limit(caveat)) {
                count += 1;
                let weight = |row: &MetricRow| row.confidence == Some(Confidence::Low);
                if worst.is_none_or(|(other, _)| weight(row) && !weight(other)) {
                    worst = Some((row, caveat.brief));
                }
            }
        }
        let (row, brief) = worst?;
        if count == 1 {
            return Some(("w1", format!("1, on {}: {brief}", title(row.metric))));
        }
        let said = format!("{count}, the first on {}: {brief}", title(row.metric));
        let more = if self.document.is_whole_job() { MORE } else { "" };
        Some(("w1", if fits(&format!("{said}{more}")) { said + more } else { said }))
    }
}

/// A caveat that is not on every result.
pub(crate) fn is_doubt(caveat: &Remark) -> bool {
    !COMMON.contains(&caveat.id.as_str())
}

/// The host that kept the method from seeing more: the sender, or the receiver.
pub(super) fn limiting_end(row: &MetricRow) -> Option<bool> {
    match row.limited_by? {
        Limit::Sender => Some(true),
        Limit::Receiver => Some(false),
        Limit::Path | Limit::Window | Limit::Shaper | Limit::Clock | Limit::Budget => None,
    }
}

/// What is free beside what the path carries.
struct ShareFree {
    value: f64,
    /// The lower end of its interval.
    least: f64,
    reaches: bool,
}

fn brief_reason(row: &MetricRow) -> &'static str {
    row.reason.as_ref().map_or("no value was found", |reason| reason.brief)
}

/// Whether it takes no more than a line.
pub(super) fn fits(text: &str) -> bool {
    LABEL + text.chars().count() <= WIDTH
}

/// In ASCII, and no wider than a line.
fn fitted(text: &str) -> String {
    let ascii: String = text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    if ascii.len() <= WIDTH - LABEL { ascii } else { format!("{}...", ascii[..WIDTH - LABEL - 3].trim_end()) }
}
