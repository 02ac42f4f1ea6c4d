//! From pairs and trains to an answer.

use super::session::MethodRun;
use crate::gaps::{Account, Reading, Tight, half_width};
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Outcome, Ranged, Reason};
use narrows_units::BitRate;

/// Interval at least, as a share of capacity (ours).
const LEAST: f64 = 0.02;
/// Trains stretched by less came as they left (ours).
const STRETCHED: f64 = 1.02;
/// Trains this much slower than asked for are the sender's limit (ours).
const SLOW: f64 = 0.9;

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let made = match &session.failed {
        Some(reason) => Err(reason.clone()),
        None => estimate(session),
    };
    match made {
        Ok(estimate) => Account::stopped(estimate, stopped).into(),
        Err(reason) => session.account.inconclusive(stopped.cloned().unwrap_or(reason)),
    }
}

fn stretch(reading: &Reading) -> f64 {
    reading.rate_in / reading.rate_out
}

/// `A = R + C (1 - R/R')`, for a stretched train; what came through, for another.
fn available(reading: &Reading, capacity: f64) -> f64 {
    if stretch(reading) <= 1.0 {
        return reading.rate_out.min(capacity);
    }
    (reading.rate_in + capacity * (1.0 - stretch(reading))).max(0.0)
}

fn estimate(session: &MethodRun) -> Result<Estimate, Reason> {
    let account = &session.account;
    let capacity = session.capacity().ok_or(Reason::TooFewSamples { samples: 0 })?;
    let readings = &session.readings;
    if readings.is_empty() {
        return Err(Reason::NoAnswer);
    }
    if let Some(bound) = limited(session, capacity) {
        return bound;
    }
    let values: Vec<f64> = readings.iter().map(|reading| available(reading, capacity)).collect();
    let mean = narrows_stat::mean(&values).ok_or(Reason::NoAnswer)?;
    let spread = half_width(&values)
        .or_else(|| own_gaps(session, capacity))
        .ok_or(Reason::TooFewSamples { samples: values.len() as u64 })?;
    let error = session.narrow.filter(|_| session.params.capacity.is_none()).map_or(0.0, |narrow| narrow.error);
    let half = spread.max(LEAST * capacity) + error * capacity;
    let lost: usize = readings.iter().map(|reading| reading.lost).sum();
    let sent: usize = readings.iter().map(|reading| reading.packets).sum();
    let through = 1.0 - lost as f64 / sent.max(1) as f64;
    let value = (if session.params.faithful { mean * through } else { mean }).clamp(0.0, capacity);
    let (low, high) = ((value - half) * through, (value + half).min(capacity));
    let mut made = account.available(value, low, high).ok_or(Reason::NoAgreement)?;
    made = made.with("capacity_bps", capacity).with("per_train_bps", values);
    if let Some(capacity) = session.params.capacity {
        made = made.caveat(Caveat::CapacityAssumed { capacity });
    }
    if readings.len() < 3 {
        let samples = u32::try_from(readings.len()).unwrap_or(u32::MAX);
        made = made.caveat(Caveat::FewSamples { samples });
        made.confidence = Confidence::Low;
    }
    let own_ns = account.bits() * 1e9 / capacity;
    let pairs: Vec<(f64, f64)> = session.pairs.iter().map(|pair| (pair.sent_ns, pair.came_ns)).collect();
    let share = ((capacity - mean).max(0.0) / capacity, spread / capacity / 2.0);
    let tight = Tight::by_pairs(&pairs, own_ns, share);
    let made = tight.judge(made)?;
    Ok(if tight.is_doubted() { bound(made) } else { made })
}

/// What is left where another link may be the tight one: of rate `C' >= C`, which trains reach at
/// `C`, `A = C - C' (C/R - 1)` is free, which is no more than what the formula says with `C` for
/// `C'`.
fn bound(mut made: Estimate) -> Estimate {
    made.adjust(|rate: &mut Ranged<BitRate>| rate.value = rate.high);
    made.at_most()
}

/// The hosts, not the path, set what was seen.
fn limited(session: &MethodRun, capacity: f64) -> Option<Result<Estimate, Reason>> {
    if session.params.faithful {
        return None;
    }
    let account = &session.account;
    let of = |of: fn(&Reading) -> f64| session.readings.iter().map(of).collect::<Vec<f64>>();
    let least = of(|reading| reading.rate_out).into_iter().reduce(f64::min)?;
    if session.readings.iter().any(|reading| reading.receiver_bound) {
        return Some(account.receiver_limit(least).ok_or(Reason::ReceiverTooSlow));
    }
    let sent = narrows_stat::median(&of(|reading| reading.rate_in))?;
    let stretched = narrows_stat::median(&of(stretch))? > STRETCHED;
    if session.sender() && !account.at_interface(sent) {
        let reached = BitRate::from_bps_f64(sent).unwrap_or(BitRate::ZERO);
        return Some(if stretched {
            Err(Reason::SenderTooSlow { reached })
        } else {
            account.sender_bound(sent, least).ok_or(Reason::SenderTooSlow { reached })
        });
    }
    if sent < SLOW * capacity && !stretched {
        return Some(account.sender_bound(sent, least).ok_or(Reason::NotConverged));
    }
    None
}

/// What the scatter of one train's gaps leaves open, bit/s: the queue never empties at that rate,
/// so they are independent samples.
fn own_gaps(session: &MethodRun, capacity: f64) -> Option<f64> {
    let own = session.account.bits() * 1e9 / capacity;
    let grown: Vec<f64> = session.gaps.iter().map(|gap| gap.came_ns / own * capacity).collect();
    half_width(&grown)
}
