//! How far back-to-back trains fell short of the capacity, from how much paced ones were slowed.

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
    if session.narrow_is_loaded(LEAST_CHECKS) != Some(true) {
        return None;
    }
    let trains = adr.rate - adr.error;
    let shares: Vec<f64> = passed(session, Phase::Trains).map(|sample| sample.sent_ns / sample.span_ns()).collect();
    let checks: Vec<&Sample> = passed(session, Phase::Check).collect();
    let kept: Vec<f64> = checks.iter().map(|sample| sample.sent_ns / sample.span_ns()).collect();
    let paced: Vec<f64> = checks.iter().filter_map(|sample| sample.sent_rate(session.framing())).collect();
    let scatter = (narrows_stat::variance_sample(&kept)? / kept.len() as f64).sqrt();
    let kept = narrows_stat::mean(&kept)? + 2.0 * scatter;
    let (sent, paced) = (narrows_stat::median(&shares)?, narrows_stat::median(&paced)?);
    (sent < FASTER * kept && kept < 1.0).then(|| (trains - sent * paced) / (1.0 - sent / kept))
}

fn passed(session: &MethodRun, phase: Phase) -> impl Iterator<Item = &Sample> {
    session.of(phase).filter(|sample| sample.span_ns() > 0.0)
}

/// Ours: two rounds' trains and checks, which have a scatter.
const LEAST_TRAINS: usize = 4;
const LEAST_CHECKS: usize = 2;
/// Ours: nearer to one another two rates do not tell two unknowns apart.
const FASTER: f64 = 0.8;
