//! The vertical-horizontal filter (`[ASSOLO09]`): trusts new values while a series goes one way,
//! and the past while it jitters.

/// Which filter makes one value of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    /// As meant: the gain is on the new value.
    Vhf,
    /// As in the source of 0.9e: the gain is on the old value, so that it smooths least what
    /// jitters most.
    VhfSource,
    /// The mean of the window: what the tool does unless it was built otherwise.
    Mean,
}

/// Values before a new one that tell how a series goes (the tool's window).
const WINDOW: usize = 11;
/// The gain is this share of the index (the tool's 1/3).
const SHARE: f64 = 1.0 / 3.0;
/// The gain where all values are one (the tool's).
const LEVEL: f64 = 0.5;

impl Filter {
    /// One value of a series, oldest first. It begins at the mean of the first window (ours: the
    /// tool's buffer begins empty).
    pub(super) fn apply(self, values: &[f64]) -> Option<f64> {
        if self == Self::Mean {
            return narrows_stat::mean(values);
        }
        let (first, rest) = values.split_at(values.len().min(WINDOW));
        let mut smooth = narrows_stat::mean(first)?;
        for (index, value) in rest.iter().enumerate() {
            // In order of time; the tool walks its ring in order of storage.
            let window = &values[index + 1..=index + first.len()];
            let gain = gain(window);
            let on_new = if self == Self::Vhf { gain } else { 1.0 - gain };
            smooth += on_new * (value - smooth);
        }
        Some(smooth)
    }
}

/// A third of the vertical-horizontal index: range over path length.
fn gain(window: &[f64]) -> f64 {
    let high = window.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let low = window.iter().copied().fold(f64::INFINITY, f64::min);
    let path: f64 = window.windows(2).map(|two| (two[1] - two[0]).abs()).sum();
    if path > 0.0 { SHARE * (high - low) / path } else { LEVEL }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_a_march_and_of_a_jitter() {
        let march: Vec<f64> = (0..11).map(f64::from).collect();
        assert!((gain(&march) - 1.0 / 3.0).abs() < 1e-12);
        let jitter: Vec<f64> = (0..11).map(|k| f64::from(k % 2)).collect();
        assert!((gain(&jitter) - 1.0 / 30.0).abs() < 1e-12);
        assert!((gain(&[4.0; 11]) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn jitter_is_smoothed_and_a_step_is_followed() {
        let jitter: Vec<f64> = (0..33).map(|k| 10.0 + f64::from(k % 2)).collect();
        let off = |filter: Filter| (filter.apply(&jitter).unwrap() - 10.5).abs();
        assert!(off(Filter::Vhf) < 0.1, "{}", off(Filter::Vhf));
        // The source's form follows the last value instead.
        assert!(off(Filter::VhfSource) > 0.4);
        let step: Vec<f64> = (0..44).map(|k| if k < 22 { 10.0 } else { 20.0 }).collect();
        assert!(Filter::Vhf.apply(&step).unwrap() > 19.0);
        assert_eq!(Filter::Mean.apply(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(Filter::Vhf.apply(&[]), None);
        // By hand: the first window's mean is 1, then 3 with range 2 and path 2: 1 + 2/3.
        let mut one = vec![1.0; 11];
        one.push(3.0);
        assert!((Filter::Vhf.apply(&one).unwrap() - 5.0 / 3.0).abs() < 1e-12);
    }
}
