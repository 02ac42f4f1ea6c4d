//! Blobs: round trips as differences, and counts of round trips by size.

use std::collections::BTreeMap;

/// Round trips as the difference of each from the one before: two or three octets each.
pub(crate) fn packed(round_trips_ns: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(round_trips_ns.len() * 3);
    let mut before = 0_u64;
    for &one in round_trips_ns {
        let difference = one.wrapping_sub(before).cast_signed();
        put(&mut out, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
        before = one;
    }
    out
}

/// The round trips of [`packed`]; what does not follow its form ends the list.
pub(crate) fn unpacked(mut blob: &[u8]) -> Vec<u64> {
    let mut before = 0_u64;
    let mut out = Vec::new();
    while let Some(coded) = take(&mut blob) {
        let difference = (coded >> 1).cast_signed() ^ -((coded & 1).cast_signed());
        before = before.wrapping_add(difference.cast_unsigned());
        out.push(before);
    }
    out
}

/// How many round trips fell into each class. A class is an eighth of an octave: 6 to 12 % wide.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sketch(BTreeMap<u16, u32>);

impl Sketch {
    pub(crate) fn of(round_trips_ns: &[u64]) -> Self {
        let mut sketch = Self::default();
        for &one in round_trips_ns {
            sketch.add(class(one), 1);
        }
        sketch
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (&class, &count) in &other.0 {
            self.add(class, count);
        }
    }

    /// Classes with their counts, smallest first.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.0.iter().map(|(&class, &count)| (class, count))
    }

    pub(crate) fn blob(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut before = 0;
        for (class, count) in self.classes() {
            put(&mut out, u64::from(class - before));
            put(&mut out, u64::from(count));
            before = class;
        }
        out
    }

    /// The sketch of [`Self::blob`]; what does not follow its form ends it.
    pub(crate) fn read(mut blob: &[u8]) -> Self {
        let mut sketch = Self::default();
        let mut class = 0_u16;
        while let (Some(step), Some(count)) = (take(&mut blob), take(&mut blob)) {
            let next = u16::try_from(step).ok().and_then(|step| class.checked_add(step));
            let (Some(next), Ok(count)) = (next.filter(|next| *next <= LAST), u32::try_from(count)) else { break };
            class = next;
            sketch.add(class, count);
        }
        sketch
    }

    fn add(&mut self, class: u16, count: u32) {
        let all = self.0.entry(class).or_default();
        *all = all.saturating_add(count);
    }
}

/// The class of a round trip: its highest bit, and the three bits below it.
fn class(ns: u64) -> u16 {
    let ns = ns.max(8);
    let exponent = ns.ilog2();
    let eighth = u16::try_from((ns >> (exponent - 3)) & 7).unwrap_or(0);
    u16::try_from(exponent).unwrap_or(0) * 8 + eighth
}

/// The first round trip above a class.
pub(crate) fn upper_ns(class: u16) -> u64 {
    let (exponent, eighth) = (u32::from(class / 8), u128::from(class % 8));
    let upper = (9 + eighth) << exponent.max(3) >> 3;
    u64::try_from(upper).unwrap_or(u64::MAX)
}

/// The class of the longest time that 64 bits hold.
const LAST: u16 = 63 * 8 + 7;

/// Seven bits an octet, the lowest first; all octets but the last have the highest bit set.
fn put(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [lowest, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(lowest);
        }
        out.push(lowest | 0x80);
    }
}

fn take(blob: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&octet, rest) = blob.split_first()?;
        *blob = rest;
        value |= u64::from(octet & 0x7f) << shift;
        if octet & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_come_back() {
        for list in [vec![], vec![0], vec![20_000_000, 19_876_543, 20_100_000], vec![u64::MAX, 0, 1, u64::MAX / 2]] {
            assert_eq!(unpacked(&packed(&list)), list);
        }
        let usual: Vec<u64> = (0..60).map(|second| 20_000_000 + second * 977 % 30_000).collect();
        assert!(packed(&usual).len() < 200, "{}", packed(&usual).len());
    }

    #[test]
    fn classes_hold_what_falls_into_them() {
        for ns in [8, 9, 15, 16, 999, 1_000, 20_000_000, 20_000_001, u64::MAX / 3, u64::MAX - 1] {
            let class = class(ns);
            assert!(ns < upper_ns(class), "{ns} in {class}");
            assert!(class == 24 || ns >= upper_ns(class - 1), "{ns} in {class}");
        }
        assert_eq!(upper_ns(class(20_000_000)), 20_971_520);
    }

    #[test]
    fn sketches_come_back_and_merge() {
        let (mut one, other) = (Sketch::of(&[1_000, 1_001, 5_000_000]), Sketch::of(&[1_000, u64::MAX]));
        assert_eq!(Sketch::read(&one.blob()), one);
        one.merge(&other);
        assert_eq!(one.classes().map(|(_, count)| count).collect::<Vec<_>>(), [3, 1, 1]);
        assert_eq!(Sketch::read(&one.blob()), one);
    }

    /// Blobs of a damaged file.
    #[test]
    fn any_octets_are_read_without_a_fault() {
        for blob in [&[0xff_u8; 40][..], &[0x80], &[1, 1, 0xff, 0xff, 0xff, 0x7f, 1], &[0xff, 0x03, 1, 1, 1]] {
            let _ = (unpacked(blob), Sketch::read(blob));
        }
        assert_eq!(Sketch::read(&[16, 2, 0xff]).classes().collect::<Vec<_>>(), [(16, 2)]);
    }
}
