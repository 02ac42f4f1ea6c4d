//! The same path, served in the plainest way: one event heap, one event per packet and stage, cross
//! traffic too. Only the random draws are shared with the real one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use narrows_scenario::{Hop, PathDirection, Queue, Scenario, Source as Traffic};
use narrows_units::{BitRate, Framing, nanos};

use super::super::router::Answers;
use super::super::source::Source;
use super::super::wire::Wire;
use super::{DropCause, Output, Packet};
use crate::rng::{Purpose, Stream};

const BIT_NANOS: u128 = 8_000_000_000;
/// Payload of cross traffic.
const CROSS: u32 = u32::MAX;

/// What is sent: when, which way, into which hop, out of which.
pub(super) type Sending = (u64, PathDirection, usize, usize, Packet<u32>);

/// Time, class (cross traffic first, then from the hop before, then sent here), order.
type Key = (u64, u8, usize);

struct Event {
    hop: usize,
    /// 0 is the entry, then bucket, link, devices, exit.
    stage: usize,
    exit: usize,
    packet: Packet<u32>,
}

struct Stage {
    rate: BitRate,
    framing: Framing,
    queue: Queue,
    busy_from: u64,
    busy_octets: u64,
    last: u64,
    departures: Vec<(u64, u16)>,
}

impl Stage {
    fn new(rate: BitRate, framing: Framing, queue: Queue) -> Self {
        Self { rate, framing, queue, busy_from: 0, busy_octets: 0, last: 0, departures: Vec::new() }
    }

    fn serve(&mut self, at: u64, ip_octets: u16) -> Option<u64> {
        if !room(self.queue, &self.departures, at, ip_octets) {
            return None;
        }
        if at >= self.last {
            (self.busy_from, self.busy_octets) = (at, 0);
        }
        self.busy_octets += u64::from(self.framing.wire_octets(u32::from(ip_octets)));
        let time = (u128::from(self.busy_octets) * BIT_NANOS).div_ceil(u128::from(self.rate.bps()));
        self.last = self.busy_from + u64::try_from(time).unwrap();
        self.departures.push((self.last, ip_octets));
        Some(self.last)
    }
}

fn room(queue: Queue, departures: &[(u64, u16)], at: u64, ip_octets: u16) -> bool {
    let held = departures.iter().filter(|(departure, _)| *departure > at);
    match queue {
        Queue::Unlimited => true,
        Queue::Packets(limit) => held.count() < limit as usize,
        Queue::Octets(limit) => {
            held.map(|&(_, octets)| u64::from(octets)).sum::<u64>() + u64::from(ip_octets) <= limit.count()
        }
    }
}

/// Tokens in 10⁻⁹ bit.
struct Tokens {
    level: u128,
    at: u64,
    releases: Vec<(u64, u16)>,
}

impl Tokens {
    fn pass(&mut self, bucket: &narrows_scenario::TokenBucket, at: u64, ip_octets: u16) -> Result<u64, DropCause> {
        let rate = u128::from(bucket.rate.bps());
        let depth = u128::from(bucket.burst.count()) * BIT_NANOS;
        let from = at.max(self.at);
        let level = (self.level + u128::from(from - self.at) * rate).min(depth);
        let need = u128::from(ip_octets) * BIT_NANOS;
        let release = from + u64::try_from(need.saturating_sub(level).div_ceil(rate)).unwrap();
        if release > at {
            let queue = bucket.queue.ok_or(DropCause::Policer)?;
            if !room(queue, &self.releases, at, ip_octets) {
                return Err(DropCause::Shaper);
            }
            self.releases.push((release, ip_octets));
        }
        self.level = (level + u128::from(release - from) * rate).min(depth) - need;
        self.at = release;
        Ok(release)
    }
}

struct Node<'a> {
    hop: &'a Hop,
    tokens: Tokens,
    link: Stage,
    wire: Wire,
    devices: Vec<Stage>,
    hold: Stream,
    router: Option<Answers>,
}

impl<'a> Node<'a> {
    fn new(hops: &'a [Hop], way: PathDirection, index: usize, seed: u64) -> Self {
        let hop = &hops[index];
        Self {
            hop,
            tokens: Tokens {
                level: hop.bucket.map_or(0, |bucket| u128::from(bucket.burst.count()) * BIT_NANOS),
                at: 0,
                releases: Vec::new(),
            },
            link: Stage::new(hop.rate, hop.framing, hop.queue),
            wire: Wire::new(hop, way, index, seed),
            devices: hop.layer2.iter().map(|d| Stage::new(d.rate, d.framing, d.queue)).collect(),
            hold: Stream::new(seed, Purpose::Hold(way, index)),
            router: (index > 0).then(|| Answers::new(hops[index - 1].router, way, index, seed)),
        }
    }

    /// The packet reaches the node: hop limit and size.
    fn enter(
        &mut self,
        at: u64,
        from_before: bool,
        way: PathDirection,
        hop: usize,
        packet: &mut Packet<u32>,
    ) -> Result<u64, Output<u32>> {
        let (ip_octets, payload) = (packet.ip_octets, packet.payload);
        if from_before && payload != CROSS {
            packet.hop_limit -= 1;
        }
        let expires = packet.hop_limit == 0 && payload != CROSS;
        if !expires && ip_octets <= self.hop.mtu {
            return Ok(at);
        }
        let answer = match &mut self.router {
            Some(router) if payload != CROSS => router.answer(at, ip_octets),
            Some(_) => None,
            None => Some(at),
        };
        let cause = if expires { DropCause::HopLimit } else { DropCause::TooBig };
        Err(match answer {
            None => Output::Dropped { at, way, hop, cause, payload },
            Some(at) if expires => Output::Expired { at, way, node: hop, ip_octets, payload },
            Some(at) => Output::TooBig { at, way, node: hop, mtu: self.hop.mtu, ip_octets, payload },
        })
    }

    /// Takes a packet through one stage: when it is at the next one.
    fn pass(&mut self, stage: usize, at: u64, ip_octets: u16) -> Result<u64, DropCause> {
        if stage == 1 {
            return match &self.hop.bucket {
                Some(bucket) => self.tokens.pass(bucket, at, ip_octets),
                None => Ok(at),
            };
        }
        if stage == 2 {
            let departure = self.link.serve(at, ip_octets).ok_or(DropCause::Queue)?;
            return Ok(departure);
        }
        if stage == 3 {
            return self.wire.carry(at, 0).ok_or(DropCause::Wire);
        }
        if let Some(device) = self.devices.get_mut(stage - 4) {
            let departure = device.serve(at, ip_octets).ok_or(DropCause::Device(stage - 4))?;
            return Ok(departure + nanos(self.hop.layer2[stage - 4].delay));
        }
        let held = self.hop.reorder.is_some_and(|reorder| self.hold.chance(reorder.ratio));
        Ok(at + if held { nanos(self.hop.reorder.unwrap().by) } else { 0 })
    }
}

/// Everything that becomes of these packets up to `until`. Cross traffic has the payload [`CROSS`].
pub(super) fn run(scenario: &Scenario, seed: u64, sendings: &[Sending], until: u64) -> Vec<Output<u32>> {
    let mut out = Vec::new();
    for way in [PathDirection::Forward, PathDirection::Reverse] {
        run_way(scenario, seed, way, sendings, until, &mut out);
    }
    out.retain(|output| {
        let (Output::Delivered { payload, .. }
        | Output::Expired { payload, .. }
        | Output::TooBig { payload, .. }
        | Output::Dropped { payload, .. }) = output;
        *payload != CROSS && output.at() <= until
    });
    out
}

struct Agenda {
    events: Vec<Event>,
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    order: usize,
}

impl Agenda {
    fn new(scenario: &Scenario, seed: u64, way: PathDirection, sendings: &[Sending], until: u64) -> Self {
        let mut agenda = Self { events: Vec::new(), heap: BinaryHeap::new(), order: 0 };
        for (index, cross) in scenario.cross.iter().enumerate().filter(|(_, cross)| cross.way == way) {
            let Traffic::Open { arrivals, rate, sizes } = &cross.source else {
                continue;
            };
            let mut source = Source::new(cross, *arrivals, *rate, sizes, seed, index);
            while source.next <= until {
                let packet = super::packet(source.ip_octets, CROSS);
                agenda.add((source.next, 0, index), cross.first_hop, cross.last_hop, packet);
                source.step();
            }
        }
        for (order, (at, on, hop, exit, packet)) in sendings.iter().enumerate() {
            if *on == way {
                agenda.add((*at, 2, order), *hop, *exit, packet.clone());
            }
        }
        agenda
    }

    fn add(&mut self, key: Key, hop: usize, exit: usize, packet: Packet<u32>) {
        self.heap.push(Reverse((key, self.events.len())));
        self.events.push(Event { hop, stage: 0, exit, packet });
    }

    /// The packet reaches its next stage. Events of one instant stay in the order in which they
    /// were made.
    fn again(&mut self, at: u64, index: usize) {
        self.order += 1;
        self.heap.push(Reverse(((at, 1, self.order), index)));
    }
}

fn run_way(
    scenario: &Scenario,
    seed: u64,
    way: PathDirection,
    sendings: &[Sending],
    until: u64,
    out: &mut Vec<Output<u32>>,
) {
    let hops = scenario.hops(way);
    let mut nodes: Vec<Node<'_>> = (0..hops.len()).map(|index| Node::new(hops, way, index, seed)).collect();
    let mut agenda = Agenda::new(scenario, seed, way, sendings, until);
    while let Some(Reverse(((at, class, _), index))) = agenda.heap.pop() {
        let event = &mut agenda.events[index];
        let (hop, payload) = (event.hop, event.packet.payload);
        let passed = if event.stage == 0 {
            nodes[hop].enter(at, class == 1, way, hop, &mut event.packet)
        } else {
            let passed = nodes[hop].pass(event.stage, at, event.packet.ip_octets);
            passed.map_err(|cause| Output::Dropped { at, way, hop, cause, payload })
        };
        match passed {
            Err(output) => out.push(output),
            Ok(at) if event.stage < 4 + hops[hop].layer2.len() => {
                event.stage += 1;
                agenda.again(at, index);
            }
            Ok(at) if hop == event.exit => out.push(Output::Delivered {
                at,
                way,
                node: hop + 1,
                ip_octets: event.packet.ip_octets,
                hop_limit: event.packet.hop_limit,
                payload,
            }),
            Ok(at) => {
                event.hop += 1;
                event.stage = 0;
                agenda.again(at, index);
            }
        }
    }
}
