//! A histogram of times in nanoseconds, of fixed size, that keeps 1/32 of precision over all of
//! them.

/// Steps per doubling.
const STEPS: usize = 32;
/// Doublings: 2^5 exact values, then up to 2^40 ns (18 minutes).
const DOUBLINGS: usize = 36;

/// Counts of times; buckets grow with the value as in `HdrHistogram`, so that a quantile is high by
/// at most 1/32 of itself.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Box<[u64; STEPS * DOUBLINGS]>,
    total: u64,
    worst: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: Box::new([0; STEPS * DOUBLINGS]), total: 0, worst: 0 }
    }

    pub(crate) fn add(&mut self, nanos: u64) {
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
        self.worst = self.worst.max(nanos);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn worst(&self) -> u64 {
        self.worst
    }

    /// The smallest bucket end that at least `per_mille` ‰ of the values do not exceed; never above
    /// the worst value. Zero without values.
    pub(crate) fn quantile(&self, per_mille: u16) -> u64 {
        let wanted = (u128::from(self.total) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= wanted {
                return end(index).min(self.worst);
            }
        }
        self.worst
    }
}

fn bucket(nanos: u64) -> usize {
    let steps = STEPS as u64;
    if nanos < steps {
        // Below 32.
        return usize::try_from(nanos).unwrap_or(0);
    }
    let doubling = nanos.ilog2() - 5;
    let step = (nanos >> doubling) - steps;
    let index = (doubling as usize + 1) * STEPS + usize::try_from(step).unwrap_or(0);
    index.min(STEPS * DOUBLINGS - 1)
}

/// The largest value of a bucket.
fn end(index: usize) -> u64 {
    let (doubling, step) = (index / STEPS, (index % STEPS) as u64);
    match doubling {
        0 => step,
        doubling => ((STEPS as u64 + step + 1) << (doubling - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::new();
        assert_eq!((histogram.quantile(500), histogram.worst()), (0, 0));
        for nanos in 1..=10 {
            histogram.add(nanos);
        }
        assert_eq!(histogram.quantile(500), 5);
        assert_eq!(histogram.quantile(990), 10);
        assert_eq!(histogram.total(), 10);
    }

    /// 123 040 has 17 bits, so buckets of 2^11 = 2048; it lies in 122 880..=124 927.
    #[test]
    fn bucket_by_hand() {
        let mut histogram = Histogram::new();
        histogram.add(123_040);
        histogram.add(1_000_000);
        assert_eq!(histogram.quantile(500), 124_927);
        assert_eq!(histogram.quantile(1000), 1_000_000);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_tightly(nanos in 0_u64..1 << 40) {
            let end = end(bucket(nanos));
            prop_assert!(end >= nanos);
            prop_assert!(end - nanos <= nanos / 32);
        }

        #[test]
        fn any_value_has_a_bucket(nanos: u64) {
            let mut histogram = Histogram::new();
            histogram.add(nanos);
            prop_assert!(histogram.quantile(500) <= nanos);
            prop_assert_eq!(histogram.worst(), nanos);
        }
    }
}
