//! Where a train's rate breaks: the knee of a token bucket.

use super::trains::{Kind, Seen};

/// A train that came at one rate up to some octets, and at a lower one from then on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Knee {
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

/// The knee of a train; `None` unless both parts are even and the second is clearly slower.
pub(super) fn knee(train: &Seen) -> Option<Knee> {
    let last = train.came.len().checked_sub(1).filter(|last| *last >= LEAST_PACKETS)?;
    let at = |place: usize| train.came[place].at_ns;
    // The break of a line in two is farthest from the chord.
    let span = at(last);
    let below = |place: usize| place as f64 / last as f64 - at(place) / span;
    let knee = (1..last).max_by(|a, b| below(*a).total_cmp(&below(*b)))?;
    if knee < LEAST_PART || last - knee < LEAST_PART || span <= 0.0 {
        return None;
    }
    let peak = train.rate_bps(0, knee)?;
    let sustained = train.rate_bps(knee, last)?;
    // One packet to either side belongs to no part for sure.
    let even = |from: usize, to: usize| {
        let middle = from.midpoint(to);
        let (first, second) = (train.rate_bps(from, middle)?, train.rate_bps(middle, to)?);
        Some(first < EVEN * second && second < EVEN * first)
    };
    let is_knee = sustained < SLOWER * peak && (peak.is_infinite() || even(0, knee - 1)?) && even(knee + 1, last)?;
    let octets: f64 = train.came[..=knee]
        .iter()
        .map(|packet| f64::from(packet.ip_octets))
        .sum();
    let behind = f64::from(train.came[last].seq.saturating_sub(train.came[knee].seq));
    is_knee.then(|| Knee {
        octets,
        peak_bps: peak,
        sustained_bps: sustained,
        behind: last - knee,
        lost: 1.0 - (last - knee) as f64 / behind.max(1.0),
    })
}

/// The knees of pushed trains, if most of the long ones have one and they lie at the same octets: that of the middle. Of a bucket that drops
/// what it has no tokens for a pushed train leaves nothing behind the knee; then the same of paced trains that lost packets.
pub(super) fn common(trains: &[Seen]) -> Option<(Knee, Vec<Knee>)> {
    common_of(trains, |train| train.kind == Kind::Pushed)
        .or_else(|| common_of(trains, |train| train.kind == Kind::Paced && train.loss() > LOST))
}

fn common_of(trains: &[Seen], like: impl Fn(&Seen) -> bool) -> Option<(Knee, Vec<Knee>)> {
    let pushed = || trains.iter().filter(|train| train.uniform && like(train));
    let knees: Vec<Knee> = pushed().filter_map(knee).collect();
    let least = knees.iter().map(|knee| knee.octets).min_by(f64::total_cmp)?;
    let could = pushed()
        .filter(|train| train.sent > 2 * LEAST_PACKETS && train.sent as f64 * f64::from(train.ip_octets) > 2.0 * least);
    if knees.len() < 2 || 3 * knees.len() < 2 * could.count() {
        return None;
    }
    let mut sorted = knees.clone();
    sorted.sort_by(|a, b| a.octets.total_cmp(&b.octets));
    let middle = sorted[sorted.len() / 2];
    let near = sorted
        .iter()
        .filter(|knee| (knee.octets / middle.octets - 1.0).abs() < SAME_OCTETS);
    (3 * near.count() >= 2 * sorted.len()).then_some((middle, knees))
}

/// A paced train that lost more met a limit (ours).
const LOST: f64 = 0.1;
/// Ours.
const LEAST_PACKETS: usize = 24;
const LEAST_PART: usize = 6;
/// Rates of a part's halves differ by less.
const EVEN: f64 = 1.12;
/// The rate behind the knee is below this share of that in front.
const SLOWER: f64 = 0.8;
/// Knees of one bucket lie this near to one another.
const SAME_OCTETS: f64 = 0.2;
