//! Several values as one: what roll-ups and points are made of.

use narrows_watch::{Claim, WallTime};

use crate::codec::Sketch;
use crate::names::{claim, claim_number, is_usable};
use crate::records::{Basis, Point, PulseMinute};

/// What is known of a time. Of pulses, `low` is the least round trip of a minute and `high` its
/// 95th percentile; over several minutes, the means of those.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Summary {
    /// The beginning of the time, ms.
    pub(crate) at: i64,
    /// How many values count.
    pub(crate) n: u32,
    /// How many pulses were lost.
    pub(crate) lost: u32,
    pub(crate) mean: Option<f64>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) claim: Claim,
    /// From where; `None` is not said yet, or of either kind.
    pub(crate) basis: Option<Basis>,
    pub(crate) sketch: Option<Sketch>,
}

impl Summary {
    /// Of nothing that counts.
    pub(crate) fn empty(at: i64) -> Self {
        let none = None;
        Self {
            at,
            n: 0,
            lost: 0,
            mean: none,
            low: none,
            high: none,
            min: none,
            max: none,
            claim: Claim::Inconclusive,
            basis: None,
            sketch: None,
        }
    }

    /// Of one value with its interval.
    pub(crate) fn of_value(at: i64, values: [Option<f64>; 3], said: Claim, flags: i64) -> Self {
        let [value, low, high] = values;
        if !is_usable(value, said, flags) {
            return Self::empty(at);
        }
        Self { n: 1, mean: value, low, high, min: value, max: value, claim: said, ..Self::empty(at) }
    }

    /// Of a minute's pulses.
    pub(crate) fn of_pulses(at: i64, minute: &PulseMinute) -> Self {
        let lost = Self { lost: minute.lost, sketch: Some(Sketch::default()), ..Self::empty(at) };
        let mut sorted = minute.round_trips_ns.clone();
        sorted.sort_unstable();
        let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else { return lost };
        let p95 = sorted[(sorted.len() * 95).div_ceil(100) - 1];
        let sum: f64 = sorted.iter().map(|&one| one as f64).sum();
        Self {
            n: u32::try_from(sorted.len()).unwrap_or(u32::MAX),
            mean: Some(sum / sorted.len() as f64),
            low: Some(least as f64),
            high: Some(p95 as f64),
            min: Some(least as f64),
            max: Some(most as f64),
            claim: Claim::Estimate,
            sketch: Some(Sketch::of(&sorted)),
            ..lost
        }
    }

    /// Of several. Where some are estimates, bounds do not count.
    pub(crate) fn merged(at: i64, parts: &[Self]) -> Self {
        let best = parts.iter().filter(|part| part.n > 0).map(|part| claim_number(part.claim)).min();
        let counted: Vec<&Self> =
            parts.iter().filter(|part| part.n > 0 && Some(claim_number(part.claim)) == best).collect();
        let mean = |of: fn(&Self) -> Option<f64>| {
            let (mut sum, mut weight) = (0.0, 0.0);
            for part in &counted {
                if let Some(value) = of(part) {
                    sum += value * f64::from(part.n);
                    weight += f64::from(part.n);
                }
            }
            (weight > 0.0).then(|| sum / weight)
        };
        // Of nothing that counts it is known from where it does not.
        let shown: Vec<&Self> = if counted.is_empty() { parts.iter().collect() } else { counted.clone() };
        let basis = shown.first().and_then(|first| first.basis);
        let mut sketch: Option<Sketch> = None;
        for one in parts.iter().filter_map(|part| part.sketch.as_ref()) {
            sketch.get_or_insert_default().merge(one);
        }
        Self {
            at,
            n: counted.iter().fold(0, |all, part| all.saturating_add(part.n)),
            lost: parts.iter().fold(0, |all, part| all.saturating_add(part.lost)),
            mean: mean(|part| part.mean),
            low: mean(|part| part.low),
            high: mean(|part| part.high),
            min: counted.iter().filter_map(|part| part.min).reduce(f64::min),
            max: counted.iter().filter_map(|part| part.max).reduce(f64::max),
            claim: best.map_or(Claim::Inconclusive, claim),
            basis: basis.filter(|basis| shown.iter().all(|part| part.basis == Some(*basis))),
            sketch,
        }
    }

    /// As the pages see it.
    pub(crate) fn point(&self) -> Point {
        let Self { at, n, mean, low, high, min, max, claim, basis, .. } = *self;
        Point { at: WallTime::from_millis(at), value: mean, low, high, min, max, count: n, claim, basis }
    }
}

/// Joins summaries of one interval each: `parts` are in the order of time.
pub(crate) fn by_interval(parts: &[Summary], since: i64, interval: i64) -> Vec<Summary> {
    let begin = |at: i64| since + (at - since).div_euclid(interval) * interval;
    let parts_of = parts.chunk_by(|one, next| begin(one.at) == begin(next.at));
    parts_of.map(|parts| Summary::merged(begin(parts[0].at), parts)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(lost: u32, round_trips_ns: Vec<u64>) -> Summary {
        let sent = lost + u32::try_from(round_trips_ns.len()).unwrap();
        let minute = PulseMinute { minute: WallTime::default(), sent, lost, loaded: false, round_trips_ns };
        Summary::of_pulses(0, &minute)
    }

    /// Worked by hand: the 95th percentile of 20 values is the 19th.
    #[test]
    fn pulses_have_least_mean_and_percentile() {
        let one = minute(3, (1..=20).rev().collect());
        assert_eq!((one.n, one.lost), (20, 3));
        assert_eq!([one.low, one.mean, one.high, one.max], [Some(1.0), Some(10.5), Some(19.0), Some(20.0)]);
    }

    #[test]
    fn a_mean_weighs_by_count_and_a_silent_minute_only_counts_its_losses() {
        let joined = Summary::merged(7, &[minute(0, vec![10; 3]), minute(5, vec![]), minute(1, vec![50])]);
        assert_eq!((joined.at, joined.n, joined.lost), (7, 4, 6));
        assert_eq!([joined.mean, joined.min, joined.max], [Some(20.0), Some(10.0), Some(50.0)]);
        assert_eq!(joined.sketch.unwrap().classes().map(|(_, count)| count).sum::<u32>(), 4);
    }

    #[test]
    fn bounds_count_only_where_there_is_no_estimate() {
        let value = |value, claim| Summary::of_value(0, [Some(value), Some(value), Some(value)], claim, 0);
        let bounds = [value(1.0, Claim::AtLeast), value(3.0, Claim::AtLeast), value(9.0, Claim::AtMost)];
        let joined = Summary::merged(0, &bounds);
        assert_eq!((joined.claim, joined.mean, joined.n), (Claim::AtLeast, Some(2.0), 2));
        let joined = Summary::merged(0, &[value(1.0, Claim::AtLeast), value(5.0, Claim::Estimate)]);
        assert_eq!((joined.claim, joined.mean, joined.n), (Claim::Estimate, Some(5.0), 1));
        let busy = Summary::of_value(0, [Some(5.0); 3], Claim::Estimate, crate::names::BUSY);
        assert_eq!(Summary::merged(0, &[busy]).mean, None);
    }

    #[test]
    fn a_mean_says_from_where_if_all_that_counts_is_of_one_kind() {
        let value = |basis, claim| Summary { basis: Some(basis), ..Summary::of_value(0, [Some(1.0); 3], claim, 0) };
        let (server, single) = (value(Basis::Server, Claim::Estimate), value(Basis::Single, Claim::Estimate));
        let of = |parts: &[Summary]| Summary::merged(0, parts).basis;
        assert_eq!(of(&[server.clone(), server.clone()]), Some(Basis::Server));
        assert_eq!(of(&[server.clone(), single.clone()]), None);
        assert_eq!(
            of(&[server, value(Basis::Single, Claim::AtLeast)]),
            Some(Basis::Server),
            "the bound does not count"
        );
        assert_eq!(of(&[value(Basis::Single, Claim::Inconclusive)]), Some(Basis::Single));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn intervals_begin_where_the_question_does() {
        let at = |at| Summary { at, ..Summary::of_value(0, [Some(1.0); 3], Claim::Estimate, 0) };
        let joined = by_interval(&[at(5), at(14), at(15), at(40)], 5, 10);
        assert_eq!(joined.iter().map(|one| (one.at, one.n)).collect::<Vec<_>>(), [(5, 2), (15, 1), (35, 1)]);
    }
}
