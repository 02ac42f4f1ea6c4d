//! One rate from the pairs of a mode: from those that stand together at its core.

use narrows_units::nanos_f64;

use super::capprobe::Filtered;
use super::modes::Decision;
use super::params::Preset;
use super::sample::{Phase, Sample};
use super::session::{MethodRun, Pooled, pool};

/// The value is stated for full-size packets: where enough of the mode's samples have that size,
/// they alone set it, and the assumed framing drops out. The tool's answer is its bin.
pub(super) fn sharpen(session: &MethodRun, low: f64, high: f64) -> Pooled {
    let bin = Pooled { rate: low.midpoint(high), low, high, explained: false };
    if session.params.preset == Preset::Faithful {
        return bin;
    }
    let (full, inside) = pairs_within(session, low, high);
    let own = full.len() >= LEAST_FULL;
    pooled(session, if own { &full } else { &inside }).unwrap_or(bin)
}

/// Pairs whose wire rate lies in a range: those of full size, and all.
pub(super) fn pairs_within(session: &MethodRun, low: f64, high: f64) -> (Vec<&Sample>, Vec<&Sample>) {
    let within = |sample: &&Sample| sample.wire_rate(session.framing()).is_some_and(|rate| rate >= low && rate <= high);
    let inside: Vec<&Sample> = session.of(Phase::Pairs).filter(within).collect();
    let full = inside.iter().copied().filter(|s| s.ip_octets == session.full_size());
    (full.collect(), inside)
}

/// The rate of the pair of least delay where so many other pairs came at it that chance has not
/// made it: two witnesses, for delay and dispersion are different facts. Stamps of real hosts
/// scatter by a microsecond or two, so that behind loaded links few of the undisturbed pairs pass
/// for clean.
/// `None` also where nothing else is on the narrow link: trains tell more then.
pub(super) fn backed(session: &MethodRun, decision: &Decision, filtered: &Filtered) -> Option<Pooled> {
    if decision.loaded != Some(true) || filtered.clean == 0 {
        return None;
    }
    let (low, high) = thickest(session, filtered.rate);
    let inside = pairs_within(session, low, high).1;
    let short = !are_trains(&inside)?;
    let near = inside.len();
    let all = session.of(Phase::Pairs).count();
    // Behind the narrow link few pairs are squeezed together; many that are faster are its own.
    let faster = pairs_within(session, high, f64::INFINITY).1.len();
    let many = near >= LEAST_NEAR && near * NEAR_SHARE >= all;
    let fastest = faster as f64 <= SQUEEZED * all as f64;
    (many && fastest && short).then(|| {
        let found = sharpen(session, low, high);
        Pooled { low: found.low.min(filtered.rate), high: found.high.max(filtered.rate), ..found }
    })
}

/// Whether trains stand in for pairs, as they do where stamps are coarse, and others are on the
/// narrow link: trains seldom pass undisturbed, and most say what others leave of it.
pub(super) fn are_shared_trains(session: &MethodRun) -> bool {
    let pairs: Vec<&Sample> = session.of(Phase::Pairs).collect();
    let own = session.params.preset == Preset::Adaptive;
    own && session.narrow_is_loaded(1) == Some(true) && are_trains(&pairs) == Some(true)
}

fn are_trains(pairs: &[&Sample]) -> Option<bool> {
    let lengths: Vec<f64> = pairs.iter().map(|sample| sample.packets() as f64).collect();
    narrows_stat::median(&lengths).map(|length| length > LONGEST_PAIR)
}

/// Where most pairs stand, of all windows that one stamp's error may have moved the pair of least
/// delay out of: behind a kernel's timer single pairs read some per cent too fast or too slow.
fn thickest(session: &MethodRun, clean: f64) -> (f64, f64) {
    let window = |centre: f64| (centre * (1.0 - NEAR_BEST), centre * (1.0 + NEAR_BEST));
    let count = |centre: f64| {
        let (low, high) = window(centre);
        pairs_within(session, low, high).1.len()
    };
    let (from, to) = (clean * (1.0 - MOVED), clean * (1.0 + MOVED));
    let around = pairs_within(session, from, to).1;
    let centres = around.iter().filter_map(|sample| sample.wire_rate(session.framing()));
    let best = centres.map(|centre| (count(centre), centre)).max_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    match best {
        Some((most, centre)) if most as f64 >= THICKER * count(clean).max(1) as f64 => window(centre),
        _ => window(clean),
    }
}

/// One rate from samples of one mode, and its interval: that of their core, or, without one, their
/// median and what all scatter by.
fn pooled(session: &MethodRun, samples: &[&Sample]) -> Option<Pooled> {
    if let Some(core) = core(session, samples) {
        return Some(core);
    }
    let rates: Vec<f64> = samples.iter().filter_map(|s| s.wire_rate(session.framing())).collect();
    let (centre, all) = (narrows_stat::median(&rates)?, pool(session, samples)?);
    let half = (all.high - all.low) / 2.0;
    Some(Pooled { rate: centre, low: centre - half, high: centre + half, explained: false })
}

/// Bits over time of those samples that lie around the median as near as the clock's steps let
/// them, so that the steps average out and samples that other packets widened a little do not
/// count; `None` where samples scatter by more than stamps explain.
pub(super) fn core(session: &MethodRun, samples: &[&Sample]) -> Option<Pooled> {
    let read: Vec<(f64, &Sample)> =
        samples.iter().filter_map(|sample| Some((sample.wire_rate(session.framing())?, *sample))).collect();
    let centre = narrows_stat::median(&read.iter().map(|(rate, _)| *rate).collect::<Vec<_>>())?;
    let span = narrows_stat::median(&samples.iter().map(|sample| sample.span_ns()).collect::<Vec<_>>())?;
    let steps = nanos_f64(session.facts.receiver.clock_resolution) / span;
    let noise = std::f64::consts::SQRT_2 * session.stamp_noise_ns() / span;
    // Undisturbed pairs read the same to what stamps are off by; where those are fine enough they
    // stand out from all that others moved.
    let sharp = 2.0 * steps.max(noise);
    let around = |centre: f64, near: f64| -> Vec<&Sample> {
        let inside = |rate: &f64| (rate / centre - 1.0).abs() <= near;
        read.iter().filter(|(rate, _)| inside(rate)).map(|(_, sample)| *sample).collect()
    };
    let off = |rate: f64| (rate / centre - 1.0).abs();
    let nearest = |a: f64, b: f64| off(b).total_cmp(&off(a));
    let pair_mode = read
        .iter()
        .map(|(rate, _)| (around(*rate, sharp).len(), *rate))
        .max_by(|a, b| a.0.cmp(&b.0).then(nearest(a.1, b.1)))?;
    let near = if sharp < NEAREST && pair_mode.0 * CORE_SHARE >= read.len() && pair_mode.0 >= LEAST_FULL {
        around(pair_mode.1, sharp)
    } else {
        around(centre, sharp.max(NEAREST))
    };
    let enough = near.len() * CORE_SHARE >= read.len() && near.len() >= LEAST_FULL;
    enough.then(|| pool(session, &near)).flatten()
}

/// Ours.
pub(super) const LEAST_FULL: usize = 5;
/// Ours: what stamps of real hosts make of a pair at 100 Mbit/s.
const NEAR_BEST: f64 = 0.02;
/// Ours: a kernel's token bucket of 100 Mbit/s releases packets some 6 us late or early, a
/// twentieth of a packet's time.
const MOVED: f64 = 0.06;
/// Ours: half as many again are no chance.
const THICKER: f64 = 1.5;
/// Ours.
const LONGEST_PAIR: f64 = 4.0;
/// Ours.
const SQUEEZED: f64 = 0.3;
/// Ours: one in ten pairs, and six of them.
const NEAR_SHARE: usize = 10;
const LEAST_NEAR: usize = 6;
/// Ours: a quarter.
const CORE_SHARE: usize = 4;
/// Ours: the packets of others that slip between two of ours are longer than this against them.
const NEAREST: f64 = 0.002;
