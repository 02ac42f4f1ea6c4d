//! What left of one UDP flow, beside what was planned. Pure: times are arguments.

use std::collections::BTreeMap;

use crate::document::{Sent, SentInterval, SizeCount};
use crate::histogram::Histogram;
use crate::series::{Bin, Series};
use crate::windows::Windows;

/// The account of one flow.
#[derive(Debug)]
pub(super) struct Tally {
    packets: u64,
    ip_octets: u64,
    planned_packets: u64,
    planned_octets: u64,
    refused: u64,
    planned: Windows,
    achieved: Windows,
    late: Histogram,
    gaps: Histogram,
    sizes: BTreeMap<u16, u64>,
    series: Series<Interval>,
    last_ns: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct Interval {
    packets: u64,
    ip_octets: u64,
}

impl Bin for Interval {
    fn join(&mut self, next: &Self) {
        self.packets += next.packets;
        self.ip_octets += next.ip_octets;
    }
}

/// More different sizes than these are told in classes.
const SIZES_REPORTED: usize = 64;
/// Width of such a class.
const SIZE_CLASS: u16 = 64;

impl Tally {
    pub(super) fn new(interval_ns: u64, most_bins: usize) -> Self {
        Self {
            packets: 0,
            ip_octets: 0,
            planned_packets: 0,
            planned_octets: 0,
            refused: 0,
            planned: Windows::default(),
            achieved: Windows::default(),
            late: Histogram::default(),
            gaps: Histogram::default(),
            sizes: BTreeMap::new(),
            series: Series::new(interval_ns, most_bins),
            last_ns: None,
        }
    }

    /// A packet's time had come, by plan. Times are since the flow's beginning.
    pub(super) fn planned(&mut self, at_ns: u64, ip_octets: u16) {
        self.planned_packets += 1;
        self.planned_octets += u64::from(ip_octets);
        self.planned.add(at_ns, ip_octets);
    }

    /// It left, so late. Times are since the flow's beginning.
    pub(super) fn left(&mut self, at_ns: u64, late_ns: i64, ip_octets: u16) {
        self.packets += 1;
        self.ip_octets += u64::from(ip_octets);
        self.achieved.add(at_ns, ip_octets);
        self.late.add(late_ns);
        if let Some(last) = self.last_ns.replace(at_ns) {
            self.gaps.add(i64::try_from(at_ns.saturating_sub(last)).unwrap_or(i64::MAX));
        }
        *self.sizes.entry(ip_octets).or_default() += 1;
        let bin = self.series.at(at_ns);
        bin.packets += 1;
        bin.ip_octets += u64::from(ip_octets);
    }

    /// The host would not send it.
    pub(super) fn refused(&mut self) {
        self.refused += 1;
    }

    /// What is known, the flow having been open for `open_ns`. `fitted`: packets raised and packets
    /// added by cutting.
    pub(super) fn reported(&self, open_ns: u64, fitted: (u64, u64)) -> Sent {
        let span_ns = open_ns.max(self.last_ns.unwrap_or(0));
        let intervals = self.series.iter().map(|(from_ns, bin)| SentInterval {
            from_ns,
            packets: bin.packets,
            octets: bin.ip_octets,
            ..SentInterval::default()
        });
        Sent {
            packets: self.packets,
            octets: self.ip_octets,
            planned_packets: Some(self.planned_packets),
            planned_octets: Some(self.planned_octets),
            planned_span_ns: open_ns,
            span_ns,
            refused_packets: self.refused,
            raised_packets: fitted.0,
            cut_packets: fitted.1,
            late_ns: self.late.reported(0),
            gap_ns: self.gaps.reported(0),
            sizes: self.sizes(),
            planned_windows: self.planned.moments(open_ns),
            windows: self.achieved.moments(span_ns),
            tcp: None,
            interval_ns: self.series.interval_ns(),
            intervals: intervals.collect(),
        }
    }

    fn sizes(&self) -> Vec<SizeCount> {
        let width = if self.sizes.len() > SIZES_REPORTED { SIZE_CLASS } else { 1 };
        let mut reported: Vec<SizeCount> = Vec::new();
        for (size, packets) in &self.sizes {
            let low = size - size % width;
            match reported.last_mut() {
                Some(last) if last.ip_octets_low == low => last.packets += packets,
                _ => reported.push(SizeCount {
                    ip_octets_low: low,
                    ip_octets_high: low.saturating_add(width - 1),
                    packets: *packets,
                }),
            }
        }
        reported
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn many_sizes_are_reported_in_classes() {
        let mut tally = Tally::new(1_000_000_000, 10);
        for size in 100..300u16 {
            tally.left(u64::from(size), 0, size);
        }
        let sizes = tally.reported(1_000, (0, 0)).sizes;
        assert_eq!((sizes[0].ip_octets_low, sizes[0].ip_octets_high, sizes[0].packets), (64, 127, 28));
        assert_eq!(sizes.iter().map(|size| size.packets).sum::<u64>(), 200);
    }

    proptest! {
        /// However late packets are, the long-run rate is the plan's: nothing is left out, and the
        /// time counted is the longer of the plan's and the last departure's.
        #[test]
        fn lateness_changes_no_rate(late in proptest::collection::vec(0u64..5_000_000, 1000)) {
            let mut tally = Tally::new(100_000_000, 100);
            let mut clock = 0;
            for (k, late) in (0u64..).zip(late) {
                let at = k * 1_000_000;
                tally.planned(at, 1500);
                clock = clock.max(at + late);
                tally.left(clock, i64::try_from(clock - at).unwrap(), 1500);
            }
            let reported = tally.reported(1_000_000_000, (0, 0));
            prop_assert_eq!((reported.packets, reported.octets), (1000, 1_500_000));
            let (asked, reached) = (reported.planned_rate().unwrap().as_f64(), reported.rate().unwrap().as_f64());
            prop_assert!((asked - 12e6).abs() < 1.0);
            prop_assert!(reached <= asked && reached > 0.995 * asked, "{}", reached);
        }
    }
}
