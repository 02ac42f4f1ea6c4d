//! What a lab says about itself: its nodes, how exactly each hop is played, what is not played, and
//! the truth.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use narrows_scenario::{Cross, GeneratedBy, Jitter, Link, Loss, PathDirection, Router, Scenario, Source};
use narrows_sim::Segment;
use narrows_units::BitRate;
use serde::{Deserialize, Serialize};

use super::flows::cannot_be_virtual;
use super::shaper::Shaper;
use super::sysctl;
use crate::realtime;

/// Version of the document.
pub(crate) const SCHEMA: u32 = 1;

/// A lab's description: what `narrows lab up --json` prints. Rates are bit/s, times nanoseconds;
/// hops count from 0 in the order of their way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabDescription {
    /// Version of this document's form.
    pub schema: u32,
    /// The lab's name.
    pub id: String,
    /// The scenario's name.
    pub scenario: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Process that holds the lab.
    pub process: u32,
    /// Every namespace.
    pub nodes: Vec<NodeDescription>,
    /// Every hop, each way.
    pub hops: Vec<HopDescription>,
    /// What of the scenario is not played, in words.
    pub not_played: Vec<String>,
    /// Cross traffic that real hosts are there to carry.
    pub real_flows: Vec<FlowDescription>,
    /// What a perfect estimator would say.
    pub truth: TruthDescription,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDescription {
    /// `sender`, `router1`, …
    pub name: String,
    /// `sender`, `router`, `receiver`, `switch`, `source` or `sink`.
    pub kind: String,
    /// The name for `ip netns exec`; `None` if the namespace is anonymous.
    pub namespace: Option<String>,
    /// A file that stands for the namespace as long as the lab lives.
    pub path: String,
    /// By which the others know it; switches have none.
    pub ipv4: Option<Ipv4Addr>,
    /// Likewise.
    pub ipv6: Option<Ipv6Addr>,
    /// Its devices.
    pub devices: Vec<DeviceDescription>,
}

/// A device of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDescription {
    /// Its name in the node.
    pub name: String,
    /// In IP octets.
    pub mtu: u16,
    /// Whether its kernel leaves work to it: segments sent as one, checksums not computed.
    #[serde(default)]
    pub offloads: bool,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// One hop of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HopDescription {
    /// `forward` or `reverse`.
    pub direction: String,
    /// From 0.
    pub index: usize,
    /// The scenario's name for it.
    pub name: String,
    /// Node that sends into it.
    pub from: String,
    /// Node that it leads to.
    pub to: String,
    /// Layer-2 devices inside it.
    pub switches: usize,
    /// `real_time`, `tbf`, `htb` or `veth`.
    pub kind: String,
    /// Whether what happens is what the scenario says, packet by packet, as far as the lab had
    /// valid timing.
    pub exact: bool,
    /// Why, and how what happens departs.
    pub why: Vec<String>,
    /// IP octets of the packets for which the capacities hold: the hop's MTU.
    pub ip_octets: u16,
    /// IP-layer capacity by the scenario.
    pub derived_capacity_bps: u64,
    /// IP-layer capacity that a saturating reference run found; `None` if none was made, as on
    /// real-time links.
    pub calibrated_capacity_bps: Option<u64>,
}

/// A flow of cross traffic that real hosts are there to carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowDescription {
    /// Which of the scenario's cross traffic it is, from 0.
    pub cross: usize,
    /// Node.
    pub source: String,
    /// Node.
    pub sink: String,
}

/// The truth each way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruthDescription {
    /// From sender to receiver.
    pub forward: DirectionTruth,
    /// From receiver to sender.
    pub reverse: DirectionTruth,
    /// Of a packet of 64 octets and its answer on the idle path, as far as it is played; without
    /// what the kernels themselves take.
    pub base_rtt_ns: u64,
}

/// The truth of one way, for packets of the path's MTU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionTruth {
    /// Largest IP packet that crosses; the packet size of the rates below.
    pub path_mtu: u16,
    /// IP-layer capacity: the calibrated one where a hop has one, else the derived one.
    pub capacity_bps: u64,
    /// IP-layer capacity by the scenario alone.
    pub derived_capacity_bps: u64,
    /// What the scenario's traffic leaves of it; `None` beside elastic flows.
    pub available_bps: Option<u64>,
    /// Whether a reference run decided `capacity_bps`.
    pub calibrated: bool,
}

/// The hops of both ways, before calibration.
pub(crate) fn hops(scenario: &Scenario) -> Vec<HopDescription> {
    let ways = [PathDirection::Forward, PathDirection::Reverse];
    ways.into_iter().flat_map(|way| (0..scenario.hops(way).len()).map(move |index| hop(scenario, way, index))).collect()
}

fn hop(scenario: &Scenario, way: PathDirection, index: usize) -> HopDescription {
    let hops = scenario.hops(way);
    let hop = &hops[index];
    let name = |position: usize| match position {
        0 => "sender".to_owned(),
        last if last == hops.len() => "receiver".to_owned(),
        router => format!("router{router}"),
    };
    let (from, to) = match way {
        PathDirection::Forward => (index, index + 1),
        PathDirection::Reverse => (hops.len() - index, hops.len() - index - 1),
    };
    let (exact, mut why) = exactness(scenario, way, index);
    if scenario.offloads && hop.link != Link::RealTime {
        why.push(
            "offloads are on: the kernel may pass several segments as one packet, also through the queue".to_owned(),
        );
    }
    HopDescription {
        direction: way_name(way).to_owned(),
        index,
        name: hop.name.clone(),
        from: name(from),
        to: name(to),
        switches: hop.layer2.len(),
        kind: hop.link.name().to_owned(),
        exact,
        why,
        ip_octets: hop.mtu,
        derived_capacity_bps: scenario.truth(way).hop_capacity(index, hop.mtu).map_or(0, BitRate::bps),
        calibrated_capacity_bps: None,
    }
}

fn exactness(scenario: &Scenario, way: PathDirection, index: usize) -> (bool, Vec<String>) {
    let hop = &scenario.hops(way)[index];
    match hop.link {
        Link::RealTime => (
            true,
            vec!["the scenario's own model against the real clock; the lab says how late it was".to_owned()],
        ),
        Link::Veth => (
            false,
            vec![
                "a cable as fast as this machine; the calibrated rate is what one sending thread got through it, a lower bound"
                    .to_owned(),
            ],
        ),
        Link::Tbf(_) | Link::Htb(_) => {
            let mut why = vec![format!(
                "Linux's {}; the calibrated rate is what a saturating run got through it",
                hop.link.name()
            )];
            for segment in Segment::of_hop(scenario, way, index) {
                let Some(shaper) = Shaper::of(scenario, way, segment) else {
                    continue;
                };
                let place = segment.device.map_or(String::new(), |device| format!("device {device}: "));
                why.extend(shaper.departures().into_iter().map(|text| format!("{place}{text}")));
            }
            (false, why)
        }
    }
}

/// What of this scenario a lab of this layout does not play.
pub(crate) fn not_played(scenario: &Scenario) -> Vec<String> {
    let mut left_out = realtime::not_played(scenario);
    for (host, side) in [(&scenario.sender, "sender"), (&scenario.receiver, "receiver")] {
        if host.interface_rate.is_some() {
            left_out.push(format!("interface rate of the {side}"));
        }
    }
    let real_time = |hop: &narrows_scenario::Hop| hop.link == Link::RealTime;
    if scenario.offloads && scenario.forward.iter().chain(&scenario.reverse).any(real_time) {
        left_out.push("offloads of real-time links, which count every packet".to_owned());
    }
    for way in [PathDirection::Forward, PathDirection::Reverse] {
        for index in 0..scenario.hops(way).len() {
            let place = format!("{} hop {index}", way_name(way));
            let parts = unplayed_link(scenario, way, index);
            left_out.extend(parts.into_iter().map(|part| format!("{place}: {part}")));
        }
    }
    let hops = scenario.forward.len();
    for position in 1..hops {
        let router = &scenario.forward[position - 1].router;
        let parts = unplayed_router(router, &scenario.reverse[hops - position - 1].router);
        left_out.extend(parts.into_iter().map(|part| format!("router{position}: {part}")));
    }
    for (index, cross) in scenario.cross.iter().enumerate() {
        left_out.extend(unplayed_cross(scenario, index, cross));
    }
    left_out
}

/// What shapers and bare cables leave out of a hop.
fn unplayed_link(scenario: &Scenario, way: PathDirection, index: usize) -> Vec<String> {
    let hop = &scenario.hops(way)[index];
    if hop.link == Link::RealTime {
        return Vec::new();
    }
    let bare = hop.link == Link::Veth;
    let policer = hop.bucket.is_some_and(|bucket| bucket.queue.is_none());
    let delay = hop.delay + hop.layer2.iter().map(|device| device.delay).sum::<std::time::Duration>();
    let parts = [
        (bare, "rate".to_owned()),
        (bare, "queue".to_owned()),
        (bare && hop.bucket.is_some_and(|bucket| bucket.queue.is_some()), "shaper".to_owned()),
        (policer, "policer".to_owned()),
        (!delay.is_zero(), format!("delay of {}", narrows_units::format_duration(delay))),
        (hop.loss != Loss::None, "loss".to_owned()),
        (hop.jitter != Jitter::None, "jitter".to_owned()),
        (hop.reorder.is_some(), "reordering".to_owned()),
        (!hop.schedule.is_empty(), "schedule of rates".to_owned()),
    ];
    let named = parts.into_iter().filter(|(left_out, _)| *left_out);
    named.map(|(_, part)| format!("{part} ({} link)", hop.link.name())).collect()
}

fn unplayed_router(router: &Router, reverse: &Router) -> Vec<String> {
    let usual = Router::default();
    let mut parts = Vec::new();
    if router.icmp_delay != usual.icmp_delay {
        parts.push("time to answer; Linux takes what it takes".to_owned());
    }
    if router.icmp_jitter != usual.icmp_jitter {
        parts.push("variation of the time to answer".to_owned());
    }
    if router.icmp_max_octets != usual.icmp_max_octets {
        parts.push("length of answers; Linux quotes up to 576 octets (IPv6: 1280)".to_owned());
    }
    parts.extend(sysctl::departure(router));
    if router != reverse {
        parts.push(
            "the way back's own limit of answers; one kernel answers both ways, as the forward way says".to_owned(),
        );
    }
    parts
}

fn unplayed_cross(scenario: &Scenario, index: usize, cross: &Cross) -> Vec<String> {
    let mut parts = Vec::new();
    if cross.generated_by == Some(GeneratedBy::Virtual) && cannot_be_virtual(scenario, cross) {
        parts.push(format!("cross {index}: virtual packets; only real hosts can carry it here"));
    }
    if matches!(&cross.source, Source::Elastic(elastic) if !elastic.extra_rtt.is_zero()) {
        parts.push(format!("cross {index}: round-trip time outside the path"));
    }
    parts
}

/// The truth, from the scenario and what calibration found.
pub(crate) fn truth(scenario: &Scenario, hops: &[HopDescription]) -> TruthDescription {
    TruthDescription {
        forward: way_truth(scenario, PathDirection::Forward, hops),
        reverse: way_truth(scenario, PathDirection::Reverse, hops),
        base_rtt_ns: u64::try_from(base_rtt(scenario).as_nanos()).unwrap_or(u64::MAX),
    }
}

fn way_truth(scenario: &Scenario, way: PathDirection, hops: &[HopDescription]) -> DirectionTruth {
    let truth = scenario.truth(way);
    let mtu = truth.path_mtu();
    let derived = truth.capacity(mtu).bps();
    let mut capacity: Option<(u64, bool)> = None;
    let mut available: Option<u64> = Some(u64::MAX);
    for hop in hops.iter().filter(|hop| hop.direction == way_name(way)) {
        let derived = truth.hop_capacity(hop.index, mtu).map_or(0, BitRate::bps);
        let found = hop.calibrated_capacity_bps.map(|rate| at_size(rate, &scenario.hops(way)[hop.index], mtu));
        let rate = found.unwrap_or(derived);
        if capacity.is_none_or(|(least, _)| rate < least) {
            capacity = Some((rate, found.is_some()));
        }
        let here = truth.utilisation(hop.index).and_then(|load| {
            // A bare cable's load counts against what it can carry, not against the rate that the
            // scenario has for it.
            let load = if derived == 0 { load } else { load * derived as f64 / rate.max(1) as f64 };
            Some(BitRate::from_bps(rate).scaled((1.0 - load).max(0.0))?.bps())
        });
        available = available.zip(here).map(|(least, here)| least.min(here));
    }
    let (capacity_bps, calibrated) = capacity.unwrap_or((derived, false));
    DirectionTruth { path_mtu: mtu, capacity_bps, derived_capacity_bps: derived, available_bps: available, calibrated }
}

/// A calibrated rate was found with packets of the hop's MTU; at the path's MTU the link's framing
/// weighs more.
fn at_size(rate: u64, hop: &narrows_scenario::Hop, mtu: u16) -> u64 {
    if hop.mtu == mtu || hop.bucket.is_some() || hop.link == Link::Veth {
        return rate;
    }
    let share = |octets: u16| f64::from(octets) / f64::from(hop.framing.wire_octets(u32::from(octets)));
    let scaled = BitRate::from_bps(rate).scaled(share(mtu) / share(hop.mtu));
    scaled.map_or(rate, BitRate::bps)
}

/// Round trip of a packet of 64 octets over what is played of the idle path: tokens are there when
/// an idle shaper's packet comes, and a bare cable is as fast as the machine, so neither holds it
/// up; nor do the hosts' interfaces.
fn base_rtt(scenario: &Scenario) -> std::time::Duration {
    let mut played = scenario.clone();
    for (hops, host) in [(&mut played.forward, &mut played.sender), (&mut played.reverse, &mut played.receiver)] {
        hops.retain(|hop| hop.link == Link::RealTime);
        host.interface_rate = None;
    }
    played.truth(PathDirection::Forward).base_rtt(64, 64)
}

pub(crate) const fn way_name(way: PathDirection) -> &'static str {
    match way {
        PathDirection::Forward => "forward",
        PathDirection::Reverse => "reverse",
    }
}
