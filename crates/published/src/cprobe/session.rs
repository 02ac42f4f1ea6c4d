//! Echoed trains: sent, and read.

use std::time::Duration;

use narrows_units::Framing;

use super::answer;
use super::params::Params;
use crate::spacing::Stamped;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Arrival, PacketPlan, PeerKind, Train, TrainReport};
use narrows_probe::{PathFacts, StampSource};
use narrows_train::train_method::{Next, TrainMethod, arrived_ns, refusal_reason, reply_octets, returned_ns, uneven};

/// The means of one train's spacings, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) sent: f64,
    pub(super) came: f64,
    /// As they came, extremes left out.
    pub(super) trimmed: f64,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    pub(super) ip_octets: u16,
    pub(super) trains: Vec<Spread>,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) disordered: u64,
    /// Neighbours that were handed over together.
    pub(super) together: u64,
    pub(super) neighbours: u64,
    pub(super) stamped: Option<Stamped>,
    pub(super) source: Option<StampSource>,
    /// The largest reply over its probe, on an Ethernet wire.
    pub(super) reply_share: f64,
    pub(super) reply_octets: u16,
    peer_kinds: Vec<PeerKind>,
    taken: u32,
    unanswered: u32,
    last_ns: f64,
    resized: u32,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            peer_kinds: params.via.clone(),
            params,
            facts: None,
            ip_octets: 0,
            trains: Vec::new(),
            packets: 0,
            lost: 0,
            disordered: 0,
            together: 0,
            neighbours: 0,
            stamped: None,
            source: None,
            reply_share: 0.0,
            reply_octets: 0,
            taken: 0,
            unanswered: 0,
            last_ns: 0.0,
            resized: 0,
        }
    }

    /// Whether what came back tells the forward direction: the peer's stamps, or replies too
    /// short for the reverse direction to matter.
    pub(super) fn one_way(&self) -> bool {
        self.stamped == Some(Stamped::PeerKind) || self.reply_share <= DECIDES
    }

    /// Goes on to the next peer, and forgets what the last one said. `false`: there is none.
    fn ask_another(&mut self) -> bool {
        if self.peer_kinds.len() < 2 {
            return false;
        }
        self.peer_kinds.remove(0);
        self.trains.clear();
        (self.taken, self.unanswered, self.together, self.neighbours) = (0, 0, 0, 0);
        (self.packets, self.lost, self.disordered) = (0, 0, 0);
        true
    }

    fn read(&mut self, asked: &Train, report: &TrainReport) -> Option<Spread> {
        let wire = |octets: u16| f64::from(Framing::ETHERNET.wire_octets(u32::from(octets)));
        let mut spacings: Vec<(f64, f64)> = Vec::new();
        for two in report.arrivals.windows(2) {
            let [before, after] = two else { continue };
            let Some((stamped, came)) = spacing(before, after) else {
                continue;
            };
            self.stamped = Some(stamped);
            if let Some(reply) = reply_octets(asked, after) {
                self.reply_octets = reply;
                self.reply_share = wire(reply) / wire(after.ip_octets);
            }
            let sent = (after.departed - before.departed).as_f64();
            if came < 0.0 || sent < 0.0 || came > LONGEST_NS || sent > LONGEST_NS {
                self.disordered += 1;
                continue;
            }
            self.neighbours += 1;
            spacings.push((came, sent));
        }
        // Handed over together: much closer than usual, and than they left.
        let usual = spacings.iter().map(|(came, _)| came).sum::<f64>() / spacings.len().max(1) as f64;
        let close = |spacing: &&(f64, f64)| spacing.0 <= TOGETHER * usual.max(spacing.1);
        self.together += spacings.iter().filter(close).count() as u64;
        spacings.sort_by(|a, b| a.0.total_cmp(&b.0));
        let cut = self.params.dropped;
        let kept = spacings.get(cut..spacings.len().checked_sub(cut)?)?;
        let mean = |of: &[(f64, f64)], which: fn(&(f64, f64)) -> f64| {
            of.iter().map(which).sum::<f64>() / of.len().max(1) as f64
        };
        (kept.len() >= 2).then(|| Spread {
            came: mean(&spacings, |(came, _)| *came),
            sent: mean(&spacings, |(_, sent)| *sent),
            trimmed: mean(kept, |(came, _)| *came),
        })
    }
}

/// Time from one packet to the next, by the peer's stamps where there are any, else by what came
/// back, ns.
fn spacing(before: &Arrival, after: &Arrival) -> Option<(Stamped, f64)> {
    let apart = |(first, second): (i64, i64)| second.saturating_sub(first) as f64;
    let arrived = arrived_ns(before).zip(arrived_ns(after));
    let returned = returned_ns(before).zip(returned_ns(after));
    match (arrived, returned) {
        (Some(stamps), _) => Some((Stamped::PeerKind, apart(stamps))),
        (None, Some(stamps)) => Some((Stamped::Returned, apart(stamps))),
        (None, None) => None,
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("cprobe", "echoed trains of packets of one size, back to back");

    fn begin(&mut self, facts: &PathFacts) {
        if let Some(limit) = facts.answer_limit {
            let most = usize::try_from(limit.burst()).unwrap_or(usize::MAX);
            self.params.packets = self.params.packets.min(most.max(LEAST_PACKETS));
            self.params.trains = 1;
        }
        self.ip_octets = self.params.ip_octets.unwrap_or(facts.path_mtu).min(facts.path_mtu);
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        if self.unanswered >= UNANSWERED && self.trains.is_empty() && !self.ask_another() {
            return None;
        }
        let ambiguous = !self.trains.is_empty() && !self.one_way() && !self.params.symmetric;
        if ambiguous && self.peer_kinds.len() > 1 {
            self.ask_another();
        }
        if self.taken >= self.params.trains {
            return None;
        }
        let packet = PacketPlan { gap: Duration::ZERO, ip_octets: self.ip_octets, hop_limit: None };
        Some(Next {
            packets: vec![packet; self.params.packets],
            peer_kind: *self.peer_kinds.first()?,
            spacing: uneven(self.params.spacing, self.taken),
            rest: Duration::from_secs_f64((self.last_ns * 1e-9).clamp(0.0, 0.5)),
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        self.taken = self.taken.saturating_add(1);
        self.source = Some(report.arrived_by);
        self.packets += report.arrivals.len() as u64;
        self.lost += report.lost() as u64;
        match self.read(asked, report) {
            Some(spread) => {
                self.last_ns = spread.came * report.arrivals.len() as f64;
                self.trains.push(spread);
            }
            None => self.unanswered = self.unanswered.saturating_add(1),
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        self.resized += 1;
        let again = self.resized <= MOST_RESIZED;
        match refusal {
            Refusal::TooLarge { max_ip_octets } if again && (68..self.ip_octets).contains(&max_ip_octets) => {
                self.ip_octets = max_ip_octets;
            }
            Refusal::ForbiddenByPeer => return Err(Reason::ForbiddenByPeer),
            Refusal::NotOffered | Refusal::TooLarge { .. } | Refusal::TooSmall { .. } => {
                if !again || !self.ask_another() {
                    return Err(refusal_reason(refusal, answer::NEEDED));
                }
            }
        }
        Ok(())
    }

    fn reads(&self, asked: &Train) -> bool {
        let alike = |packet: &PacketPlan| packet.ip_octets == self.ip_octets && packet.hop_limit.is_none();
        let together = asked.packets.iter().skip(1).all(|packet| packet.gap.is_zero());
        let enough = asked.packets.len() >= 2 * self.params.dropped + 3;
        enough && together && asked.packets.iter().all(alike) && asked.peer_kind != PeerKind::Receiver
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

/// Neighbours closer than this share of the usual spacing were handed over together (as for pairs:
/// `pairtrain.rs`).
const TOGETHER: f64 = 0.3;
/// As for `bprobe`: beyond this share of the probe a reply may set the value.
const DECIDES: f64 = 0.25;
/// Fewest packets of a train, as its parameter has it.
const LEAST_PACKETS: usize = 4;
/// Trains of which nothing could be read before another peer is asked.
const UNANSWERED: u32 = 2;
const MOST_RESIZED: u32 = 8;
/// A spacing of more than this is a clock's, or a host's that slept.
const LONGEST_NS: f64 = 1e9;
