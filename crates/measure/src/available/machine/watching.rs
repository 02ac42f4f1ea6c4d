//! Small packets between the trains, which tell for how much of the time bursts keep the path busy.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

use super::super::answer::{Ending, FLOOR};
use super::super::bursts::{Outside, STANDS};
use super::super::busy::{Busy, FREE_PACKETS};
use super::super::levels::NORMAL;
use super::super::params::Mode;
use super::super::train::TrainSlope;
use super::Machine;
use super::ending::FAIR;
use narrows_probe::Step;
use narrows_probe::probes::{Probe, Train, TrainId, TrainReport};
use narrows_train::carried::Carried;
use narrows_train::train_method::{arrived_ns, whole_packets};

/// IP octets of a small packet (ours: what every link and host takes).
const OCTETS: u16 = 96;
/// Share of the path's rate that they take (ours: a packet in the time of six full ones), and
/// their least gap.
const LOAD: f64 = 0.01;
const LEAST_GAP: Duration = Duration::from_micros(300);
/// Fewest packets of a train of them (ours).
const FEWEST: usize = 16;
/// A pause is watched but for so many times what reports took beyond their trains (ours: the next
/// train is not to wait).
const OVERHEAD: f64 = 1.25;
/// Time that is watched at least, at most, and what is added at once, seconds (ours).
const LEAST: f64 = 0.5;
const MOST: f64 = 2.0;
/// After this time nothing but the bursts' own error is waited for, seconds (ours).
const ENOUGH: f64 = 1.0;
const MORE: f64 = 0.75;
/// And for so long where nothing is seen (ours: five bursts a second are, with some certainty).
const CALM: f64 = 1.0;
/// Fewest trains outside bursts that count alone (ours).
const FEWEST_TRAINS: usize = 3;
/// Delay from which on a packet waits: this much, so many full packets' time on the path or batches
/// of the receiver, and this share of the run (a hundred parts in a million: clocks that drift).
const WAITS: f64 = 0.000_3;
const WAITS_PACKETS: f64 = 3.0;
const DRIFT: f64 = 1e-4;
/// So many times what half of them wait (ours: waiting is exponential, and half of them wait for a
/// quarter of the mean or more where a link is busy for two thirds of the time; exp(-8) are eight
/// means).
const LONGER: f64 = 32.0;
/// The queue that a train left behind drains by what is free. That time is not watched, but at
/// least and at most so many times the delay left (ours: what is free is not known well).
const LEFT: (f64, f64) = (3.0, 12.0);

/// Behind a token bucket: traffic of a twentieth slows a train at the path's rate by as much, and
/// of their time a third is outside bursts (ours).
const SLOWED: f64 = 0.05;
const ALONE: f64 = 0.33;

/// What follows the small packets that are under way.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Watching {
    /// The next train, at that time.
    Between(Stamp<Sender>),
    /// The end of the run.
    Last(Ending),
}

impl Machine {
    /// Small packets for the time until the next train.
    pub(super) fn watch_until(&mut self, now: Stamp<Sender>, until: Stamp<Sender>) -> Option<Step> {
        if self.seen.watch.time() >= CALM && self.bursts().is_none() {
            return None;
        }
        let spare = until.since(now).as_secs_f64() - OVERHEAD * self.overhead.as_secs_f64();
        let train = self.watch_for(spare)?;
        self.watching = Some(Watching::Between(until));
        Some(Step::Send(Probe::Train(train)))
    }

    /// Small packets at the end of a run that has not watched for long enough.
    pub(super) fn watch_last(&mut self, ending: &Ending) -> Option<Step> {
        let wanted = LEAST - self.seen.watch.time();
        let time = if wanted > 0.0 { wanted } else { self.wants_more().then_some(MORE)? };
        let train = self.watch_for(time)?;
        self.watching = Some(Watching::Last(ending.clone()));
        Some(Step::Send(Probe::Train(train)))
    }

    fn wants_more(&self) -> bool {
        let unsure = |busy: &Busy| NORMAL * busy.error * self.available > FAIR * self.scale().rate;
        self.seen.watch.time() < MOST
            && self.busy().is_some_and(|busy| busy.matters() && busy.is_all_bursts() && unsure(&busy))
    }

    fn watch_for(&mut self, seconds: f64) -> Option<Train> {
        if self.params.mode != Mode::Slope || self.replayed || self.no_watch || self.seen.trains.is_empty() {
            return None;
        }
        let gap = 8.0 * f64::from(OCTETS) / (LOAD * self.scale().rate);
        let gap = Duration::try_from_secs_f64(gap).ok()?.max(LEAST_GAP);
        let packets = whole_packets(seconds / gap.as_secs_f64()).min(self.params.max_packets);
        if packets < FEWEST {
            return None;
        }
        let id = TrainId(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        Some(Train::uniform(id, packets, OCTETS, gap))
    }

    /// Whether a train of a recording is of small packets.
    pub(super) fn is_watch(&self, train: &Train) -> bool {
        let rate = train.planned_rate().map_or(f64::INFINITY, narrows_units::BitRate::as_f64);
        let small = train.packets.iter().all(|packet| packet.ip_octets == OCTETS);
        small && self.seen.scale().is_some_and(|scale| rate <= 2.0 * LOAD * scale)
    }

    /// Takes a train of small packets.
    pub(super) fn take_watch(&mut self, now: Stamp<Sender>, report: &TrainReport, then: Watching) -> Step {
        let watched = arrived(report).filter(|&(_, arrived)| arrived > self.drained_ns);
        self.seen.watch.push(watched.map(|(departed, arrived)| (departed, arrived.saturating_sub(departed))).collect());
        match then {
            Watching::Between(until) => self.wait_or_send(now, until),
            Watching::Last(ending) => self.end(now, ending),
        }
    }

    /// The world does not send them: the run goes on without.
    pub(super) fn without_watch(&mut self, now: Stamp<Sender>, then: Watching) -> Step {
        self.no_watch = true;
        match then {
            Watching::Between(_) => self.send(now),
            Watching::Last(ending) => self.end(now, ending),
        }
    }

    /// Notes when the queue that a train left has drained, by the receiver's clock, and how long
    /// its report took.
    pub(super) fn note_left(&mut self, now: Stamp<Sender>, report: &TrainReport) {
        self.overhead = now.since(self.train_began).saturating_sub(self.planned);
        let (Some((departed, arrived)), Some(base)) = (arrived(report).last(), self.base_ns()) else { return };
        let left = arrived.saturating_sub(departed).saturating_sub(base).max(0);
        let drains = (self.scale().rate / self.available).clamp(LEFT.0, LEFT.1);
        #[expect(clippy::cast_possible_truncation, reason = "some times a delay")]
        let drained = (drains * left as f64) as i64;
        self.drained_ns = arrived.saturating_add(drained);
    }

    /// The least delay of all packets, ns.
    fn base_ns(&self) -> Option<i64> {
        let trains = Carried::base(self.seen.trains.iter().map(|train| train.carried));
        trains.into_iter().chain(self.seen.watch.least_ns()).min()
    }

    /// Delay from which on a packet waits, seconds: hosts and clocks do the rest.
    fn waits(&self) -> f64 {
        let scale = self.scale();
        let began = self.seen.trains.first().map_or(self.began, |train| train.at);
        let run = self.train_began.since(began).as_secs_f64();
        let batch = self.seen.batch.unwrap_or_default().as_secs_f64();
        WAITS.max(WAITS_PACKETS * (scale.packet / scale.rate).max(batch)).max(DRIFT * run)
    }

    /// What small packets tell is enough, or all that there will be: how long bursts last, and what
    /// is free between them.
    pub(super) fn watched_enough(&self, now: Stamp<Sender>) -> bool {
        let Some(busy) = self.bursts() else { return false };
        let scale = self.scale().rate;
        let outside = Outside::by_free(busy, scale, FLOOR * scale);
        let half = (NORMAL * busy.error * outside.available).hypot((1.0 - busy.share) * outside.width() / 2.0);
        let named = busy.is_all_bursts() && !self.seen.is_in_doubt(busy);
        (named && busy.time >= ENOUGH && half <= FAIR * scale) || self.is_over(now)
    }

    /// Whether more trains would tell bursts from pauses of the receiving host.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.bursts().is_some_and(|busy| self.seen.is_in_doubt(busy))
    }

    /// What small packets saw of bursts, if there were any.
    pub(super) fn bursts(&self) -> Option<Busy> {
        self.busy().filter(|busy| busy.matters() || self.seen.jumps.any())
    }

    /// What the small packets saw.
    fn busy(&self) -> Option<Busy> {
        let (base_ns, scale) = (self.base_ns()?, self.scale());
        // Packets that even traffic of others comes with wait behind a bucket no more than those
        // that come alone.
        let hides = self.seen.bucket_known && !self.passed_alone();
        let watch = |waits_ns| {
            let free_ns = 1e9 * FREE_PACKETS * scale.packet / scale.rate;
            let busy = self.seen.watch.busy(base_ns, waits_ns, free_ns)?;
            Some(if hides { Busy { free: 0.0, free_error: 0.0, ..busy } } else { busy })
        };
        let all = watch(1e9 * self.waits())?;
        if all.is_all_bursts() || all.share >= STANDS {
            return Some(all);
        }
        // Beside even traffic, those that wait for much longer than half of them do.
        watch((1e9 * self.waits()).max(LONGER * self.seen.watch.half(base_ns)?))
    }

    /// Whether trains at the path's rate came as they left for so much of their time that nothing
    /// but bursts can have been beside them.
    fn passed_alone(&self) -> bool {
        let path = self.scale().rate;
        let fast = || self.seen.trains.iter().filter(|train| train.rate_in >= (1.0 - SLOWED) * path);
        let alone = |train: &&TrainSlope| train.rate_out >= (1.0 - SLOWED) * train.rate_in.min(path);
        let alone: f64 = fast().filter(alone).map(|train| train.send_time).sum();
        alone > ALONE * fast().map(|train| train.send_time).sum::<f64>()
    }

    /// Marks the trains that found a burst's queue when they came, unless hardly one did not.
    pub(super) fn mark_met(&mut self) {
        let (bursts, base, waits) = (self.bursts().is_some(), self.base_ns().unwrap_or(i64::MAX), self.waits());
        for train in &mut self.seen.trains {
            let waited = train.carried.least_ns().saturating_sub(base) as f64 * 1e-9;
            train.found_burst = bursts && waited > waits;
        }
        let enough = self.seen.trains.iter().filter(|train| !train.found_burst).count() >= FEWEST_TRAINS;
        for train in &mut self.seen.trains {
            train.met_burst = enough && train.found_burst;
        }
    }
}

/// Departures and arrivals of the packets that arrived, each by its own clock, ns.
fn arrived(report: &TrainReport) -> impl Iterator<Item = (i64, i64)> + '_ {
    report.arrivals.iter().filter_map(|row| Some((row.departed.nanos(), arrived_ns(row)?)))
}
