//! The state machine: test for batches, a run of pairs of each of two sizes, other sizes where they
//! do not agree.

use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp, to_u64};

use super::Params;
use super::check::CHECKS;
use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Probe, Train, TrainId, TrainReport};
use narrows_train::mindelay;
use narrows_train::mindelay::{Batching, Grain, Hunt, HuntResult, Rule, Runs, State, Stop, Via};

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    pub(super) via: Via,
    pub(super) batching: Batching,
    tests: u32,
    /// Sizes of the two runs.
    pub(super) octets: (u16, u16),
    /// What the first run found, and the second's.
    pub(super) found: Vec<(u16, HuntResult)>,
    pub(super) hunt: Option<Hunt>,
    /// What pairs of small packets found, once the check is on.
    pub(super) checks: Option<Vec<(u16, Option<HuntResult>)>>,
    pub(super) restarts: u32,
    pub(super) tally: Tally,
    /// Rate on the wire from the last run, bit/s.
    rate_bps: Option<f64>,
    asked: Option<Train>,
    serial: u32,
    not_before: Option<Stamp<Sender>>,
}

/// What all runs together saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) disordered: u64,
    pub(super) pairs: u64,
    pub(super) clean: u64,
}

impl Run {
    /// A run with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            via: params.via,
            octets: (params.octets, params.second_octets),
            params,
            facts: None,
            batching: Batching::default(),
            tests: 0,
            found: Vec::new(),
            hunt: None,
            checks: None,
            restarts: 0,
            tally: Tally::default(),
            rate_bps: None,
            asked: None,
            serial: 0,
            not_before: None,
        }
    }

    /// Two packets for each pair of each run.
    fn answers_wanted(&self) -> u64 {
        let pairs = (self.params.stable + 1).max(self.params.least).min(self.params.most);
        4 * u64::try_from(pairs).unwrap_or(u64::MAX / 4)
    }

    /// Size of the run that is on.
    pub(super) fn size(&self) -> u16 {
        if let Some(checks) = &self.checks {
            let sevenths = CHECKS[checks.len().min(CHECKS.len() - 1)];
            return scaled(self.octets.0.min(self.octets.1), sevenths / 7.0);
        }
        if self.found.is_empty() { self.octets.0 } else { self.octets.1 }
    }

    /// Takes over what the hunt found; the answer if that was the second and they agree.
    fn settled(&mut self) -> Option<Step> {
        let found = self.hunt.as_ref().and_then(|hunt| hunt.found(false))?;
        self.found.push((self.size(), found));
        if let [first, second] = self.found[..] {
            let rate =
                |(octets, found): (u16, HuntResult)| mindelay::wire_rate(self.params.framing, octets, found.each_ns);
            let (a, b) = (rate(first), rate(second));
            // Pairs that the sender spaced are bounds, each by itself.
            let open = first.1.best.open() && second.1.best.open();
            if open || (a - b).abs() / (a + b) < self.params.agree {
                self.close_hunt();
                if !self.wants_check() {
                    return Some(Step::Done(self.answer()));
                }
                self.checks = Some(Vec::new());
                self.start_hunt();
                return None;
            }
            return self.other_sizes();
        }
        self.close_hunt();
        self.start_hunt();
        None
    }

    /// Changes both sizes and begins again; the answer if that was tried often enough, or cannot
    /// help.
    fn other_sizes(&mut self) -> Option<Step> {
        let coarse = self.too_coarse();
        let spread = self.hunt.as_ref().and_then(Hunt::spread);
        let most = self.facts.as_ref().map_or(LARGEST, |facts| facts.path_mtu).min(LARGEST);
        let larger = coarse || spread.is_some_and(|(least, most)| most > self.params.spread * least);
        if coarse && self.octets.0.max(self.octets.1) >= most {
            return Some(Step::Done(self.no_number(Reason::StampsTooCoarse)));
        }
        if self.restarts >= self.params.restarts {
            return Some(Step::Done(self.no_number(Reason::NotConverged)));
        }
        self.restarts += 1;
        self.close_hunt();
        self.found.clear();
        if coarse || self.restarts.is_multiple_of(self.params.preset.judges_every()) {
            let factor = if larger { 1.0 + self.params.resize } else { 1.0 - self.params.resize };
            self.resize(factor, most);
        }
        self.start_hunt();
        None
    }

    /// Both sizes by one factor, as far as the larger and the smaller may go.
    fn resize(&mut self, factor: f64, most: u16) {
        let (low, high) = (self.octets.0.min(self.octets.1), self.octets.0.max(self.octets.1));
        let limit = if factor > 1.0 {
            f64::from(most) / f64::from(high)
        } else {
            f64::from(SMALLEST.min(low)) / f64::from(low)
        };
        let factor = if factor > 1.0 { factor.min(limit.max(1.0)) } else { factor.max(limit) };
        self.octets = (scaled(self.octets.0, factor), scaled(self.octets.1, factor));
    }

    /// The stamps do not resolve these pairs: judged once a few have come.
    pub(super) fn too_coarse(&self) -> bool {
        let (Some(hunt), Some(facts)) = (&self.hunt, &self.facts) else {
            return false;
        };
        let grain = Grain::of(facts, self.via.reads());
        if self.checks.is_some() {
            // A check that cannot be told is none.
            return hunt.samples() >= ENOUGH_TO_JUDGE
                && grain.arrival_ns > COARSEST * hunt.found(false).map_or(0.0, |found| found.span_ns);
        }
        let judged = hunt.samples() + hunt.closed >= ENOUGH_TO_JUDGE;
        let span = hunt.found(false).map_or(0.0, |found| found.best.span_ns);
        let blurred = grain.arrival_ns > COARSEST * span || grain.departure_ns > 2.0 * COARSEST * span;
        judged && (blurred || hunt.closed > hunt.samples())
    }

    pub(super) fn start_hunt(&mut self) {
        let Some(facts) = &self.facts else { return };
        let reads = self.via.reads();
        let checking = self.checks.is_some();
        let rule = Rule {
            // A check is of differences of a seventh and more.
            tolerance: if checking { self.params.tolerance.max(CHECK_TOLERANCE) } else { self.params.tolerance },
            grain: Grain::of(facts, reads),
            two_clocks: reads.two_clocks(),
            period_ns: 0.0,
        };
        let stop = Stop {
            stable: self.params.stable,
            least: self.params.least,
            most: if checking { self.params.most.max(CHECK_PAIRS) } else { self.params.most },
            clean: self.params.clean,
            still: (self.params.still > 0).then_some((self.params.still, STILL)),
        };
        self.hunt = Some(Hunt::new(rule, stop, reads));
    }

    /// Counts what the hunt saw; it is kept for the evidence until the next one begins.
    pub(super) fn close_hunt(&mut self) {
        let Some(hunt) = &self.hunt else { return };
        self.tally.sent += 2 * to_u64(hunt.sent());
        self.tally.lost += to_u64(hunt.lost());
        self.tally.disordered += to_u64(hunt.disordered);
        self.tally.pairs += to_u64(hunt.samples());
        self.tally.clean += hunt.found(false).map_or(0, |found| to_u64(found.clean));
    }

    /// A train in which batches would show, of the smaller packets.
    fn test(&mut self, now: Stamp<Sender>) -> Step {
        if let Some(wait) = self.early(now) {
            return wait;
        }
        self.tests += 1;
        self.send(now, TEST_PACKETS, self.octets.0.min(self.octets.1))
    }

    fn pair(&mut self, now: Stamp<Sender>) -> Step {
        self.early(now).unwrap_or_else(|| self.send(now, 2, self.size()))
    }

    /// The wait, if it is too early for the next train.
    fn early(&mut self, now: Stamp<Sender>) -> Option<Step> {
        let until = self.not_before.take().filter(|until| *until > now)?;
        Some(Step::Wait { until })
    }

    fn send(&mut self, now: Stamp<Sender>, packets: usize, octets: u16) -> Step {
        self.serial += 1;
        let train = Train::uniform(TrainId(self.serial), packets, octets, Duration::ZERO);
        let train = self.via.ask(train);
        self.not_before = Some(now + self.wait(&train));
        self.asked = Some(train.clone());
        Step::Send(Probe::Train(train))
    }

    /// From the begin of this train to the next: at most the permitted share of the rate seen so
    /// far; before there is one, a round trip and a quarter, as the kernel re-implementation.
    fn wait(&self, train: &Train) -> Duration {
        let rtt = self.facts.as_ref().map_or(Duration::ZERO, |facts| facts.rtt);
        let seen = self.hunt.as_ref().filter(|hunt| hunt.samples() >= FEW).and_then(|hunt| hunt.found(false));
        let octets = train.packets.first().map_or(0, |packet| packet.ip_octets);
        let rate = seen.map(|found| mindelay::wire_rate(self.params.framing, octets, found.each_ns));
        let seconds = match rate.or(self.rate_bps) {
            Some(rate) => train.ip_octets() as f64 * 8.0 / (rate * self.params.utilisation),
            None => rtt.mul_f64(1.25).max(FIRST_WAIT).as_secs_f64(),
        };
        let seconds = (seconds * mindelay::uneven(self.serial)).clamp(LEAST_WAIT.as_secs_f64(), 60.0);
        Duration::from_secs_f64(seconds)
    }

    fn restart_at(&mut self, now: Stamp<Sender>, largest: u16) -> Step {
        if let Some(facts) = &mut self.facts {
            facts.path_mtu = facts.path_mtu.min(largest);
        }
        self.restarts += 1;
        self.found.clear();
        self.hunt = None;
        self.next(now)
    }
}

fn scaled(octets: u16, factor: f64) -> u16 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
    let scaled = (f64::from(octets) * factor).round().clamp(28.0, 65_535.0) as u16;
    scaled
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("capprobe", "pairs of packets of its own sizes");

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
        let mtu = facts.path_mtu;
        self.octets = (self.octets.0.min(mtu), self.octets.1.min(mtu));
        if self.octets.0 == self.octets.1 {
            // A path whose MTU is below both sizes: keep their ratio.
            let second = u32::from(mtu) * u32::from(self.params.octets.min(self.params.second_octets));
            let first = u32::from(self.params.octets.max(self.params.second_octets));
            self.octets.1 = u16::try_from(second / first.max(1)).unwrap_or(mtu);
        }
        self.via = self.via.met_by(facts.answering);
        if facts.answer_limit.is_some() {
            // A test train is longer than such hosts answer at once.
            self.tests = MOST_TESTS;
        }
        self.facts = Some(facts);
    }

    fn next(&mut self, now: Stamp<Sender>) -> Step {
        if self.hunt.is_none() {
            match self.batching.seen() {
                Some(true) => return Step::Done(self.no_number(Reason::ReceiveBatching)),
                None if self.tests < MOST_TESTS => return self.test(now),
                Some(false) | None => self.start_hunt(),
            }
        }
        // Each turn of the loop ends a hunt; there are two per restart, and the checks.
        for _ in 0..=CHECKS.len() {
            let state = self.hunt.as_ref().map_or(State::More, Hunt::state);
            let state = if self.too_coarse() { State::Unsettled } else { state };
            match state {
                State::Settled | State::Unsettled | State::Lossy | State::Silent if self.checks.is_some() => {
                    if let Some(done) = self.checked(state == State::Settled) {
                        return done;
                    }
                }
                State::More => return self.pair(now),
                State::Silent => return Step::Done(self.no_number(Reason::NoAnswer)),
                State::Lossy => {
                    self.close_hunt();
                    let (lost, sent) = (self.tally.lost, self.tally.sent);
                    return Step::Done(self.no_number(Reason::TooMuchLoss { lost, sent }));
                }
                State::Settled => {
                    if let Some(done) = self.settled() {
                        return done;
                    }
                }
                State::Unsettled => {
                    if let Some(done) = self.other_sizes() {
                        return done;
                    }
                }
            }
        }
        self.pair(now)
    }

    fn take(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        let Some(asked) = self.asked.take().filter(|asked| asked.id == report.id) else {
            return Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent));
        };
        if let Some(other) = self.via.without_stamps(report) {
            self.via = other;
            self.hunt = None;
            return self.next(now);
        }
        let reads = self.via.reads();
        if let Some(hunt) = &mut self.hunt {
            hunt.take(report);
            let octets = asked.packets.first().map_or(0, |packet| packet.ip_octets);
            if let Some(found) = hunt.found(false).filter(|_| hunt.samples() >= FEW) {
                self.rate_bps = Some(mindelay::wire_rate(self.params.framing, octets, found.each_ns));
            }
        } else {
            self.batching.take(report, reads);
        }
        self.next(now)
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        if self.checks.is_some() {
            return Step::Done(self.answer());
        }
        let give_up = |run: &Self| {
            let what = "pairs of packets that the peer stamps or answers".to_owned();
            Step::Done(run.no_number(Reason::NotOffered { what }))
        };
        match refusal {
            Refusal::ForbiddenByPeer => Step::Done(self.no_number(Reason::ForbiddenByPeer)),
            Refusal::NotOffered => match self.via.instead() {
                Some(other) => {
                    self.via = other;
                    self.hunt = None;
                    self.next(now)
                }
                None => give_up(self),
            },
            Refusal::TooLarge { max_ip_octets } => {
                let largest = self.octets.0.max(self.octets.1);
                if max_ip_octets >= largest || max_ip_octets < 100 {
                    return give_up(self);
                }
                let factor = f64::from(max_ip_octets) / f64::from(largest);
                self.octets = (scaled(self.octets.0, factor), scaled(self.octets.1, factor));
                self.restart_at(now, max_ip_octets)
            }
            Refusal::TooSmall { min_ip_octets } => {
                let least = self.octets.0.min(self.octets.1);
                let factor = f64::from(min_ip_octets) / f64::from(least);
                if factor <= 1.0 || factor > 4.0 || self.restarts >= self.params.restarts {
                    return give_up(self);
                }
                self.octets = (scaled(self.octets.0, factor), scaled(self.octets.1, factor));
                self.restart_at(now, u16::MAX)
            }
        }
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

/// The IP-layer rate that an answer is stated for.
pub(super) fn full_size_rate(params: &Params, facts: &PathFacts, wire_bps: f64) -> Option<BitRate> {
    BitRate::from_bps_f64(mindelay::ip_rate(params.framing, facts.path_mtu, wire_bps))
}

/// Ours: pairs of each of those at most.
const CHECK_PAIRS: usize = 400;
/// Ours.
const CHECK_TOLERANCE: f64 = 0.05;
/// Ours: packets of a test train.
const TEST_PACKETS: usize = 20;
/// Ours: trains that may be lost or leave it open.
const MOST_TESTS: u32 = 5;
/// The kernel re-implementation's limits of sizes; a smaller MTU or a smaller size asked for
/// counts.
const LARGEST: u16 = 1500;
const SMALLEST: u16 = 500;
/// The kernel re-implementation.
const STILL: f64 = 0.02;
/// The kernel re-implementation: estimates count from this many samples on.
const FEW: usize = 5;
/// Ours: pairs of a run from which its stamps are judged.
const ENOUGH_TO_JUDGE: usize = 8;
/// Ours: the published accuracy is 10 %; stamps that alone allow no better are refused.
const COARSEST: f64 = 0.1;
/// Ours.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// Ours.
const LEAST_WAIT: Duration = Duration::from_millis(1);
