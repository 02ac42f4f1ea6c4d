//! Packets become connections, directions and findings.
use crate::common;

use common::{ACK, FIN, SYN, Tcp, analyse, connection, options, pcap};
use narrows_capture::decode::{Decoded, Endpoint, decode};
use narrows_capture::file::CaptureReader;
use narrows_capture::flows::FlowLimits;
use narrows_capture::matching::Departures;
use narrows_capture::{Findings, Options};
use narrows_diagnose::passive::Vantage;

fn found(packets: &[Tcp]) -> Findings {
    analyse(&pcap(packets), options()).unwrap()
}

#[test]
fn a_transfer_seen_at_its_sender() {
    let findings = found(&connection(40_000, 0, 300));
    let [flow] = findings.flows.as_slice() else { panic!("{:?}", findings.flows) };
    assert_eq!(flow.source.to_string(), "10.0.0.1:40000");
    assert_eq!(flow.destination.to_string(), "10.0.0.2:5201");
    assert_eq!(flow.opened_by_source, Some(true));
    assert_eq!((flow.data_packets, flow.payload_octets), (300, 438_000));
    assert_eq!(flow.lasted_ns, 10_020_000 + 1_000 + 299_000_000 + 10_000_000);
    let sight = &flow.sight;
    assert_eq!(sight.vantage, Vantage::Sender);
    assert_eq!((sight.ahead_ns, sight.behind_ns), (Some(10_000_000), Some(20_000)));
    assert_eq!((sight.missed, sight.began, sight.window_shift), (0, true, Some(0)));
    assert_eq!(flow.answers.len(), narrows_diagnose::passive::PASSIVE.len());
    assert_eq!(findings.counts.flows.connections, 1);
    assert_eq!(findings.counts.unreadable(), 0);
}

#[test]
fn directions_with_little_data_are_counted_alone() {
    let mut packets = connection(40_000, 0, 19);
    packets.extend(connection(40_001, 1, 20));
    packets.extend(connection(40_002, 2, 0));
    let findings = found(&packets);
    assert_eq!(findings.flows.len(), 1);
    assert_eq!(findings.flows[0].source.port, 40_001);
    let counts = findings.counts.flows;
    assert_eq!((counts.connections, counts.small, counts.evicted), (3, 1, 0));
}

#[test]
fn ports_used_again_are_another_connection() {
    let first = connection(40_000, 0, 50);
    let end = Tcp { flags: FIN | ACK, at_us: 1_000_000, ..first[2] };
    let mut second = connection(40_000, 2_000_000, 30);
    for packet in &mut second {
        packet.sequence = packet.sequence.wrapping_add(9_999);
    }
    let findings = found(&[first.clone(), vec![end], second.clone()].concat());
    let sizes: Vec<u64> = findings.flows.iter().map(|flow| flow.data_packets).collect();
    assert_eq!(sizes, [50, 30]);
    // Also if the first one's end was missed; and a SYN sent twice is no new one.
    let mut twice = first.clone();
    twice.insert(1, first[0]);
    assert_eq!(found(&[twice, second].concat()).flows.len(), 2);
}

#[test]
fn silence_ends_a_connection_and_stamps_may_step_back() {
    let early = connection(40_000, 0, 30);
    let late: Vec<Tcp> = connection(40_000, 0, 60)
        .split_off(3 + 60)
        .into_iter()
        .map(|packet| Tcp { at_us: packet.at_us + 700_000_000, ..packet })
        .collect();
    let findings = found(&[early.clone(), late].concat());
    assert_eq!(findings.flows.len(), 2);
    let mut back = early;
    back.reverse();
    let steps = back.windows(2).filter(|pair| pair[1].at_us < pair[0].at_us).count();
    let findings = found(&back);
    assert_eq!(findings.counts.stepped_back, steps as u64);
    assert_eq!(findings.flows.len(), 1);
}

#[test]
fn the_table_is_bounded_and_the_largest_flows_are_kept() {
    let mut packets: Vec<Tcp> =
        (0..40).flat_map(|port| connection(40_000 + port, i64::from(port), 20 + u32::from(port))).collect();
    packets.sort_by_key(|packet| packet.at_us);
    let limited = |live, held_octets, most_flows| {
        let limits = FlowLimits { live, held_octets, min_packets: 1 };
        let options = Options { limits, most_flows, ..options() };
        analyse(&pcap(&packets), options).unwrap()
    };
    let all = limited(100, usize::MAX, 100);
    assert_eq!((all.flows.len(), all.counts.flows.evicted), (40, 0));
    let few = limited(100, usize::MAX, 7);
    let ports: Vec<u16> = few.flows.iter().map(|flow| flow.source.port).collect();
    assert_eq!(ports, (40_033..40_040).collect::<Vec<_>>());
    assert_eq!(few.counts.left_out, 33);
    // Ended early and begun again: no packet is lost.
    let crowded = limited(5, usize::MAX, 10_000);
    assert!(crowded.counts.flows.evicted > 40);
    let data = |findings: &Findings| findings.flows.iter().map(|flow| flow.data_packets).sum::<u64>();
    assert_eq!(data(&crowded), data(&all));
    let heavy = limited(100, 1, 10_000);
    assert!(heavy.counts.flows.evicted > 0 && data(&heavy) == data(&all));
}

#[test]
fn only_what_is_asked_for_is_followed() {
    let packets = [connection(40_000, 0, 30), connection(40_001, 0, 30)].concat();
    let only = |ends: &[(u128, u16)]| {
        let only = ends.iter().map(|&(address, port)| Endpoint { address, port }).collect();
        analyse(&pcap(&packets), Options { only, ..options() }).unwrap().flows.len()
    };
    let (near, remote) = (0xFFFF_0A00_0001, 0xFFFF_0A00_0002);
    assert_eq!(only(&[]), 2);
    assert_eq!(only(&[(remote, 0)]), 2);
    assert_eq!(only(&[(near, 40_001)]), 1);
    assert_eq!(only(&[(near, 40_001), (remote, 5_201)]), 1);
    assert_eq!(only(&[(remote, 40_001)]), 0);
}

#[test]
fn what_was_acknowledged_unseen_was_missed() {
    let mut packets = connection(40_000, 0, 100);
    let dropped: Vec<u16> =
        packets.iter().filter(|packet| packet.payload > 0).map(|packet| packet.ip_id).skip(50).take(1).collect();
    packets.retain(|packet| packet.payload == 0 || packet.ip_id != dropped[0]);
    let findings = found(&packets);
    assert_eq!(findings.flows[0].sight.missed, 1);
    let ids: Vec<&str> = findings.flows[0].answers[0].outcome.caveats().iter().map(narrows_probe::Caveat::id).collect();
    assert!(ids.contains(&"capture_missed"), "{ids:?}");
}

#[test]
fn a_second_capture_tells_when_packets_left() {
    let near = connection(40_000, 0, 100);
    let remote: Vec<Tcp> = near
        .iter()
        .map(|packet| Tcp {
            at_us: packet.at_us + 1_000_000_000,
            hop_limit: if packet.from.1 == 40_000 { 60 } else { 64 },
            ..*packet
        })
        .collect();
    // Unrelated traffic in the second capture does not matter, nor does a packet that it lacks.
    let mut second = [connection(50_000, -5_000, 400), near.clone()].concat();
    second.sort_by_key(|packet| packet.at_us);
    let lacking =
        second.iter().position(|packet| packet.payload > 0 && packet.ip_id == 52 && packet.from.1 == 40_000).unwrap();
    second.remove(lacking);
    let second = pcap(&second);
    let mut departures = Departures::new(CaptureReader::open(second.as_slice()).unwrap());
    let first = pcap(&remote);
    let mut reader = CaptureReader::open(first.as_slice()).unwrap();
    let (mut with, mut without) = (0, 0);
    while let Some(raw) = reader.next_packet() {
        let Decoded::Tcp(packet) = decode(&raw) else { panic!() };
        match departures.departed_ns(&packet) {
            Some(departed) => {
                assert_eq!(packet.seen.at_ns - departed, 1_000_000_000_000);
                with += 1;
            }
            None => without += u32::from(packet.seen.tcp.payload_octets > 0),
        }
    }
    assert_eq!((with, without, departures.matched()), (99, 1, 99));
}

#[test]
fn a_unmatched_reply_syn_alone_is_a_connection_without_flows() {
    let single_ended = connection(40_000, 0, 0);
    let findings = found(&single_ended[..1]);
    assert_eq!(single_ended[0].flags, SYN);
    assert_eq!((findings.flows.len(), findings.counts.flows.connections), (0, 1));
}
