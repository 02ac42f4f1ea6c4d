//! Why a statistic has no value.

/// Why a statistic has no value for this input. Every variant is the caller's to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Fewer values (or points, or values left after a filter) than the statistic needs.
    #[error("{have} values, at least {need} needed")]
    TooFew {
        /// Values at hand.
        have: usize,
        /// Fewest the statistic can work with.
        need: usize,
    },
    /// More values than the statistic accepts: its cost grows faster than linearly.
    #[error("{have} values, at most {limit} accepted")]
    TooMany {
        /// Values (or grid cells) asked for.
        have: usize,
        /// Most the statistic accepts.
        limit: usize,
    },
    /// A value is NaN, infinite or larger in magnitude than [`LARGEST`].
    #[error("value {index} is not a finite number of sane size")]
    NotFinite {
        /// Position of the first such value.
        index: usize,
    },
    /// A value lies outside the range on which the statistic is defined (a rate of zero, a negative
    /// weight).
    #[error("value {index} lies outside the statistic's domain")]
    OutOfDomain {
        /// Position of the first such value.
        index: usize,
    },
    /// Two slices that go together differ in length.
    #[error("slices of {left} and {right} values do not pair up")]
    LengthMismatch {
        /// Length of the first slice.
        left: usize,
        /// Length of the other slice.
        right: usize,
    },
    /// The values do not vary (or not independently) where the statistic divides by their
    /// variation.
    #[error("no spread in {0}")]
    NoSpread(&'static str),
    /// The values are sane but the result is too large to represent.
    #[error("the result is too large to represent")]
    Overflow,
    /// A parameter lies outside its documented range.
    #[error("parameter `{0}` is out of range")]
    Parameter(&'static str),
}

/// Largest magnitude any statistic here accepts. Squares stay below 10^300, so that no sum of
/// squares of a sample that fits in memory overflows; where quotients still could, the result is
/// checked and [`Error::Overflow`] returned.
pub const LARGEST: f64 = 1e150;

/// First value that is not finite, or too large, as an error.
pub(crate) fn check(values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|v| !is_sane(*v)) {
        Some(index) => Err(Error::NotFinite { index }),
        None => Ok(()),
    }
}

/// Like [`check`], and at least `need` values.
pub(crate) fn check_at_least(values: &[f64], need: usize) -> Result<(), Error> {
    if values.len() < need {
        return Err(Error::TooFew { have: values.len(), need });
    }
    check(values)
}

/// Checks two slices that form points: same length, at least `need` points, all finite.
pub(crate) fn check_points(xs: &[f64], ys: &[f64], need: usize) -> Result<(), Error> {
    if xs.len() != ys.len() {
        return Err(Error::LengthMismatch { left: xs.len(), right: ys.len() });
    }
    check_at_least(xs, need)?;
    check(ys)
}

/// A probability or confidence strictly between zero and one.
pub(crate) fn check_open_unit(p: f64, name: &'static str) -> Result<(), Error> {
    if p > 0.0 && p < 1.0 { Ok(()) } else { Err(Error::Parameter(name)) }
}

/// `result` if all of `numbers` (its fields) are finite.
pub(crate) fn finite<T>(result: T, numbers: &[f64]) -> Result<T, Error> {
    if numbers.iter().all(|v| v.is_finite()) { Ok(result) } else { Err(Error::Overflow) }
}

fn is_sane(value: f64) -> bool {
    value.abs() <= LARGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_first_value_that_is_not_a_number() {
        assert_eq!(check(&[1.0, f64::NAN, f64::INFINITY]), Err(Error::NotFinite { index: 1 }));
        assert_eq!(check(&[1.0, 1e151]), Err(Error::NotFinite { index: 1 }));
        assert_eq!(check(&[-1e150, 0.0]), Ok(()));
    }

    #[test]
    fn points_must_pair_up() {
        assert_eq!(check_points(&[1.0, 2.0], &[1.0], 1), Err(Error::LengthMismatch { left: 2, right: 1 }));
        assert_eq!(check_points(&[1.0], &[1.0], 2), Err(Error::TooFew { have: 1, need: 2 }));
        assert_eq!(check_points(&[1.0], &[f64::NAN], 1), Err(Error::NotFinite { index: 0 }));
    }

    #[test]
    fn overflow_is_named() {
        assert_eq!(finite("fit", &[1.0, f64::INFINITY]), Err(Error::Overflow));
        assert_eq!(finite("fit", &[1.0, -2.0]), Ok("fit"));
    }

    #[test]
    fn open_unit_excludes_its_ends_and_nan() {
        for p in [0.0, 1.0, -0.1, f64::NAN] {
            assert_eq!(check_open_unit(p, "p"), Err(Error::Parameter("p")));
        }
        assert_eq!(check_open_unit(0.5, "p"), Ok(()));
    }
}
