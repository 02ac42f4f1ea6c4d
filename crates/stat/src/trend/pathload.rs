//! Pathload's pairwise comparison and pairwise difference tests on the one-way delays of a stream.
//!
//! Faithful to pathload 1.3.2; the papers differ in the divisor and the thresholds (`[SLoPS02]`,
//! `[SLoPS03]`).

use crate::error::{Error, check_at_least};
use crate::order::{Sorted, floor_index};

/// Whether a series of delays rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    /// It rises: the stream's rate exceeds what the path had available.
    Increasing,
    /// It does not.
    NoTrend,
    /// The tests cannot say, or contradict each other.
    Ambiguous,
}

/// What the number of rising steps is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Divisor {
    /// The number of medians G, as pathload's code does; a steady rise of ten medians scores 0.9.
    #[default]
    Medians,
    /// The number of steps between them, G - 1, as the papers do; a steady rise scores 1.
    Steps,
}

/// A statistic above `increasing_above` grades as increasing, below `no_trend_below` as no trend,
/// and in between as ambiguous.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bands {
    /// Lower end (exclusive) of "increasing".
    pub increasing_above: f64,
    /// Upper end (exclusive) of "no trend".
    pub no_trend_below: f64,
}

impl Bands {
    /// Grade of a value of the statistic.
    pub fn grade(&self, value: f64) -> Trend {
        if value > self.increasing_above {
            Trend::Increasing
        } else if value < self.no_trend_below {
            Trend::NoTrend
        } else {
            Trend::Ambiguous
        }
    }

    /// Both ends times `factor`, such as G / (G - 1) when the other [`Divisor`] is used.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self { increasing_above: self.increasing_above * factor, no_trend_below: self.no_trend_below * factor }
    }
}

/// How both statistics are computed and graded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Divisor of the pairwise comparison test.
    pub divisor: Divisor,
    /// Bands of the pairwise comparison test.
    pub pct: Bands,
    /// Bands of the pairwise difference test.
    pub pdt: Bands,
    /// Fewest medians either test works on.
    pub min_medians: usize,
}

impl Thresholds {
    /// pathload 1.3.2: divisor G; 0.55 and 0.40, each with a dead band of 10 %; at least 5 medians.
    pub const PATHLOAD: Self = Self {
        divisor: Divisor::Medians,
        pct: Bands { increasing_above: 0.605, no_trend_below: 0.495 },
        pdt: Bands { increasing_above: 0.44, no_trend_below: 0.36 },
        min_medians: 5,
    };

    /// `[SLoPS03]`: divisor G - 1; 0.66 and 0.54, 0.55 and 0.45. The least number of medians is
    /// pathload's.
    pub const SLOPS03: Self = Self {
        divisor: Divisor::Steps,
        pct: Bands { increasing_above: 0.66, no_trend_below: 0.54 },
        pdt: Bands { increasing_above: 0.55, no_trend_below: 0.45 },
        min_medians: 5,
    };
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::PATHLOAD
    }
}

/// Both tests on one stream, and their verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamTrend {
    /// Pairwise comparison statistic, zero to one.
    pub pct: f64,
    /// Pairwise difference statistic, minus one to one.
    pub pdt: f64,
    /// Grade of `pct` alone.
    pub by_pct: Trend,
    /// Grade of `pdt` alone.
    pub by_pdt: Trend,
    /// The stream's grade: what one test says and the other does not contradict; ambiguous
    /// otherwise.
    pub grade: Trend,
    /// Medians (or bursts) compared.
    pub medians: usize,
}

/// Medians of consecutive groups of `floor(sqrt(n))` values; the last group may be short.
pub fn group_medians(values: &[f64]) -> Result<Vec<f64>, Error> {
    check_at_least(values, 1)?;
    let group = floor_index((values.len() as f64).sqrt());
    values.chunks(group).map(|chunk| Ok(Sorted::from_slice(chunk)?.median())).collect()
}

/// Share of rising steps in a series; `None` for fewer than two values or one that is not finite.
pub fn pct(medians: &[f64], divisor: Divisor) -> Option<f64> {
    check_at_least(medians, 2).ok()?;
    let rises = medians.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let whole = match divisor {
        Divisor::Medians => medians.len(),
        Divisor::Steps => medians.len() - 1,
    };
    Some(rises as f64 / whole as f64)
}

/// Net change over the sum of all changes; zero for a constant series. `None` as for [`pct`].
pub fn pdt(medians: &[f64]) -> Option<f64> {
    check_at_least(medians, 2).ok()?;
    let net = medians[medians.len() - 1] - medians[0];
    let all: f64 = medians.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
    Some(if all > 0.0 { (net / all).clamp(-1.0, 1.0) } else { 0.0 })
}

/// Groups the delays of a stream (any unit, any offset) and grades the medians.
///
/// Fails with [`Error::TooFew`] when fewer than `min_medians` groups come out: pathload discards
/// such a stream.
pub fn stream_trend(delays: &[f64], thresholds: &Thresholds) -> Result<StreamTrend, Error> {
    trend_of_medians(&group_medians(delays)?, thresholds)
}

/// Grades a series as it is, without grouping: for batches already reduced to one delay each.
pub fn trend_of_medians(medians: &[f64], thresholds: &Thresholds) -> Result<StreamTrend, Error> {
    let need = thresholds.min_medians.max(2);
    check_at_least(medians, need)?;
    let too_few = Error::TooFew { have: medians.len(), need };
    let pct = pct(medians, thresholds.divisor).ok_or(too_few)?;
    let pdt = pdt(medians).ok_or(too_few)?;
    let (comparison, difference) = (thresholds.pct.grade(pct), thresholds.pdt.grade(pdt));
    Ok(StreamTrend {
        pct,
        pdt,
        by_pct: comparison,
        by_pdt: difference,
        grade: combine(comparison, difference),
        medians: medians.len(),
    })
}

fn combine(a: Trend, b: Trend) -> Trend {
    match (a, b) {
        (Trend::Ambiguous, grade) | (grade, Trend::Ambiguous) => grade,
        (a, b) if a == b => a,
        _ => Trend::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    fn ramp(n: usize) -> Vec<f64> {
        (0..n).map(|i| i as f64).collect()
    }

    #[test]
    fn hundred_packets_make_ten_groups_of_ten() {
        let medians = group_medians(&ramp(100)).unwrap();
        assert_eq!(medians.len(), 10);
        assert_close(medians[0], 4.5, 0.0);
        assert_close(medians[9], 94.5, 0.0);
    }

    #[test]
    fn the_last_group_may_be_short() {
        // floor(sqrt 11) = 3: groups 0-2, 3-5, 6-8, 9-10.
        assert_eq!(group_medians(&ramp(11)).unwrap(), vec![1.0, 4.0, 7.0, 9.5]);
    }

    #[test]
    fn steady_rise() {
        let trend = stream_trend(&ramp(100), &Thresholds::PATHLOAD).unwrap();
        assert_close(trend.pct, 0.9, 1e-12);
        assert_close(trend.pdt, 1.0, 1e-12);
        assert_eq!(trend.grade, Trend::Increasing);
        let paper = stream_trend(&ramp(100), &Thresholds::SLOPS03).unwrap();
        assert_close(paper.pct, 1.0, 1e-12);
        assert_eq!(paper.grade, Trend::Increasing);
    }

    #[test]
    fn steady_fall_is_no_trend() {
        let mut delays = ramp(100);
        delays.reverse();
        let trend = stream_trend(&delays, &Thresholds::PATHLOAD).unwrap();
        assert_close(trend.pct, 0.0, 0.0);
        assert_close(trend.pdt, -1.0, 1e-12);
        assert_eq!(trend.grade, Trend::NoTrend);
    }

    #[test]
    fn equal_delays_are_no_trend() {
        let trend = stream_trend(&[5.0; 100], &Thresholds::PATHLOAD).unwrap();
        assert_close(trend.pdt, 0.0, 0.0);
        assert_eq!(trend.grade, Trend::NoTrend);
    }

    #[test]
    fn statistics_by_hand() {
        // Steps +3 -1 +2 0 +1: three rises of five, net 5 over 7.
        let medians = [0.0, 3.0, 2.0, 4.0, 4.0, 5.0];
        assert_close(pct(&medians, Divisor::Medians).unwrap(), 0.5, 1e-12);
        assert_close(pct(&medians, Divisor::Steps).unwrap(), 0.6, 1e-12);
        assert_close(pdt(&medians).unwrap(), 5.0 / 7.0, 1e-12);
        // 0.5 lies in the dead band of the first test, the second says rise: the stream rises.
        assert_eq!(trend_of_medians(&medians, &Thresholds::PATHLOAD).unwrap().grade, Trend::Increasing);
    }

    #[test]
    fn contradiction_is_ambiguous() {
        // Six small falls and one jump: net 94 over 106 but one rise in eight.
        let medians = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0, 100.0];
        let trend = trend_of_medians(&medians, &Thresholds::PATHLOAD).unwrap();
        assert_eq!((trend.by_pct, trend.by_pdt), (Trend::NoTrend, Trend::Increasing));
        assert_eq!(trend.grade, Trend::Ambiguous);
    }

    #[test]
    fn every_pair_of_grades() {
        use Trend::{Ambiguous, Increasing, NoTrend};
        let table = [
            (Increasing, Increasing, Increasing),
            (Increasing, Ambiguous, Increasing),
            (NoTrend, NoTrend, NoTrend),
            (NoTrend, Ambiguous, NoTrend),
            (Increasing, NoTrend, Ambiguous),
            (Ambiguous, Ambiguous, Ambiguous),
        ];
        for (a, b, want) in table {
            assert_eq!((combine(a, b), combine(b, a)), (want, want), "{a:?} {b:?}");
        }
    }

    #[test]
    fn bands_exclude_their_ends() {
        let bands = Thresholds::PATHLOAD.pct;
        assert_eq!(bands.grade(0.605), Trend::Ambiguous);
        assert_eq!(bands.grade(0.495), Trend::Ambiguous);
        assert_eq!(bands.grade(0.606), Trend::Increasing);
        assert_eq!(bands.grade(0.494), Trend::NoTrend);
        assert_close(bands.scaled(10.0 / 9.0).no_trend_below, 0.55, 1e-12);
    }

    #[test]
    fn short_and_broken_streams() {
        // 15 delays make 5 groups of 3; 14 make 5 too (the last of two), 4 make 2.
        assert!(stream_trend(&ramp(15), &Thresholds::PATHLOAD).is_ok());
        assert_eq!(stream_trend(&ramp(4), &Thresholds::PATHLOAD), Err(Error::TooFew { have: 2, need: 5 }));
        assert_eq!(stream_trend(&[], &Thresholds::PATHLOAD), Err(Error::TooFew { have: 0, need: 1 }));
        assert_eq!(pct(&[1.0], Divisor::Steps), None);
        assert_eq!(pdt(&[1.0, f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn offset_and_scale_of_the_clock_change_nothing(delays in vec(0..1_000_000_i32, 25..150), offset in -1_000_000..1_000_000_i32) {
            // Whole numbers, so that shifting is exact.
            let plain: Vec<f64> = delays.iter().map(|d| f64::from(*d)).collect();
            let moved: Vec<f64> = plain.iter().map(|d| (d + f64::from(offset)) * 2.0).collect();
            prop_assert_eq!(stream_trend(&plain, &Thresholds::PATHLOAD), stream_trend(&moved, &Thresholds::PATHLOAD));
        }

        #[test]
        fn statistics_keep_their_ranges(medians in vec(-1e6..1e6_f64, 2..40)) {
            for divisor in [Divisor::Medians, Divisor::Steps] {
                let pct = pct(&medians, divisor).unwrap();
                prop_assert!((0.0..=1.0).contains(&pct));
            }
            let reversed: Vec<f64> = medians.iter().rev().copied().collect();
            assert_close(pdt(&medians).unwrap(), -pdt(&reversed).unwrap(), 1e-9);
        }

        #[test]
        fn any_bits_never_panic(values in vec(odd_float(), 0..40)) {
            if let Ok(trend) = stream_trend(&values, &Thresholds::PATHLOAD) {
                prop_assert!((-1.0..=1.0).contains(&trend.pdt) && (0.0..=1.0).contains(&trend.pct));
            }
        }
    }
}
