//! The threshold of a chart from the series' own history.
//!
//! The chart runs over past scores. Each climb from zero and back is an excursion; those of
//! independent noise have exponential tails. The rate of excursions above a low mark and their mean
//! excess give the threshold that is crossed as seldom as asked. Heavy tails and memory of the
//! noise lengthen excursions, and so raise the threshold.

/// False alarms per side and second: one per 360 days, so that the two sides of six charts raise
/// one a month.
pub const RATE_PER_SIDE: f64 = 1.0 / (360.0 * 86_400.0);

/// The threshold that a CUSUM with `allowance` over scores like `scores` exceeds `rate` times per
/// value. Never below 8, where so few values alarm, nor above 40.
pub fn threshold(scores: impl Iterator<Item = f64>, allowance: f64, rate: f64) -> f64 {
    let (mut sum, mut peak, mut count) = (0.0_f64, 0.0_f64, 0_u32);
    let mut peaks = Vec::new();
    for z in scores {
        count += 1;
        sum = (sum + z - allowance).max(0.0);
        peak = peak.max(sum);
        if sum <= 0.0 && peak > 0.0 {
            peaks.push(peak);
            peak = 0.0;
        }
    }
    peaks.sort_by(|one, other| other.total_cmp(one));
    let tail = TAIL.min(peaks.len().saturating_sub(1) / 2);
    if tail < LEAST_TAIL {
        return UNKNOWN;
    }
    let mark = peaks[tail];
    let excess = peaks[..tail].iter().map(|peak| peak - mark).sum::<f64>() / tail as f64;
    let per_value = tail as f64 / f64::from(count);
    (mark + excess * (per_value / rate).ln().max(0.0)).clamp(LOWEST, HIGHEST)
}

/// The threshold of a series without enough history: with it, noise that is mildly correlated
/// alarms as seldom as asked.
pub(super) const UNKNOWN: f64 = 16.0;

const LOWEST: f64 = 8.0;
const HIGHEST: f64 = 40.0;

/// The highest excursions, of which the tail is taken.
const TAIL: usize = 80;
const LEAST_TAIL: usize = 20;

#[cfg(test)]
mod tests {
    use narrows_stat::{SplitMix64, normal_quantile};

    use super::*;

    fn noise(memory: f64) -> Vec<f64> {
        let mut random = SplitMix64::new(5);
        let mut last = 0.0;
        let fresh = (1.0 - memory * memory).sqrt();
        (0..20_160)
            .map(|_| {
                last = memory * last + fresh * normal_quantile(random.next_unit().clamp(1e-9, 1.0 - 1e-9));
                last
            })
            .collect()
    }

    #[test]
    fn white_noise_gives_the_known_threshold() {
        // Theory (Siegmund's approximation) for one alarm in 518 400 values: 11.3.
        let found = threshold(noise(0.0).into_iter(), 0.5, 60.0 * RATE_PER_SIDE);
        assert!((10.3..12.5).contains(&found), "{found}");
    }

    #[test]
    fn memory_raises_the_threshold() {
        let found = threshold(noise(0.5).into_iter(), 0.5, 60.0 * RATE_PER_SIDE);
        assert!((20.0..40.0).contains(&found), "{found}");
    }

    #[test]
    fn little_history_gives_the_careful_one() {
        assert!((threshold([1.0, -1.0].into_iter(), 0.5, 1e-6) - UNKNOWN).abs() < 1e-12);
    }
}
