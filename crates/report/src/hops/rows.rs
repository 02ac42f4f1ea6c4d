//! One row per hop, from the method's answer and what was seen.

use std::net::IpAddr;

use estimate::{Confidence, Estimate, EvidenceValue, Limit, Outcome, Verdict};
use serde::Serialize;
use units::{Layer, Metric};

use super::Found;
use super::seen::SeenHop;
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
    /// One way over its link, as far as the method tells it.
    pub latency_ns: Option<u64>,
    /// Mean wait in its queues, there and back, as far as the method tells it.
    pub queueing_ns: Option<u64>,
    /// Least round trip to its far router.
    pub round_trip_ns: Option<u64>,
    /// Share of probes without an answer; `null` if none was sent.
    pub loss_ratio: Option<f64>,
    /// Devices inside it that no router tells of.
    pub hidden_devices: Vec<HiddenRow>,
    /// What `capacity` claims.
    pub verdict: Verdict,
    /// How much stands behind it.
    pub confidence: Option<Confidence>,
    /// What set it, or ended the search.
    pub limited_by: Option<Limit>,
    /// Why it might mislead, or why there is none.
    pub caveats: Vec<Remark>,
    /// Counts and times of its probes.
    pub probes: ProbesRow,
}

/// Who answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouterRow {
    /// The address that it answered from.
    pub address: IpAddr,
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
    /// The rate of the port that it adds, bit/s at the wire, as such ports are named; `null` if that cannot be told.
    pub capacity: Option<u64>,
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

/// All hops up to the last that anything is known of.
pub(super) fn rows(outcome: &Outcome, found: &Found) -> Vec<HopRow> {
    let estimates = estimates(outcome);
    let told = estimates.iter().filter_map(|estimate| estimate.hop()).max().unwrap_or(0);
    // Where the far host was reached, nothing lies beyond it.
    let last = match found.seen.far() {
        Some(far) => u16::from(far),
        None => told.max(found.seen.last().into()),
    };
    (1..=last.min(255)).map(|ttl| row(ttl, &estimates, found)).collect()
}

/// What the method says of hops: the answer's own parts.
fn estimates(outcome: &Outcome) -> Vec<&Estimate> {
    outcome.estimate().map_or_else(Vec::new, |estimate| {
        estimate.also.iter().filter(|part| part.hop().is_some()).collect()
    })
}

fn row(ttl: u16, estimates: &[&Estimate], found: &Found) -> HopRow {
    let of = |metric: Metric| {
        estimates
            .iter()
            .find(|estimate| estimate.hop() == Some(ttl) && estimate.metric == metric)
            .copied()
    };
    let capacity = of(Metric::IpCapacity);
    let available = of(Metric::AvailableIpCapacity);
    let seen = u8::try_from(ttl).ok().and_then(|limit| found.seen.hop(limit));
    let claimed = capacity.filter(|estimate| estimate.value > 0);
    HopRow {
        ttl,
        routers: routers(ttl, seen, found),
        capacity: claimed.map(|estimate| estimate.value),
        low: claimed.map(|estimate| estimate.low),
        high: claimed.map(|estimate| estimate.high),
        available: available
            .map(|estimate| estimate.value)
            .or_else(|| number(capacity, "available_bps")),
        latency_ns: number(capacity, "latency_ns"),
        queueing_ns: number(capacity, "queueing_ns"),
        round_trip_ns: seen.filter(|seen| seen.answered > 0).map(|seen| nanos(seen.best_ns)),
        loss_ratio: ratio(capacity).or_else(|| seen.filter(|seen| seen.sent > 0).map(SeenHop::loss_ratio)),
        hidden_devices: capacity.map_or_else(Vec::new, hidden),
        verdict: claimed.map_or(Verdict::Inconclusive, |estimate| estimate.verdict),
        confidence: claimed.map(|estimate| estimate.confidence),
        limited_by: claimed.map(|estimate| estimate.limited_by),
        caveats: caveats(capacity, seen),
        probes: seen.map_or_else(ProbesRow::default, probes),
    }
}

fn routers(ttl: u16, seen: Option<&SeenHop>, found: &Found) -> Vec<RouterRow> {
    let Some(seen) = seen else { return Vec::new() };
    let mut routers: Vec<_> = seen.routers.iter().collect();
    routers.sort_by_key(|(_, router)| router.order);
    let limit = u8::try_from(ttl).unwrap_or(u8::MAX);
    let row = |(&address, router): (&IpAddr, &super::Router)| RouterRow {
        address,
        name: found.names.get(&address).cloned(),
        answers: router.answers,
        mpls: found.labels.get(&(limit, address)).cloned().unwrap_or_default(),
    };
    routers.into_iter().map(row).collect()
}

fn caveats(capacity: Option<&Estimate>, seen: Option<&SeenHop>) -> Vec<Remark> {
    let mut caveats: Vec<Remark> =
        capacity.map_or_else(Vec::new, |estimate| estimate.caveats.iter().map(Remark::from).collect());
    let Some(seen) = seen else { return caveats };
    let mut add = |id: &str, text: String| {
        if !caveats.iter().any(|caveat| caveat.id == id) {
            caveats.push(Remark { id: id.to_owned(), text });
        }
    };
    if seen.sent > 0 && seen.answered == 0 {
        add("silent", format!("none of {} probe(s) was answered", seen.sent));
    }
    if seen.routers.len() > 1 {
        add(
            "several_routers",
            format!("{} routers answered: several routes, or one that changed", seen.routers.len()),
        );
    }
    let codes = seen.routers.values().filter_map(|router| router.unreachable);
    if let Some(code) = codes.min() {
        add("unreachable", format!("it says that there is no way on, ICMP code {code}"));
    }
    caveats
}

/// Devices inside the hop: the method names them by evidence, one name or a comma between several, and their ports' rates as a series.
fn hidden(estimate: &Estimate) -> Vec<HiddenRow> {
    let Some(EvidenceValue::Text(kinds)) = estimate.evidence.get("hidden_devices") else {
        return Vec::new();
    };
    let rates: Vec<f64> = match estimate.evidence.get("hidden_bps") {
        Some(EvidenceValue::Series(rates)) => rates.clone(),
        Some(other) => other.as_f64().into_iter().collect(),
        None => Vec::new(),
    };
    let kinds = kinds.split(',').map(str::trim).filter(|kind| !kind.is_empty());
    kinds
        .enumerate()
        .map(|(index, kind)| HiddenRow {
            kind: kind.to_owned(),
            capacity: rates.get(index).copied().and_then(whole),
        })
        .collect()
}

fn probes(seen: &SeenHop) -> ProbesRow {
    ProbesRow {
        sent: seen.sent,
        answered: seen.answered,
        last_ns: nanos(seen.last_ns),
        best_ns: nanos(seen.best_ns),
        mean_ns: whole(seen.mean_ns()).unwrap_or(0),
        worst_ns: nanos(seen.worst_ns),
        deviation_ns: whole(seen.deviation_ns()).unwrap_or(0),
    }
}

fn nanos(time: i64) -> u64 {
    u64::try_from(time).unwrap_or(0)
}

/// A piece of evidence that is a whole number from zero on.
fn number(estimate: Option<&Estimate>, name: &str) -> Option<u64> {
    whole(estimate?.evidence.get(name)?.as_f64()?)
}

fn ratio(estimate: Option<&Estimate>) -> Option<f64> {
    let value = estimate?.evidence.get("loss_ratio")?.as_f64()?;
    (0.0..=1.0).contains(&value).then_some(value)
}

fn whole(value: f64) -> Option<u64> {
    units::BitRate::from_bps_f64(value).map(units::BitRate::bps)
}

pub(super) fn layer(outcome: &Outcome) -> Option<Layer> {
    estimates(outcome).into_iter().find_map(|estimate| estimate.layer)
}

/// As the method says; else the least of the measured ones, unless a bound leaves another hop the chance to be it.
pub(super) fn narrow(outcome: &Outcome, hops: &[HopRow]) -> Option<u16> {
    let told = told(outcome, "narrow_hop").filter(|told| hops.iter().any(|hop| hop.ttl == *told));
    told.or_else(|| least(hops, |hop| Some((hop.capacity?, hop.low?))))
}

/// As the method says; else the least of what is free, where that is known of every hop with a capacity.
pub(super) fn tight(outcome: &Outcome, hops: &[HopRow]) -> Option<u16> {
    let told = told(outcome, "tight_hop").filter(|told| hops.iter().any(|hop| hop.ttl == *told));
    let known = hops.iter().filter(|hop| hop.capacity.is_some()).all(|hop| hop.available.is_some());
    told.or_else(|| least(hops, |hop| Some((hop.available?, hop.available?))).filter(|_| known))
}

fn told(outcome: &Outcome, name: &str) -> Option<u16> {
    match outcome.estimate()?.evidence.get(name)? {
        EvidenceValue::Integer(hop) => u16::try_from(*hop).ok().filter(|hop| *hop > 0),
        _ => None,
    }
}

fn least(hops: &[HopRow], of: impl Fn(&HopRow) -> Option<(u64, u64)>) -> Option<u16> {
    let measured = hops.iter().filter(|hop| hop.verdict == Verdict::Estimated);
    let (ttl, value) = measured
        .filter_map(|hop| Some((hop.ttl, of(hop)?.0)))
        .min_by_key(|(_, value)| *value)?;
    let others = hops.iter().filter(|hop| hop.ttl != ttl);
    let mut lows = others.filter_map(|hop| Some((hop.verdict, of(hop)?.1)));
    lows.all(|(verdict, low)| verdict == Verdict::Estimated || low >= value)
        .then_some(ttl)
}
