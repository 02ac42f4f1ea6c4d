//! Makes the layout's cables, bridges, addresses, neighbours and routes in the nodes' kernels.

use std::io;
use std::os::fd::AsRawFd;

use narrows_net::clock;
use nix::net::if_::if_nametoindex;

use super::kind::NodeKind;
use super::layout::{Cable, Layout, Port, Route};
use crate::error::LabError;
use crate::netlink::{HostRoute, Link, Netlink};
use crate::node::Node;

/// The bridge in each switch.
const BRIDGE: &str = "bridge0";
/// Packets that a virtual cable's device keeps: none beyond the shaper's own queue, which is the
/// scenario's. A device without a qdisc has no queue anyhow.
const VETH_QUEUE_PACKETS: u32 = 1_000;
/// How long a device is waited for: the kernel's thread that sees carriers may be kept off a busy
/// processor, and looks once a second at some of them.
const LONGEST_WAIT_NS: i64 = 10_000_000_000;
const LOOK_EVERY_NS: i64 = 1_000_000;

/// Lays a virtual cable: a device in each of two nodes, with or without what a kernel usually
/// leaves to a device.
pub(crate) fn lay_cable(nodes: &[Node], cable: &Cable, offloads: bool) -> Result<(), LabError> {
    let [near, remote] = &cable.ends;
    let (here, there) = (&nodes[near.node], &nodes[remote.node]);
    let doing = || format!("laying a cable from {} to {}", here.name(), there.name());
    let peer = end(remote).within(there.namespace().file().as_raw_fd());
    here.run(|| Netlink::open()?.add(&end(near).cable_to(&peer)))?
        .map_err(|source| LabError::kernel(doing(), source))?;
    if offloads {
        return Ok(());
    }
    for (node, port) in [(here, near), (there, remote)] {
        node.run(|| narrows_net::host::turn_off_offloads(&port.device))?
            .map_err(|source| LabError::kernel(format!("{}: switching offloads off", doing()), source))?;
    }
    Ok(())
}

fn end(port: &Port) -> Link {
    Link::named(&port.device).mtu(port.mtu).mac(&port.mac).queue_packets(VETH_QUEUE_PACKETS)
}

/// Sets a node up: devices, then whom it knows and how it gets to everybody else.
pub(crate) fn set_up(layout: &Layout, index: usize, node: &Node) -> Result<(), LabError> {
    let doing = || format!("setting up the {}", node.name());
    let done = if layout.nodes[index].kind == NodeKind::Switch {
        node.run(|| bridge(layout, index))?
    } else {
        node.run(|| host(layout, index))?
    };
    done.map_err(|source| LabError::kernel(doing(), source))
}

/// Waits until each device of a node sends what it is given.
pub(crate) fn wait_until_devices_send(layout: &Layout, index: usize, node: &Node) -> Result<(), LabError> {
    let doing = |device: &str| format!("waiting for the device {device} of the {}", node.name());
    for port in layout.ports(index) {
        let waited = node.run(|| -> io::Result<()> {
            let (netlink, number) = (Netlink::open()?, if_nametoindex(port.device.as_str())?);
            let latest = clock::now_ns() + LONGEST_WAIT_NS;
            while !netlink.sends(number)? {
                if clock::now_ns() > latest {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                clock::sleep_until_ns(clock::now_ns() + LOOK_EVERY_NS);
            }
            Ok(())
        })?;
        waited.map_err(|source| LabError::kernel(doing(&port.device), source))?;
    }
    Ok(())
}

fn bridge(layout: &Layout, index: usize) -> io::Result<()> {
    // No spanning tree and nobody asked for groups: it forwards at once and says nothing of its
    // own.
    let netlink = Netlink::open()?;
    netlink.add(&Link::bridge(BRIDGE).up())?;
    let bridge = if_nametoindex(BRIDGE)?;
    layout.ports(index).try_for_each(|port| netlink.set(&Link::named(&port.device).port_of(bridge).up()))
}

fn host(layout: &Layout, index: usize) -> io::Result<()> {
    let mut devices = Vec::new();
    for port in layout.ports(index) {
        devices.push((port, if_nametoindex(port.device.as_str())?));
    }
    let number = |device: &str| {
        let found = devices.iter().find(|(port, _)| port.device == device);
        found.map_or(0, |&(_, number)| number)
    };
    let netlink = Netlink::open()?;
    for &(port, number) in &devices {
        raise(&netlink, port, number)?;
    }
    for neighbour in layout.neighbours(index) {
        netlink.add_neighbour(number(&neighbour.device), neighbour.address, &neighbour.mac)?;
    }
    let routes = layout.routes(index);
    // The ways to neighbours first: the others lead over them.
    let (near, remote): (Vec<&Route>, Vec<&Route>) = routes.iter().partition(|route| route.to == route.via);
    for route in near.into_iter().chain(remote) {
        netlink.add_route(&host_route(route, number(&route.device)))?;
    }
    Ok(())
}

fn raise(netlink: &Netlink, port: &Port, number: u32) -> io::Result<()> {
    if let Some(addresses) = port.addresses {
        netlink.add_address(number, addresses.ipv4.into(), 32)?;
        if let Some(ipv6) = addresses.ipv6 {
            netlink.add_address(number, ipv6.into(), 128)?;
        }
    }
    netlink.set(&Link::numbered(number).up())
}

fn host_route(route: &Route, interface: u32) -> HostRoute {
    let via = (route.to != route.via).then_some(route.via);
    HostRoute { to: route.to, via, interface, mtu: route.mtu.map(u32::from) }
}
