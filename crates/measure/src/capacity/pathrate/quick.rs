//! Quick termination: when the preliminary samples leave no room for another answer.

use narrows_units::nanos_f64;

use super::by_trains::{WIDEST, blurred};
use super::hosts::sent_share;
use super::modes::{Preliminary, preliminary};
use super::params::Preset;
use super::sample::{Phase, Sample};
use super::session::{MethodRun, Pooled, pool};

/// One rate on which the preliminary samples agree; wire rates, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Agreement {
    pub(super) rate: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The agreement, if there is one.
pub(super) fn agreement(session: &MethodRun) -> Option<Agreement> {
    match session.params.preset {
        Preset::Faithful => tool_agreement(session, &preliminary(session)?),
        Preset::Adaptive => own_agreement(session),
    }
}

/// [pathrate]: low variation alone. Cross traffic of constant rate may pass for that, which is why
/// ours asks for more.
fn tool_agreement(session: &MethodRun, preliminary: &Preliminary) -> Option<Agreement> {
    (preliminary.cv < session.params.quick_cv).then(|| Agreement {
        rate: preliminary.mean,
        low: preliminary.mean - preliminary.width / 2.0,
        high: preliminary.mean + preliminary.width / 2.0,
    })
}

/// Ours. Cross traffic on the narrow link slows long trains more reliably than short ones, and
/// packets of one size more than those of another; so short trains, long trains and small packets
/// must all agree, none may be faster, and a minority may be slower. Steady traffic of small
/// packets passes even that; a paced train ([`MethodRun::narrow_is_loaded`]) must come unslowed.
///
/// Small packets that come faster are no vote: a shaper's bucket of one full packet lets two or
/// three of them through at once, and there is one before most shaped links.
fn own_agreement(session: &MethodRun) -> Option<Agreement> {
    if session.narrow_is_loaded(1) == Some(true) {
        return None;
    }
    let samples: Vec<&Sample> = session.of(Phase::Preliminary).filter(|sample| sample.span_ns() > 0.0).collect();
    let is_full = |sample: &&&Sample| sample.ip_octets == session.full_size();
    let full: Vec<&Sample> = samples.iter().filter(is_full).copied().collect();
    let centre = narrows_stat::median(&full.iter().filter_map(|s| s.wire_rate(session.framing())).collect::<Vec<_>>())?;
    let fewest = full.iter().map(|sample| sample.packets()).min()?;
    let most = full.iter().map(|sample| sample.packets()).max()?;
    let (mut shorts, mut longs, mut smalls) = (Vote::default(), Vote::default(), Vote::default());
    let mut members = Vec::new();
    for sample in &samples {
        let fit = fit(session, sample, centre)?;
        if sample.ip_octets != session.full_size() {
            if !(fit == Fit::Faster && passes_bucket(session, sample)) {
                smalls.cast(fit);
            }
            continue;
        }
        if 2 * sample.packets() > fewest + most {
            longs.cast(fit);
        } else {
            shorts.cast(fit);
        }
        if fit == Fit::Agrees {
            members.push(*sample);
        }
    }
    // With no room for small packets below the full size there are none; the other two must do
    // then.
    let small_ok = smalls.all == 0 || smalls.sustained(2, 0.7);
    let ok = shorts.sustained(3, 0.7) && longs.sustained(2, 0.5) && small_ok;
    let faster = shorts.faster + longs.faster + smalls.faster;
    if !ok || faster * 10 > samples.len() {
        return None;
    }
    // Stamps that blur everything make anything agree.
    let found = mean_of(session, &members).filter(|found| found.high - found.low <= WIDEST * found.rate)?;
    Some(sharpened(session, &members, found))
}

/// With the long train that looks for a bucket, where nobody came between its packets, as far as
/// stamps tell, and it says what the others say. Where stamps blur a packet's time the first of a
/// train, which wakes the receiver, comes late, and short trains read too fast: on a link that did
/// not look loaded the long one alone counts.
fn sharpened(session: &MethodRun, members: &[&Sample], found: Agreement) -> Agreement {
    // A train that left much faster is hardly slowed by what checks did not see.
    let fast = sent_share(session).is_some_and(|share| share < FAST_SENDER);
    if blurred(session, found.rate) && (fast || session.narrow_is_loaded(1) == Some(false)) {
        let like = |sample: &&Sample| {
            let rate = sample.wire_rate(session.framing());
            rate.is_some_and(|rate| NEAR_BLURRED.contains(&(rate / found.rate))) && is_straight(session, sample)
        };
        let long: Vec<&Sample> = session.of(Phase::Bucket).filter(like).collect();
        if let Some(Agreement { rate, low, high }) = mean_of(session, &long) {
            let between = BETWEEN / long.iter().map(|sample| sample.gaps_ns.len()).sum::<usize>() as f64;
            return Agreement { rate, low: low.min(rate * (1.0 - between)), high: high.max(rate * (1.0 + between)) };
        }
    }
    let within = |sample: &&Sample| {
        let rate = sample.wire_rate(session.framing());
        let near = |rate: f64| (rate - found.rate).abs() <= ALIKE * (found.high - found.low) / 2.0;
        rate.is_some_and(near) && is_straight(session, sample)
    };
    let long: Vec<&Sample> = session.of(Phase::Bucket).filter(within).collect();
    let all: Vec<&Sample> = members.iter().copied().chain(long.iter().copied()).collect();
    if long.is_empty() {
        return found;
    }
    mean_of(session, &all).unwrap_or(found)
}

/// Whether its packets came along one line, to what stamps are off by: a packet of somebody else's
/// moves those behind it.
fn is_straight(session: &MethodRun, sample: &Sample) -> bool {
    let gap = sample.span_ns() / sample.gaps_ns.len() as f64;
    let most = nanos_f64(session.facts.receiver.clock_resolution) + 3.0 * session.stamp_noise_ns() + STRAIGHT * gap;
    let (mut came, mut line) = (0.0f64, 0.0f64);
    sample.gaps_ns.iter().all(|own| {
        came += own;
        line += gap;
        (came - line).abs() <= most
    })
}

/// Ours.
const FAST_SENDER: f64 = 0.5;
/// Ours: checks let a tenth of the link pass unseen.
const NEAR_BLURRED: std::ops::Range<f64> = 0.9..1.05;
/// Ours: packets of others that may have come between those of a long train.
const BETWEEN: f64 = 1.0;
/// Ours: half widths of nine tenths, beyond which errors hardly ever are.
const ALIKE: f64 = 3.0;
/// Ours: the smallest packets are longer against ours.
const STRAIGHT: f64 = 0.02;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Agrees,
    Slower,
    Faster,
}

#[derive(Default)]
struct Vote {
    all: usize,
    agree: usize,
    faster: usize,
}

impl Vote {
    fn cast(&mut self, fit: Fit) {
        self.all += 1;
        self.agree += usize::from(fit == Fit::Agrees);
        self.faster += usize::from(fit == Fit::Faster);
    }

    fn sustained(&self, least: usize, share: f64) -> bool {
        self.agree >= least && self.agree as f64 >= share * self.all as f64
    }
}

fn fit(session: &MethodRun, sample: &Sample, centre: f64) -> Option<Fit> {
    let deviation = sample.wire_rate(session.framing())? / centre - 1.0;
    // 1 %: the aim. A framing other than the assumed one shifts small packets against full ones by
    // up to 4 %.
    let framing = if sample.ip_octets == session.full_size() { 0.0 } else { 0.05 };
    let tolerance = framing + (2.0 * session.timing_error(sample.span_ns())).max(0.01);
    Some(match deviation {
        d if d > tolerance => Fit::Faster,
        d if d < -tolerance => Fit::Slower,
        _ => Fit::Agrees,
    })
}

/// Whether a bucket of one full packet lets through at once all but one packet of the train.
fn passes_bucket(session: &MethodRun, sample: &Sample) -> bool {
    sample.gaps_ns.len() * usize::from(sample.ip_octets) <= usize::from(session.full_size())
}

/// All members' bits over all their dispersions: each weighs as its timing deserves.
fn mean_of(session: &MethodRun, members: &[&Sample]) -> Option<Agreement> {
    let Pooled { rate, low, high, .. } = pool(session, members)?;
    Some(Agreement { rate, low, high })
}
