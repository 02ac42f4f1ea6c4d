//! From delays to hops.

use std::time::Duration;

use narrows_units::{BitRate, nanos_f64, to_u32};

use super::chain::{Chain, Least, Setting, chain, least};
use super::session::{MethodRun, Sample, What};
use crate::conclusion;
use crate::spacing::Stamped;
use crate::tailgating::{HopTime, measured, of_path};
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Outcome, PathFinding, Ranged, Reason};
use narrows_probe::{PathFacts, StampSource};
use narrows_train::mindelay::clock_skew;

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    conclusion::conclude(judge(session), caveats(session).into(), stopped)
}

/// Whether more rounds would hardly tell more: the errors are small beside the hops' own times, or
/// as small as stamps get.
pub(super) fn settled(session: &MethodRun) -> bool {
    let Ok((found, _)) = read(session) else {
        return false;
    };
    let slowest = found.hops.iter().map(|hop| hop.time()).fold(0.0, f64::max);
    let measured =
        |hop: &HopTime| matches!(hop, HopTime::Measured { low, time, .. } if time - low <= 1.01 * SETTLED * time);
    found.worst_ns <= floor_ns(session)
        || (found.worst_ns <= SETTLED / 2.0 * slowest && found.hops.iter().any(measured))
}

fn judge(session: &MethodRun) -> Result<Estimate, Reason> {
    if session.samples.is_empty() {
        return Err(Reason::NoAnswer);
    }
    if session.hops.is_none() {
        let what = "the number of hops: no large packet came through".to_owned();
        return Err(Reason::MissingInput { what });
    }
    let (found, closure) = read(session)?;
    let rate_of = |hop: HopTime| hop.estimate(session.params.framing, session.facts.as_ref(), session.large);
    let hops: Vec<Estimate> =
        (1u16..).zip(&found.hops).filter_map(|(number, hop)| Some(rate_of(*hop)?.at_hop(number))).collect();
    if hops.len() < found.hops.len() || !hops.iter().any(|hop| measured(&hop)) {
        let noisy = found.worst_ns > 3.0 * floor_ns(session);
        return Err(if noisy { Reason::NotConverged } else { Reason::StampsTooCoarse });
    }
    // Few hops above the noise: the narrow one may well be among the others.
    let known = hops.iter().filter(measured).count();
    if found.worst_ns > 3.0 * floor_ns(session) && hops.len() > 3 * known {
        return Err(Reason::NotConverged);
    }
    let slowest = hops.iter().filter(measured).min_by_key(|hop| hop.in_unit().value).ok_or(Reason::NoAgreement)?;
    let mut estimate = of_path(&hops, slowest)
        .with("hops", u32::from(session.hops.unwrap_or(0)))
        .with("rounds", to_u32(count_of(session, What::Behind(1))));
    let path = PathFinding { narrow_hop: slowest.hop(), ..PathFinding::default() };
    estimate = path.put(estimate);
    if let Some(closure) = closure {
        estimate = close(estimate.with("closure_ns", closure.delay_ns), &found, closure)?;
    }
    if wide(&estimate) {
        estimate = estimate.caveat(Caveat::NotConverged);
        estimate.confidence = Confidence::Low;
    }
    estimate.also = hops;
    Ok(estimate)
}

/// A large packet alone should take what all hops do. Where it does not, something else than links
/// is in the delays (a host that gathers interrupts, say): the range takes the difference in, or
/// there is no answer.
fn close(mut estimate: Estimate, found: &Chain, closure: Least) -> Result<Estimate, Reason> {
    let allowed = 2.0 * closure.error_ns + CLOSED * (found.whole.delay_ns - found.alone_ns);
    let missed = closure.delay_ns.abs();
    if missed <= allowed {
        return Ok(estimate);
    }
    let slowest = found.hops.iter().map(|hop| hop.time()).fold(1.0, f64::max);
    let share = missed / slowest;
    if share > CONTRADICTS {
        return Err(Reason::NoAgreement);
    }
    let scaled = |rate: BitRate, factor: f64| rate.scaled(factor).unwrap_or(rate);
    estimate.adjust(|rate: &mut Ranged<BitRate>| {
        (rate.low, rate.high) = (scaled(rate.low, 1.0 - share), scaled(rate.high, 1.0 + share));
    });
    estimate.confidence = Confidence::Low;
    Ok(estimate.caveat(Caveat::NotConverged))
}

fn wide(estimate: &Estimate) -> bool {
    let range = estimate.in_unit();
    (range.high - range.low) as f64 > WIDE * range.value as f64
}

fn count_of(session: &MethodRun, what: What) -> usize {
    session.samples.iter().filter(|sample| sample.what == what).count()
}

/// Delays over the same stamps as most, freed of the clocks' drift: in order of the samples, with
/// what they are.
fn delays(session: &MethodRun) -> (Vec<(What, f64)>, Stamped) {
    let peer_kind = session.samples.iter().filter(|sample| sample.stamped == Stamped::PeerKind).count();
    let stamped = if 2 * peer_kind >= session.samples.len() { Stamped::PeerKind } else { Stamped::Returned };
    let alike: Vec<&Sample> = session.samples.iter().filter(|sample| sample.stamped == stamped).collect();
    let Some(origin) = alike.first().map(|sample| (sample.departed_ns, sample.delay_ns)) else {
        return (Vec::new(), stamped);
    };
    let relative = |sample: &Sample| {
        let time = sample.departed_ns.saturating_sub(origin.0) as f64;
        (time, sample.delay_ns.saturating_sub(origin.1) as f64)
    };
    let slope = if stamped == Stamped::PeerKind { drift(&alike, relative) } else { 0.0 };
    let freed = alike.iter().map(|sample| {
        let (time, delay) = relative(sample);
        (sample.what, delay - slope * time)
    });
    (freed.collect(), stamped)
}

/// Slope of the line below the small packets' delays.
fn drift(samples: &[&Sample], relative: impl Fn(&Sample) -> (f64, f64)) -> f64 {
    let small = samples.iter().filter(|sample| sample.what == What::Small);
    let (times, delays): (Vec<f64>, Vec<f64>) = small.map(|sample| relative(sample)).unzip();
    clock_skew(&times, &delays).unwrap_or(0.0)
}

/// The least error that a delay can have: a tick, or half of what one stamp is off by (the least of
/// many is off by less).
fn floor_of(facts: &PathFacts, stamped: Stamped) -> f64 {
    let (sender, receiver) = (&facts.sender, &facts.receiver);
    let (ticks, error) = match stamped {
        Stamped::PeerKind => (sender.clock_resolution.max(receiver.clock_resolution), receiver.stamp_error),
        Stamped::Returned => (sender.clock_resolution, sender.stamp_error),
    };
    nanos_f64(ticks).max(nanos_f64(error) / 2.0).max(1.0)
}

fn floor_ns(session: &MethodRun) -> f64 {
    let stamped = delays(session).1;
    session.facts.as_ref().map_or(1.0, |facts| floor_of(facts, stamped))
}

/// The chain, and by how much a large packet alone differs from it.
fn read(session: &MethodRun) -> Result<(Chain, Option<Least>), Reason> {
    let facts = session.facts.as_ref().ok_or(Reason::UnexpectedEvent)?;
    let (delays, stamped) = delays(session);
    let floor = floor_of(facts, stamped);
    let of = |what: What| {
        let own: Vec<f64> = delays.iter().filter(|(other, _)| *other == what).map(|(_, delay)| *delay).collect();
        least(&own, floor)
    };
    let loss = || Reason::TooMuchLoss { lost: session.lost, sent: session.packets };
    let alone = of(What::Small).ok_or_else(loss)?;
    let mut last = session.hops.unwrap_or(0);
    if session.whole_echoes && stamped == Stamped::Returned {
        // The large packet's own echo is in front of the small one's.
        last = last.saturating_sub(1);
    }
    let behind: Option<Vec<Least>> = (1..=last).map(|hop| of(What::Behind(hop))).collect();
    let behind = behind.filter(|behind| !behind.is_empty()).ok_or_else(loss)?;
    let found = chain(alone, &behind, setting(session, facts, stamped));
    let whole = of(What::Large).filter(|_| !session.whole_echoes);
    let closure = whole.map(|whole| Least {
        delay_ns: whole.delay_ns - found.whole.delay_ns,
        error_ns: whole.error_ns.hypot(found.whole.error_ns),
    });
    Ok((found, closure))
}

fn wire_octets(session: &MethodRun, octets: u16) -> f64 {
    f64::from(session.params.framing.wire_octets(u32::from(octets)))
}

fn setting(session: &MethodRun, facts: &PathFacts, stamped: Stamped) -> Setting {
    // A reflector takes both in and sends both back; a program reads one after the other.
    let late = match (stamped, facts.receiver.stamp_source) {
        (Stamped::PeerKind, StampSource::Kernel | StampSource::Hardware) => Duration::ZERO,
        (Stamped::PeerKind, StampSource::User | StampSource::Simulated) => facts.receiver.receive_cost,
        (Stamped::Returned, _) => facts.receiver.receive_cost + facts.receiver.send_cost + facts.sender.receive_cost,
    };
    Setting {
        ratio: (wire_octets(session, session.small) / wire_octets(session, session.large)).min(1.0),
        sent_ns: session.sent_ns.unwrap_or(0).max(0) as f64,
        late_ns: nanos_f64(late),
    }
}

fn caveats(session: &MethodRun) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if session.samples.iter().any(|sample| sample.stamped == Stamped::Returned) {
        caveats.push(Caveat::AsymmetricLimit);
    }
    if session.lost > 0 {
        let ratio = session.lost as f64 / (session.packets as f64).max(1.0);
        caveats.push(Caveat::Loss { ratio });
    }
    caveats
}

/// Ranges this narrow on one side are narrow enough (ours: the narrowest there is).
const SETTLED: f64 = 0.02;
/// A range wider than this is not converged (ours).
const WIDE: f64 = 0.3;
/// Share of a large packet's own time by which the sum of the hops may miss it (ours).
const CLOSED: f64 = 0.02;
/// A difference of this share of the slowest hop's time contradicts it (ours).
const CONTRADICTS: f64 = 0.25;
