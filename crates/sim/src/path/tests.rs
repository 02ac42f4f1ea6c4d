use std::time::Duration;

use scenario::Hop;
use units::BitRate;

use super::*;

pub(super) fn packet<T>(ip_octets: u16, payload: T) -> Packet<T> {
    Packet {
        ip_octets,
        hop_limit: 64,
        payload,
    }
}

/// Two Ethernet hops, 100 and 10 Mbit/s, 1 ms each: 123.04 µs and 1230.4 µs per packet of 1500 octets.
#[test]
fn two_packets_over_two_hops() {
    let scenario = Scenario::new("two hops")
        .hop(Hop::rate(BitRate::from_mbps(100)).delay(Duration::from_millis(1)))
        .hop(Hop::rate(BitRate::from_mbps(10)).delay(Duration::from_millis(1)))
        .validate()
        .unwrap();
    let mut path = Path::new(&scenario, 1);
    let mut out = Vec::new();
    path.send(1000, Way::Forward, packet(1500, 'a'));
    path.send(1000, Way::Forward, packet(1500, 'b'));
    assert_eq!(path.inside(), 2);
    path.advance(10_000_000, &mut out);
    let delivered = |at, payload| Output::Delivered {
        at,
        way: Way::Forward,
        node: 2,
        ip_octets: 1500,
        hop_limit: 63,
        payload,
    };
    let first = 1000 + 123_040 + 1_000_000 + 1_230_400 + 1_000_000;
    assert_eq!(out, [delivered(first, 'a'), delivered(first + 1_230_400, 'b')]);
    assert_eq!((path.inside(), path.next_at()), (0, None));
}
