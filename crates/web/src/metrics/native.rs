//! Native histograms: buckets that grow by a power of two, only those that are met.
//!
//! Eight buckets a doubling (schema 3 of Prometheus) are 9 % wide each. A path that swings between
//! 18 and 20 ms shows, where the classic buckets double. Bucket `i` holds what is above
//! `2^((i-1)/8)` and not above `2^(i/8)` seconds.

use std::collections::BTreeMap;

use super::protobuf::{BucketSpan, Histogram};

/// Counts by bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct NativeCounts {
    counts: BTreeMap<i32, u64>,
    /// Values that are too small for a bucket.
    zero: u64,
}

impl NativeCounts {
    pub(super) fn observe(&mut self, seconds: f64) {
        match bucket(seconds) {
            Some(bucket) => *self.counts.entry(bucket).or_default() += 1,
            None => self.zero += 1,
        }
    }

    /// Adds the fields of a native histogram: runs of buckets, each count less the one before.
    pub(super) fn add_to(&self, histogram: &mut Histogram) {
        (histogram.schema, histogram.zero_threshold) = (Some(SCHEMA), Some(LEAST));
        histogram.zero_count = Some(self.zero);
        let (mut next, mut before) = (0, 0_i64);
        for (&bucket, &count) in &self.counts {
            match histogram.positive_span.last_mut().filter(|_| bucket == next) {
                Some(span) => span.length = span.length.map(|length| length + 1),
                None => {
                    histogram.positive_span.push(BucketSpan { offset: Some(bucket - next), length: Some(1) });
                }
            }
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            histogram.positive_delta.push(count - before);
            (next, before) = (bucket + 1, count);
        }
    }
}

fn bucket(seconds: f64) -> Option<i32> {
    // Pulses are waited for for seconds: beyond, whatever it is, it is the last bucket.
    let index = (seconds.clamp(0.0, MOST).log2() * PER_DOUBLING).ceil();
    (seconds > LEAST).then(|| i32::try_from(narrows_units::rounded_signed(index)).unwrap_or(i32::MAX))
}

/// `2^3` buckets a doubling.
const SCHEMA: i32 = 3;
const PER_DOUBLING: f64 = 8.0;
/// A nanosecond.
const LEAST: f64 = 1e-9;
const MOST: f64 = 1e4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_end_at_powers_of_two() {
        assert_eq!([1.0, 2.0, 0.5, 0.25].map(bucket), [Some(0), Some(8), Some(-8), Some(-16)]);
        assert_eq!([1.0001, 1.09, 1.0906].map(bucket), [Some(1), Some(1), Some(2)], "2^(1/8) is 1.0905");
        assert_eq!([0.0, 1e-9, f64::NAN].map(bucket), [None; 3]);
        assert!(bucket(f64::INFINITY) < Some(120));
    }

    /// Worked by hand: three in bucket 0, one in bucket 1, five in bucket 8.
    #[test]
    fn runs_of_buckets_have_differences() {
        let mut counts = NativeCounts::default();
        for (seconds, times) in [(1.0, 3), (1.05, 1), (2.0, 5), (0.0, 2)] {
            (0..times).for_each(|_| counts.observe(seconds));
        }
        let mut histogram = Histogram::default();
        counts.add_to(&mut histogram);
        let spans: Vec<_> = histogram.positive_span.iter().map(|span| (span.offset, span.length)).collect();
        assert_eq!(spans, [(Some(0), Some(2)), (Some(6), Some(1))]);
        assert_eq!(histogram.positive_delta, [3, -2, 4]);
        assert_eq!((histogram.schema, histogram.zero_count), (Some(3), Some(2)));
    }
}
