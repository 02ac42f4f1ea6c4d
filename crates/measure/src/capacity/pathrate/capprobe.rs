//! The filter of `CapProbe` (`[CapProbe04]`) on the pairs that were sent anyway: what disperses a
//! pair wrongly, wider or narrower, is a queue, and a queue delays. The pair of least delay met
//! none.
//!
//! Pairs of one size and length make a *group*. With `x1`, `x2` the delays of its first and last
//! packets above the least that the group shows of each, a pair is *clean* if `x1 + x2` is within
//! the tolerance: 1 % of its dispersion, or what its stamps may be wrong by. A group has converged
//! if [`CLEAN`] pairs are clean (the paper's condition that the least sum equal the sum of the
//! least, met three times over) and agree.
//!
//! Both delays count from the departure of the train's first packet, which leaves out what the
//! sender's own gaps do. The clocks' offset drops out; their skew is taken from the line below the
//! first packets' delays, which meet an empty queue most often, and is believed only where it makes
//! more pairs clean than none at all (ours).

use std::collections::BTreeMap;

use narrows_units::{Framing, nanos_f64};

use super::framing::{self, Inverted, Point};
use super::sample::{Phase, Sample};
use super::session::{MethodRun, pool};

/// What the filter says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filtered {
    /// Wire rate of the clean pairs, bit/s; of the best pair if the filter has not converged.
    pub(super) rate: f64,
    /// Lower end of what the clean pairs leave open.
    pub(super) low: f64,
    /// Upper end.
    pub(super) high: f64,
    /// Clean pairs of the group that speaks.
    pub(super) clean: usize,
    pub(super) converged: bool,
    /// Groups that have converged.
    pub(super) groups: usize,
    /// The rate is that of full-size packets, or sizes tell how the link frames others.
    pub(super) restated: bool,
    /// What their sizes say of the narrow link's framing.
    pub(super) inverted: Option<Inverted>,
}

impl Filtered {
    /// Whether there is enough to overrule a mode: two sizes that agree, as the paper asks, or
    /// twice the clean pairs (ours). Three alike may be pairs that one packet of others parted, if
    /// no better one was met.
    pub(super) fn outweighs(&self) -> bool {
        self.restated && self.is_plain()
    }

    /// Whether more than three alike were met. A medium that is won delays all packets by chance,
    /// and a few pairs by as little as any; so does one packet of regular traffic.
    pub(super) fn is_plain(&self) -> bool {
        self.converged && (self.groups >= 2 || self.clean >= 2 * CLEAN)
    }

    /// Whether a rate is the same as the filter's, within `width` or 3 %, whichever is more; or, if
    /// it is that of a `strong` mode, within what framings leave open.
    pub(super) fn agrees(&self, rate: f64, width: f64, strong: bool) -> bool {
        let inside = (self.low..=self.high).contains(&rate);
        (rate - self.rate).abs() <= width.max(AGREES * self.rate) || (strong && !self.restated && inside)
    }
}

/// Runs the filter; `None` where pairs are too few, or stamps too coarse for delays to tell
/// anything.
pub(super) fn filter(session: &MethodRun) -> Option<Filtered> {
    let mut groups: BTreeMap<(u16, usize), Vec<&Sample>> = BTreeMap::new();
    let pairs = [Phase::Preliminary, Phase::Pairs, Phase::Filter];
    for sample in pairs.into_iter().flat_map(|phase| session.of(phase)) {
        if sample.delays.is_some() && sample.span_ns() > 0.0 {
            // Those behind a small first packet are a group of their own: they waited less for it.
            let kind = 2 * sample.packets() + usize::from(sample.phase == Phase::Filter);
            groups.entry((sample.ip_octets, kind)).or_default().push(sample);
        }
    }
    let read: Vec<Group> = groups
        .values()
        .filter(|members| members.len() >= LEAST_PAIRS)
        .filter_map(|members| group(session, members))
        .collect();
    let (sure, unsure): (Vec<Group>, Vec<Group>) = read.into_iter().partition(|one| one.found.converged);
    // The answer is stated for full-size packets; their own group needs no assumption on framing.
    let best = |list: &[Group]| {
        let full = list.iter().filter(|one| one.octets == session.full_size());
        let full = full.max_by_key(|one| one.found.clean);
        full.or(list.iter().max_by_key(|one| (one.found.clean, one.octets))).cloned()
    };
    let Some(chosen) = best(&sure) else {
        return best(&unsure).map(|one| one.found);
    };
    Some(together(session, &sure, &chosen))
}

/// Pairs of one size and length.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    octets: u16,
    found: Filtered,
    /// What the clean pairs say of one packet's time.
    point: Option<Point>,
}

/// The chosen group's rate, restated for full-size packets by the framing that the sizes show.
fn together(session: &MethodRun, sure: &[Group], chosen: &Group) -> Filtered {
    let points: Vec<Point> = sure.iter().filter_map(|one| one.point).collect();
    let inverted = framing::invert(&points).filter(|_| session.params.invert());
    let own = session.framing();
    let reported = inverted.as_ref().and_then(Inverted::framing).unwrap_or(own);
    let full = u32::from(session.full_size());
    // What the assumed framing makes of a rate, to what the other makes of it.
    let restate = |octets: u16| {
        let ratio =
            |framing: Framing| f64::from(framing.wire_octets(u32::from(octets))) / f64::from(framing.wire_octets(full));
        ratio(reported) / ratio(own)
    };
    let rate = |one: &Group| one.found.rate * restate(one.octets);
    let at_one = sure.iter().all(|one| (rate(one) / rate(chosen) - 1.0).abs() < GROUPS_AGREE);
    let known = inverted.as_ref().is_some_and(|inverted| inverted.framing().is_some());
    let doubt = match &inverted {
        _ if chosen.octets == session.full_size() || !session.params.invert() => 0.0,
        Some(inverted) if known => inverted.restated(chosen.octets, session.full_size()),
        _ => framing::apart(own, Framing::BARE, chosen.octets, session.full_size()),
    };
    let (factor, found) = (restate(chosen.octets), &chosen.found);
    Filtered {
        rate: found.rate * factor,
        low: found.low * factor * (1.0 - doubt),
        high: found.high * factor * (1.0 + doubt),
        converged: at_one,
        groups: sure.len(),
        clean: found.clean,
        restated: chosen.octets == session.full_size() || !session.params.invert() || known,
        inverted,
    }
}

fn group(session: &MethodRun, members: &[&Sample]) -> Option<Group> {
    let spans: Vec<f64> = members.iter().map(|sample| sample.span_ns()).collect();
    let span = narrows_stat::median(&spans)?;
    let quantum = nanos_f64(session.facts.receiver.clock_resolution);
    if std::f64::consts::SQRT_2 * quantum / span > COARSEST || blur(session, span) > NOISIEST {
        return None;
    }
    let without = read(session, members, 0.0)?;
    let with = skew(members).and_then(|slope| read(session, members, slope));
    Some(match with {
        Some(with) if with.found.clean > without.found.clean => with,
        _ => without,
    })
}

/// What the host measured of its stamps. What the trains show may be other traffic, which is what
/// the filter is to tell.
fn stamp_error_ns(session: &MethodRun) -> f64 {
    let resolution = nanos_f64(session.facts.receiver.clock_resolution);
    session.stamp_error_measured_ns().max(resolution / 2.0)
}

/// Relative error of a rate over this dispersion.
fn blur(session: &MethodRun, span_ns: f64) -> f64 {
    std::f64::consts::SQRT_2 * stamp_error_ns(session) / span_ns
}

/// Slope of the line below the first packets' delays.
fn skew(members: &[&Sample]) -> Option<f64> {
    let origin = members.first()?.delays?;
    let (mut times, mut delays) = (Vec::new(), Vec::new());
    for head in members.iter().filter_map(|sample| sample.delays) {
        times.push(head.departed_ns.saturating_sub(origin.departed_ns) as f64);
        delays.push(head.head_ns.saturating_sub(origin.head_ns) as f64);
    }
    narrows_train::mindelay::clock_skew(&times, &delays)
}

fn read(session: &MethodRun, members: &[&Sample], slope: f64) -> Option<Group> {
    let origin = members.first()?.delays?;
    let firsts: Vec<f64> = members
        .iter()
        .filter_map(|sample| sample.delays)
        .map(|own| {
            let time = own.departed_ns.saturating_sub(origin.departed_ns) as f64;
            own.first_ns.saturating_sub(origin.first_ns) as f64 - slope * time
        })
        .collect();
    let lasts: Vec<f64> = firsts.iter().zip(members).map(|(first, sample)| first + sample.span_ns()).collect();
    let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
    let floor = least(&firsts) + least(&lasts);
    let sums: Vec<f64> = firsts.iter().zip(&lasts).map(|(first, last)| first + last - floor).collect();
    let best = (0..sums.len()).min_by(|a, b| sums[*a].total_cmp(&sums[*b]))?;
    let span = members[best].span_ns();
    // A host's own figure for its stamps is its worst moments'; if they are as bad as it says, few
    // pairs come this close, and the filter does not converge.
    let noise = (STAMP_ERRORS * stamp_error_ns(session)).min(AGREES * span);
    let tolerance = (TOLERANCE * span).max(noise);
    let clean: Vec<&Sample> =
        sums.iter().zip(members).filter(|(sum, _)| **sum <= tolerance).map(|(_, sample)| *sample).collect();
    let rates: Vec<f64> = clean.iter().filter_map(|one| one.wire_rate(session.framing())).collect();
    let alone = members[best].wire_rate(session.framing())?;
    let (slowest, fastest) =
        rates.iter().fold((f64::INFINITY, 0.0f64), |(low, high), one| (low.min(*one), high.max(*one)));
    let blur = blur(session, span);
    let centre = narrows_stat::median(&rates).unwrap_or(alone);
    let agree = fastest - slowest <= (AGREES + (STAMP_ERRORS * blur).min(AGREES)) * centre;
    let converged = clean.len() >= CLEAN && agree;
    let pooled = if converged { pool(session, &clean) } else { None };
    let (rate, low, high) = pooled
        .map_or((centre, slowest.min(centre), fastest.max(centre)), |pooled| (pooled.rate, pooled.low, pooled.high));
    // A queue of less than a step of the clock passes for none.
    let unseen = UNSEEN_STEPS * nanos_f64(session.facts.receiver.clock_resolution) / span;
    let least = if converged { unseen } else { blur.clamp(LEAST_ERROR, COARSEST) };
    Some(Group {
        octets: members[best].ip_octets,
        found: Filtered {
            rate,
            low: rate - (rate - low).hypot(least * rate),
            high: rate + (high - rate).hypot(least * rate),
            clean: clean.len(),
            converged,
            groups: 0,
            restated: false,
            inverted: None,
        },
        // What the tolerance lets pass is no evidence on framing.
        point: Point::of(session, &clean)
            .filter(|_| converged)
            .map(|point| Point { error: point.error.hypot(tolerance / span / 2.0), ..point }),
    })
}

/// Pairs that must be clean, and agree: one or two may be chance.
const CLEAN: usize = 3;
/// Ours: with fewer pairs the least delays seen may all hold some queueing.
const LEAST_PAIRS: usize = 24;
/// `[CapProbe04]`.
const TOLERANCE: f64 = 0.01;
/// Ours.
const STAMP_ERRORS: f64 = 3.0;
/// Ours.
const AGREES: f64 = 0.03;
/// Ours: framing other than the assumed one moves small packets against large ones by up to 4 %.
const GROUPS_AGREE: f64 = 0.05;
/// Ours: the mean of what is equally likely from none to a step.
const UNSEEN_STEPS: f64 = 0.5;
/// Ours: for clock rate and rounding, where no group has converged.
const LEAST_ERROR: f64 = 0.001;
/// Ours: where the clock's steps are coarser than this against a pair, equal readings do not make
/// pairs equal.
const COARSEST: f64 = 0.06;
/// Ours: where stamps blur a pair by more than this, hardly any clean pair looks clean.
const NOISIEST: f64 = 0.2;
