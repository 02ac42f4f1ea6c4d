//! The state machine: a test for batches, then one hunt for each kind of pair.

use std::time::Duration;

use narrows_units::{Sender, Stamp, to_u64};

use super::Params;
use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Refusal, Step};
use narrows_probe::facts::Answering;
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PeerKind, Probe, Train, TrainId, TrainReport};
use narrows_train::mindelay;
use narrows_train::mindelay::{Batching, Grain, Hunt, HuntResult, Reads, Rule, Runs, State, Stop};
use narrows_train::train_method::refusal_reason;

/// A kind of pair: how long its requests are, and its replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Long requests, short replies.
    Forward,
    /// Short requests, long replies.
    Reverse,
    /// Requests of the third size, short replies.
    ForwardThird,
    /// Short requests, replies of the third size.
    ReverseThird,
    /// Both short.
    Short,
    /// Both long.
    Long,
}

const KINDS: [Kind; 6] =
    [Kind::Forward, Kind::Reverse, Kind::ForwardThird, Kind::ReverseThird, Kind::Short, Kind::Long];

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    /// What answers; of a server any size can be asked for.
    answering: Answering,
    pub(super) large: u16,
    pub(super) small: u16,
    pub(super) batching: Batching,
    tests: u32,
    /// What was found of the kinds so far; `None` where the pairs did not settle.
    pub(super) found: Vec<(Kind, Option<HuntResult>)>,
    pub(super) hunt: Option<Hunt>,
    pub(super) tally: (u64, u64),
    asked: Option<Train>,
    serial: u32,
    refusals: u32,
    not_before: Option<Stamp<Sender>>,
}

impl Run {
    /// A run with these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            answering: Answering::Server,
            large: 0,
            small: params.small,
            params,
            facts: None,
            batching: Batching::default(),
            tests: 0,
            found: Vec::new(),
            hunt: None,
            tally: (0, 0),
            asked: None,
            serial: 0,
            refusals: 0,
            not_before: None,
        }
    }

    /// IP octets of requests and replies.
    pub(super) fn octets(&self, kind: Kind) -> (u16, u16) {
        let third = u32::from(self.large) * thousandths(self.params.third) / 1000;
        let third = u16::try_from(third).unwrap_or(self.large).max(self.small);
        let fixed = match self.answering {
            Answering::Server | Answering::Echo | Answering::Reflector => None,
            Answering::ClosedPort => Some(MOST_QUOTED),
            Answering::TcpSyn => Some(TCP_ANSWER),
        };
        if let Some(reply) = fixed {
            return match kind {
                Kind::ForwardThird => (third, reply),
                Kind::Forward | Kind::Reverse | Kind::ReverseThird | Kind::Short | Kind::Long => (self.large, reply),
            };
        }
        match kind {
            Kind::Forward => (self.large, self.small),
            Kind::Reverse => (self.small, self.large),
            Kind::ForwardThird => (third, self.small),
            Kind::ReverseThird => (self.small, third),
            Kind::Short => (self.small, self.small),
            Kind::Long => (self.large, self.large),
        }
    }

    fn kind(&self) -> Option<Kind> {
        let kinds = match self.answering {
            // Answers of one size show the forward direction alone.
            Answering::ClosedPort | Answering::TcpSyn => &[Kind::Forward, Kind::ForwardThird][..],
            Answering::Server | Answering::Echo | Answering::Reflector if self.params.trio => &KINDS[..],
            Answering::Server | Answering::Echo | Answering::Reflector => &KINDS[..4],
        };
        kinds.get(self.found.len()).copied()
    }

    fn close_hunt(&mut self, kind: Kind, settled: bool) {
        let hunt = self.hunt.take();
        let found = hunt.as_ref().and_then(|hunt| hunt.found(false)).filter(|_| settled);
        if let Some(hunt) = hunt {
            self.tally.0 += to_u64(hunt.sent());
            self.tally.1 += to_u64(hunt.lost());
        }
        self.found.push((kind, found));
        self.start_hunt();
    }

    fn start_hunt(&mut self) {
        let Some(facts) = &self.facts else { return };
        let rule = Rule {
            tolerance: self.params.tolerance,
            grain: Grain::of(facts, Reads::Returns),
            two_clocks: false,
            period_ns: 0.0,
        };
        let stop = Stop {
            stable: self.params.stable,
            least: 0,
            most: self.params.most,
            clean: self.params.clean,
            still: None,
        };
        self.hunt = Some(Hunt::new(rule, stop, Reads::Returns));
    }

    fn send(&mut self, now: Stamp<Sender>, packets: usize, kind: Kind) -> Step {
        self.serial += 1;
        let (request, reply) = self.octets(kind);
        let mut train = Train::uniform(TrainId(self.serial), packets, request, Duration::ZERO);
        train.peer_kind = match self.answering {
            Answering::Server | Answering::Echo | Answering::Reflector => PeerKind::EchoSized(reply),
            other => other.peer_kind(),
        };
        self.not_before = Some(now + self.wait(packets));
        self.asked = Some(train.clone());
        Step::Send(Probe::Train(train))
    }

    /// The dispersion is how long the slower of the two narrow links is busy with a packet.
    fn wait(&self, packets: usize) -> Duration {
        let rtt = self.facts.as_ref().map_or(Duration::ZERO, |facts| facts.rtt);
        let found = self.hunt.as_ref().filter(|hunt| hunt.samples() >= FEW).and_then(|hunt| hunt.found(false));
        let seconds = match found {
            Some(found) => packets as f64 * found.each_ns / 1e9 / self.params.utilisation,
            None => rtt.mul_f64(1.25).max(FIRST_WAIT).as_secs_f64(),
        };
        let seconds = (seconds * mindelay::uneven(self.serial)).clamp(LEAST_WAIT.as_secs_f64(), 60.0);
        Duration::from_secs_f64(seconds)
    }
}

fn thousandths(share: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a parameter between 0.3 and 0.9")]
    let whole = (share * 1000.0).round() as u32;
    whole
}

impl Replayable for Run {
    const READS: (&'static str, &'static str) = ("asymprobe", "echoed pairs of its own sizes");

    fn replay_step(&mut self, asked: &Probe) -> bool {
        mindelay::is_own(asked, self.asked.as_ref())
    }
}

impl Runs for Run {
    fn is_begun(&self) -> bool {
        self.facts.is_some()
    }

    /// Why a run is not begun: the remote host would take too long to answer, or in sizes that
    /// vary.
    fn unable(&self, facts: &PathFacts) -> Option<Reason> {
        let pairs = u64::try_from(self.params.stable.min(self.params.most)).unwrap_or(u64::MAX / 8);
        let late = mindelay::answers_take_too_long(facts, 4 * (pairs + 1), super::INFO.imposes.max_time);
        let large = u32::from(self.params.large.unwrap_or(facts.path_mtu).min(facts.path_mtu));
        let third = large * thousandths(self.params.third) / 1000;
        // Hosts that quote whole packets quote no more than this of them; both sizes must fill it.
        let vary = facts.answering == Answering::ClosedPort && third < u32::from(MOST_QUOTED);
        late.or_else(|| {
            vary.then(|| Reason::NotOffered {
                what: "answers of one size to packets of two: they quote all of the shorter ones".to_owned(),
            })
        })
    }

    fn begin(&mut self, facts: PathFacts) {
        self.large = self.params.large.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        self.small = self.small.min(self.large);
        self.answering = facts.answering;
        if facts.answer_limit.is_some() {
            // A test train is longer than such hosts answer at once.
            self.tests = MOST_TESTS;
        }
        self.facts = Some(facts);
    }

    fn next(&mut self, now: Stamp<Sender>) -> Step {
        if let Some(until) = self.not_before.take().filter(|until| *until > now) {
            return Step::Wait { until };
        }
        if self.hunt.is_none() {
            match self.batching.seen() {
                Some(true) => return Step::Done(self.no_number(Reason::ReceiveBatching)),
                // Long requests with short replies, which only the forward direction can spread,
                // and long replies, in turn.
                None if self.tests < MOST_TESTS => {
                    self.tests += 1;
                    return self.send(now, TEST_PACKETS, Kind::Long);
                }
                Some(false) | None => self.start_hunt(),
            }
        }
        // Each turn ends the hunt for one kind.
        for _ in 0..=KINDS.len() {
            let Some(kind) = self.kind() else { break };
            let Some(state) = self.hunt.as_ref().map(Hunt::state) else {
                break;
            };
            match state {
                State::More => return self.send(now, 2, kind),
                State::Silent => return Step::Done(self.no_number(Reason::NoAnswer)),
                State::Settled | State::Unsettled | State::Lossy => self.close_hunt(kind, state == State::Settled),
            }
        }
        Step::Done(self.answer())
    }

    fn take(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        if self.asked.take().is_none_or(|asked| asked.id != report.id) {
            return Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent));
        }
        match &mut self.hunt {
            Some(hunt) => hunt.take(report),
            None => {
                self.batching.take(report, Reads::Returns);
            }
        }
        self.next(now)
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        self.refusals += 1;
        self.asked = None;
        let possible = match refusal {
            Refusal::TooLarge { max_ip_octets } => {
                let smaller = max_ip_octets < self.large && max_ip_octets >= self.small.saturating_mul(2);
                self.large = self.large.min(max_ip_octets);
                smaller
            }
            Refusal::TooSmall { min_ip_octets } => {
                let larger = min_ip_octets > self.small && min_ip_octets <= self.large / 2;
                self.small = self.small.max(min_ip_octets);
                larger
            }
            Refusal::NotOffered | Refusal::ForbiddenByPeer => false,
        };
        if possible && self.refusals <= MOST_REFUSALS {
            // What was found holds for the sizes of before.
            self.found.clear();
            self.hunt = None;
            return self.next(now);
        }
        let what = "pairs of packets that the peer answers in packets of another size";
        Step::Done(self.no_number(refusal_reason(refusal, what)))
    }

    fn stop(&mut self, reason: Reason) -> Outcome {
        self.stopped(reason)
    }
}

impl Estimator for Run {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        mindelay::step(self, now, event)
    }
}

/// Octets of an ICMP error at most (RFC 1812 §4.3.2.3).
const MOST_QUOTED: u16 = 576;
/// Octets of a TCP segment without data or options.
const TCP_ANSWER: u16 = 40;
/// Ours: packets of a test train.
const TEST_PACKETS: usize = 20;
/// Ours: trains that may be lost or leave it open.
const MOST_TESTS: u32 = 5;
/// The kernel re-implementation of `CapProbe`: estimates count from this many samples on.
const FEW: usize = 5;
const MOST_REFUSALS: u32 = 4;
/// Ours.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// Ours.
const LEAST_WAIT: Duration = Duration::from_millis(1);
