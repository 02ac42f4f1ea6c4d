//! One row per hop, from the method's answer and what was seen.

use std::net::IpAddr;

use narrows_probe::outcome::{AnswerPace, HiddenDevice, HopFinding, PathHops, Predicted};
use narrows_probe::{BoundKind, Caveat};
use narrows_units::{BitRate, Layer, nanos};
use serde::Serialize;

use super::ProbeFindings;
use super::statistics::HopCounts;
use crate::rows::Remark;

/// One hop. Rates are bit/s at the layer that the document states.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HopRow {
    /// Its number: the hop limit at which its far router answers.
    pub ttl: u16,
    /// Who answered there, the first that did first.
    pub routers: Vec<RouterRow>,
    /// Its capacity; `null` when inconclusive.
    pub capacity: Option<u64>,
    /// Lower end of the interval.
    pub low: Option<u64>,
    /// Upper end of the interval.
    pub high: Option<u64>,
    /// What other traffic leaves of it, where the method says so.
    pub available: Option<u64>,
    /// One way over its link, as far as the method tells it. Negative where the router before it is
    /// slow to answer.
    pub latency_ns: Option<i64>,
    /// Mean wait in its queues, there and back, as far as the method tells it.
    pub queueing_ns: Option<u64>,
    /// Least round trip to its far router.
    pub round_trip_ns: Option<u64>,
    /// Share of probes without an answer; `null` if none was sent.
    pub loss_ratio: Option<f64>,
    /// Devices inside it that no router tells of.
    pub hidden_devices: Vec<HiddenRow>,
    /// The hop behind which what is said of this one begins, where that is not the one before it;
    /// zero: the sender.
    pub measured_from: Option<u16>,
    /// How its router limits its answers; `null` where it was not seen to.
    pub limited: Option<LimitedRow>,
    /// What was predicted of it before it was measured: `resolved`, `bounded` or `silent`.
    pub predicted: Option<&'static str>,
    /// What `capacity` claims.
    pub verdict: BoundKind,
    /// Why it might mislead, or why there is none.
    pub caveats: Vec<Remark>,
    /// Counts and times of its probes.
    pub probes: ProbesRow,
}

/// Who answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouterRow {
    /// The address that it answered from, or what stands for it.
    pub address: String,
    /// The name of that.
    pub name: Option<String>,
    /// How often it answered.
    pub answers: u64,
    /// The label stack that the probe came with, top first (RFC 4950).
    pub mpls: Vec<LabelRow>,
}

/// One label of a stack (RFC 3032).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LabelRow {
    /// The label.
    pub label: u32,
    /// Traffic class (once: experimental bits).
    pub traffic_class: u8,
    /// Its time to live.
    pub ttl: u8,
}

/// A device inside a hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HiddenRow {
    /// What it is.
    pub kind: String,
    /// The rate that it adds, at the document's layer.
    pub capacity: u64,
    /// The same at the wire, as ports are named.
    pub nominal: u64,
}

/// A router's limit on its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LimitedRow {
    /// Answers at once.
    pub burst: u64,
    /// Time after which it gives one more.
    pub every_ns: u64,
}

/// Counts and round-trip times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ProbesRow {
    /// Packets sent with this hop limit.
    pub sent: u64,
    /// Packets answered.
    pub answered: u64,
    /// Round trip of the last answer; zero without any, as the rest.
    pub last_ns: u64,
    /// The least.
    pub best_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The longest.
    pub worst_ns: u64,
    /// Standard deviation. Sizes differ, and so this holds what sizes make.
    pub deviation_ns: u64,
}

/// All hops up to the last that anything is known of. `reported`: what the method says of them.
pub(super) fn rows(reported: Option<&PathHops>, found: &ProbeFindings) -> Vec<HopRow> {
    let findings = reported.map_or(&[][..], |reported| reported.hops.as_slice());
    let last_reported = findings.iter().map(|hop| hop.ttl).max().unwrap_or(0);
    // Where the remote host was reached, nothing lies beyond it.
    let remote = findings.iter().filter(|hop| hop.is_destination).map(|hop| hop.ttl).min();
    let last = match remote.or(found.statistics.remote().map(u16::from)) {
        Some(remote) => remote,
        None => last_reported.max(found.statistics.last().into()),
    };
    let row = |ttl| row(ttl, findings.iter().find(|hop| hop.ttl == ttl), found);
    (1..=last.min(255)).map(row).collect()
}

fn row(ttl: u16, reported: Option<&HopFinding>, found: &ProbeFindings) -> HopRow {
    let seen = u8::try_from(ttl).ok().and_then(|limit| found.statistics.hop(limit));
    let claimed = reported.and_then(|hop| hop.capacity).filter(|claimed| claimed.rate.value.bps() > 0);
    let busy = reported.and_then(|hop| hop.busy_ratio).filter(|busy| (0.0..=1.0).contains(busy));
    let estimated = claimed.filter(|claimed| claimed.rate.verdict == BoundKind::Estimated);
    HopRow {
        ttl,
        routers: routers(ttl, reported, seen, found),
        capacity: claimed.map(|claimed| claimed.rate.value.bps()),
        low: claimed.map(|claimed| claimed.rate.low.bps()),
        high: claimed.map(|claimed| claimed.rate.high.bps()),
        available: busy
            .zip(estimated)
            .and_then(|(busy, claimed)| claimed.rate.value.scaled(1.0 - busy))
            .map(BitRate::bps),
        latency_ns: reported.and_then(|hop| signed(hop.latency_ns?)),
        queueing_ns: reported.and_then(|hop| whole(hop.queueing_ns?.max(0.0))),
        round_trip_ns: [
            reported.and_then(|hop| whole(hop.round_trip_ns?)),
            seen.filter(|seen| seen.answered > 0).map(|seen| unsigned(seen.best_ns)),
        ]
        .into_iter()
        .flatten()
        .min(),
        loss_ratio: reported
            .and_then(|hop| hop.loss_ratio)
            .filter(|ratio| (0.0..=1.0).contains(ratio))
            .or_else(|| seen.filter(|seen| seen.sent > 0).map(HopCounts::loss_ratio)),
        hidden_devices: reported.map_or_else(Vec::new, |hop| hop.hidden_devices.iter().map(HiddenRow::from).collect()),
        measured_from: reported.and_then(|hop| hop.after),
        limited: reported.and_then(|hop| hop.limited).map(LimitedRow::from),
        predicted: reported.and_then(|hop| hop.predicted).map(Predicted::name),
        verdict: claimed.map_or(BoundKind::Inconclusive, |claimed| claimed.rate.verdict),
        caveats: caveats(reported, seen),
        probes: seen.map_or_else(ProbesRow::default, probes),
    }
}

/// Who was seen, and whom the method tells of beside them.
fn routers(ttl: u16, reported: Option<&HopFinding>, seen: Option<&HopCounts>, found: &ProbeFindings) -> Vec<RouterRow> {
    let mut answered: Vec<(IpAddr, u64)> = Vec::new();
    if let Some(seen) = seen {
        let mut routers: Vec<_> = seen.routers.iter().collect();
        routers.sort_by_key(|(_, router)| (std::cmp::Reverse(router.answers), router.order));
        answered.extend(routers.into_iter().map(|(address, router)| (*address, router.answers)));
    }
    for router in reported.map_or(&[][..], |hop| hop.routers.as_slice()) {
        if !answered.iter().any(|(address, _)| *address == router.address) {
            answered.push((router.address, router.answers));
        }
    }
    let limit = u8::try_from(ttl).unwrap_or(u8::MAX);
    let row = |(address, answers): (IpAddr, u64)| RouterRow {
        address: address.to_string(),
        name: found.names.get(&address).cloned(),
        answers,
        mpls: found.labels.get(&(limit, address)).cloned().unwrap_or_default(),
    };
    answered.into_iter().map(row).collect()
}

fn caveats(reported: Option<&HopFinding>, seen: Option<&HopCounts>) -> Vec<Remark> {
    let mut caveats: Vec<Remark> = reported.map_or_else(Vec::new, |hop| hop.caveats.iter().map(Remark::from).collect());
    let Some(seen) = seen else { return caveats };
    let mut add = |caveat: &Caveat| {
        if !caveats.iter().any(|known| known.id == caveat.id()) {
            caveats.push(Remark::from(caveat));
        }
    };
    let routers = u32::try_from(seen.routers.len()).unwrap_or(u32::MAX);
    if routers > 1 {
        add(&Caveat::SeveralRouters { routers });
    }
    let codes = seen.routers.values().filter_map(|router| router.unreachable);
    if let Some(code) = codes.min() {
        caveats.push(Remark {
            id: "unreachable".to_owned(),
            text: format!("it reports the destination as unreachable, ICMP code {code}"),
            brief: "a router refuses to pass packets on",
        });
    }
    caveats
}

fn probes(seen: &HopCounts) -> ProbesRow {
    ProbesRow {
        sent: seen.sent,
        answered: seen.answered,
        last_ns: unsigned(seen.last_ns),
        best_ns: unsigned(seen.best_ns),
        mean_ns: whole(seen.mean_ns()).unwrap_or(0),
        worst_ns: unsigned(seen.worst_ns),
        deviation_ns: whole(seen.deviation_ns()).unwrap_or(0),
    }
}

impl From<&HiddenDevice> for HiddenRow {
    fn from(device: &HiddenDevice) -> Self {
        Self { kind: device.kind.clone(), capacity: device.capacity.bps(), nominal: device.nominal.bps() }
    }
}

impl From<AnswerPace> for LimitedRow {
    fn from(pace: AnswerPace) -> Self {
        Self { burst: pace.burst, every_ns: nanos(pace.every) }
    }
}

fn unsigned(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

/// Rounded; `None` for what is no number from zero on.
fn whole(value: f64) -> Option<u64> {
    BitRate::from_bps_f64(value.round()).map(BitRate::bps)
}

/// The same with a sign.
fn signed(value: f64) -> Option<i64> {
    let size = i64::try_from(whole(value.abs())?).ok()?;
    Some(if value < 0.0 { -size } else { size })
}

/// Of the first hop that has a capacity.
pub(super) fn layer(reported: Option<&PathHops>) -> Option<Layer> {
    reported?.hops.iter().find_map(|hop| Some(hop.capacity?.layer))
}

/// As the method says; else the least of the measured ones, unless a bound leaves another hop the
/// chance to be it.
pub(super) fn narrow(reported: Option<&PathHops>, hops: &[HopRow]) -> Option<u16> {
    let said = reported.and_then(|reported| reported.narrow_hop);
    let remote = said.filter(|said| hops.iter().any(|hop| hop.ttl == *said));
    remote.or_else(|| least(hops, |hop| Some((hop.capacity?, hop.low?))))
}

/// As the method says; else the least of what is free, where that is known of every hop with a
/// capacity.
pub(super) fn tight(reported: Option<&PathHops>, hops: &[HopRow]) -> Option<u16> {
    let said = reported.and_then(|reported| reported.tight_hop);
    let remote = said.filter(|said| hops.iter().any(|hop| hop.ttl == *said));
    let known = hops.iter().filter(|hop| hop.capacity.is_some()).all(|hop| hop.available.is_some());
    remote.or_else(|| least(hops, |hop| Some((hop.available?, hop.available?))).filter(|_| known))
}

fn least(hops: &[HopRow], of: impl Fn(&HopRow) -> Option<(u64, u64)>) -> Option<u16> {
    let measured = hops.iter().filter(|hop| hop.verdict == BoundKind::Estimated);
    let (ttl, value) = measured.filter_map(|hop| Some((hop.ttl, of(hop)?.0))).min_by_key(|(_, value)| *value)?;
    let others = hops.iter().filter(|hop| hop.ttl != ttl);
    let mut lows = others.filter_map(|hop| Some((hop.verdict, of(hop)?.1)));
    lows.all(|(verdict, low)| verdict == BoundKind::Estimated || low >= value).then_some(ttl)
}
