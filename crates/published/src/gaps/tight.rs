//! Whether the tight link is the narrow one, as gap methods assume: pairs and trains must then tell
//! of the same traffic.
//!
//! At a link that is both, a train at rate `R` comes out at `C R/(R + X)`, and the second packet of
//! a pair finds what `X` put before it while the first was served. Where the tight link is a faster
//! one behind the narrow one, trains and pairs reach it at the narrow link's rate, and are
//! stretched by all that it carries: trains by more than pairs say, and pairs by more than trains
//! say of a narrow link that they reach back to back. A sender that is hardly faster than the
//! narrow link sees the same in both cases (ours).

use narrows_probe::outcome::{Confidence, Estimate, Reason};

/// Sender's rate over capacity from which the two cases differ by enough.
const FASTER: f64 = 2.0;
/// Errors of the difference, towards a tight link that is another, from which the assumption is
/// doubted (one honest run in fifteen is then of low confidence, which costs less than a wrong one
/// that is sure), and from which the data contradict it.
const DOUBTED: f64 = 1.5;
const CONTRADICTED: f64 = 5.0;
/// Variance of the number of others' packets, over their number.
const BURSTS: f64 = 3.0;
/// Relative error that is always there.
const LEAST: f64 = 0.02;

/// What the data say of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Tight {
    /// Nothing, for or against.
    Unchecked,
    /// Pairs and trains are so many errors apart, towards a tight link that is another.
    Apart(f64),
}

impl Tight {
    /// Trains of so many `packets` left at `sent` and came at `through`, where pairs show `taken`
    /// of a link of `capacity` to be taken, with an error. All bit/s.
    pub(crate) fn by_trains(trains: &[(f64, f64)], packets: f64, capacity: f64, taken: (f64, f64)) -> Self {
        let faster = trains.iter().all(|(sent, _)| *sent >= FASTER * capacity);
        if trains.len() < 2 || !faster || capacity <= 0.0 {
            return Self::Unchecked;
        }
        let expected = |sent: f64, taken: f64| {
            if sent.is_finite() { capacity * sent / (sent + taken) } else { capacity }
        };
        let (taken, error) = taken;
        let short = |taken: f64| -> Vec<f64> {
            let of = |(sent, through): &(f64, f64)| 1.0 - through / expected(*sent, taken);
            trains.iter().map(of).collect()
        };
        let shorts = short(taken);
        let mean = narrows_stat::mean(&shorts).unwrap_or(0.0);
        let by_taken = narrows_stat::mean(&short(taken + error)).unwrap_or(0.0) - mean;
        // Three trains may agree by chance: others' packets between a train's own scatter by the
        // root of their number, and bursts by more.
        let slowest = trains.iter().map(|(sent, _)| *sent).fold(f64::INFINITY, f64::min);
        let chance = BURSTS * taken.max(0.0) / (slowest * packets.max(1.0));
        let scatter = narrows_stat::variance_sample(&shorts).unwrap_or(0.0).max(chance) / shorts.len() as f64;
        Self::apart(mean, (scatter + by_taken * by_taken + LEAST * LEAST).sqrt())
    }

    /// Pairs whose packets left `sent_ns` apart came `came_ns` apart, a packet takes `own_ns` at
    /// the link, and trains show `share` of it to be taken, with an error.
    pub(crate) fn by_pairs(pairs: &[(f64, f64)], own_ns: f64, share: (f64, f64)) -> Self {
        let faster = pairs.iter().all(|(sent_ns, _)| FASTER * sent_ns <= own_ns);
        if pairs.len() < 2 || !faster || own_ns <= 0.0 {
            return Self::Unchecked;
        }
        let grown: Vec<f64> =
            pairs.iter().map(|(sent_ns, came_ns)| (came_ns - own_ns - share.0 * sent_ns) / own_ns).collect();
        let mean = narrows_stat::mean(&grown).unwrap_or(0.0);
        let scatter = narrows_stat::variance_sample(&grown).unwrap_or(0.0) / grown.len() as f64;
        let by_share = share.1 / FASTER;
        Self::apart(mean, (scatter + by_share * by_share + LEAST * LEAST).sqrt())
    }

    fn apart(difference: f64, error: f64) -> Self {
        let apart = difference / error;
        if apart.is_finite() { Self::Apart(apart) } else { Self::Unchecked }
    }

    /// The data speak against the assumption, though not loudly.
    pub(crate) fn is_doubted(self) -> bool {
        matches!(self, Self::Apart(apart) if apart > DOUBTED)
    }

    /// No estimate where the data contradict the assumption, and one of low confidence where they
    /// cannot tell.
    pub(crate) fn judge(self, mut estimate: Estimate) -> Result<Estimate, Reason> {
        match self {
            Self::Apart(apart) if apart > CONTRADICTED => return Err(Reason::NoAgreement),
            Self::Apart(apart) => {
                if self.is_doubted() {
                    estimate.confidence = Confidence::Low;
                }
                estimate = estimate.with("pairs_and_trains_apart_errors", apart);
            }
            Self::Unchecked => estimate.confidence = Confidence::Low,
        }
        Ok(estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A narrow link of 100 and one of 200 behind it of which 140 are taken: trains come out at 200
    /// x 100/240 = 83.3, where 28 taken of the narrow one (by pairs) would leave 1000 x 100/1028 =
    /// 97.3.
    #[test]
    fn a_tight_link_behind_the_narrow_one_shows() {
        let trains = [(1000.0, 83.3), (1000.0, 85.0), (1000.0, 81.6)];
        let Tight::Apart(apart) = Tight::by_trains(&trains, 50.0, 100.0, (28.0, 5.0)) else { panic!() };
        assert!((3.0..15.0).contains(&apart), "{apart}");
        // What one link would do.
        let alike = [(1000.0, 97.3), (1000.0, 97.0), (1000.0, 97.6)];
        let Tight::Apart(apart) = Tight::by_trains(&alike, 50.0, 100.0, (28.0, 5.0)) else { panic!() };
        assert!(apart.abs() < 0.1, "{apart}");
        let slow = [(150.0, 83.3), (150.0, 84.0)];
        assert_eq!(Tight::by_trains(&slow, 50.0, 100.0, (28.0, 5.0)), Tight::Unchecked);
    }

    #[test]
    fn pairs_that_grow_where_trains_say_they_should_not_show_it() {
        let pairs: Vec<(f64, f64)> = (0..60).map(|index| (12.0, 120.0 + 60.0 * f64::from(index % 2))).collect();
        let Tight::Apart(apart) = Tight::by_pairs(&pairs, 120.0, (0.28, 0.1)) else { panic!() };
        assert!(apart > DOUBTED, "{apart}");
        let own: Vec<(f64, f64)> = (0..60).map(|index| (12.0, 120.0 + 6.0 * f64::from(index % 2))).collect();
        let Tight::Apart(apart) = Tight::by_pairs(&own, 120.0, (0.28, 0.1)) else { panic!() };
        assert!(apart.abs() < DOUBTED, "{apart}");
        assert_eq!(Tight::by_pairs(&[(100.0, 120.0); 9], 120.0, (0.3, 0.1)), Tight::Unchecked);
    }
}
