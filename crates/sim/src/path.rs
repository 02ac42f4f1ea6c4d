//! The path: hops both ways, cross traffic on them, and the packets that cross.
//!
//! # Model
//! A way is a row of hops. Each hop is, in this order: token bucket, drop-tail queue, link (one
//! packet at a time, whole packets), loss on the wire, propagation with jitter, hidden layer-2
//! devices, hold-back of reordered packets, node. Node 0 of a way is the host at its beginning,
//! node *i* stands between hop *i − 1* and hop *i*, the last node is the remote host. A router
//! (nodes between) takes one off the hop limit on arrival and answers when nothing is left.
//!
//! # Order
//! Within a hop every element but the hold-back and a link of several channels keeps the order of
//! its packets, so a packet's whole way through the hop is computed when it enters, by the
//! recursion of Lindley, and no event is needed inside (but one per burst of a link whose bursts
//! arrive as a whole). Hops are computed one after the other, each up to the same time: traffic
//! never runs backwards along a way, so nothing that happens behind a hop can change it. Packets
//! that reach a hop in the same nanosecond are served in this order: cross traffic that enters
//! there (by index of its source), packets from the hop before, packets sent or injected there (in
//! order of the calls).
//!
//! # Rounding
//! A link's busy period begins at a whole nanosecond; departures within it are kept exactly (as a
//! fraction over the rate) and rounded *up* only where the packet leaves. So one packet alone takes
//! [`narrows_units::BitRate::time_for`], and a saturated link runs at its exact rate for ever.

mod bucket;
mod early;
mod fifo;
mod hop;
mod link;
mod part;
mod router;
mod service;
mod source;
mod tally;
mod wire;

use std::collections::BinaryHeap;

use narrows_scenario::{Crossed, PathDirection, Scenario, Source as Traffic};

use crate::NEVER;
use fifo::{Fifo, ForegroundPackets, Transit};
use hop::{HopState, StepContext};
pub(crate) use link::Link;
pub use part::{LinkPart, Segment};
pub(crate) use router::Answers;
use router::Pending;
use source::Source;
pub use source::{Arrival, ArrivalStream};
use tally::Tally;

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet<T> {
    /// Length of the IP packet, header included.
    pub ip_octets: u16,
    /// Routers that it may pass, plus one (IPv4 TTL).
    pub hop_limit: u8,
    /// What a hash over its addresses and ports would tell: packets of one flow take the same one
    /// of channels that are dealt by flow.
    pub flow: u32,
    /// What it carries.
    pub payload: T,
}

/// What became of a packet. Times are nanoseconds since the scenario's begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output<T> {
    /// It reached the end of its way (or of its last hop).
    Delivered {
        /// When its last bit arrived.
        at: u64,
        /// Which way it went.
        way: PathDirection,
        /// The node it reached.
        node: usize,
        /// Its length.
        ip_octets: u16,
        /// What is left of its hop limit.
        hop_limit: u8,
        /// What it carries.
        payload: T,
    },
    /// Its hop limit ran out at a router that answers.
    Expired {
        /// When the answer leaves, generation included; the rate limit is applied already.
        at: u64,
        /// Which way the packet went.
        way: PathDirection,
        /// The router.
        node: usize,
        /// Length of the packet.
        ip_octets: u16,
        /// What it carries.
        payload: T,
    },
    /// It does not fit on the next link, and the node says so.
    TooBig {
        /// When the answer leaves; at node 0, when the packet was sent.
        at: u64,
        /// Which way the packet went.
        way: PathDirection,
        /// The node in front of the link.
        node: usize,
        /// The link's MTU.
        mtu: u16,
        /// Length of the packet.
        ip_octets: u16,
        /// What it carries.
        payload: T,
    },
    /// It is gone without a word.
    Dropped {
        /// When.
        at: u64,
        /// Which way the packet went.
        way: PathDirection,
        /// The hop (for [`DropCause::HopLimit`] and [`DropCause::TooBig`]: the one it did not
        /// enter).
        hop: usize,
        /// Why.
        cause: DropCause,
        /// What it carries.
        payload: T,
    },
}

/// Why a packet is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// The queue of the link was full.
    Queue,
    /// The queue of this hidden device was full.
    Device(usize),
    /// It found no tokens, and nothing to wait in.
    Policer,
    /// It found no tokens, and the shaper's queue full.
    Shaper,
    /// The queue was not full, but long.
    Early,
    /// It was damaged on the wire.
    Wire,
    /// Its hop limit ran out at a router that does not answer, or not now.
    HopLimit,
    /// It did not fit on the link, and the router does not answer, or not now.
    TooBig,
}

impl<T> Output<T> {
    /// When.
    pub fn at(&self) -> u64 {
        match self {
            Self::Delivered { at, .. }
            | Self::Expired { at, .. }
            | Self::TooBig { at, .. }
            | Self::Dropped { at, .. } => *at,
        }
    }

    /// Outputs of one instant come in this order.
    fn rank(&self) -> (u64, PathDirection, usize) {
        match self {
            Self::Dropped { at, way, hop, .. } => (*at, *way, *hop),
            Self::Expired { at, way, node, .. }
            | Self::TooBig { at, way, node, .. }
            | Self::Delivered { at, way, node, .. } => (*at, *way, *node),
        }
    }
}

/// A path with its cross traffic. Times are nanoseconds since the scenario's begin; cross traffic
/// begins at zero.
///
/// [`Source::Elastic`](narrows_scenario::Source) traffic is closed-loop and not generated here:
/// whoever plays its TCP connections sends their packets with [`Path::cross`].
#[derive(Debug)]
pub struct Path<T> {
    ways: [Lane; 2],
    foreground_packets: ForegroundPackets<T>,
    pending: BinaryHeap<Pending<T>>,
    now: u64,
    /// Longest stretch computed hop by hop, so that the packets between two hops stay few.
    stretch: u64,
    made: u64,
}

/// One way.
#[derive(Debug)]
struct Lane {
    /// The host's interface, with what waits in front of it.
    interface: Option<(Link, Fifo)>,
    hops: Vec<HopState>,
    /// Arrived, or about to.
    sink: Fifo,
    /// Cross traffic that goes on to another path behind the last hop; `None` if none does.
    outlet: Option<Fifo>,
}

impl<T> Path<T> {
    /// The path of this scenario, empty, at time zero.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut ways = [PathDirection::Forward, PathDirection::Reverse].map(|way| Lane::new(scenario, way, seed));
        let mut transit_pps = 0.0;
        for (index, cross) in scenario.cross.iter().enumerate() {
            let Traffic::Open { arrivals, rate, sizes } = &cross.source else {
                continue;
            };
            let hops = &mut ways[side(cross.way)].hops;
            if cross.last_hop > cross.first_hop {
                transit_pps += rate.as_f64() / (8.0 * sizes.mean_ip_octets());
            }
            if let Some(hop) = hops.get_mut(cross.first_hop) {
                hop.add_source(Source::new(cross, *arrivals, *rate, sizes, seed, index));
            }
        }
        Self {
            ways,
            foreground_packets: ForegroundPackets::new(),
            pending: BinaryHeap::new(),
            now: 0,
            stretch: crate::rng::round_ns(4096.0e9 / transit_pps).max(1),
            made: 0,
        }
    }

    /// Sends a packet from the host at the beginning of a way, through its interface. A time before
    /// the last [`Path::advance`] is taken for now. Calls need not be in order of time.
    pub fn send(&mut self, at: u64, way: PathDirection, packet: Packet<T>) {
        let last = self.ways[side(way)].hops.len() - 1;
        self.send_up_to(at, way, last, packet);
    }

    /// The same, but the packet is delivered behind this hop: somebody there looks at it, and sends
    /// it on with [`Path::cross`].
    pub(crate) fn send_up_to(&mut self, at: u64, way: PathDirection, last_hop: usize, packet: Packet<T>) {
        let at = at.max(self.now);
        let exit = last_hop.min(self.ways[side(way)].hops.len() - 1);
        let transit = self.foreground_packets.admit(at, exit, packet);
        let lane = &mut self.ways[side(way)];
        match &mut lane.interface {
            Some((_, waiting)) => waiting.insert(transit),
            None => lane.hops[0].injected.insert(transit),
        }
    }

    /// Sends a packet from the router at this node (an ICMP answer): it enters the node's outgoing
    /// link and goes to the end of the way. Nodes beyond the last hop's beginning count as that;
    /// node 0 is the host, without its interface.
    pub fn inject(&mut self, at: u64, way: PathDirection, node: usize, packet: Packet<T>) {
        let hops = &mut self.ways[side(way)].hops;
        let (first, exit) = (node.min(hops.len() - 1), hops.len() - 1);
        let transit = self.foreground_packets.admit(at.max(self.now), exit, packet);
        hops[first].injected.insert(transit);
    }

    /// Sends a packet of somebody else over some hops of a way; it is delivered behind the last of
    /// them, and counts as cross traffic.
    pub fn cross(&mut self, at: u64, way: PathDirection, first_hop: usize, last_hop: usize, packet: Packet<T>) {
        let hops = &mut self.ways[side(way)].hops;
        let first = first_hop.min(hops.len() - 1);
        let exit = last_hop.clamp(first, hops.len() - 1);
        let transit = self.foreground_packets.admit_cross_traffic(at.max(self.now), exit, packet);
        hops[first].injected.insert(transit);
    }

    /// When the next thing happens to a packet that was sent or injected: it reaches a hop or an
    /// output is due. No output comes before. `None` if there is no such packet (or all stand
    /// before links that never run again).
    pub fn next_at(&self) -> Option<u64> {
        let lanes = self.ways.iter().map(Lane::next_at);
        let pending = self.pending.peek().map_or(NEVER, |pending| pending.output.at());
        let next = lanes.fold(pending, u64::min);
        (next < NEVER).then_some(next)
    }

    /// Lets everything happen up to and including `until`, and appends the outputs, in order of
    /// time (at one instant: the forward way first, then by node). Into how many calls a time is
    /// cut changes nothing.
    pub fn advance(&mut self, until: u64, out: &mut Vec<Output<T>>) {
        let until = until.min(NEVER - 1);
        while self.now < until || self.next_at().is_some_and(|next| next <= until) {
            let end = until.min(self.now.saturating_add(self.stretch));
            self.advance_stretch(end, out);
        }
    }

    /// Lets things happen up to `until`, but stops at the instant of the first output. Returns the
    /// time reached.
    pub fn advance_to_output(&mut self, until: u64, out: &mut Vec<Output<T>>) -> u64 {
        let before = out.len();
        while out.len() == before {
            match self.next_at() {
                Some(next) if next <= until => self.advance(next, out),
                _ => {
                    self.advance(until, out);
                    break;
                }
            }
        }
        self.now
    }

    /// The time up to which everything has happened.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Counts, from now on, the cross traffic that leaves the link of each hop of a way between two
    /// times, in intervals of `every`. `scenario` is the one that the path was made of.
    pub fn count(&mut self, scenario: &Scenario, way: PathDirection, (from, to): (u64, u64), every: u64) {
        for (state, hop) in self.ways[side(way)].hops.iter_mut().zip(scenario.hops(way)) {
            state.count(Tally::new((from, to), every, narrows_units::nanos(hop.delay)));
        }
    }

    /// What was counted on each hop of a way, by interval up to the last in which anything crossed.
    pub fn crossed(&self, way: PathDirection) -> Vec<Vec<Crossed>> {
        self.ways[side(way)].hops.iter().map(|hop| hop.crossed().to_vec()).collect()
    }

    /// Packets sent or injected of which nothing was put out yet.
    pub fn inside(&self) -> usize {
        self.foreground_packets.count() + self.pending.len()
    }

    /// The node of the other way that stands where this node of this way does: as many hops from
    /// the host at the way's beginning. On a reverse direction that is shorter, nodes too far out
    /// coincide with its first.
    pub fn opposite(&self, way: PathDirection, node: usize) -> usize {
        self.ways[side(way.opposite())].hops.len().saturating_sub(node)
    }

    fn advance_stretch(&mut self, until: u64, out: &mut Vec<Output<T>>) {
        let before = out.len();
        for (lane, way) in self.ways.iter_mut().zip([PathDirection::Forward, PathDirection::Reverse]) {
            let mut step_context = StepContext {
                way,
                until,
                foreground_packets: &mut self.foreground_packets,
                pending: &mut self.pending,
                made: &mut self.made,
            };
            lane.run(&mut step_context);
            while let Some(transit) = lane.sink.pop_until(until) {
                if let Some(packet) = self.foreground_packets.leave(&transit) {
                    out.push(Output::Delivered {
                        at: transit.at,
                        way,
                        node: usize::from(transit.exit) + 1,
                        ip_octets: packet.ip_octets,
                        hop_limit: packet.hop_limit,
                        payload: packet.payload,
                    });
                }
            }
        }
        while self.pending.peek().is_some_and(|next| next.output.at() <= until) {
            out.extend(self.pending.pop().map(|pending| pending.output));
        }
        out[before..].sort_by_key(Output::rank);
        self.now = self.now.max(until);
    }
}

impl Lane {
    fn new(scenario: &Scenario, way: PathDirection, seed: u64) -> Self {
        let host = match way {
            PathDirection::Forward => &scenario.sender,
            PathDirection::Reverse => &scenario.receiver,
        };
        let hops = scenario.hops(way);
        Self {
            interface: host.interface_rate.map(|rate| (Link::interface(rate), Fifo::new())),
            hops: (0..hops.len()).map(|index| HopState::new(hops, way, index, seed)).collect(),
            sink: Fifo::new(),
            outlet: None,
        }
    }

    fn next_at(&self) -> u64 {
        let interface = self.interface.as_ref().map_or(NEVER, |(_, waiting)| waiting.next_foreground_packet());
        self.hops
            .iter()
            .map(HopState::next_foreground_packet)
            .fold(interface.min(self.sink.next_foreground_packet()), u64::min)
    }

    fn run<T>(&mut self, step_context: &mut StepContext<'_, T>) {
        if let Some((link, waiting)) = &mut self.interface {
            while let Some(transit) = waiting.pop_until(step_context.until) {
                // An interface never drops: the host waits for it.
                let at = link.serve(transit.at, transit.ip_octets).unwrap_or(NEVER);
                self.hops[0].transit.insert(Transit { at, ..transit });
            }
        }
        for index in 0..self.hops.len() {
            let (head, tail) = self.hops.split_at_mut(index + 1);
            let next = match tail.first_mut() {
                Some(hop) => Some(&mut hop.transit),
                None => self.outlet.as_mut(),
            };
            head[index].run(step_context, next, &mut self.sink);
        }
    }
}

fn side(way: PathDirection) -> usize {
    match way {
        PathDirection::Forward => 0,
        PathDirection::Reverse => 1,
    }
}

#[cfg(test)]
mod tests;
