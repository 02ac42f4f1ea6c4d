use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;

use narrows_packet::checksum::checksum;
use narrows_packet::ip::{IpHeader, PlainHeader};
use narrows_scenario::{Hop, Queue, Scenario};
use narrows_sim::{DropCause, Path};
use narrows_units::BitRate;
use proptest::prelude::*;

use super::*;
use crate::plan::AddressPlan;
use crate::timing_report::TimingReport;

const MS: u64 = 1_000_000;

/// A clock that advances a little with each reading, so that waiting ends, and that a test can set
/// forward.
struct StepClock {
    now: u64,
    step: u64,
}

impl Clock for StepClock {
    fn now(&mut self) -> u64 {
        self.now += self.step;
        self.now
    }
}

/// What a host sends, and what it got.
#[derive(Default)]
struct Script {
    sends: VecDeque<Vec<u8>>,
    got: Vec<Vec<u8>>,
    broken: bool,
}

impl End for Script {
    const CLOSE_NS: u64 = 2_000;

    fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        Ok(self.sends.pop_front().map(|packet| {
            // As a TUN device does: cut to the buffer.
            let length = packet.len().min(into.len());
            into[..length].copy_from_slice(&packet[..length]);
            length
        }))
    }

    fn deliver(&mut self, packet: &[u8]) -> io::Result<()> {
        if self.broken {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.got.push(packet.to_vec());
        Ok(())
    }
}

type Rig = Player<Script, Routers, StepClock>;

/// Three hops of 8 Mbit/s (1 octet per µs) without framing, 1 ms each; the last takes 1000 octets.
fn rig() -> Rig {
    let hop = || {
        Hop::rate(BitRate::from_mbps(8))
            .framing(narrows_units::Framing::BARE)
            .delay(std::time::Duration::from_millis(1))
    };
    let scenario =
        Scenario::new("rig").hop(hop()).hop(hop().queue(Queue::Packets(2))).hop(hop().mtu(1_000)).validate().unwrap();
    let plan = AddressPlan::of(&scenario).unwrap();
    let limits = [vec![576; 3], vec![576; 3]];
    let track = Track::new(Path::new(&scenario, 1), Default::default(), Routers::new(plan, limits));
    Player::new(vec![track], Vec::new(), 1_500, StepClock { now: 0, step: 50 })
}

fn play_for(rig: &mut Rig, nanos: u64) {
    let end = rig.watch.clock.now + nanos;
    while rig.watch.clock.now < end {
        rig.turn();
    }
}

fn timing_report(rig: &Rig) -> TimingReport {
    rig.tracks[0].tally.timing_report(std::time::Duration::from_secs(1), [0, 0])
}

/// A packet of a protocol that nobody knows (or of ICMP, when `body` begins with an echo request).
fn v4(to: [u8; 4], hop_limit: u8, protocol: u8, body: &[u8]) -> Vec<u8> {
    let header = PlainHeader { source: [10, 77, 0, 1].into(), destination: to.into(), protocol, hop_limit, service: 0 };
    let mut packet = Vec::new();
    header.write(body.len(), &mut packet).unwrap();
    packet.extend(body);
    packet
}

const RECEIVER: [u8; 4] = [10, 77, 3, 1];

fn source(packet: &[u8]) -> IpAddr {
    IpHeader::read(packet).unwrap().source
}

/// 100 octets: 3 × (100 µs + 1 ms).
#[test]
fn a_packet_crosses_in_its_time() {
    let mut rig = rig();
    let packet = v4(RECEIVER, 64, 200, &[9; 80]);
    rig.tracks[0].ends[0].sends.push_back(packet.clone());
    play_for(&mut rig, 3_290_000);
    assert!(rig.tracks[0].ends[1].got.is_empty());
    play_for(&mut rig, 20_000);
    let got = &rig.tracks[0].ends[1].got[0];
    assert_eq!(got[8], 62, "two routers took one each");
    assert_eq!(checksum(&got[..20]), 0);
    assert_eq!(got[12..], packet[12..]);
    let timing_report = timing_report(&rig);
    assert_eq!((timing_report.accepted, timing_report.releases), (1, 1));
    assert!(timing_report.late_worst_ns <= 100, "{timing_report:?}");
}

#[test]
fn a_hop_limit_ends_at_its_router() {
    for hop_limit in [1, 2] {
        let mut rig = rig();
        rig.tracks[0].ends[0].sends.push_back(v4(RECEIVER, hop_limit, 200, &[9; 80]));
        play_for(&mut rig, 10 * MS);
        assert!(rig.tracks[0].ends[1].got.is_empty());
        let answer = &rig.tracks[0].ends[0].got[0];
        assert_eq!(source(answer), IpAddr::from([10, 77, 1, hop_limit]));
        assert_eq!(&answer[20..22], &[11, 0]);
        assert_eq!(answer[8], 65 - hop_limit, "the answer passes the routers before");
        assert_eq!(answer[28 + 8], 1, "the quote shows the hop limit that came in");
        assert_eq!(checksum(&answer[28..48]), 0);
        assert_eq!(timing_report(&rig).router_answers, 1);
    }
}

#[test]
fn routers_answer_pings_by_all_their_names() {
    let echo = [8, 0, 0, 0, 1, 2, 3, 4, 5];
    // Forward router 1 is reverse router 2.
    for name in [[10, 77, 1, 1], [10, 77, 2, 2]] {
        let mut rig = rig();
        rig.tracks[0].ends[0].sends.push_back(v4(name, 64, 1, &echo));
        play_for(&mut rig, 10 * MS);
        let reply = &rig.tracks[0].ends[0].got[0];
        assert_eq!(source(reply), IpAddr::from(name));
        assert_eq!((reply[20], &reply[24..]), (0, &echo[4..]));
    }
    let mut rig = rig();
    rig.tracks[0].ends[0].sends.push_back(v4([10, 77, 1, 2], 1, 1, &echo));
    play_for(&mut rig, 10 * MS);
    let answer = &rig.tracks[0].ends[0].got[0];
    assert_eq!((source(answer), answer[20]), (IpAddr::from([10, 77, 1, 1]), 11), "it ran out before");
}

#[test]
fn routers_listen_on_no_port() {
    for (protocol, answers) in [(17, 1), (6, 0)] {
        let mut rig = rig();
        rig.tracks[0].ends[0].sends.push_back(v4([10, 77, 1, 2], 64, protocol, &[9; 80]));
        play_for(&mut rig, 10 * MS);
        assert_eq!(rig.tracks[0].ends[0].got.len(), answers);
        for answer in &rig.tracks[0].ends[0].got {
            assert_eq!(source(answer), IpAddr::from([10, 77, 1, 2]));
            assert_eq!(&answer[20..22], &[3, 3]);
        }
    }
}

#[test]
fn a_packet_too_big_is_reported_the_mtu() {
    let mut rig = rig();
    rig.tracks[0].ends[0].sends.push_back(v4(RECEIVER, 64, 200, &[9; 1_400]));
    play_for(&mut rig, 20 * MS);
    let answer = &rig.tracks[0].ends[0].got[0];
    assert_eq!(source(answer), IpAddr::from([10, 77, 1, 2]));
    assert_eq!(&answer[20..22], &[3, 4]);
    assert_eq!(&answer[26..28], &1_000_u16.to_be_bytes());
    assert_eq!(answer[28 + 8], 63, "one router had passed it on");
}

#[test]
fn what_nobody_on_the_path_is_meant_by_is_not_sustained() {
    let mut rig = rig();
    let sends = &mut rig.tracks[0].ends[0].sends;
    sends.push_back(vec![1, 2, 3]);
    sends.push_back(Vec::new());
    sends.push_back(v4([224, 0, 0, 22], 1, 2, &[]));
    sends.push_back(v4([10, 77, 0, 1], 64, 200, &[]));
    sends.push_back(v4([10, 77, 1, 3], 64, 200, &[]));
    play_for(&mut rig, 10 * MS);
    let timing_report = timing_report(&rig);
    assert_eq!((timing_report.unroutable_packets, timing_report.accepted, timing_report.releases), (5, 0, 0));
}

/// 1000 octets take 0.1 ms over the first hop and 1 ms over the second: while the first packet is
/// sent there, the second waits, and three find no room.
#[test]
fn drops_are_reported_by_hop() {
    let mut rig = rig();
    let hop = |mbps| Hop::rate(BitRate::from_mbps(mbps)).framing(narrows_units::Framing::BARE);
    let scenario = Scenario::new("narrow").hop(hop(80)).hop(hop(8).queue(Queue::Packets(2))).validate().unwrap();
    rig.tracks[0].rules.plan = AddressPlan::of(&scenario).unwrap();
    rig.tracks[0].path = Path::new(&scenario, 1);
    for _ in 0..5 {
        rig.tracks[0].ends[0].sends.push_back(v4(RECEIVER, 64, 200, &[9; 980]));
    }
    play_for(&mut rig, 10 * MS);
    let timing_report = timing_report(&rig);
    assert_eq!((timing_report.releases, timing_report.packets_dropped()), (2, 3));
    let dropped = timing_report.dropped[0];
    assert_eq!((dropped.way, dropped.hop, dropped.cause), (PathDirection::Forward, 1, DropCause::Queue));
}

#[test]
fn a_stall_is_seen() {
    let mut rig = rig();
    rig.tracks[0].ends[0].sends.push_back(v4(RECEIVER, 64, 200, &[9; 80]));
    play_for(&mut rig, 3 * MS);
    rig.watch.clock.now += 5 * MS;
    play_for(&mut rig, MS);
    let timing_report = timing_report(&rig);
    assert_eq!((timing_report.stalls, timing_report.late_over_100us), (1, 1));
    // Planned for 3.3 ms, released at 8 ms.
    assert!((4_600_000..=4_710_000).contains(&timing_report.late_worst_ns), "{timing_report:?}");
    assert!((5_000_000..5_010_000).contains(&timing_report.poll_gap_worst_ns));
    assert!(!timing_report.timing_valid());
}

#[test]
fn a_host_that_refuses_is_counted() {
    let mut rig = rig();
    rig.tracks[0].ends[1].broken = true;
    rig.tracks[0].ends[0].sends.push_back(v4(RECEIVER, 64, 200, &[]));
    play_for(&mut rig, 5 * MS);
    let timing_report = timing_report(&rig);
    assert_eq!((timing_report.refusals, timing_report.releases), (1, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever hosts send, nothing panics and every buffer comes back.
    #[test]
    fn buffers_are_conserved(
        packets in proptest::collection::vec(
            (any::<bool>(), 0_usize..6, 0_u8..5, prop_oneof![Just(1_u8), Just(17)], proptest::collection::vec(any::<u8>(), 0..1_480)),
            0..20,
        )
    ) {
        let mut rig = rig();
        rig.watch.clock.step = 5_000;
        let buffers = rig.pool.count();
        let targets = [RECEIVER, [10, 77, 0, 1], [10, 77, 1, 1], [10, 77, 1, 2], [10, 77, 2, 1], [10, 77, 9, 9]];
        for (first, target, hop_limit, protocol, body) in packets {
            let packet = v4(targets[target], hop_limit, protocol, &body);
            rig.tracks[0].ends[usize::from(!first)].sends.push_back(packet);
        }
        play_for(&mut rig, 60 * MS);
        prop_assert_eq!(rig.tracks[0].path.inside(), 0);
        prop_assert_eq!(rig.pool.count(), buffers);
        let timing_report = timing_report(&rig);
        // What was neither released nor dropped ended at a router; each of those gave at most one
        // answer.
        let into = timing_report.accepted + timing_report.router_answers;
        let out = timing_report.releases + timing_report.packets_dropped();
        prop_assert!(into >= out + timing_report.router_answers, "{:?}", timing_report);
    }
}
