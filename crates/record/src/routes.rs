//! Since when a pair has its newest route.

use std::collections::BTreeMap;

use crate::fit::{Fit, Route};

/// The newest route of a pair: which, first seen without another one since, last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) route: i64,
    pub(crate) since_ms: i64,
    pub(crate) seen_ms: i64,
}

/// What a batch changes for a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// This is the newest one now.
    Is(Newest),
    /// Something was seen between others: only all runs of the pair can tell.
    Recount,
}

/// Each time that a run saw a route.
pub(crate) fn sightings(run: &Fit) -> impl Iterator<Item = (&Route, i64)> {
    let end = run.began_ms.saturating_add(run.length_ms);
    let both = [run.before.as_ref().zip(Some(run.began_ms)), run.after.as_ref().zip(Some(end))];
    both.into_iter().flatten().filter(|_| run.in_time)
}

/// Adds sightings (time, route) of one pair to what was its newest route.
pub(crate) fn change(before: Option<Newest>, mut sightings: Vec<(i64, i64)>) -> Option<Change> {
    sightings.sort_unstable();
    let mut newest = before;
    for (at, route) in sightings {
        newest = Some(match newest {
            Some(known) if at < known.seen_ms || (at == known.seen_ms && route != known.route) => {
                return Some(Change::Recount);
            }
            Some(known) if route == known.route => Newest { seen_ms: at, ..known },
            _ => Newest { route, since_ms: at, seen_ms: at },
        });
    }
    newest.filter(|_| newest != before).map(Change::Is)
}

/// Sightings by pair, from runs that are new. `route` gives the number of a route.
pub(crate) fn by_pair<'a, K: Ord>(
    runs: impl Iterator<Item = (K, &'a Fit)>,
    route: impl Fn(&Route) -> i64,
) -> BTreeMap<K, Vec<(i64, i64)>> {
    let mut all: BTreeMap<K, Vec<(i64, i64)>> = BTreeMap::new();
    for (pair, run) in runs {
        let seen: Vec<_> = sightings(run).map(|(hops, at)| (at, route(hops))).collect();
        if !seen.is_empty() {
            all.entry(pair).or_default().extend(seen);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(route: i64, since_ms: i64, seen_ms: i64) -> Newest {
        Newest { route, since_ms, seen_ms }
    }

    #[test]
    fn the_newest_route_is_known_without_the_others() {
        assert_eq!(change(None, vec![]), None);
        assert_eq!(change(None, vec![(20, 1), (10, 1)]), Some(Change::Is(newest(1, 10, 20))));
        let before = Some(newest(1, 10, 20));
        assert_eq!(change(before, vec![(30, 1)]), Some(Change::Is(newest(1, 10, 30))));
        assert_eq!(change(before, vec![(40, 2), (30, 1), (50, 2)]), Some(Change::Is(newest(2, 40, 50))));
        assert_eq!(change(before, vec![(20, 1)]), None);
        assert_eq!(change(before, vec![(20, 2)]), Some(Change::Recount));
        assert_eq!(change(before, vec![(15, 1), (30, 1)]), Some(Change::Recount));
    }
}
