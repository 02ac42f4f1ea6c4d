//! From the session to the outcome.

use narrows_units::{BitRate, Metric};

use super::batches;
use super::behind;
use super::buckets::{credible, from_bucket, kept_up, not_excluded, or_at_same_rate, search, went_on};
use super::by_trains::{WIDEST, blurred, from_bound, from_idle_trains, from_trains, too_wide, uncertain};
use super::capprobe::{self, Filtered};
use super::core::{LEAST_FULL, are_shared_trains, backed, core, pairs_within, sharpen};
use super::diagnostics::{common_caveats, diagnostics, finish, samples};
use super::full_queue;
use super::gaps;
use super::hosts::{from_batches, mimicked, receiver_bound, sender_rate, sent_share};
use super::least_delay;
use super::limits::{
    as_carried, as_long_trains, faster_than_any, least_carried, long_carried, most_carried, no_less_than, no_more_than,
};
use super::modes::{self, Decision};
use super::paced::least_capacity;
use super::params::Preset;
use super::quick;
use super::rates::{bit_rate, plain};
use super::sample::Phase;
use super::session::{MethodRun, Pooled};
use super::settled;
use super::three_rates;
use narrows_probe::outcome::{BoundKind, Caveat, Confidence, Details, Estimate, Limit, Outcome, Ranged, Reason};

/// Concludes from what there is. `stopped`: the run was cut short for this reason.
pub(super) fn conclude(session: &MethodRun, stopped: Option<&Reason>) -> Outcome {
    let outcome = match answer(session).map(|estimate| as_long_trains(session, estimate)) {
        Ok(estimate) => Outcome::from(finish(session, estimate)),
        Err(reason) => Outcome::Inconclusive {
            reason: stopped.cloned().unwrap_or(reason),
            caveats: common_caveats(session),
            details: Details::default(),
            diagnostics: diagnostics(session),
        },
    };
    match (outcome.counted(samples(session)), stopped) {
        (Outcome::Estimated(estimate), Some(_)) => {
            let mut estimate = estimate.caveat(Caveat::StoppedEarly);
            estimate.confidence = Confidence::Low;
            estimate.into()
        }
        (outcome, _) => outcome,
    }
}

fn answer(session: &MethodRun) -> Result<Estimate, Reason> {
    let search = search(session);
    if let Some(found) = full_queue::narrow(session) {
        // Long trains that get a share of such a link say less.
        let mut estimate = plain(session, found.rate, found.low, found.high)?.with("branch", "full queue");
        estimate.confidence = estimate.confidence.min(Confidence::Medium);
        return Ok(not_excluded(mark_mimicked(session, estimate, found.rate), search.excluded_octets));
    }
    if let Some(turning_point) = search.turning_point.filter(|turning_point| credible(session, turning_point)) {
        let found = from_bucket(session, &turning_point, behind::estimate(session, &turning_point));
        return Ok(or_at_same_rate(session, found, &turning_point, |session| without_bucket(session).ok()));
    }
    let named = without_bucket(session).and_then(|estimate| as_carried(session, estimate));
    let mut estimate = went_on(session, raised(session, named.or_else(|reason| or_as_carried(session, reason))?));
    let long = session.of(Phase::Bucket).next().is_some();
    if search.bent > 0 && (long || estimate.limited_by == Limit::Sender) {
        // Something bent the long trains, though no two alike.
        return Ok(kept_up(session, uncertain(estimate), search.excluded_octets));
    }
    if let Some(rate) = estimate.rate()
        && session.params.preset == Preset::Adaptive
        && rate.verdict == BoundKind::Estimated
        && (modes::trains_too_slow(session, rate.value.as_f64())
            || faster_than_any(&estimate, rate.value, search.fastest_bps))
    {
        return Ok(uncertain(estimate.caveat(Caveat::NotConverged)));
    }
    if session.params.preset == Preset::Adaptive {
        estimate = settled::or_as_long(session, estimate);
    }
    // Of a bucket deeper than the longest train nothing is known.
    if search.excluded_octets < EXCLUDED {
        estimate.confidence = estimate.confidence.min(Confidence::Medium);
        if session.params.preset == Preset::Adaptive {
            estimate = not_excluded(estimate, search.excluded_octets);
        }
    }
    Ok(estimate.with("bucket_excluded_octets", search.excluded_octets))
}

fn without_bucket(session: &MethodRun) -> Result<Estimate, Reason> {
    if session.of(Phase::Batches).next().is_some() || batches::seen(session) {
        let found = from_batches(session)?;
        let bare = is_bound_of_path(&found);
        return three_rates::estimate(session).filter(|_| bare).unwrap_or(Ok(found));
    }
    if session.too_fast.len() > session.samples.len() {
        return receiver_bound(session, session.too_fast.iter()).map(|bound| settled::no_more(session, bound));
    }
    // Those that came slower may owe that to other traffic; all together are no more than the
    // path's.
    if session.too_fast.len() * TOO_FAST_SHARE > session.samples.len() {
        // Delays that wander push short trains together as well.
        let bound = receiver_bound(session, session.too_fast.iter().chain(session.bursts()))?;
        let bound = most_carried(session).into_iter().fold(bound, |bound, most| no_more_than(most, bound));
        return Ok(settled::no_more(session, bound));
    }
    if session.samples.is_empty() {
        return Err(nothing_came(session));
    }
    if let Some(rate) = sender_rate(session) {
        let found = plain(session, rate, rate, rate)?;
        let contradicted = long_carried(session).is_some_and(|most| most < CONTRADICTS * session.ip_rate(rate));
        return Ok(if contradicted {
            uncertain(found.at_least(Limit::Path).caveat(Caveat::NotConverged))
        } else {
            found.at_least(Limit::Sender).caveat(Caveat::SenderLimited)
        });
    }
    let paired = session.of(Phase::Pairs).next().is_some();
    let found = match quick::agreement(session) {
        Some(agreement) if !paired => {
            let mut estimate = plain(session, agreement.rate, agreement.low, agreement.high)?;
            estimate.confidence = quick_confidence(session);
            Ok(mark_mimicked(session, estimate.with("branch", "quick"), agreement.rate))
        }
        _ => from_modes(session),
    };
    if session.params.preset == Preset::Adaptive { settled::corrected(session, found) } else { found }
}

/// Samples that name no value still say what was carried, whatever kept them from one.
fn or_as_carried(session: &MethodRun, reason: Reason) -> Result<Estimate, Reason> {
    let disagree = matches!(reason, Reason::NoAgreement | Reason::ReceiveBatching);
    let own = session.params.preset == Preset::Adaptive;
    let least = least_carried(session).filter(|_| disagree && own).ok_or(reason)?;
    let bound = Estimate::ip_rate(Metric::IpCapacity, least, least, least).with("branch", "carried");
    Ok(uncertain(bound.at_least(Limit::Path).caveat(Caveat::NotConverged)))
}

/// No bound is less than what a long train was carried at on and on.
fn raised(session: &MethodRun, estimate: Estimate) -> Estimate {
    let bound = session.params.preset == Preset::Adaptive && estimate.verdict() == BoundKind::LowerBound;
    let least = if bound { least_carried(session) } else { None };
    least.into_iter().fold(estimate, |estimate, least| no_less_than(least, estimate))
}

/// Whether what there is so far names no value, though a sender could have shown one.
pub(super) fn is_bare(session: &MethodRun) -> bool {
    match without_bucket(session) {
        Ok(estimate) => is_bound_of_path(&estimate),
        Err(reason) => reason == Reason::NoAgreement,
    }
}

/// The value that what there is so far names if no bucket bends it, IP layer, bit/s.
pub(super) fn named(session: &MethodRun) -> Option<f64> {
    let value = without_bucket(session).ok().filter(|found| found.verdict() == BoundKind::Estimated)?;
    value.rate().map(|rate| rate.value.as_f64())
}

fn is_bound_of_path(estimate: &Estimate) -> bool {
    estimate.verdict() == BoundKind::LowerBound && estimate.limited_by != Limit::Sender
}

/// Two lines of evidence are there when back-to-back trains of several lengths and sizes agree, and
/// a paced train shows that nothing else was on the link.
fn quick_confidence(session: &MethodRun) -> Confidence {
    if session.narrow_is_loaded(1) == Some(false) && session.stamps_explain_scatter() {
        Confidence::High
    } else {
        Confidence::Medium
    }
}

fn mark_mimicked(session: &MethodRun, estimate: Estimate, wire_bps: f64) -> Estimate {
    if mimicked(session, wire_bps) { uncertain(estimate.caveat(Caveat::TimerLimited)) } else { estimate }
}

fn from_modes(session: &MethodRun) -> Result<Estimate, Reason> {
    let decision = modes::decide(session, usize::MAX).ok_or(Reason::NoAgreement)?;
    if session.params.preset == Preset::Faithful {
        return from_winner(session, &decision).map(|estimate| question(session, estimate));
    }
    let found = from_pairs(session, &decision).and_then(|estimate| no_dispersion_rate(session, &decision, estimate));
    let bound = match &found {
        Ok(estimate) if estimate.verdict() != BoundKind::Estimated => estimate.rate().map(|rate| rate.value.as_f64()),
        Ok(estimate) if estimate.confidence > Confidence::Low => return found,
        _ => None,
    };
    // Stamps that blur the rate of every pair still leave the gaps of trains around one packet, and
    // their arrivals on one line.
    let above = |found: &Pooled| bound.is_none_or(|bound| session.ip_rate(found.high) > bound);
    // Packets of two sizes have spoken for the gaps: they may stand where no paced train has.
    let by_gaps = gaps::narrow(session).filter(|gaps| above(gaps) && !is_trains_rate(&decision, gaps, true));
    let by_line = || least_delay::narrow(session).filter(|line| above(line) && !is_trains_rate(&decision, line, false));
    let named = by_gaps.map(|found| (found, "gaps"));
    match named.or_else(|| by_line().map(|found| (found, "least delay of trains"))) {
        Some((rate, branch)) => Ok(plain(session, rate.rate, rate.low, rate.high)?.with("branch", branch)),
        None => three_rates::estimate(session).unwrap_or(found),
    }
}

/// The estimate, unless paced trains say that back-to-back ones fell well short of the capacity and
/// it is no more than those came at: steady traffic makes pairs agree on a rate of its own.
fn no_dispersion_rate(session: &MethodRun, decision: &Decision, estimate: Estimate) -> Result<Estimate, Reason> {
    let least = least_capacity(session, decision).and_then(|wire| ip(session, BELOW_BOUND * wire));
    let high = estimate.rate().map(|rate| rate.high);
    let short = least.zip(high).is_some_and(|(least, high)| high < least);
    if short && estimate.verdict() == BoundKind::Estimated { from_bound(session, decision) } else { Ok(estimate) }
}

/// Whether a rate is no more than what long trains came at, and the link may have been loaded:
/// traffic at regular times slows all trains alike, and their gaps with them. `unknown` says what
/// holds where paced trains do not tell: that the link was idle, or that it may not have been.
fn is_trains_rate(decision: &Decision, found: &Pooled, unknown: bool) -> bool {
    let idle = decision.loaded.map_or(unknown, |loaded| !loaded);
    !idle && !decision.adr.is_some_and(|trains| found.rate > ABOVE_TRAINS * trains.rate)
}

fn from_pairs(session: &MethodRun, decision: &Decision) -> Result<Estimate, Reason> {
    // Stamps that are coarse do not tell either which of them waited for nobody.
    if are_shared_trains(session) {
        return unfiltered(session, decision);
    }
    match capprobe::filter(session) {
        Some(filtered) if filtered.converged => from_filter(session, decision, &filtered),
        Some(filtered) => match backed(session, decision, &filtered) {
            Some(found) => Ok(plain(session, found.rate, found.low, found.high)?.with("branch", "least delay")),
            None => unfiltered(session, decision).map(|estimate| holding(session, estimate, &filtered)),
        },
        None => unfiltered(session, decision),
    }
}

/// What the filter of least delay makes of the modes' answer, once it has converged. It needs no
/// assumption on which mode is strong, so it wins.
fn from_filter(session: &MethodRun, decision: &Decision, filtered: &Filtered) -> Result<Estimate, Reason> {
    // Trains bound the capacity from below: clean pairs that are slower contradict them.
    // Nor can the capacity be far above twice what they come at.
    if decision.adr.is_some_and(|adr| {
        filtered.rate < BELOW_BOUND * adr.rate - adr.error
            || (adr.trains >= modes::TRAINS && filtered.rate > modes::MOST_ABOVE * adr.rate + adr.error)
    }) {
        return unfiltered(session, decision).map(uncertain);
    }
    if mimicked(session, filtered.rate) {
        return from_winner(session, decision).map(uncertain);
    }
    if let Some(adr) = decision.adr.filter(|_| blurred(session, filtered.rate) && modes::trains_suffice(decision)) {
        return from_idle_trains(session, &adr);
    }
    let found = decision.winner.as_ref().map(narrows_stat::LocalMode::centre);
    let trains = decision.adr.filter(|_| modes::trains_suffice(decision)).map(|adr| adr.rate);
    let branch = if trains.is_some() && found.is_none() { "dispersion rate" } else { "modes" };
    let agrees = |rate: &f64| filtered.agrees(*rate, decision.width, decision.is_strong());
    if let Some(rate) = found.or(trains).filter(agrees) {
        // A window that is wide because the samples scatter agrees with much; the clean pairs
        // inside it are the better answer.
        if decision.width > COARSE_WINDOW * rate {
            return clean_pairs(session, filtered);
        }
        let found = if let Some(winner) = &decision.winner {
            sharpen(session, winner.central.low(), winner.central.high())
        } else {
            let error = decision.adr.map_or(0.0, |adr| adr.error).max(0.001 * rate);
            Pooled { rate, low: rate - error, high: rate + error, explained: true }
        };
        // A mode that scatters by more than stamps explain holds pairs that others moved, mostly
        // the same way; clean ones were not. Where stamps leave more open of those, many pairs
        // still say more.
        let apart = found.low > filtered.high || found.high < filtered.low;
        let sharper = filtered.high - filtered.low < found.high - found.low;
        let mut estimate = if filtered.outweighs() && (apart || (!found.explained && sharper)) {
            clean_pairs(session, filtered)?
        } else {
            plain(session, found.rate, found.low, found.high)?.with("branch", branch)
        };
        // Steady traffic of small packets delays and slows all pairs alike, unless the sender is
        // clearly faster.
        if sent_share(session).is_some_and(|share| share < FAST_SENDER) {
            estimate.confidence = Confidence::High;
        }
        // Three clean pairs on a loaded link may be chance, and so may a mode of what passes within
        // one burst of a medium.
        if decision.loaded != Some(false) && !filtered.is_plain() && backed(session, decision, filtered).is_none() {
            estimate = uncertain(estimate.caveat(Caveat::NotConverged));
        }
        return Ok(estimate);
    }
    if !filtered.outweighs() && decision.loaded != Some(false) {
        return from_bound(session, decision);
    }
    if !filtered.outweighs() {
        // The likelier value of the two, with an interval that holds both.
        let modes = unfiltered(session, decision)?.rate();
        let mut estimate = uncertain(clean_pairs(session, filtered)?.caveat(Caveat::NotConverged));
        widen(&mut estimate, modes.into_iter().flat_map(|modes| [modes.low, modes.high]));
        return Ok(estimate);
    }
    let estimate = clean_pairs(session, filtered)?;
    Ok(match found.and_then(|wire| bit_rate(session.ip_rate(wire))) {
        Some(other) => estimate.caveat(Caveat::Multimodal { other }),
        None => estimate,
    })
}

/// What the clean pairs say, without the modes. Of those pairs that were not seen to be clean, a
/// core that says the same is the better mean.
fn clean_pairs(session: &MethodRun, filtered: &Filtered) -> Result<Estimate, Reason> {
    let (low, high) = (filtered.low * (1.0 - NEAR_CLEAN), filtered.high * (1.0 + NEAR_CLEAN));
    let (full, inside) = pairs_within(session, low, high);
    let own = full.len() >= LEAST_FULL;
    let sharper = core(session, if own { &full } else { &inside }).filter(|core| {
        let narrower = core.high - core.low < filtered.high - filtered.low;
        narrower && core.explained && (filtered.low..=filtered.high).contains(&core.rate)
    });
    let found =
        sharper.unwrap_or(Pooled { rate: filtered.rate, low: filtered.low, high: filtered.high, explained: false });
    Ok(plain(session, found.rate, found.low, found.high)?.with("branch", "capprobe"))
}

/// With an interval that holds what the filter says, too.
fn holding(session: &MethodRun, mut estimate: Estimate, filtered: &Filtered) -> Estimate {
    if estimate.verdict() == BoundKind::Estimated {
        widen(&mut estimate, [filtered.low, filtered.high].into_iter().filter_map(|wire| ip(session, wire)));
    }
    estimate
}

/// With an interval that holds these rates, too.
fn widen(estimate: &mut Estimate, rates: impl Iterator<Item = BitRate>) {
    estimate.adjust(|range: &mut Ranged<BitRate>| {
        for rate in rates {
            (range.low, range.high) = (range.low.min(rate), range.high.max(rate));
        }
    });
}

fn ip(session: &MethodRun, wire: f64) -> Option<BitRate> {
    bit_rate(session.ip_rate(wire))
}

/// The modes' answer where the filter has not converged: it stands if paced trains say that nothing
/// else was on the link; otherwise any candidate may be the capacity.
fn unfiltered(session: &MethodRun, decision: &Decision) -> Result<Estimate, Reason> {
    let estimate = match from_winner(session, decision) {
        // Delays that wander by more than a packet's time blur all pairs, and no long train.
        Err(Reason::NoAgreement) => return from_bound(session, decision),
        other => other?,
    };
    let sure = decision.loaded == Some(false) && estimate.confidence > Confidence::Low;
    if sure || estimate.verdict() != BoundKind::Estimated {
        return Ok(estimate);
    }
    // With other traffic on the narrow link and no clean pair, most of what pairs show is made of
    // that traffic: its packets between two of ours give modes of their own, at the trains' rate
    // and elsewhere. Only a mode of very many pairs stands, and only alone.
    let several = estimate.caveats.iter().any(|caveat| matches!(caveat, Caveat::Multimodal { .. }));
    let alone = !several && !are_shared_trains(session);
    let many = session.of(Phase::Pairs).count() >= LEAST_PAIRS;
    let settled = modes::settled(session, modes::PAIRS_PER_ROUND);
    // Long trains at the rate of most pairs were slowed by nobody: two witnesses again.
    let slower = decision.winner.zip(decision.adr).map(|(winner, adr)| 1.0 - adr.rate / winner.centre());
    let alike = decision.share >= MOST_PAIRS && slower.is_some_and(|slower| slower.abs() <= NEAR_CLEAN);
    if alone && alike && decision.loaded != Some(true) {
        let trains = decision.adr.and_then(|adr| ip(session, adr.rate));
        let mut estimate = estimate;
        widen(&mut estimate, trains.into_iter());
        return Ok(estimate);
    }
    let large = alone && many && (settled || decision.is_strong());
    if !large && decision.loaded != Some(false) {
        return from_bound(session, decision);
    }
    if large && settled {
        return Ok(uncertain(estimate));
    }
    let adr = decision.adr.map(|adr| adr.rate - adr.error);
    let faster = decision.faster.map(|(_, rate)| rate);
    let span = decision.span.into_iter().flat_map(|(low, high)| [low, high]);
    let rates = adr.into_iter().chain(faster).chain(span).filter_map(|wire| ip(session, wire));
    let mut estimate = uncertain(estimate.caveat(Caveat::NotConverged));
    widen(&mut estimate, rates);
    Ok(estimate)
}

/// The tool's answer stays as it is; that clean pairs say another is worth a caveat.
fn question(session: &MethodRun, estimate: Estimate) -> Estimate {
    let other = capprobe::filter(session)
        .filter(|filtered| filtered.converged)
        .and_then(|filtered| bit_rate(session.ip_rate(filtered.rate)));
    match other {
        Some(other) if (other.as_f64() / estimate.in_unit().value as f64 - 1.0).abs() > NEAR_CLEAN => {
            uncertain(estimate.caveat(Caveat::Multimodal { other }))
        }
        _ => estimate,
    }
}

fn from_winner(session: &MethodRun, decision: &Decision) -> Result<Estimate, Reason> {
    let Some(winner) = decision.winner else {
        return from_trains(session, decision);
    };
    if decision.width > WIDEST * winner.centre() {
        return Err(too_wide(session));
    }
    let found = sharpen(session, winner.central.low(), winner.central.high());
    let rate = found.rate;
    let mut estimate = plain(session, rate, found.low, found.high)?.with("branch", "modes");
    if let Some(other) = runner_up(session, decision).and_then(|wire| bit_rate(session.ip_rate(wire))) {
        estimate = uncertain(estimate.caveat(Caveat::Multimodal { other }));
    }
    if session.params.preset == Preset::Adaptive && !modes::settled(session, modes::PAIRS_PER_ROUND) {
        if mimicked(session, rate) {
            return Err(Reason::StampsTooCoarse);
        }
        estimate = uncertain(estimate.caveat(Caveat::NotConverged));
    }
    Ok(mark_mimicked(session, estimate, rate))
}

/// What else the pairs may mean: a runner-up close behind, or pairs faster than the winner. Where
/// the narrow link is loaded and no hop behind it squeezes pairs together, none are faster than its
/// capacity; so either the winner is below it or there is such a hop, and the samples do not tell
/// which.
fn runner_up(session: &MethodRun, decision: &Decision) -> Option<f64> {
    if decision.replay(session.params.merit) < modes::LEAD || decision.merits_differ {
        return decision.runner_up.map(|mode| mode.centre());
    }
    let (share, rate) = decision.faster?;
    // Where checks do not tell, a winner at the trains' rate is what two kinds of samples say.
    let agrees = match (decision.loaded, &decision.winner, decision.adr) {
        (Some(loaded), ..) => !loaded,
        (None, Some(winner), Some(adr)) => (winner.centre() / adr.rate - 1.0).abs() < AGREES.max(adr.error / adr.rate),
        (None, ..) => false,
    };
    let own = session.params.preset == Preset::Adaptive;
    (own && !agrees && share > FASTER_SHARE).then_some(rate)
}

fn nothing_came(session: &MethodRun) -> Reason {
    let tally = &session.tally;
    if tally.answered_trains == 0 {
        return Reason::NoAnswer;
    }
    Reason::TooMuchLoss { lost: tally.lost + tally.dropped, sent: tally.sent }
}

/// Ours: less than this above the trains' rate is the trains' rate.
const ABOVE_TRAINS: f64 = 1.03;
/// Ours: trains are a bound to some percent, not to the bit.
const BELOW_BOUND: f64 = 0.97;
/// Ours: a window wider than this share of its rate says little about which rate it is.
const COARSE_WINDOW: f64 = 0.05;
/// Ours.
const NEAR_CLEAN: f64 = 0.03;
/// Ours.
const FAST_SENDER: f64 = 0.5;
/// Ours: from one sample in so many on, being faster than the receiver is no accident.
const TOO_FAST_SHARE: usize = 5;
/// Ours: the width of a bin.
const AGREES: f64 = 0.02;
/// Ours: one pair in twenty may be an accident.
const FASTER_SHARE: f64 = 0.05;
/// Ours: what queues and stamps take of a long train's rate.
const CONTRADICTS: f64 = 0.8;
/// Ours: 60 packets, which is more than the 64 kB that shapers often have; of buckets that fill at
/// four fifths of the link's rate. Of slower ones, which would make the answer more wrong, up to
/// five times that is excluded.
const EXCLUDED: u64 = 90_000;
/// Ours: with fewer pairs a mode is an accident.
const LEAST_PAIRS: usize = 24;
/// Ours: two in three.
const MOST_PAIRS: f64 = 0.66;
