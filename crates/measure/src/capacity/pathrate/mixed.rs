//! Trains whose packets have others between them: two loaded links in a row (ours).
//!
//! A shaper's small bucket and its late timer make short trains wrong in the same way, so that only
//! the later part of long ones tells its rate ([`settled`](super::settled)). Two loaded links in a
//! row look like that, too. Trains that leave the first at its capacity `C` leave the second, with
//! other traffic `x` on both, at `r C' / (r + x')`, where `C' = C² / (C + x)` and
//! `x' = x² / (C + x)`: whatever their rate `r`, they come as if from one link of capacity `C'`.
//!
//! Their single gaps differ. On one link a packet's gap is that of the link, give or take what a
//! timer is late by. Behind two, a packet follows the one before at once, at `C`, or with packets
//! of others between; hardly one comes at the mean.

use super::by_trains::uncertain;
use super::rates::plain;
use super::session::MethodRun;
use narrows_probe::outcome::{Caveat, Estimate, Reason};

/// The wire rate at which packets follow one another where nobody is between them, if the mean rate
/// `wire` of the later parts of trains is that of packets with others between. `gaps` are those of
/// the later parts, in shares of the gap at that rate.
pub(super) fn rate_between(wire: f64, gaps: &[f64]) -> Option<f64> {
    let share = |from: f64, to: f64| {
        gaps.iter().filter(|gap| (from..to).contains(*gap)).count() as f64 / gaps.len().max(1) as f64
    };
    let mixed = share(1.0 - NEAR, 1.0 + NEAR) < FEW && share(SHORTER, 1.0 - NEAR) > SEVERAL;
    let short: Vec<f64> = gaps.iter().copied().filter(|gap| (SHORTER..1.0 - NEAR).contains(gap)).collect();
    Some(wire / fullest(short)?).filter(|_| mixed && gaps.len() >= LEAST_GAPS)
}

/// What such trains say: at least their mean rate, and likely that of packets with nobody between.
/// A timer that lets packets go in twos behind a slower link would look the same.
pub(super) fn estimate(session: &MethodRun, wire: f64, between: f64) -> Result<Estimate, Reason> {
    let found = plain(session, between, wire * (1.0 - WIDER), between * (1.0 + WIDER))?;
    Ok(uncertain(found.with("branch", "packets of others between").caveat(Caveat::NotConverged)))
}

/// The median of the fullest window.
fn fullest(gaps: Vec<f64>) -> Option<f64> {
    let gaps = narrows_stat::Sorted::new(gaps).ok()?;
    let all = gaps.values();
    let inside = |from: &f64| {
        let begin = all.partition_point(|gap| gap < from);
        &all[begin..all.partition_point(|gap| *gap <= from * (1.0 + WINDOW))]
    };
    narrows_stat::median(all.iter().map(inside).max_by_key(|window| window.len())?)
}

// Ours, all of them.
/// Of the mean gap. Behind fourteen shapers of kernels 80 of 100 gaps or more are that near it, and
/// behind two loaded ones in a row 10 or fewer.
const NEAR: f64 = 0.1;
const FEW: f64 = 0.25;
/// Packets that one receive call stamps, or a bucket lets through, are nearer than this.
const SHORTER: f64 = 0.4;
const SEVERAL: f64 = 0.3;
const LEAST_GAPS: usize = 60;
/// What timers and stamps move gaps by, of a gap.
const WINDOW: f64 = 0.06;
/// The same of an interval's ends.
const WIDER: f64 = 0.04;
