//! What methods share that send small trains one after the other, whoever answers: the machine
//! around a plan, and the reading of rows.
//!
//! A [`TrainMethod`] says which train comes next, takes each report beside the train that was asked
//! for (a report does not say who was to answer), and concludes at any time. Waiting, names of
//! trains, refusals and the analysis of other runs' rows are here.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

use narrows_probe::PathFacts;
use narrows_probe::contract::{Estimator, Event, Latest, Refusal, Step};
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Arrival, Fate, HopReplyKind, PacketPlan, PeerKind, Probe, Train, TrainId, TrainReport};
use narrows_probe::registry::{ParamError, Range};

/// Registers a train method: `INFO`, `Params` and `MethodRun` are those of the module that says so.
#[doc(hidden)]
#[macro_export]
macro_rules! train_method_method {
    ($name:ident $(, answered_by: $answering:expr)?) => {
        narrows_probe::registry::method!(
            $name,
            run: |raw| {
                raw.check_names(&INFO)?;
                let session = MethodRun::new(Params::try_from(raw)?);
                Ok($crate::train_method::Machine::new(session))
            },
            imposes: |raw, usual| Params::try_from(raw).map_or(usual.clone(), |params| params.imposes(&usual))
            $(, answered_by: $answering)?
        );
    };
}
pub use crate::train_method_method as method;

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// Its packets, in order of departure.
    pub packets: Vec<PacketPlan>,
    /// Who is to answer.
    pub peer_kind: PeerKind,
    /// The train after this one begins no earlier than this after its begin.
    pub spacing: Duration,
    /// Nor earlier than this after its end.
    pub rest: Duration,
}

/// A method's own part.
pub trait TrainMethod {
    /// Its name, and what it reads.
    const READS: (&'static str, &'static str);

    /// The run begins.
    fn begin(&mut self, facts: &PathFacts);

    /// The next train; `None`: it has what it wants.
    fn next(&mut self) -> Option<Next>;

    /// An answer to `asked`.
    fn take(&mut self, asked: &Train, report: &TrainReport);

    /// The world does not carry out the last train: the train method changes its plan, or gives up
    /// for a reason.
    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason>;

    /// Whether a train that it did not ask for tells it anything.
    fn reads(&self, asked: &Train) -> bool;

    /// The answer from what there is; `stopped` if it was not the train method's own end.
    fn conclude(&self, stopped: Option<&Reason>) -> Outcome;

    /// What time it is: before anything else that it is asked.
    fn clock(&mut self, now: Stamp<Sender>) {
        let _ = now;
    }

    /// The train that [`TrainMethod::next`] has just given goes out no earlier than this.
    fn not_before(&self) -> Option<Stamp<Sender>> {
        None
    }

    /// What it makes of what it has, for those who follow.
    fn latest(&self) -> Option<Latest> {
        None
    }
}

/// One run of a train method.
#[derive(Debug, Clone)]
pub struct Machine<C> {
    train_method: C,
    began: bool,
    serial: u32,
    planned: Option<Next>,
    asked: Option<Train>,
    not_before: Option<Stamp<Sender>>,
    rest: Duration,
}

impl<C: TrainMethod> Machine<C> {
    /// A run that has sent nothing yet.
    pub fn new(train_method: C) -> Self {
        Self {
            train_method,
            began: false,
            serial: 0,
            planned: None,
            asked: None,
            not_before: None,
            rest: Duration::ZERO,
        }
    }

    fn proceed(&mut self, now: Stamp<Sender>) -> Step {
        self.planned = self.train_method.next();
        self.not_before = self.not_before.max(self.train_method.not_before());
        match self.not_before.filter(|until| *until > now) {
            Some(until) if self.planned.is_some() => Step::Wait { until },
            _ => self.send(now),
        }
    }

    fn send(&mut self, now: Stamp<Sender>) -> Step {
        let Some(next) = self.planned.take() else {
            return Step::Done(self.train_method.conclude(None));
        };
        self.serial += 1;
        let train = Train { id: TrainId(self.serial), packets: next.packets, peer_kind: next.peer_kind };
        self.not_before = Some(now + next.spacing);
        self.rest = next.rest;
        self.asked = Some(train.clone());
        Step::Send(Probe::Train(train))
    }

    fn take(&mut self, now: Stamp<Sender>, report: &TrainReport) -> Step {
        match self.asked.take() {
            Some(asked) if asked.id == report.id => {
                self.train_method.take(&asked, report);
                let rested = now + self.rest;
                self.not_before = self.not_before.max(Some(rested));
                self.proceed(now)
            }
            _ => unexpected(),
        }
    }

    fn refused(&mut self, now: Stamp<Sender>, refusal: Refusal) -> Step {
        self.asked = None;
        match self.train_method.refused(refusal) {
            Ok(()) => {
                self.not_before = None;
                self.proceed(now)
            }
            Err(reason) => Step::Done(self.train_method.conclude(Some(&reason))),
        }
    }
}

impl<C: TrainMethod> Estimator for Machine<C> {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        self.train_method.clock(now);
        match event {
            Event::Started(facts) if !self.began => {
                self.began = true;
                self.train_method.begin(&facts);
                self.proceed(now)
            }
            Event::Train(report) if self.began => self.take(now, &report),
            Event::Refused(refusal) if self.asked.is_some() => self.refused(now, refusal),
            Event::TimerFired if self.planned.is_some() => self.send(now),
            Event::Stop(reason) if self.began => Step::Done(self.train_method.conclude(Some(&reason))),
            Event::Stop(reason) => Step::Done(Outcome::inconclusive(reason)),
            _ => unexpected(),
        }
    }

    fn latest(&self) -> Option<Latest> {
        self.train_method.latest()
    }
}

impl<C: TrainMethod> Replayable for Machine<C> {
    const READS: (&'static str, &'static str) = C::READS;

    fn replay_step(&mut self, asked: &Probe) -> bool {
        match (asked, &self.asked) {
            (Probe::Train(train), Some(wanted)) if self.train_method.reads(train) => {
                let id = wanted.id;
                self.asked = Some(Train { id, ..train.clone() });
                true
            }
            _ => false,
        }
    }
}

fn unexpected() -> Step {
    Step::Done(Outcome::inconclusive(Reason::UnexpectedEvent))
}

/// A spacing that varies by up to a half from train to train and never repeats its phase (the
/// golden ratio's multiples, which fill the circle most evenly): periodic traffic would otherwise
/// meet every train at the same point, and all would agree on what is wrong (ours).
pub fn uneven(spacing: Duration, train: u32) -> Duration {
    let phase = (f64::from(train) * 0.618_033_988_749_895).fract();
    spacing.mul_f64(0.5 + phase)
}

/// When the answer of the peer was back, on the sender's clock, ns. Routers on the way are not
/// the peer.
pub fn returned_ns(row: &Arrival) -> Option<i64> {
    match row.fate {
        Fate::Echoed { returned, .. } => Some(returned.nanos()),
        Fate::Answered(reply) => match reply.kind {
            HopReplyKind::PortUnreachable | HopReplyKind::TcpAnswer => Some(reply.returned.nanos()),
            HopReplyKind::TimeExceeded | HopReplyKind::PacketTooBig { .. } | HopReplyKind::Unreachable { .. } => None,
        },
        Fate::Received(_) | Fate::Lost => None,
    }
}

/// When the peer had the packet, on its own clock, ns: a receiver's stamp, or a reflector's.
pub fn arrived_ns(row: &Arrival) -> Option<i64> {
    match row.fate {
        Fate::Received(stamp) | Fate::Echoed { turned: Some(stamp), .. } => Some(stamp.nanos()),
        Fate::Echoed { turned: None, .. } | Fate::Answered(_) | Fate::Lost => None,
    }
}

/// Octets of the packet that came back; `None` if that was nothing.
pub fn reply_octets(asked: &Train, row: &Arrival) -> Option<u16> {
    match (row.fate, asked.peer_kind) {
        (Fate::Echoed { .. }, PeerKind::EchoSized(octets)) => Some(octets),
        (Fate::Echoed { .. }, _) => Some(row.ip_octets),
        (Fate::Answered(reply), _) => Some(reply.reply_ip_octets),
        (Fate::Received(_) | Fate::Lost, _) => None,
    }
}

/// The reason that a refusal comes to once there is no other way to ask.
pub fn refusal_reason(refusal: Refusal, what: &str) -> Reason {
    match refusal {
        Refusal::ForbiddenByPeer => Reason::ForbiddenByPeer,
        Refusal::NotOffered | Refusal::TooLarge { .. } | Refusal::TooSmall { .. } => {
            Reason::NotOffered { what: what.to_owned() }
        }
    }
}

/// What the parameter `via` accepts.
pub const VIA: Range = Range::Described("auto, sized_echo, echo, closed_port or tcp_syn");

/// The parameter `via`: whom to ask, the best first. `reply`: octets of a reply that the peer
/// can choose.
pub fn parse_via(text: &str, auto: &[PeerKind], reply: u16) -> Result<Vec<PeerKind>, String> {
    match text {
        "auto" => Ok(auto.to_vec()),
        "sized_echo" => Ok(vec![PeerKind::EchoSized(reply)]),
        "echo" => Ok(vec![PeerKind::Echo]),
        "closed_port" => Ok(vec![PeerKind::ClosedPort]),
        "tcp_syn" => Ok(vec![PeerKind::TcpSyn]),
        _ => Err(format!("write {VIA}")),
    }
}

/// The error for a value that cannot be read, and why.
pub fn unreadable(name: &str, value: &str, why: &str) -> ParamError {
    ParamError::Unreadable { name: name.to_owned(), value: value.to_owned(), why: why.to_owned() }
}

/// Refuses a value outside what the method can do.
pub fn within(good: bool, name: &'static str, value: impl ToString + Copy, why: &str) -> Result<(), ParamError> {
    let error = || ParamError::OutOfRange { name, value: value.to_string(), why: why.to_owned() };
    if good { Ok(()) } else { Err(error()) }
}

/// The whole number of packets that is not less; none for what is negative or no number, and a
/// million at most.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the clamp leaves a small whole number; NaN becomes zero"
)]
pub fn whole_packets(packets: f64) -> usize {
    packets.ceil().clamp(0.0, 1e6) as usize
}
