//! From points to an answer.

use super::fit::{LineFit, Point, segments, straight};
use super::params::Kind;
use super::session::{MethodRun, STRETCHED};
use crate::gaps::{Account, Reading, rounding};
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Outcome, Reason};

/// Interval at least, as a share of the path's rate (ours).
const LEAST: f64 = 0.01;
/// Half an interval above this share of the path's rate is no answer (ours).
const WIDEST: f64 = 0.5;
/// Back-to-back trains count as points up to this many times the rate that came of them: far points
/// weigh most, and a second congested link bends the line there (ours).
const FARTHEST: f64 = 3.0;
/// Fewest overloaded trains (ours).
const FEWEST: usize = 5;

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let made = match &session.failed {
        Some(reason) => Err(reason.clone()),
        None => estimate(session),
    };
    match made {
        Ok(estimate) => Account::stopped(reported(session, estimate), stopped).into(),
        Err(reason) => session.account.inconclusive(stopped.cloned().unwrap_or(reason)),
    }
}

fn estimate(session: &MethodRun) -> Result<Estimate, Reason> {
    let account = &session.account;
    let share = session.proportional().ok_or(Reason::NoAnswer)?;
    if session.first.iter().all(|reading| reading.receiver_bound) {
        let least = session.first.iter().map(|reading| reading.rate_out).fold(share, f64::min);
        return account.receiver_limit(least).ok_or(Reason::ReceiverTooSlow);
    }
    let points = points(session);
    let over = points.iter().filter(|point| point.y > STRETCHED).count();
    if over < FEWEST {
        return bound(session).ok_or(Reason::NotConverged);
    }
    let found = match session.kind {
        Kind::Topp => segments(&points),
        Kind::Diet => straight(&points),
    };
    let found = found.ok_or(Reason::NoAgreement)?;
    answer(session, &points, found, share)
}

fn answer(session: &MethodRun, points: &[Point], found: LineFit, share: f64) -> Result<Estimate, Reason> {
    let lowest = points.iter().map(|point| point.x).fold(f64::INFINITY, f64::min);
    let highest = match session.kind {
        // All points lie above what is available.
        Kind::Diet => lowest,
        Kind::Topp => points.iter().map(|point| point.x).fold(0.0, f64::max),
    };
    let dof = found.points.saturating_sub(2).max(1) as f64;
    let quantile = narrows_stat::student_t_quantile(0.975, dof).map_err(|_| Reason::NoAgreement)?;
    // The line's own error, and what bursts make of trains near the corner.
    let all = session.levels.iter().flatten();
    let half = (quantile * found.available_se).max(LEAST * share) + rounding(all) * share;
    if !(found.available > 0.0 && found.available <= highest + half) || half > WIDEST * share {
        return Err(Reason::NoAgreement);
    }
    // What came of overload is more than is available.
    let value = found.available.min(share);
    let (low, high) = (value - half, (found.available + half).min(share * (1.0 + LEAST)));
    let mut made = session.account.available(value, low, high).ok_or(Reason::NoAgreement)?;
    made = made
        .with("tight_capacity_bps", found.capacity)
        .with("tight_capacity_se_bps", found.capacity_se)
        .with("available_se_bps", found.available_se)
        .with("r_squared", found.r_squared)
        .with("points", found.points);
    if let Some(second) = found.second {
        made = made.with("second_link_above_bps", second);
    }
    if half > 0.1 * share {
        made = made.caveat(Caveat::CoarseResolution);
        made.confidence = Confidence::Low;
    }
    Ok(made)
}

/// The points of the answer: `DietTopp`'s are those of rates whose trains were overloaded on the
/// mean (single trains are not chosen by what noise made of them), and of the back-to-back trains
/// unless they are far out.
fn points(session: &MethodRun) -> Vec<Point> {
    let honest = |readings: &[Reading]| {
        let kept: Vec<Reading> = readings.iter().filter(|reading| !reading.receiver_bound).cloned().collect();
        MethodRun::points(&kept)
    };
    let levels = session.levels.iter().map(|level| honest(level));
    match session.kind {
        Kind::Topp => levels.flatten().collect(),
        Kind::Diet => {
            let share = session.proportional().unwrap_or(0.0);
            let stretched = |points: &Vec<Point>| {
                let all: Vec<f64> = points.iter().map(|point| point.y).collect();
                narrows_stat::mean(&all).is_some_and(|mean| mean > STRETCHED)
            };
            let near = honest(&session.first).into_iter().filter(|point| point.x <= FARTHEST * share).collect();
            levels.chain([near]).filter(stretched).flatten().collect()
        }
    }
}

/// The fastest trains came through.
fn bound(session: &MethodRun) -> Option<Estimate> {
    if !session.unspaced() {
        return None;
    }
    let sent = session.first.iter().map(|reading| reading.rate_in).reduce(f64::max)?;
    let through = session.first.iter().map(|reading| reading.rate_out).reduce(f64::min)?;
    session.account.sender_bound(sent, through)
}

/// With the points that it rests on.
fn reported(session: &MethodRun, estimate: Estimate) -> Estimate {
    let points: Vec<Point> = session.levels.iter().flat_map(|level| MethodRun::points(level)).collect();
    estimate
        .with("offered_bps", points.iter().map(|point| point.x).collect::<Vec<_>>())
        .with("offered_over_measured", points.iter().map(|point| point.y).collect::<Vec<_>>())
        .with("proportional_share_bps", session.proportional().unwrap_or(0.0))
}
