//! Who answers on the way, and what they say beside the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::time::Duration;

use narrows_packet::icmp::{Extensions, MplsLabel};
use narrows_probe::probes::{Fate, Train, TrainReport};

use super::marks::Quote;

/// Routers met, by the answers to packets with a hop limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Responders {
    routers: BTreeMap<IpAddr, Router>,
    labels: BTreeMap<(u8, IpAddr), Vec<MplsLabel>>,
    alone: BTreeSet<NonZeroU8>,
    /// Answers that were left out.
    pub unmatched_replies: UnmatchedReplies,
}

impl UnmatchedReplies {
    /// One more.
    pub(super) fn count(&mut self, why: Quote) {
        let place = match why {
            Quote::Late => &mut self.late,
            Quote::Short => &mut self.short,
            Quote::Foreign | Quote::Packet(_) => &mut self.foreign,
        };
        *place = place.saturating_add(1);
    }
}

/// One router.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Router {
    /// At which hop limits it answered.
    limits: BTreeSet<NonZeroU8>,
    /// Its quickest answer.
    least: Duration,
}

/// Answers that were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnmatchedReplies {
    /// About packets of an earlier train.
    pub late: u64,
    /// About packets that had been answered.
    pub duplicate: u64,
    /// About packets that were never sent.
    pub foreign: u64,
    /// Quoting too little to tell.
    pub short: u64,
}

/// Longest that a router is waited for as a matter of course (ours).
const TIMEOUT: Duration = Duration::from_secs(2);
/// Routers and label stacks that are kept: a path has some dozens, whoever sends answers may make
/// up more.
const MOST: usize = 4096;

impl Responders {
    /// The label stacks with which packets came to routers, as those tell it (RFC 4950), by hop
    /// limit and router: the last of each.
    pub fn labels(&self) -> &BTreeMap<(u8, IpAddr), Vec<MplsLabel>> {
        &self.labels
    }

    /// One more train.
    pub(super) fn learn(&mut self, train: &Train, report: &TrainReport) {
        if let ([plan], Some(limit)) = (train.packets.as_slice(), train.packets.first().and_then(|plan| plan.hop_limit))
        {
            debug_assert_eq!(plan.hop_limit, Some(limit));
            self.alone.insert(limit);
        }
        for (plan, row) in train.packets.iter().zip(&report.arrivals) {
            let (Some(limit), Fate::Answered(reply)) = (plan.hop_limit, row.fate) else {
                continue;
            };
            let took = reply.returned.since(row.departed).min(TIMEOUT);
            if self.routers.len() < MOST || self.routers.contains_key(&reply.from) {
                let router = self.routers.entry(reply.from).or_insert(Router { limits: BTreeSet::new(), least: took });
                router.limits.insert(limit);
                router.least = router.least.min(took);
            }
        }
    }

    /// What a router told beside its answer.
    pub(super) fn reported(&mut self, limit: Option<NonZeroU8>, from: IpAddr, extensions: &Extensions) {
        let key = (limit.map_or(0, NonZeroU8::get), from);
        let labels: Vec<MplsLabel> = extensions.labels().collect();
        if !labels.is_empty() && (self.labels.len() < MOST || self.labels.contains_key(&key)) {
            self.labels.insert(key, labels);
        }
    }

    /// At which hop limit a router answers, if that is one.
    pub(super) fn limit_of(&self, from: IpAddr) -> Option<NonZeroU8> {
        let limits = &self.routers.get(&from)?.limits;
        limits.first().copied().filter(|_| limits.len() == 1)
    }

    /// Somebody is known to answer there.
    pub(super) fn answered_at(&self, limit: NonZeroU8) -> bool {
        self.routers.values().any(|router| router.limits.contains(&limit))
    }

    /// A packet with that hop limit was sent alone.
    pub(super) fn asked_alone(&self, limit: NonZeroU8) -> bool {
        self.alone.contains(&limit)
    }

    /// What the slowest router takes at its quickest, up to 2 s: single answers that took longer
    /// are no reason to wait for each.
    pub(super) fn longest(&self) -> Option<Duration> {
        self.routers.values().map(|router| router.least).max()
    }
}

#[cfg(test)]
mod tests {
    use narrows_packet::icmp::Object;
    use narrows_probe::StampSource;
    use narrows_probe::probes::{Arrival, HopReply, HopReplyKind, PacingCheck, PacketPlan, PeerKind, TrainId};
    use narrows_units::Stamp;

    use super::*;

    fn limit(hop: u8) -> NonZeroU8 {
        NonZeroU8::new(hop).unwrap()
    }

    fn learned(responders: &mut Responders, hops: &[(u8, u8, i64)]) {
        let packets: Vec<PacketPlan> = hops
            .iter()
            .map(|(hop, ..)| PacketPlan { gap: Duration::ZERO, ip_octets: 100, hop_limit: NonZeroU8::new(*hop) })
            .collect();
        let train = Train { id: TrainId(1), packets, peer_kind: PeerKind::ClosedPort };
        let rows = (0..).zip(hops).map(|(seq, (_, last, ms))| Arrival {
            seq,
            departed: Stamp::from_nanos(0),
            ip_octets: 100,
            fate: Fate::Answered(HopReply {
                from: IpAddr::from([192, 0, 2, *last]),
                returned: Stamp::from_nanos(ms * 1_000_000),
                reply_ip_octets: 56,
                kind: HopReplyKind::TimeExceeded,
            }),
        });
        let report = TrainReport {
            id: TrainId(1),
            arrivals: rows.collect(),
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Kernel,
            arrived_by: StampSource::Kernel,
            pacing: PacingCheck::Kept,
        };
        responders.learn(&train, &report);
    }

    #[test]
    fn a_router_is_known_by_the_one_hop_at_which_it_answers() {
        let mut responders = Responders::default();
        learned(&mut responders, &[(1, 1, 3), (2, 2, 40)]);
        assert_eq!(responders.limit_of([192, 0, 2, 2].into()), Some(limit(2)));
        assert!(responders.answered_at(limit(1)) && !responders.answered_at(limit(3)));
        assert!(!responders.asked_alone(limit(1)));
        assert_eq!(responders.longest(), Some(Duration::from_millis(40)));
        // In a circle it answers at two.
        learned(&mut responders, &[(4, 2, 90_000)]);
        assert_eq!(responders.longest(), Some(Duration::from_millis(40)));
        learned(&mut responders, &[(5, 5, 90_000)]);
        assert_eq!(responders.limit_of([192, 0, 2, 2].into()), None);
        assert!(responders.asked_alone(limit(4)));
        assert_eq!(responders.longest(), Some(TIMEOUT), "a clock that says more is not waited for");
    }

    #[test]
    fn label_stacks_are_kept_by_hop_and_router() {
        let mut responders = Responders::default();
        let label = MplsLabel { label: 24_001, traffic_class: 0, bottom: true, ttl: 1 };
        let stack = Extensions { objects: vec![Object::Mpls(vec![label])] };
        responders.reported(Some(limit(3)), [192, 0, 2, 3].into(), &stack);
        responders.reported(Some(limit(4)), [192, 0, 2, 4].into(), &Extensions::default());
        assert_eq!(responders.labels().len(), 1);
        assert_eq!(responders.labels()[&(3, [192, 0, 2, 3].into())], [label]);
    }
}
