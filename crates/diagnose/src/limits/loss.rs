//! What kind of loss it was, if any: a queue that overflows, a token bucket, reordering that looks
//! like loss, or the medium.

use std::time::Duration;

use super::shaper::shaped;
use super::{LimitingFactor, TransferSamples, hosts, samples};
use crate::limits::theory;
use narrows_probe::probes::Congestion;
use narrows_train::bulk::series;
use narrows_train::bulk::series::Slot;

/// A round trip is longer than the shortest by a queue if by this much and by this share of it
/// (both "ours").
const INFLATED: Duration = Duration::from_millis(2);
const INFLATED_SHARE: u32 = 10;
/// On short paths a third of the round trip will do for the former, but not less than what hosts'
/// own delays come to (ours).
const INFLATED_SHORT: u32 = 3;
const HOSTS: Duration = Duration::from_micros(500);
/// Rates between losses this alike (coefficient of variation) come from something that counts
/// octets, not from chance, if there are at least so many of them; where they come in runs as well,
/// fewer will do.
const PERIODIC: f64 = 0.10;
const FEWEST_EPOCHS: usize = 5;
const FEWEST_ALIKE: usize = 2;
/// Slots after the first loss that the end of slow start may take where something is lost in every
/// slot.
const RAMP_SLOTS: usize = 5;
/// Of all that was sent again, this share was sent without need: the segments had only been
/// overtaken.
const NEEDLESS: f64 = 0.5;
/// The loss model promises at most so many times the rate, where losses explain it.
const MODEL: f64 = 2.5;
/// A rate of more than so many times what the loss model allows is none of losses that come one by
/// one (ours: 0.7 to 1.2 of those that do).
const BEYOND_MODEL: f64 = 1.5;
/// The loss model speaks of a mean over many cuts: with fewer lost segments than this a rate may
/// still be that of the ramp (ours).
const FEWEST_FOR_MODEL: u64 = 50;
/// A policer's losses come in runs: so many segments are lost together on average, where chance
/// loses them one by one.
const RUN: f64 = 2.0;

/// Fewer losses than this lie anyhow. More unevenly than chance: by so many of its standard
/// deviations (ours).
const FEWEST_LOST: f64 = 5.0;
const SURE: f64 = 3.0;
/// So many segments at once, and such a share of what was under way, are the excess over a rate
/// (ours: no burst of a medium is as long).
const MANY_AT_ONCE: f64 = 100.0;
const EXCESS: f64 = 0.1;
/// What is carried without loss goes at higher rates than losses come at for no more than this
/// share, if losses come of the rate (ours).
const ABOVE_LOSSES: f64 = 0.05;
/// Chance that ends slow start takes a segment or two. What takes so many, and so many times what
/// it takes later, took all that was too much (ours).
const MANY_AT_RAMP: f64 = 8.0;
/// See [`MANY_AT_RAMP`].
const MANY_TIMES: f64 = 3.0;
/// A larger share than this is lost by no medium that TCP works over, and leaves it to timeouts
/// (ours).
const HEAVY: f64 = 0.05;
/// A quarter in one phase of eight is a thirty-third of what BBR sends (`[BBR16]`).
const PROBED: f64 = 1.0 / 33.0;

/// A queue holds at least so many packets (ours): a round trip longer by fewer is what any link
/// adds.
const QUEUE_PACKETS: f64 = 8.0;
/// So much of such a queue may be one (ours): less is what a window's own bursts make.
const DOUBTFUL: f64 = 0.6;
/// Times between losses that vary by less than this are not those of chance, of which they
/// vary as much as they last (ours).
const EVEN_TIMES: f64 = 0.35;
/// A queue that is there for less of the time than this holds no window down (ours: one that
/// overflows under Reno stands for half of it).
const QUEUED_SHARE: f64 = 0.2;
/// Of the highest rate: no cut of a window leaves as little that had filled a path and its queue
/// (ours: Reno leaves half of both).
const FAR_BELOW: f64 = 0.45;
/// The verdict that losses give rise to, the surest first.
pub(super) fn verdict(seen: &TransferSamples<'_>) -> Option<LimitingFactor> {
    let settled = Settled::of(seen)?;
    if settled.needless {
        return Some(LimitingFactor::Reordering);
    }
    if shaped(seen, settled.inflated.max(settled.by_hosts)) {
        return Some(LimitingFactor::Shaper);
    }
    if seen.sums.loss() <= 0.0 {
        return None;
    }
    let low = |&index: &usize| rtt_before(settled.slots, index) < settled.inflated;
    let (low, hit) = (settled.hit.iter().filter(|index| low(index)).count(), settled.hit.len());
    // A window that random losses leave open for long meets the queue now and then: neither do most
    // losses come with it, nor is it there for much of the time.
    let seldom = low * 2 > hit && settled.queued_share(settled.slots) < QUEUED_SHARE;
    if hit == 0 || (low * 10 < hit * 9 && !seldom) {
        let queue = !settled.left_queue() && settled.beyond_hosts();
        return Some(if queue { LimitingFactor::Queue } else { LimitingFactor::Loss });
    }
    if Settled::is_model(seen) {
        return settled.beside_model();
    }
    // Longer round trips and losses together may be a queue: neither a bucket nor chance is sure.
    if settled.may_be_full() {
        return Some(LimitingFactor::Loss);
    }
    let chance = settled.chance();
    let counted = if chance == Some(true) { settled.counted(seen) } else { None };
    match (settled.alike(), settled.in_runs()) {
        // Over short round trips many cuts in each slot make rates alike, too, if chance strikes;
        // but not as often as all that.
        (Some(true), true) if chance != Some(true) || settled.lost_share() > HEAVY => {
            return Some(LimitingFactor::Policer);
        }
        // Both fit: chance in a stream of cuts, or what a rate drops.
        (Some(true), true) if counted.is_none() => return Some(LimitingFactor::Loss),
        // One segment at a time and at even times: a queue too short to show in round trips. Chance
        // has rates alike now and then, but not times.
        (Some(true), false) if settled.hit.len() >= FEWEST_EPOCHS => {
            let queue = settled.spacing().is_none_or(|spacing| spacing < EVEN_TIMES);
            return Some(if queue { LimitingFactor::Queue } else { LimitingFactor::Loss });
        }
        _ => {}
    }
    if let Some(is_counted) = counted {
        return Some(if is_counted { LimitingFactor::Policer } else { LimitingFactor::Loss });
    }
    // Losses this frequent make timeouts of most cuts: neither their places nor the rates between
    // them tell any more.
    if settled.lost_share() > HEAVY && chance != Some(false) {
        return Some(LimitingFactor::Loss);
    }
    if chance == Some(false) {
        return Some(if settled.excess() { LimitingFactor::Policer } else { LimitingFactor::Loss });
    }
    if settled.ran_dry() {
        return Some(LimitingFactor::Loss);
    }
    settled.explains(seen).then_some(LimitingFactor::RandomLoss)
}

/// What follows the first slow start, whose overshoot says nothing of the path but the size of its
/// queue; all of it, if nothing was lost later.
struct Settled<'a> {
    slots: &'a [Slot],
    /// Slots in which something was sent again.
    hit: Vec<usize>,
    /// Round trips from here on went through a queue.
    inflated: Duration,
    /// Up to here, hosts that stand still may have made them longer.
    by_hosts: Duration,
    /// Most of what was sent again had only been overtaken.
    needless: bool,
    /// Payload of a full segment.
    mss: f64,
    /// The shortest round trip.
    floor: Duration,
    /// Round trips from here on may have gone through a queue.
    doubtful: Duration,
    /// What was before, the end of slow start.
    ramp: &'a [Slot],
}

impl<'a> Settled<'a> {
    fn of(seen: &TransferSamples<'a>) -> Option<Self> {
        let all = seen.slots;
        let fresh = samples(seen.reports).next()?.ssthresh_segments.is_none();
        let first = hit(all).first().copied();
        let after = first.map_or(0, |first| {
            let calm = all[first..].iter().position(|slot| slot.retransmitted == 0);
            calm.map_or(all.len(), |calm| first + calm)
        });
        let mut begin = if fresh { after } else { 0 };
        if fresh && begin == all.len() {
            // Something is lost all the time: the ramp is over when the first loss is.
            begin = first.map_or(0, |first| (first + RAMP_SLOTS).min(all.len() / 2));
        }
        if hit(&all[begin..]).is_empty() {
            begin = 0;
        }
        let slots = &all[begin..];
        let floor = floor(seen)?;
        let fastest = all.iter().map(|slot| slot.bps).fold(1.0, f64::max);
        let mss = samples(seen.reports).map(|sample| sample.mss_octets).max().unwrap_or(0);
        let packets = Duration::try_from_secs_f64(QUEUE_PACKETS * 8.0 * f64::from(mss) / fastest).unwrap_or_default();
        let above =
            |packets| floor + INFLATED.min(HOSTS.max(floor / INFLATED_SHORT)).max(floor / INFLATED_SHARE).max(packets);
        let inflated = above(packets);
        Some(Self {
            slots,
            hit: hit(slots),
            inflated,
            by_hosts: floor.saturating_add(hosts::added(seen)),
            needless: needless(seen, begin),
            mss: f64::from(mss.max(1)),
            floor,
            doubtful: above(packets.mul_f64(DOUBTFUL)),
            ramp: &all[..begin],
        })
    }

    /// The rate over what the loss model allows with as many losses; `None` for congestion controls
    /// without a model.
    fn over_model(&self, seen: &TransferSamples<'_>) -> Option<f64> {
        let report = seen.reports.first()?;
        let stream = report.streams.first()?;
        let mss = f64::from(stream.samples.first()?.mss_octets);
        let lost: u64 = self.slots.iter().map(|slot| slot.retransmitted).sum();
        let sent: f64 = self.slots.iter().map(|slot| slot.bps * slot.seconds).sum::<f64>() / 8.0 / mss.max(1.0);
        let p = lost as f64 / (sent + lost as f64).max(1.0);
        let model = theory::loss_model_bps(&stream.congestion, p, floor(seen).unwrap_or_default(), mss)?;
        Some(series::mean_bps(self.slots).unwrap_or(0.0) / (model * report.streams.len() as f64))
    }

    /// Whether losses are frequent enough to explain the rate: the loss model does not promise
    /// several times as much.
    fn explains(&self, seen: &TransferSamples<'_>) -> bool {
        // A congestion control without a model has none to be contradicted by.
        self.over_model(seen).is_none_or(|over| over * MODEL > 1.0)
    }

    /// Losses as even as chance has them, at a rate that losses one by one would not allow: each
    /// cut of the window took several. Whether they are so even that bursts as long as that are
    /// out, too (the rate grows as the root of their length); `None` if losses one by one do.
    fn counted(&self, seen: &TransferSamples<'_>) -> Option<bool> {
        let lost: u64 = self.slots.iter().map(|slot| slot.retransmitted).sum();
        let over = self.over_model(seen).filter(|over| *over > BEYOND_MODEL && lost >= FEWEST_FOR_MODEL)?;
        let (unevenness, scatter) = self.unevenness()?;
        Some(unevenness + SURE * scatter < over * over)
    }

    /// Whether losses may as well be those of a queue: most came, or most of the time went by, with
    /// round trips that are longer by most of what makes a queue.
    fn may_be_full(&self) -> bool {
        let with = self.hit.iter().filter(|&&index| rtt_before(self.slots, index) >= self.doubtful).count();
        let slots = self.slots.iter().filter(|slot| slot.rtt >= self.doubtful).count();
        with * 2 > self.hit.len() || slots * 2 > self.slots.len()
    }

    /// Slow start lost more without a queue than chance takes, by what it took later.
    fn ran_dry(&self) -> bool {
        let low = self.ramp.iter().filter(|slot| slot.rtt < self.doubtful);
        let (lost, sent) = low.fold((0.0, 0.0), |(lost, sent), slot| {
            let resent = slot.retransmitted as f64;
            (lost + resent, sent + slot.bps * slot.seconds / 8.0 / self.mss + resent)
        });
        lost > MANY_AT_RAMP + MANY_TIMES * sent * self.lost_share()
    }

    /// A queue took what was lost, but has hardly been met since, at far lower rates: the window
    /// that losses left holds now, and what cut it that far is not known.
    fn left_queue(&self) -> bool {
        let behind = self.hit.last().map_or(self.slots, |last| &self.slots[last + 1..]);
        let before = self.slots.iter().map(|slot| slot.bps).fold(0.0, f64::max);
        let rate = series::mean_bps(behind);
        behind.len() * 3 >= self.slots.len()
            && self.queued_share(behind) < QUEUED_SHARE
            && rate.is_some_and(|rate| rate < FAR_BELOW * before)
    }

    /// Whether it is a queue that makes round trips long at losses, where hosts that stand still
    /// make them long as well: they are longer than by the hosts, or they are longer than at other
    /// times. Hosts know nothing of losses.
    fn beyond_hosts(&self) -> bool {
        let rtt = |index: usize| rtt_before(self.slots, index).as_secs_f64();
        let at: Vec<f64> = self.events().into_iter().map(rtt).collect();
        let others = (0..self.slots.len()).filter(|index| self.slots[*index].retransmitted == 0);
        let others: Vec<f64> = others.map(rtt).collect();
        self.by_hosts <= self.inflated
            || narrows_stat::median(&at).is_some_and(|typical| typical >= self.by_hosts.as_secs_f64())
            || narrows_stat::rank_sum(&at, &others).is_ok_and(|deviations| deviations >= SURE)
    }

    /// Share of the time in which round trips went through a queue.
    fn queued_share(&self, slots: &[Slot]) -> f64 {
        let queued = slots.iter().filter(|slot| slot.rtt >= self.inflated).count();
        queued as f64 / slots.len().max(1) as f64
    }

    /// How much more unevenly losses lie over slots than chance would have it that strikes each
    /// segment alike (1: just so; Pearson's statistic per degree of freedom), and by how much of it
    /// that scatters; of slots without a queue. `None` with too few losses. For a round trip after
    /// a loss nothing is acknowledged, and then much at once: slots are taken two round trips at a
    /// time.
    fn unevenness(&self) -> Option<(f64, f64)> {
        let slots: Vec<(f64, f64)> = (0..self.slots.len())
            .filter(|&index| rtt_before(self.slots, index) < self.inflated)
            .map(|index| (self.slots[index].retransmitted as f64, self.sent(index)))
            .collect();
        let sum = |some: &[(f64, f64)]| {
            let add = |sum: (f64, f64), slot: &(f64, f64)| (sum.0 + slot.0, sum.1 + slot.1);
            some.iter().fold((0.0, 0.0), add)
        };
        let slot = Duration::try_from_secs_f64(self.slots.first()?.seconds).ok()?;
        let together = (2 * self.floor).as_nanos().div_ceil(slot.as_nanos().max(1));
        let calm: Vec<(f64, f64)> = slots
            .chunks(usize::try_from(together).unwrap_or(usize::MAX).max(1))
            .map(sum)
            .filter(|(_, sent)| *sent > 0.0)
            .collect();
        let (lost, sent) = sum(&calm);
        if lost < FEWEST_LOST || calm.len() < FEWEST_EPOCHS {
            return None;
        }
        let ratio = lost / sent;
        let expected = |sent: f64| sent * ratio;
        let chi = calm.iter().map(|&(lost, sent)| (lost - expected(sent)).powi(2) / expected(sent));
        let slots = calm.len() as f64;
        // Each term of a Poisson count with mean m has variance 2 + 1/m, which slots that carried
        // little make much of.
        let variance: f64 = calm.iter().map(|&(_, sent)| 2.0 + 1.0 / expected(sent)).sum();
        Some((chi.sum::<f64>() / (slots - 1.0), variance.sqrt() / (slots - 1.0)))
    }

    /// Segments that left in a slot, as far as acknowledgements tell.
    fn sent(&self, index: usize) -> f64 {
        let slot = &self.slots[index];
        slot.bps * slot.seconds / 8.0 / self.mss + slot.retransmitted as f64
    }

    /// Share of the segments that were sent again.
    fn lost_share(&self) -> f64 {
        let lost: f64 = self.slots.iter().map(|slot| slot.retransmitted as f64).sum();
        let sent: f64 = (0..self.slots.len()).map(|index| self.sent(index)).sum();
        lost / sent.max(1.0)
    }

    /// Whether chance that strikes each segment alike would have had losses lie as they do; `None`
    /// with too few.
    fn chance(&self) -> Option<bool> {
        let (unevenness, scatter) = self.unevenness()?;
        Some(unevenness <= 1.0 + SURE * scatter)
    }

    /// Whether what was lost is what exceeded a rate: so much at once that no chance has it, or
    /// never but at the highest rates.
    fn excess(&self) -> bool {
        // Where something is lost in most slots, none is left to compare with.
        let rare = self.hit.len() * 2 < self.slots.len();
        self.largest() || (rare && self.above().is_some_and(|share| share <= ABOVE_LOSSES))
    }

    /// One event took a large share of what a round trip, or a slot, carried.
    fn largest(&self) -> bool {
        self.hit.iter().any(|&index| {
            let around = self.sent(index).max(index.checked_sub(1).map_or(0.0, |before| self.sent(before)));
            let lost = self.slots[index].retransmitted as f64;
            lost >= MANY_AT_ONCE && lost >= EXCESS * around
        })
    }

    /// Share of what was carried without loss that went at a higher rate than the typical loss came
    /// at; `None` with few losses.
    fn above(&self) -> Option<f64> {
        let rate = |index: usize| self.sent(index) / self.slots[index].seconds;
        let at_losses: Vec<f64> =
            self.events().iter().map(|&index| rate(index).max(index.checked_sub(1).map_or(0.0, rate))).collect();
        if at_losses.len() < FEWEST_EPOCHS {
            return None;
        }
        let typical = narrows_stat::median(&at_losses)?;
        let calm: Vec<usize> = (0..self.slots.len())
            .filter(|index| self.slots[*index].retransmitted == 0 && !self.hit.contains(&(index + 1)))
            .collect();
        let all: f64 = calm.iter().map(|&index| self.sent(index)).sum();
        let above: f64 = calm.iter().filter(|&&index| rate(index) > typical).map(|&index| self.sent(index)).sum();
        Some(if all > 0.0 { above / all } else { 0.0 })
    }

    /// A congestion control that goes by a model of the path, and not by loss.
    fn is_model(seen: &TransferSamples<'_>) -> bool {
        let mut streams = seen.reports.iter().flat_map(|report| &report.streams);
        streams.any(|stream| stream.congestion == Congestion::Bbr)
    }

    /// BBR asks for a quarter more in one phase of eight: what holds its rate either lets a queue
    /// grow then or drops it.
    fn beside_model(&self) -> Option<LimitingFactor> {
        if self.lost_share() < PROBED {
            return None;
        }
        Some(if self.queued_share(self.slots) < QUEUED_SHARE { LimitingFactor::Policer } else { LimitingFactor::Queue })
    }

    /// Losses come several at a time.
    fn in_runs(&self) -> bool {
        let lost: u64 = self.slots.iter().map(|slot| slot.retransmitted).sum();
        lost as f64 >= RUN * self.events().len() as f64
    }

    /// How much the time from loss to loss varies (1: as chance has it); `None` with too few.
    fn spacing(&self) -> Option<f64> {
        let events = self.events();
        let gaps: Vec<f64> = events.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        narrows_stat::coefficient_of_variation(&gaps).filter(|_| gaps.len() >= FEWEST_EPOCHS)
    }

    /// First slots of losses; those in neighbouring slots are one.
    fn events(&self) -> Vec<usize> {
        let begins = |&&index: &&usize| index == 0 || self.slots[index - 1].retransmitted == 0;
        self.hit.iter().filter(begins).copied().collect()
    }

    /// Whether what is carried from loss to loss is so alike that something counts it. `None` with
    /// too few.
    fn alike(&self) -> Option<bool> {
        let events = self.events();
        let rates: Vec<f64> = if self.hit.len() * 2 > self.slots.len() {
            // Something is lost in most slots: they are as good as losses.
            self.slots.iter().map(|slot| slot.bps).collect()
        } else {
            // What comes before the first loss counts only where there is little else.
            let head = (events.len() <= FEWEST_ALIKE && events.first() != Some(&0)).then_some(0);
            let bounds: Vec<usize> = head.into_iter().chain(events).collect();
            bounds.windows(2).filter_map(|pair| series::mean_bps(&self.slots[pair[0]..pair[1]])).collect()
        };
        (rates.len() >= FEWEST_ALIKE).then_some(())?;
        Some(narrows_stat::coefficient_of_variation(&rates)? < PERIODIC)
    }
}

/// How losses lie in time, after the first slow start: how many are lost together against what
/// chance would have, and how much the time between them varies.
pub fn pattern(seen: &TransferSamples<'_>) -> Option<(f64, Option<f64>)> {
    let settled = Settled::of(seen)?;
    let lost: u64 = settled.slots.iter().map(|slot| slot.retransmitted).sum();
    if settled.hit.len() < FEWEST_EPOCHS {
        return None;
    }
    let mean = lost as f64 / settled.slots.len() as f64;
    let by_chance = mean / (1.0 - (-mean).exp());
    Some((lost as f64 / settled.hit.len() as f64 / by_chance, settled.spacing()))
}

/// Most of what was sent again from this slot on had not been lost.
fn needless(seen: &TransferSamples<'_>, begin: usize) -> bool {
    let mut sums = (0u64, 0u64, 0u64);
    for stream in seen.reports.iter().flat_map(|report| &report.streams) {
        // Several reports are judged whole.
        let begin = if seen.reports.len() == 1 { begin } else { 0 };
        let (Some(from), Some(to)) = (stream.samples.get(begin).or(stream.samples.first()), stream.samples.last())
        else {
            continue;
        };
        let counted = |from: Option<u32>, to: Option<u32>| u64::from(to.unwrap_or(0).saturating_sub(from.unwrap_or(0)));
        sums.0 += counted(from.marks.needless, to.marks.needless);
        sums.1 += counted(from.marks.reordered, to.marks.reordered);
        sums.2 += u64::from(to.retransmitted_segments.saturating_sub(from.retransmitted_segments));
    }
    let (needless, reordered, resent) = sums;
    reordered > 0 && resent > 0 && needless as f64 >= NEEDLESS * resent as f64
}

/// The shortest round trip that the connections know.
fn floor(seen: &TransferSamples<'_>) -> Option<Duration> {
    samples(seen.reports).map(|sample| sample.min_rtt.unwrap_or(sample.rtt)).min()
}

/// How much longer than the shortest the median round trip is.
pub(super) fn queued(seen: &TransferSamples<'_>) -> Duration {
    let median = series::median_rtt(seen.slots).unwrap_or_default();
    floor(seen).map_or(Duration::ZERO, |floor| median.saturating_sub(floor))
}

/// Slots in which something was sent again.
fn hit(slots: &[Slot]) -> Vec<usize> {
    (0..slots.len()).filter(|&index| slots[index].retransmitted > 0).collect()
}

/// The longest round trip about a loss: a slot's own is that of its end, when a queue may have
/// drained.
fn rtt_before(slots: &[Slot], index: usize) -> Duration {
    let before = index.checked_sub(1).map_or(Duration::ZERO, |before| slots[before].rtt);
    before.max(slots[index].rtt)
}

#[cfg(test)]
mod tests;
