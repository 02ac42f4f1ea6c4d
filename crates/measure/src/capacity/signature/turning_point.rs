//! Where a train's rate breaks: the turning point of a token bucket.

use super::trains::{Kind, TrainLog};

/// A train that came at one rate up to some octets, and at a lower one from then on.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurningPoint {
    /// IP octets that came in front of it.
    pub(super) octets: f64,
    /// Rate in front of it.
    pub(super) peak_bps: f64,
    /// Rate behind it.
    pub(super) sustained_bps: f64,
    /// Packets that came behind it.
    pub(super) behind: usize,
    /// Share of the packets behind it that were lost.
    pub(super) lost: f64,
}

/// The turning point of a train; `None` unless both parts are even and the second is clearly
/// slower.
pub(super) fn turning_point(train: &TrainLog) -> Option<TurningPoint> {
    let last = train.came.len().checked_sub(1).filter(|last| *last >= LEAST_PACKETS)?;
    let at = |place: usize| train.came[place].at_ns;
    // The break of a line in two is farthest from the chord.
    let span = at(last);
    let below = |place: usize| place as f64 / last as f64 - at(place) / span;
    let turning_point = (1..last).max_by(|a, b| below(*a).total_cmp(&below(*b)))?;
    if turning_point < LEAST_PART || last - turning_point < LEAST_PART || span <= 0.0 {
        return None;
    }
    let peak = train.rate_bps(0, turning_point)?;
    let sustained = train.rate_bps(turning_point, last)?;
    // One packet to either side belongs to no part for sure.
    let even = |from: usize, to: usize| {
        let middle = from.midpoint(to);
        let (first, second) = (train.rate_bps(from, middle)?, train.rate_bps(middle, to)?);
        Some(first < EVEN * second && second < EVEN * first)
    };
    let is_turning_point = sustained < SLOWER * peak
        && (peak.is_infinite() || even(0, turning_point - 1)?)
        && even(turning_point + 1, last)?;
    let octets: f64 = train.came[..=turning_point].iter().map(|packet| f64::from(packet.ip_octets)).sum();
    let behind = f64::from(train.came[last].seq.saturating_sub(train.came[turning_point].seq));
    is_turning_point.then(|| TurningPoint {
        octets,
        peak_bps: peak,
        sustained_bps: sustained,
        behind: last - turning_point,
        lost: 1.0 - (last - turning_point) as f64 / behind.max(1.0),
    })
}

/// The turning points of pushed trains, if most of the long ones have one and they lie at the same
/// octets: that of the middle. Of a bucket that drops what it has no tokens for a pushed train
/// leaves nothing behind the turning point; then the same of paced trains that lost packets.
pub(super) fn common(trains: &[TrainLog]) -> Option<(TurningPoint, Vec<TurningPoint>)> {
    common_of(trains, |train| train.kind == Kind::Pushed)
        .or_else(|| common_of(trains, |train| train.kind == Kind::Paced && train.loss() > LOST))
}

fn common_of(trains: &[TrainLog], like: impl Fn(&TrainLog) -> bool) -> Option<(TurningPoint, Vec<TurningPoint>)> {
    let pushed = || trains.iter().filter(|train| train.uniform && like(train));
    let turning_points: Vec<TurningPoint> = pushed().filter_map(turning_point).collect();
    let least = turning_points.iter().map(|turning_point| turning_point.octets).min_by(f64::total_cmp)?;
    let could = pushed()
        .filter(|train| train.sent > 2 * LEAST_PACKETS && train.sent as f64 * f64::from(train.ip_octets) > 2.0 * least);
    if turning_points.len() < 2 || 3 * turning_points.len() < 2 * could.count() {
        return None;
    }
    let mut sorted = turning_points.clone();
    sorted.sort_by(|a, b| a.octets.total_cmp(&b.octets));
    let middle = sorted[sorted.len() / 2];
    let near = sorted.iter().filter(|turning_point| (turning_point.octets / middle.octets - 1.0).abs() < SAME_OCTETS);
    (3 * near.count() >= 2 * sorted.len()).then_some((middle, turning_points))
}

/// A paced train that lost more met a limit (ours).
const LOST: f64 = 0.1;
/// Ours.
const LEAST_PACKETS: usize = 24;
const LEAST_PART: usize = 6;
/// Rates of a part's halves differ by less.
const EVEN: f64 = 1.12;
/// The rate behind the turning point is below this share of that in front.
const SLOWER: f64 = 0.8;
/// Turning points of one bucket lie this near to one another.
const SAME_OCTETS: f64 = 0.2;
