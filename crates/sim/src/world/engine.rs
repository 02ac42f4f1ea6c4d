//! Path and hosts together: what a host does by itself when a packet reaches it.

use narrows_probe::probes::HopReplyKind;
use narrows_scenario::{Counted, Crossed, PathDirection, Scenario};

use super::connections::Connections;
use super::face::Face;
use super::payload::{ExpectedResponse, Payload};
use super::segments::{SegmentHosts, side};
use crate::NEVER;
use crate::host::{HostState, Intake, Kernel};
use crate::path::{Output, Packet, Path};
use crate::tcp::Segment;

/// A packet that a program has read.
#[derive(Debug)]
pub(super) struct DeliveredPacket {
    /// When, in true time.
    pub(super) at: u64,
    /// What the reading host's clock showed.
    pub(super) stamp: i64,
    pub(super) ip_octets: u16,
    /// The host dropped it for want of buffer, and has counted it.
    pub(super) dropped: bool,
    pub(super) payload: Payload,
}

#[derive(Debug)]
pub(super) struct Engine {
    path: Path<Payload>,
    /// The host at the beginning of each way.
    hosts: [HostState; 2],
    /// What arrives there.
    intakes: [Intake<(u16, Payload)>; 2],
    /// What their kernels answer.
    kernels: [Kernel<Unawaited>; 2],
    /// What the nodes of each way show of themselves.
    faces: [Vec<Face>; 2],
    connections: Connections,
    /// What holds segments back between path and connections.
    segments: SegmentHosts,
    outputs: Vec<Output<Payload>>,
    runs: u32,
}

/// Hop limit of packets that shall arrive (RFC 1700's recommended default, Linux's too).
pub(super) const FULL_HOP_LIMIT: u8 = 64;
/// IP octets of a TCP answer to a SYN without options: RST, or SYN and ACK (RFC 9293 §3.1, over
/// IPv4).
const TCP_ANSWER_OCTETS: u16 = 40;

/// A probe that a kernel will answer, and which way it came.
#[derive(Debug)]
struct Unawaited {
    way: PathDirection,
    node: usize,
    ip_octets: u16,
    expected_response: ExpectedResponse,
    probe: Payload,
}

impl Engine {
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Self {
        let ends = [(PathDirection::Forward, &scenario.sender), (PathDirection::Reverse, &scenario.receiver)];
        Self {
            path: Path::new(scenario, seed),
            hosts: ends.map(|(way, host)| HostState::new(host, way, seed)),
            intakes: ends.map(|(_, host)| Intake::new(host.coalescing)),
            kernels: [PathDirection::Forward, PathDirection::Reverse].map(|way| Kernel::new(scenario, way, seed)),
            faces: [PathDirection::Forward, PathDirection::Reverse].map(|way| Face::of_way(scenario, way, seed)),
            connections: Connections::new(scenario, seed),
            segments: SegmentHosts::new(scenario, seed),
            outputs: Vec::new(),
            runs: 0,
        }
    }

    /// What crosses each hop of a way between two times if nobody probes, in intervals of `every`.
    pub(super) fn undisturbed(
        scenario: &Scenario,
        way: PathDirection,
        seed: u64,
        (from, to): (u64, u64),
        every: u64,
    ) -> Vec<Vec<Crossed>> {
        let mut engine = Self::new(scenario, seed);
        engine.path.count(scenario, way, (from, to), every);
        engine.stride(to, &mut Vec::new());
        engine.path.crossed(way)
    }

    /// Counts the cross traffic from now on.
    pub(super) fn count(&mut self, scenario: &Scenario, way: PathDirection) {
        let every = narrows_units::nanos(Counted::EVERY);
        let now = self.path.now();
        self.path.count(scenario, way, (now, NEVER), every);
    }

    pub(super) fn now(&self) -> u64 {
        self.path.now()
    }

    /// A number that no packet under way carries.
    pub(super) fn new_run(&mut self) -> u32 {
        self.runs = self.runs.wrapping_add(1);
        self.runs
    }

    /// The host at the beginning of a way.
    pub(super) fn host(&mut self, way: PathDirection) -> &mut HostState {
        &mut self.hosts[side(way)]
    }

    /// The TCP connections.
    pub(super) fn connections(&mut self) -> &mut Connections {
        &mut self.connections
    }

    /// The path.
    pub(super) fn path(&self) -> &Path<Payload> {
        &self.path
    }

    pub(super) fn reading(&self, way: PathDirection, at: u64) -> i64 {
        self.hosts[side(way)].reading(at)
    }

    pub(super) fn time_of_reading(&self, way: PathDirection, reading: i64) -> u64 {
        self.hosts[side(way)].time_of_reading(reading, self.now())
    }

    pub(super) fn send(&mut self, at: u64, way: PathDirection, packet: Packet<Payload>) {
        self.path.send(at, way, packet);
    }

    /// Lets time pass; what is heard concerns nobody any more.
    pub(super) fn idle_until(&mut self, until: u64) {
        let mut delivered_packet = Vec::new();
        while self.step(until, &mut delivered_packet) < until {
            delivered_packet.clear();
        }
    }

    /// Goes on until something is heard, or to `until` if nothing is before. Returns the time
    /// reached.
    pub(super) fn step(&mut self, until: u64, delivered_packet: &mut Vec<DeliveredPacket>) -> u64 {
        let before = delivered_packet.len();
        loop {
            let due = until.min(self.connections.next_at()).min(self.segments.next_at());
            let due = self.intakes.iter().map(Intake::next_at).fold(due, u64::min);
            let due = self.kernels.iter().map(Kernel::next_at).fold(due, u64::min);
            self.path.advance_to_output(due.max(self.now()), &mut self.outputs);
            self.react(delivered_packet);
            if delivered_packet.len() > before || self.now() >= until {
                return self.now();
            }
        }
    }

    /// Goes straight to `until`, unless there are TCP connections. Only for times in which no host
    /// and no router answers anything else.
    pub(super) fn stride(&mut self, until: u64, delivered_packet: &mut Vec<DeliveredPacket>) {
        if !self.connections.is_idle() {
            while self.step(until, delivered_packet) < until {}
            return;
        }
        self.path.advance(until, &mut self.outputs);
        self.react(delivered_packet);
    }

    fn react(&mut self, delivered_packet: &mut Vec<DeliveredPacket>) {
        let mut outputs = std::mem::take(&mut self.outputs);
        for output in outputs.drain(..) {
            match output {
                Output::Delivered { at, way, node, ip_octets, payload: Payload::Tcp(segment), .. } => {
                    match &mut self.connections.tap {
                        Some(tap) if tap.stop(way, &segment) == Some(node) => {
                            tap.passes(at, &segment);
                            let on = packet(ip_octets, Payload::Tcp(segment));
                            self.path.inject(at, way, node, on);
                        }
                        _ => self.deliver_segment(at, way, segment),
                    }
                }
                Output::Delivered { at, way, node, ip_octets, payload, .. } => {
                    self.deliver(at, way, node, ip_octets, payload);
                }
                Output::Expired { at, way, node, ip_octets, payload } => {
                    self.answer(at, way, node, ip_octets, &payload, HopReplyKind::TimeExceeded);
                }
                Output::TooBig { at, way, node, mtu, ip_octets, payload } => {
                    let kind = HopReplyKind::PacketTooBig { mtu: Some(mtu) };
                    self.answer(at, way, node, ip_octets, &payload, kind);
                }
                Output::Dropped { .. } => {}
            }
        }
        self.outputs = outputs;
        while let Some((at, segment)) = self.segments.pop_until(self.path.now()) {
            self.connections.deliver(at, &segment);
        }
        self.connections.run(&mut self.path, &mut self.segments);
        self.answer_unawaited();
        for way in [PathDirection::Forward, PathDirection::Reverse] {
            let end = side(way);
            while let Some(reading) = self.intakes[end].pop_until(self.path.now(), &mut self.hosts[end]) {
                let (ip_octets, payload) = reading.payload;
                let word = DeliveredPacket {
                    at: reading.at,
                    stamp: self.reading(way, reading.stamped),
                    ip_octets,
                    dropped: reading.dropped,
                    payload,
                };
                self.hear(way, word, delivered_packet);
            }
        }
    }

    /// A packet has come to the end of its way: to the kernel's TCP, to the kernel alone, or to the
    /// program.
    fn deliver(&mut self, at: u64, way: PathDirection, node: usize, ip_octets: u16, payload: Payload) {
        let end = side(way.opposite());
        match payload {
            Payload::Tcp(segment) => self.deliver_segment(at, way, segment),
            Payload::Probe {
                expected_response: expected_response @ (ExpectedResponse::PortUnreachable | ExpectedResponse::Segment),
                ..
            } => self.kernels[end].arrive(at, Unawaited { way, node, ip_octets, expected_response, probe: payload }),
            Payload::Probe { .. } | Payload::Echo { .. } | Payload::Answer { .. } => {
                self.intakes[end].arrive(at, ip_octets, (ip_octets, payload), &mut self.hosts[end]);
            }
        }
    }

    /// A segment has come to the end of its way. Others' connections have hosts of their own, of
    /// which nothing is known.
    fn deliver_segment(&mut self, at: u64, way: PathDirection, segment: Segment) {
        let ours = self.connections.stack.is_between_hosts(segment.flow);
        let waits = if ours { self.segments.arrive(at, side(way.opposite()), segment) } else { Some(segment) };
        if let Some(segment) = waits {
            self.connections.deliver(at, &segment);
        }
    }

    /// The program on the host at the beginning of `way` has read a packet, or that one was
    /// dropped.
    fn hear(&mut self, way: PathDirection, word: DeliveredPacket, delivered_packet: &mut Vec<DeliveredPacket>) {
        match word.payload {
            Payload::Probe { run, seq, expected_response: ExpectedResponse::Echo(echo_octets), .. }
                if !word.dropped =>
            {
                let host = self.host(way);
                let departure = host.departure(word.at, host.send_time(echo_octets));
                let payload = Payload::Echo { run, seq, turned: word.stamp };
                self.send(departure.leaves, way, packet(echo_octets, payload));
            }
            // Segments never get here: the kernel takes them.
            Payload::Probe { .. } | Payload::Echo { .. } | Payload::Answer { .. } | Payload::Tcp(_) => {
                delivered_packet.push(word);
            }
        }
    }

    /// The kernels answer what no program awaits.
    fn answer_unawaited(&mut self) {
        for end in 0..self.kernels.len() {
            let now = self.path.now();
            let icmp = |packet: &Unawaited| {
                (packet.expected_response == ExpectedResponse::PortUnreachable).then_some(packet.ip_octets)
            };
            while let Some((leaves, packet)) = self.kernels[end].pop_until(now, icmp) {
                let (Some(leaves), Payload::Probe { run, seq, .. }) = (leaves, packet.probe) else {
                    continue;
                };
                let Some(face) = self.faces[side(packet.way)].get_mut(packet.node) else {
                    continue;
                };
                let from = face.address(leaves);
                let (kind, reply_ip_octets) = match packet.expected_response {
                    ExpectedResponse::PortUnreachable => {
                        (HopReplyKind::PortUnreachable, face.reply_octets(packet.ip_octets))
                    }
                    ExpectedResponse::Segment | ExpectedResponse::Stamp | ExpectedResponse::Echo(_) => {
                        (HopReplyKind::TcpAnswer, TCP_ANSWER_OCTETS)
                    }
                };
                let payload = Payload::Answer { run, seq, from, reply_ip_octets, kind };
                self.send(leaves, packet.way.opposite(), self::packet(reply_ip_octets, payload));
            }
        }
    }

    /// A router answers. Only probes are answered: nobody learns what became of an echo, and ICMP
    /// messages are never answered (RFC 1122 §3.2.2).
    fn answer(
        &mut self,
        at: u64,
        way: PathDirection,
        node: usize,
        ip_octets: u16,
        about: &Payload,
        kind: HopReplyKind,
    ) {
        let Payload::Probe { run, seq, .. } = about else {
            return;
        };
        let Some(face) = self.faces[side(way)].get_mut(node) else {
            return;
        };
        let reply_ip_octets = face.reply_octets(ip_octets);
        let payload = Payload::Answer { run: *run, seq: *seq, from: face.address(at), reply_ip_octets, kind };
        let back = self.path.opposite(way, node);
        self.path.inject(at, way.opposite(), back, packet(reply_ip_octets, payload));
    }
}

pub(super) fn packet(ip_octets: u16, payload: Payload) -> Packet<Payload> {
    Packet { ip_octets, hop_limit: FULL_HOP_LIMIT, flow: 0, payload }
}
