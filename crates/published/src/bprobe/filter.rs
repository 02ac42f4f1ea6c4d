//! Union and intersection of intervals.

/// One estimate and what it may be wrong by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) point: f64,
    pub(super) high: f64,
}

/// Overlapping estimates of one phase.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Joined {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) points: Vec<f64>,
}

/// What phases have in common.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Common {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Phases that cover it.
    pub(super) phases: usize,
    /// Estimates of the joined intervals that cover it.
    pub(super) weight: usize,
    /// The same of the best stretch that lies apart from it.
    pub(super) second: Option<(usize, usize)>,
}

/// Joins the estimates of a phase that overlap; those that overlap with no other are dropped.
pub(super) fn union(mut estimates: Vec<Interval>) -> Vec<Joined> {
    estimates.sort_by(|a, b| a.low.total_cmp(&b.low));
    let mut joined: Vec<Joined> = Vec::new();
    for one in estimates {
        match joined.last_mut() {
            Some(last) if one.low <= last.high => {
                last.high = last.high.max(one.high);
                last.points.push(one.point);
            }
            _ => joined.push(Joined { low: one.low, high: one.high, points: vec![one.point] }),
        }
    }
    joined.retain(|set| set.points.len() > 1);
    joined
}

/// The stretch that most phases cover, by most estimates; of equals the lower one.
pub(super) fn intersect(phases: &[Vec<Joined>]) -> Option<Common> {
    let mut edges: Vec<f64> = phases.iter().flatten().flat_map(|set| [set.low, set.high]).collect();
    edges.sort_by(f64::total_cmp);
    let stretches: Vec<Common> = edges
        .windows(2)
        .filter(|edge| edge[0] < edge[1])
        .filter_map(|edge| covered(phases, edge[0], edge[1]))
        .collect();
    let better = |a: &Common, b: &Common| (a.phases, a.weight) < (b.phases, b.weight);
    let best = stretches.iter().fold(None, |best: Option<&Common>, one| match best {
        Some(best) if !better(best, one) => Some(best),
        _ => Some(one),
    })?;
    // A stretch is another one if some joined interval of the best does not reach it: where it
    // shares all of them it is its shoulder.
    let apart = |one: &&Common| one.high < best.low / APART || one.low > best.high * APART;
    let second = stretches.iter().filter(apart).map(|one| (one.phases, one.weight)).max();
    Some(Common { second, ..best.clone() })
}

fn covered(phases: &[Vec<Joined>], low: f64, high: f64) -> Option<Common> {
    let covers = |set: &&Joined| set.low <= low && high <= set.high;
    let sets: Vec<&Joined> = phases.iter().filter_map(|sets| sets.iter().find(covers)).collect();
    (!sets.is_empty()).then(|| Common {
        low,
        high,
        phases: sets.len(),
        weight: sets.iter().map(|set| set.points.len()).sum(),
        second: None,
    })
}

/// Stretches this far from the best are others (ours).
const APART: f64 = 1.15;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn around(point: f64) -> Interval {
        Interval { low: point * 0.95, point, high: point * 1.05 }
    }

    #[test]
    fn union_joins_what_overlaps_and_drops_what_is_alone() {
        let sets = union([10.0, 10.2, 5.0, 9.5, 20.0, 20.1].map(around).to_vec());
        assert_eq!(sets.len(), 2);
        assert_eq!(sets[0].points, vec![9.5, 10.0, 10.2]);
        assert!((sets[0].low - 9.025).abs() < 1e-12 && (sets[0].high - 10.71).abs() < 1e-12);
        assert_eq!(sets[1].points.len(), 2);
    }

    #[test]
    fn intersection_takes_what_most_phases_share() {
        // Three sizes see 10; two see something at the same added time, at different rates.
        let phases: Vec<Vec<Joined>> =
            [vec![10.0, 10.1, 2.0, 2.1], vec![9.9, 10.0, 4.0, 4.1, 4.05], vec![10.0, 10.05, 6.0, 6.1]]
                .map(|points| union(points.into_iter().map(around).collect()))
                .to_vec();
        let common = intersect(&phases).unwrap();
        assert_eq!((common.phases, common.weight), (3, 6));
        assert!((common.low - 9.5).abs() < 1e-9 && (common.high - 10.5).abs() < 1e-9, "{common:?}");
        assert_eq!(common.second, Some((1, 3)));
        assert_eq!(intersect(&[]), None);
        assert_eq!(intersect(&[union(vec![around(1.0)])]), None);
    }

    proptest! {
        #[test]
        fn the_answer_lies_in_some_phase(points in vec(vec(1.0..1e10_f64, 0..20), 0..6)) {
            let phases: Vec<_> = points.iter().map(|p| union(p.iter().copied().map(around).collect())).collect();
            if let Some(common) = intersect(&phases) {
                prop_assert!(common.low < common.high);
                prop_assert!(common.phases >= 1 && common.phases <= phases.len());
                prop_assert!(phases.iter().flatten().any(|set| set.low <= common.low && common.high <= set.high));
                prop_assert!(common.second.is_none_or(|second| second.0 <= common.phases));
            }
        }
    }
}
