//! Listening to a transfer that passes.
//!
//! The transfer begins with the capture, after its handshake, and ends with it. Hosts stamp what
//! they send before their interface and what they receive when it comes (the kernel's stamps, of
//! which coalescing is not modelled for TCP); routers have a perfect clock.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use narrows_probe::probes::{Capture, CaptureReport, CapturedPacket, Place, TcpFields, Transport};
use narrows_probe::{Event, Refusal};
use narrows_scenario::{ElasticControl, Passing, PathDirection};
use narrows_units::{Stamp, nanos};

use super::SimWorld;
use crate::tcp::{Control, FlowConfig, HEADER_OCTETS, Kind, Programs, ReceiveWindow, Route, Segment};

/// Somebody who listens to one connection.
#[derive(Debug)]
pub(super) struct Tap {
    flow: u32,
    /// The way of the data.
    along: PathDirection,
    /// At which places, of those asked for.
    sender: Option<u8>,
    receiver: Option<u8>,
    router: Option<(u8, [usize; 2])>,
    seen: Vec<ObservedSegment>,
}

/// A segment that passed.
#[derive(Debug)]
struct ObservedSegment {
    at: u64,
    place: u8,
    spot: Spot,
    segment: Segment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    /// The host at the beginning of this way.
    Host(PathDirection),
    Router,
}

impl Tap {
    /// A segment leaves its host.
    pub(super) fn leaves(&mut self, at: u64, way: PathDirection, segment: &Segment) {
        self.at_host(at, way, segment);
    }

    /// A segment reaches its host.
    pub(super) fn arrives(&mut self, at: u64, segment: &Segment) {
        let way = match segment.kind {
            Kind::Data(_) => self.along,
            Kind::Ack(_) => self.along.opposite(),
        };
        self.at_host(at, way.opposite(), segment);
    }

    /// The node at which a segment of this way is looked at.
    pub(super) fn stop(&self, way: PathDirection, segment: &Segment) -> Option<usize> {
        let (_, nodes) = self.router.filter(|_| segment.flow == self.flow)?;
        Some(nodes[usize::from(way != self.along)])
    }

    /// A segment passes the router.
    pub(super) fn passes(&mut self, at: u64, segment: &Segment) {
        if let Some((place, _)) = self.router {
            self.note(at, place, Spot::Router, segment);
        }
    }

    fn at_host(&mut self, at: u64, host: PathDirection, segment: &Segment) {
        let place = if host == self.along { self.sender } else { self.receiver };
        if let Some(place) = place {
            self.note(at, place, Spot::Host(host), segment);
        }
    }

    fn note(&mut self, at: u64, place: u8, spot: Spot, segment: &Segment) {
        if segment.flow == self.flow {
            self.seen.push(ObservedSegment { at, place, spot, segment: segment.clone() });
        }
    }
}

/// IP octets of a SYN with the usual options.
const SYN_OCTETS: u16 = 60;
/// How often it is looked whether enough has passed.
const POLL_NS: u64 = 10_000_000;
/// A tick of their timestamps, as Linux has it.
const TICK_NS: i64 = 1_000_000;
/// Port of the data's receiver, and the first of those that send (ours).
const PORTS: (u16, u16) = (5201, 40_000);

impl SimWorld {
    /// Listens. One router at most, and each place once.
    pub(super) fn listen(&mut self, capture: &Capture) -> Event {
        let Some(mut tap) = self.tap(&capture.places) else {
            return Event::Refused(Refusal::NotOffered);
        };
        let handshake = nanos(self.scenario.truth(self.way).base_rtt(SYN_OCTETS, SYN_OCTETS)).max(1);
        let begin = self.engine.now() + handshake;
        let config = self.passing_flow(begin, handshake);
        tap.flow = self.engine.connections().stack.open(&config);
        let flow = tap.flow;
        self.engine.connections().tap = Some(tap);
        let end = self.engine.now().saturating_add(nanos(capture.duration));
        let most = usize::try_from(capture.max_packets).unwrap_or(usize::MAX);
        loop {
            let now = self.engine.now();
            let seen = self.engine.connections().tap.as_ref().map_or(0, |tap| tap.seen.len());
            if now >= end || seen >= most {
                break;
            }
            self.engine.idle_until(end.min(now + POLL_NS));
        }
        let tap = self.engine.connections().tap.take();
        self.engine.connections().stack.close(flow);
        let mut seen = tap.map(|tap| tap.seen).unwrap_or_default();
        seen.truncate(most);
        let packets = seen.iter().map(|seen| self.captured(seen, &config)).collect();
        Event::Capture(CaptureReport { packets, dropped: 0 })
    }

    /// `None`: there is no such place.
    fn tap(&self, places: &[Place]) -> Option<Tap> {
        let mut tap = Tap { flow: 0, along: self.way, sender: None, receiver: None, router: None, seen: Vec::new() };
        for (index, place) in (0..).zip(places) {
            let free = match place {
                Place::Here if self.sends_here() => tap.sender.replace(index).is_none(),
                Place::Sender => tap.sender.replace(index).is_none(),
                Place::Here | Place::Receiver => tap.receiver.replace(index).is_none(),
                Place::Node(node) => {
                    let node = usize::from(*node);
                    let back = self.engine.path().opposite(self.way, node);
                    let hops = |way| self.scenario.hops(way).len();
                    let between = (1..hops(self.way)).contains(&node) && (1..hops(self.way.opposite())).contains(&back);
                    between && tap.router.replace((index, [node, back])).is_none()
                }
            };
            if !free {
                return None;
            }
        }
        (!places.is_empty()).then_some(tap)
    }

    fn passing_flow(&self, begins: u64, handshake: u64) -> FlowConfig {
        let Passing { control, window_octets, application, .. } = self.scenario.passing;
        let (sender, receiver) = match self.way {
            PathDirection::Forward => (&self.scenario.sender, &self.scenario.receiver),
            PathDirection::Reverse => (&self.scenario.receiver, &self.scenario.sender),
        };
        FlowConfig {
            begins,
            ip_octets: self.facts.path_mtu,
            control: match control {
                ElasticControl::Reno => Control::Reno,
                ElasticControl::Cubic => Control::Cubic,
                ElasticControl::Bbr => Control::Bbr,
            },
            window: match window_octets {
                Some(octets) => ReceiveWindow::Fixed(u64::from(octets)),
                None => ReceiveWindow::Autotuned(u64::from(receiver.tcp_receive_octets)),
            },
            pacing: application,
            programs: Programs::default(),
            handshake,
            route: Route::Hosts { way: self.way, interface_rate: sender.interface_rate },
        }
    }

    fn captured(&self, seen: &ObservedSegment, config: &FlowConfig) -> CapturedPacket {
        let mss = u64::from(config.ip_octets - HEADER_OCTETS);
        let number = |segment: u64| u32::try_from((segment * mss + 1) % (1 << 32)).unwrap_or(0);
        let (data_host, ack_host) = (self.way, self.way.opposite());
        let ticks = |host: PathDirection, at: u64| {
            let tick = self.engine.reading(host, at).div_euclid(TICK_NS);
            u32::try_from(tick.rem_euclid(1 << 32)).unwrap_or(0)
        };
        let socket = |way: PathDirection, port: u16| {
            let last = if way == PathDirection::Forward { 1 } else { 2 };
            SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 18, 0, last)), port)
        };
        let low = u16::try_from(seen.segment.flow % 20_000).unwrap_or(0);
        let data_end = socket(data_host, PORTS.1 + low);
        let ack_end = socket(ack_host, PORTS.0);
        let mut tcp = TcpFields {
            sequence: 1,
            acknowledgement: Some(1),
            payload_octets: 0,
            syn: false,
            fin: false,
            rst: false,
            window: 512,
            timestamps: None,
        };
        let (source, destination, ip_octets, stamps) = match &seen.segment.kind {
            Kind::Data(data) => {
                tcp.sequence = number(data.seq);
                tcp.payload_octets = u32::from(config.ip_octets - HEADER_OCTETS);
                let echo = data.echo.map_or(0, |echo| ticks(ack_host, echo));
                (data_end, ack_end, config.ip_octets, (ticks(data_host, data.sent), echo))
            }
            Kind::Ack(ack) => {
                tcp.acknowledgement = Some(number(ack.next));
                tcp.window = u16::try_from(ack.window_octets >> 7).unwrap_or(u16::MAX);
                let stamps = (ticks(ack_host, ack.sent), ticks(data_host, ack.echo));
                (ack_end, data_end, ack.ip_octets(), stamps)
            }
        };
        tcp.timestamps = self.scenario.passing.timestamps.then_some(stamps);
        let at = match seen.spot {
            Spot::Host(way) => self.engine.reading(way, seen.at),
            Spot::Router => i64::try_from(seen.at).unwrap_or(i64::MAX),
        };
        CapturedPacket {
            at: Stamp::from_nanos(at),
            place: seen.place,
            source,
            destination,
            ip_octets: u32::from(ip_octets),
            ip_id: None,
            transport: Transport::Tcp(tcp),
        }
    }
}

#[cfg(test)]
mod tests {
    use narrows_probe::{Probe, World};
    use std::time::Duration;

    use narrows_scenario::{Hop, Scenario};
    use narrows_units::BitRate;

    use super::*;

    fn world(passing: Passing) -> SimWorld {
        let hop = |mbps, ms| Hop::rate(BitRate::from_mbps(mbps)).delay(Duration::from_millis(ms));
        let mut scenario = Scenario::new("three").hop(hop(100, 1)).hop(hop(10, 2)).hop(hop(100, 1));
        scenario.passing = passing;
        SimWorld::new(&scenario.validate().unwrap(), PathDirection::Forward, 1)
    }

    fn listen(world: &mut SimWorld, places: &[Place]) -> Event {
        let capture = Capture {
            duration: Duration::from_secs(2),
            max_packets: 100_000,
            remote_host: None,
            places: places.to_vec(),
        };
        let Ok(event) = world.send(Probe::Capture(capture));
        event
    }

    /// Every data packet at the receiver passed the router and left the sender before, in the times
    /// that the hops need.
    #[test]
    fn the_same_packets_at_every_place() {
        let mut world = world(Passing::default());
        let Event::Capture(report) = listen(&mut world, &[Place::Sender, Place::Node(2), Place::Receiver]) else {
            panic!("no capture");
        };
        let data = |place: u8| {
            let of_place = report.packets.iter().filter(move |packet| packet.place == place);
            of_place.filter_map(|packet| match packet.transport {
                Transport::Tcp(tcp) if tcp.payload_octets > 0 => Some((tcp.sequence, packet.at.nanos())),
                _ => None,
            })
        };
        let sent: Vec<(u32, i64)> = data(0).collect();
        assert!(sent.len() > 1000, "{}", sent.len());
        let first = |place| data(place).next().unwrap().1;
        // 1538 octet times and the propagation of each hop.
        assert_eq!(first(1) - first(0), 123_040 + 1_000_000 + 1_230_400 + 2_000_000);
        assert_eq!(first(2) - first(1), 123_040 + 1_000_000);
        let order: Vec<u32> = data(2).map(|(sequence, _)| sequence).collect();
        assert!(data(1).map(|(sequence, _)| sequence).take(order.len()).eq(order.iter().copied()));
        let acks = report.packets.iter().filter(|packet| packet.ip_octets < 100);
        assert!(acks.filter(|packet| packet.place == 1).count() > 400);
        assert!(world.engine.connections().tap.is_none());
    }

    #[test]
    fn windows_and_applications_hold_it_back() {
        let came = |passing: Passing| {
            let Event::Capture(report) = listen(&mut world(passing), &[Place::Receiver]) else {
                return 0;
            };
            report.packets.iter().filter(|packet| packet.ip_octets == 1500).count()
        };
        // 10 Mbit/s carry 812 packets per second, 2 Mbit/s 166, and two segments
        // per round trip of 9.6 ms 185: the acknowledgement waits 1.2 ms for the second.
        let usual = Passing::default();
        assert!((1500..1630).contains(&came(usual)));
        let application = Some(BitRate::from_mbps(2));
        assert!((320..345).contains(&came(Passing { application, ..usual })));
        let window_octets = Some(2 * 1448);
        let windowed = came(Passing { window_octets, ..usual });
        assert!((360..380).contains(&windowed), "{windowed}");
    }

    #[test]
    fn places_that_are_not_there() {
        let mut world = world(Passing::default());
        for places in [&[][..], &[Place::Node(0)], &[Place::Node(3)], &[Place::Here, Place::Sender]] {
            assert_eq!(listen(&mut world, places), Event::Refused(Refusal::NotOffered), "{places:?}");
        }
    }
}
