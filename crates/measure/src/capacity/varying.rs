//! Links whose rate moves while nobody shares them, as a radio's does (ours).
//!
//! The gaps of a train that queues at such a link are alike, and those of another train are alike
//! at another length. Traffic of others makes gaps of one train unlike: most of them keep the
//! packet's own time, or few are alike. So a train has a *level*, the rate of its most frequent
//! gap, if half of its gaps agree on it. Levels that differ are looked at again by trains at random
//! times over some seconds, whose mean is the mean rate over time. Every other one is paced:
//! steady traffic of others, which slows trains of the two rates unlike, is no change of the link.

mod level;

use std::time::Duration;

use narrows_stat::{Sorted, student_t_quantile};
use narrows_units::{BitRate, Metric, Sender, Stamp};

use self::level::{gaps_that_tell, is_full, level};
use narrows_probe::PathFacts;
use narrows_probe::contract::{Event, Step};
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Outcome};
use narrows_probe::probes::{Probe, Train, TrainId, TrainReport};
use narrows_train::carried::Carried;
use narrows_train::train_method::arrived_ns;

/// Levels of the first part, if they differ: the least and the highest rate, bit/s.
pub(super) fn suspected(facts: &PathFacts, reports: &[TrainReport]) -> Option<(f64, f64)> {
    let levels: Vec<f64> = levels(facts, reports).into_iter().map(|(_, level)| level).collect();
    let tell = reports.iter().filter(|report| gaps_that_tell(facts, report).is_some()).count();
    let enough = levels.len() >= LEAST_SUSPECTS && levels.len() as f64 >= LEVEL_SHARE * tell as f64;
    let (_, swing) = enough.then(|| moved(levels)).flatten()?;
    (SLOWEST_BPS..FASTEST_BPS).contains(&swing.0).then_some(swing)
}

/// The second part of a run: trains at random times.
#[derive(Debug, Clone)]
pub(super) struct Run {
    size: u16,
    /// Packets of a train, and the time that each has.
    packets: usize,
    slot: Duration,
    /// Rate of every other train.
    paced: BitRate,
    began: Stamp<Sender>,
    sent: u32,
    reports: Vec<TrainReport>,
}

impl Run {
    pub(super) fn new(facts: &PathFacts, (low, high): (f64, f64), now: Stamp<Sender>) -> Self {
        let packet = f64::from(facts.path_mtu) * 8.0 / low;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, clamped just before")]
        let packets = (TRAIN_TIME / packet).clamp(PACKETS.0, PACKETS.1) as usize;
        let slot = SLOT.max(Duration::from_secs_f64(SHARE_OF_SLOT * packets as f64 * packet));
        let paced = BitRate::from_bps_f64(PUSHES * high).unwrap_or(BitRate::ZERO);
        Self { size: facts.path_mtu, packets, slot, paced, began: now, sent: 0, reports: Vec::new() }
    }

    /// What to do at `now`, before the next train.
    pub(super) fn next(&self, now: Stamp<Sender>) -> Option<Step> {
        if self.sent == TRAINS {
            return None;
        }
        let until = self.begin_of(self.sent);
        if until > now {
            return Some(Step::Wait { until });
        }
        let id = TrainId(VARYING | self.sent);
        let rate = if self.sent % 2 == 1 { self.paced } else { BitRate::ZERO };
        Some(Step::Send(Probe::Train(Train::at_rate(id, self.packets, self.size, rate))))
    }

    /// Somewhere within a slot of its own: what moves in step with the slots is seen at all its
    /// stages.
    fn begin_of(&self, index: u32) -> Stamp<Sender> {
        let within = (GOLDEN * f64::from(index)).fract() * (1.0 - 1.0 / SHARE_OF_SLOT);
        self.began + self.slot.mul_f64(f64::from(index) + within)
    }

    pub(super) fn heard(&mut self, event: Event) -> bool {
        match event {
            Event::Train(report) if is_varying(report.id) => {
                self.reports.push(report);
                self.sent += 1;
                true
            }
            Event::TimerFired => true,
            _ => false,
        }
    }

    pub(super) fn conclude(&self, facts: &PathFacts, found: &Outcome) -> Option<Outcome> {
        conclude(facts, &self.reports, found)
    }
}

/// Whether a train belongs to this part.
pub(super) fn is_varying(id: TrainId) -> bool {
    id.0 & PART == VARYING
}

/// The mean over time and its interval; `None` if the link did not move, or others' traffic slowed
/// trains.
pub(super) fn conclude(facts: &PathFacts, reports: &[TrainReport], found: &Outcome) -> Option<Outcome> {
    let levels = levels(facts, reports);
    if levels.len() < LEAST_LEVELS || (levels.len() as f64) < LEVEL_SHARE * reports.len() as f64 {
        return None;
    }
    let of = |paced: bool| levels.iter().filter(|level| level.0 == paced).map(|level| level.1).collect::<Vec<_>>();
    let (pushed, paced) = (of(false), of(true));
    let rates: Vec<f64> = levels.iter().map(|level| level.1).collect();
    let half = half_width(&rates)?;
    let (sorted, (low, high)) = moved(rates)?;
    let apart = (narrows_stat::mean(&pushed)? - narrows_stat::mean(&paced)?).abs();
    let by_chance = narrows_stat::variance_sample(&pushed)? / pushed.len() as f64
        + narrows_stat::variance_sample(&paced)? / paced.len() as f64;
    if apart > UNLIKE * by_chance.sqrt() {
        return None;
    }
    let mean = sorted.mean();
    let rate = |bps: f64| BitRate::from_bps_f64(bps).unwrap_or(BitRate::ZERO);
    let mut estimate = Estimate::ip_rate(Metric::IpCapacity, rate(mean), rate(mean - half), rate(mean + half));
    estimate.confidence = if half <= FAIR * mean { Confidence::Medium } else { Confidence::Low };
    estimate = estimate
        .caveat(Caveat::VariableRate)
        .caveat(Caveat::GreyRegion { low: rate(low), high: rate(high) })
        .with("branch", "varying")
        .with("levels_bps", sorted.values().to_vec());
    let others = found.caveats().iter().filter(|caveat| matches!(caveat, Caveat::Loss { .. } | Caveat::HostStall));
    Some(others.fold(estimate, |estimate, caveat| estimate.caveat(caveat.clone())).into())
}

/// Half of the 90 % interval of a mean over time. One train comes from each of equal parts of the
/// time, so what counts is how much neighbours differ, not how far the rate wanders in all. A rate
/// that moves more slowly than that time was another before, and will be: half of what the halves
/// of the time differ by.
fn half_width(rates: &[f64]) -> Option<f64> {
    let variance = mean_square_step(rates)? / 2.0;
    let t = student_t_quantile(0.95, rates.len() as f64 - 1.0).ok()?;
    let (before, after) = rates.split_at(rates.len() / 2);
    let drift = (narrows_stat::mean(before)? - narrows_stat::mean(after)?).abs() / 2.0;
    Some((t * (variance / rates.len() as f64).sqrt()).max(drift))
}

/// The levels in order of size and the ends of their swing, if they are of a link that moved: they
/// are far enough apart, and no bursts of others on a steady link.
fn moved(levels: Vec<f64>) -> Option<(Sorted, (f64, f64))> {
    let smooth = is_smooth(&levels);
    let sorted = Sorted::new(levels).ok()?;
    let (low, high) = (sorted.quantile(0.05)?, sorted.quantile(0.95)?);
    (high > MOVED * low && (smooth || !is_bursts(&sorted))).then_some((sorted, (low, high)))
}

/// Of each level and the one before.
fn mean_square_step(levels: &[f64]) -> Option<f64> {
    narrows_stat::mean(&levels.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).collect::<Vec<_>>())
}

/// Whether the levels are those of a steady link behind which others send in bursts: many trains
/// meet nobody and share the highest level, and those in a burst have all kinds of lower ones. A
/// rate that moves is seldom at its highest; one that jumps between two has many trains at both.
fn is_bursts(levels: &Sorted) -> bool {
    let all = levels.values();
    let (Some(lowest), Some(highest)) = (all.first(), all.last()) else { return false };
    let share = |near: &dyn Fn(f64) -> bool| all.iter().filter(|level| near(**level)).count() as f64 / all.len() as f64;
    let at_top = share(&|level| level * SAME >= *highest);
    let at_bottom = share(&|level| level <= SAME * lowest);
    at_top >= MANY && at_bottom < MANY
}

/// Whether each train's level is near that of the one before, as of a rate that moves slowly: the
/// mean square of steps, against twice the variance that levels in any order have.
fn is_smooth(levels: &[f64]) -> bool {
    let compared = mean_square_step(levels).zip(narrows_stat::variance_sample(levels));
    compared.is_some_and(|(step, variance)| step < SMOOTH * 2.0 * variance)
}

/// Levels that the narrow link may have made, and whether their trains have odd numbers. A queue
/// behind the narrow link pushes packets together; no train is carried at a rate made so, from its
/// first departure to its last arrival.
fn levels(facts: &PathFacts, reports: &[TrainReport]) -> Vec<(bool, f64)> {
    let full = || reports.iter().filter(|report| is_full(facts, report));
    let carried: Vec<Carried> = full().filter_map(|report| Carried::of(report, arrived_ns)).collect();
    let base = Carried::base(carried.iter().copied()).unwrap_or(0);
    let most = Carried::fastest(carried, base).unwrap_or(f64::INFINITY);
    let read = full().filter_map(|report| Some((report.id.0 % 2 == 1, level(facts, report)?)));
    read.filter(|(_, level)| *level <= MOVED * most).collect()
}

// Ours, all of them.
/// Levels this far apart are a link that moved: more than the widest window leaves open.
const MOVED: f64 = 1.2;
/// Levels of one rate, and the share of trains that makes it one at which the link often is.
const SAME: f64 = 1.02;
const MANY: f64 = 0.4;
/// Of the steps that levels in any order have: of ten in any order, three in a thousand have fewer.
const SMOOTH: f64 = 0.3;
const LEAST_SUSPECTS: usize = 4;
const LEAST_LEVELS: usize = 12;
/// Of the trains that are long enough.
const LEVEL_SHARE: f64 = 0.75;
/// Standard errors by which paced trains may differ.
const UNLIKE: f64 = 3.0;
/// Half of an interval, as a share, up to which confidence is medium.
const FAIR: f64 = 0.1;
/// Thirty trains see three seconds.
const TRAINS: u32 = 30;
const SLOT: Duration = Duration::from_millis(100);
const SHARE_OF_SLOT: f64 = 4.0;
/// Seconds, and in packets: long enough for a level, short enough for the rate to stand.
const TRAIN_TIME: f64 = 0.01;
const PACKETS: (f64, f64) = (12.0, 24.0);
/// A paced train leaves this much faster than the highest level.
const PUSHES: f64 = 1.25;
const GOLDEN: f64 = 0.618_033_988_749_895;
/// Thirty trains of twelve packets take four seconds and more below.
const SLOWEST_BPS: f64 = 5e6;
/// Stamps of hosts are off by a tenth of a packet's time here.
const FASTEST_BPS: f64 = 5e8;
/// Marks the trains of this part; the first part's phases have smaller numbers in these bits.
const VARYING: u32 = 0x1e << 24;
const PART: u32 = 0x1f << 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(levels: &[f64]) -> bool {
        is_bursts(&Sorted::new(levels.to_vec()).expect("levels are finite"))
    }

    #[test]
    fn bursts_leave_many_trains_at_the_top_and_few_at_one_lower_level() {
        assert!(bursts(&[97.5, 97.4, 97.6, 97.5, 97.5, 79.0, 84.0, 91.0]));
        // A rate that moves; one that jumps between two values.
        assert!(!bursts(&[24.0, 29.0, 36.0, 41.0, 47.0, 52.0, 55.5, 56.0]));
        assert!(!bursts(&[24.0, 24.1, 24.0, 24.1, 56.0, 56.1, 56.0, 56.1]));
    }

    #[test]
    fn a_rate_that_moves_slowly_is_near_what_it_was() {
        assert!(is_smooth(&[26.9, 27.3, 27.3, 26.9, 26.3, 25.3, 24.1, 22.7, 19.5, 17.9, 13.7]));
        assert!(!is_smooth(&[97.5, 79.0, 97.4, 97.6, 84.0, 97.5, 91.0, 97.5]));
        assert!(!is_smooth(&[97.5; 8]));
    }

    #[test]
    fn a_mean_over_less_than_a_swing_is_uncertain_by_the_drift() {
        let rises: Vec<f64> = (0..30).map(|step| 20.0 + f64::from(step)).collect();
        assert!((half_width(&rises).expect("thirty levels") - 7.5).abs() < 1e-9);
    }
}
