//! Grouping of flows by their one-way delays: RFC 8382, with its recommended values (§2.2).
//!
//! Only variations of delay count, so clocks need not agree. A flow is summarised by
//! * skewness (§3.2.2): samples below the mean less those above, as a share. A bottleneck keeps its
//!   queue long, so most delays are above the mean, and the skewness is low or negative;
//! * variability (§3.2.3): mean absolute deviation from the mean of the interval before;
//! * oscillation (§3.2.4): significant crossings of the mean, per interval;
//! * loss (§3.2.5).
//!
//! Departs from RFC 8382 §4.1: a series is judged once, after 18 s, so the weights that make
//! running estimates answer faster have no use. The mean of intervals before the M-th is that of
//! all before.

use std::time::Duration;

use narrows_stat::mean;

use serde::{Deserialize, Serialize};

/// What a flow's delays look like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// `skew_est`: -1 to 1.
    pub skewness: f64,
    /// `var_est`, in the unit of the delays: results carry those in ns.
    #[serde(rename = "variability_ns")]
    pub variability: f64,
    /// `freq_est`: crossings per interval, 0 to 1.
    pub oscillation: f64,
    /// `pkt_loss`: share of the packets.
    pub loss: f64,
}

/// Flows, by their place in the list that was grouped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    /// Each group shares a bottleneck; a group of one has one of its own.
    pub sharing: Vec<Vec<usize>>,
    /// No bottleneck is seen on these.
    pub free: Vec<usize>,
}

/// Both directions of one train of echoes: what a result has of it instead of every delay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DelaySummary {
    /// From the agent to its target.
    pub forward: Option<Summary>,
    /// Back from it.
    pub reverse: Option<Summary>,
}

impl Groups {
    /// Whether any flows share a bottleneck.
    pub fn verdict(&self) -> GroupVerdict {
        if self.sharing.iter().any(|group| group.len() > 1) {
            GroupVerdict::Together
        } else if self.sharing.is_empty() {
            GroupVerdict::NoQueue
        } else {
            GroupVerdict::Apart
        }
    }
}

/// What groups say of flows that were thought to share a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupVerdict {
    /// The delays of two of them at least move together.
    Together,
    /// Each one that waits in a queue waits in one of its own.
    Apart,
    /// None of them waits in any.
    NoQueue,
}

/// Sums up one-way delays of packets that left every `gap`, oldest first; `None` is a lost packet.
///
/// Needs 51 intervals of 350 ms: 50, and one before them for the first mean. The last 51 count.
pub fn summarise(delays: &[Option<f64>], gap: Duration) -> Option<Summary> {
    let intervals = intervals(delays, gap);
    let intervals = &intervals[intervals.len().checked_sub(OSCILLATION_INTERVALS + 1)?..];
    let means: Vec<Option<f64>> = intervals.iter().map(|one| mean(&one.delays)).collect();
    let (mut skew, mut deviation, mut samples) = (0.0, 0.0, 0_usize);
    let first = intervals.len() - MEAN_INTERVALS;
    for at in first..intervals.len() {
        let (Some(mean), Some(before)) = (mean_before(&means, at), means[..at].iter().rev().find_map(|one| *one))
        else {
            continue;
        };
        for delay in &intervals[at].delays {
            skew += if *delay < mean { 1.0 } else { 0.0 } - if *delay > mean { 1.0 } else { 0.0 };
            deviation += (delay - before).abs();
            samples += 1;
        }
    }
    if samples == 0 {
        return None;
    }
    let variability = deviation / samples as f64;
    let (lost, sent) = intervals[1..].iter().fold((0, 0), |(lost, sent), one| (lost + one.lost, sent + one.sent()));
    Some(Summary {
        skewness: skew / samples as f64,
        variability,
        oscillation: crossings(&means, variability) as f64 / OSCILLATION_INTERVALS as f64,
        loss: f64::from(lost) / f64::from(sent.max(1)),
    })
}

/// Groups flows (§3.3.1): those behind a bottleneck, by oscillation, then variability, then loss
/// where it is high, else skewness.
///
/// Departs from RFC 8382 §3.3.1: delays that vary by no more than `noise` show no queue, however
/// they are skewed. Hosts alone make them vary so much, and idle paths of like hosts look alike.
pub fn group(flows: &[Summary], noise: f64) -> Groups {
    let waits = |flow: &Summary| flow.skewness < SKEWNESS_OF_BOTTLENECK && flow.variability > noise;
    let behind = |flow: &Summary| waits(flow) || flow.loss > HIGH_LOSS;
    let (bottlenecked, free): (Vec<usize>, Vec<usize>) = (0..flows.len()).partition(|at| behind(&flows[*at]));
    let mut sharing = Vec::new();
    for alike in split(bottlenecked, |at| flows[at].oscillation, |_| OSCILLATION_DIFFERENCE) {
        for alike in split(alike, |at| flows[at].variability, |highest| VARIABILITY_SHARE * highest) {
            let (lossy, other): (Vec<usize>, Vec<usize>) =
                alike.into_iter().partition(|at| flows[*at].loss > HIGH_LOSS);
            sharing.extend(split(lossy, |at| flows[at].loss, |highest| LOSS_SHARE * highest));
            sharing.extend(split(other, |at| flows[at].skewness, |_| SKEWNESS_DIFFERENCE));
        }
    }
    for group in &mut sharing {
        group.sort_unstable();
    }
    sharing.sort_unstable();
    Groups { sharing, free }
}

/// Sorted from largest to smallest and cut wherever neighbours differ too much; a difference is
/// judged by the larger of the two.
fn split(flows: Vec<usize>, value: impl Fn(usize) -> f64, allowed: impl Fn(f64) -> f64) -> Vec<Vec<usize>> {
    let mut sorted = flows;
    sorted.sort_by(|one, other| value(*other).total_cmp(&value(*one)));
    sorted
        .chunk_by(|larger, smaller| value(*larger) - value(*smaller) < allowed(value(*larger)).max(f64::MIN_POSITIVE))
        .map(<[usize]>::to_vec)
        .collect()
}

/// Delays of one interval T.
#[derive(Default)]
struct Interval {
    delays: Vec<f64>,
    lost: u32,
}

impl Interval {
    fn sent(&self) -> u32 {
        self.lost + narrows_units::to_u32(self.delays.len())
    }
}

/// Whole intervals only.
fn intervals(delays: &[Option<f64>], gap: Duration) -> Vec<Interval> {
    let mut intervals: Vec<Interval> = Vec::new();
    // Whole nanoseconds: a packet on the edge of an interval belongs to the one that begins.
    let place = |at: usize| usize::try_from(gap.as_nanos() * at as u128 / INTERVAL.as_nanos()).unwrap_or(usize::MAX);
    for (at, delay) in delays.iter().enumerate() {
        intervals.resize_with((place(at) + 1).max(intervals.len()), Interval::default);
        if let Some(interval) = intervals.last_mut() {
            match delay {
                Some(delay) => interval.delays.push(*delay),
                None => interval.lost += 1,
            }
        }
    }
    if place(delays.len()) < intervals.len() {
        intervals.pop();
    }
    intervals
}

/// `mean_delay`: the average of the M interval means before `at` (§3.2.1).
fn mean_before(means: &[Option<f64>], at: usize) -> Option<f64> {
    let before: Vec<f64> = means[at.saturating_sub(MEAN_INTERVALS)..at].iter().flatten().copied().collect();
    mean(&before)
}

/// How often the interval means go from one side of the mean to the other, by more than noise
/// (§3.2.4): `p_v` times the variability.
fn crossings(means: &[Option<f64>], variability: f64) -> usize {
    let mut above = None;
    let mut crossings = 0;
    for at in 1..means.len() {
        let (Some(mean), Some(now)) = (mean_before(means, at), means[at]) else {
            continue;
        };
        let is_above = now > mean;
        if (now - mean).abs() > CROSSING_SHARE * variability && above != Some(is_above) {
            crossings += usize::from(above.is_some());
            above = Some(is_above);
        }
    }
    crossings
}

/// T.
const INTERVAL: Duration = Duration::from_millis(350);
/// N.
const OSCILLATION_INTERVALS: usize = 50;
/// M.
const MEAN_INTERVALS: usize = 30;
/// `c_s`.
const SKEWNESS_OF_BOTTLENECK: f64 = 0.1;
/// `p_l`.
const HIGH_LOSS: f64 = 0.05;
/// `p_f`.
const OSCILLATION_DIFFERENCE: f64 = 0.1;
/// `p_mad`.
const VARIABILITY_SHARE: f64 = 0.1;
/// `p_s`.
const SKEWNESS_DIFFERENCE: f64 = 0.15;
/// `p_d`.
const LOSS_SHARE: f64 = 0.1;
/// `p_v`.
const CROSSING_SHARE: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(skewness: f64, variability: f64, oscillation: f64, loss: f64) -> Summary {
        Summary { skewness, variability, oscillation, loss }
    }

    #[test]
    fn a_square_wave_has_the_statistics_worked_by_hand() {
        // Four packets an interval; intervals are 10 ms and 30 ms in turn.
        let delays: Vec<_> = (0..51 * 4).map(|at| Some(if (at / 4) % 2 == 0 { 10.0 } else { 30.0 })).collect();
        let summary = summarise(&delays, Duration::from_micros(87_500)).unwrap();
        // Each interval is 20 ms off the one before, and half of the samples are above the mean.
        assert!((summary.variability - 20.0).abs() < 1e-9, "{summary:?}");
        assert!(summary.skewness.abs() < 0.07, "{summary:?}");
        // The wave is 10 ms about its mean, below the threshold of 14 ms: no crossing counts.
        assert!(summary.oscillation.abs() < 1e-9, "{summary:?}");
        assert!(summary.loss.abs() < 1e-9);
    }

    #[test]
    fn a_slow_wave_crosses_twice_a_period() {
        // Ten intervals up, ten down, 20 ms about the mean: 2.5 periods in 50 intervals.
        let delays: Vec<_> = (0..51 * 4).map(|at| Some(if (at / 40) % 2 == 0 { 10.0 } else { 50.0 })).collect();
        let summary = summarise(&delays, Duration::from_micros(87_500)).unwrap();
        assert!((0.06..=0.12).contains(&summary.oscillation), "{summary:?}");
    }

    #[test]
    fn a_full_queue_is_skewed_below_and_an_empty_one_above() {
        let saw = |at: usize| (at % 40) as f64 / 40.0;
        let full: Vec<_> = (0..900).map(|at| Some(100.0 * (1.0 - saw(at).powi(4)))).collect();
        let idle: Vec<_> = (0..900).map(|at| Some(100.0 * saw(at).powi(4))).collect();
        let gap = Duration::from_millis(20);
        let (full, idle) = (summarise(&full, gap).unwrap(), summarise(&idle, gap).unwrap());
        assert!(full.skewness < -0.2 && idle.skewness > 0.2, "{full:?} {idle:?}");
        assert_eq!(group(&[idle, full], 0.0), Groups { sharing: vec![vec![1]], free: vec![0] });
    }

    #[test]
    fn what_hosts_alone_do_is_no_queue() {
        let (quiet, slow) = (summary(-0.2, 9.0, 0.3, 0.0), summary(-0.2, 11.0, 0.3, 0.0));
        assert_eq!(group(&[quiet, slow], 10.0), Groups { sharing: vec![vec![1]], free: vec![0] });
        // Losses are no host's.
        let lossy = summary(0.2, 9.0, 0.3, 0.06);
        assert_eq!(group(&[quiet, lossy], 10.0), Groups { sharing: vec![vec![1]], free: vec![0] });
    }

    #[test]
    fn groups_say_whether_any_flows_share() {
        let groups = |sharing: &[&[usize]], free: &[usize]| Groups {
            sharing: sharing.iter().map(|group| group.to_vec()).collect(),
            free: free.to_vec(),
        };
        assert_eq!(groups(&[&[0], &[1, 2]], &[3]).verdict(), GroupVerdict::Together);
        assert_eq!(groups(&[&[0], &[2]], &[]).verdict(), GroupVerdict::Apart);
        assert_eq!(groups(&[&[0]], &[1, 2]).verdict(), GroupVerdict::Apart);
        assert_eq!(groups(&[], &[0, 1]).verdict(), GroupVerdict::NoQueue);
    }

    #[test]
    fn losses_count_and_short_series_say_nothing() {
        let delays: Vec<_> = (0..900).map(|at| (at % 10 != 0).then_some(5.0)).collect();
        let summary = summarise(&delays, Duration::from_millis(20)).unwrap();
        assert!((summary.loss - 0.1).abs() < 0.005, "{summary:?}");
        assert!(summarise(&delays[..800], Duration::from_millis(20)).is_none());
        assert!(summarise(&vec![None; 900], Duration::from_millis(20)).is_none());
    }

    #[test]
    fn each_statistic_separates() {
        let one = summary(-0.2, 10.0, 0.3, 0.0);
        let groups = |other: Summary| group(&[one, other], 0.0).sharing;
        assert_eq!(groups(summary(-0.1, 9.1, 0.35, 0.0)), [vec![0, 1]]);
        assert_eq!(groups(summary(-0.2, 10.0, 0.45, 0.0)).len(), 2, "oscillation");
        assert_eq!(groups(summary(-0.2, 8.9, 0.3, 0.0)).len(), 2, "variability");
        assert_eq!(groups(summary(0.0, 10.0, 0.3, 0.0)).len(), 2, "skewness");
        assert_eq!(groups(summary(-0.2, 10.0, 0.3, 0.06)).len(), 2, "loss");
        let lossy = [summary(0.9, 10.0, 0.3, 0.100), summary(-0.9, 10.0, 0.3, 0.091), summary(0.0, 10.0, 0.3, 0.07)];
        assert_eq!(group(&lossy, 0.0).sharing, [vec![0, 1], vec![2]], "loss instead of skewness");
    }
}
