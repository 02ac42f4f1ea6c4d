//! Whether packets reach the program in batches: interrupts held back, softirqs that take several
//! packets at once, aggregation.

use std::time::Duration;

use serde::Serialize;

/// What the gaps between arrivals of trains show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Coalescing {
    /// Share of gaps below a quarter of the expected one.
    pub short_share: f64,
    /// Packets in a batch, on average; 1 if there are none.
    pub batch_packets: f64,
    /// Time from batch to batch, if they come regularly: the moderation period.
    pub period_ns: Option<u64>,
}

/// Gaps below this part of the expected one are inside a batch (ours; pathload's rule is 1.5 read
/// costs).
const SHORT: f64 = 0.25;
/// Gaps that say something, over all trains: as three trains of a hundred packets have.
const LEAST_GAPS: usize = 100;

impl Coalescing {
    /// From receive stamps of trains whose packets should be `expected` apart (packet time at the
    /// path's rate, or the gap they were sent with): more than 60 % short gaps, the others regular
    /// (coefficient of variation below 0.3). The gaps of all trains together; `None` for fewer than
    /// a hundred, or without an expectation.
    pub fn of(trains_ns: &[Vec<i64>], expected: Duration) -> Option<Self> {
        let gaps: Vec<f64> = trains_ns
            .iter()
            .flat_map(|stamps| stamps.windows(2).map(|two| two[1].saturating_sub(two[0]) as f64))
            .collect();
        if gaps.len() < LEAST_GAPS || expected.is_zero() {
            return None;
        }
        let profile = narrows_stat::gap_profile(&gaps, SHORT * expected.as_nanos() as f64).ok()?;
        let period = profile.large_median.filter(|_| profile.is_coalesced());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a median of differences of 64-bit stamps that is above a positive threshold; the cast saturates"
        )]
        let period_ns = period.map(|period| period.round() as u64);
        Some(Self { short_share: profile.small_share, batch_packets: profile.batch_length(), period_ns })
    }

    /// The period, where batches come regularly.
    pub fn period(&self) -> Option<Duration> {
        self.period_ns.map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i64 = 1_000;

    /// Packets that arrive every 12 µs, seen at the next multiple of the moderation period, `cost`
    /// apart within a batch.
    fn moderated(packets: i64, gap: i64, period: i64, cost: i64) -> Vec<i64> {
        let mut seen = Vec::new();
        let mut last = i64::MIN;
        for k in 0..packets {
            let due = (k * gap + period - 1) / period * period;
            last = due.max(last.saturating_add(cost));
            seen.push(last);
        }
        seen
    }

    #[test]
    fn a_moderation_period_is_found() {
        let trains = vec![moderated(120, 12 * US, 100 * US, 400); 3];
        let found = Coalescing::of(&trains, Duration::from_micros(12)).unwrap();
        let period = found.period().unwrap();
        // The last packet of a batch of eight or nine is 3 µs after its interrupt.
        assert!(period > Duration::from_micros(94) && period < Duration::from_micros(101), "{found:?}");
        assert!(found.batch_packets > 7.5 && found.batch_packets < 9.0, "{found:?}");
        assert!(found.short_share > 0.85 && found.short_share < 0.9, "{found:?}");
    }

    #[test]
    fn paced_and_queued_packets_are_none() {
        let even = vec![(0..120).map(|k| k * 12 * US).collect(); 3];
        let found = Coalescing::of(&even, Duration::from_micros(12)).unwrap();
        assert_eq!((found.period(), found.batch_packets), (None, 1.0));
        // Bursts that a queue made: as close, but at irregular times.
        let mut at = 0;
        let bursts: Vec<i64> = (0..300)
            .map(|k: i64| {
                at += if k % 5 == 0 { (k * 7919 % 13 + 1) * 20 * US } else { 400 };
                at
            })
            .collect();
        assert_eq!(Coalescing::of(&[bursts], Duration::from_micros(12)).unwrap().period(), None);
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(Coalescing::of(&[vec![0, 1, 2]], Duration::from_micros(12)), None);
        assert_eq!(Coalescing::of(&vec![vec![0; 120]; 3], Duration::ZERO), None);
        assert_eq!(Coalescing::of(&[], Duration::from_micros(12)), None);
        // Stamps from nowhere end as any others.
        let wild: Vec<i64> = (0..200).map(|k| if k % 2 == 0 { i64::MIN } else { i64::MAX }).collect();
        assert!(Coalescing::of(&[wild], Duration::from_micros(12)).is_some());
    }
}
