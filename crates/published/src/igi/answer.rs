//! From the levels of a search to an answer.

use narrows_units::BitRate;

use super::session::{Formula, Level, MethodRun};
use crate::gaps::{Account, Narrow, Reading, Spacing, half_width, rates, rounding};
use narrows_probe::outcome::{Caveat, Confidence, Estimate, Outcome, Reason};

/// Interval at least, as a share of the path's rate: half of it is what the search leaves open
/// (ours).
const LEAST: f64 = 0.02;

/// How far chance moves the turning point that a search finds, in units of what bursts add to a
/// train there, times the path's rate: a level of three trains is known to 1/sqrt(3) of a train's
/// deviation, which is twice that unit, and two of these are 95 % (ours).
const SEARCH: f64 = 2.4;
/// Gaps that grew and all gaps may differ by this share of capacity before the answer is coarse,
/// and by the other before there is none (ours).
const COARSE: f64 = 0.1;
const APART: f64 = 0.25;

pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let account = &session.account;
    let reason = session.failed.as_ref().or(stopped);
    let found = limited(session).map(Ok).or_else(|| {
        if session.failed.is_some() {
            return None;
        }
        match session.formula {
            Formula::Ptr => ptr(session).map(Ok),
            Formula::Igi => igi(session),
        }
    });
    match found {
        Some(Ok(estimate)) => Account::stopped(reported(session, estimate), stopped).into(),
        Some(Err(reason)) => account.inconclusive(reason),
        None => account.inconclusive(reason.cloned().unwrap_or(Reason::NotConverged)),
    }
}

/// The hosts, not the path, ended the search.
fn limited(session: &MethodRun) -> Option<Estimate> {
    if session.params.faithful() {
        return None;
    }
    let first = &session.levels.first()?.readings;
    if first.len() < session.params.trains {
        return None;
    }
    let least = first.iter().map(|reading| reading.rate_out).reduce(f64::min)?;
    if first.iter().all(|reading| reading.receiver_bound) {
        let through = least_through(session)?;
        return session.account.receiver_limit(through.min(least));
    }
    let sent = narrows_stat::median(&rates(first, |reading| reading.rate_in))?;
    if !session.unspaced() {
        return None;
    }
    session.account.sender_bound(sent, least)
}

/// What came through at the receiver's pace was at least what the path let through.
fn least_through(session: &MethodRun) -> Option<f64> {
    let all = session.levels.iter().flat_map(|level| &level.readings);
    all.map(|reading| reading.rate_out.min(reading.rate_in)).reduce(f64::min)
}

/// The levels on either side of the turning point.
fn around(session: &MethodRun) -> Vec<&Level> {
    let one = |at: Option<usize>| at.and_then(|at| session.levels.get(at));
    let [over, under] = [one(session.over), one(session.under)];
    // As the tool has it: the first of the two that did not grow.
    let over = over.filter(|_| !session.params.faithful());
    over.into_iter().chain(under).filter(|level| !level.readings.is_empty()).collect()
}

fn readings(session: &MethodRun) -> Vec<&Reading> {
    around(session).into_iter().flat_map(|level| &level.readings).collect()
}

/// Rate, and half the width of its interval.
fn turning(session: &MethodRun) -> Option<(f64, f64)> {
    session.under?;
    let all = readings(session);
    let out = rates(all.iter().copied(), |reading| reading.rate_out);
    // The sum of mean gaps, as the tool has it: a harmonic mean of rates.
    let gaps: Vec<f64> = out.iter().map(|rate| 1.0 / rate).collect();
    let rounded = if session.params.faithful() { 0.0 } else { rounding(all.iter().copied()) };
    // What bursts add to a train at the turning point is not the path's doing.
    let rate = (1.0 + rounded) / narrows_stat::mean(&gaps)?;
    let scale = session.account.fastest.unwrap_or(rate);
    let half = half_width(&out)?.max(SEARCH * rounded * scale);
    Some((rate, half.max(LEAST * scale)))
}

fn ptr(session: &MethodRun) -> Option<Estimate> {
    let (rate, half) = turning(session)?;
    session.account.available(rate, rate - half, rate + half)
}

fn igi(session: &MethodRun) -> Option<Result<Estimate, Reason>> {
    let narrow = session.narrow?;
    let (capacity, own_ns, error) = capacity(session, &narrow);
    let faithful = session.params.faithful();
    session.under?;
    // Where the queue never empties the gaps hold the cross traffic: on the side where gaps grew.
    let side = around(session).into_iter().next()?;
    let cross: Vec<f64> = side.gaps.iter().filter_map(|gaps| cross_share(gaps, own_ns, faithful)).collect();
    let all: Vec<f64> = side.gaps.iter().filter_map(|gaps| held_share(gaps, own_ns)).collect();
    let value = capacity * (1.0 - narrows_stat::median(&cross)?.min(1.0));
    let half = capacity * (half_width(&cross)?.max(LEAST) + error);
    // Gaps that did not grow may hold cross traffic, too: if all do, this is what is left.
    let least = capacity * (1.0 - narrows_stat::mean(&all)?.min(1.0));
    let low = if faithful { value - half } else { (value - half).min(least - half) };
    if !faithful && value - least > APART * capacity {
        return Some(Err(Reason::NoAgreement));
    }
    let mut estimate = session.account.available(value, low, (value + half).min(capacity * (1.0 + error)))?;
    estimate = estimate
        .with("capacity_bps", capacity)
        .with("capacity_gap_share", narrow.share)
        .with("all_gaps_cross_bps", all.iter().map(|share| share * capacity).collect::<Vec<_>>())
        .with("increased_gaps_cross_bps", cross.iter().map(|share| share * capacity).collect::<Vec<_>>());
    estimate.confidence = Confidence::Low;
    if value - least > COARSE * capacity {
        estimate = estimate.caveat(Caveat::CoarseResolution);
    }
    if let Some(capacity) = session.params.capacity {
        estimate = estimate.caveat(Caveat::CapacityAssumed { capacity });
    } else if let Some(capacity) = BitRate::from_bps_f64(capacity).filter(|_| narrow.sender()) {
        estimate = estimate.caveat(Caveat::CapacityAssumed { capacity });
    }
    Some(Ok(estimate))
}

/// Capacity for full-size packets, bit/s at the IP layer; a probe packet's own gap, ns; and its
/// error, as a share.
fn capacity(session: &MethodRun, narrow: &Narrow) -> (f64, f64, f64) {
    let wire = |octets: u16| f64::from(session.params.framing.wire_octets(u32::from(octets))).max(1.0);
    let probe = session.account.octets;
    let full = session.account.facts.as_ref().map_or(probe, |facts| facts.path_mtu);
    // IP octets of a full-size packet per octet of the wire.
    let share = f64::from(full) / wire(full);
    match session.params.capacity {
        Some(known) => (known.as_f64(), wire(probe) * 8e9 * share / known.as_f64(), 0.0),
        None => (wire(probe) * 8e9 * share / narrow.gap_ns, narrow.gap_ns, narrow.error),
    }
}

/// Share of the link that others took, from the gaps that grew: the published sum.
fn cross_share(gaps: &[Spacing], own_ns: f64, faithful: bool) -> Option<f64> {
    let sent = narrows_stat::mean(&gaps.iter().map(|gap| gap.sent_ns).collect::<Vec<_>>())?;
    let total: f64 = gaps.iter().map(|gap| gap.came_ns).sum();
    let slack = if faithful { 5000.0 } else { SLACK * sent.max(own_ns) };
    let grown = gaps.iter().filter(|gap| gap.came_ns > own_ns.max(sent) + slack);
    let more: f64 = grown.map(|gap| gap.came_ns - own_ns).sum();
    (total > 0.0).then(|| (more / total).max(0.0))
}

/// The same from all gaps.
fn held_share(gaps: &[Spacing], own_ns: f64) -> Option<f64> {
    let total: f64 = gaps.iter().map(|gap| gap.came_ns).sum();
    let more: f64 = gaps.iter().map(|gap| gap.came_ns - own_ns).sum();
    (total > 0.0).then(|| (more / total).max(0.0))
}

/// Gaps that differ by less are alike (ours).
const SLACK: f64 = 0.002;

/// With what it rests on.
fn reported(session: &MethodRun, estimate: Estimate) -> Estimate {
    let levels = session.levels.iter().filter(|level| !level.readings.is_empty());
    let mean = |level: &Level, of: fn(&Reading) -> f64| narrows_stat::mean(&rates(&level.readings, of)).unwrap_or(0.0);
    let rate_in: Vec<f64> = levels.clone().map(|level| mean(level, |reading| reading.rate_in)).collect();
    let rate_out: Vec<f64> = levels.clone().map(|level| mean(level, |reading| reading.rate_out)).collect();
    let grew: Vec<f64> = levels.map(|level| if level.larger { 1.0 } else { 0.0 }).collect();
    let few = session.params.trains < 3;
    let samples = u32::try_from(2 * session.params.trains).unwrap_or(u32::MAX);
    let estimate = if few { estimate.caveat(Caveat::FewSamples { samples }) } else { estimate };
    estimate.with("level_rate_in_bps", rate_in).with("level_rate_out_bps", rate_out).with("level_grew", grew)
}
