//! How far back-to-back trains fell short of the capacity, from how much paced ones were slowed.

use super::hosts::sent_share;
use super::modes::Decision;
use super::sample::{Phase, Sample};
use super::session::MethodRun;

/// The least wire rate of a link on which other traffic slows paced trains as it did, bit/s; `None`
/// where it surely slowed none.
///
/// A train of rate `r` leaves a link of capacity `C` beside other traffic `x` at `r C / (r + x)`.
/// Back-to-back trains show that for the sender's rate, checks for a lower one: two equations for
/// `C` and `x`. Where the traffic is on a hop behind the narrow link, back-to-back trains reach
/// that hop no faster than the narrow link lets them, and fell short by more than this says.
pub(super) fn least_capacity(session: &MethodRun, decision: &Decision) -> Option<f64> {
    let adr = decision.adr.filter(|adr| adr.trains >= LEAST_TRAINS)?;
    let checks: Vec<&Sample> = passed(session, Phase::Check).collect();
    if is_slowed(session) { on_the_line(session, &checks, adr.rate - adr.error, (2.0, 0.0)) } else { None }
}

/// The likely wire rate of a link on which other traffic slowed paced trains as it did, and long
/// ones to `trains` bit/s. A train paced by what pairs named before may be far faster than those;
/// it is no check of their rate.
pub(super) fn likely_capacity(session: &MethodRun, trains: f64) -> Option<f64> {
    let near = |rate: f64| (REACHED..MUCH_FASTER).contains(&(rate / trains));
    let of_rate = |one: &&Sample| one.sent_rate(session.framing()).is_some_and(near);
    let checks: Vec<&Sample> = passed(session, Phase::Check).filter(of_rate).collect();
    let slowed: Vec<f64> = checks.iter().map(|sample| sample.slowed()).collect();
    // A link before the bucket holds up what left faster; what passes at once came at its rate.
    let before = narrows_stat::median(&session.rates(Phase::Preliminary)).map_or(0.0, |pairs| trains / pairs);
    let is_slowed = narrows_stat::mean(&slowed)? > session.check_tolerance(&checks)?;
    is_slowed.then(|| on_the_line(session, &checks, trains, (0.0, before)))?
}

/// Whether trains paced at the rate found were slowed, and left at that rate.
fn is_slowed(session: &MethodRun) -> bool {
    session.reached_checks().len() >= LEAST_CHECKS && session.narrow_is_loaded(LEAST_CHECKS) == Some(true)
}

/// From the two equations, with what paced trains kept of their rate, and so many standard errors
/// of it. Back-to-back trains came to the link as they left, or in `before` of the time they took.
fn on_the_line(session: &MethodRun, checks: &[&Sample], trains: f64, (errors, before): (f64, f64)) -> Option<f64> {
    let shares: Vec<f64> = passed(session, Phase::Trains).map(|sample| sample.sent_ns / sample.span_ns()).collect();
    let kept: Vec<f64> = checks.iter().map(|sample| sample.sent_ns / sample.span_ns()).collect();
    let paced: Vec<f64> = checks.iter().filter_map(|sample| sample.sent_rate(session.framing())).collect();
    let scatter = (narrows_stat::variance_sample(&kept).unwrap_or(0.0) / kept.len() as f64).sqrt();
    let kept = narrows_stat::mean(&kept)? + errors * scatter;
    let (sent, paced) = (narrows_stat::median(&shares)?.max(before), narrows_stat::median(&paced)?);
    (sent < FASTER * kept && kept < 1.0).then(|| (trains - sent * paced) / (1.0 - sent / kept))
}

/// By how much traffic that slowed paced trains as it did slows trains that left at once, on one
/// FIFO link of `wire` bit/s: `x / (R + x)`, with `x = C / kept - r`.
pub(super) fn slows_at_once(session: &MethodRun, wire: f64) -> f64 {
    let loads = passed(session, Phase::Check)
        .filter_map(|one| Some(wire * one.span_ns() / one.sent_ns - one.sent_rate(session.framing())?));
    let load = narrows_stat::median(&loads.filter(|load| load.is_finite()).collect::<Vec<_>>());
    let left = sent_share(session).filter(|share| *share > 0.0).map(|share| wire / share);
    load.zip(left).map_or(0.0, |(load, left)| (load / (left + load)).max(0.0))
}

/// Whether no FIFO path explains that pairs name `wire` bit/s: long trains came at the far lower
/// `trains`, all alike, and trains paced at that lower rate were hardly slowed.
///
/// A narrow link of `C` with other traffic there, or on a link behind that is no slower, lets
/// back-to-back trains through at `R` only if it stretches trains paced at `R` by `C/R - 1 + R/C`
/// at least: the traffic that took `C - R` is there for them as well. What lets pairs pass and no
/// trains is a bucket of some packets.
pub(super) fn contradicts(session: &MethodRun, trains: f64, wire: f64) -> bool {
    let Some(share) = sent_share(session) else { return false };
    let above = wire / trains;
    let near = |rate: f64| (REACHED..1.0 / REACHED).contains(&(rate / trains));
    let checks = passed(session, Phase::Check).filter(|one| one.sent_rate(session.framing()).is_some_and(near));
    let stretched: Vec<f64> = checks.map(|one| one.span_ns() / one.sent_ns).collect();
    let most = stretched.iter().copied().fold(1.0, f64::max);
    let least = above - 1.0 + 1.0 / above;
    let enough = stretched.len() >= LEAST_CHECKS && share < FASTER / 2.0;
    enough && above > FAR_ABOVE && most - 1.0 < (least - 1.0) / 2.0
}

fn passed(session: &MethodRun, phase: Phase) -> impl Iterator<Item = &Sample> {
    session.of(phase).filter(|sample| sample.span_ns() > 0.0)
}

/// Ours: two rounds' trains and checks, which have a scatter.
const LEAST_TRAINS: usize = 4;
const LEAST_CHECKS: usize = 2;
/// Ours: nearer to one another two rates do not tell two unknowns apart.
const FASTER: f64 = 0.8;
/// Ours: of the trains' rate, what a check was sent at.
const REACHED: f64 = 0.9;
/// Ours: trains paced at the lower rate are slowed by 3 % then, which is clear of their scatter.
const FAR_ABOVE: f64 = 1.2;
/// Ours: of the trains' rate; beyond, a train paced so is nearly back to back.
const MUCH_FASTER: f64 = 1.5;
