//! What hosts answer for which nobody cooperates: ICMP errors of closed UDP ports, TCP segments,
//! over paths whose answers can be worked out by hand.

use std::num::NonZeroU8;
use std::time::Duration;

use narrows_probe::probes::{Fate, HopReply, HopReplyKind, PacketPlan, PeerKind, Train, TrainId, TrainReport};
use narrows_probe::{Event, Probe, Refusal, World};
use narrows_scenario::{Coalescing, Hop, Host, PathDirection, Router, Scenario};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Framing};

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);

/// 80 and 40 Mbit/s without framing (0.1 and 0.2 µs per octet), 1 ms each, the same back. Answers
/// take 20 µs.
fn two_hops() -> Scenario {
    let hop = |mbps| Hop::rate(BitRate::from_mbps(mbps)).framing(Framing::BARE).delay(MS);
    Scenario::new("two hops").hop(hop(80)).hop(hop(40))
}

fn valid(scenario: Scenario) -> Scenario {
    scenario.validate().expect("a plain path is valid")
}

fn answering(answers: Router) -> Host {
    Host { answers, ..Host::default() }
}

fn send(scenario: Scenario, train: Train) -> TrainReport {
    let mut world = SimWorld::new(&valid(scenario), PathDirection::Forward, 1);
    match world.send(Probe::Train(train)) {
        Ok(Event::Train(report)) => report,
        other => panic!("{other:?}"),
    }
}

fn train(peer_kind: PeerKind, count: usize, ip_octets: u16, gap: Duration) -> Train {
    Train { peer_kind, ..Train::uniform(TrainId(1), count, ip_octets, gap) }
}

fn answers(report: &TrainReport) -> Vec<(Duration, HopReply)> {
    let row = |row: &narrows_probe::probes::Arrival| match row.fate {
        Fate::Answered(reply) => Some((reply.returned.since(row.departed), reply)),
        Fate::Received(_) | Fate::Echoed { .. } | Fate::Lost => None,
    };
    report.arrivals.iter().filter_map(row).collect()
}

#[test]
fn a_closed_port_answers_with_what_it_may_quote() {
    // 548 octets of a long packet are quoted behind 28 of headers, all of a short one.
    for (octets, reply) in [(1000, 576), (548, 576), (547, 575), (100, 128)] {
        let report = send(two_hops(), train(PeerKind::ClosedPort, 2, octets, Duration::ZERO));
        let seen = answers(&report);
        let there = 300 * u64::from(octets);
        let back = 300 * u64::from(reply);
        let first = 4 * MS + 20 * US + Duration::from_nanos(there + back);
        assert_eq!(seen[0].0, first, "{octets}");
        let kind = HopReplyKind::PortUnreachable;
        assert!(seen.iter().all(|(_, r)| (r.kind, r.reply_ip_octets) == (kind, reply)));
        assert_eq!(seen[0].1.from.to_string(), "198.18.0.2");
        // The narrow link parts the probes by 0.2 µs per octet, and the answers too if they are
        // longer.
        let gap = seen[1].1.returned.since(seen[0].1.returned);
        assert_eq!(gap, Duration::from_nanos(200 * u64::from(octets.max(reply))), "{octets}");
        assert_eq!((report.lost(), report.reordered), (0, 0));
    }
}

#[test]
fn a_syn_is_answered_with_forty_octets() {
    let narrow_back = Hop::rate(BitRate::from_mbps(8)).framing(Framing::BARE).delay(3 * MS);
    let path = || two_hops().reverse_hop(narrow_back.clone());
    // 40 octets take 40 µs on the reverse direction, so the 200 µs of the narrow link there stay;
    // 576 octets take 576 µs and hide them.
    for (peer_kind, gap) in [(PeerKind::TcpSyn, 200 * US), (PeerKind::ClosedPort, 576 * US)] {
        let report = send(path(), train(peer_kind, 2, 1000, Duration::ZERO));
        let seen = answers(&report);
        assert_eq!(seen[1].1.returned.since(seen[0].1.returned), gap, "{peer_kind:?}");
        if peer_kind == PeerKind::TcpSyn {
            assert_eq!(seen[0].0, 2 * MS + 300 * US + 20 * US + 3 * MS + 40 * US);
            assert_eq!(seen[0].1.kind, HopReplyKind::TcpAnswer);
            assert_eq!(seen[0].1.reply_ip_octets, 40);
        }
    }
}

#[test]
fn hosts_limit_their_icmp_and_not_their_tcp() {
    let limited = Router { icmp_limit: Some((1.0, 6)), ..Router::default() };
    let path = || two_hops().receiver(answering(limited));
    let seqs = |report: &TrainReport| -> Vec<u32> {
        let answered = |row: &&narrows_probe::probes::Arrival| matches!(row.fate, Fate::Answered(_));
        report.arrivals.iter().filter(answered).map(|row| row.seq).collect()
    };
    // Six at once, then one per second: packets 0 to 5 at once; of those every 400 ms after, the
    // tokens of 1 s, 2 s and 3 s are there for packets 8 (1.2 s; 800 ms after the fifth), 10 (2 s)
    // and 13 (3.2 s).
    let mut closed = train(PeerKind::ClosedPort, 14, 500, 400 * MS);
    for packet in &mut closed.packets[..6] {
        packet.gap = Duration::ZERO;
    }
    assert_eq!(seqs(&send(path(), closed)), [0, 1, 2, 3, 4, 5, 8, 10, 13]);
    let syns = send(path(), train(PeerKind::TcpSyn, 100, 500, MS));
    assert_eq!(seqs(&syns).len(), 100);
    let silent = Router { answers: false, ..Router::default() };
    for peer_kind in [PeerKind::ClosedPort, PeerKind::TcpSyn] {
        let report = send(two_hops().receiver(answering(silent)), train(peer_kind, 5, 500, MS));
        assert_eq!(report.lost(), 5, "{peer_kind:?}");
    }
}

/// A load packet with a hop limit and a probe right behind it, as packet tailgating sends them:
/// each is answered where it ends.
#[test]
fn hop_limited_packets_mix_with_probes() {
    for peer_kind in [PeerKind::ClosedPort, PeerKind::TcpSyn] {
        let mut pair = train(peer_kind, 2, 100, Duration::ZERO);
        pair.packets[0] = PacketPlan { gap: Duration::ZERO, ip_octets: 1500, hop_limit: NonZeroU8::new(1) };
        let report = send(two_hops(), pair);
        let seen = answers(&report);
        assert_eq!(seen[0].1.kind, HopReplyKind::TimeExceeded);
        assert_eq!(seen[0].1.from.to_string(), "198.18.0.1");
        let reply = if peer_kind == PeerKind::TcpSyn { 40 } else { 128 };
        assert_eq!(seen[1].1.reply_ip_octets, reply);
        // The small packet waits 150 µs for the large one on the first hop and is alone on the
        // second. Both answers cross the hop back to the sender; the small one's is far behind.
        let there = 150 * US + 30 * US;
        let back = Duration::from_nanos(300 * u64::from(reply));
        assert_eq!(seen[1].0, 4 * MS + 20 * US + there + back, "{peer_kind:?}");
    }
}

/// The interface's interrupt bundles what the kernel sees, but no program has to read it.
#[test]
fn kernels_answer_at_interrupts_and_without_calls() {
    let bundling = Host {
        coalescing: Some(Coalescing { timer: 500 * US, frames: 64 }),
        receive_cost: 100 * US,
        send_cost: 100 * US,
        ..Host::default()
    };
    let report = send(two_hops().receiver(bundling), train(PeerKind::TcpSyn, 3, 1000, Duration::ZERO));
    let seen = answers(&report);
    // The third comes 400 µs after the first, within the interrupt's timer: the answers leave
    // together, and 40 octets take 8 µs on the narrow link of the reverse direction.
    let gaps = seen.windows(2).map(|pair| pair[1].1.returned.since(pair[0].1.returned));
    assert_eq!(gaps.collect::<Vec<_>>(), [8 * US; 2]);
    assert_eq!(seen[0].0, 4 * MS + 300 * US + 500 * US + 20 * US + 12 * US);
}

/// Answers may take different times, but do not overtake each other; queues on the reverse
/// direction delay them.
#[test]
fn answers_keep_their_order() {
    let unsteady = Router { icmp_jitter: 300 * US, ..Router::default() };
    let report = send(two_hops().receiver(answering(unsteady)), train(PeerKind::TcpSyn, 500, 200, 100 * US));
    let returned: Vec<i64> = answers(&report).iter().map(|(_, r)| r.returned.nanos()).collect();
    assert_eq!((returned.len(), report.reordered), (500, 0));
    assert!(returned.is_sorted());
    let gaps: Vec<i64> = returned.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().any(|&gap| gap > 200_000) && gaps.contains(&8_000));
}

#[test]
fn syns_have_a_least_size() {
    let mut world = SimWorld::new(&two_hops().validate().unwrap(), PathDirection::Forward, 1);
    let mut event = |peer_kind, octets| {
        let Ok(event) = world.send(Probe::Train(train(peer_kind, 1, octets, Duration::ZERO)));
        event
    };
    let refused = |min_ip_octets| Event::Refused(Refusal::TooSmall { min_ip_octets });
    assert_eq!(event(PeerKind::TcpSyn, 39), refused(40));
    assert_eq!(event(PeerKind::ClosedPort, 27), refused(28));
    assert!(matches!(event(PeerKind::TcpSyn, 40), Event::Train(_)));
    assert!(matches!(event(PeerKind::ClosedPort, 28), Event::Train(_)));
}
