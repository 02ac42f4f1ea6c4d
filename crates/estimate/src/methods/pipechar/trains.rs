//! What one train says, and what many say together.

/// A packet that was answered: its place in the train, and when, ns.
pub(super) type Answered = (usize, i64);

/// The rate of the fastest part of a train, in packets per ns: of at least `least` packets in a row of which none is missing, the largest
/// rate; from the longest part that comes within 2 % of it. `stride`: from one that is answered to the next. `None` without such a part.
pub(super) fn fastest(answered: &[Answered], least: usize, stride: usize) -> Option<f64> {
    let parts = || {
        (0..answered.len()).flat_map(move |from| {
            let whole = move |to: usize| answered[to].0 - answered[from].0 == (to - from) * stride;
            (from + 1..answered.len())
                .take_while(move |&to| whole(to))
                .filter(move |&to| (to - from) * stride + 1 >= least)
                .filter_map(move |to| {
                    let packets = (to - from) * stride;
                    let time = answered[to].1.saturating_sub(answered[from].1);
                    (time > 0).then(|| (packets, packets as f64 / time as f64))
                })
        })
    };
    let most = parts().map(|(_, rate)| rate).max_by(f64::total_cmp)?;
    let near = parts().filter(|(_, rate)| *rate >= most * (1.0 - NEAR));
    near.max_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)))
        .map(|(_, rate)| rate)
}

/// The rate of a whole train from its first answer to its last, packets per ns; lost ones count as not passed.
pub(super) fn mean(answered: &[Answered], stride: usize) -> Option<f64> {
    let (first, last) = (answered.first()?, answered.last()?);
    let time = last.1.saturating_sub(first.1);
    let packets = (answered.len() - 1) * stride;
    (time > 0 && packets > 0).then(|| packets as f64 / time as f64)
}

/// The largest rate that several trains agree on, with the least and the largest of those.
pub(super) fn reproducible(rates: &[f64]) -> Option<(f64, f64, f64)> {
    let mut sorted = rates.to_vec();
    sorted.sort_by(|one, other| other.total_cmp(one));
    let need = (rates.len().div_ceil(SHARE)).max(LEAST_TRAINS);
    let from = (0..sorted.len()).find(|&from| {
        let last = sorted.get(from + need - 1);
        last.is_some_and(|&last| last >= sorted[from] * (1.0 - NEAR))
    })?;
    let near: Vec<f64> = sorted[from..]
        .iter()
        .copied()
        .take_while(|&rate| rate >= sorted[from] * (1.0 - NEAR))
        .collect();
    Some((stat::median(&near)?, *near.last()?, *near.first()?))
}

/// Rates this close are one (ours).
pub(super) const NEAR: f64 = 0.02;
/// Trains that must agree: one in so many, and so many at least (ours).
const SHARE: usize = 6;
const LEAST_TRAINS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(times: &[i64]) -> Vec<Answered> {
        times.iter().copied().enumerate().collect()
    }

    #[test]
    fn a_part_that_was_pushed_together_tells_the_links_rate() {
        // Two far apart, five 10 ns apart, two far apart.
        let train = at(&[0, 100, 200, 210, 220, 230, 240, 340, 440]);
        assert_eq!(fastest(&train, 5, 1), Some(0.1));
        assert_eq!(mean(&train, 1), Some(8.0 / 440.0));
        // Of six packets nothing is faster than 5 in 140.
        assert_eq!(fastest(&train, 6, 1), Some(5.0 / 140.0));
        assert_eq!(fastest(&train, 10, 1), None);
        // A missing packet ends a part.
        let holed: Vec<Answered> = train.iter().copied().filter(|(place, _)| *place != 4).collect();
        assert!(fastest(&holed, 5, 1).is_none_or(|rate| rate < 0.1));
    }

    #[test]
    fn every_third_packet_stands_for_three() {
        let train: Vec<Answered> = vec![(0, 0), (3, 30), (6, 60), (9, 90)];
        assert_eq!(fastest(&train, 5, 3), Some(0.1));
    }

    #[test]
    fn the_maximum_of_one_train_is_not_reproducible() {
        let mut rates = vec![10.0; 6];
        rates.extend([99.0, 9.0, 9.0, 8.0, 5.0, 5.0]);
        assert_eq!(reproducible(&rates), Some((10.0, 10.0, 10.0)));
        assert_eq!(reproducible(&[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(reproducible(&[]), None);
    }
}
