//! Answers from the rate at which long trains arrive.

use super::hosts::{STEADY, mimicked, sent_share};
use super::modes::{self, Decision};
use super::params::Preset;
use super::rates::plain;
use super::session::MethodRun;
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Limit, Reason};

/// The dispersion rate as a bound: what is left where pairs say nothing that can be trusted.
pub(super) fn from_bound(session: &MethodRun, decision: &Decision) -> Result<Estimate, Reason> {
    let tally = &session.tally;
    if tally.loss_ratio() > LOSSY {
        return Err(Reason::TooMuchLoss { lost: tally.lost + tally.dropped, sent: tally.sent });
    }
    // A few trains may all have been squeezed together behind the narrow link.
    let adr = decision.adr.filter(|adr| adr.trains >= modes::TRAINS);
    let alike = modes::preliminary(session).filter(|preliminary| preliminary.cv < STEADY);
    let bound = adr.map(|adr| adr.rate - adr.error);
    let bound = bound.or(alike.map(|preliminary| preliminary.mean * (1.0 - preliminary.cv)));
    let bound = bound.ok_or(Reason::NoAgreement)?;
    Ok(plain(session, bound, bound, bound)?
        .with("branch", "dispersion rate")
        .at_least(Limit::Path)
        .caveat(Caveat::NotConverged))
}

/// No mode above the dispersion rate: the trains' rate is all there is. It is only a bound, unless
/// the narrow link was seen to carry nothing else.
pub(super) fn from_trains(session: &MethodRun, decision: &Decision) -> Result<Estimate, Reason> {
    if session.params.preset == Preset::Adaptive && decision.loaded != Some(false) {
        return from_bound(session, decision);
    }
    let rate = decision.adr.map(|adr| adr.rate).or_else(|| modes::preliminary(session).map(|p| p.mean));
    let rate = rate.ok_or(Reason::NoAgreement)?;
    let half = match (decision.loaded, decision.adr) {
        (Some(false), Some(adr)) => adr.error.max(0.005 * rate),
        _ => decision.width / 2.0,
    };
    if half > WIDEST / 2.0 * rate {
        return Err(too_wide(session));
    }
    if mimicked(session, rate) {
        return Err(Reason::StampsTooCoarse);
    }
    let estimate = plain(session, rate, rate - half, rate + half)?.with("branch", "dispersion rate");
    if modes::trains_suffice(decision) {
        return Ok(estimate);
    }
    Ok(if decision.loaded == Some(false) {
        uncertain(estimate.caveat(Caveat::NotConverged))
    } else {
        estimate.at_least(Limit::Path)
    })
}

/// Whether stamps blur a pair by more than trains that nobody slowed leave open.
pub(super) fn blurred(session: &MethodRun, wire_bps: f64) -> bool {
    let octets = session.framing().wire_octets(u32::from(session.full_size()));
    let packet_ns = 8e9 * f64::from(octets) / wire_bps;
    std::f64::consts::SQRT_2 * session.stamp_error_measured_ns() > BLURRED * packet_ns
}

/// What long trains say of a link that paced ones found idle. Checks let a tenth of the link pass
/// unseen, which slows trains the less the faster they left.
pub(super) fn from_idle_trains(session: &MethodRun, adr: &modes::Adr) -> Result<Estimate, Reason> {
    let error = adr.error.max(0.001 * adr.rate);
    let unseen = UNSEEN_TRAFFIC * sent_share(session).unwrap_or(1.0).min(1.0);
    let high = (adr.rate + error) * (1.0 + unseen);
    Ok(plain(session, adr.rate, adr.rate - error, high)?.with("branch", "dispersion rate"))
}

pub(super) fn uncertain(mut estimate: Estimate) -> Estimate {
    estimate.confidence = Confidence::Low;
    estimate
}

pub(super) fn too_wide(session: &MethodRun) -> Reason {
    let blurred = modes::preliminary(session).is_some_and(|p| p.cv < WIDEST / 2.0);
    if blurred { Reason::StampsTooCoarse } else { Reason::NoAgreement }
}

/// Ours: beyond a quarter of the value a bin is no capacity.
pub(super) const WIDEST: f64 = 0.25;
/// Ours: trains that suffice are known to 1 %.
const BLURRED: f64 = 0.03;
/// Ours: of the link.
const UNSEEN_TRAFFIC: f64 = 0.1;
/// Ours: two of five packets lost, and most trains with them.
const LOSSY: f64 = 0.4;
