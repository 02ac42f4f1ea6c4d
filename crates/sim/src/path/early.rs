//! Random early detection in front of a queue.

use narrows_scenario::{EarlyDrop, Hop, PathDirection};

use super::link::Link;
use crate::rng::{Purpose, Stream};

/// `[RED93]` §4, in octets and without its gentle form: the average of what arriving packets find
/// decides with which probability they are dropped, and the packets since the last drop even the
/// drops out. An idle link lets the average decay as if packets of the arriving one's length had
/// found it empty all the time.
#[derive(Debug)]
pub(super) struct Early {
    plan: EarlyDrop,
    average: f64,
    /// Packets since the last one that was dropped, or since the average was below the range.
    since: u32,
    rng: Stream,
}

impl Early {
    pub(super) fn new(hop: &Hop, way: PathDirection, index: usize, seed: u64) -> Option<Self> {
        hop.early_drop.map(|plan| Self {
            plan,
            average: 0.0,
            since: 0,
            rng: Stream::new(seed, Purpose::Early(way, index)),
        })
    }

    /// Whether a packet that arrives at `at` is dropped.
    pub(super) fn drops(&mut self, at: u64, ip_octets: u16, link: &mut Link) -> bool {
        let waiting = link.waiting(at) as f64;
        let idle = at.saturating_sub(link.idle_from());
        if idle > 0 {
            let missed = idle as f64 / link.time_of(ip_octets).max(1) as f64;
            self.average *= (1.0 - self.plan.weight).powf(missed);
        }
        self.average += self.plan.weight * (waiting - self.average);
        let (from, to) = (self.plan.from.count() as f64, self.plan.to.count() as f64);
        if self.average < from {
            self.since = 0;
            return false;
        }
        if self.average >= to {
            self.since = 0;
            return true;
        }
        let each = self.plan.ratio * (self.average - from) / (to - from);
        // The n-th packet since the last drop is dropped with p / (1 - n p): drops lie evenly, not
        // in clusters.
        let left = 1.0 - f64::from(self.since) * each;
        let drops = left <= 0.0 || self.rng.chance((each / left).min(1.0));
        self.since = if drops { 0 } else { self.since.saturating_add(1) };
        drops
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narrows_scenario::Queue;
    use narrows_units::{BitRate, Framing, Octets};

    use super::*;

    fn early(weight: f64, ratio: f64) -> (Early, Link) {
        let plan = EarlyDrop { from: Octets::new(10_000), to: Octets::new(30_000), ratio, weight };
        let hop = Hop::rate(BitRate::from_mbps(8)).delay(Duration::ZERO).early_drop(plan);
        let link = Link::new(BitRate::from_mbps(8), Framing::BARE, Queue::Packets(1000), &[]);
        (Early::new(&hop, PathDirection::Forward, 0, 1).unwrap(), link)
    }

    /// Packets of 1000 octets at once: the queue itself (weight 1) is below 10 kB for the first
    /// ten, and from 30 kB on all are dropped.
    #[test]
    fn none_below_the_range_and_all_above_it() {
        let (mut early, mut link) = early(1.0, 0.1);
        let mut dropped = Vec::new();
        for packet in 0..400 {
            if early.drops(0, 1000, &mut link) {
                dropped.push(packet);
            } else {
                link.serve(0, 1000);
            }
        }
        assert!(dropped[0] >= 10, "{dropped:?}");
        assert_eq!(link.waiting(0), 30_000);
        assert_eq!(dropped.len(), 370);
    }

    /// Held at 20 kB, the middle of the range, with a ratio of 0.1: p = 0.05, evened out to one in
    /// U(1..20), 0.095 of all.
    #[test]
    fn the_share_in_the_middle_of_the_range() {
        let (mut early, mut link) = early(1.0, 0.1);
        for _ in 0..20 {
            link.serve(0, 1000);
        }
        let dropped = (0..20_000).filter(|_| early.drops(0, 1000, &mut link)).count();
        assert!((1800..2000).contains(&dropped), "{dropped}");
    }

    /// With a weight of 0.002 a burst of fifty packets moves the average to no more than 0.002 * 49
    /// * 50 / 2 * 1000 = 2450 octets.
    #[test]
    fn a_slow_average_lets_bursts_through() {
        let (mut early, mut link) = early(0.002, 0.1);
        for _ in 0..50 {
            assert!(!early.drops(0, 1000, &mut link));
            link.serve(0, 1000);
        }
        assert!(early.average < 2450.0, "{}", early.average);
        // A second later the link has been idle for 950 packets' time.
        let before = early.average;
        assert!(!early.drops(1_000_000_000, 1000, &mut link));
        assert!(early.average < before * 0.16, "{}", early.average);
    }
}
