//! Sums of hours, and of hours.

use std::collections::BTreeMap;

use narrows_fleet::keys::Name;
use narrows_fleet::message::Claim;

use crate::codes;
use crate::fit::{DAY, HOUR};
use crate::rows::{Latest, Point, Range, SiteValue};

/// What many values come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sum {
    pub(crate) count: i64,
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) claim: i16,
}

/// Sums up values: claim, value, low, high. Median and most frequent claim are those of
/// PostgreSQL's `percentile_cont(0.5)` and `mode()`, to the last bit.
pub(crate) fn sum(values: &[(i16, f64, f64, f64)]) -> Option<Sum> {
    let mut sorted: Vec<f64> = values.iter().map(|(_, value, ..)| *value).collect();
    let mut claims: BTreeMap<i16, usize> = BTreeMap::new();
    for (claim, ..) in values {
        *claims.entry(*claim).or_default() += 1;
    }
    let most = claims.values().copied().max()?;
    let claim = claims.iter().find(|(_, count)| **count == most).map(|(claim, _)| *claim)?;
    Some(Sum {
        count: i64::try_from(values.len()).unwrap_or(i64::MAX),
        median: median(&mut sorted)?,
        low: values.iter().map(|(_, _, low, _)| *low).fold(f64::INFINITY, f64::min),
        high: values.iter().map(|(.., high)| *high).fold(f64::NEG_INFINITY, f64::max),
        claim,
    })
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let (below, above) = (values[last / 2], values[last.div_ceil(2)]);
    Some(below + 0.5 * (above - below))
}

/// The first hour of a range, and the first one after it.
pub(crate) fn hours_of(range: Range) -> (i64, i64) {
    let cut = i64::from(range.until_ms.rem_euclid(HOUR) > 0);
    (range.since_ms.div_euclid(HOUR), range.until_ms.div_euclid(HOUR) + cut)
}

/// Sums of hours in at most so many points: hours, else as few days a point as are enough.
pub(crate) fn thinned(hours: Vec<Point>, range: Range, points: usize) -> Vec<Point> {
    if hours.len() <= points {
        return hours;
    }
    let width = |days: i64| days.saturating_mul(DAY);
    let days =
        range.until_ms.min(hours.last().map_or(0, |last| last.at_ms + HOUR)).saturating_sub(hours[0].at_ms) / DAY + 2;
    let most = i64::try_from(points.max(1)).unwrap_or(i64::MAX);
    // The first and the last point may be cut.
    let each = days / (most.max(3) - 1) + 1;
    let mut all: BTreeMap<i64, Vec<Point>> = BTreeMap::new();
    for hour in hours {
        all.entry(hour.at_ms.div_euclid(width(each))).or_default().push(hour);
    }
    all.into_iter().map(|(number, hours)| of_hours(number * width(each), hours)).collect()
}

/// The median is that of the hours' medians, each as often as it has values.
fn of_hours(at_ms: i64, mut hours: Vec<Point>) -> Point {
    hours.sort_by(|a, b| a.value.total_cmp(&b.value));
    let count: u64 = hours.iter().map(|hour| hour.count).sum();
    let mut below = 0;
    let middle = hours.iter().find(|hour| {
        below += hour.count;
        2 * below >= count
    });
    let of = |claim| hours.iter().filter(|hour| hour.claim == claim).map(|hour| hour.count).sum::<u64>();
    // Of equals the first one.
    let claim = [Claim::AtMost, Claim::AtLeast, Claim::Estimate].into_iter().max_by_key(|claim| of(*claim));
    Point {
        at_ms,
        count,
        value: middle.map_or(0.0, |hour| hour.value),
        low: hours.iter().map(|hour| hour.low).fold(f64::INFINITY, f64::min),
        high: hours.iter().map(|hour| hour.high).fold(f64::NEG_INFINITY, f64::max),
        claim: claim.unwrap_or(Claim::Estimate),
    }
}

/// The matrix of sites from newest values: of each pair of hosts, the newest counts.
pub(crate) fn sites(values: Vec<Latest>, site_of: &BTreeMap<Name, Name>) -> Vec<SiteValue> {
    let mut newest: BTreeMap<(Name, Name), Latest> = BTreeMap::new();
    for one in values {
        let pair = (one.source.clone(), one.target.clone());
        if newest.get(&pair).is_none_or(|other| other.run < one.run) {
            newest.insert(pair, one);
        }
    }
    let mut cells: BTreeMap<(Name, Name), Vec<Latest>> = BTreeMap::new();
    for ((source, target), one) in newest {
        if let (Some(from), Some(to)) = (site_of.get(&source), site_of.get(&target)) {
            cells.entry((from.clone(), to.clone())).or_default().push(one);
        }
    }
    let cell = |((source, target), found): ((Name, Name), Vec<Latest>)| {
        let rows: Vec<_> =
            found.iter().map(|one| (codes::of_claim(one.claim), one.value, one.value, one.value)).collect();
        let sum = sum(&rows)?;
        Some(SiteValue {
            source,
            target,
            pairs: codes::unsigned(sum.count),
            claim: codes::claim(sum.claim).ok()?,
            value: sum.median,
            low: sum.low,
            high: sum.high,
            oldest_ms: found.iter().map(|one| one.at_ms).min()?,
        })
    };
    cells.into_iter().filter_map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_lie_between_the_middle_ones() {
        let of = |values: &[f64]| median(&mut values.to_vec());
        assert_eq!(
            [of(&[]), of(&[3.0]), of(&[4.0, 1.0]), of(&[9.0, 1.0, 2.0])],
            [None, Some(3.0), Some(2.5), Some(2.0)]
        );
        let most = sum(&[(1, 1.0, 0.5, 2.0), (0, 3.0, 2.5, 3.5), (1, 2.0, 2.0, 9.0), (0, 5.0, 4.0, 6.0)]).unwrap();
        assert_eq!(most, Sum { count: 4, median: 2.5, low: 0.5, high: 9.0, claim: 0 });
    }

    #[test]
    fn many_hours_become_few_points_with_all_values() {
        let hour = |number: i64| Point {
            at_ms: number * HOUR,
            count: 1 + u64::try_from(number % 3).unwrap(),
            value: f64::from(i32::try_from(number % 24).unwrap()),
            low: 0.0,
            high: 30.0,
            claim: if number % 24 < 10 { Claim::AtLeast } else { Claim::Estimate },
        };
        let hours: Vec<Point> = (0..24 * 400).map(hour).collect();
        let range = Range { since_ms: 0, until_ms: i64::MAX };
        for most in [3, 10, 399, 500] {
            let points = thinned(hours.clone(), range, most);
            assert!(points.len() <= most && 3 * points.len() >= most.min(400), "{} of {most}", points.len());
            let count = |points: &[Point]| points.iter().map(|point| point.count).sum::<u64>();
            assert_eq!(count(&points), count(&hours));
            assert!(points.iter().all(|point| (10.0..=13.0).contains(&point.value) && point.claim == Claim::Estimate));
        }
        assert_eq!(thinned(hours.clone(), range, 9_600), hours);
    }
}
