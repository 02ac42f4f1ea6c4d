//! What a run tells on its way: plain data for screens, status lines and event streams.
//!
//! Whoever runs methods tells a [`Feed`]. Only [`Observed`], a world around another one, and the
//! main job do so, and only between two probes: an estimator knows nothing of it, and nothing is
//! told while a train is under way.

mod observed;
mod sample;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::time::Duration;

use narrows_units::{Direction, Layer, Metric, Sender, Stamp, nanos};
use serde::{Deserialize, Serialize};

pub use observed::Observed;
pub use sample::{LoadSample, Sample, TrainSample, TransferSample};

use crate::outcome::{BoundKind, Estimate, Limit, Outcome};
use crate::world::Entry;

/// Who is told.
pub trait Feed {
    /// Something happened, at this time of the host that runs the estimator. Must not wait.
    fn tell(&self, at: Stamp<Sender>, progress: Progress);

    /// What is on the path from now on. Until it is [`OnPath::Nothing`] again, this host has no
    /// time for pictures.
    fn on_path(&self, what: OnPath) {
        let _ = what;
    }

    /// The user asks for a pause before the next stage.
    fn paused(&self) -> bool {
        false
    }
}

/// Nobody listens.
impl Feed for () {
    fn tell(&self, _: Stamp<Sender>, _: Progress) {}
}

/// What a probe under way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnPath {
    /// There is none.
    Nothing,
    /// A train, whose packets are timed.
    Train,
    /// A load or a transfer, which lasts.
    Load,
}

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum Progress {
    /// What is going to be measured, and against whom. May come again when more is known.
    Plan(Plan),
    /// A method begins.
    StageBegan(StageBegan),
    /// A probe came back.
    Sample(Sample),
    /// An interval of a transfer is over.
    Interval(Interval),
    /// What is known of a hop has changed.
    Hop(HopSoFar),
    /// An interval of a watch is over.
    Watch(WatchPoint),
    /// A method has answered.
    StageEnded(StageEnded),
    /// A stage will run again: its timing was not valid.
    Repeated(Repeated),
    /// Something that the user should read.
    Note(String),
    /// Nothing is measured any more.
    Ended,
}

/// An event and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Since the program began to measure.
    pub at_ns: u64,
    /// The event.
    #[serde(flatten)]
    pub progress: Progress,
}

/// What is going to be measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The subcommand.
    pub command: String,
    /// The peer, as the user named it.
    pub target: String,
    /// What that resolved to.
    pub address: Option<IpAddr>,
    /// Which way, and how, in a few words.
    pub details: String,
    /// In their order; empty where there are none.
    pub stages: Vec<PlannedStage>,
    /// Longest that it may take; `None`: until the user ends it.
    pub most_ns: Option<u64>,
    /// How long it usually takes.
    pub about_ns: Option<u64>,
    /// Most that it may send.
    pub most_octets: Option<u64>,
}

/// One stage to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStage {
    /// What it measures.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// What it usually sends.
    pub octets: u64,
    /// How long it usually takes.
    pub time_ns: u64,
}

/// A method begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageBegan {
    /// What it measures.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// By which method.
    pub method: String,
}

/// A method has answered. Values are in the metric's unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageEnded {
    /// What it measured.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// By which method.
    pub method: String,
    /// The answer.
    pub value: Option<u64>,
    /// Lower end of its interval.
    pub low: Option<u64>,
    /// Upper end.
    pub high: Option<u64>,
    /// What it claims.
    pub verdict: BoundKind,
    /// Whose octets are counted.
    pub layer: Option<Layer>,
    /// What set it.
    pub limited_by: Option<Limit>,
    /// Why there is none, in a few words.
    pub reason: Option<String>,
    /// Why it might mislead.
    pub doubts: Vec<String>,
    /// IP octets sent.
    pub octets: u64,
    /// Packets sent.
    pub packets: u64,
    /// Time taken.
    pub time_ns: u64,
    /// Highest IP-layer rate over 100 ms.
    pub peak_bps: u64,
}

/// A stage whose timing was not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    /// What it measures.
    pub metric: Metric,
    /// How often it has run.
    pub attempts: u32,
}

/// An interval of a transfer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its begin, since the transfer began.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// It comes before counting begins.
    pub omitted: bool,
    /// What held the rate down.
    pub limited_by: Option<String>,
    /// What is counted.
    pub layer: Layer,
    /// One per stream.
    pub streams: Vec<StreamInterval>,
    /// Finer than the interval, all sending streams together.
    pub points: Vec<RatePoint>,
}

/// A stream over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamInterval {
    /// Its number.
    pub id: u32,
    /// This host sends.
    pub sends: bool,
    /// Payload octets in the interval.
    pub octets: u64,
    /// Segments sent again, or packets lost, in it.
    pub again: Option<u64>,
    /// Congestion window at its end.
    pub window_octets: Option<u64>,
    /// Round trip at its end.
    pub rtt_ns: Option<u64>,
}

/// A moment of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RatePoint {
    /// Its end, since the transfer began.
    pub to_ns: u64,
    /// Its length.
    pub span_ns: u64,
    /// Payload octets acknowledged in it.
    pub octets: u64,
    /// Segments sent again in it.
    pub again: u64,
    /// Mean round trip of the streams at its end.
    pub rtt_ns: Option<u64>,
}

/// What is known of a hop by now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HopSoFar {
    /// Its number.
    pub ttl: u16,
    /// Who answers, most often first.
    pub routers: Vec<IpAddr>,
    /// Name of the first of them.
    pub name: Option<String>,
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub answered: u64,
    /// Least round trip.
    pub best_ns: Option<u64>,
    /// Mean round trip.
    pub mean_ns: Option<u64>,
    /// Longest round trip.
    pub worst_ns: Option<u64>,
    /// Mean wait in queues.
    pub waiting_ns: Option<u64>,
    /// Capacity at the IP layer, bit/s: value, lower and upper end.
    pub capacity: Option<(u64, u64, u64)>,
    /// What that claims; `None` while there is none.
    pub verdict: Option<BoundKind>,
    /// What other traffic leaves of it, bit/s.
    pub available: Option<u64>,
    /// The slowest link.
    pub narrow: bool,
    /// The link with the least left.
    pub tight: bool,
    /// Answers at once, and the time after which there is one more.
    pub limited: Option<(u64, u64)>,
    /// Why this might mislead.
    pub doubts: Vec<String>,
    /// Least round trip by length: IP octets and ns.
    pub by_size: Vec<(u16, u64)>,
}

/// An interval of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchPoint {
    /// Its end, since the watch began.
    pub at_ns: u64,
    /// Its length.
    pub interval_ns: u64,
    /// What was available, bit/s: value, lower and upper end.
    pub available: Option<(u64, u64, u64)>,
    /// IP octets sent in it.
    pub octets: u64,
    /// Packets sent in it.
    pub packets: u64,
    /// The tight link's rate, where the method knows it, bit/s.
    pub capacity_bps: Option<u64>,
    /// Why this might mislead.
    pub doubts: Vec<String>,
}

impl StageEnded {
    /// Of an entry of the report.
    pub fn of(entry: &Entry) -> Self {
        let estimate = entry.outcome.estimate();
        let range = estimate.map(Estimate::in_unit);
        let reason = match &entry.outcome {
            Outcome::Inconclusive { reason, .. } => Some(reason.brief().to_owned()),
            Outcome::Estimated(_) => None,
        };
        Self {
            metric: entry.metric,
            direction: entry.direction,
            method: entry.method.to_owned(),
            value: range.map(|range| range.value),
            low: range.map(|range| range.low),
            high: range.map(|range| range.high),
            verdict: entry.outcome.verdict(),
            layer: estimate.and_then(|estimate| estimate.layer),
            limited_by: estimate.map(|estimate| estimate.limited_by),
            reason,
            doubts: entry.outcome.caveats().iter().map(|caveat| caveat.brief().to_owned()).collect(),
            octets: entry.cost.octets,
            packets: entry.cost.packets,
            time_ns: nanos(entry.cost.time),
            peak_bps: entry.cost.peak_bps,
        }
    }
}

impl Timed {
    /// An event at a time; `began` is the time of the first.
    pub fn new(began: Stamp<Sender>, at: Stamp<Sender>, progress: Progress) -> Self {
        Self { at_ns: nanos(at.since(began)), progress }
    }
}

/// Longest pause before a stage: a server's slot is not held meanwhile, its patience is not known.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(600);
