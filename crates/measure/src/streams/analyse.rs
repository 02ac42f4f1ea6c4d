//! What the rates at several numbers of streams say together. Pure.

use narrows_probe::outcome::FillBasis as Basis;
use narrows_units::rounded;

/// What was seen at one number of streams.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Level {
    /// Streams.
    pub(super) streams: u16,
    /// Goodput of each slot or run, bit/s.
    pub(super) rates: Vec<f64>,
    /// Median round-trip time under that load, seconds.
    pub(super) rtt: f64,
    /// Share of octets sent again.
    pub(super) loss: f64,
}

impl Level {
    /// Mean goodput, bit/s.
    pub(super) fn mean(&self) -> f64 {
        narrows_stat::mean(&self.rates).unwrap_or(0.0)
    }
}

/// What is available, payload bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Available {
    /// The value.
    pub(super) bps: f64,
    /// The upper end of its interval.
    pub(super) high_bps: f64,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Findings {
    /// Fewest streams that fill what is available.
    pub(super) fill: u16,
    /// The truth lies between these.
    pub(super) low: u16,
    pub(super) high: u16,
    /// How that was found.
    pub(super) basis: Basis,
    /// Fewest streams that take from others, and what tells it.
    pub(super) intrusive: Option<(u16, Vec<Sign>)>,
    /// Fewest streams that get less than fewer do.
    pub(super) harmful: Option<u16>,
    /// More than one stream is worth its trouble.
    pub(super) recommended: bool,
}

/// What tells that streams take from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// They get more than is available.
    MoreThanAvailable,
    /// Round trips are half as long again as at the filling number.
    RoundTrip,
    /// Twice as much is sent again, above 0.1 %.
    Retransmissions,
    /// One stream among them gets a fifth less than alone: any of them is the others' canary.
    Canary,
    /// The sum still rises, by less than half a stream each.
    SmallGain,
}

impl Sign {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MoreThanAvailable => "more than is available",
            Self::RoundTrip => "round trip",
            Self::Retransmissions => "retransmissions",
            Self::Canary => "canary",
            Self::SmallGain => "small gain",
        }
    }
}

/// Others on the path, by the curve `T(n) = C n / (n + m)` of `m` connections of the same kind
/// beside `n` of ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sharing {
    /// What all share, payload bit/s.
    pub(super) shared_bps: f64,
    /// Connections of others.
    pub(super) flows: f64,
}

/// Share of the available rate that counts as filled; step that counts as a gain; loss of sum that
/// counts as harm; share of the available rate below which one stream is not enough. `[Netest03]`
/// gives the regions, the numbers are ours.
const FILLED: f64 = 0.95;
const GAIN: f64 = 0.10;
const HARM: f64 = 0.97;
const ENOUGH: f64 = 0.8;
const SIGNIFICANT: f64 = 0.05;
/// A sum of this much more than is available counts as more (ours: what layers and rounding may
/// make).
const MORE: f64 = 1.02;
/// A stream that gets less than this share of what it gets alone is crowded.
const CANARY: f64 = 0.8;
/// Levels that a curve is fitted to, and how far off they may lie (ours).
const FEWEST_LEVELS: usize = 4;
const OFF_MODEL: f64 = 0.08;
/// A sum of at least this share of `n T1` still rises in proportion.
const PROPORTIONAL: f64 = 0.8;

/// Whether the second level's rate exceeds the first one's, beyond chance.
fn exceeds(more: &Level, less: &Level) -> bool {
    match narrows_stat::welch(&more.rates, &less.rates) {
        Ok(test) => test.p_greater < SIGNIFICANT,
        // Without spread there is no chance; with a single value there is no telling, and the means
        // have to do.
        Err(_) => more.mean() > less.mean(),
    }
}

/// Whether a step up brought nothing worth having, or nothing beyond chance.
pub(super) fn is_flat(less: &Level, more: &Level) -> bool {
    !gains(less, more) || !exceeds(more, less)
}

fn gains(less: &Level, more: &Level) -> bool {
    more.mean() - less.mean() >= GAIN * less.mean()
}

/// The first level behind which the sum grows no more: the next step brings nothing worth having,
/// or nothing beyond chance, and no later one shows that this was chance. Rates of single runs
/// scatter where losses are rare.
pub(super) fn flat_from(levels: &[Level]) -> Option<usize> {
    (1..levels.len())
        .map(|next| next - 1)
        .find(|&index| is_flat(&levels[index], &levels[index + 1]) && !outgrown(&levels[index..]))
}

/// Whether a later level has as much more than the first one as steps that are each worth having
/// would have brought, beyond chance.
fn outgrown(levels: &[Level]) -> bool {
    let Some((first, rest)) = levels.split_first() else {
        return false;
    };
    let mut worth = first.mean();
    rest.iter().any(|level| {
        worth *= 1.0 + GAIN;
        level.mean() >= worth && exceeds(level, first)
    })
}

/// Whether that level fills what is available.
pub(super) fn fills(level: &Level, available: Available) -> bool {
    level.mean() >= FILLED * available.high_bps
}

/// Fewest streams that could fill what is available if the sum rose in proportion to `level`: it
/// never rises faster.
pub(super) fn needed(level: &Level, available: Available) -> Option<u16> {
    let each = level.mean() / f64::from(level.streams.max(1));
    whole_streams(FILLED * available.high_bps / each)
}

/// `ceil(T_max / T_1)`: the streams of which one gets `each` that fill `all`. `[Netest03]`'s report
/// is consistent with it.
pub(super) fn extrapolated(all: f64, each: f64) -> Option<u16> {
    whole_streams(all / each)
}

fn whole_streams(ratio: f64) -> Option<u16> {
    let streams = ratio.ceil();
    if !(1.0..=f64::from(u16::MAX)).contains(&streams) {
        return (streams < 1.0).then_some(1);
    }
    u16::try_from(rounded(streams)).ok()
}

/// Findings from levels in rising order of their streams, the first of which is one stream. `None`
/// without any.
pub(super) fn findings(levels: &[Level], available: Option<Available>) -> Option<Findings> {
    let (one, last) = (levels.first()?, levels.last()?);
    let reached = available.and_then(|available| levels.iter().position(|level| fills(level, available)));
    let flat = flat_from(levels);
    let (fill, low, high, basis) = if let (Some(index), Some(available)) = (reached, available) {
        let fill = levels[index].streams;
        let before = levels[..index].last();
        let tried = before.map_or(1, |level| level.streams + 1);
        // No sum rises faster than its streams: below this it cannot have been reached.
        let low = before.and_then(|level| needed(level, available)).unwrap_or(1);
        (fill, low.clamp(tried, fill), fill, Basis::Reached)
    } else if let Some(index) = flat {
        let low = index.checked_sub(1).map_or(1, |before| levels[before].streams + 1);
        let (less, more) = (&levels[index], &levels[index + 1]);
        let (basis, high) = if gains(less, more) { (Basis::Unsure, more.streams) } else { (Basis::Flat, less.streams) };
        (less.streams, low, high, basis)
    } else {
        let linear = last.mean() >= PROPORTIONAL * f64::from(last.streams) * one.mean();
        let more = available.and_then(|available| extrapolated(available.bps, one.mean()));
        match more.filter(|more| linear && *more > last.streams) {
            Some(more) => (more, last.streams + 1, more.saturating_mul(2), Basis::Extrapolated),
            None => (last.streams, last.streams, last.streams, Basis::Rising),
        }
    };
    let filling = levels.iter().find(|level| level.streams >= fill).unwrap_or(last);
    let target = available.map_or(filling.mean(), |available| available.bps);
    Some(Findings {
        fill,
        low,
        high,
        basis,
        intrusive: intrusive(levels, filling, available),
        harmful: harmful(levels),
        recommended: fill >= 2 && one.mean() < ENOUGH * target,
    })
}

/// Fewest streams beyond `filling` that show two [`Sign`]s.
fn intrusive(levels: &[Level], filling: &Level, available: Option<Available>) -> Option<(u16, Vec<Sign>)> {
    let one = levels.first()?.mean();
    levels.windows(2).find_map(|pair| {
        let (less, more) = (&pair[0], &pair[1]);
        if more.streams <= filling.streams {
            return None;
        }
        let over = available.is_some_and(|available| {
            let constant = Level { rates: vec![available.high_bps; 2], ..more.clone() };
            more.mean() > MORE * available.high_bps && exceeds(more, &constant)
        });
        // A level that was given, not measured here, has no round-trip time.
        let slower = filling.rtt > 0.0 && more.rtt > 1.5 * filling.rtt;
        let lossier = more.loss > 2.0 * filling.loss && more.loss > 0.001;
        let gain = (more.mean() - less.mean()) / (f64::from(more.streams - less.streams) * one.max(1.0));
        let grudging = gain < 0.5 && gain > 0.0 && exceeds(more, less);
        let crowded = more.mean() / f64::from(more.streams) < CANARY * one;
        let signs: Vec<Sign> = [
            (Sign::MoreThanAvailable, over),
            (Sign::RoundTrip, slower),
            (Sign::Retransmissions, lossier),
            (Sign::Canary, crowded),
            (Sign::SmallGain, grudging),
        ]
        .into_iter()
        .filter_map(|(sign, shown)| shown.then_some(sign))
        .collect();
        (signs.len() >= 2).then_some((more.streams, signs))
    })
}

/// Least squares of `n / T(n) = (n + m) / C` over the levels. `None` for fewer than four, where
/// others are no more than chance (below half a connection), or where the curve is another one: a
/// rate more than 8 % off the model.
pub(super) fn sharing(levels: &[Level]) -> Option<Sharing> {
    let streams: Vec<f64> = levels.iter().map(|level| f64::from(level.streams)).collect();
    let inverse: Vec<f64> = levels.iter().map(|level| f64::from(level.streams) * 1e6 / level.mean()).collect();
    if levels.len() < FEWEST_LEVELS || inverse.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let weights: Vec<f64> = inverse.iter().map(|value| value.powi(-2)).collect();
    let line = narrows_stat::weighted_ols(&streams, &inverse, &weights).ok()?.line;
    let found = Sharing { shared_bps: 1e6 / line.slope, flows: line.intercept / line.slope };
    let fits = streams.iter().zip(levels).all(|(n, level)| {
        let model = found.shared_bps * n / (n + found.flows);
        (model - level.mean()).abs() <= OFF_MODEL * level.mean()
    });
    (line.slope > 0.0 && found.flows >= 0.5 && found.flows.is_finite() && fits).then_some(found)
}

/// Fewest streams whose sum is below 97 % of the best of fewer streams, beyond chance.
pub(super) fn harmful(levels: &[Level]) -> Option<u16> {
    let mut best: Option<&Level> = None;
    for level in levels {
        if let Some(best) = best
            && level.mean() < HARM * best.mean()
            && exceeds(best, level)
        {
            return Some(level.streams);
        }
        if best.is_none_or(|best| best.mean() < level.mean()) {
            best = Some(level);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(streams: u16, mbps: f64) -> Level {
        Level { streams, rates: [0.99, 1.0, 1.01].map(|factor| factor * mbps * 1e6).to_vec(), rtt: 0.02, loss: 0.0 }
    }

    fn available(mbps: f64) -> Available {
        Available { bps: mbps * 1e6, high_bps: mbps * 1e6 }
    }

    /// Streams in the published report: 391.624 by 136.7045 gives 3, 804.1 by 475.5225 gives 2,
    /// 391.624 by 6.1854 64 to 66.
    #[test]
    fn the_published_report() {
        assert_eq!(extrapolated(391.624, 136.7045), Some(3));
        assert_eq!(extrapolated(804.1, 475.5225), Some(2));
        assert!((64..=66).contains(&extrapolated(391.624, 6.1854).unwrap()));
        assert_eq!(extrapolated(1.0, 0.0), None);
    }

    /// Non-congestive region: T(n) = min(n T1, A).
    #[test]
    fn streams_held_by_their_windows() {
        let levels: Vec<_> = [1, 2, 3, 4].map(|n| level(n, (30.0 * f64::from(n)).min(95.0))).to_vec();
        let found = findings(&levels, Some(available(95.0))).unwrap();
        assert_eq!((found.fill, found.low, found.high, found.basis), (4, 4, 4, Basis::Reached));
        assert!(found.recommended);
        assert_eq!((found.intrusive, found.harmful), (None, None));
    }

    /// The published region: only one flow is cut per loss, T(n)/C = 1 - 1 / (1 + n (1 + b) / (1 -
    /// b)): three Reno streams, or two CUBIC ones, get 90 %.
    #[test]
    fn desynchronised_cuts() {
        // By hand: T(n) / C for a cut to b = 0.5 (3/4, 6/7, 9/10, 12/13) and to 0.7.
        for (shares, fill) in [([0.75, 0.857, 0.9, 0.923], 3), ([0.85, 0.919, 0.944, 0.958], 2)] {
            let levels: Vec<_> = (1..).zip(shares).map(|(n, share)| level(n, 100.0 * share)).collect();
            // 0.95 of 94.5 are 89.8.
            assert_eq!(findings(&levels, Some(available(94.5))).unwrap().fill, fill);
        }
    }

    /// Against m = 4 equal flows: T(n) = C n / (n + 4). From the third stream on each takes from
    /// others less than half a share.
    #[test]
    fn competition_is_intrusive() {
        let levels: Vec<_> = [1, 2, 3, 4, 6, 8].map(|n| level(n, 100.0 * f64::from(n) / (f64::from(n) + 4.0))).to_vec();
        let found = findings(&levels, Some(available(33.0))).unwrap();
        assert_eq!((found.fill, found.basis), (2, Basis::Reached));
        // Three get 42.9 where 33 are available, and 14.3 each where one got 20.
        let (streams, signs) = found.intrusive.unwrap();
        assert_eq!(streams, 3);
        assert!(signs.contains(&Sign::MoreThanAvailable) && signs.contains(&Sign::Canary), "{signs:?}");
        let shared = sharing(&levels).unwrap();
        assert!((shared.flows - 4.0).abs() < 0.01 && (shared.shared_bps - 100e6).abs() < 1e4, "{shared:?}");
        let unknown = findings(&levels, None).unwrap();
        assert_eq!(unknown.basis, Basis::Rising);
    }

    /// Windows that hold each stream, and a path that is then full, are no curve of that kind.
    #[test]
    fn no_others_without_their_curve() {
        let held: Vec<_> = [1, 2, 3, 4, 6].map(|n| level(n, 10.0 * f64::from(n))).to_vec();
        assert_eq!(sharing(&held), None);
        let full: Vec<_> = [1, 2, 3, 4, 6].map(|n| level(n, (40.0 * f64::from(n)).min(95.0))).to_vec();
        assert_eq!(sharing(&full), None);
        assert_eq!(sharing(&held[..2]), None);
    }

    /// Two streams that chance kept low are no end where four carry four times as much as one; a
    /// tenth more over three steps is.
    #[test]
    fn one_low_level_is_no_end() {
        let levels = |rates: [f64; 4]| -> Vec<Level> {
            [1, 2, 3, 4].into_iter().zip(rates).map(|(n, rate)| level(n, rate)).collect()
        };
        assert_eq!(flat_from(&levels([10.0, 10.5, 29.0, 38.0])), None);
        assert_eq!(flat_from(&levels([10.0, 19.0, 20.0, 20.5])), Some(1));
        let slow = levels([10.0, 10.4, 10.8, 11.1]);
        let found = findings(&slow, None).unwrap();
        assert_eq!((flat_from(&slow), found.fill, found.basis), (Some(0), 1, Basis::Flat));
    }

    #[test]
    fn flat_from_the_start_and_falling_at_the_end() {
        let flat: Vec<_> = [1, 2, 3].map(|n| level(n, 50.0)).to_vec();
        let found = findings(&flat, Some(available(95.0))).unwrap();
        assert_eq!((found.fill, found.basis, found.recommended), (1, Basis::Flat, false));
        let falling: Vec<_> = [(1, 40.0), (2, 78.0), (3, 80.0), (4, 70.0)].map(|(n, rate)| level(n, rate)).to_vec();
        let found = findings(&falling, None).unwrap();
        assert_eq!((found.fill, found.harmful), (2, Some(4)));
    }

    /// 10, 20, 60 and 15, 25, 80: a third more, and no more than chance.
    #[test]
    fn a_gain_that_may_be_chance() {
        let scattered =
            |streams, rates: [f64; 3]| Level { rates: rates.map(|mbps| mbps * 1e6).to_vec(), ..level(streams, 0.0) };
        let levels = [scattered(1, [10.0, 20.0, 60.0]), scattered(2, [15.0, 25.0, 80.0])];
        let found = findings(&levels, None).unwrap();
        assert_eq!((found.fill, found.high, found.basis), (1, 2, Basis::Unsure));
    }

    #[test]
    fn beyond_what_was_tried() {
        let levels: Vec<_> = [1, 2, 4].map(|n| level(n, 6.1854 * f64::from(n))).to_vec();
        let found = findings(&levels, Some(available(391.624))).unwrap();
        assert_eq!((found.fill, found.low, found.basis), (64, 5, Basis::Extrapolated));
        assert_eq!(findings(&[], Some(available(10.0))), None);
    }
}
