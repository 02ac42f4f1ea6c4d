//! Bin width, local modes of Phase I, the asymptotic dispersion rate of Phase II, and the rule that
//! joins them.

use narrows_stat::{LocalMode, Merit, ModeParams, Sorted, best_mode, local_modes};
use narrows_units::nanos_f64;

use super::params::Preset;
use super::sample::Phase;
use super::session::MethodRun;
use super::shape;

/// What the preliminary trains say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Preliminary {
    /// Mean wire rate, bit/s.
    pub(super) mean: f64,
    /// Coefficient of variation; zero for a single sample.
    pub(super) cv: f64,
    /// Bin width ω, bit/s.
    pub(super) width: f64,
}

/// Reads the preliminary phase; `None` without a sample.
pub(super) fn preliminary(session: &MethodRun) -> Option<Preliminary> {
    let mut rates = session.rates(Phase::Preliminary);
    if session.params.preset == Preset::Faithful {
        rates.extend(session.rates(Phase::Lengths));
    }
    let all = Sorted::new(rates).ok()?;
    // [pathrate]: beyond 30 samples the five lowest and highest do not count.
    let kept = if all.len() > 30 { all.without(5, 5)? } else { all.clone() };
    Some(Preliminary {
        mean: kept.mean(),
        cv: kept.coefficient_of_variation().unwrap_or(0.0),
        width: match session.params.preset {
            Preset::Faithful => tool_width(&all),
            Preset::Adaptive => own_width(session, &all),
        },
    })
}

/// `pathrate` from 2.3.1 on: a quarter of the range below 1 Mbit/s, else an eighth; 20 Mbit/s if
/// there is none.
fn tool_width(all: &Sorted) -> f64 {
    let range = inner_range(all);
    match range {
        r if r <= 0.0 => 20e6,
        r if r < 1e6 => 0.25 * r,
        r => 0.125 * r,
    }
}

/// Ours: 2 % of the median (a mode that serves 1 %), but never below what stamps blur. The range of
/// preliminary trains on a loaded path says how much traffic there is, not how sharp the capacity's
/// mode is; where no mode is that sharp, [`decide`] widens the bin.
fn own_width(session: &MethodRun, all: &Sorted) -> f64 {
    let median = all.median();
    let shortest = session
        .of(Phase::Preliminary)
        .filter(|sample| sample.ip_octets == session.full_size())
        .map(super::sample::Sample::span_ns)
        .fold(f64::INFINITY, f64::min);
    let blur = if shortest.is_finite() {
        let steps = nanos_f64(session.facts.receiver.clock_resolution);
        (2.0 * std::f64::consts::SQRT_2 * session.stamp_error_measured_ns()).max(2.0 * steps) / shortest
    } else {
        0.0
    };
    blur.max(NARROWEST_BIN) * median
}

fn inner_range(all: &Sorted) -> f64 {
    let values = all.values();
    let tenth = values.len() / 10;
    if values.len() > 30 { values[values.len() - tenth - 1] - values[tenth] } else { all.max() - all.min() }
}

/// Ours.
const NARROWEST_BIN: f64 = 0.02;
/// Ours: no bin is widened beyond this share of the rate; a quarter would be refused as an answer.
const WIDEST_BIN: f64 = 0.20;

/// Asymptotic dispersion rate: a lower bound on capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Adr {
    /// Wire rate, bit/s.
    pub(super) rate: f64,
    /// Trains behind it.
    pub(super) trains: usize,
    /// Twice the standard error of the trains' mean.
    pub(super) error: f64,
}

/// Reads Phase II; `None` without a train.
pub(super) fn adr(session: &MethodRun, preliminary: &Preliminary) -> Option<Adr> {
    let all = Sorted::new(session.rates(Phase::Trains)).ok()?;
    let trains = all.len();
    let rate = match session.params.preset {
        Preset::Faithful => tool_adr(session, &all, preliminary)?,
        // Bits over time, which is what a fluid would show; a mean of rates would favour the fast
        // trains.
        Preset::Adaptive => trains as f64 / all.values().iter().map(|rate| rate.recip()).sum::<f64>(),
    };
    let sd = all.sd_sample().unwrap_or(f64::INFINITY);
    Some(Adr { rate, trains, error: 2.0 * sd / (trains as f64).sqrt() })
}

fn tool_adr(session: &MethodRun, all: &Sorted, preliminary: &Preliminary) -> Option<f64> {
    let trimmed = all.mean_without(10, 10).unwrap_or_else(|| all.mean());
    let modes = local_modes(all, &ModeParams::pathrate(preliminary.width)).ok()?;
    let cv = all.coefficient_of_variation().unwrap_or(0.0);
    let steady = cv < session.params.quick_cv && trimmed / preliminary.mean > NARROW_ADR;
    Some(match modes.as_slice() {
        [only] if steady => only.centre(),
        [] | [_] => trimmed,
        several => best_mode(several, session.params.merit)?.centre(),
    })
}

/// `pathrate`.
const NARROW_ADR: f64 = 0.90;

/// What Phase I and Phase II say together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decision {
    /// All local modes of the pairs, strongest first.
    pub(super) modes: Vec<LocalMode>,
    /// The candidate of largest merit: a mode that does not lie below the asymptotic dispersion
    /// rate.
    pub(super) winner: Option<LocalMode>,
    /// The candidate of second largest merit.
    pub(super) runner_up: Option<LocalMode>,
    /// The other figure of merit prefers another candidate.
    pub(super) merits_differ: bool,
    pub(super) adr: Option<Adr>,
    /// Whether other traffic is on the narrow link; `None` if that was not tested often enough.
    pub(super) loaded: Option<bool>,
    /// Share of the pairs that were clearly faster than the winner, and their median wire rate.
    pub(super) faster: Option<(f64, f64)>,
    /// Share of the pairs that the winner's central window holds.
    pub(super) share: f64,
    /// Bin width, bit/s.
    pub(super) width: f64,
    /// Least and largest wire rate that any candidate allows, if there is one.
    pub(super) span: Option<(f64, f64)>,
}

impl Decision {
    /// Whether the winner holds so many pairs that chance has not made it.
    pub(super) fn is_strong(&self) -> bool {
        self.share >= LARGE_MODE
    }

    /// Merit of the winner over that of the runner-up; infinite if there is no runner-up.
    pub(super) fn replay(&self, merit: Merit) -> f64 {
        match (&self.winner, &self.runner_up) {
            (Some(winner), Some(other)) => winner.merit(merit) / other.merit(merit),
            (Some(_), None) => f64::INFINITY,
            (None, _) => 0.0,
        }
    }
}

/// Decides from the first `pairs` samples of Phase I and all of Phase II; `None` without any.
pub(super) fn decide(session: &MethodRun, pairs: usize) -> Option<Decision> {
    let preliminary = preliminary(session)?;
    let mut rates = session.rates(Phase::Pairs);
    rates.truncate(pairs);
    let sampled = rates.len();
    let (modes, width) = match Sorted::new(rates) {
        Ok(sample) => widening(session, &sample, preliminary.width)?,
        Err(_) => (Vec::new(), preliminary.width),
    };
    // A token bucket makes trains slower than the link: they bound nothing then.
    let own = session.params.preset == Preset::Adaptive;
    let shaped = own && shape::sustained(session).is_some();
    let bounds = Bounds {
        adr: adr(session, &preliminary).filter(|_| !shaped),
        loaded: session.narrow_is_loaded(CHECKS).filter(|_| !shaped),
        preset: session.params.preset,
    };
    let candidates: Vec<LocalMode> = modes.iter().filter(|mode| bounds.allow(mode)).copied().collect();
    let winner = best_mode(&candidates, session.params.merit).copied();
    let others: Vec<LocalMode> = candidates.iter().filter(|mode| Some(**mode) != winner).copied().collect();
    let differ = best_mode(&candidates, Merit::Density) != best_mode(&candidates, Merit::Kurtosis);
    Some(Decision {
        winner,
        runner_up: best_mode(&others, session.params.merit).copied(),
        merits_differ: differ && session.params.preset == Preset::Faithful,
        share: winner.map_or(0.0, |winner| winner.count as f64 / sampled.max(1) as f64),
        faster: winner.and_then(|winner| faster_than(session, &winner)),
        modes,
        span: (!candidates.is_empty()).then(|| {
            candidates.iter().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), mode| {
                (low.min(mode.central.low()), high.max(mode.central.high()))
            })
        }),
        adr: bounds.adr,
        loaded: bounds.loaded,
        width,
    })
}

fn faster_than(session: &MethodRun, winner: &LocalMode) -> Option<(f64, f64)> {
    let rates = session.rates(Phase::Pairs);
    let above: Vec<f64> = rates.iter().copied().filter(|rate| *rate > 1.01 * winner.central.high()).collect();
    Some((above.len() as f64 / rates.len() as f64, narrows_stat::median(&above)?))
}

/// The modes at the narrowest bin that shows any; the tool knows only one.
fn widening(session: &MethodRun, sample: &Sorted, width: f64) -> Option<(Vec<LocalMode>, f64)> {
    let widest = if session.params.preset == Preset::Faithful { 1.0 } else { 4.0 };
    let mut factor = 1.0;
    loop {
        let width = width * factor;
        let modes = local_modes(sample, &mode_params(session, width, sample.len())).ok()?;
        let too_wide = 2.0 * width > WIDEST_BIN * sample.median();
        if !modes.is_empty() || factor >= widest || too_wide {
            return Some((modes, width));
        }
        factor *= 2.0;
    }
}

/// What the trains leave possible.
struct Bounds {
    adr: Option<Adr>,
    loaded: Option<bool>,
    preset: Preset,
}

impl Bounds {
    fn allow(&self, mode: &LocalMode) -> bool {
        let Some(adr) = self.adr else { return true };
        match (self.preset, self.loaded) {
            (Preset::Faithful, _) => mode.central.high() > adr.rate,
            // Little or no other traffic on the narrow link: the trains ran near its capacity.
            (Preset::Adaptive, Some(false)) => NEAR.contains(&(mode.centre() / adr.rate)),
            // The dispersion rate r C / (r + x) is at least half the capacity while r is at least C
            // and x at most C: what lies higher was squeezed behind the narrow link. A few trains
            // are a bound to some percent, not to the bit.
            (Preset::Adaptive, _) => {
                mode.central.high() > adr.rate * 0.99 && mode.central.low() < adr.rate * MOST_ABOVE
            }
        }
    }
}

/// Ours: twice, and some percent.
pub(super) const MOST_ABOVE: f64 = 2.2;
/// Ours: three checks make a median that one burst of others does not turn.
const CHECKS: usize = 3;
/// Ours. Below: the trains' own scatter. Above: the traffic that checks let pass unseen, a tenth of
/// the link, slows trains by no more than a tenth.
const NEAR: std::ops::Range<f64> = 0.95..1.105;

fn mode_params(session: &MethodRun, width: f64, samples: usize) -> ModeParams {
    match session.params.preset {
        Preset::Faithful => ModeParams::pathrate(width),
        // Ours: the tool's 15 of 1000 pairs would be half of a short run's pairs; a twentieth, and
        // at least four beside one more, is noise here.
        Preset::Adaptive => ModeParams { noise_count: (samples / 20).max(4), ..ModeParams::new(width) },
    }
}

/// The sequential stop: the winner leads by a factor of two and has not moved over the last three
/// rounds of `round` pairs, and enough trains say that it does not lie below the dispersion rate.
pub(super) fn settled(session: &MethodRun, round: usize) -> bool {
    let pairs = session.rates(Phase::Pairs).len();
    let prefixes = [pairs, pairs.saturating_sub(round), pairs.saturating_sub(2 * round)];
    let decisions: Vec<Decision> = prefixes.iter().filter_map(|count| decide(session, *count)).collect();
    let Some(last) = decisions.first() else { return false };
    if trains_suffice(last) {
        return true;
    }
    let Some(winner) = &last.winner else { return false };
    let steady = |decision: &Decision| {
        let near = |mode: &LocalMode| (mode.centre() - winner.centre()).abs() <= last.width;
        decision.winner.as_ref().is_some_and(near) && decision.replay(session.params.merit) >= LEAD
    };
    let trains = last.adr.map_or(0, |adr| adr.trains);
    pairs >= 3 * round && trains >= TRAINS && decisions.len() == 3 && decisions.iter().all(steady)
}

/// With nothing else on the narrow link the trains alone are an answer, once their mean is known to
/// 1 %.
pub(super) fn trains_suffice(decision: &Decision) -> bool {
    let sure = |adr: Adr| adr.trains >= TRAINS && adr.error < 0.01 * adr.rate;
    decision.loaded == Some(false) && decision.adr.is_some_and(sure)
}

/// Whether trains came slower than other traffic on a link of this IP-layer rate can make them: it
/// leaves `r C / (r + x)`, which is at least half of C.
pub(super) fn trains_too_slow(session: &MethodRun, ip_bps: f64) -> bool {
    trains_rate(session).is_some_and(|trains| trains < SLOWEST_TRAINS * ip_bps)
}

/// Whether trains look as a bucket makes them beside other traffic: they came at nearly the
/// IP-layer rate that was found, or most at one, or some at less than two thirds of the others'.
pub(super) fn may_be_a_buckets(session: &MethodRun, found_bps: Option<f64>) -> bool {
    let rates = session.rates(Phase::Trains);
    let kept_up = found_bps.is_some_and(|found| kept_up(session, found));
    let Some((deviation, rate)) = narrows_stat::mad(&rates).zip(narrows_stat::median(&rates)) else { return kept_up };
    let slowest = rates.iter().copied().fold(rate, f64::min);
    kept_up || (rates.len() >= LEAST_ALIKE && (deviation < ALIKE * rate || slowest * APART < rate))
}

/// Whether trains came at nearly the IP-layer rate that was found.
pub(super) fn kept_up(session: &MethodRun, found_bps: f64) -> bool {
    trains_rate(session).is_some_and(|trains| trains > KEEPING_UP * found_bps)
}

/// Whether nearly all of the trains before came at that rate: others between packets slow some more
/// and some less.
pub(super) fn all_came_at(session: &MethodRun, found_bps: f64) -> bool {
    let rates = session.of(Phase::Preliminary).filter(|one| one.ip_octets == session.full_size());
    let rates: Vec<f64> = rates.filter_map(|one| one.wire_rate(session.framing())).collect();
    let at = rates.iter().filter(|rate| (session.ip_rate(**rate) / found_bps - 1.0).abs() < 1.0 - KEEPING_UP);
    at.count() * 4 >= rates.len() * 3
}

/// The IP-layer rate of all trains together.
fn trains_rate(session: &MethodRun) -> Option<f64> {
    let trains = session.rates(Phase::Trains);
    let found = if trains.is_empty() { session.rates(Phase::Preliminary) } else { trains };
    let time: f64 = found.iter().map(|rate| rate.recip()).sum();
    (!found.is_empty()).then(|| session.ip_rate(found.len() as f64 / time))
}

/// Ours: half, less what a few trains may scatter.
const SLOWEST_TRAINS: f64 = 0.45;
/// Ours: others take less than a tenth where the sender is three times as fast as the link.
const KEEPING_UP: f64 = 0.97;
/// Ours, median of the deviations: 1.7 % behind a kernel's shaper of two rates; Poisson traffic
/// that takes a third of a link makes it 3.4 %.
const ALIKE: f64 = 0.025;
const LEAST_ALIKE: usize = 4;
const APART: f64 = 1.5;
/// Ours: two in five pairs.
const LARGE_MODE: f64 = 0.4;
/// Ours: what leads by less is reported as [`narrows_probe::Caveat::Multimodal`].
pub(super) const LEAD: f64 = 2.0;
/// Ours: fewer trains bound nothing.
pub(super) const TRAINS: usize = 6;

pub(super) const PAIRS_PER_ROUND: usize = 16;
