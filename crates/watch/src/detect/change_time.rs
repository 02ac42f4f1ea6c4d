//! When the level changed: the likelihood over every possible instant.
//!
//! With scores `z` about zero before value `t` and about an unknown mean from `t` on, the profile
//! log-likelihood is `L(t) = S(t)^2 / (2 n(t))`, where `S(t)` sums the `n(t)` scores from `t` on.
//! Noise with memory tells less than its count of values; `L` is multiplied by the share that is
//! independent. The interval holds 90 % of `exp L`, cut off equally at both ends.

use super::chart::Side;

/// The first value of the new level, as an index into the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangePoint {
    /// Earliest within the interval.
    pub low: usize,
    /// Most likely.
    pub best: usize,
    /// Latest within the interval.
    pub high: usize,
}

/// The change to `side` within `scores`, the newest of which is last; `None` if no instant fits.
pub fn change_point(scores: &[f64], side: Side, independent: f64) -> Option<ChangePoint> {
    let mut likelihoods = vec![f64::NEG_INFINITY; scores.len()];
    let mut sum = 0.0;
    for (count, at) in (1_u32..).zip((0..scores.len()).rev()) {
        sum += scores[at] * side.sign();
        if sum > 0.0 {
            likelihoods[at] = independent * sum * sum / (2.0 * f64::from(count));
        }
    }
    let best = (0..scores.len()).max_by(|one, other| likelihoods[*one].total_cmp(&likelihoods[*other]))?;
    if !likelihoods[best].is_finite() {
        return None;
    }
    let weights: Vec<f64> = likelihoods.iter().map(|one| (one - likelihoods[best]).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut passed = 0.0;
    let (mut low, mut high) = (None, best);
    for (at, weight) in weights.iter().enumerate() {
        passed += weight / total;
        if low.is_none() && passed >= OUTSIDE / 2.0 {
            low = Some(at);
        }
        high = at;
        if passed >= 1.0 - OUTSIDE / 2.0 {
            break;
        }
    }
    Some(ChangePoint { low: low.unwrap_or(best).min(best), best, high: high.max(best) })
}

/// What an interval of 90 % leaves out.
const OUTSIDE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_step_is_found_where_it_is() {
        let scores = [0.1, -0.2, 0.0, 0.3, -0.1, -4.0, -3.8, -4.0, -4.0];
        assert_eq!(change_point(&scores, Side::Down, 1.0), Some(ChangePoint { low: 5, best: 5, high: 5 }));
        assert!(change_point(&[-1.0, -2.0], Side::Up, 1.0).is_none());
        assert!(change_point(&[], Side::Up, 1.0).is_none());
    }

    #[test]
    fn memory_widens_the_interval() {
        let scores = [0.5, -0.5, 0.9, 1.0, 0.2, 1.4, 0.8, 1.6, 1.2, 0.9, 1.1];
        let free = change_point(&scores, Side::Up, 1.0).unwrap();
        let correlated = change_point(&scores, Side::Up, 0.3).unwrap();
        assert!(correlated.high - correlated.low >= free.high - free.low);
        assert!(correlated.low <= free.low);
    }
}
