//! What one train says, and what many say together.

/// A packet that was answered: its place in the train, and when, ns.
pub(super) type Answered = (usize, i64);

/// The times of all parts of a train of which none is missing, ns per packet: parts of `packets`,
/// or of as few as there are with every `stride`-th answered.
pub(super) fn parts(answered: &[Answered], packets: usize, stride: usize) -> Vec<f64> {
    let apart = packets.saturating_sub(1).div_ceil(stride.max(1)).max(1);
    let passed = apart * stride;
    answered
        .windows(apart + 1)
        .filter(|part| part[apart].0 - part[0].0 == passed)
        .map(|part| part[apart].1.saturating_sub(part[0].1) as f64 / passed as f64)
        .collect()
}

/// The rate of a whole train from its first answer to its last, packets per ns; lost ones count as
/// not passed.
pub(super) fn mean(answered: &[Answered], stride: usize) -> Option<f64> {
    let (first, last) = (answered.first()?, answered.last()?);
    let time = last.1.saturating_sub(first.1);
    let packets = (answered.len() - 1) * stride;
    (time > 0 && packets > 0).then(|| packets as f64 / time as f64)
}

/// The shortest time that many parts agree on, with the least and the largest of those. `slack_ns`:
/// what two of them may differ by.
pub(super) fn shortest_mode(times: &[f64], slack_ns: f64) -> Option<(f64, f64, f64)> {
    let mut sorted: Vec<f64> = times.iter().copied().filter(|time| *time > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let need = times.len().div_ceil(SHARE).max(LEAST_PARTS);
    let upto = |from: f64| from * (1.0 + NEAR) + slack_ns;
    let range = sorted.windows(need).find(|range| range[need - 1] <= upto(range[0]))?;
    let near: Vec<f64> = sorted.iter().copied().filter(|time| (range[0]..=upto(range[0])).contains(time)).collect();
    Some((narrows_stat::median(&near)?, *near.first()?, *near.last()?))
}

/// Times this close are one (ours).
const NEAR: f64 = 0.02;
/// Parts that must agree: one in so many, and so many at least (ours). Evenly spread, so short a
/// range holds far fewer.
const SHARE: usize = 8;
const LEAST_PARTS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(times: &[i64]) -> Vec<Answered> {
        times.iter().copied().enumerate().collect()
    }

    #[test]
    fn parts_of_a_train() {
        // Two far apart, five 10 ns apart, two far apart.
        let train = at(&[0, 100, 200, 210, 220, 230, 240, 340, 440]);
        assert_eq!(parts(&train, 5, 1), [55.0, 32.5, 10.0, 32.5, 55.0]);
        assert_eq!(parts(&train, 2, 1).len(), 8);
        assert_eq!(mean(&train, 1), Some(8.0 / 440.0));
        assert!(parts(&train, 10, 1).is_empty());
        // A missing packet ends a part.
        let holed: Vec<Answered> = train.iter().copied().filter(|(place, _)| *place != 4).collect();
        assert!(parts(&holed, 5, 1).is_empty());
    }

    #[test]
    fn every_third_packet_stands_for_three() {
        let train: Vec<Answered> = vec![(0, 0), (3, 30), (6, 60), (9, 90)];
        assert_eq!(parts(&train, 5, 3), [10.0, 10.0]);
        assert_eq!(parts(&train, 2, 3), [10.0; 3]);
    }

    #[test]
    fn the_shortest_of_all_is_no_mode() {
        let mut times = vec![100.0; 12];
        times.extend([9.0, 11.0, 130.0, 200.0, 200.0, 205.0]);
        assert_eq!(shortest_mode(&times, 0.0), Some((100.0, 100.0, 100.0)));
        let even: Vec<f64> = (100..200).map(f64::from).collect();
        assert_eq!(shortest_mode(&even, 0.0), None);
        assert_eq!(shortest_mode(&[], 0.0), None);
        // Ticks of 50.
        let ticked: Vec<f64> = (0..30).map(|k| if k % 2 == 0 { 100.0 } else { 150.0 }).collect();
        assert_eq!(shortest_mode(&ticked, 50.0).map(|mode| mode.1), Some(100.0));
    }
}
