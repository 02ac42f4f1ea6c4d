//! What holds a path back, and what to do about it.

use narrows_diagnose::advice::Severity;
use narrows_probe::{BoundKind, Caveat, Finding, Limit, LimitingFactor};
use narrows_units::Metric;

use super::figures::rate;
use super::rules::{ALL, Said, View, fits, limiting_end};
use crate::rows::MetricRow;

/// An interval that is wider than this share of its value tells little.
const OPEN: f64 = 0.3;
/// One connection that gets less than this share of what is free does not use the path.
const UNUSED: f64 = 0.8;

impl View<'_> {
    pub(super) fn limit(&self) -> Said {
        self.limit_of_clock()
            .or_else(|| self.limit_of_host())
            .or_else(|| self.limit_of_bucket())
            .or_else(|| self.limit_of_size())
            .or_else(|| self.limit_of_tcp())
            .or_else(|| self.limit_of_way_back())
            .or_else(|| self.limit_of_links())
    }

    fn limit_of_host(&self) -> Said {
        let is_sender = self.limiting_end()?;
        let verb = if is_sender { "send" } else { "take" };
        Some(("l2", format!("{}, not the path: it could not {verb} more", self.end(is_sender))))
    }

    /// Nothing else holds back: it is a link, or others' traffic on one.
    fn limit_of_links(&self) -> Said {
        let found = self.estimate(Metric::IpCapacity);
        let free = self.estimate(Metric::AvailableIpCapacity);
        let busy = free.zip(found).and_then(|(free, found)| Some((free.high? as f64) < ALL * found.low? as f64));
        match (busy, found) {
            (Some(true), _) => Some(("l6", "other traffic on a link of the path".to_owned())),
            (_, Some(_)) => Some(("l7", format!("the path's slowest link; which one: narrows hops {}", self.host()))),
            // What was not asked for was not found either, and limits nothing.
            (_, None) => {
                // Answers that are as long as the requests.
                let alike = |row: &MetricRow| row.caveats.iter().any(|it| it.id == Caveat::AsymmetricLimit.id());
                let why = |row| {
                    if alike(row) { "echoes only show the slower direction" } else { "the capacity was not found" }
                };
                self.row(Metric::IpCapacity).map(|row| ("l8", format!("unknown: {}", why(row))))
            }
        }
    }

    /// The host that kept a method from seeing more: the sender, or the receiver.
    fn limiting_end(&self) -> Option<bool> {
        let both = [Metric::IpCapacity, Metric::AvailableIpCapacity];
        both.into_iter().filter_map(|metric| self.row(metric)).find_map(limiting_end)
    }

    fn limit_of_clock(&self) -> Said {
        let both = [self.row(Metric::IpCapacity), self.row(Metric::AvailableIpCapacity)];
        let both = || both.iter().flatten();
        if both().any(|row| row.timing_invalid) {
            return Some(("l1", "unknown: the timing was not valid: this machine was late".to_owned()));
        }
        (self.stalled() && !self.is_held_by_bucket()).then(|| ("l1", format!("unknown: {}", self.paused())))
    }

    /// The capacity is the sustained rate of a token bucket, whatever a host did while something
    /// else was measured.
    fn is_held_by_bucket(&self) -> bool {
        self.row(Metric::IpCapacity).is_some_and(|row| is_of_bucket(row) && !is_open(row))
    }

    /// Which host paused, and how often, as far as the trains tell.
    fn paused(&self) -> String {
        let found = self.row(Metric::AvailableIpCapacity).and_then(|row| match &row.details.finding {
            Finding::Available(found) => Some(found),
            _ => None,
        });
        let of = |who: &str, trains: usize, all: usize| format!("{who} paused during {trains} of {all} trains");
        match found.map(|found| (found.sender_paused_trains, found.receiver_paused_trains, found.trains)) {
            Some((sender, receiver, all)) if sender > receiver => of(self.end(true), sender, all),
            Some((sender, receiver, all)) if receiver > sender => of(self.end(false), receiver, all),
            _ => "a host paused several times during the test".to_owned(),
        }
    }

    /// A host that did not run at times left nothing certain.
    pub(super) fn stalled(&self) -> bool {
        let both = [self.row(Metric::IpCapacity), self.row(Metric::AvailableIpCapacity)];
        both.into_iter().flatten().any(|row| {
            let stall = row.caveats.iter().any(|caveat| caveat.id == "host_stall");
            row.limited_by == Some(Limit::Clock) || (stall && (row.verdict != BoundKind::Estimated || is_open(row)))
        })
    }

    fn limit_of_bucket(&self) -> Said {
        let limits = self.findings().map(|found| found.tcp.limits.as_slice()).unwrap_or_default();
        let first = limits.first().copied();
        let row = self.row(Metric::IpCapacity)?;
        let drops = first == Some(LimitingFactor::Policer) || row.caveats.iter().any(|caveat| caveat.id == "policed");
        let found = is_of_bucket(row) || self.peak().is_some() || first == Some(LimitingFactor::Shaper) || drops;
        let verb = if drops { "drops" } else { "delays" };
        found.then(|| ("l3", format!("a token bucket that {verb} the excess")))
    }

    /// Full packets vanish, and TCP stands still.
    fn limit_of_size(&self) -> Said {
        let found = self.findings()?;
        let stands = found.tcp.limits.first() == Some(&LimitingFactor::MtuBlackHole);
        let size =
            found.path_mtu_octets.map_or_else(|| "of full size".to_owned(), |size| format!("above {size} octets"));
        stands.then(|| ("l9", format!("IP packets {size} are dropped without an error: TCP connections hang")))
    }

    /// Only answers are lost.
    fn limit_of_way_back(&self) -> Said {
        let mut own = self.document.advice.iter().filter(|advice| advice.direction == self.direction);
        own.find(|advice| advice.id == "asymmetry" && advice.severity == Severity::Warning)?;
        let share = self.findings()?.caveat(|caveat| match caveat {
            Caveat::Loss { ratio } => Some(*ratio),
            _ => None,
        })?;
        Some(("l10", format!("no loss forward; {:.1} % of answers lost in the reverse direction", share * 100.0)))
    }

    /// One connection does not use what is free.
    fn limit_of_tcp(&self) -> Said {
        let available = self.row(Metric::AvailableIpCapacity)?;
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
    pub(super) fn action(&self, limit: Option<&str>) -> Said {
        let mut own = self.document.advice.iter().filter(|advice| advice.direction == self.direction);
        let limiting = own.find(|advice| advice.severity == Severity::Limiting);
        // What hosts that did not keep time seem to suffer from is not known.
        if let Some(advice) = limiting.filter(|_| limit.is_some_and(|limit| limit != "l1")) {
            let command = advice.command.as_deref().map(|command| format!("{}: {command}", advice.brief));
            let here = |text: &String| fits(text) && !text.contains('#');
            let at = self.limiting_end().filter(|_| limit == Some("l2"));
            let brief =
                at.map(|is_sender| format!("at {}: {}", self.end(is_sender), advice.brief)).filter(|it| fits(it));
            let said = command.filter(here).or(brief);
            return Some(("d1", said.unwrap_or_else(|| advice.brief.to_owned())));
        }
        let mut both = [Metric::IpCapacity, Metric::AvailableIpCapacity].into_iter().filter_map(|it| self.row(it));
        let unknown = both.next().is_some_and(|row| row.value.is_none());
        match limit {
            Some("l1") => Some(("d2", self.repeat())),
            _ if self.document.is_single_ended() => {
                Some(("d6", "run narrows serve there to measure free now, UDP, TCP, each direction".to_owned()))
            }
            Some("l8") => Some(("d2", self.repeat())),
            _ if unknown => Some(("d2", self.repeat())),
            Some("l4") if self.loses() => {
                Some(("d7", format!("find the link that loses: narrows hops {}", self.host())))
            }
            Some("l3") => Some(("d3", "count on the sustained rate, whatever short tests say".to_owned())),
            Some("l6") => Some(("d4", format!("find the busy link: narrows hops {}", self.host()))),
            Some("l10") => Some(("d8", format!("test that direction: narrows test {} --reverse", self.host()))),
            // One metric alone does not clear the hosts.
            _ if !self.document.is_whole_job() => None,
            limit => limit.map(|_| ("d5", "nothing to fix on the two hosts".to_owned())),
        }
    }

    /// Losses hold a connection back, not queues.
    fn loses(&self) -> bool {
        let first = self.findings().and_then(|found| found.tcp.limits.first());
        matches!(first, Some(LimitingFactor::RandomLoss | LimitingFactor::Loss))
    }

    fn repeat(&self) -> String {
        let more = if self.document.kind == "test" { ", or --thorough (about 60 s, 200 MB)" } else { "" };
        format!("repeat while both hosts are idle{more}")
    }
}

/// A value that is the sustained rate of a token bucket.
fn is_of_bucket(row: &MetricRow) -> bool {
    row.limited_by == Some(Limit::Shaper) && row.verdict == BoundKind::Estimated
}

/// The interval leaves nearly everything open.
fn is_open(row: &MetricRow) -> bool {
    let width = row.high.zip(row.low).map(|(high, low)| high.saturating_sub(low) as f64);
    width.zip(row.value).is_some_and(|(width, value)| width > OPEN * value as f64)
}
