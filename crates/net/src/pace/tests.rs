use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::time::Duration;

use super::*;
use crate::receive::Receiver;
use crate::socket::SocketOptions;

static RUNNING: AtomicBool = AtomicBool::new(false);

fn pair() -> (ProbeSocket, ProbeSocket) {
    let remote = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &SocketOptions::default()).unwrap();
    let near = ProbeSocket::connected(remote.local().unwrap(), &SocketOptions::default()).unwrap();
    (near, remote)
}

fn plan(count: usize, gap: Duration) -> Vec<PacketPlan> {
    let packet = PacketPlan { gap, ip_octets: 1500, hop_limit: None };
    vec![packet; count]
}

/// Payloads that begin with their number.
fn numbered(count: u32, octets: usize) -> Payloads {
    let mut payloads = Payloads::new((0..count).map(|_| octets), 3);
    for (seq, k) in (0..count).zip(0..) {
        payloads.get_mut(k)[..4].copy_from_slice(&seq.to_be_bytes());
    }
    payloads
}

/// Numbers, lengths, hop limits and best stamps of what arrives in the next half second.
fn arrivals(remote: &ProbeSocket, count: usize) -> Vec<(u32, usize, u8, i64)> {
    let mut receiver = Receiver::new(remote, 2048);
    let mut rows = Vec::new();
    let deadline = clock::now_ns() + 500_000_000;
    receiver
        .receive_until(remote, deadline, &RUNNING, |datagram| {
            let seq = u32::from_be_bytes(datagram.payload[..4].try_into().unwrap());
            rows.push((seq, datagram.payload_octets, datagram.hop_limit.unwrap(), datagram.seen.best_ns()));
            rows.len() < count
        })
        .unwrap();
    rows
}

#[test]
fn a_train_arrives_whole_in_order_and_after_it_left() {
    for kernel_stamps in [false, true] {
        let (near, remote) = pair();
        let plan = plan(100, Duration::from_micros(50));
        let mut queue = ErrorQueue::new();
        let options = PaceOptions { kernel_stamps, ..PaceOptions::default() };
        let sent = send_train(&near, &plan, &numbered(100, 1472), &options, &mut queue, &RUNNING).unwrap();
        let rows = arrivals(&remote, 100);
        let departures = sent.settle(&plan, &near, &mut queue);
        assert_eq!(departures.source, if kernel_stamps { StampSource::Kernel } else { StampSource::User });
        assert!(departures.stamps_ns.is_sorted());
        assert_eq!(departures.stamps_ns.len(), 100);
        assert!(departures.refused.is_empty() && !departures.interrupted);
        assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        for (row, departed) in rows.iter().zip(&departures.stamps_ns) {
            assert!(row.3 >= departed - 2_000, "{row:?} {departed}");
        }
        // 99 gaps of 50 µs: never faster than planned, whatever else runs on this machine.
        let lasted = departures.stamps_ns[99] - departures.stamps_ns[0];
        assert!(lasted > 4_800_000, "{lasted}");
    }
}

#[test]
fn segments_arrive_as_single_packets() {
    let (near, remote) = pair();
    let plan = plan(150, Duration::ZERO);
    let options = PaceOptions { back_to_back: BackToBack::Segments, ..PaceOptions::default() };
    let mut queue = ErrorQueue::new();
    let sent = send_train(&near, &plan, &numbered(150, 1000), &options, &mut queue, &RUNNING).unwrap();
    assert!(sent.segmented);
    let rows = arrivals(&remote, 150);
    assert_eq!(
        rows.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(),
        (0..150).map(|seq| (seq, 1000)).collect::<Vec<_>>()
    );
    let departures = sent.settle(&plan, &near, &mut queue);
    assert_eq!(departures.pacing, PacingCheck::Kept);
    // One stamp per send of at most 64 segments and 65 000 octets.
    let mut stamps = departures.stamps_ns.clone();
    stamps.dedup();
    assert_eq!(stamps.len(), 3);
}

#[test]
fn sizes_and_hop_limits_are_each_packets_own() {
    let (near, remote) = pair();
    let mut plan = plan(6, Duration::ZERO);
    plan[2].hop_limit = NonZeroU8::new(5);
    plan[4].hop_limit = NonZeroU8::new(9);
    let mut payloads = Payloads::new([100, 100, 200, 300, 300, 300], 1);
    for k in 0..6u8 {
        payloads.get_mut(k.into())[..4].copy_from_slice(&[0, 0, 0, k]);
    }
    for back_to_back in [BackToBack::Messages, BackToBack::Segments] {
        let options = PaceOptions { back_to_back, ..PaceOptions::default() };
        send_train(&near, &plan, &payloads, &options, &mut ErrorQueue::new(), &RUNNING).unwrap();
        let rows: Vec<_> = arrivals(&remote, 6).iter().map(|row| (row.0, row.1, row.2)).collect();
        assert_eq!(rows, [(0, 100, 64), (1, 100, 64), (2, 200, 5), (3, 300, 64), (4, 300, 9), (5, 300, 64)]);
    }
}

#[test]
fn ipv6_hop_limits_too() {
    let remote = ProbeSocket::bind("[::1]:0".parse().unwrap(), &SocketOptions::default()).unwrap();
    let near = ProbeSocket::connected(remote.local().unwrap(), &SocketOptions::default()).unwrap();
    let mut plan = plan(2, Duration::from_micros(10));
    plan[1].hop_limit = NonZeroU8::new(3);
    send_train(&near, &plan, &numbered(2, 50), &PaceOptions::default(), &mut ErrorQueue::new(), &RUNNING).unwrap();
    assert_eq!(arrivals(&remote, 2).iter().map(|row| row.2).collect::<Vec<_>>(), [64, 3]);
}

#[test]
fn a_plan_that_no_host_can_keep_is_flagged() {
    let (near, _remote) = pair();
    let plan = plan(1000, Duration::from_nanos(1));
    let mut queue = ErrorQueue::new();
    let sent = send_train(&near, &plan, &numbered(1000, 1472), &PaceOptions::default(), &mut queue, &RUNNING).unwrap();
    let departures = sent.settle(&plan, &near, &mut queue);
    assert!(matches!(departures.pacing, PacingCheck::Broken { .. }));
    assert!(departures.stamps_ns.is_sorted());
}

#[test]
fn a_packet_that_does_not_fit_is_refused_and_the_rest_goes() {
    let (near, remote) = pair();
    let plan = plan(3, Duration::from_micros(20));
    let payloads = Payloads::new([100, 65_508, 100], 1);
    let mut queue = ErrorQueue::new();
    let sent = send_train(&near, &plan, &payloads, &PaceOptions::default(), &mut queue, &RUNNING).unwrap();
    assert_eq!(sent.refused(), [1]);
    assert_eq!(arrivals(&remote, 2).len(), 2);
    assert!(matches!(sent.settle(&plan, &near, &mut queue).pacing, PacingCheck::Broken { .. }));
}

#[test]
fn the_stop_flag_cuts_a_long_train() {
    let (near, _remote) = pair();
    let plan = plan(4, Duration::from_secs(100));
    let stop = AtomicBool::new(true);
    let begun = clock::now_ns();
    let sent =
        send_train(&near, &plan, &numbered(4, 100), &PaceOptions::default(), &mut ErrorQueue::new(), &stop).unwrap();
    assert!(clock::now_ns() - begun < 60_000_000_000);
    let departures = sent.settle(&plan, &near, &mut ErrorQueue::new());
    assert!(departures.interrupted);
    assert_eq!(departures.stamps_ns.len(), 4);
    assert_eq!(departures.refused.last(), Some(&3));
}
