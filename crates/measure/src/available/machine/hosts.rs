//! What trains show of the hosts' and the queues' limits.

use narrows_units::BitRate;

use super::super::answer::Ending;
use super::super::loss::{LOSS_TOLERATED, Losses};
use super::super::pooled::wander;
use super::super::sizes::SHORTEST;
use super::super::train::TrainSlope;
use super::{AT_MAX, Machine, Phase, RETRY_LIMIT};
use narrows_probe::probes::TrainReport;

/// Times what the path carries that a train must leave faster to overflow a queue by itself (ours).
const FASTER: f64 = 1.5;
/// Times that the next train is slower where no two packets in a row came through (ours).
const MUCH_FASTER: f64 = 8.0;
/// The queue that a train may build grows to so many times the default, as far as half of it has
/// stood without a loss (ours).
const LEARNED: f64 = 4.0;
/// Share of the rate asked for that a train keeps at least, and from which on nothing is made of it
/// (ours).
const KEPT_LEAST: f64 = 0.75;
const KEPT_WELL: f64 = 0.99;
/// Trains up to so many times the path's rate say how delays wander (ours).
const PLAIN: f64 = 1.5;
/// Growth of delays at the sender's highest rate up to which it has not reached the turning point
/// (ours).
const NO_GROWTH: f64 = 0.01;

impl Machine {
    /// A queue that stood without a loss may stand again, and twice that be tried, up to several
    /// times the default: where bursts are longer than the queue allowed, trains find the link
    /// idle.
    pub(super) fn note_queue(&mut self, train: &TrainSlope) {
        if self.seen.overflows > 0 || train.lost > 0 || self.params.burst_octets.is_some() {
            return;
        }
        let scale = self.scale();
        let default = scale.burst(&self.params);
        let stood = train.highest_delay * scale.rate;
        let allowed = self.burst.unwrap_or(default);
        self.burst = Some(allowed.max((2.0 * stood).min(LEARNED * default)));
    }

    /// A sender that does not reach the planned rate in three trains cannot: a pause in one of them
    /// says nothing.
    pub(super) fn note_sender(&mut self, train: &TrainSlope) {
        if !train.rate_sent.is_finite() {
            return;
        }
        let pacing_shortfall = self.rate.is_none_or(|planned| train.rate_sent < 0.9 * planned);
        if !pacing_shortfall {
            self.pacing_shortfall = (0, 0.0);
            return;
        }
        self.pacing_shortfall = (self.pacing_shortfall.0 + 1, self.pacing_shortfall.1.max(train.rate_reached()));
        // As fast as the host can, it went as fast as it could; without a pause there is no doubt.
        if self.pacing_shortfall.0 >= 3 || (self.rate.is_none() && train.pauses == 0) {
            self.seen.max_rate = Some(self.pacing_shortfall.1);
        }
    }

    /// How much of the rate asked for the last train kept: a sender that is held up time and again
    /// does not make up for it, so that the mean stays behind. (Pauses are cut out of trains, and
    /// what lies between them went as asked.)
    pub(super) fn note_kept(&mut self, train: &TrainSlope) {
        let sending = train.send_time - train.paused;
        if self.phase == Phase::Near && self.rate.is_some() && sending > 0.0 {
            let kept = (self.planned.as_secs_f64() / sending).clamp(KEPT_LEAST, 1.0);
            self.achieved_rate_ratio = f64::midpoint(self.achieved_rate_ratio, kept);
        }
    }

    /// What to ask the sender for, so that the train goes at `rate` in the mean.
    pub(super) fn asked(&self, rate: BitRate) -> BitRate {
        if self.achieved_rate_ratio < KEPT_WELL {
            rate.scaled(1.0 / self.achieved_rate_ratio).unwrap_or(rate)
        } else {
            rate
        }
    }

    /// Three trains or more at the sender's highest rate, and together their delays do not grow.
    pub(super) fn quiet_at_most(&self) -> bool {
        let Some(max) = self.seen.max_rate else { return false };
        let forward =
            self.seen.trains.iter().filter(|train| train.rate_sent >= AT_MAX * max && train.backlogged_time > 0.0);
        let (mut count, mut time, mut growth, mut variance) = (0u32, 0.0, 0.0, 0.0);
        for train in forward {
            count += 1;
            time += train.backlogged_time;
            growth += train.backlogged_time * train.growth;
            variance += (train.backlogged_time * train.growth_error).powi(2);
        }
        count >= 3 && growth / time <= NO_GROWTH + (variance.sqrt() / time).min(NO_GROWTH)
    }

    /// Losses by overflow shorten the trains to come; losses at random are borne up to a limit.
    #[expect(clippy::option_option, reason = "outer: the train is not used; inner: the run ends")]
    pub(super) fn lossy(&mut self, report: &TrainReport) -> Option<Option<Ending>> {
        let losses = Losses::of(report);
        let overflow = self.overflowed(&losses);
        let (lost, sent) = (losses.lost as f64, losses.packets as f64);
        if lost <= LOSS_TOLERATED * sent {
            return None;
        }
        let shortens = losses.packets > SHORTEST || self.emptying > 0;
        if overflow && shortens && self.seen.overflows < RETRY_LIMIT {
            self.seen.overflows += 1;
            if self.seen.overflows == 1 {
                // Once more as it was: a bucket lets the same through again, and two trains that
                // bend alike tell it from a queue.
                return Some(None);
            }
            if !self.shorten_head(&losses) && !self.slow_down(&losses) {
                let through = losses.rate_out().unwrap_or(0.0) / losses.rate_sent;
                self.shrink(sent * self.packet_bits() * (1.0 - through.min(0.99)));
            }
            return Some(None);
        }
        self.seen.exceeds_burst |= overflow;
        if losses.is_heavy() {
            self.seen.lossy += 1;
            let ending = (self.seen.lossy > RETRY_LIMIT).then_some(Ending::Flawed(self.seen.too_much_loss()));
            return Some(ending);
        }
        None
    }

    /// Whether a queue could not take the train: it was lost late, or as a whole from some packet
    /// on while it came faster than any link before the queue lets it go.
    fn overflowed(&mut self, losses: &Losses<'_>) -> bool {
        let rate = losses.rate_before().filter(|rate| FASTER * rate < losses.rate_sent);
        self.seen.overflow_rate = self.seen.overflow_rate.max(rate.unwrap_or(0.0));
        let fast = self.seen.carries().is_none_or(|carries| losses.rate_sent > FASTER * carries);
        if !fast {
            self.seen.slow.push(losses);
            self.seen.met_full += u32::from(losses.is_heavy() && losses.before < SHORTEST);
        } else if self.seen.narrow.is_some() {
            self.seen.pushed.push(losses);
        }
        losses.is_late() || (fast && losses.lost_the_rest())
    }

    /// A queue that does not hold the shortest of trains tells nothing of one that comes all at
    /// once: the next goes as fast as this one was carried, if that shows, else much slower.
    fn slow_down(&mut self, losses: &Losses<'_>) -> bool {
        let slower = self.seen.carries().unwrap_or(losses.rate_sent / MUCH_FASTER);
        let slows = self.phase == Phase::Coarse && losses.before < SHORTEST && losses.rate_sent > FASTER * slower;
        if slows {
            self.rate = Some(slower);
        }
        slows
    }

    pub(super) fn shrink(&mut self, built: f64) {
        let allowed = self.burst.unwrap_or(self.scale().burst(&self.params));
        self.burst = Some(allowed.min(built) / 2.0);
    }

    /// How fast the variance of delays grows, seconds: what trains near the turning point showed by
    /// themselves. Trains far above it also queue before the narrow link, and a train sent as fast
    /// as the host can has gaps of its own making: their delays wander a hundred times as fast.
    pub(super) fn wander(&self) -> f64 {
        let top = PLAIN * self.scale().rate;
        wander(self.seen.trains.iter().filter(|train| train.rate <= top))
    }
}
