//! The steps in which a lab is built.

use std::sync::Arc;
use std::time::Duration;

use narrows_scenario::{Arrivals, Cross, PathDirection, Scenario, SizeMix};
use narrows_units::BitRate;

use super::describe::{self, DeviceDescription, LabDescription, NodeDescription};
use super::kind::NodeKind;
use super::layout::{Cable, CableKind, Layout};
use super::shaper::Shaper;
use super::state::{self, Claim, LabId};
use super::{flows, sysctl, wiring};
use crate::error::LabError;
use crate::link::{EngineOptions, LinkEngine, LinkSpec, PortSpec};
use crate::namespace::Namespace;
use crate::node::Node;
use crate::placement::Placement;

/// The shapers of all cables: node, device and what it does.
pub(super) fn shapers(scenario: &Scenario, layout: &Layout) -> Vec<(usize, String, Shaper)> {
    let mut found = Vec::new();
    for cable in &layout.cables {
        let CableKind::Hop { part, .. } = cable.kind else {
            continue;
        };
        for (way, end) in [(PathDirection::Forward, &cable.ends[0]), (PathDirection::Reverse, &cable.ends[1])] {
            let shaper = part.segment(way).and_then(|segment| Shaper::of(scenario, way, segment));
            found.extend(shaper.map(|shaper| (end.node, end.device.clone(), shaper)));
        }
    }
    found
}

/// Takes the lab's name and writes down what it is going to make.
pub(super) fn claim(
    layout: &Layout,
    id: Option<&LabId>,
    held: bool,
    placement: Option<&Placement>,
) -> Result<Claim, LabError> {
    let mut claim = Claim::take(id, held)?;
    if state::is_root_of_the_machine() {
        let id = claim.state.id.clone();
        claim.state.namespaces = layout.nodes.iter().map(|node| id.namespace(&node.name)).collect();
    }
    claim.state.path_cpu = placement.and_then(Placement::path_cpu);
    claim.save()?;
    Ok(claim)
}

/// Makes the namespaces, marks them, and writes down their numbers before anything can run inside.
pub(super) fn make_nodes(
    layout: &Layout,
    claim: &mut Claim,
    placement: Option<&Placement>,
) -> Result<Vec<Node>, LabError> {
    let mark = claim.state.mark();
    let mut nodes = Vec::with_capacity(layout.nodes.len());
    for (index, plan) in layout.nodes.iter().enumerate() {
        let name = claim.state.namespaces.get(index).cloned();
        let namespace = Arc::new(Namespace::create(&plan.name, name)?);
        let marked = namespace.mark(mark).and_then(|()| namespace.number());
        let number = marked.map_err(|source| {
            LabError::kernel(format!("marking the network namespace of the {}", plan.name), source)
        })?;
        claim.state.numbers.push(number);
        nodes.push(Node::new(plan.name.clone(), plan.addresses, namespace, placement));
    }
    claim.save()?;
    Ok(nodes)
}

/// Makes the settings of all kernels.
pub(super) fn settle(scenario: &Scenario, layout: &Layout, nodes: &[Node]) -> Result<(), LabError> {
    let ipv6 = crate::realtime::kernel_has_ipv6();
    for (plan, node) in layout.nodes.iter().zip(nodes) {
        let router = (plan.kind == NodeKind::Router).then(|| &scenario.forward[plan.position - 1].router);
        sysctl::apply(node, &sysctl::settings(plan.kind, router, ipv6))?;
    }
    Ok(())
}

/// Lays all cables; the engine plays those that are real-time.
pub(super) fn join(
    scenario: &Scenario,
    seed: u64,
    layout: &Layout,
    nodes: &[Node],
    options: EngineOptions,
) -> Result<Option<LinkEngine>, LabError> {
    let played = Arc::new(without_real_flows(scenario));
    let mut links = Vec::new();
    for cable in &layout.cables {
        match cable.kind {
            CableKind::Hop { part, .. } if cable.kind.is_real_time() => links.push(LinkSpec {
                name: link_name(layout, cable),
                scenario: Arc::clone(&played),
                seed,
                part,
                ends: cable.ends.each_ref().map(|port| PortSpec {
                    namespace: Arc::clone(nodes[port.node].namespace()),
                    device: port.device.clone(),
                    mtu: port.mtu,
                    mac: port.mac,
                }),
            }),
            CableKind::Hop { .. } | CableKind::Access => wiring::lay_cable(nodes, cable, scenario.offloads)?,
        }
    }
    if links.is_empty() {
        return Ok(None);
    }
    LinkEngine::create(links, options).map(Some)
}

fn link_name(layout: &Layout, cable: &Cable) -> String {
    let [near, remote] = cable.ends.each_ref().map(|port| layout.nodes[port.node].name.as_str());
    format!("{near}-{remote}")
}

/// The scenario without the cross traffic that real hosts carry. It keeps its place, since places
/// decide seeds, but never begins.
fn without_real_flows(scenario: &Scenario) -> Scenario {
    let mut played = scenario.clone();
    for (cross, original) in played.cross.iter_mut().zip(&scenario.cross) {
        if flows::generated_by_hosts(scenario, original) {
            let nothing =
                Cross::on_hop(original.first_hop, Arrivals::Cbr, BitRate::from_mbps(1), SizeMix::constant(1_500));
            *cross = Cross { until: Some(Duration::ZERO), ..nothing.way(original.way) };
        }
    }
    played
}

pub(super) fn describe(
    scenario: &Scenario,
    seed: u64,
    layout: &Layout,
    nodes: &[Node],
    claim: &Claim,
) -> LabDescription {
    let devices = |index: usize| {
        let ports = layout.ports(index).map(|port| DeviceDescription {
            name: port.device.clone(),
            mtu: port.mtu,
            offloads: scenario.offloads && !layout.is_played_by_engine(port),
            addresses: port.addresses.into_iter().flat_map(crate::plan::Addresses::all).collect(),
        });
        ports.collect()
    };
    let described = layout.nodes.iter().zip(nodes).enumerate().map(|(index, (plan, node))| NodeDescription {
        name: plan.name.clone(),
        kind: plan.kind.name().to_owned(),
        namespace: node.namespace_name().map(ToOwned::to_owned),
        path: node.namespace_path().display().to_string(),
        ipv4: plan.addresses.map(|addresses| addresses.ipv4),
        ipv6: plan.addresses.and_then(|addresses| addresses.ipv6),
        devices: devices(index),
    });
    let hops = describe::hops(scenario);
    LabDescription {
        schema: describe::SCHEMA,
        id: claim.state.id.to_string(),
        scenario: scenario.name.clone(),
        seed,
        process: claim.state.process,
        nodes: described.collect(),
        truth: describe::truth(scenario, &hops),
        hops,
        not_played: describe::not_played(scenario),
        real_flows: layout.flows(scenario),
    }
}
