#![doc = include_str!("rtt.md")]

mod directions;
mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::run::Run;
use narrows_stat::Sorted;
use narrows_units::{Delta, Metric, rounded_signed};

use narrows_probe::PathFacts;
use narrows_probe::contract::Estimator;
use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::{
    Caveat, Confidence, Details, Diagnostics, Directions, Estimate, Finding, Outcome, Ranged, Reason, RoundTripFinding,
    SampleCounts,
};
use narrows_probe::probes::{Arrival, Fate, HopReplyKind, TrainReport};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, Range, RawParams, Scope, params,
};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Rtt;

static INFO: MethodInfo = MethodInfo {
    name: "rtt",
    summary: "round-trip time from echoes of small packets",
    metric: Metric::RoundTripTime,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::Echo,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: None,
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: false, pacing: false },
    imposes: Imposes {
        typical_octets: 5376,
        max_octets: 50_000,
        typical_time: Duration::from_millis(400),
        max_time: Duration::from_secs(10),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("rtt.md"),
};

impl Method for Rtt {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn answered_by(&self) -> &'static [Answering] {
        &[Answering::Server, Answering::Echo, Answering::Reflector, Answering::ClosedPort, Answering::TcpSyn]
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        match Params::try_from(params) {
            Ok(params) => usual.lasting(params.longest() + Duration::from_secs(2)),
            Err(_) => usual,
        }
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(raw)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::replay(Run::new(Params::try_from(params)?), observations)
    }
}

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Packets in all.
        pub probes: u32 = "20" {
            range: Between("1", "1000"), source: "ours: RFC 2681 leaves it open; twenty make a 95th percentile",
        },
        /// Time between packets.
        pub spacing: Duration = "20 ms" {
            range: Between("1 ms", "10 s"), source: "ours: beyond the queue memory of access links at small load",
        },
        /// IP octets of a packet.
        pub ip_octets: u16 = "64" {
            name: "octets", unit: "IP octets", range: Between("28", "1500"),
            source: "ours: small, raised to what the probe header needs",
        },
        /// Packets of one train: the next one begins when all of its answers are there.
        pub train: u32 = "10" { range: Between("1", "1000"), source: "ours" },
        /// No new train begins after this time.
        pub duration: Duration = "3 s" { range: Between("1 ms", "1 h"), source: "ours" },
        /// Every one-way delay in the order of sending: of packets that are to be evenly spaced,
        /// one train of all.
        pub delays: bool = "false" { range: Range::SWITCH, source: "ours: RFC 8382 needs them" },
    }
}

impl Params {
    /// How long packets leave: the last train begins within the duration, and goes on to its end.
    fn longest(&self) -> Duration {
        (self.spacing * self.probes).min(self.duration + self.spacing * self.train)
    }
}

/// What the echoes say.
pub fn analyse(facts: &PathFacts, reports: &[TrainReport]) -> Outcome {
    let (dense, sparse): (Vec<&TrainReport>, Vec<&TrainReport>) = reports.iter().partition(|report| is_dense(report));
    let rows = || sparse.iter().flat_map(|report| &report.arrivals);
    let sent = rows().count();
    let times: Vec<Delta> = rows().filter_map(round_trip).collect();
    let stepped = times.iter().any(|time| *time < Delta::ZERO);
    let good: Vec<f64> = times.iter().filter(|time| **time >= Delta::ZERO).map(|time| time.as_f64()).collect();
    let lost: usize = sparse.iter().map(|report| report.lost_on_path()).sum();
    let mut caveats = Vec::new();
    if lost > 0 {
        caveats.push(Caveat::Loss { ratio: lost as f64 / sent as f64 });
    }
    if stepped {
        caveats.push(Caveat::ClockStep);
    }
    let mut diagnostics = Diagnostics::default();
    diagnostics.insert("sent", sent);
    diagnostics.insert("answered", good.len());
    let counts = SampleCounts::default().kept("round_trips", good.len());
    let counts = counts.rejected("clock_set", times.len() - good.len());
    let outcome = match Sorted::new(good) {
        Ok(sorted) => {
            let stamps = stamp_error(facts);
            let directions = directions::tell(rows(), stamps, &mut diagnostics);
            let estimate = conclude(facts, &sorted, caveats, diagnostics, directions);
            dense.into_iter().fold(estimate, with_dense).into()
        }
        Err(_) => Outcome::Inconclusive { reason: Reason::NoAnswer, caveats, details: Details::default(), diagnostics },
    };
    outcome.counted(counts)
}

fn conclude(
    facts: &PathFacts,
    sorted: &Sorted,
    caveats: Vec<Caveat>,
    mut diagnostics: Diagnostics,
    directions: Option<Directions>,
) -> Estimate {
    let nanos = |value: f64| Delta::from_nanos(rounded_signed(value));
    let percentile = |p: f64| nanos(sorted.quantile(p).unwrap_or_else(|| sorted.max()));
    diagnostics.insert("median_ns", percentile(0.5));
    diagnostics.insert("p95_ns", percentile(0.95));
    diagnostics.insert("max_ns", nanos(sorted.max()));
    diagnostics.insert("round_trips_ns", sorted.values().to_vec());
    let values = sorted.values();
    let third = values[values.len().min(3) - 1];
    let stamps = stamp_error(facts);
    let (value, below) = (sorted.min(), (third - sorted.min()).max(stamps));
    let time = |value: f64| nanos(value).max(Delta::ZERO);
    let range = Ranged::new(time(value), time(value - below), time(value + stamps));
    let mut estimate = Estimate::new(Metric::RoundTripTime, None, range);
    if values.len() < FEW {
        let samples = u32::try_from(values.len()).unwrap_or(u32::MAX);
        estimate = estimate.caveat(Caveat::FewSamples { samples });
        estimate.confidence = Confidence::Low;
    }
    for caveat in caveats {
        estimate = estimate.caveat(caveat);
    }
    estimate.diagnostics = diagnostics;
    let found = RoundTripFinding { median_ns: percentile(0.5), p95_ns: percentile(0.95), directions };
    estimate.found(Finding::RoundTrip(Box::new(found)))
}

/// How far a stamp of the sender may be off, ns.
fn stamp_error(facts: &PathFacts) -> f64 {
    Delta::from(facts.sender.stamp_error.max(facts.sender.clock_resolution)).as_f64()
}

/// Whether a train was sent to be seen in batches: packets closer than any interrupt timer is long.
fn is_dense(report: &TrainReport) -> bool {
    let rows = &report.arrivals;
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return false;
    };
    rows.len() >= 16 && last.departed.since(first.departed) < Duration::from_micros(20) * DENSE
}

/// What a dense train adds. Single echoes each wait for both hosts' whole interrupt timers; of a
/// batch the last packet waits least, so that the smallest time of all is nearer. What both hosts
/// may still have added is no more than the time from batch to batch and a gap each, and unknown if
/// there was one batch alone.
fn with_dense(mut estimate: Estimate, report: &TrainReport) -> Estimate {
    let times = report.arrivals.iter().filter_map(round_trip);
    let Some(least) = times.filter(|time| *time > Delta::ZERO).min() else {
        return estimate;
    };
    estimate.adjust(|time: &mut Ranged<Delta>| {
        let stamps = time.high - time.value;
        if least < time.value {
            time.low = time.low.min(least);
            (time.value, time.high) = (least, least + stamps);
        }
    });
    estimate = estimate.with("dense_min_ns", least);
    let Some((period, batches)) = batches(report) else {
        return estimate;
    };
    // The last of a batch may have waited for up to a gap, at either host.
    let rows = &report.arrivals;
    let sent = rows.last().map_or(Duration::ZERO, |last| last.departed.since(rows[0].departed));
    let added = Delta::from(period + 2 * sent / u32::try_from(rows.len()).unwrap_or(1).max(1));
    estimate = estimate.with("batch_period_ns", Delta::from(period));
    let mut value = Delta::ZERO;
    estimate.adjust(|time: &mut Ranged<Delta>| {
        value = time.value;
        time.low = time.low.min((value - added).max(Delta::ZERO));
    });
    if added.as_f64() > MATTERS * value.as_f64() {
        estimate = estimate.caveat(Caveat::ReceiveBatching { period });
        estimate.confidence = Confidence::Low;
        if batches < 2 {
            estimate = estimate.at_most();
        }
    }
    estimate
}

/// The typical time from the end of a batch of echoes to the end of the next, and how many there
/// were; `None` if most came apart.
fn batches(report: &TrainReport) -> Option<(Duration, usize)> {
    let rows = &report.arrivals;
    let sent = (rows.last()?.departed - rows.first()?.departed).as_f64() / rows.len() as f64;
    let mut reverse: Vec<f64> = rows
        .iter()
        .filter_map(|row| round_trip(row).map(|time| (row.departed - rows[0].departed).as_f64() + time.as_f64()))
        .collect();
    reverse.sort_by(f64::total_cmp);
    let (first, last) = (*reverse.first()?, *reverse.last()?);
    let mut ends: Vec<f64> =
        reverse.windows(2).filter(|pair| pair[1] - pair[0] > APART * sent).map(|pair| pair[0]).collect();
    ends.push(last);
    if 2 * ends.len() > reverse.len() {
        return None;
    }
    let apart: Vec<f64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let period = narrows_stat::median(&apart).unwrap_or(last - first + sent * rows.len() as f64);
    Some((Duration::from_nanos(u64::try_from(rounded_signed(period)).unwrap_or(0)), ends.len()))
}

/// Packets of the dense train, and the least gap between them: together longer than timers of
/// interrupt coalescing (ours).
const DENSE: u32 = 64;
const DENSE_GAP: Duration = Duration::from_micros(4);
/// On longer paths no such timer matters (ours).
const SHORT_PATH: Duration = Duration::from_millis(10);
/// Echoes this share of the sending gap apart came apart (ours).
const APART: f64 = 0.3;
/// A time between batches up to this share of the value is no more than a wider interval (ours).
const MATTERS: f64 = 0.03;

/// Ours.
const FEW: usize = 5;

/// Time to the peer and back. Answers of routers on the way are not from the peer.
fn round_trip(row: &Arrival) -> Option<Delta> {
    match row.fate {
        Fate::Echoed { returned, .. } => Some(returned - row.departed),
        Fate::Answered(reply) if matches!(reply.kind, HopReplyKind::PortUnreachable | HopReplyKind::TcpAnswer) => {
            Some(reply.returned - row.departed)
        }
        Fate::Answered(_) | Fate::Received(_) | Fate::Lost => None,
    }
}
