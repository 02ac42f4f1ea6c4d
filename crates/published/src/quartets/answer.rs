//! From differences to hops.

use narrows_units::{BitRate, Metric};

use super::chain::{HopTime, chain, either_way};
use super::session::MethodRun;
use narrows_probe::outcome::{Caveat, Confidence, Details, Diagnostics, Estimate, Limit, Outcome, PathFinding, Reason};
use narrows_train::pair_mode::{Difference, pair_mode};
use narrows_train::train_method::nanos;

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let mut caveats = Vec::new();
    if session.returned {
        caveats.push(Caveat::AsymmetricLimit);
    }
    if session.lost > 0 {
        let ratio = session.lost as f64 / (session.packets as f64).max(1.0);
        caveats.push(Caveat::Loss { ratio });
    }
    match judge(session) {
        Ok(mut estimate) => {
            for caveat in caveats {
                estimate = estimate.caveat(caveat);
            }
            match stopped {
                Some(_) => estimate.caveat(Caveat::StoppedEarly).into(),
                None => estimate.into(),
            }
        }
        Err(own) => Outcome::Inconclusive {
            reason: stopped.cloned().unwrap_or(own),
            caveats,
            details: Details::default(),
            diagnostics: Diagnostics::default(),
        },
    }
}

/// Whether more rounds would hardly tell more: the errors are small beside the slowest hop's time, or as small as stamps get.
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
        nanos(sender.clock_resolution)
            .max(nanos(remote.clock_resolution))
            .max(nanos(remote.stamp_error))
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
    let drift_ns = LARGEST_DRIFT * nanos(session.head_start);
    let of_hop = |hop: u8| {
        let [one, other] = session.differences.get(usize::from(hop).checked_sub(1)?)?;
        Some(either_way(pair_mode(one, floor)?, pair_mode(other, floor)?, drift_ns))
    };
    let differences: Option<Vec<Difference>> = (1..=last).map(of_hop).collect();
    let differences = differences
        .filter(|found| !found.is_empty())
        .ok_or(Reason::TooMuchLoss {
            lost: session.lost,
            sent: session.packets,
        })?;
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
    let hops: Vec<Estimate> = (1u16..)
        .zip(&found)
        .filter_map(|(number, hop)| Some(of_hop(session, *hop)?.at_hop(number)))
        .collect();
    let measured = |estimate: &&Estimate| estimate.high > estimate.low;
    let known = hops.iter().filter(measured).count();
    let worst = differences.iter().map(|found| found.error_ns).fold(0.0, f64::max);
    let noisy = worst > 3.0 * floor_ns(session);
    // Few hops above the noise: the narrow one may well be among the others.
    if known == 0 || hops.len() < found.len() || (noisy && hops.len() > 3 * known) {
        return Err(if noisy {
            Reason::NotConverged
        } else {
            Reason::StampsTooCoarse
        });
    }
    let slowest = hops.iter().filter(measured).min_by_key(|hop| hop.value);
    let slowest = slowest.ok_or(Reason::NotConverged)?;
    // A hop that was refused may be slower than its bound says; the path is no faster than what was measured.
    let low = hops.iter().map(|hop| hop.low).min().unwrap_or(slowest.low);
    let high = hops.iter().filter(measured).map(|hop| hop.high).min();
    let bps = BitRate::from_bps;
    let mut estimate = Estimate::ip_rate(
        Metric::IpCapacity,
        bps(slowest.value),
        bps(low),
        bps(high.unwrap_or(slowest.high)),
    )
    .with("hops", u32::from(session.hops.unwrap_or(0)))
    .with(
        "differences_ns",
        differences.iter().map(|found| found.ns).collect::<Vec<f64>>(),
    );
    let path = PathFinding {
        narrow_hop: slowest.hop(),
        ..PathFinding::default()
    };
    estimate = path.put(estimate);
    if (estimate.high - estimate.low) as f64 > WIDE * estimate.value as f64 {
        estimate = estimate.caveat(Caveat::NotConverged);
        estimate.confidence = Confidence::Low;
    }
    estimate.also = hops;
    Ok(estimate)
}

fn wire(session: &MethodRun, octets: u16) -> f64 {
    f64::from(session.params.framing.wire_octets(u32::from(octets)))
}

/// A hop's rate for full-size packets at the IP layer.
fn of_hop(session: &MethodRun, hop: HopTime) -> Option<Estimate> {
    let full = session.facts.as_ref().map_or(1500, |facts| facts.path_mtu).max(64);
    let bits = 8e9 * wire(session, session.large) * f64::from(full) / wire(session, full);
    let rate = |time_ns: f64| BitRate::from_bps_f64(bits / time_ns);
    let mut estimate = match hop {
        HopTime::Measured { low, time, high } => {
            Estimate::ip_rate(Metric::IpCapacity, rate(time)?, rate(high)?, rate(low)?)
        }
        HopTime::AtMost(most) => {
            let least = rate(most)?;
            Estimate::ip_rate(Metric::IpCapacity, least, least, least).at_least(Limit::Clock)
        }
    };
    estimate.confidence = Confidence::Low;
    Some(estimate)
}

/// No pair of working clocks drifts apart faster (ours).
const LARGEST_DRIFT: f64 = 500e-6;
/// Errors this small beside the slowest hop's time are small enough (ours).
const SETTLED: f64 = 0.01;
/// A range wider than this is not converged (ours).
const WIDE: f64 = 0.3;
