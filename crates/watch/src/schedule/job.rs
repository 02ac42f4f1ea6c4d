//! A piece of measuring, with what it may cost.

use std::time::Duration;

use narrows_units::{BitRate, Octets};
use serde::{Deserialize, Serialize};

/// A target, by its row in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TargetId(u32);

impl TargetId {
    /// From the row's number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The row's number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A job that was handed out, unique while its planner lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(u64);

impl JobId {
    pub(super) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, for logs.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// Trace the route: three probes per hop of one flow.
    Route,
    /// Eight trains that follow the available rate.
    Slice,
    /// The capacity.
    Capacity,
    /// Where on the path it is narrow.
    Hops,
    /// The full test of the night.
    Test,
}

impl JobKind {
    /// Whether it loads the path, so that two of them would disturb each other.
    pub const fn loads(self) -> bool {
        !matches!(self, Self::Route)
    }

    /// Whether it needs our server.
    pub const fn needs_server(self) -> bool {
        matches!(self, Self::Slice | Self::Test)
    }

    /// The machine name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Slice => "slice",
            Self::Capacity => "capacity",
            Self::Hops => "hops",
            Self::Test => "test",
        }
    }

    /// Octets before any such job was settled: each grows with the capacity.
    pub(super) fn first_forecast(self, capacity: BitRate) -> Octets {
        let per_100_mbps = capacity.as_f64() / 1e8;
        let octets = match self {
            Self::Route => 7000.0,
            // What `slope` takes, and never more than slices every 90 s may: docs/design/watch.md.
            Self::Slice => (1.3e6 * per_100_mbps.sqrt().sqrt()).min(3.4e6 * per_100_mbps).max(12e3),
            Self::Capacity => (1e6 * per_100_mbps).clamp(60e3, 1e6),
            Self::Hops => (2e6 * per_100_mbps).clamp(100e3, 5e6),
            Self::Test => 70e6 * per_100_mbps,
        };
        Octets::new(narrows_units::rounded(octets))
    }
}

/// Which share of the day pays for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Regular routes, beside the pulses: paid before the day is shared out.
    Base,
    /// Its time has come.
    Cadence,
    /// Something changed: evidence for its cause.
    Evidence,
    /// The night's work.
    Night,
    /// Somebody asked for it: paid from the share for evidence.
    Asked,
}

impl Why {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Base, Self::Cadence, Self::Evidence, Self::Night, Self::Asked];

    /// The machine name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Cadence => "cadence",
            Self::Evidence => "evidence",
            Self::Night => "night",
            Self::Asked => "asked",
        }
    }
}

/// Work to be started now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// To report its end with.
    pub id: JobId,
    /// Towards whom.
    pub target: TargetId,
    /// What to do.
    pub kind: JobKind,
    /// What for.
    pub why: Why,
    /// It sends no more than this.
    pub octets: Octets,
    /// The mean rate over any second stays below this.
    pub over_second: BitRate,
    /// It ends within this time.
    pub time: Duration,
}

impl Job {
    /// A job that took longer than this hung. Others may have begun beside it.
    pub fn longest(&self) -> Duration {
        2 * self.time
    }
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobEnd {
    /// Octets that left; `None` if nobody knows, which counts as all that were booked.
    pub octets: Option<Octets>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It measured.
    Done,
    /// It ran to its end and has no answer.
    Inconclusive,
    /// It did not run as it should: the machine slept, or this host could not measure.
    Void,
    /// Somebody else has the link's lock. Nothing was sent.
    LinkBusy,
    /// The server had no slot within five seconds.
    ServerBusy,
    /// The server refused.
    Refused,
    /// The server did not answer.
    ServerGone,
}
