//! A small deterministic world for the tests of bursts, loads and transfers: one drop-tail queue
//! with fluid cross traffic.
//!
//! Everything is in closed form or in short steps of it, so that the answers can be worked by hand.
//! The real simulator knows more; this one knows what the formulas assume.

mod tcp;

use std::convert::Infallible;
use std::time::Duration;

use narrows_units::{BitRate, Delta, Sender, Stamp, rounded};

use crate::budget::Budget;
use crate::contract::{Event, Refusal};
use crate::facts::{PathFacts, StampSource};
use crate::outcome::{Estimate, Outcome};
use crate::probes::{Arrival, Fate, Load, LoadReport, LoadStatus, PacingCheck, Probe, Then, Train, TrainReport};
use crate::registry::RawParams;
use crate::world::{Measured, World, drive};

pub use tcp::Flavour;
use tcp::Tcp;

/// The path and its hosts. Rates in bit/s, sizes in octets, times in seconds.
#[derive(Debug, Clone)]
pub struct Fluid {
    now: f64,
    /// Rate of the tight link.
    pub link: f64,
    /// Other traffic on it, not elastic.
    pub cross: f64,
    /// Its queue.
    pub queue: f64,
    /// Round trip without any queue.
    pub rtt: f64,
    /// Fastest rate of the sender.
    pub sender: f64,
    /// Token bucket that drops what exceeds it: rate and depth.
    pub policer: Option<(f64, f64)>,
    /// The receiving host drops packets of a burst beyond this many.
    pub receiver_packets: Option<usize>,
    /// The receiving host takes no more than this from a load.
    pub receiver_rate: f64,
    /// Backlog that each burst finds, in turn.
    pub found: Vec<f64>,
    /// The first so many probes are carried out, then this is the answer.
    pub refuse_after: Option<(usize, Refusal)>,
    /// Nothing arrives.
    pub dead: bool,
    /// Share of a CPU that a sending thread takes at the sender's fastest rate.
    pub sender_cpu: f32,
    /// Rate of one socket; several sum up to `sender`.
    pub per_socket: f64,
    /// The user asks for an end before the probe of that number.
    pub stop_before: Option<usize>,
    /// How TCP behaves.
    pub tcp: Tcp,
    /// Probes carried out.
    pub probes: usize,
    backlog: f64,
    /// Octets of a load among the backlog.
    own_backlog: f64,
    tokens: f64,
    facts: PathFacts,
}

impl Fluid {
    /// An idle path with a fast sender.
    pub fn new(link: f64, queue: f64, rtt: f64) -> Self {
        Self {
            now: 0.0,
            link,
            cross: 0.0,
            queue,
            rtt,
            sender: 10e9,
            policer: None,
            receiver_packets: None,
            receiver_rate: f64::INFINITY,
            found: Vec::new(),
            refuse_after: None,
            dead: false,
            sender_cpu: 0.2,
            per_socket: f64::INFINITY,
            stop_before: None,
            tcp: Tcp::default(),
            probes: 0,
            backlog: 0.0,
            own_backlog: 0.0,
            tokens: f64::INFINITY,
            facts: PathFacts::ideal(1500, Duration::from_secs_f64(rtt)),
        }
    }

    pub fn facts_mut(&mut self) -> &mut PathFacts {
        &mut self.facts
    }

    /// Runs a method with parameters as a user would type them, under its default budget but for
    /// time.
    pub fn measure(&mut self, method: &dyn crate::registry::Method, params: &[(&str, &str)]) -> Measured {
        let raw: RawParams = params.iter().copied().collect();
        let mut estimator = method.begin(&raw).expect("the parameters are good");
        let budget = Budget { time: Duration::from_secs(600), ..method.imposes(&raw).budget() };
        let Ok(measured) = drive(self, estimator.as_mut(), budget);
        measured
    }

    /// The same, where a number is expected.
    pub fn estimate(&mut self, method: &dyn crate::registry::Method, params: &[(&str, &str)]) -> Estimate {
        match self.measure(method, params).outcome {
            Outcome::Estimated(estimate) => *estimate,
            Outcome::Inconclusive { reason, .. } => panic!("{reason}"),
        }
    }

    fn drain(&mut self, seconds: f64) {
        self.backlog = (self.backlog - (self.link - self.cross).max(0.0) / 8.0 * seconds).max(0.0);
        self.own_backlog = self.own_backlog.min(self.backlog);
        if let Some((rate, depth)) = self.policer {
            self.tokens = (self.tokens + rate / 8.0 * seconds).min(depth);
        }
    }

    fn train(&mut self, train: &Train) -> Event {
        let mut at = 0.0;
        if !self.found.is_empty() {
            self.backlog = self.found[self.probes % self.found.len()];
        }
        self.drain(0.0);
        let mut arrived = 0;
        let mut local_drops = 0;
        let mut last = 0.0f64;
        let mut arrivals = Vec::new();
        for (seq, packet) in (0u32..).zip(&train.packets) {
            let octets = f64::from(packet.ip_octets);
            if seq > 0 {
                let gap = packet.gap.as_secs_f64().max(octets * 8.0 / self.sender);
                at += gap;
                self.drain(gap);
            }
            let policed = self.policer.is_some() && self.tokens < octets;
            let fits = self.backlog + octets <= self.queue && !policed && !self.dead;
            let fate = if fits && self.receiver_packets.is_some_and(|most| arrived >= most) {
                local_drops += 1;
                Fate::Lost
            } else if fits {
                self.backlog += octets;
                self.tokens -= octets;
                arrived += 1;
                last = last.max(at + self.rtt / 2.0 + self.backlog * 8.0 / self.link);
                Fate::Received(stamp(self.now + last))
            } else {
                Fate::Lost
            };
            arrivals.push(Arrival { seq, departed: stamp(self.now + at), ip_octets: packet.ip_octets, fate });
        }
        // The report waits for stragglers and comes back half a round trip later.
        let rest = self.rtt + self.backlog * 8.0 / self.link;
        self.pass(at, 0.0);
        self.pass(rest, rest);
        Event::Train(TrainReport {
            id: train.id,
            arrivals,
            reordered: 0,
            duplicates: 0,
            local_drops,
            departed_by: StampSource::Simulated,
            arrived_by: StampSource::Simulated,
            pacing: PacingCheck::Kept,
        })
    }

    /// Lets time pass, the queue draining for part of it.
    fn pass(&mut self, seconds: f64, draining: f64) {
        self.drain(draining);
        self.now += seconds;
    }

    fn load(&mut self, load: &Load) -> Event {
        let began = self.now;
        let fastest = self.sender.min(self.per_socket * f64::from(load.streams));
        let rate = load.rate.as_f64().min(fastest);
        let size = f64::from(load.ip_octets);
        let status = load.status_every.as_secs_f64();
        let sending = load.duration.as_secs_f64();
        // A load that finishes is heard out: what waits in the queue arrives behind its end.
        let total = sending + if load.then == Then::Finish { 2.0 } else { 0.0 };
        let mut statuses = Vec::new();
        let mut at = 0.0;
        let mut rest = [0.0; 3];
        while at < sending - 1e-9 || (at < total && self.own_backlog > load.ip_octets.into()) {
            let length = if at < sending { status.min(sending - at) } else { status };
            let mut sums = rest; // arrived, lost, dropped by the receiver: octets, parts of packets carried on
            let mut delays = Vec::new();
            let steps = 100;
            let dt = length / f64::from(steps);
            for _ in 0..steps {
                delays.push(self.backlog * 8.0 / self.link);
                self.load_step(if at < sending { rate } else { 0.0 }, dt, &mut sums);
            }
            let [packets, lost, dropped] = sums.map(|octets| (octets / size + 1e-6).floor());
            rest = [0, 1, 2].map(|k| sums[k] - [packets, lost, dropped][k] * size);
            at += length;
            statuses.push(LoadStatus {
                from: stamp(began + at - length + self.rtt / 2.0),
                to: stamp(began + at + self.rtt / 2.0),
                packets: rounded(packets),
                ip_octets: rounded(packets * size),
                lost: rounded(lost),
                reordered: 0,
                duplicates: 0,
                local_drops: rounded(dropped),
                delay_above_min: (packets > 0.0).then(|| {
                    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
                    let most = delays.iter().copied().fold(0.0, f64::max);
                    let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
                    (seconds(least), seconds(mean), seconds(most))
                }),
            });
        }
        let sent = (rate * sending / 8.0 / size).floor();
        self.now += at;
        // A load that goes on does not wait for its last status, so the queue has no rest between
        // two segments of it.
        if load.then == Then::Finish {
            self.pass(self.rtt, self.rtt);
        }
        Event::Load(LoadReport {
            began: stamp(began),
            ended: stamp(began + sending),
            sent_packets: rounded(sent),
            sent_ip_octets: rounded(sent * size),
            send_failures: 0,
            sender_cpu: Some(self.sender_cpu.min(1.0)),
            held_up: Duration::ZERO,
            statuses,
        })
    }

    /// One step of a fluid load: what arrives, what the path loses, what the receiver drops, in
    /// octets.
    fn load_step(&mut self, rate: f64, dt: f64, sums: &mut [f64; 3]) {
        let mut offered = rate / 8.0 * dt;
        if let Some((sustained, depth)) = self.policer {
            self.tokens = (self.tokens + sustained / 8.0 * dt).min(depth);
            let passed = offered.min(self.tokens);
            self.tokens -= passed;
            sums[1] += offered - passed;
            offered = passed;
        }
        // First in, first out, well mixed: overflow hits arrivals alike, and what leaves is a
        // sample of what waits.
        let arriving = offered + self.cross / 8.0 * dt;
        let served = self.link / 8.0 * dt;
        let overflow = (self.backlog + arriving - served - self.queue).max(0.0);
        let own = if arriving > 0.0 { offered / arriving } else { 0.0 };
        let dropped = if self.dead { offered } else { overflow * own };
        let waiting = self.backlog + arriving - overflow;
        let own_waiting = self.own_backlog + offered - dropped;
        let leaving = served.min(waiting);
        let out = if waiting > 0.0 { leaving * own_waiting / waiting } else { 0.0 };
        self.backlog = waiting - leaving;
        self.own_backlog = own_waiting - out;
        sums[1] += dropped;
        let taken = out.min(self.receiver_rate / 8.0 * dt);
        sums[0] += taken;
        sums[1] += out - taken;
        sums[2] += out - taken;
    }
}

impl World for Fluid {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        stamp(self.now)
    }

    fn facts(&self) -> PathFacts {
        self.facts.clone()
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Infallible> {
        self.probes += 1;
        if let Some((after, refusal)) = self.refuse_after
            && self.probes > after
        {
            return Ok(Event::Refused(refusal));
        }
        Ok(match probe {
            Probe::Train(train) => self.train(&train),
            Probe::Load(load) => self.load(&load),
            Probe::Transfer(transfer) => self.transfer(&transfer),
            Probe::Capture(_) => Event::Refused(Refusal::NotOffered),
        })
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        let time = until.since(self.now()).as_secs_f64();
        self.pass(time, time);
        Ok(())
    }

    fn stop_requested(&self) -> bool {
        self.stop_before.is_some_and(|probe| self.probes >= probe)
    }
}

fn seconds(value: f64) -> Duration {
    Duration::from_secs_f64(value.max(0.0))
}

fn stamp<C: narrows_units::Clock>(at: f64) -> Stamp<C> {
    Stamp::from_nanos(0) + Delta::from(seconds(at))
}

/// Asserts that a number lies within both bounds.
#[track_caller]
pub fn within(value: u64, low: f64, high: f64) {
    between(value as f64, low, high);
}

/// The same of a number.
#[track_caller]
pub fn between(value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "{value} is outside {low}..={high}");
}

/// One piece of evidence as a number.
#[track_caller]
pub fn number(estimate: &Estimate, name: &str) -> f64 {
    let value = estimate.diagnostics.get(name).and_then(crate::outcome::Diagnostic::as_f64);
    value.unwrap_or_else(|| panic!("no number {name} in {:?}", estimate.diagnostics))
}

/// One piece of evidence as a word.
#[track_caller]
pub fn word(estimate: &Estimate, name: &str) -> String {
    match estimate.diagnostics.get(name) {
        Some(crate::outcome::Diagnostic::Text(text)) => text.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

/// A rate in bit/s as a rate.
pub fn bps(rate: f64) -> BitRate {
    BitRate::from_bps(rounded(rate))
}
