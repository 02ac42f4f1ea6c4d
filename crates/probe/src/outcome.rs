//! Never a bare number: which metric, at which layer, over what interval, how sure, and why it
//! might mislead.

mod caveat;
mod counts;
mod details;
mod diagnostics;
mod hops;
mod limiting_factor;
mod ranged;
mod reason;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};
use serde::{Deserialize, Serialize};

pub use caveat::{Caveat, Limit};
pub use counts::SampleCounts;
pub use details::{
    AvailableFinding, BucketFinding, BuffersFinding, BurstFinding, BurstPoint, BurstSample, Details, DirectionDelays,
    Directions, FillBasis, Finding, LossPattern, PathMtuFinding, QueueFinding, RemoteClock, RoundTripFinding,
    ShapeCause, SignatureFinding, StreamsFinding, StreamsLevel, TcpFinding, TwoStreams, UdpFinding, WindowFinding,
};
pub use diagnostics::{Diagnostic, Diagnostics};
pub use hops::{
    AnswerPace, Forecast, HiddenDevice, HopCapacity, HopFinding, PathFinding, PathHops, Predicted, RemoteStamped,
    Responder,
};
pub use limiting_factor::LimitingFactor;
pub use ranged::{BoundKind, Quantity, Ranged};
pub use reason::Reason;

/// How much stands behind an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A bound, or an estimate whose interval may be wrong for a reason that it has no room for.
    Low,
    /// One method converged.
    Medium,
    /// Two independent lines of evidence agree within 5 %, and no caveat weighs against it.
    High,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Of what.
    pub metric: Metric,
    /// The layer whose octets are counted; `None` for metrics that count none.
    pub layer: Option<Layer>,
    /// In the metric's unit.
    #[serde(flatten)]
    range: Ranged<u64>,
    /// How much stands behind it.
    pub confidence: Confidence,
    /// The time over which the quantity was averaged (available bandwidth is nothing without it).
    pub interval: Option<Duration>,
    /// What ended the search or set the value.
    pub limited_by: Limit,
    /// Why it might mislead.
    pub caveats: Vec<Caveat>,
    /// What else was found, typed.
    #[serde(default)]
    pub details: Details,
    /// The intermediate results from which a reader can recompute it, for people.
    #[serde(rename = "evidence")]
    pub diagnostics: Diagnostics,
    /// Other quantities that fell out of the same observations.
    pub also: Vec<Estimate>,
}

impl Estimate {
    /// A rate at the IP layer, limited by the path, of medium confidence. `low` and `high` are put
    /// in order around `value`.
    pub fn ip_rate(metric: Metric, value: BitRate, low: BitRate, high: BitRate) -> Self {
        Self::new(metric, Some(Layer::Ip), Ranged::new(value, low, high))
    }

    /// Any quantity of the metric's unit.
    pub fn new<T: Quantity>(metric: Metric, layer: Option<Layer>, range: Ranged<T>) -> Self {
        debug_assert!(metric.unit() == T::UNIT, "{metric} is not in {:?}", T::UNIT);
        Self {
            metric,
            layer,
            range: range.map(T::number),
            confidence: Confidence::Medium,
            interval: None,
            limited_by: Limit::Path,
            caveats: Vec::new(),
            details: Details::default(),
            diagnostics: Diagnostics::default(),
            also: Vec::new(),
        }
    }

    /// The value, its interval and its claim; `None` if the metric has another unit.
    pub fn ranged<T: Quantity>(&self) -> Option<Ranged<T>> {
        (self.metric.unit() == T::UNIT).then(|| self.range.map(T::from_number))
    }

    /// The same of a rate.
    pub fn rate(&self) -> Option<Ranged<BitRate>> {
        self.ranged()
    }

    /// The same as whole numbers of the metric's unit: for documents, which name the unit beside
    /// them, and for code that compares answers of any metric.
    pub fn in_unit(&self) -> Ranged<u64> {
        self.range
    }

    /// What the number claims.
    pub fn verdict(&self) -> BoundKind {
        self.range.verdict
    }

    /// Changes the value, its interval or its claim. Nothing happens if the metric has another
    /// unit.
    pub fn adjust<T: Quantity>(&mut self, change: impl FnOnce(&mut Ranged<T>)) {
        debug_assert!(self.metric.unit() == T::UNIT, "{} is not in {:?}", self.metric, T::UNIT);
        if let Some(mut range) = self.ranged() {
            change(&mut range);
            self.range = range.map(T::number);
        }
    }

    /// The same number as a bound: the truth is at least this, and `limit` kept the method from
    /// seeing more.
    #[must_use]
    pub fn at_least(mut self, limit: Limit) -> Self {
        self.range = self.range.at_least();
        self.confidence = Confidence::Low;
        self.limited_by = limit;
        self
    }

    /// The same number as a bound: the truth is at most this.
    #[must_use]
    pub fn at_most(mut self) -> Self {
        self.range = self.range.at_most();
        self.confidence = Confidence::Low;
        self
    }

    /// With one more caveat, unless it is there already.
    #[must_use]
    pub fn caveat(mut self, caveat: Caveat) -> Self {
        if !self.caveats.contains(&caveat) {
            self.caveats.push(caveat);
        }
        self
    }

    /// The same as an answer for one hop, counted from 1 at the sender's own link. Methods that
    /// measure each hop put such estimates into [`Estimate::also`] of the path's answer.
    #[must_use]
    pub fn at_hop(mut self, hop: u16) -> Self {
        self.details.hop = Some(hop);
        self.with("hop", u32::from(hop))
    }

    /// The hop that it is an answer for; `None`: the path.
    pub fn hop(&self) -> Option<u16> {
        self.details.hop.filter(|&hop| hop > 0)
    }

    /// With what the method found.
    #[must_use]
    pub fn found(mut self, finding: Finding) -> Self {
        self.details.finding = finding;
        self
    }

    /// With what the method made of its samples.
    #[must_use]
    pub fn counted(mut self, samples: SampleCounts) -> Self {
        samples.tell(&mut self.diagnostics);
        *self.details.samples = samples;
        self
    }

    /// With one more intermediate result.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Diagnostic>) -> Self {
        self.diagnostics.insert(name, value);
        self
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With a number.
    Estimated(Box<Estimate>),
    /// Without one.
    Inconclusive {
        /// Why.
        reason: Reason,
        /// What else was seen.
        caveats: Vec<Caveat>,
        /// The same, typed.
        #[serde(default)]
        details: Details,
        /// The intermediate results.
        #[serde(rename = "evidence")]
        diagnostics: Diagnostics,
    },
}

impl Outcome {
    /// No number, for this reason.
    pub fn inconclusive(reason: Reason) -> Self {
        Self::Inconclusive {
            reason,
            caveats: Vec::new(),
            details: Details::default(),
            diagnostics: Diagnostics::default(),
        }
    }

    /// With what the method made of its samples.
    #[must_use]
    pub fn counted(mut self, samples: SampleCounts) -> Self {
        let (details, diagnostics) = match &mut self {
            Self::Estimated(estimate) => (&mut estimate.details, &mut estimate.diagnostics),
            Self::Inconclusive { details, diagnostics, .. } => (details, diagnostics),
        };
        samples.tell(diagnostics);
        *details.samples = samples;
        self
    }

    /// What was found beside a number, or instead of one.
    pub fn details(&self) -> &Details {
        match self {
            Self::Estimated(estimate) => &estimate.details,
            Self::Inconclusive { details, .. } => details,
        }
    }

    /// The estimate, if there is one.
    pub fn estimate(&self) -> Option<&Estimate> {
        match self {
            Self::Estimated(estimate) => Some(estimate),
            Self::Inconclusive { .. } => None,
        }
    }

    /// What it claims.
    pub fn verdict(&self) -> BoundKind {
        self.estimate().map_or(BoundKind::Inconclusive, Estimate::verdict)
    }

    /// Why it might mislead.
    pub fn caveats(&self) -> &[Caveat] {
        match self {
            Self::Estimated(estimate) => &estimate.caveats,
            Self::Inconclusive { caveats, .. } => caveats,
        }
    }
}

impl From<Estimate> for Outcome {
    fn from(estimate: Estimate) -> Self {
        Self::Estimated(Box::new(estimate))
    }
}
