//! From lines to hops.

use narrows_units::{BitRate, Layer, Metric};

use super::busy;
use super::line::{Assumed, Line};
use super::picture::{Added, Picture, picture};
use super::plan::STANDS_OUT;
use super::route::{earlier, is_no_hop, passes_on};
use super::session::MethodRun;
use super::stages::{Pairs, Stages, is_standard};
use super::table::HopTable;
use narrows_probe::outcome::{
    AnswerPace, HiddenDevice, HopCapacity, HopFinding, PathFinding, Predicted, Ranged, Responder,
};
use narrows_probe::outcome::{BoundKind, Caveat, Confidence, Estimate, Limit, Outcome, Reason};

/// A hop that was predicted a bound gets a value only if its slope stands out by this much after
/// all (ours).
const AFTER_ALL: f64 = 8.0;
/// Errors by which the forward direction alone must stand out of a hop that has a value for being
/// of one rate both ways (ours).
const LEAST_OUT: f64 = 3.0;
/// Share of answers from others than the main router from which on there are several (`capacity`
/// §9.6).
const OTHER_RATES: f64 = 0.1;

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    match (estimate(session), stopped) {
        (Ok(estimate), Some(_)) => estimate.caveat(Caveat::StoppedEarly).into(),
        (Ok(estimate), None) => estimate.into(),
        (Err(_), Some(reason)) => Outcome::inconclusive(reason.clone()),
        (Err(own), None) => Outcome::inconclusive(own),
    }
}

/// The answer for the path, with all its hops.
pub(super) fn estimate(session: &MethodRun) -> Result<Estimate, Reason> {
    let answers: u64 = session.hops.iter().map(|hop| u64::from(hop.answers)).sum();
    if answers == 0 {
        return Err(Reason::NoAnswer);
    }
    let picture = picture(session);
    let findings = findings(session, &picture);
    let value = |finding: &HopFinding| finding.capacity.map(|capacity| capacity.rate.value);
    let reported = |finding: &&HopFinding| finding.capacity.is_some_and(|c| c.rate.verdict == BoundKind::Estimated);
    let narrow = findings.iter().filter(reported).min_by_key(|finding| value(finding));
    let bound = findings.iter().filter(|finding| !reported(finding)).filter_map(value).min();
    let (mut estimate, narrow_hop) = match (narrow, bound) {
        // Where a bound is below all values the narrow link may be there, and that is all there is
        // to say.
        (Some(HopFinding { ttl, capacity: Some(HopCapacity { rate, .. }), .. }), bound)
            if bound.is_none_or(|b| b >= rate.value) =>
        {
            let low = bound.map_or(rate.low, |bound| bound.min(rate.low));
            let others = findings.iter().filter(reported).filter_map(|finding| finding.capacity);
            let high = others.map(|other| other.rate.high).min().unwrap_or(rate.high);
            let rate = Estimate::ip_rate(Metric::IpCapacity, rate.value, low, high);
            (rate, Some(*ttl))
        }
        (_, Some(bound)) => {
            let rate = Estimate::ip_rate(Metric::IpCapacity, bound, bound, bound).at_least(Limit::Clock);
            (rate, None)
        }
        _ => return Err(Reason::TooFewSamples { samples: answers }),
    };
    estimate = PathFinding {
        narrow_hop,
        tight_hop: tight_hop(&findings),
        forecast: session.forecast,
        remote: session.remote_stamped(&picture),
    }
    .put(estimate);
    for caveat in caveats(session, &picture, &findings) {
        estimate = estimate.caveat(caveat);
    }
    let doubtful = findings
        .iter()
        .find(|finding| Some(finding.ttl) == narrow_hop)
        .is_none_or(|finding| finding.caveats.iter().any(weighs));
    if doubtful {
        estimate.confidence = Confidence::Low;
    }
    estimate.also = findings.iter().map(HopFinding::estimate).collect();
    Ok(estimate)
}

fn weighs(caveat: &Caveat) -> bool {
    matches!(caveat, Caveat::StagesAssumed | Caveat::StagesAmbiguous | Caveat::AsymmetricLimit | Caveat::RouteChanged)
}

/// The hop with the least left over.
fn tight_hop(findings: &[HopFinding]) -> Option<u16> {
    let left = |finding: &HopFinding| {
        let capacity = finding.capacity.filter(|capacity| capacity.rate.verdict == BoundKind::Estimated)?;
        let free = 1.0 - finding.busy_ratio?;
        Some((finding.ttl, capacity.rate.value.as_f64() * free))
    };
    let all = findings.iter().filter_map(left);
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(ttl, _)| ttl)
}

/// A rate at the IP layer for full packets, of a slope in ns per octet of the wire.
fn rate(session: &MethodRun, slope: f64) -> Option<BitRate> {
    let wire = f64::from(session.params.framing.wire_octets(u32::from(session.full())));
    BitRate::from_bps_f64(8e9 * f64::from(session.full()) / wire / slope).filter(|_| slope > 0.0)
}

fn findings(session: &MethodRun, picture: &Picture) -> Vec<HopFinding> {
    let mut findings: Vec<HopFinding> = Vec::new();
    let mut before: Option<(f64, f64)> = None;
    for (hop, table) in session.hops.iter().enumerate() {
        let added = picture.added.iter().find(|added| added.hop == hop + 1);
        let capacity = added.and_then(|added| capacity(session, added));
        let line = picture.lines[hop];
        let here = line.map(|line| (least_intercept(picture, hop, &line), least_waits(session, picture, hop)));
        let (after_intercept, after_waits) = before.unwrap_or((0.0, 0.0));
        let busy = busy::ratio(session, picture, (hop, capacity));
        let mut routers: Vec<Responder> = table
            .samples
            .iter()
            .map(|(&address, samples)| Responder { address, answers: u64::try_from(samples.len()).unwrap_or(u64::MAX) })
            .filter(|responder| !responder.address.is_unspecified())
            .collect();
        routers.sort_by_key(|responder| std::cmp::Reverse(responder.answers));
        let limited = table.pace.limit().map(|(burst, every)| AnswerPace { burst: burst.into(), every });
        findings.push(HopFinding {
            ttl: u16::try_from(hop + 1).unwrap_or(u16::MAX),
            routers,
            is_destination: table.remote,
            capacity,
            after: added.and_then(|added| u16::try_from(added.after).ok()).filter(|&after| usize::from(after) < hop),
            latency_ns: here.map(|(intercept, _)| (intercept - after_intercept) / 2.0),
            queueing_ns: here.map(|(_, waits)| (waits - after_waits).max(0.0)),
            round_trip_ns: table.least_ns(session.plan.smallest()).map(|ns| ns as f64),
            loss_ratio: loss(session, hop),
            busy_ratio: busy,
            limited,
            hidden_devices: added.map(|added| devices(session, added)).unwrap_or_default(),
            apparent_rate: added
                .filter(|added| added.slope > STANDS_OUT * added.se)
                .and_then(|added| rate(session, added.likeliest())),
            predicted: session.predicted.get(hop).copied(),
            probes: table.probes.into(),
            answers: table.answers.into(),
            caveats: of_hop(session, picture, (hop, capacity), added),
        });
        before = here.or(before);
    }
    findings
}

/// The intercept of a hop, or of one behind it if that is less: a router's own time for answers is
/// not the path's.
fn least_intercept(picture: &Picture, hop: usize, line: &Line) -> f64 {
    let behind = picture.lines.iter().skip(hop).flatten().map(|line| line.intercept_ns);
    behind.fold(line.intercept_ns, f64::min)
}

/// Mean wait above the line, ns; or of a hop behind, if that is less.
fn least_waits(session: &MethodRun, picture: &Picture, hop: usize) -> f64 {
    let all = session.hops.iter().zip(&picture.lines).skip(hop);
    let waits = all.filter_map(|(table, line)| waits(session, table, line.as_ref()?));
    waits.fold(f64::INFINITY, f64::min)
}

fn waits(session: &MethodRun, table: &HopTable, line: &Line) -> Option<f64> {
    let (_, samples) = table.main_router()?;
    let above = samples.iter().map(|sample| HopTable::above(sample, line, session.params.framing).max(0.0));
    Some(above.sum::<f64>() / samples.len().max(1) as f64)
}

/// Share of probes lost on the way to a hop and back: no more than on the way to any behind it, for
/// what these answer went through here.
fn loss(session: &MethodRun, hop: usize) -> Option<f64> {
    let ratio = |table: &HopTable| {
        let known = table.pace.every().is_none() && table.answers > 0;
        known.then(|| f64::from(table.lost) / f64::from(table.lost.saturating_add(table.answers)))
    };
    if session.hops[hop].answers == 0 {
        return None;
    }
    let least = session.hops[hop..].iter().filter_map(ratio).reduce(f64::min);
    // Of a router that keeps answers back only that it lost none can be known.
    least.filter(|&least| ratio(&session.hops[hop]).is_some() || least <= 0.0)
}

fn capacity(session: &MethodRun, added: &Added) -> Option<HopCapacity> {
    let predicted = session.predicted.get(added.hop - 1);
    let needed = if predicted == Some(&Predicted::Bounded) { AFTER_ALL } else { STANDS_OUT };
    let (low, high) = (added.slope + added.half_width(), added.slope - added.half_width() - added.unseen);
    let known =
        |value, low, high, verdict| HopCapacity { rate: Ranged { value, low, high, verdict }, layer: Layer::Ip };
    if !(is_reported(added, needed) && high > 0.0) {
        let bound = rate(session, added.most())?;
        return Some(known(bound, bound, bound, BoundKind::LowerBound));
    }
    let (low, high) = (rate(session, low)?, rate(session, high)?);
    let Some(stages) = &added.stages else {
        return Some(known(rate(session, added.likeliest())?, low, high, BoundKind::Estimated));
    };
    let slowest = rate(session, 8e9 / stages.rates[0])?;
    if stages.vague {
        // One link of what is seen, or a row of faster ones.
        let value = rate(session, added.likeliest())?;
        return Some(known(value, low, high.max(slowest), BoundKind::Estimated));
    }
    let off = (added.half_width() / added.slope).max(stages.measured.unwrap_or(0.0));
    let least = match added.pairs {
        Pairs::Row => scaled(slowest, 1.0 - off),
        // One link as slow as all of it would look the same.
        Pairs::OneLink | Pairs::Unknown => low,
    };
    Some(known(slowest, least, scaled(slowest, 1.0 + off), BoundKind::Estimated))
}

/// It gets a value: it stands out of its errors, `needed` of them, or does so if it has one rate
/// both ways, and of the forward direction alone still has an interval.
fn is_reported(added: &Added, needed: f64) -> bool {
    // What was predicted a bound keeps it unless the forward direction says otherwise.
    let alike = needed <= STANDS_OUT && added.alike.is_some_and(|alike| alike.slope > needed * alike.se);
    let as_one = alike && added.hop == added.after + 1 && added.at_most.is_none() && added.slope > LEAST_OUT * added.se;
    as_one || (added.stands_alone() && added.slope > needed * added.se)
}

fn scaled(rate: BitRate, by: f64) -> BitRate {
    BitRate::from_bps_f64(rate.as_f64() * by).unwrap_or(rate)
}

fn devices(session: &MethodRun, added: &Added) -> Vec<HiddenDevice> {
    // What pairs leave of a hop may be the router's own time.
    let named = |stages: &&Stages| !stages.vague && (stages.measured.is_none() || !stages.ambiguous);
    let Some(stages) = added.stages.as_ref().filter(named) else {
        return Vec::new();
    };
    let device = |&bps: &f64| {
        Some(HiddenDevice {
            kind: "switch".to_owned(),
            capacity: rate(session, 8e9 / bps)?,
            nominal: BitRate::from_bps_f64(bps)?,
        })
    };
    // The slowest is the hop's own.
    stages.rates.iter().skip(1).filter_map(device).collect()
}

fn of_hop(
    session: &MethodRun,
    picture: &Picture,
    (hop, capacity): (usize, Option<HopCapacity>),
    added: Option<&Added>,
) -> Vec<Caveat> {
    let table = &session.hops[hop];
    let mut caveats = Vec::new();
    if table.answers == 0 {
        return vec![Caveat::SilentRouter];
    }
    if let Some((burst, every)) = table.pace.limit() {
        caveats.push(Caveat::AnswersLimited { burst, every });
    }
    let behind = picture.lines.iter().skip(hop + 1).flatten();
    let line = picture.lines[hop];
    let covered = line.is_some_and(|line| {
        let noise = (3.0 * line.spread_ns).max(3.0 * session.floor_ns());
        behind.into_iter().any(|later| line.intercept_ns - later.intercept_ns > noise)
    });
    if picture.slow[hop] || covered {
        caveats.push(Caveat::SlowRouter);
    }
    let all: usize = table.samples.values().map(Vec::len).sum();
    let main = table.main_router().map_or(0, |(_, samples)| samples.len());
    if (all - main) as f64 > OTHER_RATES * all as f64 {
        caveats.push(Caveat::SeveralRouters { routers: u32::try_from(table.samples.len()).unwrap_or(u32::MAX) });
    }
    if table.route_changed {
        caveats.push(Caveat::RouteChanged);
    }
    if passes_on(&session.hops, hop) {
        caveats.push(Caveat::ForwardsExpired);
    } else if let Some(before) = earlier(&session.hops, hop).filter(|_| is_no_hop(&session.hops, hop)) {
        caveats.push(Caveat::RoutingLoop { earlier_ttl: u8::try_from(before + 1).unwrap_or(u8::MAX) });
    }
    if !table.quotes_by_rule() {
        caveats.push(Caveat::QuotesUneven);
    }
    // Stamps are of one way.
    let stamped = picture.by_stamps && hop + 1 == session.hops.len();
    if !stamped && line.is_some_and(|line| line.assumed == Assumed::Alike) {
        caveats.push(Caveat::AsymmetricLimit);
    }
    if let Some(added) = added {
        caveats.extend(of_added(session, picture, capacity, added));
    }
    caveats
}

/// Caveats of what a hop adds to the one before it.
fn of_added(session: &MethodRun, picture: &Picture, capacity: Option<HopCapacity>, added: &Added) -> Vec<Caveat> {
    let hop = added.hop - 1;
    let mut caveats = Vec::new();
    let reported = capacity.is_some_and(|capacity| capacity.rate.verdict == BoundKind::Estimated);
    let precise = added.stages.as_ref().is_some_and(|stages| !stages.vague);
    if reported && !precise && added.alike.is_some() {
        caveats.push(Caveat::SymmetryAssumed);
    }
    if let Some(stages) = &added.stages {
        if added.pairs != Pairs::Row && !stages.vague {
            caveats.push(Caveat::StagesAssumed);
        }
        if stages.ambiguous || stages.vague {
            caveats.push(Caveat::StagesAmbiguous);
        }
    }
    let ambiguous = caveats.contains(&Caveat::StagesAmbiguous) || caveats.contains(&Caveat::StagesAssumed);
    if added.stands_alone()
        && !ambiguous
        && added.pairs == Pairs::Unknown
        && !is_standard(added.slope, added.half_width())
    {
        // A row of links of which none has a standard rate looks the same.
        caveats.push(Caveat::StagesAmbiguous);
    }
    // Behind the last hop there is nobody to tell by whether its host copies.
    let table = &session.hops[hop];
    let unreported =
        hop + 1 == session.hops.len() && table.remote && !picture.by_stamps && added.pairs == Pairs::Unknown;
    if !reported && added.slope <= STANDS_OUT * added.se {
        caveats.push(Caveat::TimerLimited);
    } else if picture.unchecked.contains(&hop) || (unreported && added.stands_alone()) {
        caveats.push(Caveat::UncheckedRouter);
    }
    caveats
}

fn caveats(session: &MethodRun, picture: &Picture, findings: &[HopFinding]) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if session.reroutes > 0 {
        caveats.push(Caveat::RouteChanged);
    }
    let has = |wanted: fn(&Caveat) -> bool| findings.iter().flat_map(|finding| &finding.caveats).find(|c| wanted(c));
    let of_hops = [
        has(|caveat| matches!(caveat, Caveat::RoutingLoop { .. })),
        has(|caveat| matches!(caveat, Caveat::SeveralRouters { .. })),
        has(|caveat| matches!(caveat, Caveat::AnswersLimited { .. })),
        has(|caveat| *caveat == Caveat::StagesAssumed),
        has(|caveat| *caveat == Caveat::SlowRouter),
        has(|caveat| *caveat == Caveat::SilentRouter),
    ];
    caveats.extend(of_hops.into_iter().flatten().cloned());
    let last = findings.last().and_then(|finding| finding.loss_ratio);
    if let Some(ratio) = last.filter(|&ratio| ratio > 0.0) {
        caveats.push(Caveat::Loss { ratio });
    }
    let remote = session.hops.iter().any(|hop| hop.remote);
    if !remote || picture.added.len() < findings.len() {
        caveats.push(Caveat::NotConverged);
    }
    caveats
}
