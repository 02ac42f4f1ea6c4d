//! How the values of a time are spread, to compare two times.

use crate::records::Point;

/// Quartiles of the points of a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Values, or means of several.
    pub points: usize,
    /// A quarter of them is below.
    pub low: f64,
    /// Half of them is below.
    pub median: f64,
    /// A quarter of them is above.
    pub high: f64,
}

impl Spread {
    /// Of those that have a value; `None` if there are none.
    pub fn of(points: &[Point]) -> Option<Self> {
        let values = points.iter().filter_map(|point| point.value).filter(|value| value.is_finite());
        let values: Vec<f64> = values.collect();
        let at = |share: f64| narrows_stat::quantile(&values, share);
        Some(Self { points: values.len(), low: at(0.25)?, median: at(0.5)?, high: at(0.75)? })
    }

    /// `higher` or `lower` at the later time if the middle halves do not overlap; else `unclear`.
    pub fn verdict(&self, later: &Self) -> &'static str {
        if self.high < later.low {
            "higher"
        } else if later.high < self.low {
            "lower"
        } else {
            "unclear"
        }
    }
}

#[cfg(test)]
mod tests {
    use narrows_watch::{Claim, WallTime};

    use super::*;

    fn spread(values: &[f64]) -> Option<Spread> {
        let point = |value: &f64| Point {
            at: WallTime::default(),
            value: Some(*value).filter(|value| *value > 0.0),
            low: None,
            high: None,
            min: None,
            max: None,
            count: 1,
            claim: Claim::Estimate,
            basis: None,
        };
        Spread::of(&values.iter().map(point).collect::<Vec<_>>())
    }

    #[test]
    fn middle_halves_are_compared() {
        let one = spread(&[5.0, 1.0, 0.0, 2.0, 4.0, 3.0]).unwrap();
        assert_eq!(one, Spread { points: 5, low: 2.0, median: 3.0, high: 4.0 });
        let other = |value| spread(&[value; 3]).unwrap();
        assert_eq!([4.1, 4.0, 1.9].map(|value| one.verdict(&other(value))), ["higher", "unclear", "lower"]);
        assert_eq!(spread(&[0.0]), None);
    }
}
