//! The result document of `simulate`.

use narrows_probe::{BoundKind, Confidence, Outcome};
use serde::{Deserialize, Serialize};

use crate::rows::Remark;
use crate::samples::SamplesRow;
use crate::schema;
use crate::tracking::Tracking;

/// Many runs of one method over one scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulationDocument {
    /// Name and version of the schema that this document follows.
    pub schema: &'static str,
    /// The scenario's name.
    pub scenario: String,
    /// The method.
    pub method: String,
    /// Seed of the first run; run *k* has this plus *k*.
    pub seed: u64,
    /// Which metric is judged.
    pub metric: narrows_units::Metric,
    /// One row per run.
    pub runs: Vec<RunRow>,
    /// Over all runs.
    pub summary: Summary,
}

/// What a run's truth is derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruthBasis {
    /// The scenario's fields: rates in the long run.
    #[default]
    Scenario,
    /// What really crossed the links in the time that the estimate holds for, in the same world
    /// without probes.
    Realised,
    /// What crossed the links while the method ran, as it was counted.
    Counted,
}

impl TruthBasis {
    /// The usual one.
    pub const fn is_scenario(&self) -> bool {
        matches!(self, Self::Scenario)
    }
}

/// One run. Values of metrics that are no rates stand in the same fields, in the metric's own unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    /// Its seed.
    pub seed: u64,
    /// The truth over the run's own time; `null` where there is none.
    pub truth_bps: Option<u64>,
    /// What it is derived from; what is not said is [`TruthBasis::Scenario`].
    #[serde(skip_serializing_if = "TruthBasis::is_scenario")]
    pub truth_basis: TruthBasis,
    /// Where that is what really happened: what the traffic's long-run rates say instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_run_truth_bps: Option<u64>,
    /// Where it was counted while the method ran: its standard deviation over 10 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth_deviation_bps: Option<u64>,
    /// The value; `null` when inconclusive.
    pub value_bps: Option<u64>,
    /// Lower end of the interval.
    pub low_bps: Option<u64>,
    /// Upper end of the interval.
    pub high_bps: Option<u64>,
    /// What it claims.
    pub verdict: BoundKind,
    /// How much stands behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// IP octets sent.
    pub octets: u64,
    /// Packets sent.
    pub packets: u64,
    /// Simulated time.
    pub seconds: f64,
    /// Highest IP-layer rate imposed over 10 ms ([`narrows_probe::Cost::peak_10ms_bps`]).
    pub peak_rate_bps: u64,
    /// What it rests on.
    pub samples: SamplesRow,
    /// Why it might mislead.
    pub caveats: Vec<Remark>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Remark>,
    /// How it followed the truth on its way, of methods that tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracking: Option<Tracking>,
}

/// Over all runs. Errors are relative to the narrow link's capacity (for metrics that are no rates:
/// to the truth). Where there are no runs, there are no numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Summary {
    /// How many.
    pub runs: usize,
    /// Median truth.
    pub truth_bps: Option<f64>,
    /// Median value.
    pub median_value_bps: Option<f64>,
    /// Median signed error.
    pub median_error_ratio: Option<f64>,
    /// Bias: mean signed error.
    pub mean_error_ratio: Option<f64>,
    /// Spread: 90th less 10th percentile of the signed error.
    pub error_spread_ratio: Option<f64>,
    /// 90th percentile of the absolute error.
    pub p90_abs_error_ratio: Option<f64>,
    /// 95th percentile of the absolute error.
    pub p95_abs_error_ratio: Option<f64>,
    /// Share without a number.
    pub inconclusive_ratio: Option<f64>,
    /// Share of *all* runs whose interval misses the truth by over a tenth of the scale.
    pub wrong_confident_ratio: Option<f64>,
    /// Share of the runs with a number whose interval holds the truth.
    pub coverage_ratio: Option<f64>,
    /// How tight lower bounds are: their median share of the truth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_lower_bound_ratio: Option<f64>,
    /// The smallest share of the truth among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_lower_bound_ratio: Option<f64>,
    /// Median IP octets sent.
    pub median_octets: Option<f64>,
    /// Median packets sent.
    pub median_packets: Option<f64>,
    /// Median time.
    pub median_seconds: Option<f64>,
    /// Highest IP-layer rate that any of the runs imposed, over 10 ms
    /// ([`narrows_probe::Cost::peak_10ms_bps`]).
    pub peak_rate_bps: Option<u64>,
}

/// An estimate whose interval misses the truth by more than this share of the scale is *wrong and
/// confident*.
const WRONG: f64 = 0.1;

impl RunRow {
    /// The row of one run.
    pub fn new(seed: u64, truth: Option<u64>, measured: &narrows_probe::Measured) -> Self {
        let range = measured.outcome.estimate().map(narrows_probe::Estimate::in_unit);
        let reason = match &measured.outcome {
            Outcome::Inconclusive { reason, .. } => Some(Remark::from(reason)),
            Outcome::Estimated(_) => None,
        };
        Self {
            seed,
            truth_bps: truth,
            truth_basis: TruthBasis::Scenario,
            long_run_truth_bps: None,
            truth_deviation_bps: None,
            value_bps: range.map(|range| range.value),
            low_bps: range.map(|range| range.low),
            high_bps: range.map(|range| range.high),
            verdict: measured.outcome.verdict(),
            confidence: measured.outcome.estimate().map(|estimate| estimate.confidence),
            octets: measured.cost.octets,
            packets: measured.cost.packets,
            seconds: measured.cost.time.as_secs_f64(),
            peak_rate_bps: measured.cost.peak_10ms_bps,
            samples: SamplesRow::new(measured.cost.samples, &measured.outcome.details().samples),
            caveats: measured.outcome.caveats().iter().map(Remark::from).collect(),
            reason,
            tracking: None,
        }
    }

    /// With what its truth is derived from, and the long-run one beside it.
    #[must_use]
    pub fn truth_from(self, truth_basis: TruthBasis, long_run_truth_bps: Option<u64>) -> Self {
        Self { truth_basis, long_run_truth_bps, ..self }
    }

    /// With the standard deviation of a counted truth over 10 ms.
    #[must_use]
    pub fn truth_deviation(self, truth_deviation_bps: Option<u64>) -> Self {
        Self { truth_deviation_bps, ..self }
    }

    /// With the account of how it followed the truth.
    #[must_use]
    pub fn tracking(self, tracking: Option<Tracking>) -> Self {
        Self { tracking, ..self }
    }

    /// By how much the claim misses the truth: zero if it holds it. A bound misses only on its own
    /// side.
    fn miss(&self) -> Option<f64> {
        let (truth, low, high) = (self.truth_bps? as f64, self.low_bps? as f64, self.high_bps? as f64);
        Some(match self.verdict {
            BoundKind::Estimated => (low - truth).max(truth - high).max(0.0),
            BoundKind::LowerBound => (low - truth).max(0.0),
            BoundKind::UpperBound => (truth - high).max(0.0),
            BoundKind::Inconclusive => return None,
        })
    }

    /// Of a bound: whether the truth is on its side.
    pub fn bound_holds(&self) -> Option<bool> {
        let is_bound = matches!(self.verdict, BoundKind::LowerBound | BoundKind::UpperBound);
        self.miss().filter(|_| is_bound).map(|miss| miss <= 0.0)
    }

    /// Of a lower bound: its share of the truth.
    fn lower_bound_ratio(&self) -> Option<f64> {
        let truth = self.truth_bps.filter(|&truth| truth > 0)?;
        (self.verdict == BoundKind::LowerBound).then_some(self.value_bps? as f64 / truth as f64)
    }

    /// A number that is claimed to be the value (not a bound), with its truth.
    fn error(&self) -> Option<f64> {
        if self.verdict != BoundKind::Estimated {
            return None;
        }
        Some(self.value_bps? as f64 - self.truth_bps? as f64)
    }
}

impl Summary {
    /// Over `rows`, with errors relative to `scale` (to each row's truth if `None`).
    pub fn new(rows: &[RunRow], scale: Option<f64>) -> Self {
        let scale_of = |row: &RunRow| scale.or(row.truth_bps.map(|truth| truth as f64)).filter(|&scale| scale > 0.0);
        let errors: Vec<f64> = rows.iter().filter_map(|row| Some(row.error()? / scale_of(row)?)).collect();
        let absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        let misses: Vec<f64> = rows.iter().filter_map(|row| Some(row.miss()? / scale_of(row)?)).collect();
        let bounds: Vec<f64> = rows.iter().filter_map(RunRow::lower_bound_ratio).collect();
        let share = |count: usize| (!rows.is_empty()).then(|| count as f64 / rows.len() as f64);
        let covered = misses.iter().filter(|&&miss| miss <= 0.0).count();
        let spread = |errors: &[f64]| Some(narrows_stat::quantile(errors, 0.9)? - narrows_stat::quantile(errors, 0.1)?);
        Self {
            runs: rows.len(),
            truth_bps: median(rows.iter().filter_map(|row| row.truth_bps.map(|v| v as f64))),
            median_value_bps: median(rows.iter().filter_map(|row| row.value_bps.map(|v| v as f64))),
            median_error_ratio: narrows_stat::median(&errors),
            mean_error_ratio: narrows_stat::mean(&errors),
            error_spread_ratio: spread(&errors),
            p90_abs_error_ratio: narrows_stat::quantile(&absolute, 0.9),
            p95_abs_error_ratio: narrows_stat::quantile(&absolute, 0.95),
            inconclusive_ratio: share(rows.iter().filter(|row| row.verdict == BoundKind::Inconclusive).count()),
            wrong_confident_ratio: share(misses.iter().filter(|&&miss| miss > WRONG).count()),
            coverage_ratio: (!misses.is_empty()).then(|| covered as f64 / misses.len() as f64),
            median_lower_bound_ratio: narrows_stat::median(&bounds),
            worst_lower_bound_ratio: bounds.iter().copied().reduce(f64::min),
            median_octets: median(rows.iter().map(|row| row.octets as f64)),
            median_packets: median(rows.iter().map(|row| row.packets as f64)),
            median_seconds: median(rows.iter().map(|row| row.seconds)),
            peak_rate_bps: rows.iter().map(|row| row.peak_rate_bps).max(),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    narrows_stat::median(&values.collect::<Vec<_>>())
}

impl SimulationDocument {
    /// The document of these runs.
    pub fn new(
        scenario: String,
        method: String,
        metric: narrows_units::Metric,
        seed: u64,
        runs: Vec<RunRow>,
        scale: Option<f64>,
    ) -> Self {
        let summary = Summary::new(&runs, scale);
        Self { schema: schema::SIMULATION_NAME, scenario, method, seed, metric, runs, summary }
    }

    /// Median of value over truth, over the runs that claim a value.
    pub fn median_ratio(&self) -> Option<f64> {
        let ratios = self.runs.iter().filter(|run| run.verdict == BoundKind::Estimated).filter_map(|run| {
            let truth = run.truth_bps.filter(|&truth| truth > 0)?;
            Some(run.value_bps? as f64 / truth as f64)
        });
        median(ratios)
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: BoundKind, value: Option<(u64, u64, u64)>) -> RunRow {
        RunRow {
            seed: 1,
            truth_bps: Some(100),
            truth_basis: TruthBasis::Realised,
            long_run_truth_bps: Some(101),
            truth_deviation_bps: Some(7),
            value_bps: value.map(|v| v.1),
            low_bps: value.map(|v| v.0),
            high_bps: value.map(|v| v.2),
            verdict,
            confidence: value.map(|_| Confidence::Medium),
            octets: 10,
            packets: 1,
            seconds: 1.0,
            samples: SamplesRow::new(narrows_probe::Samples::default(), &narrows_probe::SampleCounts::default()),
            peak_rate_bps: 1_200,
            caveats: Vec::new(),
            reason: None,
            tracking: None,
        }
    }

    /// By hand: errors −10, 0, +30 of a scale of 200; one interval misses by 25 of 200 (wrong), one
    /// lower bound holds.
    #[test]
    fn shares_are_of_what_they_say() {
        let rows = [
            row(BoundKind::Estimated, Some((80, 90, 110))),
            row(BoundKind::Estimated, Some((90, 100, 110))),
            row(BoundKind::Estimated, Some((125, 130, 140))),
            row(BoundKind::LowerBound, Some((60, 60, 60))),
            row(BoundKind::Inconclusive, None),
        ];
        let summary = Summary::new(&rows, Some(200.0));
        assert_eq!(summary.median_error_ratio, Some(0.0));
        assert!((summary.p90_abs_error_ratio.unwrap() - 0.13).abs() < 1e-12);
        assert!((summary.mean_error_ratio.unwrap() - 20.0 / 3.0 / 200.0).abs() < 1e-12);
        // Type 7 of -0.05, 0, 0.15 at ranks 0.2 and 1.8: 0.12 less -0.04.
        assert!((summary.error_spread_ratio.unwrap() - 0.16).abs() < 1e-12);
        assert_eq!((summary.inconclusive_ratio, summary.wrong_confident_ratio), (Some(0.2), Some(0.2)));
        assert_eq!((summary.median_packets, summary.peak_rate_bps), (Some(1.0), Some(1_200)));
        assert_eq!(summary.coverage_ratio, Some(0.75));
        let bounds = [row(BoundKind::LowerBound, Some((20, 20, 20))), row(BoundKind::UpperBound, Some((10, 10, 10)))];
        let summary = Summary::new(&[&rows[..], &bounds].concat(), Some(200.0));
        let tightness = (summary.median_lower_bound_ratio, summary.worst_lower_bound_ratio);
        assert_eq!(tightness, (Some(0.4), Some(0.2)), "60 and 20 of 100");
    }

    #[test]
    fn json_follows_the_shipped_schema() {
        let rows = vec![row(BoundKind::Estimated, Some((80, 90, 110))), row(BoundKind::Inconclusive, None)];
        let metric = narrows_units::Metric::IpCapacity;
        let document = SimulationDocument::new("s".to_owned(), "m".to_owned(), metric, 1, rows, Some(200.0));
        let schema: serde_json::Value = serde_json::from_str(schema::SIMULATION).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&document.json()).unwrap();
        assert!(
            validator.is_valid(&json),
            "{:?}",
            validator.iter_errors(&json).map(|e| e.to_string()).collect::<Vec<_>>()
        );
        json["summary"]["runs"] = "two".into();
        assert!(!validator.is_valid(&json), "the schema must be able to refuse");
    }

    #[test]
    fn no_runs_are_no_ratios() {
        let summary = Summary::new(&[], None);
        assert_eq!(summary, Summary::default(),);
    }
}
