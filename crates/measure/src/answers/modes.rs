//! Where gaps gather.

/// Gaps that are alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mode {
    /// Their mean, ns.
    pub(super) mean_ns: f64,
    /// Their standard deviation, ns.
    pub(super) sd_ns: f64,
    /// How many.
    pub(super) count: usize,
    /// Their share of all gaps.
    pub(super) share: f64,
}

/// The densest place of the gaps, and the next ones among those that are left, densest first, as
/// far as each holds `least` of all. Gaps are alike that differ by `noise_ns` or by [`ALIKE`] of
/// themselves at most.
pub(super) fn modes(gaps_ns: &[f64], noise_ns: f64, least: f64) -> Vec<Mode> {
    let mut left: Vec<f64> = gaps_ns.to_vec();
    left.sort_by(f64::total_cmp);
    let all = left.len();
    let mut found = Vec::new();
    while let Some((from, to)) = densest(&left, noise_ns) {
        let share = (to - from) as f64 / all as f64;
        if share < least {
            break;
        }
        let members = &left[from..to];
        let mean_ns = narrows_stat::mean(members).unwrap_or(members[0]);
        let sd_ns = narrows_stat::variance_sample(members).unwrap_or(0.0).sqrt();
        found.push(Mode { mean_ns, sd_ns, count: to - from, share });
        left.drain(from..to);
    }
    found
}

/// The window of the sorted gaps that holds most of them.
fn densest(sorted: &[f64], noise_ns: f64) -> Option<(usize, usize)> {
    let mut best: Option<(usize, usize)> = None;
    let mut to = 0;
    for (from, &gap) in sorted.iter().enumerate() {
        let end = gap + noise_ns.max(ALIKE * gap);
        while to < sorted.len() && sorted[to] <= end {
            to += 1;
        }
        if best.is_none_or(|(a, b)| to - from > b - a) {
            best = Some((from, to));
        }
    }
    best
}

/// Ours: twice the half width of the interval that is claimed where stamps are exact.
const ALIKE: f64 = 0.03;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_densest_place_comes_first() {
        let gaps = [100.0, 101.0, 99.5, 100.5, 200.0, 201.0, 150.0, 170.0];
        let found = modes(&gaps, 0.0, 0.2);
        assert_eq!(found.iter().map(|mode| mode.count).collect::<Vec<_>>(), [4, 2]);
        assert!((found[0].mean_ns - 100.25).abs() < 1e-9 && (found[1].share - 0.25).abs() < 1e-9);
        assert!(modes(&[], 0.0, 0.2).is_empty());
    }

    #[test]
    fn noise_widens_what_is_alike() {
        let gaps = [100.0, 108.0, 92.0, 104.0];
        assert_eq!(modes(&gaps, 0.0, 0.5).len(), 0);
        assert_eq!(modes(&gaps, 20.0, 0.5)[0].count, 4);
    }
}
