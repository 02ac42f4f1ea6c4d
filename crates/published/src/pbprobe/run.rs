//! The state machine: test for batches, bulks that grow until stamps can tell them, then many of
//! that length.

use std::time::Duration;

use narrows_units::{Sender, Stamp, to_u64};

use super::Params;
use super::paced::Paced;
use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Probe, Train, TrainId, TrainReport};
use narrows_train::mindelay;
use narrows_train::mindelay::{Batching, Grain, Hunt, HuntResult, Rule, Runs, State, Stop, Via};
use narrows_train::train_method::refusal_reason;

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    pub(super) via: Via,
    pub(super) batching: Batching,
    tests: u32,
    pub(super) octets: u16,
    /// Packets after the first.
    pub(super) length: usize,
    /// The longest that came through, or was not yet tried.
    longest: usize,
    /// Lengths only shrink from here on.
    pub(super) shortened: bool,
    pub(super) hunt: Option<Hunt>,
    /// What bulks of full packets found, while smaller ones check it.
    pub(super) first: Option<(u16, HuntResult)>,
    /// The answer under its last test.
    pub(super) paced: Option<Paced>,
    pub(super) tally: Tally,
    asked: Option<Train>,
    serial: u32,
    refusals: u32,
    not_before: Option<Stamp<Sender>>,
}

/// What bulks of all lengths together saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) disordered: u64,
}

impl Run {
    /// A run with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            via: params.via,
            octets: 0,
            length: 1,
            longest: params.most_packets,
            shortened: false,
            params,
            facts: None,
            batching: Batching::default(),
            tests: 0,
            hunt: None,
            first: None,
            paced: None,
            tally: Tally::default(),
            asked: None,
            serial: 0,
            refusals: 0,
            not_before: None,
        }
    }

    /// Two packets for each of the bulks of one.
    fn answers_wanted(&self) -> u64 {
        let bulks =
            if self.params.stable == 0 { self.params.bulks } else { (self.params.stable + 1).min(self.params.bulks) };
        2 * u64::try_from(bulks).unwrap_or(u64::MAX / 2)
    }

    /// Whether packets come in batches.
    pub(super) fn batched(&self) -> bool {
        self.batching.seen() == Some(true)
    }

    /// The answer of bulks that have settled; nothing if others must come first: shorter ones where
    /// most of these hold packets of others, smaller packets where that cannot be seen, or slower
    /// ones to test it.
    fn settled(&mut self) -> Option<Outcome> {
        let found = self.hunt.as_ref().and_then(|hunt| hunt.found(self.batched()))?;
        if let Some((octets, first)) = self.first {
            let rate = |octets, found: &HuntResult| mindelay::wire_rate(self.params.framing, octets, found.each_ns);
            let (a, b) = (rate(octets, &first), rate(self.octets, &found));
            let agree = (a - b).abs() / (a + b) < AGREE;
            if agree {
                return self.unless_tested(octets, first);
            }
            return Some(self.no_number(Reason::NotConverged));
        }
        let idle = found.clean as f64 >= IDLE * found.samples as f64;
        if idle || !self.params.check {
            return self.unless_tested(self.octets, found);
        }
        if self.tells_gaps(&found) {
            if found.each_ns <= PARTED * found.typical_ns {
                return self.unless_tested(self.octets, found);
            }
            // As many packets of others in each of the best bulks: ties, since packets come in
            // whole ones.
            let shorter = self.can_shorten() && self.shrink(self.params.growth);
            return (!shorter).then(|| self.no_number(Reason::NotConverged));
        }
        self.first = Some((self.octets, found));
        self.shortened = true;
        self.octets = (self.octets / 10 * 7).max(28);
        self.change_to(self.length);
        None
    }

    /// The stamps tell single gaps, and there are enough of them for a median.
    pub(super) fn tells_gaps(&self, found: &HuntResult) -> bool {
        let grain = self.grain().map_or(f64::INFINITY, |grain| grain.arrival_ns);
        found.best.after >= LEAST_GAPS && !self.batched() && grain <= found.typical_ns / 4.0
    }

    /// The dispersion is below what is wanted: of a few bulks to begin with, and of the best when
    /// all are there.
    fn short(&self) -> bool {
        let Some(hunt) = self.hunt.as_ref().filter(|_| !self.shortened) else {
            return false;
        };
        if hunt.samples() + hunt.closed < FIRST_CHECK {
            return false;
        }
        let span = hunt.found(false).map_or(0.0, |found| found.span_ns);
        hunt.closed > hunt.samples() || span < self.wanted_ns(hunt)
    }

    /// The paper's threshold; ours where stamps are coarser than it thinks of, or come in batches.
    fn wanted_ns(&self, hunt: &Hunt) -> f64 {
        let batched = if self.batched() { hunt.period_ns().max(self.batching.period_ns()) } else { 0.0 };
        let grain = self.grain().map_or(0.0, |grain| grain.arrival_ns);
        narrows_units::nanos_f64(self.params.threshold).max(BATCHES * batched).max(STEPS * grain)
    }

    pub(super) fn grain(&self) -> Option<Grain> {
        Some(Grain::of(self.facts.as_ref()?, self.via.reads()))
    }

    /// `false` if it cannot.
    fn lengthen(&mut self) -> bool {
        let longer = self.length.saturating_mul(self.params.growth).min(self.longest);
        if longer <= self.length {
            return false;
        }
        self.change_to(longer);
        true
    }

    /// `false` if it cannot. Bulks grow no more once they had to shrink.
    fn shrink(&mut self, by: usize) -> bool {
        if self.length <= 1 {
            return false;
        }
        let length = (self.length / by).max(1);
        self.shortened = true;
        self.longest = length;
        self.change_to(length);
        true
    }

    fn change_to(&mut self, length: usize) {
        self.close_hunt();
        self.length = length;
        self.start_hunt();
    }

    /// Most bulks lose packets: they are longer than some queue, or so is the traffic.
    fn choked(&self) -> bool {
        let Some(hunt) = &self.hunt else { return false };
        hunt.sent() >= ENOUGH_TO_JUDGE && 2 * hunt.lost() > hunt.sent()
    }

    /// Shorter bulks find idle moments more often, if stamps can still tell them.
    fn can_shorten(&self) -> bool {
        let (Some(hunt), Some(grain)) = (&self.hunt, self.grain()) else {
            return false;
        };
        let span = hunt.found(false).map_or(0.0, |found| found.span_ns);
        let shorter = span / self.params.growth as f64;
        self.params.shorten && !self.batched() && grain.arrival_ns <= COARSEST * shorter
    }

    fn start_hunt(&mut self) {
        let (Some(grain), reads) = (self.grain(), self.via.reads()) else {
            return;
        };
        let period_ns = if self.batched() {
            let seen = self.hunt.as_ref().map_or(0.0, Hunt::period_ns);
            seen.max(self.batching.period_ns())
        } else {
            0.0
        };
        let rule = Rule { tolerance: self.params.tolerance, grain, two_clocks: reads.two_clocks(), period_ns };
        let stop = Stop {
            stable: if self.params.stable == 0 { usize::MAX } else { self.params.stable },
            least: 0,
            most: self.params.bulks,
            clean: self.params.clean,
            still: None,
        };
        self.hunt = Some(Hunt::new(rule, stop, reads));
    }

    pub(super) fn close_hunt(&mut self) {
        let Some(hunt) = &self.hunt else { return };
        self.tally.sent += to_u64(hunt.sent());
        self.tally.lost += to_u64(hunt.lost());
        self.tally.disordered += to_u64(hunt.disordered);
    }

    fn send(&mut self, now: Stamp<Sender>, packets: usize) -> Step {
        self.send_spaced(now, packets, Duration::ZERO)
    }

    pub(super) fn send_spaced(&mut self, now: Stamp<Sender>, packets: usize, gap: Duration) -> Step {
        self.serial += 1;
        let train = Train::uniform(TrainId(self.serial), packets, self.octets, gap);
        let train = self.via.ask(train);
        self.not_before = Some(now + self.wait());
        self.asked = Some(train.clone());
        Step::Send(Probe::Train(train))
    }

    /// `G = 2 δ / U` from the begin of one bulk to the next, with δ the least dispersion so far and
    /// U the permitted utilisation.
    fn wait(&self) -> Duration {
        let rtt = self.facts.as_ref().map_or(Duration::ZERO, |facts| facts.rtt);
        let span = self.hunt.as_ref().and_then(|hunt| hunt.found(false)).map(|found| found.span_ns);
        let seconds = match span {
            Some(span) => 2.0 * span / 1e9 / self.params.utilisation,
            None => rtt.mul_f64(1.25).max(FIRST_WAIT).as_secs_f64(),
        };
        let seconds = (seconds * mindelay::uneven(self.serial)).clamp(LEAST_WAIT.as_secs_f64(), 60.0);
        Duration::from_secs_f64(seconds)
    }
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("pbprobe", "bulks of packets of its own lengths");

    fn replay_step(&mut self, asked: &Probe) -> bool {
        mindelay::is_own(asked, self.asked.as_ref())
    }
}

impl Runs for Run {
    fn is_begun(&self) -> bool {
        self.facts.is_some()
    }

    fn unable(&self, facts: &PathFacts) -> Option<Reason> {
        mindelay::answers_take_too_long(facts, self.answers_wanted(), super::INFO.imposes.max_time)
    }

    fn begin(&mut self, facts: PathFacts) {
        self.octets = self.params.octets.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        self.via = self.via.met_by(facts.answering);
        if let Some(limit) = facts.answer_limit {
            // What is longer than such hosts answer at once never comes whole.
            self.tests = MOST_TESTS;
            let most = usize::try_from(limit.burst()).unwrap_or(usize::MAX);
            self.longest = self.longest.min(most.saturating_sub(1).max(1));
        }
        self.facts = Some(facts);
    }

    fn next(&mut self, now: Stamp<Sender>) -> Step {
        if let Some(until) = self.not_before.take().filter(|until| *until > now) {
            return Step::Wait { until };
        }
        if self.hunt.is_none() {
            if self.batching.seen().is_none() && self.tests < MOST_TESTS {
                self.tests += 1;
                return self.send(now, TEST_PACKETS);
            }
            self.start_hunt();
        }
        // Each turn changes the length; no run changes it so often.
        for _ in 0..MOST_CHANGES {
            if let Some(step) = self.test_pace(now) {
                return step;
            }
            if self.short() && self.lengthen() {
                continue;
            }
            let state = self.hunt.as_ref().map_or(State::More, Hunt::state);
            let done = match state {
                State::More if self.first.is_none() && self.choked() && self.shrink(2) => continue,
                State::More => return self.send(now, self.length + 1),
                State::Settled => match self.settled() {
                    Some(done) => done,
                    None => continue,
                },
                _ if self.first.is_some() => self.no_number(Reason::NotConverged),
                State::Silent | State::Lossy if self.shrink(2) => continue,
                State::Unsettled if self.can_shorten() && self.shrink(self.params.growth) => continue,
                State::Unsettled => self.no_number(Reason::NotConverged),
                State::Silent => self.no_number(Reason::NoAnswer),
                State::Lossy => {
                    self.close_hunt();
                    let (lost, sent) = (self.tally.lost, self.tally.sent);
                    self.no_number(Reason::TooMuchLoss { lost, sent })
                }
            };
            return Step::Done(done);
        }
        Step::Done(self.no_number(Reason::NotConverged))
    }

    fn take(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        if self.asked.take().is_none_or(|asked| asked.id != report.id) {
            return Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent));
        }
        if self.take_paced(report) {
            return self.next(now);
        }
        if let Some(other) = self.via.without_stamps(report) {
            self.via = other;
            self.hunt = None;
            return self.next(now);
        }
        let reads = self.via.reads();
        match &mut self.hunt {
            Some(hunt) => hunt.take(report),
            None => {
                self.batching.take(report, reads);
            }
        }
        self.next(now)
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        if let Some(untested) = self.untested() {
            return Step::Done(untested);
        }
        if self.first.is_some() {
            return Step::Done(self.no_number(Reason::NotConverged));
        }
        let long = self.asked.take().is_some_and(|asked| asked.packets.len() > 2);
        self.refusals += 1;
        let again = self.refusals <= MOST_REFUSALS
            && match refusal {
                // Whoever forbids this may allow a shorter one.
                Refusal::ForbiddenByPeer if self.hunt.is_some() => self.shrink(2),
                Refusal::ForbiddenByPeer if long => {
                    self.tests = MOST_TESTS;
                    true
                }
                Refusal::ForbiddenByPeer => false,
                Refusal::NotOffered => match self.via.instead() {
                    Some(other) => {
                        self.via = other;
                        self.hunt = None;
                        true
                    }
                    None => false,
                },
                Refusal::TooLarge { max_ip_octets } => {
                    let smaller = (100..self.octets).contains(&max_ip_octets);
                    self.octets = self.octets.min(max_ip_octets);
                    self.hunt = None;
                    smaller
                }
                Refusal::TooSmall { min_ip_octets } => {
                    let larger = min_ip_octets > self.octets;
                    self.octets = self.octets.max(min_ip_octets);
                    self.hunt = None;
                    larger
                }
            };
        if again {
            return self.next(now);
        }
        let what = "bulks of packets that the peer stamps or answers";
        Step::Done(self.no_number(refusal_reason(refusal, what)))
    }

    fn stop(&mut self, reason: Reason) -> Outcome {
        self.close_hunt();
        self.no_number(reason)
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        mindelay::step(self, now, event)
    }
}

/// Ours: with this share of the bulks clean nothing waits on the path that could part them.
const IDLE: f64 = 0.9;
/// Ours: most of the mean gap over the typical one in bulks that hold no packets of others.
const PARTED: f64 = 1.05;
/// Ours: gaps from which a median is one.
const LEAST_GAPS: usize = 5;
/// Ours, as `[CapProbe04]` of its two sizes.
const AGREE: f64 = 0.05;
/// Ours: packets of a test train.
const TEST_PACKETS: usize = 20;
/// Ours: trains that may be lost or leave it open.
const MOST_TESTS: u32 = 5;
/// Ours: bulks from which their dispersion is judged the first time.
const FIRST_CHECK: usize = 10;
/// Ours: bulks from which losses are judged.
const ENOUGH_TO_JUDGE: usize = 12;
/// Ours: halvings and growths of one run; 60 000 packets are sixteen halvings.
const MOST_CHANGES: u32 = 40;
const MOST_REFUSALS: u32 = 40;
/// Ours: batches in a bulk, so that the parts of a batch at its ends are 5 % of it.
const BATCHES: f64 = 20.0;
/// Ours: steps of the clock in a dispersion.
const STEPS: f64 = 50.0;
/// Ours: of a dispersion, what one stamp may be wrong by.
pub(super) const COARSEST: f64 = 0.05;
/// Ours.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// Ours.
const LEAST_WAIT: Duration = Duration::from_millis(1);
