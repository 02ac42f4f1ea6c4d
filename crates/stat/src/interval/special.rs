//! Gamma and incomplete beta and gamma functions, to about 13 digits (`[AS64]` chapters 6 and 26).

/// Natural logarithm of the gamma function, `x > 0`: Stirling's series (6.1.41) after shifting x
/// beyond fifteen.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    let mut shifted = x;
    let mut product = 1.0;
    while shifted < 15.0 {
        product *= shifted;
        shifted += 1.0;
    }
    let inverse = 1.0 / shifted;
    let square = inverse * inverse;
    let tail = inverse
        * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0))));
    (shifted - 0.5) * shifted.ln() - shifted + 0.5 * std::f64::consts::TAU.ln() + tail - product.ln()
}

/// Regularised incomplete beta function `I_x(a, b)`; `a, b > 0`, `0 <= x <= 1`.
///
/// The continued fraction 26.5.8 converges fast for x below the mean; above it the symmetry
/// `1 - I_(1-x)(b, a)` is used.
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    incomplete_beta_split(a, b, x, 1.0 - x)
}

/// [`incomplete_beta`] with `y = 1 - x` supplied, for callers who know it to more digits than the
/// subtraction leaves.
pub(crate) fn incomplete_beta_split(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if y <= 0.0 {
        return 1.0;
    }
    let value = if x > (a + 1.0) / (a + b + 2.0) { 1.0 - beta_fraction(b, a, y, x) } else { beta_fraction(a, b, x, y) };
    value.clamp(0.0, 1.0)
}

fn beta_fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * y.ln()).exp() / a;
    let term = |step: u32| {
        let half = f64::from(step / 2);
        if step.is_multiple_of(2) {
            half * (b - half) * x / ((a + 2.0 * half - 1.0) * (a + 2.0 * half))
        } else {
            -(a + half) * (a + b + half) * x / ((a + 2.0 * half) * (a + 2.0 * half + 1.0))
        }
    };
    front / continued_fraction(1.0, term, |_| 1.0)
}

/// Upper regularised incomplete gamma function `Q(a, x)`; `a > 0`, `x >= 0`: the series 6.5.29 for
/// small x, the continued fraction 6.5.31 (even part) for large.
pub(crate) fn incomplete_gamma_upper(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let mut term = 1.0 / a;
        let mut sum = term;
        for step in 1..MAX_STEPS {
            term *= x / (a + f64::from(step));
            sum += term;
            if term < sum * f64::EPSILON {
                break;
            }
        }
        return (1.0 - front * sum).clamp(0.0, 1.0);
    }
    let fraction =
        continued_fraction(x + 1.0 - a, |n| -f64::from(n) * (f64::from(n) - a), |n| x + 1.0 - a + 2.0 * f64::from(n));
    (front / fraction).clamp(0.0, 1.0)
}

/// `first + a(1) / (b(1) + a(2) / (b(2) + ...))` by the modified Lentz method (`[TB86]`).
fn continued_fraction(first: f64, a: impl Fn(u32) -> f64, b: impl Fn(u32) -> f64) -> f64 {
    let guard = |v: f64| {
        if v.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { v }
    };
    let mut value = guard(first);
    let mut c = value;
    let mut d = 0.0;
    for step in 1..MAX_STEPS {
        d = 1.0 / guard(b(step) + a(step) * d);
        c = guard(b(step) + a(step) / c);
        let change = c * d;
        value *= change;
        if (change - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    value
}

/// The fractions need about the square root of their largest parameter in steps; this reaches
/// parameters of 10^8.
const MAX_STEPS: u32 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_close;

    #[test]
    fn gamma_of_whole_and_half_numbers() {
        let mut factorial = 1.0_f64;
        for n in 1..30 {
            assert_close(ln_gamma(f64::from(n)), factorial.ln(), 1e-12);
            factorial *= f64::from(n);
        }
        assert_close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-14);
        assert_close(ln_gamma(1e-8), 1e8_f64.ln(), 1e-7);
    }

    #[test]
    fn incomplete_beta_closed_forms() {
        for x in [0.01, 0.2, 0.5, 0.8, 0.99] {
            assert_close(incomplete_beta(1.0, 1.0, x), x, 1e-14);
            assert_close(incomplete_beta(3.0, 1.0, x), x.powi(3), 1e-14);
            assert_close(incomplete_beta(1.0, 4.0, x), 1.0 - (1.0 - x).powi(4), 1e-14);
            assert_close(incomplete_beta(2.0, 2.0, x), x * x * (3.0 - 2.0 * x), 1e-14);
            // The arcsine distribution.
            assert_close(incomplete_beta(0.5, 0.5, x), 2.0 / std::f64::consts::PI * x.sqrt().asin(), 1e-13);
        }
    }

    #[test]
    fn incomplete_beta_is_a_binomial_tail() {
        // P(X >= 3), X binomial of 5 and 0.3: 10 * .027 * .49 + 5 * .0081 * .7 + .00243 = 0.16308.
        assert_close(incomplete_beta(3.0, 3.0, 0.3), 0.163_08, 1e-14);
        // Symmetric at the middle whatever the size.
        for a in [10.0, 1e3, 1e5, 1e7] {
            assert_close(incomplete_beta(a, a, 0.5), 0.5, 1e-12 + a * 1e-14);
        }
    }

    #[test]
    fn either_side_of_the_switch() {
        // Just above the limit of the direct fraction, where x and 1 - x may both round to above
        // theirs; the two ways agree.
        for i in 1..2000_u32 {
            let (a, b) = (f64::from(i) * 0.37, 0.5);
            let limit = (a + 1.0) / (a + b + 2.0);
            for x in [limit.next_down(), limit, limit.next_up()] {
                let (direct, mirrored) = (beta_fraction(a, b, x, 1.0 - x), 1.0 - beta_fraction(b, a, 1.0 - x, x));
                assert_close(direct, mirrored, 1e-11);
                assert_close(incomplete_beta(a, b, x), direct, 1e-11);
            }
        }
    }

    #[test]
    fn incomplete_gamma_closed_forms() {
        for x in [0.0, 0.1, 1.0, 2.5, 10.0, 50.0] {
            assert_close(incomplete_gamma_upper(1.0, x), (-x).exp(), 1e-14);
            assert_close(incomplete_gamma_upper(3.0, x), (-x).exp() * (1.0 + x + x * x / 2.0), 1e-14);
        }
    }
}
