//! Rows of equal intervals, in bounded room.

use crate::windows::WIDTHS_NS;

/// Something that is counted per interval.
pub(crate) trait Bin: Default + Clone {
    /// Takes over what the interval behind saw.
    fn join(&mut self, next: &Self);
}

/// Bins of equal length from time zero on. When there are more than allowed, neighbours are joined,
/// and the interval doubles.
#[derive(Debug, Clone)]
pub(crate) struct Series<T> {
    interval_ns: u64,
    most: usize,
    bins: Vec<T>,
}

impl<T: Bin> Series<T> {
    /// At least the shortest window's length, at least two bins.
    pub(crate) fn new(interval_ns: u64, most: usize) -> Self {
        Self { interval_ns: interval_ns.max(WIDTHS_NS[0]), most: most.max(2), bins: Vec::new() }
    }

    /// The bin of this time.
    pub(crate) fn at(&mut self, at_ns: u64) -> &mut T {
        let mut index = at_ns / self.interval_ns;
        while index >= self.most as u64 {
            self.halve();
            index = at_ns / self.interval_ns;
        }
        // It is below `most`.
        let index = usize::try_from(index).unwrap_or(0);
        if index >= self.bins.len() {
            self.bins.resize(index + 1, T::default());
        }
        &mut self.bins[index]
    }

    fn halve(&mut self) {
        let joined = self.bins.chunks(2).map(|pair| {
            let mut first = pair[0].clone();
            pair.iter().skip(1).for_each(|next| first.join(next));
            first
        });
        self.bins = joined.collect();
        self.interval_ns = self.interval_ns.saturating_mul(2);
    }

    /// The length of an interval now.
    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Each interval's begin and content.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (0u64..).map(|k| k * self.interval_ns).zip(&self.bins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Bin for u64 {
        fn join(&mut self, next: &Self) {
            *self += next;
        }
    }

    #[test]
    fn bins_are_joined_when_there_are_too_many() {
        let mut series: Series<u64> = Series::new(1_000_000, 4);
        for at in 0..7 {
            *series.at(at * 1_000_000 + 5) += 10 + at;
        }
        let bins: Vec<(u64, u64)> = series.iter().map(|(at, bin)| (at, *bin)).collect();
        assert_eq!(bins, [(0, 21), (2_000_000, 25), (4_000_000, 29), (6_000_000, 16)]);
        *series.at(u64::MAX) += 1;
        assert_eq!(series.iter().map(|(_, bin)| bin).sum::<u64>(), 92);
        assert!(series.iter().count() <= 4);
        assert_eq!(Series::<u64>::new(0, 0).interval_ns(), 1_000_000);
    }
}
