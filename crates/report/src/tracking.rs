//! How well a method that tracks a quantity followed the truth, over time.

use serde::{Deserialize, Serialize};

/// One run of a method that tells what it makes of what it has
/// ([`narrows_probe::Estimator::latest`]), against the truth at each time. Errors are relative to
/// the truth at that time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tracking {
    /// How often it told something.
    pub reported: u64,
    /// How often the truth changed, the begin of the run included.
    pub steps: u64,
    /// Of these changes, how many it came to within [`Tracking::TOLERANCE`] of before the next.
    pub followed: u64,
    /// The longest that took; `null` if it did not follow all.
    pub slowest_follow_ns: Option<u64>,
    /// Share of the time for which it told a value (not a bound).
    pub reported_ratio: f64,
    /// Share of the time for which that value was within [`Tracking::TOLERANCE`].
    pub within_ratio: f64,
    /// Median absolute error at the times that are [`Tracking::SETTLED_NS`] after a change or
    /// later.
    pub settled_median_abs_error_ratio: Option<f64>,
    /// 95th percentile of the same.
    pub settled_p95_abs_error_ratio: Option<f64>,
    /// Largest of the same.
    pub settled_max_abs_error_ratio: Option<f64>,
    /// Octets sent, over what the path could have carried.
    pub mean_load_ratio: Option<f64>,
    /// What was told and true in steps of [`Tracking::STEP_NS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<TrackedPoint>,
}

/// One moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackedPoint {
    /// Since the run began.
    pub at_ns: u64,
    /// What was told last and not taken back; `null`: nothing, or a bound.
    pub value_bps: Option<u64>,
    /// What was true.
    pub truth_bps: u64,
}

/// The same over the runs of one row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrackingSummary {
    /// Runs that told something.
    pub runs: usize,
    /// Changes of the truth, of all runs.
    pub steps: u64,
    /// Of these, followed before the next.
    pub followed: u64,
    /// The longest that any change took to be followed; `null` if one was not.
    pub slowest_follow_ns: Option<u64>,
    /// Median share of the time within [`Tracking::TOLERANCE`].
    pub within_ratio: Option<f64>,
    /// Median of the runs' 95th percentiles of the settled error.
    pub settled_p95_abs_error_ratio: Option<f64>,
    /// Largest settled error of all runs.
    pub settled_max_abs_error_ratio: Option<f64>,
    /// Highest mean load of all runs.
    pub mean_load_ratio: Option<f64>,
}

impl TrackingSummary {
    /// Over these runs; `None` without any.
    pub fn new<'a>(runs: impl IntoIterator<Item = &'a Tracking>) -> Option<Self> {
        let runs: Vec<&Tracking> = runs.into_iter().collect();
        if runs.is_empty() {
            return None;
        }
        let some = |of: fn(&Tracking) -> Option<f64>| runs.iter().filter_map(|run| of(run)).collect::<Vec<f64>>();
        let slowest: Option<Vec<u64>> = runs.iter().map(|run| run.slowest_follow_ns).collect();
        Some(Self {
            runs: runs.len(),
            steps: runs.iter().map(|run| run.steps).sum(),
            followed: runs.iter().map(|run| run.followed).sum(),
            slowest_follow_ns: slowest.and_then(|all| all.into_iter().max()),
            within_ratio: narrows_stat::median(&some(|run| Some(run.within_ratio))),
            settled_p95_abs_error_ratio: narrows_stat::median(&some(|run| run.settled_p95_abs_error_ratio)),
            settled_max_abs_error_ratio: narrows_stat::quantile(&some(|run| run.settled_max_abs_error_ratio), 1.0),
            mean_load_ratio: narrows_stat::quantile(&some(|run| run.mean_load_ratio), 1.0),
        })
    }

    /// One sentence.
    pub fn text(&self) -> String {
        let percent =
            |ratio: Option<f64>| ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{:.2} %", 100.0 * ratio));
        let slowest = self
            .slowest_follow_ns
            .map_or_else(|| "not all followed".to_owned(), |ns| format!("the slowest after {:.2} s", ns as f64 * 1e-9));
        format!(
            "followed {} of {} changes, {slowest}; within 2 % for {} of the time; 2 s after a change and later: 95 % within {}, all within {}; mean load {}",
            self.followed,
            self.steps,
            percent(self.within_ratio),
            percent(self.settled_p95_abs_error_ratio),
            percent(self.settled_max_abs_error_ratio),
            percent(self.mean_load_ratio),
        )
    }
}

/// A truth that moves by more than this share between two moments has changed.
const CHANGED: f64 = 0.05;

impl Tracking {
    /// Error up to which a value has followed: the 2 % asked for at `[Kachan17]`'s experiment.
    pub const TOLERANCE: f64 = 0.02;
    /// Time that a change may take to be followed.
    pub const SETTLED_NS: u64 = 2_000_000_000;
    /// Distance of the moments at which value and truth are compared.
    pub const STEP_NS: u64 = 50_000_000;

    /// From what was told and true at moments [`Tracking::STEP_NS`] apart; `None` without moments.
    pub fn new(reported: u64, series: Vec<TrackedPoint>, mean_load_ratio: Option<f64>) -> Option<Self> {
        let first = series.first()?;
        let mut changed_at = first.at_ns;
        let mut truth = first.truth_bps;
        let (mut steps, mut follows) = (1u64, Vec::new());
        let mut waiting = true;
        let (mut valued, mut within) = (0usize, 0usize);
        let mut settled = Vec::new();
        for point in &series {
            if (point.truth_bps as f64 - truth as f64).abs() > CHANGED * truth as f64 {
                (changed_at, truth, waiting) = (point.at_ns, point.truth_bps, true);
                steps += 1;
            }
            let error = point.error();
            valued += usize::from(error.is_some());
            let near = error.is_some_and(|error| error.abs() <= Self::TOLERANCE);
            within += usize::from(near);
            let since = point.at_ns - changed_at;
            if near && waiting {
                follows.push(since);
                waiting = false;
            }
            if since >= Self::SETTLED_NS
                && let Some(error) = error
            {
                settled.push(error.abs());
            }
        }
        let followed = follows.len() as u64;
        let slowest = follows.iter().max().copied();
        Some(Self {
            reported,
            steps,
            followed,
            slowest_follow_ns: slowest.filter(|_| followed == steps),
            reported_ratio: valued as f64 / series.len() as f64,
            within_ratio: within as f64 / series.len() as f64,
            settled_median_abs_error_ratio: narrows_stat::median(&settled),
            settled_p95_abs_error_ratio: narrows_stat::quantile(&settled, 0.95),
            settled_max_abs_error_ratio: narrows_stat::quantile(&settled, 1.0),
            mean_load_ratio,
            series,
        })
    }
}

impl TrackedPoint {
    /// Signed, relative to the truth.
    pub fn error(&self) -> Option<f64> {
        let truth = self.truth_bps as f64;
        self.value_bps.filter(|_| truth > 0.0).map(|value| value as f64 / truth - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[(Option<u64>, u64)]) -> Vec<TrackedPoint> {
        (0u64..)
            .zip(values)
            .map(|(index, &(value_bps, truth_bps))| TrackedPoint { at_ns: index * 1_000_000_000, value_bps, truth_bps })
            .collect()
    }

    /// By hand, a second apart: right after one second, a change, right again after two, then 1 %
    /// and 5 % off.
    #[test]
    fn follows_are_counted_from_the_change() {
        let values = [
            (None, 1000),
            (Some(1010), 1000),
            (Some(1000), 2000),
            (Some(1500), 2000),
            (Some(2000), 2000),
            (Some(2020), 2000),
            (Some(2100), 2000),
        ];
        let tracking = Tracking::new(6, series(&values), None).unwrap();
        assert_eq!((tracking.steps, tracking.followed), (2, 2));
        assert_eq!(tracking.slowest_follow_ns, Some(2_000_000_000));
        assert!((tracking.reported_ratio - 6.0 / 7.0).abs() < 1e-12);
        assert!((tracking.within_ratio - 3.0 / 7.0).abs() < 1e-12);
        let close = |ratio: Option<f64>, expected: f64| (ratio.unwrap() - expected).abs() < 1e-12;
        assert!(close(tracking.settled_max_abs_error_ratio, 0.05));
        assert!(close(tracking.settled_median_abs_error_ratio, 0.01));
    }

    #[test]
    fn what_is_never_followed_has_no_time() {
        let tracking = Tracking::new(1, series(&[(Some(500), 1000), (None, 1000)]), None).unwrap();
        assert_eq!((tracking.followed, tracking.slowest_follow_ns), (0, None));
        assert_eq!(Tracking::new(0, Vec::new(), None), None);
    }
}
