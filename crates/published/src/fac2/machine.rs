//! Which train comes next, and when enough of them have been seen.

use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp};

use super::feedback::{Feedback, Next};
use super::finish::{Ending, RunAccount};
use super::fit::{self, Fit};
use super::{Params, Preset};
use narrows_probe::observations::Replayable;
use narrows_probe::probes::{Probe, Train, TrainId, TrainReport};
use narrows_probe::{Estimator, Event, Outcome, PathFacts, Reason, Refusal, Step};
use narrows_train::reading::{Reading, Unusable, read};
use narrows_train::train_method::{refusal_reason, whole_packets};

/// Packets of the first train, whose rate may be far too high.
const FIRST_PACKETS: usize = 50;
/// Fewest packets of a train, unless losses shorten it.
const MIN_PACKETS: usize = 50;
/// Most packets of a train, unless stamps ask for more.
const MAX_PACKETS: usize = 600;
/// Fewest packets to which losses shorten a train.
const SHORTEST: usize = 16;
/// Rounds of the feedback map.
const COARSE_ROUNDS: usize = 6;
/// Rates of the slope trains relative to the estimate, in shares of the path's rate.
const STEPS: [f64; 5] = [0.12, 0.35, 0.0, 0.12, -0.1];
/// Trains that may be thrown away for each reason.
const RETRY_LIMIT: u32 = 6;
/// Width at which there is nothing left to average: the floor of the interval, and a little.
const EXACT: f64 = 0.045;
/// Width of the interval that ends the run before its time, as a share of the path's rate.
const NARROW: f64 = 0.06;
/// Time for which a run goes on for a narrower interval.
const UNHURRIED: Duration = Duration::from_secs(3);
/// Batches that a train is to span.
const BATCHES: f64 = 20.0;
/// A train at this share of the sender's highest rate counts as being there.
const AT_MAX: f64 = 0.97;
/// Loss in a train up to which it is used without a word.
const LOSS_TOLERATED: f64 = 0.03;
/// Loss in a train up to which it is used at all.
const LOSS_LIMIT: f64 = 0.15;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The feedback map.
    Converge,
    /// The constant-rate slopes.
    Refine,
}

/// The state machine.
#[derive(Debug)]
pub(crate) struct Machine {
    params: Params,
    facts: Option<PathFacts>,
    phase: Phase,
    seen: RunAccount,
    /// Estimate so far, bit/s.
    available: f64,
    /// Rate of the train under way or next; `None` is as fast as the host can.
    rate: Option<f64>,
    packets: usize,
    next_id: u32,
    /// Octets of queue that a train may build.
    burst_octets: f64,
    /// Packets that stamps and batches ask for.
    least_packets: usize,
    slope_trains: usize,
    quiet_at_max: u32,
    /// Another link than the narrow one is tight.
    local: bool,
    /// The feedback loop, where nothing follows it.
    feedback: Option<Feedback>,
    began: Stamp<Sender>,
    train_began: Stamp<Sender>,
}

impl Machine {
    pub(crate) fn new(params: Params) -> Self {
        Self {
            burst_octets: f64::from(params.burst_octets),
            seen: RunAccount::new(params.capacity),
            feedback: (params.preset == Preset::Feedback).then(Feedback::default),
            params,
            facts: None,
            phase: Phase::Converge,
            available: 0.0,
            rate: None,
            packets: FIRST_PACKETS,
            next_id: 0,
            least_packets: 0,
            slope_trains: 0,
            quiet_at_max: 0,
            local: false,
            began: Stamp::from_nanos(0),
            train_began: Stamp::from_nanos(0),
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        self.seen.packet_octets = self.params.ip_octets.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        self.seen.max_rate = facts.max_paced_rate(self.seen.packet_octets).map(BitRate::as_f64);
        self.seen.interface_rate = facts.sender.interface_rate;
        self.seen.rate_cap = facts.rate_cap;
        self.rate = self.seen.max_rate;
        self.facts = Some(facts);
        self.send(now)
    }

    fn send(&mut self, now: Stamp<Sender>) -> Step {
        let rate = self.rate.and_then(BitRate::from_bps_f64).unwrap_or(BitRate::ZERO);
        let train = Train::at_rate(TrainId(self.next_id), self.packets, self.seen.packet_octets, rate);
        self.next_id += 1;
        self.train_began = now;
        Step::Send(Probe::Train(train))
    }

    /// Waits until the train's octets, spread over the time since it began, are the allowed share
    /// of the path.
    fn pause(&mut self, now: Stamp<Sender>, sent_octets: u64) -> Step {
        let scale = fit::fastest(&self.seen.readings).or(self.rate).unwrap_or(1e9);
        let period = sent_octets as f64 * 8.0 / (self.params.load * scale.max(1.0));
        let until = self.train_began + Duration::try_from_secs_f64(period).unwrap_or(Duration::from_secs(1));
        if until > now { Step::Wait { until } } else { self.send(now) }
    }

    fn train(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        self.seen.count(report);
        // The feedback map needs the departure rate alone.
        let lenient = self.phase == Phase::Converge || self.seen.broken >= RETRY_LIMIT;
        let verdict = read(report, fit::fastest(&self.seen.readings), lenient);
        let ending = match verdict {
            Ok(mut reading) => {
                reading.receiver_bound = self.facts.as_ref().is_some_and(|facts| {
                    let octets = self.seen.packet_octets;
                    facts.receiver.stamps_limit(reading.rate_out, octets, report.arrived_by)
                });
                self.take(now, reading)
            }
            Err(flaw) => self.discard(flaw),
        };
        if let Some(ending) = ending {
            return Step::Done(self.seen.finish(&ending, self.available));
        }
        if self.seen.trains >= self.params.max_trains {
            return Step::Done(self.seen.finish(&Ending::Exhausted, self.available));
        }
        let octets = report.arrivals.iter().map(|row| u64::from(row.ip_octets)).sum();
        self.packets = self.length();
        self.pause(now, octets)
    }

    /// Repeats a train that says nothing, or gives up.
    fn discard(&mut self, flaw: Unusable) -> Option<Ending> {
        let (count, reason) = match flaw {
            Unusable::AllLost => {
                self.burst_octets /= 2.0;
                (&mut self.seen.all_lost, Reason::NoAnswer)
            }
            Unusable::Pacing => (&mut self.seen.broken, Reason::SenderCannotPace),
            Unusable::ClockStep => (&mut self.seen.clock_steps, Reason::NoAgreement),
            Unusable::FewBatches => {
                self.least_packets = self.least_packets.max(2 * self.packets).min(self.params.max_packets);
                (&mut self.seen.few_batches, Reason::ReceiveBatching)
            }
        };
        *count += 1;
        let retry_limit = if flaw == Unusable::Pacing { 2 * RETRY_LIMIT } else { RETRY_LIMIT };
        (*count > retry_limit).then_some(Ending::Flawed(reason))
    }

    fn take(&mut self, now: Stamp<Sender>, reading: Reading) -> Option<Ending> {
        if let Some(ending) = self.lossy(&reading) {
            return ending;
        }
        if let Some(batch) = reading.batch {
            self.seen.note_batch(batch);
            let per_batch = batch.as_secs_f64() * reading.rate_in.min(reading.rate_out) / self.packet_bits();
            let wanted = whole_packets(BATCHES * per_batch).min(self.params.max_packets);
            self.least_packets = self.least_packets.max(wanted);
            if 2 * reading.packets < wanted {
                return self.discard(Unusable::FewBatches);
            }
        }
        if self.rate.is_none_or(|planned| reading.rate_sent < 0.9 * planned) && reading.rate_sent.is_finite() {
            self.seen.max_rate = Some(reading.rate_sent);
        }
        let at_max = self.seen.max_rate.is_some_and(|max| reading.rate_sent >= AT_MAX * max);
        if at_max && reading.growth <= 0.04 {
            self.quiet_at_max += 1;
        }
        self.seen.readings.push(reading);
        if self.feedback.is_some() {
            self.seen.refined(self.train_began, now);
            return self.feed(at_max);
        }
        if self.quiet_at_max >= 3 {
            return Some(Ending::HostLimited);
        }
        match self.phase {
            Phase::Converge => {
                self.converge(at_max);
                None
            }
            Phase::Refine => self.refine(now),
        }
    }

    /// The feedback loop's next train.
    fn feed(&mut self, at_max: bool) -> Option<Ending> {
        let end_error = self
            .facts
            .as_ref()
            .map_or(Duration::ZERO, |facts| facts.receiver.stamp_error + facts.receiver.clock_resolution);
        let feedback = self.feedback.as_mut()?;
        match feedback.next(&self.seen.readings, at_max, end_error.as_secs_f64()) {
            Next::Rate(rate) => {
                let rate = self.seen.max_rate.map_or(rate, |max| rate.min(max));
                self.available = rate;
                self.rate = Some(rate);
                None
            }
            Next::AtMax => Some(Ending::HostLimited),
            Next::Done => Some(feedback.found().map_or(Ending::Flawed(Reason::NotConverged), Ending::Fed)),
        }
    }

    /// Losses by overflow shorten the trains to come; losses at random are borne up to a limit.
    #[expect(clippy::option_option, reason = "outer: the train is not used; inner: the run ends")]
    fn lossy(&mut self, reading: &Reading) -> Option<Option<Ending>> {
        let (lost, sent) = (reading.lost as f64, reading.packets as f64);
        let overflow = reading.lost_late as f64 > 2.0 * (lost - reading.lost_late as f64) + 2.0;
        if lost <= LOSS_TOLERATED * sent {
            return None;
        }
        if overflow && reading.packets > SHORTEST && self.seen.overflows < RETRY_LIMIT {
            self.seen.overflows += 1;
            let built =
                sent * f64::from(self.seen.packet_octets) * (1.0 - (reading.rate_out / reading.rate_in).min(0.99));
            self.burst_octets = self.burst_octets.min(built) / 2.0;
            return Some(None);
        }
        self.seen.exceeds_burst |= overflow;
        if lost > LOSS_LIMIT * sent {
            self.seen.lossy += 1;
            let ending = (self.seen.lossy > RETRY_LIMIT)
                .then_some(Ending::Flawed(Reason::TooMuchLoss { lost: self.seen.lost, sent: self.seen.sent }));
            return Some(ending);
        }
        None
    }

    fn converge(&mut self, at_max: bool) {
        let Some(last) = self.seen.readings.last() else { return };
        let rate_in = last.rate_in;
        match fit::next_rate(&self.seen.readings) {
            None if at_max => self.rate = self.seen.max_rate,
            None => {
                self.available = rate_in;
                self.begin_slopes();
            }
            Some(next) => {
                self.available = next;
                self.rate = Some(next);
                let settled = rate_in.is_finite() && (rate_in - next).abs() <= 0.05 * rate_in;
                if settled || self.seen.readings.len() >= COARSE_ROUNDS {
                    self.begin_slopes();
                }
            }
        }
    }

    fn begin_slopes(&mut self) {
        self.phase = Phase::Refine;
        self.next_slope();
    }

    /// Alternates between little and much overload, so that the gradient shows, and a rate below
    /// the turning point, so that a turning point that lies lower than believed shows. Stays below
    /// the narrow link's rate where another link is known to be the tight one.
    fn next_slope(&mut self) {
        let scale = fit::fastest(&self.seen.readings).unwrap_or(self.available);
        let step = STEPS[self.slope_trains % STEPS.len()];
        let least = self.available + STEPS[0] * scale;
        let most = if self.local { least.max(0.98 * scale) } else { f64::INFINITY };
        let rate = (self.available + step * scale).min(most).max(0.05 * scale);
        self.slope_trains += 1;
        self.rate = Some(self.seen.max_rate.map_or(rate, |max| rate.min(max)));
    }

    fn refine(&mut self, now: Stamp<Sender>) -> Option<Ending> {
        self.seen.refined(self.train_began, now);
        let known = self.params.capacity.map(BitRate::as_f64);
        if let Some(found) = fit::fit(&self.seen.readings, self.available, known) {
            self.available = found.available;
            self.local = found.local;
            if self.enough(now, &found) {
                return Some(Ending::Settled);
            }
        } else {
            // Not overloaded yet: the turning point lies higher than believed.
            let reached = self.seen.readings.last().map_or(0.0, |last| last.rate_in);
            self.available = self.available.max(reached);
        }
        self.next_slope();
        None
    }

    /// Narrow, or trains enough; while the run is short, twice as many for an interval that is
    /// still wide.
    fn enough(&self, now: Stamp<Sender>, found: &Fit) -> bool {
        let scale = fit::fastest(&self.seen.readings).unwrap_or(found.available);
        let width = (found.high - found.low) / scale;
        let count = found.per_train.len();
        let most = self.params.slope_trains;
        let hurry = now.since(self.began) > UNHURRIED;
        match count {
            0..5 => false,
            count if count < most => width <= EXACT,
            count if count < 2 * most => hurry || width <= NARROW,
            _ => true,
        }
    }

    fn packet_bits(&self) -> f64 {
        f64::from(self.seen.packet_octets) * 8.0
    }

    /// Packets of the next train: enough time to average over, enough for stamps and batches, not
    /// more queue than allowed.
    fn length(&self) -> usize {
        let scale = fit::fastest(&self.seen.readings);
        let Some((rate, scale)) = self.rate.zip(scale) else {
            let whole = whole_packets(self.burst_octets / f64::from(self.seen.packet_octets)).max(SHORTEST);
            return FIRST_PACKETS.min(whole).max(self.extra_packets());
        };
        let target = whole_packets(rate * self.params.train_time.as_secs_f64() / self.packet_bits())
            .clamp(MIN_PACKETS, MAX_PACKETS);
        let sigma = self
            .facts
            .as_ref()
            .map_or(Duration::ZERO, |facts| facts.receiver.stamp_error + facts.receiver.clock_resolution);
        let for_stamps = whole_packets(50.0 * sigma.as_secs_f64() * rate / self.packet_bits());
        let wanted = target.max(for_stamps).max(self.least_packets).min(self.params.max_packets);
        let growth = ((rate - self.available) / scale).max(0.02);
        let allowed = whole_packets(self.burst_octets / f64::from(self.seen.packet_octets) * (1.0 + growth) / growth);
        wanted.min(allowed.max(self.extra_packets()).max(SHORTEST))
    }

    /// What batches ask for goes before the presumed limit of a burst, but not before an observed
    /// one.
    fn extra_packets(&self) -> usize {
        if self.seen.overflows > 0 { 0 } else { self.least_packets }
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        let reason = match refusal {
            Refusal::TooLarge { max_ip_octets } if max_ip_octets < self.seen.packet_octets && max_ip_octets > 0 => {
                self.seen.packet_octets = max_ip_octets;
                return self.send(now);
            }
            Refusal::TooSmall { min_ip_octets } if min_ip_octets > self.seen.packet_octets => {
                self.seen.packet_octets = min_ip_octets;
                return self.send(now);
            }
            other => refusal_reason(other, "paced trains towards a receiver"),
        };
        Step::Done(self.seen.finish(&Ending::Flawed(reason), self.available))
    }
}

impl Replayable for Machine {
    const READS: (&'static str, &'static str) = ("fac2", "trains of 16 packets or more of one size to the receiver");

    /// Any train at one rate says how its delays grow.
    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Train(train) = asked else { return false };
        let Some(first) = train.packets.first() else {
            return false;
        };
        let alike = train.packets.iter().all(|packet| packet.ip_octets == first.ip_octets);
        if !alike || train.packets.len() < SHORTEST {
            return false;
        }
        self.packets = train.packets.len();
        self.rate = train.planned_rate().map(BitRate::as_f64);
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
            Event::Stop(reason) => Step::Done(self.seen.finish(&Ending::Stopped(reason), self.available)),
            Event::Load(_) | Event::Transfer(_) | Event::Capture(_) => {
                Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent))
            }
        }
    }
}
