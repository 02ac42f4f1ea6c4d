//! How the later part of a long train goes on: at which rate, and at which one if packets with
//! nobody between them are counted alone.

use super::bend::{Later, Point, leaving};

/// How packets of a train follow one another behind an empty bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Most keep one distance, so that it is known what others took.
    Even,
    /// Most do, but for what a timer may be late by. Small packets of others may hide in that.
    Late,
    /// They do not: nobody knows what others took.
    Uneven,
}

/// The last quarter in which most packets keep one distance, of three that end the train or lie
/// before that; else the fastest of them.
pub(super) fn later(points: &[Point], tick: f64) -> Option<Later> {
    let quarter = points.len() / 4;
    if quarter < LEAST_QUARTER {
        return None;
    }
    let rate = |part: &[Point]| {
        let (first, last) = (part.first()?, part.last()?);
        (last.time > first.time).then(|| 8.0 * (last.octets - first.octets) / (last.time - first.time))
    };
    let first = &points[..quarter];
    let began_bps = rate(first)?;
    let (began_ours, _) = share(first, began_bps, tick);
    let of = |begin: usize| {
        let part = &points[begin..begin + quarter];
        let rate_bps = rate(part)?;
        let (ours, pace) = match share(part, rate_bps, tick) {
            // Nobody knows the distance that a link faster than the sender would keep.
            (ours, _) if rate_bps / ours > NO_FASTER * leaving(part) => (1.0, Pace::Uneven),
            known => known,
        };
        // Without others, if that is known of both.
        let began_bps = if pace == Pace::Uneven { began_bps } else { began_bps / began_ours };
        Some(Later { began_bps, rate_bps: rate_bps / ours, ours, pace })
    };
    let last = points.len() - quarter;
    let parts: Vec<Later> = [last, last - quarter / 2, last - quarter].into_iter().filter_map(of).collect();
    let even = parts.iter().find(|later| later.keeps_pace()).copied();
    even.or_else(|| parts.into_iter().max_by(|a, b| (a.rate_bps * a.ours).total_cmp(&(b.rate_bps * b.ours))))
}

/// The train's share of what a backlogged link or bucket let through, 0..1, and whether it is
/// known. A distance that is a `tick` of the clock off the mean is rounding.
pub(super) fn share(part: &[Point], mean_bps: f64, tick: f64) -> (f64, Pace) {
    let [.., before, last] = part else { return (1.0, Pace::Uneven) };
    let Some((gap, pace)) = distance(&neighbours_gaps(part), part.len()) else { return (1.0, Pace::Uneven) };
    let mean = 8.0 * (last.octets - before.octets) / mean_bps;
    let ours = gap / mean;
    // No packet comes sooner after another than with nobody between.
    if ours >= 1.0 + STEADY / 2.0 {
        return (1.0, Pace::Uneven);
    }
    let shared = ours < 1.0 - STEADY / 2.0 && (mean - gap).abs() > tick;
    (if shared { ours } else { 1.0 }, pace)
}

/// Times between packets that left one after the other, and came so.
pub(super) fn neighbours_gaps(part: &[Point]) -> Vec<f64> {
    let neighbours = part.windows(2).filter(|two| two[0].seq.checked_add(1) == Some(two[1].seq));
    neighbours.map(|two| two[1].time - two[0].time).collect()
}

/// The distance that most of so many packets keep, if hardly any come nearer: between those others
/// may have come in turn. A bucket's timer lets a packet go late and the next one on time, so that
/// single gaps differ where their mean does not.
fn distance(gaps: &[f64], packets: usize) -> Option<(f64, Pace)> {
    let median = narrows_stat::median(gaps).filter(|median| *median > 0.0)?;
    let all = gaps.len().max(packets) as f64;
    let within = |share: f64| gaps.iter().copied().filter(move |gap| (gap - median).abs() <= share * median);
    let nearer = |share: f64| gaps.iter().filter(|gap| **gap < share * median).count() as f64 > FEW * all;
    if within(STEADY).count() as f64 > 0.5 * all {
        return (!nearer(1.0 - 2.0 * STEADY)).then_some((median, Pace::Even));
    }
    let late: Vec<f64> = within(LATE).collect();
    let mean = |gaps: &[f64]| gaps.iter().sum::<f64>() / gaps.len() as f64;
    let (first, second) = late.split_at(late.len() / 2);
    let even = (mean(first) - mean(second)).abs() <= HALVES * median;
    let most = late.len() >= LEAST_LATE && late.len() as f64 > MOSTLY * all;
    (even && most && !nearer(NEARER)).then(|| (mean(&late), Pace::Late))
}

// Ours, all of them.
/// Packets of a quarter that has a rate: one more or less is a tenth.
const LEAST_QUARTER: usize = 10;
/// Times the rate at which they left: what stamps may be wrong by.
pub(super) const NO_FASTER: f64 = 1.05;
/// Gaps this close to their median are the same.
pub(super) const STEADY: f64 = 0.05;
/// The same where a timer lets each go late, so many of them at least, and that share.
const LATE: f64 = 0.5;
const LEAST_LATE: usize = 30;
const MOSTLY: f64 = 0.6;
/// What a train that bends on its way makes of two halves is more.
const HALVES: f64 = 0.06;
/// Of the median gap, what packets come nearer than that had somebody between them else; and the
/// share of such packets.
const NEARER: f64 = 0.7;
const FEW: f64 = 0.05;
