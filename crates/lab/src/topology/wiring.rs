//! Makes the layout's cables, bridges, addresses, neighbours and routes in the nodes' kernels.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use nix::net::if_::if_nametoindex;
use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::packet_route::neighbour::NeighbourState;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteMetric, RouteScope};
use rtnetlink::{Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};

use super::kind::NodeKind;
use super::layout::{Cable, Layout, Neighbour, Port, Route};
use crate::error::LabError;
use crate::namespace::netlink;
use crate::node::Node;

/// The bridge in each switch.
const BRIDGE: &str = "bridge0";
/// Packets that a virtual cable's device keeps: none beyond the shaper's own queue, which is the
/// scenario's. A device without a qdisc has no queue anyhow.
const VETH_QUEUE_PACKETS: u32 = 1_000;

/// Lays a virtual cable: a device in each of two nodes, with or without what a kernel usually
/// leaves to a device.
pub(crate) fn lay_cable(nodes: &[Node], cable: &Cable, offloads: bool) -> Result<(), LabError> {
    let [near, remote] = &cable.ends;
    let (here, there) = (&nodes[near.node], &nodes[remote.node]);
    let doing = || format!("laying a cable from {} to {}", here.name(), there.name());
    let peer =
        end(LinkMessageBuilder::<LinkUnspec>::new(), remote).setns_by_fd(there.namespace().file().as_raw_fd()).build();
    let message = end(LinkVeth::new(&near.device, &remote.device), near)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .build();
    here.run(|| netlink(async |handle| handle.link().add(message).execute().await))?
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

fn end<T>(message: LinkMessageBuilder<T>, port: &Port) -> LinkMessageBuilder<T> {
    message.name(port.device.clone()).mtu(u32::from(port.mtu)).address(port.mac.to_vec()).txqueuelen(VETH_QUEUE_PACKETS)
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

fn bridge(layout: &Layout, index: usize) -> io::Result<()> {
    // No spanning tree and nobody asked for groups: it forwards at once and says nothing of its
    // own.
    let message = LinkBridge::new(BRIDGE).mcast_snooping(false).up().build();
    netlink(async |handle| handle.link().add(message).execute().await)?;
    let bridge = if_nametoindex(BRIDGE)?;
    for port in layout.ports(index) {
        let message = LinkUnspec::new_with_name(&port.device).controller(bridge).up().build();
        netlink(async |handle| handle.link().set(message).execute().await)?;
    }
    Ok(())
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
    netlink(async |handle| {
        for &(port, number) in &devices {
            raise(handle, port, number).await?;
        }
        for neighbour in layout.neighbours(index) {
            introduce(handle, &neighbour, number(&neighbour.device)).await?;
        }
        let routes = layout.routes(index);
        // The ways to neighbours first: the others lead over them.
        let (near, remote): (Vec<&Route>, Vec<&Route>) = routes.iter().partition(|route| route.to == route.via);
        for route in near.into_iter().chain(remote) {
            handle.route().add(message(route, number(&route.device))).execute().await?;
        }
        Ok(())
    })
}

async fn raise(handle: &Handle, port: &Port, number: u32) -> Result<(), rtnetlink::Error> {
    if let Some(addresses) = port.addresses {
        let add = |address: IpAddr, length| handle.address().add(number, address, length).execute();
        add(addresses.ipv4.into(), 32).await?;
        if let Some(ipv6) = addresses.ipv6 {
            add(ipv6.into(), 128).await?;
        }
    }
    let up = LinkUnspec::new_with_index(number).up().build();
    handle.link().set(up).execute().await
}

async fn introduce(handle: &Handle, neighbour: &Neighbour, number: u32) -> Result<(), rtnetlink::Error> {
    handle
        .neighbours()
        .add(number, neighbour.address)
        .link_layer_address(&neighbour.mac)
        .state(NeighbourState::Permanent)
        .execute()
        .await
}

fn message(route: &Route, number: u32) -> RouteMessage {
    let direct = route.to == route.via;
    let mut message = match route.to {
        IpAddr::V4(to) => {
            let builder = RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(to, 32).output_interface(number);
            match route.via {
                IpAddr::V4(via) if !direct => builder.gateway(via).onlink().build(),
                _ => builder.scope(RouteScope::Link).build(),
            }
        }
        IpAddr::V6(to) => {
            let builder = RouteMessageBuilder::<Ipv6Addr>::new().destination_prefix(to, 128).output_interface(number);
            match route.via {
                IpAddr::V6(via) if !direct => builder.gateway(via).onlink().build(),
                _ => builder.build(),
            }
        }
    };
    if let Some(mtu) = route.mtu {
        let metrics = RouteAttribute::Metrics(vec![RouteMetric::Mtu(u32::from(mtu))]);
        message.attributes.push(metrics);
    }
    message
}
