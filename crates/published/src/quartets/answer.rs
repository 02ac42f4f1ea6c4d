//! From differences to hops.

use narrows_units::nanos_f64;

use super::chain::{chain, either_way};
use super::session::MethodRun;
use crate::conclusion;
use crate::tailgating::{HopTime, measured, of_path};
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Outcome, PathFinding, Reason};
use narrows_train::pair_mode::{Difference, pair_mode};

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let mut caveats = Vec::new();
    if session.returned {
        caveats.push(Caveat::AsymmetricLimit);
    }
    if session.lost > 0 {
        let ratio = session.lost as f64 / (session.packets as f64).max(1.0);
        caveats.push(Caveat::Loss { ratio });
    }
    conclusion::conclude(judge(session), caveats.into(), stopped)
}

/// Whether more rounds would hardly tell more: the errors are small beside the slowest hop's time,
/// or as small as stamps get.
pub(super) fn settled(session: &MethodRun) -> bool {
    let Ok((differences, hops)) = read(session) else {
        return false;
    };
    let slowest = hops.iter().map(|hop| hop.time()).fold(0.0, f64::max);
    let worst = differences.iter().map(|found| found.error_ns).fold(0.0, f64::max);
    worst <= floor_ns(session) || worst <= SETTLED * slowest
}

/// The least error that a difference can have: a tick, or an error of a stamp.
fn floor_ns(session: &MethodRun) -> f64 {
    session.facts.as_ref().map_or(1.0, |facts| {
        let (sender, receiver) = (&facts.sender, &facts.receiver);
        let remote = if session.returned { sender } else { receiver };
        nanos_f64(sender.clock_resolution)
            .max(nanos_f64(remote.clock_resolution))
            .max(nanos_f64(remote.stamp_error))
            .max(1.0)
    })
}

fn read(session: &MethodRun) -> Result<(Vec<Difference>, Vec<HopTime>), Reason> {
    let mut last = session.hops.unwrap_or(0);
    if session.whole_echoes && session.returned {
        // The large packet's own echo is in front of the small one's.
        last = last.saturating_sub(1);
    }
    let floor = floor_ns(session);
    let drift_ns = LARGEST_DRIFT * nanos_f64(session.head_start);
    let of_hop = |hop: u8| {
        let [one, other] = session.differences.get(usize::from(hop).checked_sub(1)?)?;
        Some(either_way(pair_mode(one, floor)?, pair_mode(other, floor)?, drift_ns))
    };
    let differences: Option<Vec<Difference>> = (1..=last).map(of_hop).collect();
    let differences = differences
        .filter(|found| !found.is_empty())
        .ok_or(Reason::TooMuchLoss { lost: session.lost, sent: session.packets })?;
    let sent_ns = session.sent_ns.unwrap_or(0).max(0) as f64;
    let ratio = (wire(session, session.small) / wire(session, session.large)).min(1.0);
    let hops = chain(&differences, ratio, sent_ns);
    Ok((differences, hops))
}

fn judge(session: &MethodRun) -> Result<Estimate, Reason> {
    if !session.answered {
        return Err(Reason::NoAnswer);
    }
    if session.hops.is_none() {
        let what = "the number of hops: no large packet came through".to_owned();
        return Err(Reason::MissingInput { what });
    }
    let (differences, found) = read(session)?;
    let rate_of = |hop: HopTime| hop.estimate(session.params.framing, session.facts.as_ref(), session.large);
    let hops: Vec<Estimate> =
        (1u16..).zip(&found).filter_map(|(number, hop)| Some(rate_of(*hop)?.at_hop(number))).collect();
    let known = hops.iter().filter(measured).count();
    let worst = differences.iter().map(|found| found.error_ns).fold(0.0, f64::max);
    let noisy = worst > 3.0 * floor_ns(session);
    // Few hops above the noise: the narrow one may well be among the others.
    if known == 0 || hops.len() < found.len() || (noisy && hops.len() > 3 * known) {
        return Err(if noisy { Reason::NotConverged } else { Reason::StampsTooCoarse });
    }
    let slowest = hops.iter().filter(measured).min_by_key(|hop| hop.in_unit().value);
    let slowest = slowest.ok_or(Reason::NotConverged)?;
    let mut estimate = of_path(&hops, slowest)
        .with("hops", u32::from(session.hops.unwrap_or(0)))
        .with("differences_ns", differences.iter().map(|found| found.ns).collect::<Vec<f64>>());
    let path = PathFinding { narrow_hop: slowest.hop(), ..PathFinding::default() };
    estimate = path.put(estimate);
    let range = estimate.in_unit();
    if (range.high - range.low) as f64 > WIDE * range.value as f64 {
        estimate = estimate.caveat(Caveat::NotConverged);
        estimate.confidence = Confidence::Low;
    }
    estimate.also = hops;
    Ok(estimate)
}

fn wire(session: &MethodRun, octets: u16) -> f64 {
    f64::from(session.params.framing.wire_octets(u32::from(octets)))
}

/// Errors this small beside the slowest hop's time are small enough (ours).
const SETTLED: f64 = 0.01;
/// A range wider than this is not converged (ours).
const WIDE: f64 = 0.3;
/// No pair of working clocks drifts apart faster (ours).
const LARGEST_DRIFT: f64 = 500e-6;
