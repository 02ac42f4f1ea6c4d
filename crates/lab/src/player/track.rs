//! One path between two ends, with its counts.

use std::io;

use narrows_scenario::PathDirection;
use narrows_sim::{DropCause, Output, Packet, Path};

use super::{Buffer, Pool};
use crate::icmp::Trouble;
use crate::plan::Side;
use crate::tally::Tally;

/// Where packets come out and go in.
pub(crate) trait End {
    /// An event this close is waited for, rather than risked to be missed while this end is read,
    /// in nanoseconds.
    const CLOSE_NS: u64;

    /// Whether a packet may wait; asked before each [`End::receive`], so that an end that knows
    /// need not be read.
    fn may_have(&self) -> bool {
        true
    }

    /// Takes one packet that was sent; `None` if there is none now.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<usize>>;

    /// Hands one packet over.
    fn deliver(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Packets that this end knows to have been lost before they could be taken, since it was made.
    fn lost(&mut self) -> u64 {
        0
    }
}

/// How a path takes what it reads from its ends for packets, and what its nodes answer.
pub(crate) trait Rules {
    /// How the path carries this; `None`: not at all.
    fn admit(&self, path: &Path<Buffer>, way: PathDirection, packet: &[u8]) -> Option<Admitted>;

    /// Makes the packet what it should be at the end of its way.
    fn arrive(&self, packet: &mut [u8], hop_limit: u8);

    /// What this node of this way has to say to a packet that ended there: an answer that is on its
    /// way, or the buffer back.
    fn answer(
        &mut self,
        path: &mut Path<Buffer>,
        at: u64,
        place: (PathDirection, usize),
        trouble: Trouble,
        buffer: Buffer,
    ) -> Result<(), Buffer>;
}

/// A packet in the path's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) ip_octets: u16,
    pub(crate) hop_limit: u8,
    /// Hash over addresses, protocol and ports.
    pub(crate) flow: u32,
}

/// What a track needs of the thread that plays it.
pub(super) struct Hands<'a> {
    pub(super) pool: &'a mut Pool,
    pub(super) now: &'a mut dyn FnMut() -> u64,
}

/// What a track has counted.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) tally: Tally,
    /// What its ends have lost since they were made.
    pub(crate) lost: [u64; 2],
}

/// A path, its ends, and what happened.
#[derive(Debug)]
pub(crate) struct Track<E, R> {
    pub(crate) path: Path<Buffer>,
    pub(crate) ends: [E; 2],
    pub(crate) rules: R,
    pub(crate) tally: Tally,
    outputs: Vec<Output<Buffer>>,
    /// When the path has something to do next, as far as is known.
    next_at: u64,
}

/// Nothing to do.
const NEVER: u64 = u64::MAX;
/// Cross traffic is never further behind than this: what an idle path has to catch up with, the
/// first packet of a train would wait for.
const BEHIND_NS: u64 = 4_000;

impl<E: End, R: Rules> Track<E, R> {
    pub(crate) fn new(path: Path<Buffer>, ends: [E; 2], rules: R) -> Self {
        Self { path, ends, rules, tally: Tally::new(), outputs: Vec::with_capacity(1_024), next_at: 0 }
    }

    /// The counts as they stand.
    pub(crate) fn report(&mut self) -> Report {
        let [sender, receiver] = &mut self.ends;
        Report { tally: self.tally.clone(), lost: [sender.lost(), receiver.lost()] }
    }

    /// When the path has something to do next.
    pub(super) fn next_at(&self) -> u64 {
        self.next_at
    }

    /// Takes at most one packet from an end; whether there was one.
    pub(super) fn poll(&mut self, side: Side, pool: &mut Pool, now: impl FnOnce() -> u64) -> bool {
        let end = &mut self.ends[side.index()];
        if !end.may_have() {
            return false;
        }
        let mut buffer = pool.take();
        match end.receive(buffer.room_mut()) {
            Ok(Some(length)) => {
                buffer.set_length(length);
                self.accept(now(), side.way(), buffer, pool);
                true
            }
            Ok(None) => {
                pool.give_back(buffer);
                false
            }
            Err(_) => {
                self.tally.refusals += 1;
                pool.give_back(buffer);
                false
            }
        }
    }

    /// Sends a packet over the path, if it is for somebody there.
    fn accept(&mut self, now: u64, way: PathDirection, buffer: Buffer, pool: &mut Pool) {
        let Some(admitted) = self.rules.admit(&self.path, way, buffer.packet()) else {
            self.tally.unroutable_packets += 1;
            pool.give_back(buffer);
            return;
        };
        self.tally.accepted += 1;
        let packet = Packet {
            ip_octets: admitted.ip_octets,
            hop_limit: admitted.hop_limit,
            flow: admitted.flow,
            payload: buffer,
        };
        self.path.send(now, way, packet);
        self.next_at = self.next_at.min(now);
    }

    /// Lets the path move on, and does what comes out of it. Stops at every output, so that answers
    /// of routers enter the reverse direction at their own time and not at ours.
    pub(super) fn play(&mut self, until: u64, hands: &mut Hands<'_>) {
        if until < self.next_at && until < self.path.now().saturating_add(BEHIND_NS) {
            return;
        }
        loop {
            let mut outputs = std::mem::take(&mut self.outputs);
            self.path.advance_to_output(until, &mut outputs);
            let idle = outputs.is_empty();
            for output in outputs.drain(..) {
                self.act(output, hands);
            }
            self.outputs = outputs;
            if idle {
                break;
            }
        }
        self.next_at = self.path.next_at().unwrap_or(NEVER);
    }

    fn act(&mut self, output: Output<Buffer>, hands: &mut Hands<'_>) {
        match output {
            Output::Delivered { at, way, hop_limit, payload, .. } => self.release(at, way, hop_limit, payload, hands),
            Output::Expired { at, way, node, payload, .. } => {
                self.answer(at, (way, node), Trouble::HopLimitExceeded, payload, hands);
            }
            Output::TooBig { at, way, node, mtu, payload, .. } => {
                self.answer(at, (way, node), Trouble::TooBig { mtu }, payload, hands);
            }
            Output::Dropped { way, hop, cause, payload, .. } => {
                self.tally.dropped(way, hop, cause);
                hands.pool.give_back(payload);
            }
        }
    }

    fn release(&mut self, at: u64, way: PathDirection, hop_limit: u8, mut buffer: Buffer, hands: &mut Hands<'_>) {
        self.rules.arrive(buffer.packet_mut(), hop_limit);
        let now = (hands.now)();
        match self.ends[Side::at_end_of(way).index()].deliver(buffer.packet()) {
            Ok(()) => self.tally.released(now.saturating_sub(at)),
            Err(_) => self.tally.refusals += 1,
        }
        hands.pool.give_back(buffer);
    }

    fn answer(
        &mut self,
        at: u64,
        place: (PathDirection, usize),
        trouble: Trouble,
        buffer: Buffer,
        hands: &mut Hands<'_>,
    ) {
        match self.rules.answer(&mut self.path, at, place, trouble, buffer) {
            Ok(()) => self.tally.router_answers += 1,
            Err(buffer) => {
                let (way, node) = place;
                let cause = match trouble {
                    Trouble::TooBig { .. } => DropCause::TooBig,
                    Trouble::HopLimitExceeded | Trouble::PortUnreachable => DropCause::HopLimit,
                };
                self.tally.dropped(way, node, cause);
                hands.pool.give_back(buffer);
            }
        }
    }
}
