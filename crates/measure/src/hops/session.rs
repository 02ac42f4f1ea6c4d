//! One run: all hops in every round.

use std::collections::BTreeSet;
use std::time::Duration;

use narrows_stat::SplitMix64;
use narrows_units::{Sender, Stamp, nanos_f64};

use super::Params;
use super::answer;
use super::picture;
use super::plan::{Plan, Want};
use super::remote::RemoteStamps;
use super::round::{ProbeFate, hop_limit, reported};
use super::route;
use super::spacings::TailgatingProbes;
use super::table::HopTable;
use super::tailgating_probes;
use narrows_probe::PathFacts;
use narrows_probe::contract::{Latest, Refusal};
use narrows_probe::facts::Answering;
use narrows_probe::outcome::{Forecast, Predicted};
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{Fate, PacketPlan, PeerKind, Train, TrainReport};
use narrows_train::peer_kinds::{PeerKinds, SizeBounds};
use narrows_train::train_method::{Next, TrainMethod, uneven};

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    /// By hop limit, from 1.
    pub(super) hops: Vec<HopTable>,
    pub(super) plan: Plan,
    pub(super) forecast: Option<Forecast>,
    pub(super) predicted: Vec<Predicted>,
    pub(super) reroutes: u32,
    /// Answers scatter by more than stamps: some hops get more probes.
    pub(super) scattered: bool,
    pub(super) tailgating_probes: TailgatingProbes,
    pub(super) remote: RemoteStamps,
    phase: Phase,
    /// Rounds of this phase.
    round: u32,
    pub(super) began: Option<Stamp<Sender>>,
    pub(super) now: Stamp<Sender>,
    pub(super) not_before: Option<Stamp<Sender>>,
    deadline: Option<Stamp<Sender>>,
    trains: u32,
    pub(super) draw: SplitMix64,
    peer_kinds: PeerKinds,
    bounds: SizeBounds,
    /// Nothing of the last train was answered.
    nothing_before: bool,
    /// IP octets sent.
    pub(super) octets: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Who is there.
    Find,
    /// How far apart probes must be, who limits answers, what to foretell.
    Pilot,
    /// What the peer's own stamps say.
    Remote,
    /// The same by trains, of hops that sizes tell too little of.
    Scout,
    /// Every hop until it is known, or has had its share.
    Measure,
    /// Pairs, where several links may stand in a row.
    Pairs,
    /// Trains, of hops that sizes told too little of.
    TailgatingProbes,
}

/// Hop limits that are asked at once for the first time.
const BATCH: usize = 4;
/// Of these nobody answering, twice: nothing is expected from further on.
const TRIES: u32 = 2;
/// Rounds of the first look: more than the six answers that Linux gives at once.
pub(super) const PILOT: u32 = 8;
/// Rounds of it where queues blur it (ours).
const LONGEST_PILOT: u32 = 80;
/// Time for it, beyond which nothing is added to it.
const LONGEST_PROBE_ROUND: Duration = Duration::from_secs(12);
/// Rounds of it in which those are asked that have not answered yet.
const SILENT_ROUNDS: u32 = 2;
/// New routes that the run begins again for.
const MOST_REROUTES: u32 = 3;
/// Pairs per hop in doubt.
pub(super) const PAIRS: u32 = 7;
/// What is asked for of the peer's answer where that can be chosen: as long as a router's that
/// quotes least.
const REPLY_OCTETS: u16 = 64;
/// Whom to ask at the peer, the best first.
const PEER_KINDS: [PeerKind; 4] =
    [PeerKind::ClosedPort, PeerKind::EchoSized(REPLY_OCTETS), PeerKind::Echo, PeerKind::TcpSyn];
/// A world waits this long for what does not come, and longer by a round trip; of real worlds not
/// known, of the simulator 0.3 s.
const TIMEOUT: Duration = Duration::from_secs(1);

impl MethodRun {
    pub(crate) fn new(params: Params) -> Self {
        let zero = Stamp::from_nanos(0);
        let remote = RemoteStamps::new(params.remote_stamps);
        Self {
            plan: Plan::new(&params, 0, 1500),
            params,
            facts: None,
            hops: Vec::new(),
            forecast: None,
            predicted: Vec::new(),
            reroutes: 0,
            scattered: false,
            tailgating_probes: TailgatingProbes::default(),
            remote,
            phase: Phase::Find,
            round: 0,
            began: None,
            now: zero,
            not_before: None,
            deadline: None,
            trains: 0,
            // Any seed: an order that no cross traffic has.
            draw: SplitMix64::new(0x686f_7073),
            peer_kinds: PeerKinds::new(PEER_KINDS),
            bounds: SizeBounds::ANY,
            nothing_before: false,
            octets: 0,
        }
    }

    /// What one round trip is off by at any rate: a tick, or what a stamp is.
    pub(super) fn floor_ns(&self) -> f64 {
        self.facts.as_ref().map_or(1.0, |facts| {
            nanos_f64(facts.sender.clock_resolution).max(nanos_f64(facts.sender.stamp_error)).max(1.0)
        })
    }

    /// Largest probe: what hops are told for.
    pub(super) fn full(&self) -> u16 {
        self.facts.as_ref().map_or(1500, |facts| facts.path_mtu).max(64)
    }

    fn resize(&mut self) {
        let most = self.full().min(self.bounds.most_octets);
        self.plan = Plan::new(&self.params, self.bounds.least_octets, most);
        self.hops.clear();
        self.phase = Phase::Find;
        self.round = 0;
    }

    /// The next phase's first train, or this one's next; `None`: done.
    fn packets(&mut self) -> Option<Vec<PacketPlan>> {
        loop {
            self.not_before = None;
            let over = self.deadline.is_some_and(|deadline| self.now >= deadline);
            let round = u64::from(self.full()) * u64::try_from(self.hops.len().max(2)).unwrap_or(u64::MAX);
            let spent = self.forecast.is_some_and(|said| self.octets + round > said.octets);
            let packets = match self.phase {
                Phase::Find => self.find(),
                Phase::Pilot => self.pilot(),
                Phase::Remote => self.ask_remote(),
                Phase::Scout => self.tailgating_probe(true),
                Phase::Measure | Phase::Pairs | Phase::TailgatingProbes if over || spent => return None,
                Phase::Measure => self.measure(),
                Phase::Pairs => self.pair(),
                Phase::TailgatingProbes => self.tailgating_probe(false),
            };
            if packets.is_some() {
                self.round += 1;
                return packets;
            }
            self.phase = match self.phase {
                Phase::Find if self.hops.iter().all(|hop| hop.answers == 0) => return None,
                Phase::Find => Phase::Pilot,
                Phase::Pilot => Phase::Remote,
                Phase::Remote => Phase::Scout,
                Phase::Scout => {
                    self.foretell();
                    Phase::Measure
                }
                Phase::Measure => Phase::Pairs,
                Phase::Pairs => Phase::TailgatingProbes,
                Phase::TailgatingProbes => return None,
            };
            self.round = 0;
            self.look_back();
        }
    }

    fn find(&mut self) -> Option<Vec<PacketPlan>> {
        if self.hops.last().is_some_and(|hop| hop.remote) {
            return None;
        }
        let most = usize::from(self.params.hops);
        let trailing_packet = self.hops.iter().rev().take_while(|hop| hop.answers == 0).count();
        let again = trailing_packet >= BATCH.min(self.hops.len()) && trailing_packet > 0;
        if again && self.hops.last().is_some_and(|hop| hop.probes < TRIES) {
            let first = self.hops.len() - trailing_packet.min(BATCH);
            return Some(self.ask_hops(first..self.hops.len(), self.plan.smallest()));
        }
        if again || self.hops.len() >= most || route::goes_round(&self.hops) {
            let heard = self.hops.len() - trailing_packet;
            self.hops.truncate(heard.max(1));
            return None;
        }
        let first = self.hops.len();
        let last = (first + BATCH).min(most);
        self.hops.resize_with(last, HopTable::new);
        Some(self.ask_hops(first..last, self.plan.smallest()))
    }

    fn pilot(&mut self) -> Option<Vec<PacketPlan>> {
        if self.round >= PILOT {
            return self.look_longer();
        }
        let octets = self.plan.pilot(self.round);
        let round = self.round;
        let asked: Vec<usize> = (0..self.hops.len())
            .filter(|&hop| self.hops[hop].answers > 0 || round < SILENT_ROUNDS)
            .filter(|&hop| self.hops[hop].pace.is_due(self.now))
            .collect();
        if asked.is_empty() {
            return None;
        }
        Some(self.ask_hops(asked, octets))
    }

    /// Goes on with the first look where queues blur it, answers are missing, or too few have come
    /// to draw a line by.
    fn look_longer(&mut self) -> Option<Vec<PacketPlan>> {
        let lasted = self.began.map_or(Duration::ZERO, |began| self.now.since(began));
        if self.round >= LONGEST_PILOT || lasted >= LONGEST_PROBE_ROUND {
            return None;
        }
        let picture = picture::picture(self);
        let unclear = |&hop: &usize| {
            let table = &self.hops[hop];
            let few = picture.line(hop).is_none() && !route::is_idle(&self.hops, hop);
            few || table.pace.is_suspect() || Plan::is_blurred(self, &picture, hop)
        };
        // The hop behind is told by its difference to this one.
        let hops = (0..self.hops.len()).filter(unclear);
        let wanted = hops.flat_map(|hop| [hop, hop + 1]).collect::<BTreeSet<usize>>();
        let asked = wanted
            .into_iter()
            .filter_map(|hop| match self.plan.want(self, &picture, hop) {
                Want::Probe(octets) => Some((hop, octets)),
                Want::Nothing => None,
            })
            .collect();
        self.first_due(asked)
    }

    /// A round of those that may be asked now, or of those that may be asked first.
    fn first_due(&mut self, wanted: Vec<(usize, u16)>) -> Option<Vec<PacketPlan>> {
        let due = |hop: usize| self.hops[hop].pace.due_at().unwrap_or(self.now).max(self.now);
        let first = wanted.iter().map(|&(hop, _)| due(hop)).min()?;
        let asked: Vec<(usize, u16)> = wanted.into_iter().filter(|&(hop, _)| due(hop) <= first).collect();
        if self.deadline.is_some_and(|deadline| first >= deadline) {
            return None;
        }
        self.not_before = Some(first);
        Some(self.round_of(asked))
    }

    /// What every hop that is not known yet wants, of those that may be asked now; or of those that
    /// may be asked first.
    fn measure(&mut self) -> Option<Vec<PacketPlan>> {
        let picture = picture::picture(self);
        let wanted: Vec<(usize, u16)> = (0..self.hops.len())
            .filter_map(|hop| match self.plan.want(self, &picture, hop) {
                Want::Probe(octets) => Some((hop, octets)),
                Want::Nothing => None,
            })
            .collect();
        self.first_due(wanted)
    }

    fn pair(&mut self) -> Option<Vec<PacketPlan>> {
        let doubtful = picture::worth_pairs(self);
        let open: Vec<usize> =
            doubtful.into_iter().filter(|&hop| self.hops.get(hop).is_some_and(|hop| hop.pairs_sent < PAIRS)).collect();
        let hop = *open.iter().min_by_key(|&&hop| self.hops[hop].pairs_sent)?;
        let octets = self.plan.largest();
        let limit = hop_limit(hop)?;
        let table = &mut self.hops[hop];
        let due = table.pace.due_at().map(|at| at + table.pace.every().unwrap_or_default());
        self.not_before = due;
        table.pairs_sent += 1;
        let packet = PacketPlan { gap: Duration::ZERO, ip_octets: octets, hop_limit: Some(limit) };
        Some(vec![packet; 2])
    }

    fn ask_hops(&mut self, hops: impl IntoIterator<Item = usize>, octets: u16) -> Vec<PacketPlan> {
        let asked: Vec<(usize, u16)> = hops.into_iter().map(|hop| (hop, octets)).collect();
        self.round_of(asked)
    }

    fn foretell(&mut self) {
        let began = self.began.unwrap_or(self.now);
        self.scattered = Plan::scatters(self);
        let gaps: Duration = (0..self.hops.len()).map(|hop| self.gap(hop)).sum();
        let (forecast, predicted) = self.plan.foretell(self, self.now.since(began), gaps, TIMEOUT);
        let rtt = self.facts.as_ref().map_or(Duration::ZERO, |facts| facts.rtt);
        self.deadline = Some(began + forecast.time.saturating_sub(TIMEOUT + 2 * rtt + 2 * gaps + self.params.pace));
        self.forecast = Some(forecast);
        self.predicted = predicted;
    }

    /// A new route: what was behind its first new router is to be measured anew.
    fn follow_route(&mut self) {
        let Some(first) = self.hops.iter().position(HopTable::is_rerouted) else {
            return;
        };
        if self.reroutes >= MOST_REROUTES {
            return;
        }
        self.reroutes += 1;
        for hop in &mut self.hops[first..] {
            hop.forget();
            hop.route_changed = true;
        }
        self.tailgating_probes = TailgatingProbes::default();
        self.remote.give_up();
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("hops", "packets with a hop limit");

    fn begin(&mut self, facts: &PathFacts) {
        self.facts = Some(facts.clone());
        let known = match facts.answering {
            Answering::Echo | Answering::Reflector | Answering::TcpSyn => Some(facts.answering.peer_kind()),
            Answering::Server | Answering::ClosedPort => None,
        };
        self.peer_kinds = PeerKinds::new(known.into_iter().chain(PEER_KINDS));
        self.began = Some(self.now);
        self.resize();
    }

    fn next(&mut self) -> Option<Next> {
        let packets = self.packets()?;
        self.trains = self.trains.wrapping_add(1);
        let spacing = match self.phase {
            Phase::Find => Duration::ZERO,
            // Each is to another hop.
            Phase::Scout => uneven(self.params.pace / 3, self.trains),
            Phase::Pilot | Phase::Remote | Phase::Measure | Phase::Pairs | Phase::TailgatingProbes => {
                uneven(self.params.pace, self.trains)
            }
        };
        Some(Next {
            packets,
            peer_kind: match self.phase {
                Phase::Remote => PeerKind::Receiver,
                _ => self.peer_kinds.first()?,
            },
            spacing,
            rest: Duration::ZERO,
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        let octets: u64 = asked.packets.iter().map(|plan| u64::from(plan.ip_octets)).sum();
        self.octets = self.octets.saturating_add(octets);
        if asked.peer_kind == PeerKind::Receiver {
            return self.take_remote(asked, report);
        }
        if let Some(kind) = tailgating_probes::read(asked).filter(|kind| kind.responder < self.hops.len()) {
            return self.take_tailgating_probe(kind, asked, report);
        }
        let nothing = report.arrivals.iter().all(|row| row.fate == Fate::Lost);
        // A host or a path that stood still for once says nothing of single routers; if it goes on,
        // all of them limit their answers.
        let free = self.hops.iter().all(|hop| hop.pace.every().is_none());
        let outage = free && nothing && !self.nothing_before && report.arrivals.len() > 2 && self.phase != Phase::Find;
        self.nothing_before = nothing;
        let mut before: Option<(usize, i64)> = None;
        for (index, (plan, row)) in asked.packets.iter().zip(&report.arrivals).enumerate() {
            let Some(hop) = plan.hop_limit.map(|limit| usize::from(limit.get()) - 1) else {
                continue;
            };
            if hop >= usize::from(self.params.hops) {
                continue;
            }
            while self.hops.len() <= hop {
                self.hops.push(HopTable::new());
            }
            self.hops[hop].sending(plan.ip_octets, row.departed);
            let reported = reported(asked, row);
            let second = index > 0 && plan.gap.is_zero();
            match (&reported, second) {
                (Some(ProbeFate::Answer { sample, .. }), true) => {
                    let returned = row.departed.nanos().saturating_add(sample.round_trip_ns);
                    if let Some((_, first)) = before.filter(|&(of, _)| of == hop) {
                        self.hops[hop].pairs.push(returned.saturating_sub(first));
                    }
                    self.hops[hop].answers = self.hops[hop].answers.saturating_add(1);
                }
                (Some(fate), false) if !outage => self.row(hop, row.ip_octets, fate),
                _ => {}
            }
            before = match reported {
                Some(ProbeFate::Answer { sample, .. }) => {
                    Some((hop, row.departed.nanos().saturating_add(sample.round_trip_ns)))
                }
                Some(ProbeFate::Nothing) | None => None,
            };
        }
        if let Some(end) = self.hops.iter().position(|hop| hop.remote) {
            // What was asked beyond was answered by the peer too.
            self.hops.truncate(end + 1);
        }
        self.follow_route();
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        if self.phase == Phase::Remote {
            self.remote_refused(refusal);
            return Ok(());
        }
        let (peer_kinds, bounds) = (&mut self.peer_kinds, &mut self.bounds);
        let what = "packets with a hop limit, and the routers' answers";
        peer_kinds.refused(refusal, what, |refusal| bounds.take(refusal))?;
        self.resize();
        if self.plan.is_too_narrow() {
            return Err(Reason::NotOffered { what: "packets of enough different sizes".to_owned() });
        }
        Ok(())
    }

    fn reads(&self, asked: &Train) -> bool {
        let to_remote = self.params.remote_stamps && asked.peer_kind == PeerKind::Receiver;
        to_remote || asked.packets.iter().any(|plan| plan.hop_limit.is_some())
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }

    fn clock(&mut self, now: Stamp<Sender>) {
        self.now = now;
    }

    fn not_before(&self) -> Option<Stamp<Sender>> {
        self.not_before
    }

    fn latest(&self) -> Option<Latest> {
        // Before the first look is over there is nothing to draw a line by.
        let estimate = match self.phase {
            Phase::Find => None,
            Phase::Pilot | Phase::Remote | Phase::Scout | Phase::Measure | Phase::Pairs | Phase::TailgatingProbes => {
                answer::estimate(self).ok()
            }
        };
        estimate.map(|estimate| Latest { at: self.now, estimate })
    }
}
