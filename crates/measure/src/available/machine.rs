//! Which train comes next, and when enough of them have been seen.

mod bucket;
mod ending;
mod full_queue;
mod hosts;
mod per_packet;
mod sending;
mod watching;

use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp};

use self::full_queue::FullQueueLook;
use self::per_packet::TurningPointOf;
use self::watching::Watching;
use super::answer::{AT_MAX, Ending, FLOOR, RunAccount, TurningPointVerdict};
use super::coarse;
use super::curve;
use super::params::{Mode, Params};
use super::pooled::{Capacity, PooledEstimate, narrow, pooled};
use super::sizes::{FIRST_PACKETS, SHORTEST};
use super::train::{Prior, TrainSlope, Unusable, analyse};
use narrows_probe::observations::Replayable;
use narrows_probe::probes::{Probe, Train, TrainId, TrainReport};
use narrows_probe::{Estimator, Event, Outcome, PathFacts, Reason, Refusal, Step};
use narrows_train::bucket_head;
use narrows_train::train_method::whole_packets;

/// Rounds of the feedback map.
const COARSE_ROUNDS: usize = 5;
/// Trains that may be thrown away for each reason.
const RETRY_LIMIT: u32 = 6;
/// Batches that a train is to span.
const BATCHES: f64 = 20.0;
/// Share of the delay that a head builds from which on the train counts (ours: the traffic of
/// others may have let less of it stand).
const FILLED: f64 = 0.25;
/// A turning point whose interval ends below this share of the receiving host's rate is the path's.
const BELOW_HOST: f64 = 0.95;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The feedback map.
    Coarse,
    /// Trains near the turning point.
    Near,
}

/// The state machine.
#[derive(Debug)]
pub struct Machine {
    params: Params,
    facts: Option<PathFacts>,
    phase: Phase,
    seen: RunAccount,
    pooled: Option<PooledEstimate>,
    /// Estimate so far, bit/s.
    available: f64,
    /// Rate of the train under way or next; `None` is as fast as the host can.
    rate: Option<f64>,
    packets: usize,
    next_id: u32,
    /// Bits of queue that a train may build, once losses have said so.
    burst: Option<f64>,
    /// Packets that stamps and batches ask for.
    least_packets: usize,
    near_sent: usize,
    /// Packets at the head of the train under way or next, and the delay from which it counts.
    priming_packets: (usize, f64),
    /// Packets before that head, which only empty a bucket.
    emptying: usize,
    /// Octets of which that is at most.
    deepest: u64,
    no_congestion_seen: u32,
    /// Trains in a row that stayed below the plan, and the highest rate among them.
    pacing_shortfall: (u32, f64),
    /// Share of the rate asked for that the sender keeps to in the mean of a train, and the time
    /// that the train under way should take.
    achieved_rate_ratio: f64,
    planned: Duration,
    turning_point_of: TurningPointOf,
    /// Trains that ask whether others keep the queue full are under way.
    full_queue: Option<FullQueueLook>,
    looked_early: bool,
    /// Small packets are under way, and what follows.
    watching: Option<Watching>,
    /// The world does not send them.
    no_watch: bool,
    /// How much longer than its train the last report took, and when the queue that the train left
    /// had drained, by the receiver's clock, ns.
    overhead: Duration,
    drained_ns: i64,
    /// The trains are those of a recording.
    replayed: bool,
    began: Stamp<Sender>,
    train_began: Stamp<Sender>,
}

impl Machine {
    /// Ready to start.
    pub fn new(params: Params) -> Self {
        Self {
            seen: RunAccount {
                capacity: params.capacity,
                narrow: params.narrow,
                least: params.least.max(params.narrow),
                bucket_known: params.bucket.is_some(),
                bucket_octets: params.bucket.filter(|_| params.bucket_peak.is_some()),
                ..RunAccount::default()
            },
            phase: Phase::Coarse,
            facts: None,
            pooled: None,
            available: 0.0,
            rate: None,
            packets: FIRST_PACKETS,
            next_id: 0,
            burst: None,
            least_packets: 0,
            near_sent: 0,
            priming_packets: (0, 0.0),
            emptying: 0,
            deepest: bucket::DEEPEST,
            no_congestion_seen: 0,
            pacing_shortfall: (0, 0.0),
            achieved_rate_ratio: 1.0,
            planned: Duration::ZERO,
            turning_point_of: TurningPointOf::default(),
            full_queue: None,
            looked_early: false,
            watching: None,
            no_watch: false,
            overhead: Duration::ZERO,
            drained_ns: i64::MIN,
            replayed: false,
            began: Stamp::from_nanos(0),
            train_began: Stamp::from_nanos(0),
            params,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        self.seen.packet_octets = self.params.ip_octets.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        self.seen.max_rate = facts.max_paced_rate(self.seen.packet_octets).map(BitRate::as_f64);
        self.seen.interface_rate = facts.sender.interface_rate;
        self.seen.rate_cap = facts.rate_cap;
        let sigma = facts.receiver.stamp_error + facts.receiver.clock_resolution;
        self.rate = self.seen.max_rate;
        if let Some(start) = self.params.start.map(BitRate::as_f64) {
            self.available = start;
            self.phase = Phase::Near;
            self.rate = Some(self.seen.max_rate.map_or(1.2 * start, |max| max.min(1.2 * start)));
            self.least_packets = whole_packets(50.0 * sigma.as_secs_f64() * start / self.packet_bits());
        }
        self.facts = Some(facts);
        self.send(now)
    }

    fn send(&mut self, now: Stamp<Sender>) -> Step {
        if let Some(step) = self.next_full(now) {
            return step;
        }
        let rate = self.rate.and_then(BitRate::from_bps_f64).unwrap_or(BitRate::ZERO);
        let id = TrainId(self.next_id);
        let train = if self.phase == Phase::Near && self.params.mode == Mode::Curve && rate != BitRate::ZERO {
            self.curve_train(id)
        } else {
            self.headed(Train::at_rate(
                id,
                self.packets + self.priming_packets.0,
                self.seen.packet_octets,
                self.asked(rate),
            ))
        };
        self.planned = train.duration();
        let train = self.behind_bucket(train);
        self.next_id = self.next_id.wrapping_add(1);
        self.train_began = now;
        Step::Send(Probe::Train(train))
    }

    fn train(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        if let Some(then) = self.watching.take() {
            return self.take_watch(now, report, then);
        }
        if matches!(self.turning_point_of, TurningPointOf::Asked { .. }) {
            return self.take_half_size(now, report);
        }
        let octets = report.arrivals.iter().map(|row| u64::from(row.ip_octets)).sum();
        if self.full_queue.is_some() {
            return self.take_full(now, report, octets);
        }
        self.seen.count(report);
        let behind = bucket_head::without(report, self.emptying);
        let ending = if self.was_too_shallow(&behind) {
            None
        } else {
            self.seen.buckets.take_headed(&behind, self.priming_packets.0);
            self.read(now, &behind)
        };
        self.note_left(now, report);
        if let Some(ending) = ending {
            return self.end(now, ending);
        }
        if self.seen.count >= self.params.max_trains || self.is_dear() {
            return self.end(now, Ending::Exhausted);
        }
        self.priming_packets = (0, 0.0);
        self.packets = self.length();
        self.prime();
        self.look_early();
        self.pause(now, octets)
    }

    fn read(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Option<Ending> {
        let prior = self.prior();
        if self.phase == Phase::Near && self.params.mode == Mode::Curve {
            let capacity = self.capacity().map(Capacity::rate);
            return match curve::fit(report, prior, capacity) {
                Ok(shape) => self.take_curve(now, report, shape),
                Err(flaw) => self.discard(flaw),
            };
        }
        if let Some(ending) = self.lossy(report) {
            return ending;
        }
        match analyse(report, prior) {
            Ok(mut train) => {
                train.receiver_bound = self.facts.as_ref().is_some_and(|facts| {
                    let octets = self.seen.packet_octets;
                    facts.receiver.stamps_limit(train.rate_out, octets, report.arrived_by)
                });
                self.take(now, train)
            }
            Err(flaw) => self.discard(flaw),
        }
    }

    fn prior(&self) -> Option<Prior> {
        let fastest = self.seen.scale()?;
        Some(Prior {
            fastest,
            backlogged_from: (FILLED * self.priming_packets.1).max(3.0 * self.packet_bits() / fastest),
            priming_packets: self.priming_packets.0,
        })
    }

    /// Repeats a train that says nothing, or gives up.
    fn discard(&mut self, flaw: Unusable) -> Option<Ending> {
        let (count, reason) = match flaw {
            Unusable::AllLost => {
                self.shrink(0.5 * self.packets as f64 * self.packet_bits());
                (&mut self.seen.all_lost, Reason::NoAnswer)
            }
            Unusable::ClockStep => (&mut self.seen.clock_steps, Reason::NoAgreement),
            Unusable::Jumped(jump) => {
                self.seen.clock_steps += u32::from(self.seen.jumps.push(jump));
                return None;
            }
            Unusable::FewBatches => {
                self.least_packets = self.least_packets.max(2 * self.packets).min(self.params.max_packets);
                (&mut self.seen.few_batches, Reason::ReceiveBatching)
            }
        };
        *count += 1;
        (*count > RETRY_LIMIT).then_some(Ending::Flawed(reason))
    }

    fn take(&mut self, now: Stamp<Sender>, train: TrainSlope) -> Option<Ending> {
        self.seen.clock_steps += u32::from(self.seen.jumps.next(train.carried.least_ns()));
        if let Some(batch) = train.batch {
            self.seen.batch = Some(self.seen.batch.map_or(batch, |seen| seen.max(batch)));
            let per_batch = batch.as_secs_f64() * train.rate_in.min(train.rate_out) / self.packet_bits();
            let wanted = whole_packets(BATCHES * per_batch).min(self.params.max_packets);
            self.least_packets = self.least_packets.max(wanted);
            if 2 * train.packets < wanted {
                return self.discard(Unusable::FewBatches);
            }
        }
        self.note_sender(&train);
        self.note_kept(&train);
        self.note_queue(&train);
        self.seen.paused += u32::from(train.pauses > 0);
        let at_max = self.seen.max_rate.is_some_and(|max| train.rate_sent >= AT_MAX * max);
        self.no_congestion_seen = if train.is_quiet() { self.no_congestion_seen + 1 } else { 0 };
        let rate_in = train.rate_in;
        self.seen.trains.push(train);
        if at_max && self.quiet_at_most() {
            return Some(Ending::HostLimited);
        }
        match self.phase {
            Phase::Coarse => {
                self.converge(at_max, rate_in);
                None
            }
            Phase::Near => self.refine(now),
        }
    }

    fn converge(&mut self, at_max: bool, rate_in: f64) {
        match coarse::next_rate(&self.seen.trains) {
            None if at_max => self.rate = self.seen.max_rate,
            None => {
                self.available = rate_in;
                self.begin_near();
            }
            Some(next) => {
                self.available = next;
                self.rate = Some(next);
                let settled = rate_in.is_finite() && (rate_in - next).abs() <= 0.1 * rate_in;
                if settled || self.seen.trains.len() >= COARSE_ROUNDS {
                    self.begin_near();
                }
            }
        }
    }

    fn begin_near(&mut self) {
        self.phase = Phase::Near;
        self.update();
        self.next_near();
    }

    fn capacity(&self) -> Option<Capacity> {
        if let Some(known) = self.params.capacity {
            return Some(Capacity::Known(known.as_f64()));
        }
        if let Some(narrow) = self.params.narrow {
            return Some(Capacity::Narrow { rate: narrow.as_f64(), error: 0.02 });
        }
        let fastest = self.seen.scale()?;
        // Without a train far above the turning point: the interface's rate, if the sender reaches
        // it, else what came through at most.
        let interface = self.seen.interface_rate.map(BitRate::as_f64);
        let fallback = interface.filter(|rate| *rate <= 1.3 * fastest).unwrap_or(fastest).max(fastest);
        Some(narrow(&self.seen.trains, self.available).unwrap_or(Capacity::Narrow { rate: fallback, error: 0.1 }))
    }

    /// What all trains say by now. Those that the receiving host slowed down say nothing of the
    /// path, unless they are all there is.
    fn update(&mut self) -> Option<bool> {
        let (scale, capacity) = (self.scale().rate, self.capacity()?);
        let by_curves = !self.seen.curves.is_empty() || self.seen.flat_curves > 0;
        if self.params.mode == Mode::Curve && self.phase == Phase::Near && by_curves {
            // Curves without a turning point say that it lies elsewhere than the first trains had
            // it: those no longer count.
            self.pooled = super::curves::pooled(&self.seen.curves, scale);
            return Some(false);
        }
        self.mark_met();
        let host = self.seen.trains.iter().filter(|train| train.receiver_bound);
        let Some(most) = host.map(|train| train.rate_out).reduce(f64::max) else {
            self.pooled = pooled(&self.seen.trains, self.available, scale, capacity);
            return Some(false);
        };
        let path: Vec<TrainSlope> = self.seen.trains.iter().filter(|train| !train.receiver_bound).cloned().collect();
        let found = pooled(&path, self.available, scale, capacity)
            .filter(|found| found.available + found.half_width(FLOOR * scale) < BELOW_HOST * most);
        let receiver = found.is_none();
        self.pooled = found.or_else(|| pooled(&self.seen.trains, self.available, scale, capacity));
        Some(receiver)
    }

    fn refine(&mut self, now: Stamp<Sender>) -> Option<Ending> {
        self.seen.began.get_or_insert(self.train_began);
        self.seen.ended = Some(now);
        self.update();
        if let Some(found) = &self.pooled {
            self.available = found.available;
            if self.enough(now, found) {
                return Some(Ending::Settled);
            }
        } else {
            // Not overloaded yet: the turning point lies higher than believed.
            let reached = self.seen.trains.last().map_or(0.0, |last| last.rate_in);
            self.available = self.available.max(reached);
            if self.is_long(now) {
                return Some(Ending::Exhausted);
            }
        }
        self.next_near();
        None
    }

    fn take_curve(&mut self, now: Stamp<Sender>, report: &TrainReport, shape: curve::Shape) -> Option<Ending> {
        match shape {
            curve::Shape::TurningPoint(found) => {
                let (first, last) = (report.arrivals.first()?, report.arrivals.last()?);
                let length = last.departed.since(first.departed);
                if self.seen.curves.is_empty() {
                    self.available = found.available;
                }
                self.seen.curves.push((first.departed, length, found));
                self.seen.flat_curves = 0;
            }
            curve::Shape::Flat => {
                self.seen.flat_curves += 1;
                // More is available than the highest rate of the train, which is not the mean that
                // it left at.
                let sent = report.departure_rate().map_or(0.0, BitRate::as_f64);
                let top = self.rate.unwrap_or(sent);
                let at_max = self.seen.max_rate.is_some_and(|max| self.rate.is_some_and(|rate| rate >= AT_MAX * max));
                if self.seen.flat_curves >= 3 && at_max {
                    return Some(Ending::HostLimited);
                }
                if self.seen.flat_curves > 2 * RETRY_LIMIT {
                    return Some(Ending::Flawed(Reason::NoAgreement));
                }
                // One turning point is too few to look around.
                if self.seen.curves.len() < 2 {
                    self.available = self.available.max(top);
                }
            }
        }
        self.refine(now)
    }

    fn packet_bits(&self) -> f64 {
        f64::from(self.seen.packet_octets.max(1)) * 8.0
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        if let Some(then) = self.watching.take() {
            return self.without_watch(now, then);
        }
        if let TurningPointOf::Asked { ending, .. } = std::mem::take(&mut self.turning_point_of) {
            // Nobody can tell, and the answer says so.
            return self.done(&ending);
        }
        let reason = match refusal {
            Refusal::TooLarge { max_ip_octets } if max_ip_octets < self.seen.packet_octets && max_ip_octets > 0 => {
                self.seen.packet_octets = max_ip_octets;
                return self.send(now);
            }
            Refusal::TooSmall { min_ip_octets } if min_ip_octets > self.seen.packet_octets => {
                self.seen.packet_octets = min_ip_octets;
                return self.send(now);
            }
            Refusal::ForbiddenByPeer => Reason::ForbiddenByPeer,
            Refusal::TooLarge { .. } | Refusal::TooSmall { .. } | Refusal::NotOffered => {
                Reason::NotOffered { what: "paced trains towards a receiver".to_owned() }
            }
        };
        self.done(&Ending::Flawed(reason))
    }

    fn done(&mut self, ending: &Ending) -> Step {
        let receiver = self.update().unwrap_or(false) || self.is_hosts();
        let verdict = TurningPointVerdict { pooled: self.pooled.as_ref(), receiver, busy: self.bursts() };
        Step::Done(self.seen.finish(ending, &verdict))
    }
}

impl Replayable for Machine {
    const READS: (&'static str, &'static str) = ("slope", "trains of 16 packets or more of one size to the receiver");

    /// Any train at one rate says how its delays grow.
    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Train(train) = asked else { return false };
        self.replayed = true;
        if self.is_watch(train) {
            self.watching = Some(Watching::Between(self.train_began));
            return true;
        }
        let Some(first) = train.packets.first() else {
            return false;
        };
        let alike = train.packets.iter().all(|packet| packet.ip_octets == first.ip_octets);
        if !alike || train.packets.len() < SHORTEST {
            return false;
        }
        self.packets = train.packets.len();
        self.priming_packets = (0, 0.0);
        self.emptying = 0;
        self.rate = train.planned_rate().map(BitRate::as_f64);
        self.planned = train.duration();
        self.seen.packet_octets = first.ip_octets;
        true
    }
}

impl Estimator for Machine {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => self.start(now, facts),
            Event::Train(report) => self.train(now, &report),
            Event::TimerFired => self.send(now),
            Event::Refused(refusal) => self.refused(now, refusal),
            Event::Stop(reason) => self.done(&Ending::Stopped(reason)),
            Event::Load(_) | Event::Transfer(_) | Event::Capture(_) => {
                Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent))
            }
        }
    }
}
