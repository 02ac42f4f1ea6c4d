//! One hop: everything between two nodes, and the node in front of it.

use std::collections::BinaryHeap;

use narrows_scenario::{Crossed, Hop, Layer2, PathDirection};
use narrows_units::nanos;

use super::bucket::Bucket;
use super::early::Early;
use super::fifo::{Fifo, ForegroundPackets, Transit};
use super::link::Link;
use super::part::Segment;
use super::router::{Answers, Pending};
use super::service::{Admission, Server};
use super::source::Source;
use super::tally::Tally;
use super::wire::Wire;
use super::{DropCause, Output, Packet};
use crate::NEVER;
use crate::rng::{Purpose, Stream};

/// What a hop works with while it runs.
pub(super) struct StepContext<'a, T> {
    pub(super) way: PathDirection,
    pub(super) until: u64,
    pub(super) foreground_packets: &'a mut ForegroundPackets<T>,
    pub(super) pending: &'a mut BinaryHeap<Pending<T>>,
    pub(super) made: &'a mut u64,
}

impl<T> StepContext<'_, T> {
    fn put_out(&mut self, output: Output<T>) {
        *self.made += 1;
        self.pending.push(Pending { output, made: *self.made });
    }
}

/// A hop with the traffic that waits to enter it.
#[derive(Debug)]
pub(super) struct HopState {
    index: usize,
    mtu: u16,
    chain: Chain,
    sources: Vec<Source>,
    /// From the hop before.
    pub(super) transit: Fifo,
    /// Sent or injected at this hop's first node.
    pub(super) injected: Fifo,
    /// The router in front of the hop; `None` at the host.
    router: Option<Answers>,
    /// Somebody counts the cross traffic.
    tally: Option<Tally>,
}

impl HopState {
    pub(super) fn new(hops: &[Hop], way: PathDirection, index: usize, seed: u64) -> Self {
        let hop = &hops[index];
        let router = index.checked_sub(1).map(|before| Answers::new(hops[before].router, way, index, seed));
        Self {
            index,
            mtu: hop.mtu,
            chain: Chain::new(hop, way, index, seed),
            sources: Vec::new(),
            transit: Fifo::new(),
            injected: Fifo::new(),
            router,
            tally: None,
        }
    }

    /// A hop that is all of its path and plays one link of a longer one.
    pub(super) fn segment(hop: &Hop, way: PathDirection, segment: Segment, seed: u64) -> Self {
        Self {
            index: 0,
            mtu: hop.mtu,
            chain: Chain::segment(hop, way, segment, seed),
            sources: Vec::new(),
            transit: Fifo::new(),
            injected: Fifo::new(),
            router: None,
            tally: None,
        }
    }

    pub(super) fn add_source(&mut self, source: Source) {
        self.sources.push(source);
    }

    /// Counts what crosses from now on.
    pub(super) fn count(&mut self, tally: Tally) {
        self.tally = Some(tally);
    }

    /// What was counted.
    pub(super) fn crossed(&self) -> &[Crossed] {
        self.tally.as_ref().map(Tally::intervals).unwrap_or_default()
    }

    pub(super) fn next_foreground_packet(&self) -> u64 {
        let gathers = self.chain.server.as_ref().filter(|server| server.holds_foreground_packet());
        let closes = gathers.and_then(Server::closes_at).unwrap_or(NEVER);
        self.transit.next_foreground_packet().min(self.injected.next_foreground_packet()).min(closes)
    }

    /// Entries for which there is memory.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        let devices = self.chain.devices.iter().map(|device| device.link.capacity());
        self.transit.capacity() + self.injected.capacity() + self.chain.link.capacity() + devices.sum::<usize>()
    }

    /// Serves everything that enters up to the bench's time.
    pub(super) fn run<T>(
        &mut self,
        step_context: &mut StepContext<'_, T>,
        mut next: Option<&mut Fifo>,
        sink: &mut Fifo,
    ) {
        loop {
            let (transit, injected) = (self.transit.next(), self.injected.next());
            let first = transit.min(injected);
            self.serve_cross(first.min(step_context.until), next.as_deref_mut());
            if self.chain.server.is_some() {
                self.release(first.min(step_context.until), step_context, next.as_deref_mut(), sink);
            }
            if first > step_context.until {
                return;
            }
            let from_before = transit <= injected;
            let queue = if from_before { &mut self.transit } else { &mut self.injected };
            let Some(packet) = queue.pop_until(step_context.until) else {
                return;
            };
            let passed = if packet.is_foreground_packet() {
                self.carry_foreground_packet(packet, from_before, step_context)
            } else if packet.ip_octets <= self.mtu {
                let generated_by = self.chain.carry(&packet, cross_flow(packet.slot));
                generated_by.ok().and_then(|passed| {
                    note(&mut self.tally, &packet, passed);
                    passed
                })
            } else {
                None
            };
            if let Some(at) = passed {
                self.go_on(Transit { at, ..packet }, next.as_deref_mut(), sink);
            }
        }
    }

    /// A packet has crossed the hop.
    #[inline]
    fn go_on(&self, packet: Transit, next: Option<&mut Fifo>, sink: &mut Fifo) {
        let leaves = usize::from(packet.exit) == self.index;
        match next {
            _ if leaves && packet.is_foreground_packet() => sink.insert(packet),
            Some(next) if !leaves && (packet.at < NEVER || packet.is_foreground_packet()) => next.insert(packet),
            _ => {}
        }
    }

    /// Lets go on what was in bursts that begin by `until`.
    fn release<T>(
        &mut self,
        until: u64,
        step_context: &mut StepContext<'_, T>,
        mut next: Option<&mut Fifo>,
        sink: &mut Fifo,
    ) {
        let over = self.chain.server.as_mut().map(|server| server.close(until));
        self.chain.closed.extend(over.unwrap_or_default());
        for packet in std::mem::take(&mut self.chain.closed) {
            match self.chain.behind_link(packet.at, packet.ip_octets, 0) {
                Ok(at) => self.go_on(Transit { at, ..packet }, next.as_deref_mut(), sink),
                Err(lost) => self.drop_foreground_packet(&packet, lost, step_context),
            }
        }
    }

    fn drop_foreground_packet<T>(
        &self,
        packet: &Transit,
        (at, cause): (u64, DropCause),
        step_context: &mut StepContext<'_, T>,
    ) {
        let Some(Packet { payload, .. }) = step_context.foreground_packets.leave(packet) else {
            return;
        };
        step_context.put_out(Output::Dropped { at, way: step_context.way, hop: self.index, cause, payload });
    }

    /// Serves all cross traffic that enters here up to `until`.
    fn serve_cross(&mut self, until: u64, mut next: Option<&mut Fifo>) {
        let Self { sources, chain, index, mtu, tally, .. } = self;
        while let Some(source) = earliest(sources) {
            if source.next > until {
                return;
            }
            let (at, ip_octets) = (source.next, source.ip_octets);
            source.step();
            if ip_octets > *mtu {
                continue;
            }
            let packet = Transit { at, slot: Transit::cross_slot(source.index), ip_octets, exit: source.exit };
            let passed = chain.carry(&packet, cross_flow(packet.slot));
            if let Ok(passed) = passed {
                note(tally, &packet, passed);
            }
            if usize::from(packet.exit) > *index
                && let (Ok(Some(at)), Some(next)) = (passed, next.as_deref_mut())
                && at < NEVER
            {
                next.insert(Transit { at, ..packet });
            }
        }
    }

    /// Takes a packet through node and hop; `None` if it goes no further.
    fn carry_foreground_packet<T>(
        &mut self,
        transit: Transit,
        from_before: bool,
        step_context: &mut StepContext<'_, T>,
    ) -> Option<u64> {
        let packet = step_context.foreground_packets.packet(&transit)?;
        // The host's own interface is no router.
        if from_before && self.router.is_some() {
            packet.hop_limit = packet.hop_limit.saturating_sub(1);
            let passed_on = self.router.as_ref().is_some_and(Answers::passes_on);
            if packet.hop_limit == 0 && !passed_on {
                self.refuse(transit, DropCause::HopLimit, step_context);
                return None;
            }
        }
        if transit.ip_octets > self.mtu {
            self.refuse(transit, DropCause::TooBig, step_context);
            return None;
        }
        let flow = packet.flow;
        let is_cross_traffic = step_context.foreground_packets.is_cross_traffic(&transit);
        match self.chain.carry(&transit, flow) {
            Ok(passed) => {
                if is_cross_traffic {
                    note(&mut self.tally, &transit, passed);
                }
                passed
            }
            Err(lost) => {
                self.drop_foreground_packet(&transit, lost, step_context);
                None
            }
        }
    }

    /// A packet may not go on: an answer, or silence.
    fn refuse<T>(&mut self, transit: Transit, cause: DropCause, step_context: &mut StepContext<'_, T>) {
        let Some(Packet { payload, ip_octets, .. }) = step_context.foreground_packets.leave(&transit) else {
            return;
        };
        let (way, node) = (step_context.way, self.index);
        let answer = match &mut self.router {
            Some(router) => router.answer(transit.at, ip_octets),
            None => Some(transit.at),
        };
        step_context.put_out(match (answer, cause) {
            (Some(at), DropCause::HopLimit) => Output::Expired { at, way, node, ip_octets, payload },
            (Some(at), _) => Output::TooBig { at, way, node, mtu: self.mtu, ip_octets, payload },
            (None, _) => Output::Dropped { at: transit.at, way, hop: node, cause, payload },
        });
    }
}

/// Counts a packet of cross traffic that was not dropped; of one that waits in a burst it is known
/// when it entered.
#[inline]
fn note(tally: &mut Option<Tally>, packet: &Transit, passed: Option<u64>) {
    if let Some(tally) = tally {
        tally.add(packet.ip_octets, packet.at, passed);
    }
}

#[inline]
fn earliest(sources: &mut [Source]) -> Option<&mut Source> {
    match sources {
        [] => None,
        [only] => Some(only),
        several => several.iter_mut().min_by_key(|source| source.next),
    }
}

/// What a hash makes of a packet of cross traffic: its source, and nothing that [`Packet::flow`]
/// says of others.
fn cross_flow(slot: u32) -> u32 {
    slot
}

/// Bucket, link, wire, devices, hold-back.
#[derive(Debug)]
struct Chain {
    link: Link,
    /// What stands in the link's place, where it is no plain one.
    server: Option<Server>,
    /// Packets of bursts that are over, which have yet to go on.
    closed: Vec<Transit>,
    /// Why a packet is gone that found the link's queue full.
    full: DropCause,
    /// Neither bucket nor devices nor anything random.
    plain: bool,
    bucket: Option<Bucket>,
    early: Option<Early>,
    wire: Wire,
    devices: Vec<Device>,
    hold: Option<Hold>,
}

#[derive(Debug)]
struct Device {
    link: Link,
    delay: u64,
}

#[derive(Debug)]
struct Hold {
    ratio: f64,
    by: u64,
    rng: Stream,
}

impl Hold {
    fn new(hop: &Hop, way: PathDirection, index: usize, seed: u64) -> Option<Self> {
        hop.reorder.map(|reorder| Self {
            ratio: reorder.ratio,
            by: nanos(reorder.by),
            rng: Stream::new(seed, Purpose::Hold(way, index)),
        })
    }
}

impl Chain {
    fn new(hop: &Hop, way: PathDirection, index: usize, seed: u64) -> Self {
        let wire = Wire::new(hop, way, index, seed);
        let device = |device: &Layer2| Device {
            link: Link::new(device.rate, device.framing, device.queue, &[]),
            delay: nanos(device.delay),
        };
        let server = Server::new(hop, way, index, seed);
        Self {
            link: Link::new(hop.rate, hop.framing, hop.queue, &hop.schedule),
            full: DropCause::Queue,
            plain: server.is_none()
                && hop.bucket.is_none()
                && hop.early_drop.is_none()
                && wire.is_plain()
                && hop.layer2.is_empty()
                && hop.reorder.is_none(),
            server,
            closed: Vec::new(),
            bucket: hop
                .bucket
                .as_ref()
                .map(|bucket| Bucket::new(bucket, Stream::new(seed, Purpose::Timer(way, index)))),
            early: Early::new(hop, way, index, seed),
            wire,
            devices: hop.layer2.iter().map(device).collect(),
            hold: Hold::new(hop, way, index, seed),
        }
    }

    /// One link of the hop alone; overtaking happens on the last.
    fn segment(hop: &Hop, way: PathDirection, segment: Segment, seed: u64) -> Self {
        let (index, devices) = (segment.hop, hop.layer2.len());
        let own = Hop { layer2: Vec::new(), reorder: None, ..hop.clone() };
        let mut chain = Self::new(&own, way, index, seed);
        if let Some((place, device)) = segment.device.and_then(|place| Some((place, hop.layer2.get(place)?))) {
            chain.link = Link::new(device.rate, device.framing, device.queue, &[]);
            chain.full = DropCause::Device(place);
            chain.server = None;
            chain.bucket = None;
            chain.early = None;
            chain.wire = Wire::plain(nanos(device.delay));
        }
        if segment.device.map_or(0, |place| place + 1) >= devices {
            chain.hold = Hold::new(hop, way, index, seed);
        }
        chain.plain = chain.server.is_none()
            && chain.bucket.is_none()
            && chain.early.is_none()
            && chain.wire.is_plain()
            && chain.hold.is_none();
        chain
    }

    /// Takes a packet that enters at its time (no earlier than the one before) to the next node.
    /// Says when it arrives there (`None` if that depends on what follows it: it will be among the
    /// closed), or when and why it is dropped.
    #[inline]
    fn carry(&mut self, packet: &Transit, flow: u32) -> Result<Option<u64>, (u64, DropCause)> {
        if self.plain {
            let departure = self.link.serve(packet.at, packet.ip_octets);
            let departure = departure.ok_or((packet.at, self.full))?;
            return Ok(Some(departure.saturating_add(self.wire.delay())));
        }
        self.carry_through_all(packet, flow)
    }

    fn carry_through_all(&mut self, packet: &Transit, flow: u32) -> Result<Option<u64>, (u64, DropCause)> {
        let (mut at, ip_octets) = (packet.at, packet.ip_octets);
        if let Some(bucket) = &mut self.bucket {
            at = bucket.pass(at, ip_octets).map_err(|cause| (at, cause))?;
        }
        if let Some(early) = &mut self.early
            && early.drops(at, ip_octets, &mut self.link)
        {
            return Err((at, DropCause::Early));
        }
        let mut channel = 0;
        at = if let Some(server) = &mut self.server {
            self.closed.extend(server.close_before(at, ip_octets));
            match server.take(at, packet, flow) {
                Admission::Leaves(departure, over) => {
                    channel = over;
                    departure
                }
                Admission::Gathers => return Ok(None),
                Admission::Full => return Err((at, self.full)),
            }
        } else {
            self.link.serve(at, ip_octets).ok_or((at, self.full))?
        };
        if at == NEVER {
            return Ok(Some(NEVER));
        }
        self.behind_link(at, ip_octets, channel).map(Some)
    }

    /// From this channel of the link to the next node.
    fn behind_link(&mut self, mut at: u64, ip_octets: u16, channel: usize) -> Result<u64, (u64, DropCause)> {
        at = self.wire.carry(at, channel).ok_or((at, DropCause::Wire))?;
        for (index, device) in self.devices.iter_mut().enumerate() {
            at = device.link.serve(at, ip_octets).ok_or((at, DropCause::Device(index)))?;
            at = at.saturating_add(device.delay);
        }
        if let Some(hold) = &mut self.hold
            && hold.rng.chance(hold.ratio)
        {
            at = at.saturating_add(hold.by);
        }
        Ok(at)
    }
}
