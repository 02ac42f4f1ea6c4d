//! What runs are worth: errors, coverage, cost, and one number of them all.

use super::grid::{AblationVerdict, Run};

/// What one run gave; errors and widths are shares of the narrow link's capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    error: Option<f64>,
    covers: bool,
    verdict: AblationVerdict,
    /// Width of the interval, and twenty times what it misses the truth by: the interval score for
    /// 90 % of T. Gneiting and A. E. Raftery (2007), which is least in the mean for the interval
    /// that says what is known.
    score: f64,
    octets: f64,
    seconds: f64,
}

/// Two over the share that an interval of 90 % may miss.
const MISSED: f64 = 20.0;

/// No run scores worse: twice what no answer does. A path on which every answer is far off would
/// drown the others.
const WORST: f64 = 2.0;

impl Judged {
    /// `None` where there is no truth.
    pub(super) fn new(run: &Run, capacity_bps: f64) -> Option<Self> {
        let share = |value: Option<f64>| value.map(|value| value / capacity_bps);
        let truth = share(run.truth_bps)?;
        // A bound ends where the path does; who says nothing says that everything is possible.
        let (low, high) = match run.verdict {
            AblationVerdict::Estimated => (share(run.low_bps)?, share(run.high_bps)?),
            AblationVerdict::LowerBound => (share(run.low_bps)?, share(run.low_bps)?.max(1.0)),
            AblationVerdict::UpperBound => (0.0, share(run.high_bps)?),
            AblationVerdict::Inconclusive => (0.0, 1.0),
        };
        let missed = (low - truth).max(truth - high).max(0.0);
        let value = share(run.value_bps).filter(|_| run.verdict == AblationVerdict::Estimated);
        Some(Self {
            error: value.map(|value| value - truth),
            covers: run.verdict != AblationVerdict::Inconclusive && missed == 0.0,
            verdict: run.verdict,
            score: (high - low + MISSED * missed).min(WORST),
            octets: run.octets,
            seconds: run.seconds,
        })
    }
}

/// All runs of the cells, in the cells' order.
pub(super) type Grid = Vec<Vec<Judged>>;

/// What a table says of a grid; shares of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Summary {
    pub(super) median: f64,
    pub(super) p90: f64,
    pub(super) coverage: f64,
    pub(super) bounds: f64,
    pub(super) inconclusive: f64,
    pub(super) megabytes: f64,
    pub(super) seconds: f64,
}

impl Summary {
    pub(super) fn of(grid: &Grid) -> Self {
        let all: Vec<&Judged> = grid.iter().flatten().collect();
        let mut errors: Vec<f64> = all.iter().filter_map(|run| run.error).map(f64::abs).collect();
        errors.sort_by(f64::total_cmp);
        let count = |of: &dyn Fn(&Judged) -> bool| all.iter().filter(|run| of(run)).count() as f64;
        let is = |verdict: AblationVerdict| count(&|run| run.verdict == verdict);
        let whole = all.len() as f64;
        let none = is(AblationVerdict::Inconclusive);
        Self {
            median: quantile(&errors, 0.5),
            p90: quantile(&errors, 0.9),
            coverage: count(&|run| run.covers) / (whole - none).max(1.0),
            bounds: (is(AblationVerdict::LowerBound) + is(AblationVerdict::UpperBound)) / whole,
            inconclusive: none / whole,
            megabytes: mean(all.iter().map(|run| run.octets)) / 1e6,
            seconds: mean(all.iter().map(|run| run.seconds)),
        }
    }
}

/// How much worse a grid is than the shipped one with the same seeds, and the standard error of
/// that: the mean over the cells of the rise of the score, in shares of the capacity. A score that
/// cost more octets counts as what it would be at equal octets: errors of sampling fall with the
/// root of them.
pub(super) fn loss(shipped: &Grid, other: &Grid) -> (f64, f64) {
    let (mut sum, mut variance) = (0.0, 0.0);
    for (shipped, other) in shipped.iter().zip(other) {
        let octets = |runs: &[Judged]| mean(runs.iter().map(|run| run.octets));
        let cost = (octets(other) / octets(shipped)).sqrt();
        let rises: Vec<f64> = shipped.iter().zip(other).map(|(old, new)| new.score * cost - old.score).collect();
        let (middle, count) = (mean(rises.iter().copied()), rises.len() as f64);
        sum += middle;
        variance += rises.iter().map(|rise| (rise - middle).powi(2)).sum::<f64>() / (count - 1.0).max(1.0) / count;
    }
    let cells = shipped.len().max(1) as f64;
    (sum / cells, variance.sqrt() / cells)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { f64::NAN }
}

/// Of sorted values, between neighbours in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (below, above) = (place.floor(), place.ceil());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "places within the list")]
    let at = |place: f64| sorted[(place as usize).min(last)];
    at(below) + (place - below) * (at(above) - at(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(verdict: AblationVerdict, value: f64, low: f64, high: f64) -> Judged {
        let run = Run {
            truth_bps: Some(50.0),
            value_bps: Some(value),
            low_bps: Some(low),
            high_bps: Some(high),
            verdict,
            octets: 1e6,
            seconds: 2.0,
        };
        Judged::new(&run, 100.0).unwrap()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn intervals_score_their_width_and_their_misses() {
        assert!(near(judged(AblationVerdict::Estimated, 52.0, 48.0, 56.0).score, 0.08));
        let missed = judged(AblationVerdict::Estimated, 58.0, 53.0, 60.0);
        assert!(near(missed.score, 0.07 + 20.0 * 0.03) && !missed.covers);
        assert!(near(missed.error.unwrap(), 0.08));
        let bound = judged(AblationVerdict::LowerBound, 40.0, 40.0, 40.0);
        assert!(near(bound.score, 0.6) && bound.covers && bound.error.is_none());
        assert!(near(judged(AblationVerdict::Inconclusive, 0.0, 0.0, 0.0).score, 1.0));
    }

    #[test]
    fn summaries_are_of_all_runs() {
        let grid = vec![
            vec![
                judged(AblationVerdict::Estimated, 51.0, 48.0, 56.0),
                judged(AblationVerdict::Estimated, 47.0, 44.0, 49.0),
            ],
            vec![
                judged(AblationVerdict::LowerBound, 40.0, 40.0, 40.0),
                judged(AblationVerdict::Inconclusive, 0.0, 0.0, 0.0),
            ],
        ];
        let summary = Summary::of(&grid);
        assert!(near(summary.median, 0.02) && near(summary.p90, 0.028));
        assert!(near(summary.coverage, 2.0 / 3.0));
        assert!(near(summary.bounds, 0.25) && near(summary.inconclusive, 0.25));
        assert!(near(summary.megabytes, 1.0) && near(summary.seconds, 2.0));
    }

    /// Intervals of 8 and 12 become 12 and 12 at four times the octets: 24 and 24, so rises of 16
    /// and 12 in one of two cells.
    #[test]
    fn a_loss_is_at_equal_octets() {
        let of = |half: f64, octets: f64| Judged {
            octets,
            ..judged(AblationVerdict::Estimated, 50.0, 50.0 - half, 50.0 + half)
        };
        let still = vec![of(3.0, 1.0), of(3.0, 1.0)];
        let shipped = vec![vec![of(4.0, 1.0), of(6.0, 1.0)], still.clone()];
        let other = vec![vec![of(6.0, 4.0), of(6.0, 4.0)], still];
        let (rise, error) = loss(&shipped, &other);
        // The standard error of one cell's mean is 4/sqrt(2)/sqrt(2) = 2; of two cells' mean, 1.
        assert!(near(rise, 0.07) && near(error, 0.01), "{rise} {error}");
        assert_eq!(loss(&shipped, &shipped), (0.0, 0.0));
    }
}
