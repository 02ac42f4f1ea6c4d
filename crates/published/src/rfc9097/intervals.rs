//! Sub-intervals of a test: what arrived in each, and which counts. Pure.

use std::time::Duration;

use narrows_units::BitRate;

use narrows_probe::probes::LoadStatus;

/// Sums over consecutive trials.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SubInterval {
    pub(super) lasted: Duration,
    pub(super) ip_octets: u64,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) reordered: u64,
    pub(super) duplicates: u64,
    pub(super) local_drops: u64,
    /// Smallest and largest one-way delay above the smallest of the test.
    pub(super) delay: Option<(Duration, Duration)>,
}

impl SubInterval {
    fn add(&mut self, status: &LoadStatus) {
        self.lasted = self.lasted.saturating_add(status.to.since(status.from));
        for (sum, more) in [
            (&mut self.ip_octets, status.ip_octets),
            (&mut self.packets, status.packets),
            (&mut self.lost, status.lost),
            (&mut self.reordered, status.reordered),
            (&mut self.duplicates, status.duplicates),
            (&mut self.local_drops, status.local_drops),
        ] {
            *sum = sum.saturating_add(more);
        }
        if let Some((least, _, most)) = status.delay_above_min {
            let before = self.delay.unwrap_or((least, most));
            self.delay = Some((before.0.min(least), before.1.max(most)));
        }
    }

    /// IP-layer rate at which packets arrived, bit/s.
    pub(super) fn rate(&self) -> BitRate {
        BitRate::over(self.ip_octets, self.lasted).unwrap_or(BitRate::ZERO)
    }

    /// Share of packets that did not arrive.
    pub(super) fn loss(&self) -> f64 {
        let sent = self.packets.saturating_add(self.lost);
        if sent == 0 { 0.0 } else { self.lost as f64 / sent as f64 }
    }
}

/// Cuts a test into sub-intervals as its trials come in.
#[derive(Debug, Clone)]
pub(super) struct Intervals {
    length: Duration,
    /// Those that are over.
    pub(super) whole: Vec<SubInterval>,
    /// Packets that arrived in all of the test, and what was lost on the receiving host.
    pub(super) arrived: u64,
    pub(super) local_drops: u64,
    open: SubInterval,
}

/// More sub-intervals than a test of an hour in steps of 100 ms has are not kept.
const MOST: usize = 36_000;

impl Intervals {
    pub(super) fn new(length: Duration) -> Self {
        Self { length, whole: Vec::new(), arrived: 0, local_drops: 0, open: SubInterval::default() }
    }

    /// A sub-interval ends with the trial with which it is nearer to its length than with the next.
    pub(super) fn note(&mut self, status: &LoadStatus) {
        self.arrived = self.arrived.saturating_add(status.packets);
        self.local_drops = self.local_drops.saturating_add(status.local_drops);
        self.open.add(status);
        let trial = status.to.since(status.from);
        if self.open.lasted.saturating_add(trial / 2) >= self.length && self.whole.len() < MOST {
            self.whole.push(std::mem::take(&mut self.open));
        }
    }
}

/// The highest rate among these that keep to the performance constraint: its place.
pub(super) fn highest(intervals: &[SubInterval], max_loss: f64) -> Option<usize> {
    let fits = |interval: &SubInterval| interval.packets > 0 && interval.loss() <= max_loss;
    let within = intervals.iter().enumerate().filter(|(_, interval)| fits(interval));
    within.max_by_key(|(_, interval)| interval.rate()).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use narrows_units::Stamp;

    use super::*;

    fn status(at_ms: i64, packets: u64, lost: u64) -> LoadStatus {
        LoadStatus {
            from: Stamp::from_nanos(at_ms * 1_000_000),
            to: Stamp::from_nanos((at_ms + 50) * 1_000_000),
            packets,
            ip_octets: packets * 1250,
            lost,
            reordered: 1,
            duplicates: 0,
            local_drops: 0,
            delay_above_min: (packets > 0).then(|| {
                let ms = Duration::from_millis;
                (ms(1), ms(2), ms(packets))
            }),
        }
    }

    /// Twenty trials of 50 ms are a second: 500 packets of 1250 octets in each are 100 Mbit/s.
    #[test]
    fn a_second_of_trials() {
        let mut intervals = Intervals::new(Duration::from_secs(1));
        (0..39).for_each(|k| intervals.note(&status(50 * k, 500, 5)));
        assert_eq!(intervals.whole.len(), 1, "the second one lacks a trial");
        let first = intervals.whole[0];
        assert_eq!(first.rate(), BitRate::from_mbps(100));
        assert_eq!((first.lasted, first.packets, first.reordered), (Duration::from_secs(1), 10_000, 20));
        assert!((first.loss() - 5.0 / 505.0).abs() < 1e-12);
        assert_eq!(first.delay, Some((Duration::from_millis(1), Duration::from_millis(500))));
        intervals.note(&status(1950, 500, 5));
        assert_eq!(intervals.whole.len(), 2);
    }

    #[test]
    fn the_highest_within_the_constraint() {
        let mut intervals = Intervals::new(Duration::from_millis(50));
        for (k, packets, lost) in [(0, 100, 0), (1, 400, 100), (2, 300, 1), (3, 0, 0)] {
            intervals.note(&status(50 * k, packets, lost));
        }
        assert_eq!(highest(&intervals.whole, 1.0), Some(1));
        assert_eq!(highest(&intervals.whole, 0.01), Some(2));
        assert_eq!(highest(&intervals.whole[3..], 1.0), None);
    }
}
