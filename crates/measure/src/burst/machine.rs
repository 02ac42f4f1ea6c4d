//! The state machine: which burst comes next, and when.

use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp, rounded, to_usize};

use super::analyse::{self, Cut, ObservedBurst};
use super::ledger::Ledger;
use super::search::{Next, Search};
use super::{Params, result};
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::facts::PathFacts;
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Probe, Train, TrainId, TrainReport};
use narrows_train::bulk;

/// Where the method stands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// Looking for the bracket.
    Search,
    /// Bursts that are cut, for the statistics.
    Sample,
    /// Longer ones at twice the rate that comes through, to see what drops once it drops.
    Long,
    /// Small packets, to see what is counted.
    Small,
    /// Bursts at the rate of that index, for the curve and the line.
    Line(usize),
}

/// Bursts that found nobody home before the method gives up (ours).
const SILENT_BURSTS: u32 = 3;
/// Bursts of the long and of the small kind that count, and that may be spent on them (ours).
const EXTRA_CUTS: usize = 3;
const EXTRA_TRIES: usize = 6;
/// Rate of long bursts over that at which bursts come through (ours).
const LONG_RATE: f64 = 2.0;
/// A pause is doubled while bursts find more than this share of the longest queue (ours), up to so
/// many times.
const LEFT_OVER: f64 = 0.15;
const LONGEST_STRETCH: u32 = 16;
/// Slowest rate of the curve over that at which bursts arrive (ours): there a burst is three times
/// the queue.
const SLOWEST: f64 = 1.5;
/// Least rate that bursts may average, whatever share is asked for (the specification of
/// `[Netest03]`'s procedure that we follow).
const LEAST_LOAD_BPS: f64 = 1e6;

/// The method at work.
#[derive(Debug)]
pub(super) struct Run {
    params: Params,
    facts: PathFacts,
    began: Stamp<Sender>,
    phase: Phase,
    search: Search,
    /// Packets of the burst that is out, or was last, and their length.
    packets: usize,
    ip_octets: u16,
    /// Length of the packets that the answer is about.
    main_octets: u16,
    sent: u64,
    bursts: u32,
    sent_at: Stamp<Sender>,
    silent: u32,
    answered: bool,
    ledger: Ledger,
    /// Bursts of the present phase, and those of them that were cut.
    tries: usize,
    cuts: usize,
    rates: Vec<BitRate>,
    /// How much longer than foreseen pauses are.
    stretch: u32,
}

impl Run {
    pub(super) fn new(params: Params) -> Self {
        Self {
            facts: PathFacts::ideal(1500, Duration::ZERO),
            began: Stamp::from_nanos(0),
            phase: Phase::Search,
            search: Search::new(1, 1),
            packets: 0,
            ip_octets: 0,
            main_octets: 0,
            sent: 0,
            bursts: 0,
            sent_at: Stamp::from_nanos(0),
            silent: 0,
            answered: false,
            ledger: Ledger::default(),
            tries: 0,
            cuts: 0,
            rates: Vec::new(),
            stretch: 1,
            params,
        }
    }

    fn start(&mut self, now: Stamp<Sender>, facts: PathFacts) -> Step {
        self.began = now;
        self.main_octets = self.params.ip_octets.unwrap_or(facts.path_mtu).min(facts.path_mtu).max(1);
        self.ip_octets = self.main_octets;
        self.ledger.fastest_bps =
            [facts.sender.interface_rate, facts.sender.max_send_rate].into_iter().flatten().min().map(BitRate::as_f64);
        self.facts = facts;
        self.search = Search::new(self.cap(), self.params.confirm);
        self.packets = self.search.size();
        self.fire(now)
    }

    /// Packets of the largest burst that is allowed: by the parameter, and by a user's peak rate
    /// over 100 ms.
    fn cap(&self) -> usize {
        let peak = self.facts.rate_cap.map(|rate| rate.octets_in(Duration::from_millis(100)));
        let octets = self.params.max_octets.min(peak.unwrap_or(u64::MAX));
        to_usize(octets / u64::from(self.ip_octets.max(1))).max(1)
    }

    fn octets(&self) -> u64 {
        (self.packets as u64).saturating_mul(u64::from(self.ip_octets))
    }

    /// Sends the burst that is due, or ends if it does not fit any more.
    fn fire(&mut self, now: Stamp<Sender>) -> Step {
        let timeout = self.params.timeout().max(20 * self.facts.rtt);
        let late = now.since(self.began) >= self.params.max_time.unwrap_or(timeout);
        if late || self.sent.saturating_add(self.octets()) > self.params.total_octets {
            return Step::Done(self.conclude((!self.answered).then_some(Reason::OctetsSpent)));
        }
        self.sent += self.octets();
        self.bursts += 1;
        self.sent_at = now;
        let id = TrainId(self.bursts);
        let rate = match self.phase {
            Phase::Line(index) => self.rates.get(index).copied(),
            Phase::Long => self.rates.first().copied(),
            Phase::Search | Phase::Sample | Phase::Small => None,
        };
        let train = match rate {
            Some(rate) => Train::at_rate(id, self.packets, self.ip_octets, rate),
            None => Train::uniform(id, self.packets, self.ip_octets, Duration::ZERO),
        };
        Step::Send(Probe::Train(train))
    }

    /// Lets the queue drain before the next burst.
    fn pause(&mut self, now: Stamp<Sender>) -> Step {
        let available = self.params.available.or(self.ledger.slowest_arrival);
        let drain = available.and_then(|rate| rate.time_for(2 * self.octets()));
        // Bursts may average a share of what is available, for the others' sake.
        let share = available.zip(self.params.load).map(|(rate, share)| {
            let octets = self.octets() as f64;
            Duration::try_from_secs_f64(octets * 8.0 / (rate.as_f64() * share).max(LEAST_LOAD_BPS)).unwrap_or_default()
        });
        let pause = [
            drain.unwrap_or_default() * self.stretch + self.facts.rtt,
            share.unwrap_or_default(),
            (4 * self.facts.rtt).min(Duration::from_millis(200)),
            Duration::from_millis(50),
        ]
        .into_iter()
        .max()
        .unwrap_or_default();
        // Multiples of the golden ratio fall evenly over 0..1 and never in step with anything.
        let spread = 0.75 + 0.5 * (f64::from(self.bursts) * 0.618_033_988_749_895).fract();
        let until = self.sent_at + pause.mul_f64(spread);
        if until > now {
            return Step::Wait { until };
        }
        self.fire(now)
    }

    fn take(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        let seen = analyse::seen(report);
        let paced = matches!(self.phase, Phase::Line(_) | Phase::Long);
        self.ledger.note(&seen, !paced && self.phase != Phase::Small);
        if self.phase == Phase::Long {
            self.ledger.note_long(&seen);
        }
        if !matches!(self.phase, Phase::Line(_)) {
            self.ledger.note_course(report, self.facts.receiver.clock_resolution);
        }
        if seen.arrived == 0 {
            self.silent += 1;
            if self.silent >= SILENT_BURSTS {
                return Step::Done(self.conclude(Some(Reason::NoAnswer)));
            }
            return self.pause(now);
        }
        self.silent = 0;
        self.answered = true;
        if self.ledger.finds_left_over(LEFT_OVER) {
            self.stretch = (self.stretch * 2).min(LONGEST_STRETCH);
        }
        let done = if seen.spoilt_by_receiver {
            self.ledger.receiver_spoils()
        } else {
            match self.phase {
                Phase::Search => self.take_search(&seen),
                Phase::Sample => self.take_sample(&seen),
                Phase::Long => self.take_long(&seen),
                Phase::Small => self.take_small(&seen),
                Phase::Line(index) => self.take_line(index, &seen),
            }
        };
        if done {
            return Step::Done(self.conclude(None));
        }
        self.pause(now)
    }

    /// Whether the method is at its end.
    fn take_search(&mut self, seen: &ObservedBurst) -> bool {
        if let Some(through) = seen.first_loss {
            self.ledger.last_cut = Some(through);
        }
        match self.search.note(seen.first_loss) {
            Next::Try(size) => self.packets = size,
            Next::Capped(_) => return true,
            Next::Bracketed(_, upper) => {
                self.turn_to(Phase::Sample);
                self.packets = (upper + upper.div_ceil(20)).min(self.cap());
            }
        }
        false
    }

    fn turn_to(&mut self, phase: Phase) {
        self.phase = phase;
        (self.tries, self.cuts) = (0, 0);
    }

    /// Counts the burst; one that survived is followed by a longer one.
    fn count(&mut self, seen: &ObservedBurst) -> Cut {
        self.tries += 1;
        self.cuts += usize::from(seen.first_loss.is_some());
        if seen.first_loss.is_none() {
            self.packets = (self.packets + self.packets / 4 + 1).min(self.cap());
        }
        Cut { through: seen.first_loss.unwrap_or(seen.packets) as u64, whole: seen.first_loss.is_none() }
    }

    fn take_sample(&mut self, seen: &ObservedBurst) -> bool {
        let cut = self.count(seen);
        self.ledger.sample(cut);
        let wanted = self.params.bursts;
        // Bursts that survived tell little; but nothing larger than the cap can be asked.
        let reported = self.cuts * 2 >= wanted || (cut.whole && seen.packets >= self.cap());
        if self.tries < wanted || (!reported && self.tries < 2 * wanted) {
            return false;
        }
        if !self.params.detail || self.cuts == 0 {
            return self.begin_line();
        }
        self.turn_to(Phase::Long);
        // At twice the rate a queue takes twice its room; behind that, half of the packets are
        // lost, of a policer's more.
        let rate = self.ledger.rate_through().and_then(|through| BitRate::from_bps_f64(LONG_RATE * through));
        self.rates = rate.into_iter().collect();
        let long = self.ledger.usual().unwrap_or(self.packets as u64).saturating_mul(4);
        self.packets = to_usize(long).max(self.packets).min(self.cap());
        false
    }

    fn take_long(&mut self, seen: &ObservedBurst) -> bool {
        self.count(seen);
        if self.tries < EXTRA_CUTS {
            return false;
        }
        let small = self.params.small_octets;
        if small < 28 || small * 2 > self.main_octets {
            return self.begin_line();
        }
        self.turn_to(Phase::Small);
        let octets = self.ledger.usual().unwrap_or(1) * u64::from(self.main_octets);
        self.ip_octets = small;
        self.packets = to_usize((octets + octets / 4) / u64::from(small)).max(1).min(self.cap());
        false
    }

    fn take_small(&mut self, seen: &ObservedBurst) -> bool {
        let cut = self.count(seen);
        self.ledger.small(cut, seen);
        if self.cuts < EXTRA_CUTS && self.tries < EXTRA_TRIES && !(cut.whole && seen.packets >= self.cap()) {
            return false;
        }
        self.begin_line()
    }

    /// The rates of the curve: as given, else evenly spaced in `1 / R` between that of back-to-back
    /// bursts and half as much again as arrives.
    fn begin_line(&mut self) -> bool {
        self.ip_octets = self.main_octets;
        self.rates.clone_from(&self.params.rates);
        if let (true, Some(through)) = (self.rates.is_empty(), self.ledger.rate_through()) {
            let most = self.ledger.burst_rate().map_or(0.0, |rate| 1.0 / rate);
            let least = 1.0 / (SLOWEST * through);
            let steps = self.params.curve;
            let rate = |step: u32| 1.0 / (most + (least - most) * f64::from(step) / f64::from(steps));
            if least > most * 1.05 {
                self.rates = (1..=steps).filter_map(|step| BitRate::from_bps_f64(rate(step))).collect();
            }
        }
        self.turn_to_rate(0)
    }

    /// Turns to a rate of the line; true if there is none.
    fn turn_to_rate(&mut self, index: usize) -> bool {
        self.turn_to(Phase::Line(index));
        let Some(rate) = self.rates.get(index) else { return true };
        // By the fluid model, and a quarter more.
        let usual = self.ledger.usual().unwrap_or(self.packets as u64) as f64;
        let grows = match (self.ledger.rate_through(), self.ledger.burst_rate()) {
            (Some(through), most) => {
                let share = |rate: f64| (1.0 - through / rate).max(0.05);
                most.map_or(1.0, share) / share(rate.as_f64())
            }
            (None, _) => 1.0,
        };
        self.packets = to_usize(rounded(usual * grows.max(1.0) * 1.25 + 2.0)).min(self.cap());
        false
    }

    fn take_line(&mut self, index: usize, seen: &ObservedBurst) -> bool {
        let cut = self.count(seen);
        self.ledger.at_rate(index, cut, seen);
        let uncut = cut.whole && seen.packets >= self.cap();
        if uncut || self.cuts >= self.params.rate_bursts || self.tries >= 2 * self.params.rate_bursts {
            return self.turn_to_rate(index + 1);
        }
        false
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        if let Refusal::TooLarge { max_ip_octets } = refusal
            && max_ip_octets < self.ip_octets
            && max_ip_octets >= 64
        {
            self.ip_octets = max_ip_octets;
            self.main_octets = max_ip_octets;
            return self.fire(now);
        }
        if self.phase == Phase::Small && !self.begin_line() {
            return self.fire(now);
        }
        let refused = self.phase != Phase::Small && !matches!(self.phase, Phase::Line(_));
        let reason = bulk::reason_of(refusal, "trains of UDP packets");
        Step::Done(self.conclude(refused.then_some(reason)))
    }

    /// The answer from what is known; `reason` if something other than the method ended it.
    fn conclude(&self, reason: Option<Reason>) -> Outcome {
        result::outcome(&result::Known {
            ledger: &self.ledger,
            ip_octets: self.main_octets,
            small_octets: self.params.small_octets,
            survived: self.search.survived(),
            cap: self.params.max_octets,
            wanted: self.params.bursts,
            answered: self.answered,
            rates: self.rates.len(),
            rtt: self.facts.rtt,
            available: self.params.available,
            reason,
        })
    }
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("burst", "back-to-back trains to the receiver");

    /// Any back-to-back train is a burst of the search; later only those of the phase's own packets
    /// are, of any number.
    fn replay_step(&mut self, asked: &Probe) -> bool {
        let Probe::Train(train) = asked else { return false };
        let (Some(first), packets) = (train.packets.first(), train.packets.len()) else {
            return false;
        };
        let paced = !train.duration().is_zero();
        let fits = match self.phase {
            Phase::Search => !paced,
            Phase::Sample => !paced && first.ip_octets == self.main_octets,
            Phase::Small => !paced && first.ip_octets == self.ip_octets,
            Phase::Long => paced != self.rates.is_empty() && first.ip_octets == self.main_octets,
            Phase::Line(_) => paced && first.ip_octets == self.main_octets,
        };
        if fits {
            self.packets = packets;
            self.ip_octets = first.ip_octets;
            if self.phase == Phase::Search {
                self.main_octets = first.ip_octets;
            }
            self.search.at(packets);
        }
        fits
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        match event {
            Event::Started(facts) => self.start(now, facts),
            Event::TimerFired => self.fire(now),
            Event::Train(report) => self.take(now, &report),
            Event::Refused(refusal) => self.refused(now, refusal),
            Event::Stop(reason) => Step::Done(self.conclude(Some(reason))),
            Event::Load(_) | Event::Transfer(_) | Event::Capture(_) => {
                Step::Done(self.conclude(Some(Reason::UnexpectedEvent)))
            }
        }
    }
}
