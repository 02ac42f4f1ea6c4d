//! The rank-sum test: does one sample tend to have larger values than another?

use crate::error::{Error, check_at_least};

/// How far the values of the first sample lie above those of the second, in standard deviations of
/// what samples of one distribution would show (`[MannWhitney47]`): `(U - mn/2) / sd(U)`, where `U`
/// counts the pairs in which the first value is larger, ties by half. The variance is corrected for
/// ties. Near to normal from some five values in each sample on; below that it cannot get large.
///
/// Fails with [`Error::NoSpread`] if all values are equal.
pub fn rank_sum(first: &[f64], second: &[f64]) -> Result<f64, Error> {
    check_at_least(first, 1)?;
    check_at_least(second, 1)?;
    let mut all: Vec<(f64, bool)> = first.iter().map(|value| (*value, true)).collect();
    all.extend(second.iter().map(|value| (*value, false)));
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (m, n) = (first.len() as f64, second.len() as f64);
    let (mut larger, mut ties, mut below) = (0.0, 0.0, 0.0);
    for same in all.chunk_by(|one, other| one.0 >= other.0) {
        let count = same.len() as f64;
        let firsts = same.iter().filter(|(_, is_first)| *is_first).count() as f64;
        larger += firsts * (below + (count - firsts) / 2.0);
        below += count - firsts;
        ties += count * (count * count - 1.0);
    }
    let total = m + n;
    let variance = m * n / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    if variance <= 0.0 {
        return Err(Error::NoSpread("either sample"));
    }
    Ok((larger - m * n / 2.0) / variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_close;

    /// U = 17 of 20 pairs; (17 - 10) / sqrt(5 * 4 * 10 / 12) = 7 / 4.0825.
    #[test]
    fn worked_by_hand() {
        let (first, second) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
        assert_close(rank_sum(&first, &second).unwrap(), 1.714_643, 1e-6);
        assert_close(rank_sum(&second, &first).unwrap(), -1.714_643, 1e-6);
    }

    /// 1, 2, 2 over 2, 3: of six pairs two ties count by half, so U = 1 and 3 are expected. Three
    /// equal values take 24 of 20: 6 / 12 * (6 - 24 / 20) = 2.4.
    #[test]
    fn ties_count_by_half_and_narrow_the_spread() {
        assert_close(rank_sum(&[1.0, 2.0, 2.0], &[2.0, 3.0]).unwrap(), -2.0 / 2.4f64.sqrt(), 1e-12);
    }

    #[test]
    fn what_does_not_vary_is_no_answer() {
        assert_eq!(rank_sum(&[1.0, 1.0], &[1.0]), Err(Error::NoSpread("either sample")));
        assert!(rank_sum(&[], &[1.0]).is_err());
        assert!(rank_sum(&[f64::NAN], &[1.0]).is_err());
    }
}
