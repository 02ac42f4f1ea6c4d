//! From differences of delays to the time that each hop takes for a large packet.

use crate::tailgating::HopTime;
use narrows_train::pair_mode::Difference;

/// `ratio`: the small packet's octets on the wire over the large one's. `sent_ns`: by how much it
/// leaves behind the large one.
pub(super) fn chain(differences: &[Difference], ratio: f64, sent_ns: f64) -> Vec<HopTime> {
    // What the small packet is behind the large one by when that reaches the hop, and what that may
    // be off by.
    let (mut behind, mut unsure) = (0.0, 0.0);
    let mut first = true;
    let mut hops = Vec::with_capacity(differences.len());
    for difference in differences {
        let error = ERRORS * difference.error_ns;
        // A small packet that did not catch up is no later for it.
        let least = if first { sent_ns } else { CAUGHT * behind };
        let hop = if difference.ns - error > least {
            let time = difference.ns + behind;
            HopTime::known(time, error.hypot(unsure))
        } else {
            HopTime::AtMost(difference.ns.max(0.0) + error.max(difference.spread_ns) + behind + unsure)
        };
        (behind, unsure) = match hop {
            HopTime::Measured { time, high, .. } => (ratio * time, ratio * (high - time)),
            HopTime::AtMost(most) => {
                let widest = if first { sent_ns } else { 0.0 } + behind + unsure + ratio * most;
                (widest / 2.0, widest / 2.0)
            }
        };
        first = false;
        hops.push(hop);
    }
    hops
}

/// Of quartets sent either way around: clocks that drift apart add to one what they take from the
/// other, no more than `drift_ns`. What differs by more is not known any better than that.
pub(super) fn either_way(one: Difference, other: Difference, drift_ns: f64) -> Difference {
    let apart = (one.ns - other.ns).abs() / 2.0;
    let error = one.error_ns.max(other.error_ns);
    Difference {
        ns: f64::midpoint(one.ns, other.ns),
        error_ns: if apart > drift_ns + error { apart } else { error },
        spread_ns: one.spread_ns.max(other.spread_ns).max(apart),
    }
}

/// Ranges and refusals, in errors (ours).
const ERRORS: f64 = 2.0;
/// Share of what it is behind by that a small packet must have been held back for, to have caught
/// up (ours).
const CAUGHT: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_train::pair_mode::pair_mode;

    const RATIO: f64 = 102.0 / 1538.0;

    /// Delays of the small packet, link by link, behind a large one that dies after `dies` of
    /// these, Mbit/s of the wire.
    fn delay(rates: &[f64], dies: usize) -> f64 {
        let time = |octets: f64, rate: f64| octets * 8e3 / rate;
        let (mut front, mut at) = (0.0, 0.0);
        for (index, &rate) in rates.iter().enumerate() {
            if index < dies {
                front += time(1538.0, rate);
                at = f64::max(at, front) + time(102.0, rate);
            } else {
                at += time(102.0, rate);
            }
        }
        at
    }

    fn differences(rates: &[f64], error_ns: f64) -> Vec<Difference> {
        (1..=rates.len())
            .map(|hop| Difference { ns: delay(rates, hop) - delay(rates, hop - 1), error_ns, spread_ns: 0.0 })
            .collect()
    }

    #[test]
    fn the_published_difference_gives_every_hop_back() {
        let truth = [100.0, 10.0, 100.0, 55.0, 1.5, 20.0];
        let found = differences(&truth, 1.0);
        // D(2) - D(1) = 8 Lp / C_2 - 8 Lq / C_1.
        let second = 1538.0 * 8e3 / 10.0 - 102.0 * 8e3 / 100.0;
        assert!((found[1].ns - second).abs() < 1e-6);
        for (hop, rate) in chain(&found, RATIO, 0.0).iter().zip(truth) {
            let HopTime::Measured { time, .. } = hop else { panic!("{hop:?} for {rate}") };
            assert!((1538.0 * 8e3 / time / rate - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_hop_much_faster_than_the_last_has_a_bound_that_holds_and_the_next_a_range_that_does() {
        let truth = [100.0, 10.0, 1000.0, 20.0];
        let found = chain(&differences(&truth, 1.0), RATIO, 0.0);
        assert!(matches!(found[2], HopTime::AtMost(most) if most >= 12_304.0), "{found:?}");
        let HopTime::Measured { low, high, .. } = found[3] else { panic!("{found:?}") };
        let time = 1538.0 * 8e3 / 20.0;
        assert!(low <= time && time <= high && high < 1.3 * time, "{low} {time} {high}");
    }

    #[test]
    fn a_small_packet_that_leaves_late_bounds_the_first_hop() {
        // The first link takes 1.2 us, and the small packet leaves 30 us behind.
        let late = [
            Difference { ns: 30_000.0, error_ns: 1.0, spread_ns: 0.0 },
            Difference { ns: 123_040.0 + 1_230.0 - 30_000.0 - 82.0, error_ns: 1.0, spread_ns: 0.0 },
        ];
        let found = chain(&late, RATIO, 30_000.0);
        assert!(matches!(found[0], HopTime::AtMost(most) if most >= 1_230.0));
        let HopTime::Measured { low, high, .. } = found[1] else { panic!("{found:?}") };
        assert!(low <= 123_040.0 && 123_040.0 <= high, "{low} {high}");
    }

    #[test]
    fn the_pair_mode_quarter_of_many() {
        let mut values: Vec<f64> = (0..30).map(|k| f64::from(k) * 10.0).collect();
        values.extend([100.5; 10]);
        let found = pair_mode(&values, 0.1).unwrap();
        assert!((found.ns - 100.5).abs() < 1e-9 && (found.error_ns - 0.1).abs() < 1e-9, "{found:?}");
        assert_eq!(pair_mode(&[1.0; 4], 0.0), None);
        // Evenly spread there is no mode: 20 from quarter to quarter.
        let even: Vec<f64> = (0..40).map(f64::from).collect();
        assert!((pair_mode(&even, 0.1).unwrap().error_ns - 10.0).abs() < 1e-9);
        let way = |ns, error_ns| Difference { ns, error_ns, spread_ns: 3.0 };
        assert_eq!(either_way(way(101.0, 1.0), way(99.0, 2.0), 5.0), way(100.0, 2.0));
        // Further apart than clocks drift.
        assert!((either_way(way(180.0, 1.0), way(120.0, 2.0), 5.0).error_ns - 30.0).abs() < 1e-9);
    }
}
