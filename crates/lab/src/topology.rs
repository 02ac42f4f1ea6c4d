//! A scenario as real namespaces: one per host, router and layer-2 device, each with a kernel that
//! forwards, answers and bridges.
//!
//! ```text
//!  sender ─ path0 ▐link▌ to-sender ─ router1 ─ to-receiver ▐link▌ ▐switch1▌ … path0 ─ receiver
//!                             │
//!                    source1 ▐cable▌ path0 ── cross-1-source
//! ```
//!
//! Each hop is played by a link of the kind that the scenario names: the real-time engine
//! ([`crate::LinkEngine`]) between Ethernet devices, the kernel's own shaper on a virtual cable, or
//! a bare cable. Addresses are those of [`crate::AddressPlan`]; each device has its own of them,
//! with routes to every other and permanent neighbours, so that nothing is asked or announced on
//! the path. [`LabDescription`] says which hops are exact, how the others depart, and what of the
//! scenario is left out.

mod build;
mod calibrate;
mod describe;
mod enter;
mod flows;
mod kind;
mod layout;
mod shaper;
mod state;
mod sysctl;
mod wiring;

use std::time::{Duration, Instant};

use narrows_scenario::{PathDirection, Scenario};
use narrows_units::{BitRate, nanos};

pub use describe::{
    DeviceDescription, DirectionTruth, FlowDescription, HopDescription, LabDescription, NodeDescription,
    TruthDescription,
};
pub use enter::enter_node;
pub use flows::RealFlow;
pub use state::{
    FlowStatus, LabId, LabState, LinkStatus, clean_dead_labs, dead_labs, find, labs, log_file, programs_in,
};

use crate::error::LabError;
use crate::link::{EngineOptions, LinkEngine, PortKind};
use crate::meter::Meter;
use crate::node::Node;
use crate::placement::Placement;
use crate::timing_report::TimingReport;
use layout::Layout;
use state::Claim;

/// In which kernels have said what they say when their devices come up (each report of a group
/// twice or three times, a tick apart).
const SETTLING_NS: i64 = 60_000_000;

/// How a lab is built.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabOptions {
    /// Its name; `None`: the first free number.
    pub id: Option<LabId>,
    /// Seed of everything random; `None`: the scenario's own.
    pub seed: Option<u64>,
    /// Processor that real-time links are played on, and that programs started through [`Node`]
    /// keep off; `None`, or one that this process may not use: the last one it may.
    pub cpu: Option<usize>,
    /// What the ports of real-time links are made of.
    pub ports: PortKind,
    /// Whether the process that holds it does nothing else, and so may be ended by whoever ends the
    /// lab.
    pub held: bool,
    /// Whether hops that the kernel plays keep the rates that the scenario has for them. Otherwise
    /// each is calibrated: a second per hop and way.
    pub uncalibrated: bool,
}

/// A scenario, built. Dropping it ends the path and removes everything.
#[derive(Debug)]
pub struct Lab {
    // In the order in which they must go: the links, the namespaces, and last the file by which
    // others know of them.
    engine: Option<LinkEngine>,
    nodes: Vec<Node>,
    layout: Layout,
    scenario: Scenario,
    description: LabDescription,
    began: Instant,
    claim: Claim,
}

impl Lab {
    /// Builds the nodes, joins them, plays the warm-up, starts the clock and calibrates what the
    /// kernel plays.
    pub fn up(scenario: &Scenario, options: LabOptions) -> Result<Self, LabError> {
        let LabOptions { id, seed, cpu, ports, held, uncalibrated } = options;
        let engine_options = EngineOptions { cpu, ports, ..EngineOptions::default() };
        let layout = Layout::of(scenario, crate::realtime::kernel_has_ipv6())?;
        if ports == PortKind::Tap {
            crate::privilege::available()?;
        } else {
            crate::privilege::namespaces_available()?;
        }
        let shapers = build::shapers(scenario, &layout);
        if !shapers.is_empty() {
            shaper::have_tc()?;
        }
        for id in clean_dead_labs() {
            tracing::info!(id, "removed what a dead lab left");
        }
        let seed = seed.unwrap_or(scenario.seed);
        let real_time = layout.cables.iter().any(|cable| cable.kind.is_real_time());
        let placement = real_time.then(|| Placement::choose(cpu)).flatten();
        let mut claim = build::claim(&layout, id.as_ref(), held, placement.as_ref())?;
        let nodes = build::make_nodes(&layout, &mut claim, placement.as_ref())?;
        build::settle(scenario, &layout, &nodes)?;
        let engine = build::join(scenario, seed, &layout, &nodes, engine_options)?;
        for (index, node) in nodes.iter().enumerate() {
            wiring::set_up(&layout, index, node)?;
        }
        for (node, device, shaper) in &shapers {
            shaper::apply(&nodes[*node], device, shaper)?;
        }
        for (index, node) in nodes.iter().enumerate() {
            wiring::wait_until_devices_send(&layout, index, node)?;
        }
        let description = build::describe(scenario, seed, &layout, &nodes, &claim);
        let mut lab = Self { engine, nodes, layout, scenario: scenario.clone(), description, began: now(), claim };
        // Each hop alone, and so before the path's clock starts: schedules and traffic should not
        // be over when the user comes.
        if !uncalibrated {
            lab.calibrate()?;
        }
        if let Some(engine) = &mut lab.engine {
            narrows_net::clock::sleep_until_ns(narrows_net::clock::now_ns() + SETTLING_NS);
            engine.start()?;
        }
        lab.began = now();
        if !held {
            lab.publish_ready()?;
        }
        Ok(lab)
    }

    /// Lets other processes know that the lab is ready. A lab that is `held` is ready when its
    /// holder says so.
    pub fn publish_ready(&mut self) -> Result<(), LabError> {
        self.claim.state.description = Some(self.description.clone());
        self.claim.save()
    }

    /// What the path's clock shows: time since the scenario's begin. It started at the scenario's
    /// `warm_up`.
    pub fn path_time(&self) -> Duration {
        // The links' own clock, where there is one: it runs a little before the lab is ready.
        let began = self.engine.as_ref().and_then(LinkEngine::started);
        self.scenario.warm_up + began.unwrap_or(self.began).elapsed()
    }

    /// Its name.
    pub fn id(&self) -> &LabId {
        &self.claim.state.id
    }

    /// The node of this name: `sender`, `receiver`, `router1`, …, `switch1`, …, `cross-1-source`,
    /// `cross-1-sink`, …
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.layout.find(name).and_then(|index| self.nodes.get(index))
    }

    /// All nodes: sender, routers and receiver in the order of the forward way, then switches, then
    /// cross-traffic hosts.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The host at the beginning of the forward way.
    pub fn sender(&self) -> &Node {
        &self.nodes[0]
    }

    /// The host at its end.
    pub fn receiver(&self) -> &Node {
        &self.nodes[self.scenario.forward.len()]
    }

    /// What was built.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// What it says about itself.
    pub fn description(&self) -> LabDescription {
        self.description.clone()
    }

    /// Saturates every hop that the kernel plays, each way and alone, and takes what got through
    /// for its capacity.
    pub fn calibrate(&mut self) -> Result<(), LabError> {
        let hops = self.scenario.forward.len();
        for index in 0..self.description.hops.len() {
            let hop = &self.description.hops[index];
            if hop.exact {
                continue;
            }
            let forward = hop.direction == describe::way_name(PathDirection::Forward);
            let (from, to) =
                if forward { (hop.index, hop.index + 1) } else { (hops - hop.index, hops - hop.index - 1) };
            let Some(target) = self.facing(to, from) else { continue };
            let expected = BitRate::from_bps(hop.derived_capacity_bps);
            let found = calibrate::capacity(&self.nodes[from], &self.nodes[to], target, hop.ip_octets, expected)?;
            self.description.hops[index].calibrated_capacity_bps = found.map(BitRate::bps);
        }
        self.description.truth = describe::truth(&self.scenario, &self.description.hops);
        Ok(())
    }

    /// Cross traffic that only real hosts can carry: elastic, over several hops or through
    /// switches, over links that the kernel plays, or because the scenario says so. The nodes are
    /// there; nothing is sent yet.
    pub fn real_flows(&self) -> Vec<RealFlow> {
        let flows = self.description.real_flows.iter().filter_map(|flow| {
            Some(RealFlow {
                index: flow.cross,
                source: self.node(&flow.source)?.clone(),
                sink: self.node(&flow.sink)?.clone(),
                cross: self.scenario.cross.get(flow.cross)?.clone(),
            })
        });
        flows.collect()
    }

    /// Counts what of a flow crosses its last hop, by what its sink's devices receive, from now on.
    pub fn meter(&self, flow: &RealFlow) -> Result<Meter, LabError> {
        let last = self.scenario.hops(flow.cross.way).get(flow.cross.last_hop);
        Meter::start(&flow.sink, self.path_time(), last.map_or(Duration::ZERO, |hop| hop.delay))
    }

    /// How all real-time links did since this was asked before: the worst of each number, the sum
    /// of each count. Had valid timing only if each link did.
    pub fn take_timing_report(&self) -> Result<TimingReport, LabError> {
        let links = self.engine.as_ref().map_or(0, |engine| engine.links().len());
        let reports: Result<Vec<TimingReport>, LabError> =
            (0..links).map(|link| self.link_timing_report(link)).collect();
        Ok(TimingReport::joined(reports?, self.began.elapsed()))
    }

    /// Looks how each real-time link did since this was asked before, and lets other processes
    /// know, for `narrows lab status`; also what the caller says of the real flows, which are its
    /// own.
    pub fn publish_status(&mut self, flows: Vec<FlowStatus>) -> Result<(), LabError> {
        let links = self.engine.as_ref().map_or(0, |engine| engine.links().len());
        let mut statuses = Vec::with_capacity(links);
        for link in 0..links {
            let timing_report = self.link_timing_report(link)?;
            let name = self.engine.as_ref().map(|engine| engine.links()[link].name.clone());
            let before = self.claim.state.links.get(link).map_or(0, |status| status.lapses);
            statuses.push(LinkStatus {
                name: name.unwrap_or_default(),
                watched_ns: nanos(timing_report.ran),
                releases: timing_report.releases,
                late_ns_p50: timing_report.late_p50_ns,
                late_ns_p99: timing_report.late_p99_ns,
                timing_valid: timing_report.timing_valid(),
                lapses: before + u64::from(!timing_report.timing_valid()),
            });
        }
        self.claim.state.links = statuses;
        self.claim.state.flows = flows;
        self.claim.save()
    }

    /// Ends it, removes everything, and says how the links did since they were asked last.
    pub fn down(mut self) -> Result<TimingReport, LabError> {
        let reports = match self.engine.take() {
            Some(engine) => engine.stop()?,
            None => Vec::new(),
        };
        Ok(TimingReport::joined(reports, self.began.elapsed()))
    }

    fn link_timing_report(&self, link: usize) -> Result<TimingReport, LabError> {
        match &self.engine {
            Some(engine) => engine.take_timing_report(link),
            None => Ok(TimingReport::joined(Vec::new(), Duration::ZERO)),
        }
    }

    /// The IPv4 address of a node's device towards its neighbour.
    fn facing(&self, node: usize, neighbour: usize) -> Option<std::net::Ipv4Addr> {
        self.layout.facing(neighbour, node)?.addresses.map(|addresses| addresses.ipv4)
    }
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "how long a lab has lived is a matter of the real clock")]
    Instant::now()
}
