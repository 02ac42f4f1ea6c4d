//! Who answers on the way, and what they say beside the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::time::Duration;

use estimate::probe::{Fate, Train, TrainReport};
use wire::icmp::{Extensions, MplsLabel};

/// Routers met, by the answers to packets with a hop limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Met {
    /// At which hop limits each answered.
    limits: BTreeMap<IpAddr, BTreeSet<NonZeroU8>>,
    labels: BTreeMap<(u8, IpAddr), Vec<MplsLabel>>,
    alone: BTreeSet<NonZeroU8>,
    longest: Option<Duration>,
    /// Answers that were left out.
    pub strays: Strays,
}

/// Answers that were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strays {
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
const PATIENCE: Duration = Duration::from_secs(2);
/// Routers and label stacks that are kept: a path has some dozens, whoever sends answers may make up more.
const MOST: usize = 4096;

impl Met {
    /// The label stacks with which packets came to routers, as those tell it (RFC 4950), by hop limit and router: the last of each.
    pub fn labels(&self) -> &BTreeMap<(u8, IpAddr), Vec<MplsLabel>> {
        &self.labels
    }

    /// One more train.
    pub(super) fn learn(&mut self, train: &Train, report: &TrainReport) {
        if let ([plan], Some(limit)) = (train.packets.as_slice(), train.packets.first().and_then(|plan| plan.hop_limit)) {
            debug_assert_eq!(plan.hop_limit, Some(limit));
            self.alone.insert(limit);
        }
        for (plan, row) in train.packets.iter().zip(&report.arrivals) {
            let (Some(limit), Fate::Answered(reply)) = (plan.hop_limit, row.fate) else {
                continue;
            };
            let took = reply.returned.since(row.departed).min(PATIENCE);
            self.longest = self.longest.max(Some(took));
            if self.limits.len() < MOST || self.limits.contains_key(&reply.from) {
                self.limits.entry(reply.from).or_default().insert(limit);
            }
        }
    }

    /// What a router told beside its answer.
    pub(super) fn told(&mut self, limit: Option<NonZeroU8>, from: IpAddr, extensions: &Extensions) {
        let key = (limit.map_or(0, NonZeroU8::get), from);
        let labels: Vec<MplsLabel> = extensions.labels().collect();
        if !labels.is_empty() && (self.labels.len() < MOST || self.labels.contains_key(&key)) {
            self.labels.insert(key, labels);
        }
    }

    /// At which hop limit a router answers, if that is one.
    pub(super) fn limit_of(&self, from: IpAddr) -> Option<NonZeroU8> {
        let limits = self.limits.get(&from)?;
        limits.first().copied().filter(|_| limits.len() == 1)
    }

    /// Somebody is known to answer there.
    pub(super) fn answered_at(&self, limit: NonZeroU8) -> bool {
        self.limits.values().any(|limits| limits.contains(&limit))
    }

    /// A packet with that hop limit was sent alone.
    pub(super) fn asked_alone(&self, limit: NonZeroU8) -> bool {
        self.alone.contains(&limit)
    }

    /// The longest time that any answer took, up to 2 s.
    pub(super) fn longest(&self) -> Option<Duration> {
        self.longest
    }
}
