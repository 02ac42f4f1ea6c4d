use narrows_scenario::{Burst, Cross, Elastic, ElasticControl, Hop, Layer2, Queue};
use narrows_units::{BitRate, Framing};

use super::*;

fn hop(mbps: u64) -> Hop {
    Hop::rate(BitRate::from_mbps(mbps))
}

fn switch() -> Layer2 {
    Layer2 {
        rate: BitRate::from_mbps(50),
        framing: Framing::ETHERNET,
        delay: std::time::Duration::ZERO,
        queue: Queue::Packets(100),
    }
}

fn three_hops() -> Scenario {
    let tcp = Elastic::greedy(2, ElasticControl::Cubic);
    Scenario::new("layout")
        .hop(hop(100))
        .hop(hop(100).layer2(switch()).mtu(1400))
        .hop(hop(100))
        .cross(Cross::elastic_on_hop(1, tcp))
        .validate()
        .unwrap()
}

fn names(layout: &Layout) -> Vec<&str> {
    layout.nodes.iter().map(|node| node.name.as_str()).collect()
}

fn ends(layout: &Layout) -> Vec<String> {
    let end = |port: &Port| format!("{}:{}", layout.nodes[port.node].name, port.device);
    let cable = |cable: &Cable| format!("{} {}", end(&cable.ends[0]), end(&cable.ends[1]));
    layout.cables.iter().map(cable).collect()
}

#[test]
fn hops_become_nodes_and_cables() {
    let layout = Layout::of(&three_hops(), true).unwrap();
    assert_eq!(
        names(&layout),
        ["sender", "router1", "router2", "receiver", "switch1", "cross-1-source", "cross-1-sink"]
    );
    assert_eq!(
        ends(&layout),
        [
            "sender:path0 router1:to-sender",
            "router1:to-receiver switch1:to-sender",
            "switch1:to-receiver router2:to-sender",
            "router2:to-receiver receiver:path0",
            "cross-1-source:path0 router1:source1",
            "cross-1-sink:path0 router2:sink1",
        ]
    );
    let macs: std::collections::BTreeSet<[u8; 6]> =
        layout.cables.iter().flat_map(|cable| cable.ends.each_ref().map(|end| end.mac)).collect();
    assert_eq!(macs.len(), 12, "each device has its own address");
    assert!(layout.cables.iter().flat_map(|cable| &cable.ends).all(|port| port.device.len() <= 15));
}

/// Routers answer by the address of the device that the probe came in by, so traceroute sees those
/// of the address plan.
#[test]
fn devices_have_the_addresses_of_the_plan() {
    let layout = Layout::of(&three_hops(), true).unwrap();
    let of = |node: &str, device: &str| {
        let node = layout.find(node).unwrap();
        let port = layout.ports(node).find(|port| port.device == device).unwrap();
        port.addresses.map(|addresses| addresses.ipv4.to_string())
    };
    assert_eq!(of("sender", "path0").unwrap(), "10.77.0.1");
    assert_eq!(of("router1", "to-sender").unwrap(), "10.77.1.1");
    assert_eq!(of("router2", "to-sender").unwrap(), "10.77.1.2");
    // Seen from the receiver, router2 comes first.
    assert_eq!(of("router2", "to-receiver").unwrap(), "10.77.2.1");
    assert_eq!(of("router1", "to-receiver").unwrap(), "10.77.2.2");
    assert_eq!(of("receiver", "path0").unwrap(), "10.77.3.1");
    assert_eq!(of("cross-1-source", "path0").unwrap(), "10.77.4.1");
    assert_eq!(of("router2", "sink1").unwrap(), "10.77.7.1");
    assert_eq!(of("switch1", "to-sender"), None);
}

/// Follows routes hop by hop from every node to every address, as kernels would.
#[test]
fn every_node_reaches_every_address() {
    for ipv6 in [false, true] {
        let layout = Layout::of(&three_hops(), ipv6).unwrap();
        let everywhere: Vec<(usize, IpAddr)> =
            layout.addresses().flat_map(|(port, addresses)| addresses.all().map(|to| (port.node, to))).collect();
        assert_eq!(everywhere.len(), if ipv6 { 20 } else { 10 });
        for from in 0..layout.nodes.len() {
            if layout.nodes[from].kind == NodeKind::Switch {
                assert!(layout.routes(from).is_empty() && layout.neighbours(from).is_empty());
                continue;
            }
            for &(target, to) in &everywhere {
                let mut here = from;
                let mut steps = 0;
                while here != target {
                    let route = layout.routes(here).into_iter().find(|route| route.to == to).unwrap();
                    let known = layout.neighbours(here);
                    let next = known.iter().find(|one| one.address == route.via).unwrap();
                    assert_eq!(next.device, route.device);
                    here = layout
                        .cables
                        .iter()
                        .flat_map(|cable| &cable.ends)
                        .find(|end| end.mac == next.mac)
                        .unwrap()
                        .node;
                    steps += 1;
                    assert!(steps < 6, "{} to {to}", layout.nodes[from].name);
                }
            }
        }
    }
}

/// A cable that the kernel plays has one MTU both ways, so the smaller one is the routes'.
#[test]
fn mtus_of_ways_that_differ() {
    let ways = |link| {
        Scenario::new("mtu")
            .hop(hop(100).mtu(1400).link(link))
            .hop(hop(100))
            .reverse_hop(hop(100))
            .reverse_hop(hop(10).mtu(1500).link(link))
            .validate()
            .unwrap()
    };
    let ends = |link| {
        let layout = Layout::of(&ways(link), true).unwrap();
        layout.cables[0].ends.each_ref().map(|port| (port.mtu, port.route_mtu))
    };
    assert_eq!(ends(Link::Veth), [(1500, Some(1400)), (1500, None)]);
    assert_eq!(ends(Link::RealTime), [(1400, None), (1500, None)]);
    let layout = Layout::of(&ways(Link::Veth), true).unwrap();
    assert!(layout.routes(0).iter().all(|route| route.mtu == Some(1400)));
}

#[test]
fn what_does_not_fit_is_refused() {
    let many = |count: usize| (0..count).fold(Scenario::new("many"), |path, _| path.hop(hop(10))).validate().unwrap();
    assert!(Layout::of(&many(32), true).is_ok());
    assert!(matches!(Layout::of(&many(33), true), Err(LabError::TooManyHops { hops: 33, most: 32 })));
    let unequal = Scenario::new("unequal").hop(hop(10)).hop(hop(10)).reverse_hop(hop(10)).validate().unwrap();
    assert!(matches!(Layout::of(&unequal, true), Err(LabError::UnequalWays { forward: 2, reverse: 1 })));
    let mixed =
        Scenario::new("mixed").hop(hop(10).link(Link::Tbf(Burst::OnePacket))).reverse_hop(hop(10)).validate().unwrap();
    assert_eq!(
        Layout::of(&mixed, true).unwrap_err().to_string(),
        "hop 0 is tbf forward and real_time back: a real-time link is one both ways"
    );
    let shapers = Scenario::new("shapers")
        .hop(hop(10).link(Link::Tbf(Burst::OnePacket)))
        .reverse_hop(hop(10).link(Link::Veth))
        .validate()
        .unwrap();
    assert!(Layout::of(&shapers, true).is_ok(), "what shapes one way of a cable is no matter of the other's");
}

#[test]
fn small_links_have_no_ipv6() {
    let small = Scenario::new("small").hop(hop(10)).hop(hop(10).mtu(1279)).validate().unwrap();
    let layout = Layout::of(&small, true).unwrap();
    assert!(layout.addresses().all(|(_, addresses)| addresses.ipv6.is_none()));
}
