//! Sets of segment numbers, kept as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint ranges that do not touch, by their begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a range, and names the parts of it that were not there.
    pub(super) fn insert(&mut self, range: Range<u64>, mut fresh: impl FnMut(Range<u64>)) {
        let (mut start, mut end) = (range.start, range.end);
        if start >= end {
            return;
        }
        let mut cursor = start;
        if let Some((&before, &before_end)) = self.ends.range(..=start).next_back()
            && before_end >= start
        {
            if before_end >= end {
                return;
            }
            (start, cursor) = (before, before_end);
        }
        while let Some((&after, &after_end)) = self.ends.range(cursor.max(start + 1)..=end).next() {
            if cursor < after {
                fresh(cursor..after);
            }
            self.ends.remove(&after);
            cursor = after_end;
            end = end.max(after_end);
        }
        if cursor < end {
            fresh(cursor..end);
        }
        self.ends.insert(start, end);
    }

    /// The range that holds this number.
    pub(super) fn around(&self, number: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.ends.range(..=number).next_back()?;
        (number < end).then_some(start..end)
    }

    /// Takes out the first range if it begins no later than `next`, and gives its end.
    pub(super) fn take_first(&mut self, next: u64) -> Option<u64> {
        let first = self.ends.first_entry()?;
        (*first.key() <= next).then(|| first.remove())
    }

    /// Forgets all numbers below `bound`.
    pub(super) fn forget_below(&mut self, bound: u64) {
        while let Some(first) = self.ends.first_entry() {
            let (start, end) = (*first.key(), *first.get());
            if start >= bound {
                return;
            }
            first.remove();
            if end > bound {
                self.ends.insert(bound, end);
                return;
            }
        }
    }

    /// The `count`th highest number (counted from 1); `None` if there are fewer.
    pub(super) fn nth_highest(&self, count: u64) -> Option<u64> {
        let mut left = count.checked_sub(1)?;
        for (&start, &end) in self.ends.iter().rev() {
            if left < end - start {
                return Some(end - 1 - left);
            }
            left -= end - start;
        }
        None
    }

    /// The highest number.
    pub(super) fn highest(&self) -> Option<u64> {
        self.ends.last_key_value().map(|(_, &end)| end - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_numbers(inserts in prop::collection::vec((0u64..60, 0u64..8), 0..40), bound in 0u64..70) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (start, length) in inserts {
                let mut fresh = Vec::new();
                ranges.insert(start..start + length, |range| fresh.extend(range));
                let expected: Vec<u64> = (start..start + length).filter(|number| set.insert(*number)).collect();
                prop_assert_eq!(fresh, expected);
            }
            ranges.forget_below(bound);
            set.retain(|number| *number >= bound);
            for (place, number) in (1..).zip(set.iter().rev()) {
                prop_assert_eq!(ranges.nth_highest(place), Some(*number));
            }
            prop_assert_eq!(ranges.nth_highest(set.len() as u64 + 1), None);
            prop_assert_eq!(ranges.highest(), set.last().copied());
            prop_assert!((0..70).all(|number| ranges.around(number).is_some() == set.contains(&number)));
            prop_assert!(ranges.ends.iter().zip(ranges.ends.iter().skip(1)).all(|(a, b)| a.1 < b.0));
        }
    }
}
