//! One hop: everything between two nodes, and the node in front of it.

use std::collections::BinaryHeap;

use scenario::{Hop, Layer2, Way};

use super::bucket::Bucket;
use super::fifo::{Fifo, Guests, Transit};
use super::link::Link;
use super::part::Segment;
use super::router::{Answers, Pending};
use super::source::Source;
use super::wire::Wire;
use super::{DropCause, Output, Packet};
use crate::rng::{Purpose, Stream};
use crate::{NEVER, nanos};

/// What a hop works with while it runs.
pub(super) struct Bench<'a, T> {
    pub(super) way: Way,
    pub(super) until: u64,
    pub(super) guests: &'a mut Guests<T>,
    pub(super) pending: &'a mut BinaryHeap<Pending<T>>,
    pub(super) made: &'a mut u64,
}

impl<T> Bench<'_, T> {
    fn put_out(&mut self, output: Output<T>) {
        *self.made += 1;
        self.pending.push(Pending {
            output,
            made: *self.made,
        });
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
}

impl HopState {
    pub(super) fn new(hops: &[Hop], way: Way, index: usize, seed: u64) -> Self {
        let hop = &hops[index];
        let router = index
            .checked_sub(1)
            .map(|before| Answers::new(hops[before].router, way, index, seed));
        Self {
            index,
            mtu: hop.mtu,
            chain: Chain::new(hop, way, index, seed),
            sources: Vec::new(),
            transit: Fifo::new(),
            injected: Fifo::new(),
            router,
        }
    }

    /// A hop that is all of its path and plays one link of a longer one.
    pub(super) fn segment(hop: &Hop, way: Way, segment: Segment, seed: u64) -> Self {
        Self {
            index: 0,
            mtu: hop.mtu,
            chain: Chain::segment(hop, way, segment, seed),
            sources: Vec::new(),
            transit: Fifo::new(),
            injected: Fifo::new(),
            router: None,
        }
    }

    pub(super) fn add_source(&mut self, source: Source) {
        self.sources.push(source);
    }

    pub(super) fn next_guest(&self) -> u64 {
        self.transit.next_guest().min(self.injected.next_guest())
    }

    /// Entries for which there is memory.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        let devices = self.chain.devices.iter().map(|device| device.link.capacity());
        self.transit.capacity() + self.injected.capacity() + self.chain.link.capacity() + devices.sum::<usize>()
    }

    /// Serves everything that enters up to the bench's time.
    pub(super) fn run<T>(&mut self, bench: &mut Bench<'_, T>, mut next: Option<&mut Fifo>, sink: &mut Fifo) {
        loop {
            let (transit, injected) = (self.transit.next(), self.injected.next());
            let first = transit.min(injected);
            self.serve_cross(first.min(bench.until), next.as_deref_mut());
            if first > bench.until {
                return;
            }
            let from_before = transit <= injected;
            let queue = if from_before {
                &mut self.transit
            } else {
                &mut self.injected
            };
            let Some(packet) = queue.pop_until(bench.until) else {
                return;
            };
            let leaves = usize::from(packet.exit) == self.index;
            let passed = if packet.is_guest() {
                self.carry_guest(packet, from_before, bench)
            } else if packet.ip_octets <= self.mtu {
                self.chain.carry(packet.at, packet.ip_octets).ok()
            } else {
                None
            };
            match (passed, &mut next) {
                (Some(at), _) if leaves && packet.is_guest() => sink.insert(Transit { at, ..packet }),
                (Some(at), Some(next)) if !leaves && (at < NEVER || packet.is_guest()) => {
                    next.insert(Transit { at, ..packet });
                }
                _ => {}
            }
        }
    }

    /// Serves all cross traffic that enters here up to `until`.
    fn serve_cross(&mut self, until: u64, mut next: Option<&mut Fifo>) {
        let Self {
            sources,
            chain,
            index,
            mtu,
            ..
        } = self;
        while let Some(source) = earliest(sources) {
            if source.next > until {
                return;
            }
            let (at, ip_octets) = (source.next, source.ip_octets);
            source.step();
            if ip_octets > *mtu {
                continue;
            }
            let passed = chain.carry(at, ip_octets);
            if usize::from(source.exit) > *index
                && let (Ok(at), Some(next)) = (passed, next.as_deref_mut())
                && at < NEVER
            {
                next.insert(Transit {
                    at,
                    slot: Transit::CROSS,
                    ip_octets,
                    exit: source.exit,
                });
            }
        }
    }

    /// Takes a packet through node and hop; `None` if it goes no further.
    fn carry_guest<T>(&mut self, transit: Transit, from_before: bool, bench: &mut Bench<'_, T>) -> Option<u64> {
        let packet = bench.guests.packet(&transit)?;
        // The host's own interface is no router.
        if from_before && self.router.is_some() {
            packet.hop_limit = packet.hop_limit.saturating_sub(1);
            if packet.hop_limit == 0 {
                self.refuse(transit, DropCause::HopLimit, bench);
                return None;
            }
        }
        if transit.ip_octets > self.mtu {
            self.refuse(transit, DropCause::TooBig, bench);
            return None;
        }
        match self.chain.carry(transit.at, transit.ip_octets) {
            Ok(at) => Some(at),
            Err((at, cause)) => {
                let Packet { payload, .. } = bench.guests.leave(&transit)?;
                bench.put_out(Output::Dropped {
                    at,
                    way: bench.way,
                    hop: self.index,
                    cause,
                    payload,
                });
                None
            }
        }
    }

    /// A packet may not go on: an answer, or silence.
    fn refuse<T>(&mut self, transit: Transit, cause: DropCause, bench: &mut Bench<'_, T>) {
        let Some(Packet { payload, ip_octets, .. }) = bench.guests.leave(&transit) else {
            return;
        };
        let (way, node) = (bench.way, self.index);
        let answer = match &mut self.router {
            Some(router) => router.answer(transit.at),
            None => Some(transit.at),
        };
        bench.put_out(match (answer, cause) {
            (Some(at), DropCause::HopLimit) => Output::Expired {
                at,
                way,
                node,
                ip_octets,
                payload,
            },
            (Some(at), _) => Output::TooBig {
                at,
                way,
                node,
                mtu: self.mtu,
                ip_octets,
                payload,
            },
            (None, _) => Output::Dropped {
                at: transit.at,
                way,
                hop: node,
                cause,
                payload,
            },
        });
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

/// Bucket, link, wire, devices, hold-back.
#[derive(Debug)]
struct Chain {
    link: Link,
    /// Why a packet is gone that found the link's queue full.
    full: DropCause,
    /// Neither bucket nor devices nor anything random.
    plain: bool,
    bucket: Option<Bucket>,
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
    fn new(hop: &Hop, way: Way, index: usize, seed: u64) -> Option<Self> {
        hop.reorder.map(|reorder| Self {
            ratio: reorder.ratio,
            by: nanos(reorder.by),
            rng: Stream::new(seed, Purpose::Hold(way, index)),
        })
    }
}

impl Chain {
    fn new(hop: &Hop, way: Way, index: usize, seed: u64) -> Self {
        let wire = Wire::new(hop, way, index, seed);
        let device = |device: &Layer2| Device {
            link: Link::new(device.rate, device.framing, device.queue, &[]),
            delay: nanos(device.delay),
        };
        Self {
            link: Link::new(hop.rate, hop.framing, hop.queue, &hop.schedule),
            full: DropCause::Queue,
            plain: hop.bucket.is_none() && wire.is_plain() && hop.layer2.is_empty() && hop.reorder.is_none(),
            bucket: hop.bucket.as_ref().map(Bucket::new),
            wire,
            devices: hop.layer2.iter().map(device).collect(),
            hold: Hold::new(hop, way, index, seed),
        }
    }

    /// One link of the hop alone; overtaking happens on the last.
    fn segment(hop: &Hop, way: Way, segment: Segment, seed: u64) -> Self {
        let (index, devices) = (segment.hop, hop.layer2.len());
        let own = Hop {
            layer2: Vec::new(),
            reorder: None,
            ..hop.clone()
        };
        let mut chain = Self::new(&own, way, index, seed);
        if let Some((place, device)) = segment.device.and_then(|place| Some((place, hop.layer2.get(place)?))) {
            chain.link = Link::new(device.rate, device.framing, device.queue, &[]);
            chain.full = DropCause::Device(place);
            chain.bucket = None;
            chain.wire = Wire::plain(nanos(device.delay));
        }
        if segment.device.map_or(0, |place| place + 1) >= devices {
            chain.hold = Hold::new(hop, way, index, seed);
        }
        chain.plain = chain.bucket.is_none() && chain.wire.is_plain() && chain.hold.is_none();
        chain
    }

    /// Takes a packet that enters at `at` (no earlier than the one before) to the next node. Says when it arrives there, or when
    /// and why it is dropped.
    #[inline]
    fn carry(&mut self, at: u64, ip_octets: u16) -> Result<u64, (u64, DropCause)> {
        if self.plain {
            let departure = self.link.serve(at, ip_octets).ok_or((at, self.full))?;
            return Ok(departure.saturating_add(self.wire.delay()));
        }
        self.carry_through_all(at, ip_octets)
    }

    fn carry_through_all(&mut self, mut at: u64, ip_octets: u16) -> Result<u64, (u64, DropCause)> {
        if let Some(bucket) = &mut self.bucket {
            at = bucket.pass(at, ip_octets).map_err(|cause| (at, cause))?;
        }
        at = self.link.serve(at, ip_octets).ok_or((at, self.full))?;
        if at == NEVER {
            return Ok(NEVER);
        }
        at = self.wire.carry(at).ok_or((at, DropCause::Wire))?;
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
