//! Which nodes, cables, addresses and routes a scenario becomes. Pure: nothing here touches the
//! kernel.

use std::net::IpAddr;

use narrows_scenario::{Link, PathDirection, Scenario};
use narrows_sim::LinkPart;

use super::describe::FlowDescription;
use super::flows::generated_by_hosts;
use super::kind::NodeKind;
use crate::device::INTERFACE;
use crate::error::LabError;
use crate::plan::{AddressPlan, Addresses, Side};

/// Most hops each way: every node is a kernel of its own with routes to all others.
pub(crate) const MOST_HOPS: usize = 32;
/// Most flows of cross traffic that have hosts of their own.
pub(crate) const MOST_FLOWS: usize = 32;

/// Everything that will be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Sender, routers and receiver in the order of the forward way, then switches, then
    /// cross-traffic hosts.
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) cables: Vec<Cable>,
}

/// A node to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodePlan {
    pub(crate) name: String,
    pub(crate) kind: NodeKind,
    /// How many forward hops lie before it; where it is attached, if it is a cross-traffic host.
    pub(crate) position: usize,
    /// By which the others know it.
    pub(crate) addresses: Option<Addresses>,
}

/// A full-duplex link between two nodes; the first end is nearer to the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cable {
    pub(crate) kind: CableKind,
    pub(crate) ends: [Port; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CableKind {
    /// One link of a hop; `links`: what plays it forward and back.
    Hop { part: LinkPart, links: [Link; 2] },
    /// Between a cross-traffic host and its node.
    Access,
}

/// A device in a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    /// Index of the node.
    pub(crate) node: usize,
    pub(crate) device: String,
    pub(crate) mac: [u8; 6],
    /// MTU of the device.
    pub(crate) mtu: u16,
    /// MTU of what may leave by it, where that is less: a virtual cable drops what its other
    /// end could not send.
    pub(crate) route_mtu: Option<u16>,
    /// Of the device itself; `None` in a switch.
    pub(crate) addresses: Option<Addresses>,
}

/// How a node reaches an address. `via` is the neighbour's address; the address itself if that is
/// the neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) to: IpAddr,
    pub(crate) via: IpAddr,
    pub(crate) device: String,
    pub(crate) mtu: Option<u16>,
}

/// A neighbour at the other end of a node's device, across switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Neighbour {
    pub(crate) address: IpAddr,
    pub(crate) mac: [u8; 6],
    pub(crate) device: String,
}

impl CableKind {
    /// Whether the engine plays it.
    pub(crate) fn is_real_time(self) -> bool {
        matches!(self, Self::Hop { links, .. } if links == [Link::RealTime; 2])
    }
}

impl Layout {
    /// The layout of a scenario. Refuses ways of different length, hops of which only one way is
    /// real-time, and more than fits.
    pub(crate) fn of(scenario: &Scenario, ipv6: bool) -> Result<Self, LabError> {
        let plan = check(scenario, ipv6)?;
        let mut layout = Self { nodes: path_nodes(scenario, &plan), cables: Vec::new() };
        let mut switches = Vec::new();
        for hop in 0..scenario.forward.len() {
            layout.add_hop(scenario, &plan, hop, &mut switches)?;
        }
        layout.nodes.extend(switches);
        let flows: Vec<usize> =
            (0..scenario.cross.len()).filter(|&index| generated_by_hosts(scenario, &scenario.cross[index])).collect();
        if flows.len() > MOST_FLOWS {
            return Err(LabError::TooManyFlows { flows: flows.len(), most: MOST_FLOWS });
        }
        for (number, &index) in (1_u8..).zip(&flows) {
            layout.add_flow(scenario, &plan, number, index);
        }
        Ok(layout)
    }

    /// Index of the node of this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// How a node reaches every address in the lab that is not its own.
    pub(crate) fn routes(&self, node: usize) -> Vec<Route> {
        let here = &self.nodes[node];
        if here.kind == NodeKind::Switch {
            return Vec::new();
        }
        let mut routes = Vec::new();
        for (port, addresses) in self.addresses() {
            if port.node == node {
                continue;
            }
            let Some((own, next)) = self.step(node, port.node) else {
                continue;
            };
            let Some(next) = next.addresses else { continue };
            for to in addresses.all() {
                if let Some(via) = next.like(to) {
                    routes.push(Route { to, via, device: own.device.clone(), mtu: own.route_mtu });
                }
            }
        }
        routes
    }

    /// Whom a node talks to directly.
    pub(crate) fn neighbours(&self, node: usize) -> Vec<Neighbour> {
        let mut neighbours = Vec::new();
        for (own, remote) in self.adjacent(node) {
            for address in remote.addresses.into_iter().flat_map(Addresses::all) {
                neighbours.push(Neighbour { address, mac: remote.mac, device: own.device.clone() });
            }
        }
        neighbours
    }

    /// The ports of a node.
    pub(crate) fn ports(&self, node: usize) -> impl Iterator<Item = &Port> {
        self.cables.iter().flat_map(|cable| &cable.ends).filter(move |port| port.node == node)
    }

    /// Whether a port is an end of a real-time link.
    pub(crate) fn is_played_by_engine(&self, port: &Port) -> bool {
        let mut cables = self.cables.iter();
        cables.any(|cable| cable.kind.is_real_time() && cable.ends.contains(port))
    }

    /// The device of `target` that faces its neighbour `node` on the path, through switches.
    pub(crate) fn facing(&self, node: usize, target: usize) -> Option<&Port> {
        let (_, remote) = self.adjacent(node).into_iter().find(|(_, remote)| remote.node == target)?;
        Some(remote)
    }

    /// Which flow has which hosts.
    pub(crate) fn flows(&self, scenario: &Scenario) -> Vec<FlowDescription> {
        let generated_by =
            (0..scenario.cross.len()).filter(|&index| generated_by_hosts(scenario, &scenario.cross[index]));
        let named =
            |kind: NodeKind| self.nodes.iter().filter(move |node| node.kind == kind).map(|node| node.name.clone());
        generated_by
            .zip(named(NodeKind::Source).zip(named(NodeKind::Sink)))
            .map(|(cross, (source, sink))| FlowDescription { cross, source, sink })
            .collect()
    }

    /// Cables and switches of one hop.
    fn add_hop(
        &mut self,
        scenario: &Scenario,
        plan: &AddressPlan,
        hop: usize,
        switches: &mut Vec<NodePlan>,
    ) -> Result<(), LabError> {
        let hops = scenario.forward.len();
        let (forward, reverse) = (&scenario.forward[hop], &scenario.reverse[hops - 1 - hop]);
        let links = [forward.link, reverse.link];
        let real_time = links.map(|link| link == Link::RealTime);
        if real_time[0] != real_time[1] {
            return Err(LabError::MixedLink { hop, links: links.map(Link::name) });
        }
        let parts = LinkPart::of_hop(scenario, hop);
        let last = parts.len() - 1;
        for (index, part) in parts.into_iter().enumerate() {
            let near = if index == 0 { hop } else { self.nodes.len() + switches.len() - 1 };
            if index < last {
                switches.push(NodePlan {
                    name: format!("switch{}", switches.len() + 1),
                    kind: NodeKind::Switch,
                    position: hop,
                    addresses: None,
                });
            }
            let remote = if index == last { hop + 1 } else { self.nodes.len() + switches.len() - 1 };
            let larger = forward.mtu.max(reverse.mtu);
            let port = |node: usize, towards: PathDirection, mtu: u16| {
                let is_switch = node > hops;
                let (mtu, route_mtu) = if real_time[0] { (mtu, None) } else { (larger, (mtu < larger).then_some(mtu)) };
                Port {
                    node,
                    device: device_name(node, hops, towards),
                    mac: mac(node, u8::from(towards == PathDirection::Reverse)),
                    mtu,
                    route_mtu,
                    addresses: (!is_switch).then(|| port_addresses(plan, node, hops, towards)).flatten(),
                }
            };
            self.cables.push(Cable {
                kind: CableKind::Hop { part, links },
                ends: [
                    port(near, PathDirection::Forward, forward.mtu),
                    port(remote, PathDirection::Reverse, reverse.mtu),
                ],
            });
        }
        Ok(())
    }

    /// The two hosts of a flow, with the cables to their nodes.
    fn add_flow(&mut self, scenario: &Scenario, plan: &AddressPlan, number: u8, index: usize) {
        let cross = &scenario.cross[index];
        let hops = scenario.forward.len();
        let [from, to] = [cross.first_hop, cross.last_hop + 1].map(|node| match cross.way {
            PathDirection::Forward => node,
            PathDirection::Reverse => hops - node,
        });
        let mtu = crossed_mtu(scenario, cross.way);
        for (kind, position, host_group, gate_group) in [(NodeKind::Source, from, 4, 6), (NodeKind::Sink, to, 5, 7)] {
            let node = self.nodes.len();
            let addresses = plan.addresses(host_group, number);
            self.nodes.push(NodePlan {
                name: format!("cross-{number}-{}", kind.name()),
                kind,
                position,
                addresses: Some(addresses),
            });
            let port = |node, device: String, port, addresses| Port {
                node,
                device,
                mac: mac(node, port),
                mtu,
                route_mtu: None,
                addresses: Some(addresses),
            };
            let gate_port = 2 * number + u8::from(kind == NodeKind::Sink);
            self.cables.push(Cable {
                kind: CableKind::Access,
                ends: [
                    port(node, INTERFACE.to_owned(), 0, addresses),
                    port(position, format!("{}{number}", kind.name()), gate_port, plan.addresses(gate_group, number)),
                ],
            });
        }
    }

    /// All devices with addresses.
    fn addresses(&self) -> impl Iterator<Item = (&Port, Addresses)> {
        let ports = self.cables.iter().flat_map(|cable| &cable.ends);
        ports.filter_map(|port| port.addresses.map(|addresses| (port, addresses)))
    }

    /// The devices with addresses next to a node, each with the node's own device towards it.
    fn adjacent(&self, node: usize) -> Vec<(&Port, &Port)> {
        let mut found = Vec::new();
        for (index, cable) in self.cables.iter().enumerate() {
            for (own, remote) in [(0, 1), (1, 0)] {
                if cable.ends[own].node == node && cable.ends[own].addresses.is_some() {
                    found.push((&cable.ends[own], self.across(index, remote)));
                }
            }
        }
        found
    }

    /// The first device with addresses from this end of a cable on, through switches: a hop's
    /// cables follow each other in order.
    fn across(&self, mut cable: usize, end: usize) -> &Port {
        loop {
            let port = &self.cables[cable].ends[end];
            if port.addresses.is_some() || self.nodes[port.node].kind != NodeKind::Switch {
                return port;
            }
            cable = if end == 1 { cable + 1 } else { cable - 1 };
        }
    }

    /// The device by which a node sends to another, and the device that takes it there.
    fn step(&self, node: usize, target: usize) -> Option<(&Port, &Port)> {
        let (here, there) = (&self.nodes[node], &self.nodes[target]);
        let adjacent = self.adjacent(node);
        let is_leaf = |kind| matches!(kind, NodeKind::Source | NodeKind::Sink);
        let next = if is_leaf(here.kind) {
            // It has one cable only.
            return adjacent.first().copied();
        } else if here.position == there.position && is_leaf(there.kind) {
            target
        } else if here.position < there.position {
            here.position + 1
        } else {
            here.position.checked_sub(1)?
        };
        adjacent.into_iter().find(|(_, remote)| remote.node == next)
    }
}

/// What can be refused before anything is planned, and the address plan.
fn check(scenario: &Scenario, ipv6: bool) -> Result<AddressPlan, LabError> {
    let (forward, reverse) = (scenario.forward.len(), scenario.reverse.len());
    if forward.max(reverse) > MOST_HOPS {
        return Err(LabError::TooManyHops { hops: forward.max(reverse), most: MOST_HOPS });
    }
    if forward != reverse {
        return Err(LabError::UnequalWays { forward, reverse });
    }
    let plan = AddressPlan::of(scenario)?;
    // RFC 8200 §5: every link carries 1280 octets; Linux has no IPv6 on devices that do not.
    let small = scenario.forward.iter().chain(&scenario.reverse).any(|hop| hop.mtu < 1280);
    Ok(if ipv6 && !small { plan } else { plan.without_ipv6() })
}

fn path_nodes(scenario: &Scenario, plan: &AddressPlan) -> Vec<NodePlan> {
    let hops = scenario.forward.len();
    let node = |position: usize| {
        let (name, kind, way) = if position == 0 {
            ("sender".to_owned(), NodeKind::Sender, PathDirection::Forward)
        } else if position == hops {
            ("receiver".to_owned(), NodeKind::Receiver, PathDirection::Reverse)
        } else {
            (format!("router{position}"), NodeKind::Router, PathDirection::Reverse)
        };
        NodePlan { name, kind, position, addresses: port_addresses(plan, position, hops, way) }
    };
    (0..=hops).map(node).collect()
}

/// Addresses of the device of a path's node that sends this way.
fn port_addresses(plan: &AddressPlan, node: usize, hops: usize, towards: PathDirection) -> Option<Addresses> {
    let number = |number: usize| u8::try_from(number).ok();
    match (node, towards) {
        (0, _) => Some(plan.host(Side::Sender)),
        (node, _) if node == hops => Some(plan.host(Side::Receiver)),
        // The device that packets of the forward way come in by has the router's forward address.
        (node, PathDirection::Reverse) => plan.router(PathDirection::Forward, number(node)?),
        (node, PathDirection::Forward) => plan.router(PathDirection::Reverse, number(hops - node)?),
    }
}

/// Hosts have the same device as on every other path of ours.
fn device_name(node: usize, hops: usize, towards: PathDirection) -> String {
    let name = match towards {
        _ if node == 0 || node == hops => INTERFACE,
        PathDirection::Forward => "to-receiver",
        PathDirection::Reverse => "to-sender",
    };
    name.to_owned()
}

/// The largest packet that a flow's hosts may send: any, for the path's own MTUs are to be met on
/// the path.
fn crossed_mtu(scenario: &Scenario, way: PathDirection) -> u16 {
    scenario.hops(way).iter().map(|hop| hop.mtu).max().unwrap_or(1500)
}

/// Locally administered (the second bit of the first octet), and the same in every run.
fn mac(node: usize, port: u8) -> [u8; 6] {
    let [high, low] = u16::try_from(node).unwrap_or(u16::MAX).to_be_bytes();
    [0x02, b'n', b'w', high, low, port]
}

#[cfg(test)]
mod tests;
