//! One row per metric.

use narrows_probe::Entry;
use narrows_probe::{BoundKind, Caveat, Confidence, Details, Diagnostics, Estimate, Limit, Outcome, Reason};
use narrows_units::{Direction, Layer, Metric, Unit};
use serde::Serialize;

use crate::samples::SamplesRow;

/// A metric's row: the machine contract of `metrics` in `test --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricRow {
    /// Which metric.
    pub metric: Metric,
    /// The value, in `unit`; `null` when inconclusive.
    pub value: Option<u64>,
    /// Lower end of the interval.
    pub low: Option<u64>,
    /// Upper end of the interval.
    pub high: Option<u64>,
    /// What it counts.
    pub unit: Unit,
    /// The layer whose octets are counted; `null` for metrics that count none.
    pub layer: Option<Layer>,
    /// Which way.
    pub direction: Direction,
    /// By which method.
    pub method: String,
    /// IP octets sent for it.
    pub octets: u64,
    /// Time taken for it.
    pub seconds: f64,
    /// What set it, or ended the search; `null` when inconclusive.
    pub limited_by: Option<Limit>,
    /// What it claims.
    pub verdict: BoundKind,
    /// How much stands behind it.
    pub confidence: Option<Confidence>,
    /// Time over which it was averaged, in seconds.
    pub interval_seconds: Option<f64>,
    /// Why it might mislead.
    pub caveats: Vec<Remark>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Remark>,
    /// The truth, only where it is known (scenarios).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<u64>,
    /// The path that was played did not keep time under it, so the truth judges nothing; in JSON
    /// `timing.stages` says so.
    #[serde(skip)]
    pub timing_invalid: bool,
    /// What it rests on.
    pub samples: SamplesRow,
    /// Intermediate results.
    pub evidence: Diagnostics,
    /// What of them commands read.
    #[serde(skip)]
    pub details: Details,
}

/// A caveat or a reason: a machine name and a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Machine name.
    pub id: String,
    /// For people.
    pub text: String,
    /// The same in a few words.
    #[serde(skip)]
    pub brief: &'static str,
}

impl From<&Caveat> for Remark {
    fn from(caveat: &Caveat) -> Self {
        Self { id: caveat.id().to_owned(), text: caveat.to_string(), brief: caveat.brief() }
    }
}

impl From<&Reason> for Remark {
    fn from(reason: &Reason) -> Self {
        let json = serde_json::to_value(reason).unwrap_or_default();
        let id = json.get("id").and_then(serde_json::Value::as_str).unwrap_or("unknown");
        Self { id: id.to_owned(), text: reason.to_string(), brief: reason.brief() }
    }
}

impl MetricRow {
    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// The row of an entry of the main job.
    pub fn new(entry: &Entry) -> Self {
        let estimate = entry.outcome.estimate();
        let range = estimate.map(Estimate::in_unit);
        let (reason, evidence) = match &entry.outcome {
            Outcome::Estimated(estimate) => (None, estimate.diagnostics.clone()),
            Outcome::Inconclusive { reason, diagnostics: evidence, .. } => {
                (Some(Remark::from(reason)), evidence.clone())
            }
        };
        Self {
            metric: entry.metric,
            value: range.map(|range| range.value),
            low: range.map(|range| range.low),
            high: range.map(|range| range.high),
            unit: entry.metric.unit(),
            layer: estimate.and_then(|estimate| estimate.layer),
            direction: entry.direction,
            method: entry.method.to_owned(),
            octets: entry.cost.octets,
            seconds: entry.cost.time.as_secs_f64(),
            limited_by: estimate.map(|estimate| estimate.limited_by),
            verdict: entry.outcome.verdict(),
            confidence: estimate.map(|estimate| estimate.confidence),
            interval_seconds: estimate.and_then(|estimate| estimate.interval).map(|time| time.as_secs_f64()),
            caveats: entry.outcome.caveats().iter().map(Remark::from).collect(),
            reason,
            truth: None,
            timing_invalid: false,
            samples: SamplesRow::new(entry.cost.samples, &entry.outcome.details().samples),
            evidence,
            details: entry.outcome.details().clone(),
        }
    }
}
