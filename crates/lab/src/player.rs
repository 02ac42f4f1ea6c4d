//! The thread that plays the path against the real clock.
//!
//! One turn of its loop: look at both devices (at most one packet each, so that no release waits for a batch of reads), let the path
//! move on to now (also while nobody sends: cross traffic that nobody served while the path was idle would make the first packet of
//! every train wait while it is caught up), hand over what has arrived, and if the next event is close, spin until it comes.
//! In its steady state nothing is allocated: packets live in buffers that are used again.

use std::io;

use scenario::Way;
use sim::{Output, Packet, Path};

use crate::icmp::{self, Trouble};
use crate::packet::{Header, UDP, set_hop_limit};
use crate::plan::{AddressPlan, Owner, Side};
use crate::tally::Tally;

/// An event this close is waited for, rather than risked to be missed while the devices are read: a read takes some 0.3 to 1 µs.
const CLOSE_NS: u64 = 2_000;
/// With an event this close the processor is not given away, on machines where there is only one.
const SOON_NS: u64 = 50_000;
/// Hop limit of what routers send.
const ROUTER_HOP_LIMIT: u8 = 64;
/// Octets of buffers made before the start: more than most paths ever hold (11 000 packets of 1500 octets), so that no burst meets an
/// allocation.
const READY_OCTETS: usize = 16 << 20;

/// A packet's octets, in a buffer that is used again.
#[derive(Debug)]
pub(crate) struct Buffer {
    octets: Box<[u8]>,
    length: usize,
}

impl Buffer {
    fn packet(&self) -> &[u8] {
        &self.octets[..self.length]
    }

    fn packet_mut(&mut self) -> &mut [u8] {
        &mut self.octets[..self.length]
    }

    /// Takes over a packet; `false`, and nothing changed, if it does not fit.
    fn fill(&mut self, packet: &[u8]) -> bool {
        let Some(place) = self.octets.get_mut(..packet.len()) else {
            return false;
        };
        place.copy_from_slice(packet);
        self.length = packet.len();
        true
    }
}

/// Where a host's packets come out and go in.
pub(crate) trait End {
    /// Takes one packet that the host sent; `None` if there is none now.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<usize>>;
    /// Hands one packet to the host.
    fn deliver(&mut self, packet: &[u8]) -> io::Result<()>;
}

/// The path's time: nanoseconds since the scenario's begin, never backwards.
pub(crate) trait Clock {
    /// Now.
    fn now(&mut self) -> u64;
}

/// The path, its ends, and the counts.
pub(crate) struct Player<E, C> {
    path: Path<Buffer>,
    plan: AddressPlan,
    ends: [E; 2],
    router_limits: RouterLimits,
    clock: C,
    last_read: u64,
    last_look: u64,
    free: Vec<Buffer>,
    buffer_octets: usize,
    outputs: Vec<Output<Buffer>>,
    answer: Vec<u8>,
    tally: Tally,
}

/// Most octets of an ICMP answer, for the routers of both ways in order.
pub(crate) type RouterLimits = [Vec<u16>; 2];

impl<E: End, C: Clock> Player<E, C> {
    /// Takes a path to play; its time goes on from where it stands.
    pub(crate) fn new(
        path: Path<Buffer>,
        plan: AddressPlan,
        ends: [E; 2],
        mtu: u16,
        router_limits: RouterLimits,
        mut clock: C,
    ) -> Self {
        // An ICMP answer may be up to 1280 octets long on a path whose hosts send smaller packets.
        let buffer_octets = usize::from(mtu).max(1_500);
        let free = (0..READY_OCTETS / buffer_octets)
            .map(|_| new_buffer(buffer_octets))
            .collect();
        let now = clock.now();
        Self {
            path,
            plan,
            ends,
            router_limits,
            clock,
            last_read: now,
            last_look: now,
            free,
            buffer_octets,
            outputs: Vec::with_capacity(1_024),
            answer: Vec::with_capacity(2_048),
            tally: Tally::new(),
        }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Begins to count anew.
    pub(crate) fn begin_tally(&mut self) {
        self.tally = Tally::new();
    }

    /// One turn. Returns whether anything was going on, or will be soon.
    pub(crate) fn turn(&mut self) -> bool {
        let now = self.now();
        self.tally.looked(now - self.last_look);
        self.last_look = now;
        let sent = self.look(Side::Sender) | self.look(Side::Receiver);
        let now = self.now();
        self.play(now);
        let Some(next) = self.path.next_at() else {
            return sent;
        };
        let wait = next.saturating_sub(now);
        if wait <= CLOSE_NS {
            let mut now = self.now();
            while now < next {
                std::hint::spin_loop();
                now = self.now();
            }
            self.play(now);
        }
        sent || wait <= SOON_NS
    }

    fn now(&mut self) -> u64 {
        let now = self.clock.now();
        self.tally.read_clock(now - self.last_read);
        self.last_read = now;
        now
    }

    /// Takes at most one packet from a host; whether there was one.
    fn look(&mut self, side: Side) -> bool {
        let mut buffer = self.take_buffer();
        match self.ends[side.index()].receive(&mut buffer.octets) {
            Ok(Some(length)) => {
                buffer.length = length;
                let now = self.now();
                self.accept(now, side.way(), buffer);
                true
            }
            Ok(None) => {
                self.free.push(buffer);
                false
            }
            Err(_) => {
                self.tally.refusals += 1;
                self.free.push(buffer);
                false
            }
        }
    }

    /// Sends a host's packet over the path, if it is for somebody there.
    fn accept(&mut self, now: u64, way: Way, buffer: Buffer) {
        let known = Header::read(buffer.packet())
            .and_then(|header| self.destination_limit(way, &header).map(|limit| (header, limit)));
        let Some((header, hop_limit)) = known else {
            self.tally.strays += 1;
            self.free.push(buffer);
            return;
        };
        self.tally.accepted += 1;
        let packet = Packet {
            ip_octets: header.ip_octets,
            hop_limit,
            payload: buffer,
        };
        self.path.send(now, way, packet);
    }

    /// With which hop limit the path carries a packet of this way, so that it ends where it should: a router that is the destination
    /// itself takes it as if it ran out there. `None` if the destination is not on the way.
    fn destination_limit(&self, way: Way, header: &Header) -> Option<u8> {
        match self.plan.owner(header.destination)? {
            Owner::Host(side) => (side == Side::at_end_of(way)).then_some(header.hop_limit),
            Owner::Router(there, number) => self.node(way, there, number).map(|node| header.hop_limit.min(node)),
        }
    }

    /// The node of this way at which a router stands that answers by its number on that way; `None` if this way has none there.
    fn node(&self, way: Way, there: Way, number: u8) -> Option<u8> {
        let node = if there == way {
            number
        } else {
            u8::try_from(self.path.opposite(there, usize::from(number))).ok()?
        };
        (1..=self.plan.routers(way)).contains(&node).then_some(node)
    }

    /// Lets the path move on, and does what comes out of it. Stops at every output, so that answers of routers enter the way back at
    /// their own time and not at ours.
    fn play(&mut self, until: u64) {
        loop {
            let mut outputs = std::mem::take(&mut self.outputs);
            self.path.advance_to_output(until, &mut outputs);
            let idle = outputs.is_empty();
            for output in outputs.drain(..) {
                self.act(output);
            }
            self.outputs = outputs;
            if idle {
                return;
            }
        }
    }

    fn act(&mut self, output: Output<Buffer>) {
        match output {
            Output::Delivered {
                at,
                way,
                hop_limit,
                payload,
                ..
            } => self.release(at, way, hop_limit, payload),
            Output::Expired {
                at, way, node, payload, ..
            } => self.answer(at, way, node, Trouble::HopLimitExceeded, payload),
            Output::TooBig {
                at,
                way,
                node,
                mtu,
                payload,
                ..
            } => self.answer(at, way, node, Trouble::TooBig { mtu }, payload),
            Output::Dropped {
                way,
                hop,
                cause,
                payload,
                ..
            } => {
                self.tally.dropped(way, hop, cause);
                self.free.push(payload);
            }
        }
    }

    fn release(&mut self, at: u64, way: Way, hop_limit: u8, mut buffer: Buffer) {
        set_hop_limit(buffer.packet_mut(), hop_limit);
        let now = self.now();
        let end = &mut self.ends[Side::at_end_of(way).index()];
        match end.deliver(buffer.packet()) {
            Ok(()) => self.tally.released(now.saturating_sub(at)),
            Err(_) => self.tally.refusals += 1,
        }
        self.free.push(buffer);
    }

    /// A router's answer to a packet that ended there; it takes the packet's buffer.
    fn answer(&mut self, at: u64, way: Way, node: usize, trouble: Trouble, mut buffer: Buffer) {
        let answers = self.compose(way, node, trouble, &mut buffer) && buffer.fill(&self.answer);
        if !answers {
            self.free.push(buffer);
            return;
        }
        self.tally.router_answers += 1;
        let packet = Packet {
            // Built by `icmp`, which makes no longer ones.
            ip_octets: u16::try_from(buffer.length).unwrap_or(u16::MAX),
            hop_limit: ROUTER_HOP_LIMIT,
            payload: buffer,
        };
        self.path
            .inject(at, opposite(way), self.path.opposite(way, node), packet);
    }

    /// Writes the router's answer; `false` if it has none.
    fn compose(&mut self, way: Way, node: usize, trouble: Trouble, buffer: &mut Buffer) -> bool {
        let Some(header) = Header::read(buffer.packet()) else {
            return false;
        };
        let router = u8::try_from(node)
            .ok()
            .and_then(|number| self.plan.router(way, number))
            .and_then(|addresses| addresses.like(header.source));
        let Some(router) = router else {
            return false;
        };
        let limits = &self.router_limits[side_of(way).index()];
        let most = limits.get(node.saturating_sub(1)).copied().unwrap_or(576);
        if let Some(Owner::Router(there, number)) = self.plan.owner(header.destination)
            && trouble == Trouble::HopLimitExceeded
            && self.node(way, there, number).map(usize::from) == Some(node)
        {
            let (packet, own) = (buffer.packet(), header.destination);
            let unreachable = Trouble::PortUnreachable;
            return icmp::echo_reply(packet, own, &mut self.answer)
                || header.protocol == UDP && icmp::error(packet, own, unreachable, most, &mut self.answer);
        }
        // Routers quote the packet as it came to them: one less for each router before.
        let passed = u8::try_from(node.saturating_sub(1)).unwrap_or(u8::MAX);
        set_hop_limit(buffer.packet_mut(), header.hop_limit.saturating_sub(passed));
        icmp::error(buffer.packet(), router, trouble, most, &mut self.answer)
    }

    fn take_buffer(&mut self) -> Buffer {
        let octets = self.buffer_octets;
        self.free.pop().unwrap_or_else(|| new_buffer(octets))
    }
}

fn new_buffer(octets: usize) -> Buffer {
    // Touched once here, so that its pages exist before the first packet.
    Buffer {
        octets: vec![1; octets].into_boxed_slice(),
        length: 0,
    }
}

fn opposite(way: Way) -> Way {
    match way {
        Way::Forward => Way::Reverse,
        Way::Reverse => Way::Forward,
    }
}

fn side_of(way: Way) -> Side {
    match way {
        Way::Forward => Side::Sender,
        Way::Reverse => Side::Receiver,
    }
}

#[cfg(test)]
mod tests;
