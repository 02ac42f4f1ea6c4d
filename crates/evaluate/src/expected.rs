//! Whether many runs are as a scenario expects: what every gate compares.
//!
//! Coverage is judged beside what the scenario states. An interval is meant to hold the truth in
//! [`NOMINAL`] of all runs. The number of runs whose interval does so is binomial if that is true.
//!
//! - *Too seldom*: so few or fewer have a probability below [`UNLIKELY`]. The row fails. The same
//!   is asked of its bounds, which are to be on their side of the truth.
//! - *Too often*: intervals of *half* the width, around the same values, would still hold the truth
//!   so often that as many or more have a probability below [`UNLIKELY`]; half of the intervals are
//!   wider than [`NARROW`] of the truth; and the values scatter from seed to seed. The row fails,
//!   because it says less than it knows.
//!
//! The rule for too many is the weaker one for a reason. An interval also allows for what is the
//! same in every seed of a row: a clock's frequency error, the tick of stamps, framing, the steps
//! of a search. A row where the path has none of it is covered every time, and rightly so. Values
//! that are the same for every seed are one experiment and not a hundred: the error is zero by
//! construction, and 100 of 100 say nothing against the interval. Where values scatter, a factor of
//! two in width is more than those reasons explain. 100 runs can fail by it; of 20 runs even 20 of
//! 20 have a probability of 12 %, so the short sweep sees too few only.
//!
//! A row that the scenario calls exact has one run. Its interval must hold the truth.

use narrows_probe::BoundKind;
use narrows_report::{RunRow, SimulationDocument};
use narrows_scenario::{BoundScale, BoundSide, Expectation, Expected, ExpectedBound, MedianOf};
use narrows_stat::binomial_cdf;
use serde::Serialize;

/// Share of intervals that are meant to hold the truth.
pub const NOMINAL: f64 = 0.9;

/// A count with a smaller probability than this is no chance.
pub const UNLIKELY: f64 = 0.001;

/// No interval is too wide that is at most this share of the truth. Ours.
pub const NARROW: f64 = 0.05;

/// From so many runs on, an expected range of bounds must fit the bounds.
const MANY: usize = 100;

/// A range of bounds whose low end is below this share of the smallest bound is too wide. Ours.
const FITS: f64 = 0.9;

/// Values whose ratios differ by less than this are the same.
const SAME: f64 = 1e-3;

/// What may be wrong with a row. The names are a promise: the list of known failures has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The median of value over truth, or of their difference, is outside of what is expected, or
    /// there is none.
    MedianRatio,
    /// More runs than allowed are wrong and confident.
    WrongConfident,
    /// More runs than allowed have no number.
    Inconclusive,
    /// More runs than allowed have a bound where a value is expected.
    Bounds,
    /// Fewer runs than expected have a bound in the expected range.
    Bound,
    /// The expected range of bounds is wider than the bounds need.
    BoundRange,
    /// Fewer runs than expected have no number.
    Refused,
    /// The intervals hold the truth too seldom.
    CoverageLow,
    /// The intervals hold the truth too often, for they are more than twice as wide as needed.
    CoverageHigh,
    /// The scenario calls the row exact, and its runs differ.
    NotExact,
}

/// Something that is not as expected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// The share (or median ratio) that was found.
    pub share: f64,
    /// How probable such a count is, of faults that are judged by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
}

/// Whatever in `document` is not as `expectation` says; nothing if the row passes.
pub fn faults(expectation: &Expectation, document: &SimulationDocument) -> Vec<Fault> {
    let runs = document.runs.as_slice();
    let mut faults = match &expectation.expected {
        Expected::Within { of, low, high, wrong_confident, inconclusive, bounds } => {
            let ratio = match of {
                MedianOf::Ratio => document.median_ratio(),
                MedianOf::Error => document.summary.median_error_ratio,
            };
            let fits = ratio.is_some_and(|ratio| (*low..=*high).contains(&ratio));
            let wrong = document.summary.wrong_confident_ratio.unwrap_or(0.0);
            let none = share(runs, |run| run.verdict == BoundKind::Inconclusive);
            let bounded = share(runs, |run| matches!(run.verdict, BoundKind::LowerBound | BoundKind::UpperBound));
            vec![
                fault(!fits, FaultKind::MedianRatio, ratio.unwrap_or(0.0)),
                fault(wrong > *wrong_confident, FaultKind::WrongConfident, wrong),
                fault(none > *inconclusive, FaultKind::Inconclusive, none),
                fault(bounded > *bounds, FaultKind::Bounds, bounded),
            ]
        }
        Expected::Bounded(bound) => bounded(bound, runs),
        Expected::Inconclusive { share: least } => {
            let none = share(runs, |run| run.value_bps.is_none());
            vec![fault(none < *least, FaultKind::Refused, none)]
        }
    };
    faults.push(coverage(runs, expectation.exact));
    let differs = expectation.exact && !all_alike(runs);
    faults.push(fault(differs, FaultKind::NotExact, 0.0));
    faults.into_iter().flatten().collect()
}

fn fault(is_one: bool, kind: FaultKind, share: f64) -> Option<Fault> {
    is_one.then_some(Fault { kind, share, p: None })
}

fn share(runs: &[RunRow], fits: impl Fn(&RunRow) -> bool) -> f64 {
    let count = runs.iter().filter(|run| fits(run)).count();
    if runs.is_empty() { 0.0 } else { count as f64 / runs.len() as f64 }
}

fn bounded(bound: &ExpectedBound, runs: &[RunRow]) -> Vec<Option<Fault>> {
    let kind = match bound.side {
        BoundSide::AtLeast => BoundKind::LowerBound,
        BoundSide::AtMost => BoundKind::UpperBound,
    };
    let claims = |run: &RunRow| {
        let scale = match bound.scale {
            BoundScale::Truth => run.truth_bps.filter(|&truth| truth > 0)? as f64,
            BoundScale::Unit => 1.0,
        };
        let ratio = run.value_bps.filter(|_| run.verdict == kind)? as f64 / scale;
        (bound.low..=bound.high).contains(&ratio).then_some(ratio)
    };
    let none = share(runs, |run| run.value_bps.is_none());
    let fits = share(runs, |run| claims(run).is_some() || run.value_bps.is_none());
    // The end that keeps a loose bound from meaning less and less.
    let ratios: Vec<f64> = runs.iter().filter_map(claims).collect();
    let nearest = match bound.side {
        BoundSide::AtLeast => ratios.iter().copied().reduce(f64::min).map(|least| bound.low / least),
        BoundSide::AtMost => ratios.iter().copied().reduce(f64::max).map(|most| most / bound.high),
    };
    let wide = bound.loose.is_some() && runs.len() >= MANY && nearest.is_some_and(|nearest| nearest < FITS);
    vec![
        fault(fits < bound.share, FaultKind::Bound, fits),
        fault(none > bound.inconclusive, FaultKind::Inconclusive, none),
        fault(wide, FaultKind::BoundRange, nearest.unwrap_or(0.0)),
    ]
}

/// Of the runs that claim a bound, or an interval, whose truth is known: too few that hold it, or
/// too many intervals.
fn coverage(runs: &[RunRow], exact: bool) -> Option<Fault> {
    let bounds: Vec<bool> = runs.iter().filter_map(RunRow::bound_holds).collect();
    let held = bounds.iter().filter(|&&holds| holds).count();
    too_few(held as u64, bounds.len() as u64, exact).or_else(|| interval_coverage(runs, exact))
}

fn too_few(held: u64, trials: u64, exact: bool) -> Option<Fault> {
    let p = binomial_cdf(held, trials, NOMINAL);
    let is_low = trials > 0 && (p < UNLIKELY || exact && held < trials);
    is_low.then(|| Fault { kind: FaultKind::CoverageLow, share: held as f64 / trials as f64, p: Some(p) })
}

fn interval_coverage(runs: &[RunRow], exact: bool) -> Option<Fault> {
    let estimates = || runs.iter().filter(|run| run.verdict == BoundKind::Estimated);
    let reading =
        |run: &RunRow| Some([run.truth_bps? as f64, run.low_bps? as f64, run.value_bps? as f64, run.high_bps? as f64]);
    let all: Vec<[f64; 4]> = estimates().filter_map(reading).collect();
    let count = |fits: &dyn Fn(&[f64; 4]) -> bool| all.iter().filter(|reading| fits(reading)).count() as u64;
    let trials = all.len() as u64;
    let held = count(&|[truth, low, _, high]| (*low..=*high).contains(truth));
    let low = too_few(held, trials, exact);
    if low.is_some() || trials == 0 {
        return low;
    }
    let half = count(&|[truth, low, value, high]| {
        (f64::midpoint(*low, *value)..=f64::midpoint(*value, *high)).contains(truth)
    });
    let many = half.checked_sub(1).map_or(1.0, |less| 1.0 - binomial_cdf(less, trials, NOMINAL));
    let wide = count(&|[truth, low, _, high]| high - low > NARROW * truth);
    let is_high = many < UNLIKELY && 2 * wide > trials && !all_alike(runs);
    is_high.then(|| Fault { kind: FaultKind::CoverageHigh, share: half as f64 / trials as f64, p: Some(many) })
}

/// Same verdicts, and ratios to the truth that differ by less than a thousandth.
fn all_alike(runs: &[RunRow]) -> bool {
    let Some(first) = runs.first() else { return true };
    let ratio =
        |run: &RunRow| Some(run.value_bps? as f64 / run.truth_bps.filter(|&truth| truth > 0).unwrap_or(1) as f64);
    runs.iter().all(|run| {
        let near = match (ratio(first), ratio(run)) {
            (Some(one), Some(other)) => (one - other).abs() <= SAME * one.abs(),
            (one, other) => one == other,
        };
        near && run.verdict == first.verdict
    })
}

#[cfg(test)]
mod tests;
