//! What `narrows host` prints: what the hosts can do, and what can be measured with them.
//!
//! [`HostDocument`] is plain data; its JSON form is the machine contract ([`crate::schema::HOST`]),
//! [`text`](HostDocument::text) renders the same for people. `None` is *unknown*: what a host does
//! not tell and nobody could measure is said to be so.

mod table;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use text::name;

use std::time::Duration;

use narrows_diagnose::advice::HostEnvironment;
use narrows_diagnose::host::{
    CaptureMeasured, CaptureRate, Ceiling, Coalescing, Costs, End, Ends, FamilyRow, Fix, HostFamily, Inventory, Noise,
    Path, usable,
};
use narrows_probe::{HostFacts, StampSource};
use narrows_units::{BitRate, nanos};
use serde::Serialize;

use crate::document::{Note, Problem, Target};
use crate::schema;

/// The whole result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostDocument {
    /// Name and version of the schema that this document follows.
    pub schema: &'static str,
    /// The program.
    pub tool: &'static str,
    /// Its version.
    pub version: String,
    /// When it began, RFC 3339.
    pub started_at: Option<String>,
    /// The remote host, if one was asked.
    pub target: Option<Target>,
    /// The path's rate, for which families are judged.
    pub rate_bps: Option<u64>,
    /// How that is known.
    pub rate_from: RateFrom,
    /// Largest IP packet.
    pub ip_octets: u16,
    /// Which families of methods the hosts can carry from here to the remote host (or to one like
    /// this).
    pub families: Vec<FamilyRow>,
    /// The same from the remote host to here.
    pub reverse_families: Option<Vec<FamilyRow>>,
    /// The family to use, and up to what rate.
    pub usable: Option<UsableRow>,
    /// What can pass between a program here and the wire: the least of `ceilings` for sending and
    /// receiving.
    pub ceiling_bps: Option<u64>,
    /// How that was worked out, per path through the host, with what was measured beside it.
    pub ceilings: Vec<Ceiling>,
    /// What both hosts can carry with full-size packets.
    pub host_rate_bps: Option<u64>,
    /// The hosts are slower than the path and a fifth.
    pub is_bottleneck: Option<bool>,
    /// This host.
    pub near: NearHost,
    /// The peer.
    pub remote: Option<RemoteHost>,
    /// How quiet this host was meanwhile.
    pub noise: Noise,
    /// What a capture takes, if asked for.
    pub capture: Option<CaptureRow>,
    /// What could be set otherwise, if asked for.
    pub fixes: Option<Vec<Fix>>,
    /// What the reader must know first.
    pub notes: Vec<Note>,
    /// What went wrong on the way.
    pub error: Option<Problem>,
}

/// How the path's rate is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateFrom {
    /// The user said so.
    Given,
    /// The slower link of the two hosts: no path is faster.
    Links,
    /// It is not.
    Unknown,
}

/// The family that goes highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UsableRow {
    /// Which.
    pub family: HostFamily,
    /// Up to this rate.
    pub max_rate_bps: u64,
}

/// This host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NearHost {
    /// What it says of itself.
    pub inventory: Inventory,
    /// What was measured of it.
    pub costs: Costs,
    /// What methods are told of it.
    pub facts: FactsRow,
}

/// The remote host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemoteHost {
    /// What it says that it can do.
    pub facts: FactsRow,
    /// How packets of ours reach its program.
    pub coalescing: Option<Coalescing>,
    /// How it says that it is set up; `null` if it does not tell.
    pub settings: Option<HostEnvironment>,
}

/// [`HostFacts`] in whole nanoseconds and bits per second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactsRow {
    /// Sending one full-size datagram.
    pub send_cost_ns: u64,
    /// Receiving one.
    pub receive_cost_ns: u64,
    /// Smallest non-zero difference of two clock readings.
    pub clock_resolution_ns: u64,
    /// 99th percentile less median of the error of one receive stamp.
    pub stamp_error_ns: u64,
    /// Source of receive stamps.
    pub stamp_source: StampSource,
    /// Smallest gap that can be paced.
    pub min_gap_ns: u64,
    /// Highest rate of full-size packets.
    pub max_send_rate_bps: Option<u64>,
    /// Negotiated rate of the link.
    pub interface_rate_bps: Option<u64>,
    /// The interface has no wire of its own.
    pub virtual_interface: bool,
}

impl From<&HostFacts> for FactsRow {
    fn from(facts: &HostFacts) -> Self {
        Self {
            send_cost_ns: nanos(facts.send_cost),
            receive_cost_ns: nanos(facts.receive_cost),
            clock_resolution_ns: nanos(facts.clock_resolution),
            stamp_error_ns: nanos(facts.stamp_error),
            stamp_source: facts.stamp_source,
            min_gap_ns: nanos(facts.min_gap),
            max_send_rate_bps: facts.max_send_rate.map(BitRate::bps),
            interface_rate_bps: facts.interface_rate.map(BitRate::bps),
            virtual_interface: facts.virtual_interface,
        }
    }
}

/// What a capture on this host takes without loss.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaptureRow {
    /// Octets that are kept of each frame.
    pub snap_octets: u32,
    /// Octets of the IP packets.
    pub ip_octets: u32,
    /// The best that is known: what was measured, or no more than what memory allows.
    pub rate_bps: Option<u64>,
    /// The same in packets.
    pub packets_per_second: Option<f64>,
    /// `measured`, `at_least` (nothing was lost as fast as this host sends), `at_most` (by the
    /// model alone) or `unknown`.
    pub verdict: &'static str,
    /// What was measured on loopback.
    pub measured: Option<CaptureMeasured>,
    /// Why it was not.
    pub unknown: Option<String>,
    /// What memory allows.
    pub model: Option<CaptureRate>,
    /// The buffer to begin with: half the largest cache.
    pub buffer_octets: Option<u64>,
}

/// What was found, before it is judged.
#[derive(Debug, Clone)]
pub struct HostFindings {
    /// The program's version.
    pub version: String,
    /// When it began.
    pub started_at: Option<String>,
    /// The remote host.
    pub target: Option<Target>,
    /// The path's rate, if the user said.
    pub rate: Option<BitRate>,
    /// Largest IP packet.
    pub ip_octets: u16,
    /// What this host says of itself.
    pub inventory: Inventory,
    /// What was measured of it.
    pub costs: Costs,
    /// What methods are told of it.
    pub near: HostFacts,
    /// The remote host.
    pub remote: Option<RemoteFindings>,
    /// Share of this host's processor time that was stolen meanwhile.
    pub steal_ratio: Option<f64>,
}

/// What was found of the remote host.
#[derive(Debug, Clone)]
pub struct RemoteFindings {
    /// What it says that it can do.
    pub facts: HostFacts,
    /// How packets of ours reach its program.
    pub coalescing: Option<Coalescing>,
    /// How it says that it is set up; `None` if it does not tell.
    pub settings: Option<HostEnvironment>,
}

impl HostDocument {
    /// Judges what was found. Without a remote host, one like this is thought of.
    pub fn new(found: HostFindings) -> Self {
        let ceilings = ceilings(&found);
        let ceiling = |path: Path| ceilings.iter().find(|ceiling| ceiling.path == path).and_then(Ceiling::rate);
        let (forward, reverse) = ends(&found, ceiling(Path::SENDING), ceiling(Path::RECEIVING));
        let (rate, rate_from) = rate(&found);
        let families = forward.families(rate);
        let host = forward.host_rate();
        Self {
            schema: schema::HOST_NAME,
            tool: "narrows",
            version: found.version,
            started_at: found.started_at,
            target: found.target,
            rate_bps: rate.map(BitRate::bps),
            rate_from,
            ip_octets: found.ip_octets,
            usable: usable(&families).map(|(family, rate)| UsableRow { family, max_rate_bps: rate.bps() }),
            families,
            reverse_families: reverse.map(|ends| ends.families(rate)),
            ceiling_bps: [ceiling(Path::SENDING), ceiling(Path::RECEIVING)]
                .into_iter()
                .flatten()
                .min()
                .map(BitRate::bps),
            ceilings,
            host_rate_bps: host.map(|(rate, _)| rate.bps()),
            is_bottleneck: rate.and_then(|rate| forward.are_the_bottleneck(rate)),
            noise: Noise::of(&found.inventory, &found.costs, found.steal_ratio),
            near: NearHost { facts: FactsRow::from(&found.near), inventory: found.inventory, costs: found.costs },
            remote: found.remote.map(|remote| RemoteHost {
                facts: FactsRow::from(&remote.facts),
                coalescing: remote.coalescing,
                settings: remote.settings,
            }),
            capture: None,
            fixes: None,
            notes: Vec::new(),
            error: None,
        }
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}

/// From here to there and, with a remote host, from there to here.
fn ends(found: &HostFindings, sending: Option<BitRate>, receiving: Option<BitRate>) -> (Ends, Option<Ends>) {
    let near = near_end(found);
    let remote = found.remote.as_ref().map(|remote| {
        let set = remote.settings.as_ref().and_then(|settings| settings.receive_gather_us);
        let set = set.filter(|micros| *micros > 0).map(|micros| Duration::from_micros(micros.into()));
        End {
            coalescing: remote.coalescing.as_ref().and_then(Coalescing::period).or(set),
            ..End::of(remote.facts.clone())
        }
    });
    let sender = End { ceiling: sending, ..near.clone() };
    let receiver = End { ceiling: receiving, ..near };
    let between = |sender: &End, receiver: &End| Ends {
        sender: sender.clone(),
        receiver: receiver.clone(),
        ip_octets: found.ip_octets,
    };
    match remote {
        Some(remote) => (between(&sender, &remote), Some(between(&remote, &receiver))),
        None => (between(&sender, &receiver), None),
    }
}

/// Every path through the host, with what was measured on it.
fn ceilings(found: &HostFindings) -> Vec<Ceiling> {
    let card = found.inventory.card.as_ref();
    let link = card.and_then(|card| card.rate_bps).map(BitRate::from_bps);
    let slot = card.and_then(|card| card.pcie.as_ref()?.payload_bps).map(BitRate::from_bps);
    let of = |path| Ceiling::of(path, &found.costs, link, slot, 1);
    let loopback = found.costs.loopback;
    let mut sending = of(Path::SENDING);
    sending.measured_bps = found.near.max_send_rate.map(BitRate::bps);
    let mut through = of(Path::LOOPBACK);
    through.measured_bps = [loopback.tcp_bps, loopback.udp_bps, loopback.udp_segments_bps].into_iter().flatten().max();
    vec![sending, of(Path::SENDING_ZERO_COPY), of(Path::RECEIVING), through]
}

/// This host, with what its driver is set to and what probes saw of it.
fn near_end(found: &HostFindings) -> End {
    let card = found.inventory.card.as_ref();
    let seen = card.and_then(|card| card.seen_coalescing.as_ref()?.period());
    let set = card
        .and_then(|card| card.coalescing)
        .filter(|set| set.receive_us > 0)
        .map(|set| Duration::from_micros(u64::from(set.receive_us)));
    let spun = found.costs.pacing.iter().filter(|row| row.pacer == narrows_diagnose::host::Pacer::Spin);
    let noise = spun.filter_map(|row| Some(row.error?.p99_ns)).min().map(Duration::from_nanos);
    End { coalescing: seen.or(set), departure_noise: noise, ..End::of(found.near.clone()) }
}

/// What the user said, or the slower link: no path is faster than that.
fn rate(found: &HostFindings) -> (Option<BitRate>, RateFrom) {
    if found.rate.is_some() {
        return (found.rate, RateFrom::Given);
    }
    let card = found.inventory.card.as_ref().and_then(|card| card.rate_bps).map(BitRate::from_bps);
    let remote = found.remote.as_ref().and_then(|remote| remote.facts.interface_rate);
    match [card.or(found.near.interface_rate), remote].into_iter().flatten().min() {
        Some(rate) => (Some(rate), RateFrom::Links),
        None => (None, RateFrom::Unknown),
    }
}
