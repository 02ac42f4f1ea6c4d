//! Links that do not send one packet after the other: channels, slots, and bursts
//! (`narrows_scenario::Service`).

use std::collections::VecDeque;

use narrows_scenario::{Aggregation, Channels, Dealing, Hop, Inside, PathDirection, Queue, Service, Slots};
use narrows_units::{Framing, nanos};

use super::fifo::Transit;
use super::link::Link;
use crate::rng::{Purpose, Stream};

/// The link of a hop, where it is not a plain one.
#[derive(Debug)]
pub(super) enum Server {
    Channels(Dealer),
    Slots(Slotted),
    Bursts(Bursts),
}

/// What becomes of a packet that a link takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It leaves at this time, over this channel.
    Leaves(u64, usize),
    /// When it leaves depends on what follows it: [`Bursts::close`] tells.
    Gathers,
    /// The queue is full.
    Full,
}

impl Server {
    pub(super) fn new(hop: &Hop, way: PathDirection, index: usize, seed: u64) -> Option<Self> {
        match hop.service {
            Service::Single => None,
            Service::Channels(channels) => Some(Self::Channels(Dealer::new(hop, channels, way, index, seed))),
            Service::Slots(slots) => Some(Self::Slots(Slotted::new(hop, slots))),
            Service::Aggregation(aggregation) => Some(Self::Bursts(Bursts::new(hop, aggregation, way, index, seed))),
        }
    }

    /// Channels over which packets may overtake one another.
    pub(super) fn channels(hop: &Hop) -> usize {
        match hop.service {
            Service::Channels(channels) => usize::from(channels.count.max(1)),
            _ => 1,
        }
    }

    /// Takes a packet that arrives at `at`, no earlier than the one before. Bursts that begin
    /// before it must have been closed.
    pub(super) fn take(&mut self, at: u64, transit: &Transit, flow: u32) -> Admission {
        match self {
            Self::Channels(dealer) => dealer.take(at, transit.ip_octets, flow),
            Self::Slots(slotted) => slotted.take(at, transit.ip_octets),
            Self::Bursts(bursts) => bursts.take(at, transit),
        }
    }

    /// When the burst that gathers is closed at the latest; no earlier does any packet of it leave.
    pub(super) fn closes_at(&self) -> Option<u64> {
        match self {
            Self::Bursts(bursts) if !bursts.gathered.is_empty() => Some(bursts.begins),
            _ => None,
        }
    }

    /// Somebody waits for a packet that gathers.
    pub(super) fn holds_foreground_packet(&self) -> bool {
        match self {
            Self::Bursts(bursts) => bursts.gathered.iter().any(Transit::is_foreground_packet),
            Self::Channels(_) | Self::Slots(_) => false,
        }
    }

    /// Before a packet is taken at `at`: the burst that gathers is over if it has begun, or has no
    /// place for the packet.
    pub(super) fn close_before(&mut self, at: u64, ip_octets: u16) -> Vec<Transit> {
        match self {
            Self::Bursts(bursts) if !bursts.gathered.is_empty() => {
                let frame = u64::from(bursts.framing.wire_octets(u32::from(ip_octets)));
                if bursts.joins(at, frame) { Vec::new() } else { bursts.close() }
            }
            _ => Vec::new(),
        }
    }

    /// The packets of the burst that gathered, if it begins by `until`: all leave with the last of
    /// them.
    pub(super) fn close(&mut self, until: u64) -> Vec<Transit> {
        match self {
            Self::Bursts(bursts) if bursts.begins <= until => bursts.close(),
            _ => Vec::new(),
        }
    }
}

/// Channels, and which packet takes which.
#[derive(Debug)]
pub(super) struct Dealer {
    channels: Vec<Link>,
    by: Dealing,
    turn: usize,
    salt: u64,
}

impl Dealer {
    fn new(hop: &Hop, channels: Channels, way: PathDirection, index: usize, seed: u64) -> Self {
        let link = || Link::new(hop.rate, hop.framing, hop.queue, &[]);
        Self {
            channels: (0..channels.count.max(1)).map(|_| link()).collect(),
            by: channels.by,
            turn: 0,
            salt: Stream::new(seed, Purpose::Link(way, index)).bits(),
        }
    }

    fn take(&mut self, at: u64, ip_octets: u16, flow: u32) -> Admission {
        let place = self.place(flow);
        let served = self.channels.get_mut(place).and_then(|link| link.serve(at, ip_octets));
        served.map_or(Admission::Full, |departure| Admission::Leaves(departure, place))
    }

    fn place(&mut self, flow: u32) -> usize {
        let count = self.channels.len();
        match self.by {
            Dealing::Packet => {
                let place = self.turn;
                self.turn = (self.turn + 1) % count;
                place
            }
            Dealing::Load => {
                let idle = self.channels.iter().enumerate().min_by_key(|(_, link)| link.idle_from());
                idle.map_or(0, |(place, _)| place)
            }
            Dealing::Flow => {
                let hash = crate::rng::scatter(self.salt ^ u64::from(flow));
                let place = (u128::from(hash) * count as u128) >> 64;
                usize::try_from(place).unwrap_or(0)
            }
        }
    }
}

/// What waits in front of a link, for drop-tail.
#[derive(Debug)]
struct Room {
    queue: Queue,
    held: VecDeque<(u64, u16)>,
    octets: u64,
}

impl Room {
    fn new(queue: Queue) -> Self {
        Self { queue, held: VecDeque::new(), octets: 0 }
    }

    /// Whether a packet that arrives at `at` finds place, beside `others` that leave at times yet
    /// unknown.
    fn has_place(&mut self, at: u64, ip_octets: u16, others: &[Transit]) -> bool {
        while let Some(&(departure, octets)) = self.held.front() {
            if departure > at {
                break;
            }
            self.held.pop_front();
            self.octets -= u64::from(octets);
        }
        match self.queue {
            Queue::Octets(limit) => {
                let waiting: u64 = others.iter().map(|other| u64::from(other.ip_octets)).sum();
                self.octets + waiting + u64::from(ip_octets) <= limit.count()
            }
            Queue::Packets(limit) => self.held.len() + others.len() < limit as usize,
            Queue::Unlimited => true,
        }
    }

    fn hold(&mut self, departure: u64, ip_octets: u16) {
        if self.queue != Queue::Unlimited {
            self.held.push_back((departure, ip_octets));
            self.octets += u64::from(ip_octets);
        }
    }
}

/// A link with slots: a fluid at its rate, whose packets arrive at the end of the slot that held
/// their last bit.
#[derive(Debug)]
pub(super) struct Slotted {
    fluid: Link,
    room: Room,
    period: u64,
    grant: u64,
}

impl Slotted {
    fn new(hop: &Hop, slots: Slots) -> Self {
        Self {
            fluid: Link::new(hop.rate, hop.framing, Queue::Unlimited, &[]),
            room: Room::new(hop.queue),
            period: nanos(slots.period).max(1),
            grant: nanos(slots.grant),
        }
    }

    fn take(&mut self, at: u64, ip_octets: u16) -> Admission {
        if !self.room.has_place(at, ip_octets, &[]) {
            return Admission::Full;
        }
        let begin = if at >= self.fluid.idle_from() { self.slot_from(at.saturating_add(self.grant)) } else { at };
        let Some(sent) = self.fluid.serve(begin, ip_octets) else {
            return Admission::Full;
        };
        let departure = self.slot_from(sent);
        self.room.hold(departure, ip_octets);
        Admission::Leaves(departure, 0)
    }

    /// The first begin of a slot from then on.
    fn slot_from(&self, at: u64) -> u64 {
        at.div_ceil(self.period).saturating_mul(self.period)
    }
}

/// A link that sends bursts after contention.
#[derive(Debug)]
pub(super) struct Bursts {
    air: Link,
    room: Room,
    framing: Framing,
    shape: Aggregation,
    contention: u64,
    jitter: u64,
    rng: Stream,
    /// When the burst that gathers, or the last one, begins.
    begins: u64,
    frames: u16,
    octets: u64,
    /// When its last packet so far has left.
    ends: u64,
    /// Packets that leave with the last of their burst.
    gathered: Vec<Transit>,
}

impl Bursts {
    fn new(hop: &Hop, shape: Aggregation, way: PathDirection, index: usize, seed: u64) -> Self {
        Self {
            air: Link::new(hop.rate, hop.framing, Queue::Unlimited, &[]),
            room: Room::new(hop.queue),
            framing: hop.framing,
            shape,
            contention: nanos(shape.contention),
            jitter: nanos(shape.jitter),
            rng: Stream::new(seed, Purpose::Link(way, index)),
            begins: 0,
            frames: 0,
            octets: 0,
            ends: 0,
            gathered: Vec::new(),
        }
    }

    /// A packet joins the burst that has not begun, or the next one.
    fn take(&mut self, at: u64, transit: &Transit) -> Admission {
        if !self.room.has_place(at, transit.ip_octets, &self.gathered) {
            return Admission::Full;
        }
        let frame = u64::from(self.framing.wire_octets(u32::from(transit.ip_octets)));
        if !self.joins(at, frame) {
            self.begin_next(at);
        }
        self.frames += 1;
        self.octets += frame;
        let Some(sent) = self.air.serve(self.begins, transit.ip_octets) else {
            return Admission::Full;
        };
        self.ends = sent;
        match self.shape.inside {
            Inside::Spaced => {
                self.room.hold(sent, transit.ip_octets);
                Admission::Leaves(sent, 0)
            }
            Inside::AtOnce => {
                self.gathered.push(Transit { at, ..*transit });
                Admission::Gathers
            }
        }
    }

    fn joins(&self, at: u64, frame: u64) -> bool {
        let fits = self.frames < self.shape.frames && self.octets + frame <= self.shape.octets.count();
        self.frames > 0 && at < self.begins && fits
    }

    fn begin_next(&mut self, at: u64) {
        let back_off = if self.jitter == 0 { 0 } else { self.rng.below(self.jitter.saturating_add(1)) };
        let free = at.max(self.ends);
        self.begins = free.saturating_add(self.contention).saturating_add(back_off);
        (self.frames, self.octets) = (0, 0);
    }

    fn close(&mut self) -> Vec<Transit> {
        let ends = self.ends;
        let mut burst = std::mem::take(&mut self.gathered);
        for transit in &mut burst {
            transit.at = ends;
            self.room.hold(ends, transit.ip_octets);
        }
        burst
    }
}
