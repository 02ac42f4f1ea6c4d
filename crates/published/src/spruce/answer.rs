//! From pairs to an answer.

use super::session::MethodRun;
use crate::gaps::{Account, Narrow, Spacing, Tight, half_width};
use crate::spacing::{COARSEST, Stamped, Trust};
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Outcome, Reason};

/// Fewest pairs that say anything (ours).
const FEWEST: usize = 10;
/// Pairs that left farther apart than this times the gap asked for may have let the queue empty
/// (ours).
const LATE: f64 = 1.25;
/// Share of pairs that no link can have brought so close, from which the receiver batches (ours, as
/// for trains).
const BATCHING: f64 = 0.25;
const SHORT: f64 = 0.4;
/// Interval at least, as a share of capacity (ours).
const LEAST: f64 = 0.01;

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    match estimate(session) {
        Ok(estimate) => Account::stopped(estimate, stopped).into(),
        Err(reason) => {
            let reason = session.failed.as_ref().or(stopped).cloned().unwrap_or(reason);
            session.account.inconclusive(reason)
        }
    }
}

fn estimate(session: &MethodRun) -> Result<Estimate, Reason> {
    if let Some(reason) = &session.failed {
        return Err(reason.clone());
    }
    let account = &session.account;
    if let Some(narrow) = session.narrow.filter(Narrow::unspaced) {
        let through = session.readings.iter().map(|reading| reading.rate_out).reduce(f64::min);
        let sent = account.bits() * 1e9 / narrow.sent_ns;
        let bound = through.and_then(|through| account.sender_bound(sent, through));
        return bound.ok_or(Reason::NotConverged);
    }
    let (capacity, own_ns) = session.capacity().ok_or(Reason::TooFewSamples { samples: 0 })?;
    trusted(session, own_ns)?;
    let (good, late): (Vec<Spacing>, Vec<Spacing>) =
        session.pairs.iter().filter(|pair| pair.sent_ns > 0.0).partition(|pair| pair.sent_ns <= LATE * own_ns);
    let bounded = late.len() > good.len();
    let pairs = if bounded { late.clone() } else { good };
    if pairs.len() < FEWEST {
        return Err(Reason::TooFewSamples { samples: pairs.len() as u64 });
    }
    let (share, half) = if session.params.faithful { published(&pairs, own_ns) } else { ratio(&pairs, own_ns) }
        .ok_or(Reason::NoAgreement)?;
    let error = session.narrow.map_or(0.0, |narrow| narrow.error) * share.clamp(0.0, 1.0);
    let half = capacity * (half.max(LEAST) + error);
    let free = capacity * (1.0 - share).clamp(0.0, 1.0);
    let low = (capacity * (1.0 - share) - half).clamp(0.0, free);
    let high = (free + half).min(capacity);
    let made = if bounded {
        let sent = narrows_stat::mean(&pairs.iter().map(|pair| pair.sent_ns).collect::<Vec<_>>());
        sent.and_then(|sent| account.bound_by_sender(account.bits() * 1e9 / sent, low))
    } else {
        account.available(free, low, high)
    };
    let mut made = made.ok_or(Reason::NotConverged)?;
    made = made
        .with("capacity_bps", capacity)
        .with("pairs", pairs.len())
        .with("late_pairs", late.len())
        .with("share_taken", share);
    if let Some(capacity) = session.params.capacity {
        made = made.caveat(Caveat::CapacityAssumed { capacity });
    } else if session.narrow.is_some_and(|narrow| narrow.sender()) {
        made.confidence = Confidence::Low;
    }
    if bounded {
        return Ok(made);
    }
    let readings = session.readings.iter();
    let trains: Vec<(f64, f64)> = readings.map(|reading| (reading.rate_in, reading.rate_out)).collect();
    // The interval is one of 95 %: twice the error.
    let taken = (capacity * share.clamp(0.0, 1.0), half / 2.0);
    let packets = session.readings.first().map_or(0.0, |reading| reading.packets as f64);
    Tight::by_trains(&trains, packets, capacity, taken).judge(made)
}

/// Whether stamps can tell the growth of such gaps at all.
fn trusted(session: &MethodRun, own_ns: f64) -> Result<(), Reason> {
    let Some(facts) = &session.account.facts else {
        return Ok(());
    };
    let short = session.pairs.iter().filter(|pair| pair.came_ns < SHORT * own_ns.min(pair.sent_ns.max(own_ns))).count();
    if short as f64 > BATCHING * session.pairs.len().max(1) as f64 {
        return Err(Reason::ReceiveBatching);
    }
    let trust = Trust::new(facts, Stamped::PeerKind, session.source);
    if trust.blur(own_ns) > COARSEST {
        return Err(Reason::StampsTooCoarse);
    }
    if trust.at_floor(own_ns) {
        return Err(Reason::ReceiverTooSlow);
    }
    Ok(())
}

/// Share of the link that others took, and half the width of its interval: a ratio of sums.
fn ratio(pairs: &[Spacing], own_ns: f64) -> Option<(f64, f64)> {
    let sent: f64 = pairs.iter().map(|pair| pair.sent_ns).sum();
    let grown: f64 = pairs.iter().map(|pair| pair.came_ns - own_ns).sum();
    let share = grown / sent;
    let mean = sent / pairs.len() as f64;
    let residuals: Vec<f64> = pairs.iter().map(|pair| (pair.came_ns - own_ns - share * pair.sent_ns) / mean).collect();
    Some((share, half_width(&residuals)?)).filter(|(share, half)| share.is_finite() && half.is_finite())
}

/// The same as the tool has it.
fn published(pairs: &[Spacing], own_ns: f64) -> Option<(f64, f64)> {
    let free: Vec<f64> =
        pairs.iter().map(|pair| (1.0 - (pair.came_ns - own_ns).max(0.0) / pair.sent_ns).max(-0.8)).collect();
    Some((1.0 - narrows_stat::mean(&free)?.max(0.0), half_width(&free)?))
        .filter(|(share, half)| share.is_finite() && half.is_finite())
}
