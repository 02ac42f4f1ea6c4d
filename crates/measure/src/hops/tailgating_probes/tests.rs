use super::*;
use narrows_probe::probes::{PeerKind, TrainId};

/// Behind 10 Mbit/s, links of 100, 50, 1000 and 20: what is held back is what the recursion says,
/// link by link.
#[test]
fn the_small_packet_is_behind_by_what_the_recursion_says() {
    let (large, small) = (1538.0, 86.0);
    let time = |octets: f64, mbps: f64| octets * 8e3 / mbps;
    let rates = [100.0, 10.0, 100.0, 50.0, 1000.0, 20.0];
    // When each is through, of both, link by link.
    let (mut first, mut second, mut behind) = (0.0, 0.0, (0.0, 0.0));
    for rate in rates {
        first += time(large, rate);
        second = f64::max(first, second) + time(small, rate);
        let takes = time(large, rate);
        behind = after(behind, (takes, takes), small / large, false);
        assert!((behind.0 - (second - first)).abs() < 1e-6 && (behind.1 - behind.0).abs() < 1e-9, "{rate}");
    }
    // What is not known leaves a range that holds it.
    let wide = after((5.0, 7.0), (10.0, 40.0), 0.1, false);
    assert!(wide.0 <= 1.0 && wide.1 >= 4.0, "{wide:?}");
}

#[test]
fn trains_are_known_by_their_shape() {
    let packet = |ip_octets, limit| PacketPlan { gap: Duration::ZERO, ip_octets, hop_limit: hop_limit(limit) };
    let mut train = Train {
        id: TrainId(1),
        packets: vec![packet(48, 7), packet(1500, 3), packet(48, 7)],
        peer_kind: PeerKind::ClosedPort,
    };
    let kind = |replay| Kind { responder: 7, replay, died: 3, trailing_packet: 48 };
    assert_eq!(read(&train), Some(kind(0)));
    train.packets[1].gap = Duration::from_millis(9);
    assert_eq!(read(&train), Some(kind(3)));
    train.packets[1].gap = Duration::from_millis(8);
    assert_eq!(read(&train), None);
    train.packets[1].gap = Duration::ZERO;
    train.packets[2].hop_limit = None;
    assert_eq!(read(&train), None);
    train.packets.pop();
    assert_eq!(read(&train), None);
}
