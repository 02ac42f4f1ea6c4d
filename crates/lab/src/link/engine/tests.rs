use std::net::UdpSocket;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use narrows_scenario::{Arrivals, Cross, Hop, Layer2, Queue, Scenario, SizeMix};
use narrows_sim::{DropCause, LinkPart};
use narrows_units::{BitRate, Framing, Octets};

use super::super::{PortKind, PortSpec};
use super::*;
use crate::node::Node;

mod lab;

fn devices(count: usize) -> Vec<Layer2> {
    let device = Layer2 {
        rate: BitRate::from_gbps(1),
        framing: Framing::ETHERNET,
        delay: Duration::ZERO,
        queue: Queue::Unlimited,
    };
    vec![device; count]
}

fn two_hops() -> Arc<Scenario> {
    let mut first = Hop::rate(BitRate::from_mbps(100));
    first.layer2 = devices(2);
    let sizes = SizeMix::constant(1000);
    let load = Cross::on_hop(0, Arrivals::Cbr, BitRate::from_mbps(80), sizes);
    let scenario = Scenario::new("two hops").hop(first).hop(Hop::rate(BitRate::from_mbps(10))).cross(load);
    Arc::new(scenario.validate().unwrap())
}

fn spec(scenario: &Arc<Scenario>, part: LinkPart, ends: [(&Node, &str); 2]) -> LinkSpec {
    let mut number = 0;
    let mtu = part.forward.and_then(|segment| scenario.forward.get(segment.hop)).map_or(1500, |hop| hop.mtu);
    let ends = ends.map(|(node, device)| {
        number += 1;
        PortSpec {
            namespace: Arc::clone(node.namespace()),
            device: device.to_owned(),
            mtu,
            mac: [2, 0, 0, 0, u8::try_from(device.len()).unwrap(), number],
        }
    });
    LinkSpec { name: "link".to_owned(), scenario: Arc::clone(scenario), seed: 1, part, ends }
}

fn all_links(scenario: &Arc<Scenario>, node: &Node) -> Vec<LinkSpec> {
    let hops = 0..scenario.forward.len();
    let parts = hops.flat_map(|hop| LinkPart::of_hop(scenario, hop));
    parts.map(|part| spec(scenario, part, [(node, "a"), (node, "b")])).collect()
}

#[test]
#[ignore = "lab: needs namespaces"]
fn cross_traffic_goes_on_from_link_to_link() {
    let node = Node::alone("nobody").unwrap();
    let links = all_links(&two_hops(), &node);
    let found = feeds(&links);
    let feed = |from, to, way| Feed { from, to, way };
    let expected = [
        feed(0, 1, PathDirection::Forward),
        feed(1, 2, PathDirection::Forward),
        feed(1, 0, PathDirection::Reverse),
        feed(2, 1, PathDirection::Reverse),
    ];
    assert_eq!(found, expected);
    // Other scenarios have other traffic.
    let mut mixed = all_links(&two_hops(), &node);
    mixed[1] = links[1].clone();
    assert_eq!(feeds(&mixed), []);
}

/// 80 Mbit/s on 1 Gbit/s: the last link of the hop is as busy as the first lets it be, so a packet
/// waits there at times.
#[test]
fn the_warm_up_reaches_every_link() {
    let scenario = two_hops();
    let feeds = [Feed { from: 0, to: 1, way: PathDirection::Forward }];
    let parts = LinkPart::of_hop(&scenario, 0);
    let mut paths: Vec<Path<Buffer>> = parts[..2].iter().map(|part| Path::link(&scenario, 1, part)).collect();
    warm(&mut paths, &feeds, 1_000_000_000);
    assert_eq!(paths[0].take_passed(PathDirection::Forward).count(), 0, "all was handed on");
    // 10 000 packets of 1000 octets in a second.
    let passed = paths[1].take_passed(PathDirection::Forward).count();
    assert!((9_990..=10_001).contains(&passed), "{passed}");
}
