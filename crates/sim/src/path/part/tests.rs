use narrows_scenario::{Jitter, Layer2};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::super::tests::strategy::{plans, scenario};
use super::super::{DropCause, Output, Packet};
use super::*;

const END: u64 = 120_000_000;

/// When and at which node a packet arrived, or where and why it was dropped.
type Fate = (u32, u64, Result<usize, (usize, DropCause)>);

fn fate(output: Output<u32>) -> Fate {
    match output {
        Output::Delivered { at, node, payload, .. } => (payload, at, Ok(node)),
        Output::Dropped { at, hop, cause, payload, .. } => (payload, at, Err((hop, cause))),
        other => panic!("no packet is too big or runs out here: {other:?}"),
    }
}

/// All packets of one way over the links of the whole way, one link after the other.
fn chained(scenario: &Scenario, seed: u64, way: PathDirection, sends: &[(u64, u16, u32)]) -> Vec<Fate> {
    let mut fates = Vec::new();
    let mut arrivals = sends.to_vec();
    let mut passed: Vec<(u64, u16)> = Vec::new();
    let hops = scenario.hops(way).len();
    for segment in (0..hops).flat_map(|hop| Segment::of_hop(scenario, way, hop)) {
        let part = match way {
            PathDirection::Forward => LinkPart { forward: Some(segment), reverse: None },
            PathDirection::Reverse => LinkPart { forward: None, reverse: Some(segment) },
        };
        let mut link = Path::link(scenario, seed, &part);
        for (at, ip_octets) in passed.drain(..) {
            link.meet(at, way, ip_octets);
        }
        for &(at, ip_octets, payload) in &arrivals {
            let packet = Packet { ip_octets, hop_limit: 64, flow: 0, payload };
            link.send(at, way, packet);
        }
        arrivals.clear();
        let mut out = Vec::new();
        link.advance(END, &mut out);
        for output in out {
            match output {
                Output::Delivered { at, ip_octets, payload, .. } => arrivals.push((at, ip_octets, payload)),
                other => {
                    let (id, at, end) = fate(other);
                    fates.push((id, at, end.map_err(|(_, cause)| (segment.hop, cause))));
                }
            }
        }
        passed.extend(link.take_passed(way));
    }
    fates.extend(arrivals.iter().map(|&(at, _, id)| (id, at, Ok(hops))));
    fates
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 500, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// A chain of links, with the same seeds, gives every packet the fate that the whole path gives
    /// it.
    #[test]
    fn links_in_a_row_are_the_path(random in scenario(true), plans in plans(), seed in any::<u64>()) {
        let mut scenario = random;
        for cross in &mut scenario.cross {
            cross.last_hop = cross.first_hop;
        }
        for hop in scenario.forward.iter_mut().chain(&mut scenario.reverse) {
            // Jitter lets packets arrive within one nanosecond, and which of them a device then
            // serves first is left open.
            if !hop.layer2.is_empty() {
                hop.jitter = Jitter::None;
            }
        }
        for way in [PathDirection::Forward, PathDirection::Reverse] {
            let sends: Vec<(u64, u16, u32)> = (0..)
                .zip(&plans)
                .filter(|(_, plan)| plan.1 == way)
                .map(|(id, plan)| (plan.0 * 1000, plan.4 % 500 + 28, id))
                .collect();
            let mut path = Path::new(&scenario, seed);
            for &(at, ip_octets, payload) in &sends {
                path.send(at, way, Packet { ip_octets, hop_limit: 64, flow: 0, payload });
            }
            let mut out = Vec::new();
            path.advance(END, &mut out);
            let mut expected: Vec<Fate> = out.into_iter().map(fate).collect();
            let mut found = chained(&scenario, seed, way, &sends);
            expected.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}

fn with_devices() -> Scenario {
    let hop = |devices: usize| {
        let device = Layer2 {
            rate: BitRate::from_mbps(8),
            framing: Framing::BARE,
            delay: std::time::Duration::from_micros(10),
            queue: Queue::Packets(1),
        };
        (0..devices).fold(Hop::rate(BitRate::from_mbps(16)).framing(Framing::BARE), |hop, _| hop.layer2(device))
    };
    Scenario::new("devices").hop(hop(2)).hop(hop(0)).validate().unwrap()
}

#[test]
fn a_hop_with_devices_is_several_links() {
    let scenario = with_devices();
    let links = LinkPart::of_hop(&scenario, 0);
    let device = |hop, device| Some(Segment { hop, device });
    let expected = [
        (device(0, None), device(1, Some(1))),
        (device(0, Some(0)), device(1, Some(0))),
        (device(0, Some(1)), device(1, None)),
    ];
    let found: Vec<_> = links.iter().map(|link| (link.forward, link.reverse)).collect();
    assert_eq!(found, expected);
    assert_eq!(LinkPart::of_hop(&scenario, 1).len(), 1);
    assert!(LinkPart::of_hop(&scenario, 2).is_empty());
}

/// 1000 octets: 1 ms and 10 µs; the second finds the device's only place taken.
#[test]
fn a_device_has_its_own_rate_and_queue() {
    let scenario = with_devices();
    let links = LinkPart::of_hop(&scenario, 0);
    let mut link = Path::link(&scenario, 1, &links[1]);
    for payload in [1, 2] {
        let packet = Packet { ip_octets: 1000, hop_limit: 64, flow: 0, payload };
        link.send(0, PathDirection::Forward, packet);
    }
    let mut out = Vec::new();
    link.advance(END, &mut out);
    let fates: Vec<Fate> = out.into_iter().map(fate).collect();
    assert_eq!(fates, [(2, 0, Err((0, DropCause::Device(0)))), (1, 1_010_000, Ok(1))]);
}

#[test]
fn no_part_is_a_wire() {
    let mut link = Path::link(&with_devices(), 1, &LinkPart::default());
    let packet = Packet { ip_octets: 9000, hop_limit: 1, flow: 0, payload: 7 };
    link.send(5, PathDirection::Reverse, packet);
    let mut out = Vec::new();
    link.advance(END, &mut out);
    assert_eq!(out.into_iter().map(fate).collect::<Vec<_>>(), [(7, 6, Ok(1))]);
}
