//! Pairs: sent, and read.

use std::time::Duration;

use super::answer;
use super::params::{End, Params, Preset};
use crate::spacing::Stamped;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PacketPlan, PeerKind, Train, TrainReport};
use narrows_probe::{PathFacts, StampSource};
use narrows_train::pairs;
use narrows_train::pairs::{Pair, PairMode};
use narrows_train::peer_kinds::PeerKinds;
use narrows_train::train_method::{Next, TrainMethod, arrived_ns, reply_octets, returned_ns, uneven};
use narrows_units::to_u64;

/// One pair that came whole and in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) stamped: Stamped,
    /// Between the arrivals, or the returns; zero if they share a stamp.
    pub(super) span_ns: i64,
    /// Between the departures.
    pub(super) sent_ns: i64,
    pub(super) ip_octets: u16,
    /// Octets of what came back, where that counts.
    pub(super) reply_octets: Option<u16>,
    pub(super) source: StampSource,
}

/// What became of all pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) pairs: u32,
    pub(super) packets: u64,
    pub(super) lost_packets: u64,
    pub(super) lost: u32,
    pub(super) disordered: u32,
}

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) params: Params,
    pub(super) facts: Option<PathFacts>,
    pub(super) samples: Vec<Sample>,
    /// Smaller pairs: what a link does to them follows from their size, what others' traffic does
    /// to them does not.
    pub(super) smaller: Vec<Sample>,
    pub(super) tally: Tally,
    ip_octets: u16,
    reply: u16,
    /// The world takes no smaller packet, as far as it said.
    least: u16,
    /// Whom to ask, the best first; those that refused are gone.
    peer_kinds: PeerKinds,
}

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            ip_octets: 0,
            least: LEAST_OCTETS,
            reply: params.reply_octets,
            peer_kinds: PeerKinds::new([]),
            facts: None,
            samples: Vec::new(),
            smaller: Vec::new(),
            tally: Tally::default(),
            params,
        }
    }

    /// Octets of a full-size packet: those for which the answer is stated.
    pub(super) fn full_size(&self) -> u16 {
        self.facts.as_ref().map_or(1500, |facts| facts.path_mtu).max(64)
    }

    /// The pair as a rate on the wire; `None` if its packets share a stamp.
    pub(super) fn pair(&self, sample: &Sample) -> Option<Pair> {
        let wire = self.params.framing.wire_octets(u32::from(sample.ip_octets));
        Pair::new(wire, sample.span_ns, Some(sample.sent_ns))
    }

    pub(super) fn pairs(&self) -> Vec<Pair> {
        self.samples.iter().filter_map(|sample| self.pair(sample)).collect()
    }

    /// Whether most of the smaller pairs, as rates on the wire, lie at the peak as well. Traffic at
    /// a steady rate behind the narrow link sets full-size pairs a constant number of its packets
    /// apart, all alike; pairs of another size then show another rate.
    pub(super) fn sizes_agree(&self, peak: &PairMode) -> bool {
        let edge = self.params.filter.half_width;
        let forward = |pair: &Pair| {
            let rate = pair.received;
            rate >= peak.low * (1.0 - edge) && rate <= peak.high * (1.0 + edge)
        };
        let agree = self.smaller.iter().filter_map(|sample| self.pair(sample)).filter(forward);
        2 * agree.count() >= self.smaller.len()
    }

    /// Every fourth pair is smaller, where the size is ours to choose.
    fn next_octets(&self) -> u16 {
        let ours = self.params.preset == Preset::Adaptive && self.params.ip_octets.is_none();
        if ours && self.tally.pairs % SMALLER_EVERY == SMALLER_EVERY - 1 {
            let smaller = self.ip_octets / 3 * 2;
            return smaller.max(self.least).min(self.ip_octets);
        }
        self.ip_octets
    }

    /// Full-size pairs apart from smaller ones, in whatever order a recording has them.
    fn sort_in(&mut self, sample: Sample) {
        let smaller = |one: u16, than: u16| u32::from(one) * 10 < u32::from(than) * 9;
        match self.samples.last().map(|last| last.ip_octets) {
            Some(full) if smaller(sample.ip_octets, full) => self.smaller.push(sample),
            Some(full) if smaller(full, sample.ip_octets) => {
                self.smaller.append(&mut self.samples);
                self.samples.push(sample);
            }
            Some(_) | None => self.samples.push(sample),
        }
    }

    /// Enough pairs agree.
    fn settled(&self) -> bool {
        let found = self.samples.len();
        if self.params.preset == Preset::Tool || found < SETTLED || !found.is_multiple_of(SETTLED) {
            return false;
        }
        let sifted = pairs::pair_mode(&self.pairs(), &self.params.filter);
        let all = u64::try_from(found).unwrap_or(u64::MAX);
        // The peak surely holds the majority of all pairs that could be sent.
        sifted.pair_mode.is_some_and(|peak| {
            let bounds = narrows_stat::wilson(peak.inside.min(all), all, 0.95);
            peak.runner_up().is_none()
                && bounds.is_ok_and(|bounds| bounds.low() > SETTLED_SHARE)
                && self.sizes_agree(&peak)
        })
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("nettimer", "pairs of packets, back to back");

    fn begin(&mut self, facts: &PathFacts) {
        self.ip_octets = self.params.ip_octets.unwrap_or(facts.path_mtu);
        self.peer_kinds = PeerKinds::new(match self.params.end {
            End::Receiver => vec![PeerKind::Receiver],
            End::Sender => self.params.via.clone(),
        });
        if let Some(limit) = facts.answer_limit {
            // No more than a host that limits its answers gives in time.
            let gained = super::INFO.imposes.max_time.as_nanos() / limit.every().as_nanos().max(1);
            let answers = u32::try_from(gained).unwrap_or(u32::MAX).saturating_add(limit.burst());
            self.params.pairs = self.params.pairs.min((answers / 2).max(2));
        }
        self.facts = Some(facts.clone());
    }

    fn next(&mut self) -> Option<Next> {
        let peer_kind = match self.peer_kinds.first()? {
            PeerKind::EchoSized(_) => PeerKind::EchoSized(self.reply),
            other => other,
        };
        if self.tally.pairs >= self.params.pairs || self.settled() || self.unanswered() {
            return None;
        }
        let packet = PacketPlan { gap: Duration::ZERO, ip_octets: self.next_octets(), hop_limit: None };
        let last_ns = self.samples.last().map_or(0, |sample| sample.span_ns.clamp(0, LONGEST_REST_NS));
        Some(Next {
            packets: vec![packet; 2],
            peer_kind,
            spacing: match self.params.preset {
                Preset::Adaptive => uneven(self.params.spacing, self.tally.pairs),
                Preset::Tool => self.params.spacing,
            },
            rest: Duration::from_nanos(last_ns.unsigned_abs()) * 3,
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        self.tally.pairs = self.tally.pairs.saturating_add(1);
        self.tally.packets += to_u64(report.arrivals.len());
        self.tally.lost_packets += to_u64(report.lost());
        let [first, second] = report.arrivals.as_slice() else {
            self.tally.lost += 1;
            return;
        };
        let peer_kind = arrived_ns(first).zip(arrived_ns(second));
        let returned = returned_ns(first).zip(returned_ns(second));
        let one_way = peer_kind.filter(|_| !self.params.returned_only || returned.is_none());
        let (stamped, (before, after)) = match (one_way, returned) {
            (Some(stamps), _) => (Stamped::PeerKind, stamps),
            (None, Some(stamps)) => (Stamped::Returned, stamps),
            (None, None) => {
                self.tally.lost += 1;
                return;
            }
        };
        let span_ns = after.saturating_sub(before);
        if span_ns < 0 {
            self.tally.disordered += 1;
            return;
        }
        self.sort_in(Sample {
            stamped,
            span_ns,
            sent_ns: second.departed.nanos().saturating_sub(first.departed.nanos()),
            ip_octets: second.ip_octets,
            reply_octets: reply_octets(asked, second),
            source: report.arrived_by,
        });
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        let what = self.wants();
        let (octets, reply, least) = (&mut self.ip_octets, &mut self.reply, &mut self.least);
        self.peer_kinds.refused(refusal, what, |refusal| match refusal {
            Refusal::TooLarge { max_ip_octets } if (28..*octets).contains(&max_ip_octets) => {
                *octets = max_ip_octets;
                true
            }
            Refusal::TooSmall { min_ip_octets } if min_ip_octets > (*reply).min(*octets) => {
                *reply = (*reply).max(min_ip_octets);
                *octets = (*octets).max(min_ip_octets);
                *least = (*least).max(min_ip_octets);
                true
            }
            _ => false,
        })
    }

    fn reads(&self, asked: &Train) -> bool {
        let to_receiver = asked.peer_kind == PeerKind::Receiver;
        let pair = asked.packets.len() == 2 && asked.packets.iter().all(|packet| packet.hop_limit.is_none());
        pair && asked.packets[1].gap.is_zero() && to_receiver == (self.params.end == End::Receiver)
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}

impl MethodRun {
    fn wants(&self) -> &'static str {
        match self.params.end {
            End::Receiver => "a peer that stamps what it receives",
            End::Sender => "a peer that answers to packets",
        }
    }

    /// Nothing came back of the first pairs: nothing will.
    fn unanswered(&self) -> bool {
        self.tally.pairs >= UNANSWERED && self.tally.lost_packets == self.tally.packets
    }
}

/// One pair in so many is smaller (ours: enough to contradict the others, few enough to cost
/// little).
const SMALLER_EVERY: u32 = 4;
/// Smaller pairs have at least so many octets (ours: the method's own least).
const LEAST_OCTETS: u16 = 64;
/// The answer is looked at after every so many pairs (ours: the tool's whole run).
const SETTLED: usize = 8;
/// The share of all pairs that the peak must surely exceed before no more are sent (ours).
const SETTLED_SHARE: f64 = 0.5;
/// Pairs without any answer after which no more are sent (ours).
const UNANSWERED: u32 = 4;
/// A pair may rest for three times its own dispersion, but no longer than this three times.
const LONGEST_REST_NS: i64 = 300_000_000;
