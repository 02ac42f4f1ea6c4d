//! The chart: sums over windows of many lengths, each in units of what that length does by chance.
//!
//! Over the last `n` values, `S_n` sums the scores. In quiet history `S_n` exceeds `1.645 c_n` in
//! one of twenty values; `c_n` is the scale of that length, one for each side. The statistic is
//! `T = max_n S_n / sqrt(c_n^2 + n^2 e^2)`, where `e` is the error of the level. Independent noise
//! has `c_n = sqrt n`. Memory raises the scale of long windows. So each length is as sharp as the
//! series allows, and none decides for the others. `c_n / sqrt n` never falls with `n`: a level
//! with a short memory follows the sums of long windows, and hides what they do once its memory
//! grows. Of each score, what the season may be wrong by at its hour is left out of the sums.
//!
//! `T^2 / 2` has an exponential tail. The threshold is its level that the maxima of two hours (120
//! values) would pass as seldom as asked, by the excesses of the highest third. Their mean `m`
//! is known from `k` of them only, so the predictive distribution is
//! `P(X > x) = (1 + x / (k m))^-k`. Over many series it gives the rate of false alarms that was
//! asked for; the exponential with `m` itself would give twice that.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::chart::{Chart, Score, Side};

/// Sums over windows, two-sided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Windows {
    newest: VecDeque<f64>,
    #[serde(default)]
    allowances: VecDeque<f64>,
    up: OneSide,
    down: OneSide,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OneSide {
    scales: Vec<f64>,
    threshold: f64,
    statistic: f64,
}

impl Default for Windows {
    fn default() -> Self {
        Self { newest: VecDeque::new(), allowances: VecDeque::new(), up: OneSide::unknown(), down: OneSide::unknown() }
    }
}

impl Windows {
    /// The thresholds of rises and of falls, in units of a window's scale.
    pub const fn thresholds(&self) -> (f64, f64) {
        (self.up.threshold, self.down.threshold)
    }
}

impl Chart for Windows {
    fn push(&mut self, score: Score, slack: f64) -> Option<Side> {
        if self.newest.len() == LONGEST {
            self.newest.pop_back();
        }
        self.newest.push_front(score.z);
        self.allowances.push_front(score.allowance);
        self.allowances.truncate(self.newest.len());
        let both = || self.newest.iter().zip(&self.allowances);
        self.up.statistic = self.up.of(both().map(|(z, allowance)| z - allowance), slack);
        self.down.statistic = self.down.of(both().map(|(z, allowance)| -z - allowance), slack);
        if score.up && self.up.fraction() > 1.0 {
            Some(Side::Up)
        } else if score.down && self.down.fraction() > 1.0 {
            Some(Side::Down)
        } else {
            None
        }
    }

    fn fraction(&self) -> f64 {
        self.up.fraction().max(self.down.fraction())
    }

    fn clear(&mut self) {
        self.newest.clear();
        self.allowances.clear();
        (self.up.statistic, self.down.statistic) = (0.0, 0.0);
    }

    fn calibrate(&mut self, history: &[f64], rate: f64) {
        self.up.calibrate(history, rate);
        let mirrored: Vec<f64> = history.iter().map(|z| -z).collect();
        self.down.calibrate(&mirrored, rate);
    }
}

impl OneSide {
    fn unknown() -> Self {
        let scale = |length: &usize| (UNKNOWN_SCALE * (*length as f64).sqrt()).hypot(UNKNOWN_DRIFT * *length as f64);
        let scales = LENGTHS.iter().map(scale).collect();
        Self { scales, threshold: UNKNOWN, statistic: 0.0 }
    }

    fn fraction(&self) -> f64 {
        (self.statistic / self.threshold).powi(2)
    }

    /// The statistic of scores, the newest first.
    fn of(&self, newest: impl Iterator<Item = f64>, slack: f64) -> f64 {
        let (mut sum, mut most) = (0.0_f64, 0.0_f64);
        let mut lengths = LENGTHS.iter().zip(&self.scales).peekable();
        for (count, z) in (1..).zip(newest) {
            sum += z;
            if let Some((length, scale)) = lengths.next_if(|(length, _)| **length == count) {
                most = most.max(sum / scale.hypot(*length as f64 * slack));
            }
        }
        most
    }

    fn calibrate(&mut self, history: &[f64], rate: f64) {
        let blocks = history.len() / BLOCK;
        if blocks < LEAST_BLOCKS {
            return;
        }
        let mut total = vec![0.0];
        for z in history {
            total.push(total.last().copied().unwrap_or(0.0) + z);
        }
        let mut statistics = vec![0.0_f64; history.len()];
        let mut per_root = LEAST_SCALE;
        for (length, scale) in LENGTHS.iter().zip(&mut self.scales) {
            let sums: Vec<f64> = total.windows(length + 1).map(|sums| sums[*length] - sums[0]).collect();
            let high = narrows_stat::quantile(&sums, ONE_IN_TWENTY).unwrap_or(0.0) / NORMAL_95;
            per_root = per_root.max(high / (*length as f64).sqrt());
            *scale = per_root * (*length as f64).sqrt();
            for (statistic, sum) in statistics[length - 1..].iter_mut().zip(&sums) {
                *statistic = statistic.max(sum / *scale);
            }
        }
        let block_max = |block: &[f64]| block.iter().fold(0.0_f64, |most, one| most.max(*one)).powi(2) / 2.0;
        let mut peaks: Vec<f64> = statistics.chunks_exact(BLOCK).map(block_max).collect();
        peaks.sort_by(|one, other| other.total_cmp(one));
        let tail = peaks.len() / 3;
        let mark = peaks[tail];
        let excess: f64 = peaks[..tail].iter().map(|peak| peak - mark).sum();
        let seldom = (tail as f64 / peaks.len() as f64) / (rate * BLOCK as f64);
        let height = mark + excess * (seldom.max(1.0).powf((tail as f64).recip()) - 1.0);
        self.threshold = (2.0 * height).sqrt().clamp(LOWEST, HIGHEST);
    }
}

/// At least four values make a change; the longest sees a shift of half a spread.
const LENGTHS: [usize; 13] = [4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128];
const LONGEST: usize = 128;

const ONE_IN_TWENTY: f64 = 0.95;
const NORMAL_95: f64 = 1.645;

/// No window is assumed to scatter less than this share of independent noise.
const LEAST_SCALE: f64 = 0.9;

/// Without history: noise with memory of one half per value has this scale, and an unknown season
/// moves the level by this many spreads.
pub(super) const UNKNOWN_SCALE: f64 = 1.7;
const UNKNOWN_DRIFT: f64 = 0.5;
const UNKNOWN: f64 = 5.5;
const LOWEST: f64 = 4.0;
const HIGHEST: f64 = 12.0;

const BLOCK: usize = 120;
const LEAST_BLOCKS: usize = 36;
/// From so many values on, some three days of them, the chart knows the noise.
pub(super) const KNOWN_HISTORY: usize = BLOCK * LEAST_BLOCKS;

#[cfg(test)]
mod tests {
    use narrows_stat::{SplitMix64, normal_quantile};

    use super::*;

    const QUIET: Score = Score { z: 0.0, allowance: 0.0, up: true, down: true };
    const RATE: f64 = 60.0 * super::super::chart::RATE_PER_SIDE;

    fn noise(memory: f64, seed: u64, count: usize) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        let mut last = 0.0;
        let fresh = (1.0 - memory * memory).sqrt();
        let mut next = || {
            last = memory * last + fresh * normal_quantile(random.next_unit().clamp(1e-9, 1.0 - 1e-9)).unwrap();
            last
        };
        (0..count).map(|_| next()).collect()
    }

    fn alarms(chart: &mut Windows, scores: &[f64]) -> usize {
        let push = |z: &&f64| {
            let alarm = chart.push(Score { z: **z, ..QUIET }, 0.0).is_some();
            if alarm {
                chart.clear();
            }
            alarm
        };
        scores.iter().filter(push).count()
    }

    fn delay(chart: &Windows, shift: f64) -> usize {
        let mut chart = chart.clone();
        1 + (0..500).take_while(|_| chart.push(Score { z: shift, ..QUIET }, 0.0).is_none()).count()
    }

    #[test]
    fn white_noise_has_the_known_scales_and_seldom_alarms() {
        let mut chart = Windows::default();
        chart.calibrate(&noise(0.0, 5, 20_160), RATE);
        for (length, scale) in LENGTHS.iter().zip(&chart.up.scales) {
            let ratio = scale / (*length as f64).sqrt();
            assert!((0.75..1.3).contains(&ratio), "{length}: {ratio}");
        }
        assert!((4.4..6.5).contains(&chart.up.threshold), "{}", chart.up.threshold);
        // Two sides, 100 000 values: 0.4 alarms are expected.
        assert!(alarms(&mut chart, &noise(0.0, 6, 100_000)) <= 3);
        assert!(delay(&chart, 3.0) <= 6 && delay(&chart, 1.0) <= 45, "{} {}", delay(&chart, 3.0), delay(&chart, 1.0));
    }

    #[test]
    fn memory_slows_the_chart_instead_of_raising_false_alarms() {
        let mut chart = Windows::default();
        chart.calibrate(&noise(0.7, 5, 20_160), RATE);
        assert!(alarms(&mut chart, &noise(0.7, 6, 100_000)) <= 4);
        assert!(delay(&chart, 4.0) <= 16, "{}", delay(&chart, 4.0));
    }

    #[test]
    fn no_single_burst_alarms() {
        let mut chart = Windows::default();
        chart.calibrate(&noise(0.0, 5, 20_160), RATE);
        let burst = Score { z: -4.0, ..QUIET };
        assert!((0..3).all(|_| chart.push(burst, 0.0).is_none()));
        assert_eq!(chart.push(burst, 0.0), Some(Side::Down));
    }

    #[test]
    fn what_the_season_may_be_wrong_by_is_no_evidence() {
        let mut chart = Windows::default();
        chart.calibrate(&noise(0.0, 5, 20_160), RATE);
        let mut alarms = |z: f64, allowance: f64| {
            chart.clear();
            (0..1000).any(|_| chart.push(Score { z, allowance, ..QUIET }, 0.0).is_some())
        };
        assert!(alarms(0.8, 0.0) && !alarms(0.8, 0.8));
        assert!(alarms(-1.6, 0.8) && alarms(1.6, 0.8), "what is beyond it is");
    }

    #[test]
    fn little_history_changes_nothing() {
        let mut chart = Windows::default();
        chart.calibrate(&noise(0.0, 5, 100), RATE);
        assert_eq!(chart, Windows::default());
    }
}
