//! Methods of trains towards a receiver, measured from one end: their trains are echoed, and what
//! comes back is read as if a receiver had stamped it.
//!
//! [`Echoed`] stands between such a method's state machine and the world. Where nobody stamps at
//! the peer (ICMP echo) it asks for echoes of the same length and hands the machine the stamps
//! of their return as arrivals. The train has then crossed both ways, and what the machine finds is
//! the least that either way leaves: [`Caveat::ReverseInfluence`] and the evidence
//! `stamped_by_remote` (`false`) say so. Where the echoes bring the peer's own stamps (STAMP,
//! TWAMP-Light) these are the arrivals, and the result is that of the forward direction alone; only
//! packets whose echo was lost are missing, as if they had never arrived.
//!
//! Nothing else changes: with a receiver every step is the machine's own.

use narrows_units::{Receiver, Sender, Stamp};

use super::mindelay::Via;
use super::train_method::unreadable;
use narrows_probe::contract::{Estimator, Event, Latest, Step};
use narrows_probe::facts::{HostFacts, PathFacts};
use narrows_probe::observations::Replayable;
use narrows_probe::outcome::{Caveat, Outcome};
use narrows_probe::probes::{Fate, PeerKind, Probe, TrainReport};
use narrows_probe::registry::{ParamError, Parameter, Range, RawParams, Value};

/// The parameter that a method so wrapped has besides its own.
pub const PEER_KIND: Parameter = Parameter {
    range: Range::Words(&["auto", "receiver", "echo", "reflector"]),
    source: "ours: an echo's return alone counts, both ways together; a reflector's stamps count",
    ..Parameter::new("peer_kind", "Who answers.", "auto")
};

/// A state machine whose trains may be echoed.
#[derive(Debug)]
pub struct Echoed<M> {
    machine: M,
    asked: Via,
    /// What it asks for, once the peer is known.
    via: Via,
    seen: EchoAccount,
}

/// Whose stamps the machine got, and how long the longest echo was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct EchoAccount {
    turned: bool,
    returned: bool,
    longest: u16,
}

impl<M> Echoed<M> {
    /// The machine of these parameters, of which it keeps [`PEER_KIND`] for itself.
    pub fn begin(
        raw: &RawParams,
        machine: impl FnOnce(&RawParams) -> Result<M, ParamError>,
    ) -> Result<Self, ParamError> {
        let word = raw.typed(PEER_KIND.name).unwrap_or(PEER_KIND.default);
        let asked = match Via::parse(word) {
            Ok(via) if !matches!(via, Via::ClosedPort | Via::Syn) => via,
            _ => {
                let why = format!("write {}; hosts limit how often they answer otherwise", PEER_KIND.range);
                return Err(unreadable(PEER_KIND.name, word, &why));
            }
        };
        let own: RawParams = raw.iter().filter(|(name, _)| *name != PEER_KIND.name).collect();
        Ok(Self { machine: machine(&own)?, asked, via: asked, seen: EchoAccount::default() })
    }

    fn echoes(&self) -> bool {
        matches!(self.via, Via::Echo | Via::Reflector)
    }

    /// What is known, as it is to a machine that believes in a receiver.
    fn facts(&mut self, mut facts: PathFacts) -> PathFacts {
        // A receiver's stamps, or a reflector's that stand for them, are the world's own way
        // wherever they are offered.
        self.via = match self.asked {
            Via::Auto if facts.answering == narrows_probe::Answering::Echo => Via::Echo,
            Via::Auto => Via::Receiver,
            named => named,
        };
        if self.via == Via::Echo {
            facts.receiver = coarser(&facts.sender, &facts.receiver);
        }
        facts
    }

    fn read(&mut self, mut report: TrainReport) -> TrainReport {
        let echoed = || report.arrivals.iter().filter(|row| matches!(row.fate, Fate::Echoed { .. }));
        let turned = |fate: Fate| match fate {
            Fate::Echoed { turned, .. } => turned,
            Fate::Received(_) | Fate::Answered(_) | Fate::Lost => None,
        };
        if echoed().next().is_none() {
            return report;
        }
        // Half a train by one clock and half by another would be nonsense.
        let by_peer_kind = self.via != Via::Echo && echoed().all(|row| turned(row.fate).is_some());
        self.seen.turned |= by_peer_kind;
        self.seen.returned |= !by_peer_kind;
        let longest = echoed().map(|row| row.ip_octets).max().unwrap_or(0);
        self.seen.longest = self.seen.longest.max(longest);
        for row in &mut report.arrivals {
            row.fate = match row.fate {
                Fate::Echoed { returned, turned } => {
                    let own: Stamp<Receiver> = Stamp::from_nanos(returned.nanos());
                    Fate::Received(turned.filter(|_| by_peer_kind).unwrap_or(own))
                }
                other => other,
            };
        }
        report
    }

    fn tell(&self, step: Step) -> Step {
        match step {
            Step::Send(Probe::Train(mut train)) if self.echoes() && train.peer_kind == PeerKind::Receiver => {
                train.peer_kind = PeerKind::Echo;
                Step::Send(Probe::Train(train))
            }
            Step::Done(outcome) => Step::Done(self.reported(outcome)),
            step => step,
        }
    }

    fn reported(&self, outcome: Outcome) -> Outcome {
        if !self.echoes() {
            return outcome;
        }
        let caveat = self.seen.returned.then_some(Caveat::ReverseInfluence { reply_ip_octets: self.seen.longest });
        let by_peer_kind = self.seen.turned && !self.seen.returned;
        match outcome {
            Outcome::Estimated(estimate) => {
                let estimate = caveat.into_iter().fold(*estimate, narrows_probe::Estimate::caveat);
                let mut estimate = estimate.with("stamped_by_remote", by_peer_kind);
                estimate.details.stamped_by_remote = by_peer_kind;
                estimate.into()
            }
            Outcome::Inconclusive { reason, mut caveats, mut details, mut diagnostics } => {
                caveats.extend(caveat.filter(|caveat| !caveats.contains(caveat)));
                diagnostics.insert("stamped_by_remote", by_peer_kind);
                details.stamped_by_remote = by_peer_kind;
                Outcome::Inconclusive { reason, caveats, details, diagnostics }
            }
        }
    }
}

/// The host whose stamps count is this one, and the remote host, which takes each packet and sends
/// it off again, may be what is slow.
fn coarser(near: &HostFacts, remote: &HostFacts) -> HostFacts {
    HostFacts { receive_cost: near.receive_cost.max(remote.receive_cost), ..near.clone() }
}

impl<M: Estimator> Estimator for Echoed<M> {
    fn step(&mut self, now: Stamp<Sender>, event: Event) -> Step {
        let event = match event {
            Event::Started(facts) => Event::Started(self.facts(facts)),
            Event::Train(report) if self.echoes() => Event::Train(self.read(report)),
            event => event,
        };
        let step = self.machine.step(now, event);
        self.tell(step)
    }

    fn latest(&self) -> Option<Latest> {
        let latest = self.machine.latest()?;
        match self.reported(latest.estimate.into()) {
            Outcome::Estimated(estimate) => Some(Latest { at: latest.at, estimate: *estimate }),
            Outcome::Inconclusive { .. } => None,
        }
    }
}

impl<M: Replayable> Replayable for Echoed<M> {
    const READS: (&'static str, &'static str) = M::READS;

    fn replay_step(&mut self, asked: &Probe) -> bool {
        match asked {
            Probe::Train(train) if self.echoes() && train.peer_kind == PeerKind::Echo => {
                let mut train = train.clone();
                train.peer_kind = PeerKind::Receiver;
                self.machine.replay_step(&Probe::Train(train))
            }
            asked => self.machine.replay_step(asked),
        }
    }
}
