//! One probe at a time, to each hop in turn.

use std::collections::VecDeque;
use std::num::NonZeroU8;
use std::time::Duration;

use super::{Params, rules};
use crate::vps::answer::{Drawing, Lines};
use crate::vps::settings::{Draw, Regress};
use crate::vps::table::HopTable;
use narrows_probe::PathFacts;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PacketPlan, PeerKind, Train, TrainReport};
use narrows_train::peer_kinds::{PeerKinds, SizeBounds};
use narrows_train::train_method::{Next, TrainMethod, uneven};

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    params: Params,
    facts: Option<PathFacts>,
    sizes: Vec<u16>,
    /// By hop limit, from 1.
    hops: Vec<HopTable>,
    /// The last of them is the peer, or as far as answers come from.
    found: bool,
    silent: u32,
    tries: u32,
    round: u32,
    pass: u32,
    /// Hop and size, counted from zero.
    queue: VecDeque<(usize, usize)>,
    probes: u32,
    peer_kinds: PeerKinds,
    bounds: SizeBounds,
}

/// Hops without an answer in a row after which nothing is expected from further on (ours).
const SILENT_HOPS: u32 = 4;
/// Probes to a hop that has not answered any (ours).
const UNANSWERED: u32 = 3;
/// What is asked for of the peer's answer where that can be chosen: as long as a router's that
/// quotes least.
const REPLY_OCTETS: u16 = 64;

impl MethodRun {
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            facts: None,
            sizes: Vec::new(),
            hops: Vec::new(),
            found: false,
            silent: 0,
            tries: 0,
            round: 0,
            pass: 0,
            queue: VecDeque::new(),
            probes: 0,
            peer_kinds: PeerKinds::new([PeerKind::Echo, PeerKind::ClosedPort, PeerKind::EchoSized(REPLY_OCTETS)]),
            bounds: SizeBounds::ANY,
        }
    }

    /// Evenly from the smallest to the largest, and from the beginning.
    fn resize(&mut self) {
        let path_mtu = self.facts.as_ref().map_or(1500, |facts| facts.path_mtu);
        let (least, most) = (self.params.smallest.max(self.bounds.least_octets), path_mtu.min(self.bounds.most_octets));
        let room = u32::from(most.saturating_sub(least));
        let steps = u32::from(self.params.sizes - 1).max(1);
        let size = |step: u32| least.saturating_add(u16::try_from(room * step / steps).unwrap_or(u16::MAX));
        self.sizes = (0..=steps).map(size).collect();
        self.sizes.dedup();
        self.hops.clear();
        self.queue.clear();
        (self.found, self.silent, self.tries, self.round, self.pass) = (false, 0, 0, 0, 0);
    }

    /// The next hop to look for, or none.
    fn find(&mut self) -> bool {
        if let Some(hop) = self.hops.last() {
            if hop.answered() == 0 && self.tries < UNANSWERED {
                self.tries += 1;
                self.queue.push_back((self.hops.len() - 1, 0));
                return true;
            }
            self.silent = if hop.answered() == 0 { self.silent + 1 } else { 0 };
            if hop.remote || self.silent >= SILENT_HOPS || self.hops.len() >= usize::from(self.params.hops) {
                self.found = true;
                return false;
            }
        }
        self.hops.push(HopTable::new(&self.sizes));
        self.tries = 1;
        self.queue.push_back((self.hops.len() - 1, 0));
        true
    }

    /// More probes; false: it has enough.
    fn refill(&mut self) -> bool {
        if !self.found && self.find() {
            return true;
        }
        let answering: Vec<usize> = (0..self.hops.len()).filter(|&at| self.hops[at].answered() > 0).collect();
        if self.round < self.params.repeats {
            self.round += 1;
            for size in 0..self.sizes.len() {
                self.queue.extend(answering.iter().map(|&hop| (hop, size)));
            }
        } else if self.pass < self.params.passes {
            self.pass += 1;
            self.queue.extend(rules::worst(&self.hops, self.drawing()));
        }
        !self.queue.is_empty()
    }

    fn drawing(&self) -> Drawing<'_> {
        Drawing {
            facts: self.facts.as_ref(),
            framing: self.params.framing,
            regress: Regress::Sum,
            draw: Draw::Lsq,
            halves: false,
        }
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("bing", "single packets of its sizes with a hop limit");

    fn begin(&mut self, facts: &PathFacts) {
        self.facts = Some(facts.clone());
        self.resize();
    }

    fn next(&mut self) -> Option<Next> {
        if self.queue.is_empty() && !self.refill() {
            return None;
        }
        let (hop, size) = self.queue.pop_front()?;
        self.probes = self.probes.wrapping_add(1);
        let limit = u8::try_from(hop + 1).ok().and_then(NonZeroU8::new)?;
        Some(Next {
            packets: vec![PacketPlan {
                gap: Duration::ZERO,
                ip_octets: *self.sizes.get(size)?,
                hop_limit: Some(limit),
            }],
            peer_kind: self.peer_kinds.first()?,
            spacing: Duration::ZERO,
            rest: uneven(self.params.gap, self.probes),
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        let (Some(plan), [row]) = (asked.packets.first(), report.arrivals.as_slice()) else {
            return;
        };
        let Some(size) = self.sizes.iter().position(|&octets| octets == plan.ip_octets) else {
            return;
        };
        let limit = plan.hop_limit.map_or(0, |limit| usize::from(limit.get()));
        if let Some(hop) = limit.checked_sub(1).and_then(|at| self.hops.get_mut(at)) {
            hop.take(size, asked, row);
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        let (peer_kinds, bounds) = (&mut self.peer_kinds, &mut self.bounds);
        let what = "packets with a hop limit, and the routers' answers";
        peer_kinds.refused(refusal, what, |refusal| bounds.take(refusal))?;
        self.resize();
        if self.sizes.len() < 2 {
            return Err(Reason::NotOffered { what: "packets of two different sizes".to_owned() });
        }
        Ok(())
    }

    fn reads(&self, asked: &Train) -> bool {
        let known = |plan: &PacketPlan| {
            let limit = plan.hop_limit.map_or(0, |limit| usize::from(limit.get()));
            self.sizes.contains(&plan.ip_octets) && (1..=self.hops.len()).contains(&limit)
        };
        asked.packets.len() == 1 && asked.packets.iter().all(known)
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        let drawing = self.drawing();
        let lines = Lines { drawing, hops: &self.hops, drawn: rules::lines(&self.hops, drawing) };
        let left_out = self.hops.iter().zip(&lines.drawn);
        let left_out = left_out.filter(|(hop, drawn)| drawn.is_none() && hop.answered() > 1).count();
        match lines.conclude(stopped) {
            // What the stamps are like had nothing to do with it.
            Outcome::Inconclusive { reason: Reason::StampsTooCoarse, caveats, details, diagnostics }
                if left_out > 0 =>
            {
                Outcome::Inconclusive { reason: Reason::NoAgreement, caveats, details, diagnostics }
            }
            other => other,
        }
    }
}
