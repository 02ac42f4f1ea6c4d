//! One hop after the other, one probe at a time.

use std::collections::VecDeque;
use std::num::NonZeroU8;
use std::time::Duration;

use narrows_stat::SplitMix64;

use super::answer::{self, Lines};
use super::settings::{Pause, Settings};
use super::table::HopTable;
use narrows_probe::PathFacts;
use narrows_probe::contract::Refusal;
use narrows_probe::outcome::{Outcome, Reason};
use narrows_probe::probes::{PacketPlan, PeerKind, Train, TrainReport};
use narrows_train::peer_kinds::{PeerKinds, SizeBounds};
use narrows_train::train_method::{Next, TrainMethod, uneven};

/// One run.
#[derive(Debug, Clone)]
pub(crate) struct MethodRun {
    pub(super) settings: Settings,
    pub(super) facts: Option<PathFacts>,
    pub(super) sizes: Vec<u16>,
    /// By hop limit, from 1.
    pub(super) hops: Vec<HopTable>,
    /// Sizes still to be sent at the last of these, by index.
    queue: VecDeque<usize>,
    cycle: u32,
    /// Probes beyond the cycles that the present hop has had.
    extra: u32,
    silent: u32,
    order: Vec<usize>,
    draw: SplitMix64,
    last_ns: i64,
    probes: u32,
    peer_kinds: PeerKinds,
    bounds: SizeBounds,
}

/// Hops without an answer in a row after which nothing is expected from further on (ours).
const SILENT_HOPS: u32 = 4;
/// Probes to a hop that has not answered any (ours).
const UNANSWERED: u32 = 8;
/// What is asked for of the peer's answer where that can be chosen: as long as a router's that
/// quotes least.
const REPLY_OCTETS: u16 = 64;
/// Least share by which halves differ before more probes are sent (clink).
pub(super) const AGREE: f64 = 0.1;

impl MethodRun {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            facts: None,
            sizes: Vec::new(),
            hops: Vec::new(),
            queue: VecDeque::new(),
            cycle: 0,
            extra: 0,
            silent: 0,
            order: Vec::new(),
            // Any seed: an order that no cross traffic has.
            draw: SplitMix64::new(0x6e61_7272_6f77),
            last_ns: 0,
            probes: 0,
            peer_kinds: PeerKinds::new([
                PeerKind::ClosedPort,
                PeerKind::EchoSized(REPLY_OCTETS),
                PeerKind::Echo,
                PeerKind::TcpSyn,
            ]),
            bounds: SizeBounds::ANY,
        }
    }

    fn resize(&mut self) {
        let path_mtu = self.facts.as_ref().map_or(1500, |facts| facts.path_mtu);
        self.sizes = self.settings.sizes(self.bounds.least_octets, path_mtu.min(self.bounds.most_octets));
        self.hops.clear();
        self.start_hop();
    }

    fn start_hop(&mut self) {
        self.hops.push(HopTable::new(&self.sizes));
        self.order = (0..self.sizes.len()).collect();
        self.shuffle();
        self.queue = self.order.iter().copied().collect();
        (self.cycle, self.extra) = (1, 0);
    }

    fn shuffle(&mut self) {
        for last in (1..self.order.len()).rev() {
            let word = self.draw.next_u64() % (u64::try_from(last).unwrap_or(u64::MAX) + 1);
            self.order.swap(last, usize::try_from(word).unwrap_or(0));
        }
    }

    /// More probes for the present hop; false: it has enough.
    fn refill(&mut self) -> bool {
        let Some(hop) = self.hops.last() else { return false };
        if hop.answered() == 0 {
            return false;
        }
        if self.cycle < self.settings.repeats {
            self.cycle += 1;
            if self.settings.reshuffled {
                self.shuffle();
            }
            self.queue = self.order.iter().copied().collect();
            return true;
        }
        let most = self.settings.repeats.saturating_mul(3) * u32::try_from(self.sizes.len()).unwrap_or(u32::MAX);
        if !self.settings.adaptive || self.extra >= most {
            return false;
        }
        let lines = Lines::of(self);
        if lines.halves_agree() {
            return false;
        }
        // Every size above the line as often again as it was probed.
        let above = lines.above_line();
        for index in above {
            let sent = self.hops.last().and_then(|hop| hop.cells.get(index)).map_or(0, |cell| cell.sent);
            self.queue.extend(std::iter::repeat_n(index, usize::try_from(sent).unwrap_or(0)));
        }
        self.extra += u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        !self.queue.is_empty()
    }

    fn advance(&mut self) -> bool {
        let Some(hop) = self.hops.last() else { return false };
        self.silent = if hop.answered() == 0 { self.silent + 1 } else { 0 };
        let over = hop.remote || self.silent >= SILENT_HOPS || self.hops.len() >= usize::from(self.settings.hops);
        if !over {
            self.start_hop();
        }
        !over
    }

    fn pause(&self) -> Duration {
        match self.settings.pause {
            Pause::Of(gap) => uneven(gap, self.probes),
            Pause::RoundTrips(times) => Duration::from_nanos(u64::try_from(self.last_ns).unwrap_or(0)) * times,
        }
    }
}

impl TrainMethod for MethodRun {
    const READS: (&'static str, &'static str) = ("a method of variable packet size", "single packets with a hop limit");

    fn begin(&mut self, facts: &PathFacts) {
        self.facts = Some(facts.clone());
        self.resize();
    }

    fn next(&mut self) -> Option<Next> {
        let abandoned = self.hops.last().is_some_and(|hop| hop.answered() == 0 && hop.sent() >= UNANSWERED);
        if abandoned {
            self.queue.clear();
        }
        while self.queue.is_empty() {
            if !self.refill() && !self.advance() {
                return None;
            }
        }
        let index = self.queue.pop_front()?;
        self.probes = self.probes.wrapping_add(1);
        let limit = u8::try_from(self.hops.len()).ok().and_then(NonZeroU8::new)?;
        Some(Next {
            packets: vec![PacketPlan {
                gap: Duration::ZERO,
                ip_octets: *self.sizes.get(index)?,
                hop_limit: Some(limit),
            }],
            peer_kind: self.peer_kinds.first()?,
            spacing: Duration::ZERO,
            rest: self.pause(),
        })
    }

    fn take(&mut self, asked: &Train, report: &TrainReport) {
        let (Some(plan), [row]) = (asked.packets.first(), report.arrivals.as_slice()) else {
            return;
        };
        let Some(limit) = plan.hop_limit.map(|limit| usize::from(limit.get())) else {
            return;
        };
        let Some(index) = self.sizes.iter().position(|&octets| octets == plan.ip_octets) else {
            return;
        };
        let Some(hop) = self.hops.get_mut(limit - 1) else {
            return;
        };
        let Some((round_trip_ns, better)) = hop.take(index, asked, row) else {
            return;
        };
        self.last_ns = round_trip_ns;
        if better && self.extra > 0 {
            // That size has a new least: its other probes are not needed.
            self.queue.retain(|&other| other != index);
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<(), Reason> {
        let (peer_kinds, bounds) = (&mut self.peer_kinds, &mut self.bounds);
        let what = "packets with a hop limit, and the routers' answers";
        peer_kinds.refused(refusal, what, |refusal| bounds.take(refusal))?;
        self.resize();
        if self.sizes.len() < super::fit::LEAST_SIZES {
            return Err(Reason::NotOffered { what: "packets of enough different sizes".to_owned() });
        }
        Ok(())
    }

    fn reads(&self, asked: &Train) -> bool {
        let single = asked.packets.len() == 1;
        let known = |plan: &PacketPlan| {
            let limit = plan.hop_limit.map_or(0, |limit| usize::from(limit.get()));
            self.sizes.contains(&plan.ip_octets) && (1..=self.hops.len()).contains(&limit)
        };
        single && asked.packets.iter().all(known)
    }

    fn conclude(&self, stopped: Option<&Reason>) -> Outcome {
        answer::conclude(self, stopped)
    }
}
