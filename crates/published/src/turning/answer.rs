//! From rounds to an answer.

use narrows_units::{BitRate, Metric};

use super::round::{Round, RoundAccount, rate};
use super::session::{Ending, Flawed, MethodRun};
use super::{Rule, SPANNED};
use narrows_probe::outcome::{
    Caveat, Confidence, Details, Diagnostics, Estimate, Limit, Outcome, Reason, SampleCounts,
};

pub(super) fn conclude<R: Rule>(session: &MethodRun<R>, stopped: Option<&Reason>) -> Outcome {
    let ending = match (&session.ended, stopped) {
        (Some(Flawed::Rule(ending)), None) => Ok(*ending),
        (Some(Flawed::Trains(reason)), None) | (_, Some(reason)) => Err(reason.clone()),
        (None, None) => Err(Reason::UnexpectedEvent),
    };
    let found = match &ending {
        Ok(Ending::Settled) => settled(session),
        Ok(Ending::BelowStart) => unreached(session),
        Ok(Ending::TooLow) => at_most(session),
        // What was seen of the turning point by then.
        Ok(Ending::Exhausted) | Err(_) => bracket(session),
    };
    let seen = &session.seen;
    match (found, ending) {
        (Some(estimate), ending) => account(seen, estimate, ending.is_err()).into(),
        (None, ending) => Outcome::Inconclusive {
            reason: reason(seen, ending.err()),
            caveats: caveats(seen),
            details: Details::default(),
            diagnostics: diagnostics(seen, Diagnostics::default()),
        }
        .counted(samples(seen)),
    }
}

fn reason(seen: &RoundAccount, own: Option<Reason>) -> Reason {
    let (lost, sent) = (seen.tally.lost, seen.tally.sent);
    own.unwrap_or(if lost * LOSSY > sent { Reason::TooMuchLoss { lost, sent } } else { Reason::NotConverged })
}

fn of(value: f64, low: f64, high: f64) -> Option<Estimate> {
    Some(Estimate::ip_rate(
        Metric::AvailableIpCapacity,
        BitRate::from_bps_f64(value)?,
        BitRate::from_bps_f64(low.max(0.0))?,
        BitRate::from_bps_f64(high)?,
    ))
}

/// The rounds that filled the queue of a link.
fn full<R: Rule>(session: &MethodRun<R>) -> impl Iterator<Item = &Round> {
    let stretched = |round: &&Round| session.seen.stretched(&session.settings, round);
    session.seen.judged().filter(|round| round.is_congested()).filter(stretched)
}

/// The rates between which the turning point lies if `round` is at it, as far as its trains tell:
/// in the fluid model an error `e` of the stretch moves the turning point's spacing by
/// `e / (1 - u)`.
fn range<R: Rule>(session: &MethodRun<R>, round: &Round) -> (f64, f64) {
    let seen = &session.seen;
    let noise = SPANNED * seen.error_ns(round);
    let allowed = session.settings.allowance * seen.spread_ns(round);
    let systematic = RoundAccount::resolution_ns(&session.settings, round) + allowed;
    let half = noise.hypot(systematic) / (1.0 - seen.utilisation());
    let bits = f64::from(round.ip_octets) * 8.0;
    let (low, high) = (rate(bits, round.gap_in() + half), rate(bits, round.gap_in() - half));
    // No more can be available than came through while a queue stood, stamps and spread aside.
    let most = full(session).map(|round| {
        let error = SPANNED * seen.error_ns(round) / round.gap_out();
        round.rate_through() / (1.0 - error.min(0.5))
    });
    (low, most.fold(high, f64::min))
}

fn settled<R: Rule>(session: &MethodRun<R>) -> Option<Estimate> {
    let seen = &session.seen;
    let value = session.rule.value(&session.settings, seen)?;
    let last = seen.judged().next_back()?;
    let (low, high) = range(session, last);
    let floor = FLOOR * seen.scale();
    // What is lost behind the tight link has gone through it; nothing tells which losses those are.
    let through = 1.0 - (seen.tally.lost as f64 / seen.tally.sent.max(1) as f64).min(0.5);
    let (low, high) = (low.min(value - floor), high.max(value + floor) / through);
    if let Some(bound) = receiver_limited(session, value, low) {
        return Some(bound);
    }
    let mut estimate = of(value, low, high)?;
    if high - low > WIDE * seen.scale() {
        estimate.confidence = Confidence::Low;
    }
    Some(estimate)
}

/// What looks like the turning point may be the rate at which the receiving host takes packets.
fn receiver_limited<R: Rule>(session: &MethodRun<R>, value: f64, low: f64) -> Option<Estimate> {
    let seen = &session.seen;
    let (facts, source) = (seen.facts.as_ref()?, seen.arrived_by?);
    let limits = facts.receiver.stamps_limit(value, session.seen.ip_octets, source);
    let bound = limits.then(|| of(low, low, low)).flatten()?;
    Some(bound.at_least(Limit::Receiver).caveat(Caveat::ReceiverLimited))
}

/// Everything came through at the first rate.
fn unreached<R: Rule>(session: &MethodRun<R>) -> Option<Estimate> {
    let seen = &session.seen;
    let round = seen.judged().next_back()?;
    let (low, _) = range(session, round);
    let value = round.rate_in().min(round.rate_out());
    let cap = seen.facts.as_ref().and_then(|facts| facts.rate_cap);
    let max = seen.max_rate.unwrap_or(f64::INFINITY);
    if let Some(interface) = seen.interface().filter(|link| seen.at_max(round) && max >= 0.9 * link.as_f64()) {
        // No more can be available than the path's first link carries.
        let low = low.min(value * (1.0 - FLOOR));
        return of(value.min(interface.as_f64()), low, interface.as_f64());
    }
    let bound = of(low.min(value), low, value)?;
    let capped = cap.is_some_and(|cap| max >= 0.97 * cap.as_f64());
    Some(match (seen.at_max(round), capped) {
        (true, false) => bound.at_least(Limit::Sender).caveat(Caveat::SenderLimited),
        // The user's cap, or the rate to begin with that the user set.
        (true, true) | (false, _) => bound.at_least(Limit::Budget),
    })
}

/// Of what came through while a queue stood, the least.
fn least<R: Rule>(session: &MethodRun<R>) -> Option<f64> {
    let rates = full(session).map(Round::rate_through);
    rates.filter(|rate| rate.is_finite()).reduce(f64::min)
}

/// The slowest round was still too fast.
fn at_most<R: Rule>(session: &MethodRun<R>) -> Option<Estimate> {
    let slowest = least(session)?;
    let lossy = session.seen.judged().any(|round| round.lost_share() > 0.5);
    let estimate = of(slowest, slowest, slowest).filter(|_| !lossy)?;
    Some(estimate.at_most().caveat(Caveat::NotConverged))
}

/// Stopped on the way: between the fastest rate that came through and the slowest that did not; one
/// side is a bound.
fn bracket<R: Rule>(session: &MethodRun<R>) -> Option<Estimate> {
    let high = least(session);
    let through = session.seen.judged().filter(|round| !round.is_congested());
    let low = through.map(|round| range(session, round).0).reduce(f64::max);
    match (low, high) {
        (Some(low), Some(high)) if low < high => {
            let mut estimate = of(f64::midpoint(low, high), low, high)?.caveat(Caveat::NotConverged);
            estimate.confidence = Confidence::Low;
            Some(estimate)
        }
        (Some(low), None) => Some(of(low, low, low)?.at_least(Limit::Budget).caveat(Caveat::NotConverged)),
        _ => at_most(session),
    }
}

fn account(seen: &RoundAccount, mut estimate: Estimate, stopped: bool) -> Estimate {
    if let (Some(began), Some(ended)) = (seen.began, seen.ended) {
        estimate.interval = Some(ended.since(began));
    }
    for caveat in caveats(seen) {
        if caveat == Caveat::Shaped {
            estimate.confidence = Confidence::Low;
        }
        estimate = estimate.caveat(caveat);
    }
    if stopped {
        estimate.confidence = Confidence::Low;
        estimate = estimate.caveat(Caveat::StoppedEarly);
    }
    estimate.diagnostics = diagnostics(seen, std::mem::take(&mut estimate.diagnostics));
    estimate.counted(samples(seen))
}

fn caveats(seen: &RoundAccount) -> Vec<Caveat> {
    let tally = &seen.tally;
    let share = |count: u64| count as f64 / tally.sent.max(1) as f64;
    let shaped = tally.heads.len() >= 4 && narrows_stat::median(&tally.heads).is_some_and(|head| head > SHAPED);
    let all = [
        seen.batch.map(|period| Caveat::ReceiveBatching { period }),
        (tally.broken > 0).then_some(Caveat::PacingBroken { trains: tally.broken }),
        (share(tally.lost) > 0.001).then(|| Caveat::Loss { ratio: share(tally.lost) }),
        (tally.local_drops > 0).then_some(Caveat::LocalDrops { packets: tally.local_drops }),
        (share(tally.reordered) > 0.001).then(|| Caveat::Reordering { ratio: share(tally.reordered) }),
        (tally.clock_steps > 0).then_some(Caveat::ClockStep),
        (tally.stalls > 0).then_some(Caveat::HostStall),
        tally.exceeds_burst.then_some(Caveat::TrainExceedsBurstLimit),
        shaped.then_some(Caveat::Shaped),
    ];
    all.into_iter().flatten().collect()
}

fn samples(seen: &RoundAccount) -> SampleCounts {
    let tally = &seen.tally;
    SampleCounts::default()
        .kept("trains", seen.rounds.iter().map(|round| round.looks.len()).sum::<usize>())
        .rejected("lost_trains", tally.all_lost)
        .rejected("unpaced_trains", tally.broken)
        .rejected("clock_step_trains", tally.clock_steps)
        .rejected("few_batches_trains", tally.few_batches)
        .rejected("overflowed_trains", tally.overflows)
}

fn diagnostics(seen: &RoundAccount, mut diagnostics: Diagnostics) -> Diagnostics {
    let series = |of: fn(&Round) -> f64| -> Vec<f64> { seen.judged().map(of).collect() };
    diagnostics.insert("rate_in_bps", series(Round::rate_in));
    diagnostics.insert("rate_out_bps", series(Round::rate_out));
    diagnostics.insert("gap_in_ns", series(Round::gap_in));
    diagnostics.insert("gap_out_ns", series(Round::gap_out));
    diagnostics.insert("trains_of_round", series(|round| round.looks.len() as f64));
    diagnostics.insert("congested", series(|round| f64::from(u8::from(round.is_congested()))));
    diagnostics.insert("rounds", seen.judged().count());
    diagnostics.insert("trains", seen.tally.trains);
    diagnostics.insert("burstiness_ns", seen.burstiness() * 1e9);
    diagnostics
}

/// Losses of more than one packet in this many are named as the reason.
const LOSSY: u64 = 20;
/// Half-width below which no interval shrinks, as a share of the path's rate (ours, from sweeps):
/// stamps, framing, and the bias of short trains.
const FLOOR: f64 = 0.025;
/// Intervals wider than this share of the path's rate deserve little confidence (ours).
const WIDE: f64 = 0.25;
/// As in `fac2`: heads that outrun tails by this share have emptied a bucket.
const SHAPED: f64 = 0.15;
