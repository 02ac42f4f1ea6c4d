//! Kernel density with a triangular kernel whose width is relative to the position, after nettimer
//! (`[Nettimer01]`).
//!
//! Link rates span decades, so that no fixed width fits; a width proportional to the rate does.

use crate::error::{Error, LARGEST, check_at_least};
use crate::interval::Interval;
use crate::order::Sorted;

/// A sample of positive values and the relative half-width of the kernel.
///
/// Invariants: every value at least 10^-150; half-width from 0.001 to below one.
#[derive(Debug, Clone, PartialEq)]
pub struct RelativeDensity {
    sample: Sorted,
    half_width: f64,
}

/// The highest point of a density and how much it stands out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Sample value of highest density; the lowest of equals.
    pub at: f64,
    /// Density there, zero to one: one if all values coincide.
    pub density: f64,
    /// Around `at`, where the density is at least half the peak's; to a twentieth of the kernel's
    /// half-width.
    pub half_maximum: Interval,
    /// Share of the sample inside `half_maximum`.
    pub share: f64,
    /// Highest density whose kernel shares no room with the peak's, and its ratio to the peak's;
    /// `None` if no value lies that far away.
    pub second: Option<SecondPeak>,
}

/// The runner-up of a [`Peak`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SecondPeak {
    /// Sample value.
    pub at: f64,
    /// Its density over the highest one, at most one (see [`RelativeDensity::around`]).
    pub ratio: f64,
}

/// Prepares the density of positive values (at least 10^-150) with kernel half-width `half_width`
/// times the position, from 0.001 to below one (nettimer: 0.10).
pub fn relative_density(values: &[f64], half_width: f64) -> Result<RelativeDensity, Error> {
    check_at_least(values, 1)?;
    if let Some(index) = values.iter().position(|v| *v < SMALLEST) {
        return Err(Error::OutOfDomain { index });
    }
    if !(NARROWEST..1.0).contains(&half_width) {
        return Err(Error::Parameter("half_width"));
    }
    Ok(RelativeDensity { sample: Sorted::from_slice(values)?, half_width })
}

impl RelativeDensity {
    /// The values, ascending.
    pub fn sample(&self) -> &Sorted {
        &self.sample
    }

    /// `d(x) = (1 / n) sum K((x - x_i) / (c x))` with `K(t) = 1 - |t|` on minus one to one; zero
    /// for `x <= 0`.
    ///
    /// Not normalised: a kernel counts one at its middle whatever its width, so that densities at
    /// different rates compare.
    pub fn at(&self, x: f64) -> f64 {
        if x.is_nan() || x <= 0.0 {
            return 0.0;
        }
        let reach = self.half_width * x;
        let values = self.sample.values();
        let start = values.partition_point(|v| *v < x - reach);
        let near = values[start..].iter().take_while(|v| **v <= x + reach);
        near.map(|v| (1.0 - (x - v).abs() / reach).max(0.0)).sum::<f64>() / values.len() as f64
    }

    /// The peak over the sample's own values. Quadratic at worst, when all values share a kernel.
    pub fn peak(&self) -> Peak {
        // A value always finds itself under its kernel, so some density is above zero.
        let (at, _) = self.heights().fold((self.sample.min(), 0.0), higher);
        self.around(at)
    }

    /// The same around a value that the caller holds for the peak, by this density or by more than
    /// it. The second peak's ratio is above one where the density has its maximum elsewhere. A
    /// value outside the sample is taken for the nearest inside.
    pub fn around(&self, at: f64) -> Peak {
        let at = self.nearest(at);
        let density = self.at(at);
        let apart = |v: f64| (v - at).abs() > self.half_width * (v + at);
        let second = self.heights().filter(|d| apart(d.0)).reduce(higher);
        let (low, high) = (self.edge(at, density, -1.0), self.edge(at, density, 1.0));
        let inside = self.sample.values().iter().filter(|v| low <= **v && **v <= high).count();
        Peak {
            at,
            density,
            half_maximum: Interval { low, high },
            share: inside as f64 / self.sample.len() as f64,
            second: second.map(|(at, other)| SecondPeak { at, ratio: other / density }),
        }
    }

    fn nearest(&self, at: f64) -> f64 {
        let distance = |v: f64| (v - at).abs();
        let nearer = |a: f64, b: f64| if distance(b) < distance(a) { b } else { a };
        self.distinct().fold(self.sample.min(), nearer)
    }

    /// Values and their densities, ascending.
    fn heights(&self) -> impl Iterator<Item = (f64, f64)> {
        self.distinct().map(|v| (v, self.at(v)))
    }

    fn distinct(&self) -> impl Iterator<Item = f64> {
        self.sample.values().chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|equal| equal[0])
    }

    /// Walks from the peak in steps of a twentieth of the half-width while the density stays at or
    /// above half the peak's.
    fn edge(&self, at: f64, density: f64, direction: f64) -> f64 {
        let step = 1.0 + direction * self.half_width / 20.0;
        let mut edge = at;
        // Ends: every step multiplies, and beyond the sample's reach the density is zero.
        while self.at(edge * step) >= density / 2.0 {
            edge *= step;
        }
        edge
    }
}

/// The higher of two points; the first of equals.
fn higher(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    if b.1 > a.1 { b } else { a }
}

/// Smallest value accepted; the counterpart of [`LARGEST`].
const SMALLEST: f64 = 1.0 / LARGEST;

/// Narrowest kernel accepted, relative to the position.
const NARROWEST: f64 = 0.001;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    #[test]
    fn density_by_hand() {
        // At 100 the kernel reaches 90 to 110: weights 0.5 (95), 1 (100), 0.8 (102), 0 (110), none
        // for 200; over five.
        let density = relative_density(&[95.0, 100.0, 102.0, 110.0, 200.0], 0.1).unwrap();
        assert_close(density.at(100.0), 2.3 / 5.0, 1e-12);
        // At 200 it reaches 180 to 220, alone.
        assert_close(density.at(200.0), 0.2, 1e-12);
        assert_close(density.at(150.0), 0.0, 0.0);
        assert_close(density.at(-1.0), 0.0, 0.0);
        assert_close(density.at(f64::NAN), 0.0, 0.0);
    }

    #[test]
    fn one_value_is_its_own_peak() {
        let peak = relative_density(&[50.0], 0.1).unwrap().peak();
        assert_close(peak.at, 50.0, 0.0);
        assert_close(peak.density, 1.0, 1e-12);
        assert_close(peak.share, 1.0, 0.0);
        assert_eq!(peak.second, None);
        // K((x - 50) / (0.1 x)) = 1/2 at x = 50 / 1.05 and 50 / 0.95; found to half a percent.
        assert_close(peak.half_maximum.low(), 50.0 / 1.05, 0.25);
        assert_close(peak.half_maximum.high(), 50.0 / 0.95, 0.28);
    }

    #[test]
    fn two_clusters() {
        // 30 at 100, 15 at 40, 5 at 99.
        let mut values = vec![100.0; 30];
        values.extend([40.0; 15]);
        values.extend([99.0; 5]);
        let peak = relative_density(&values, 0.1).unwrap().peak();
        assert_close(peak.at, 100.0, 0.0);
        assert_close(peak.density, (30.0 + 5.0 * 0.9) / 50.0, 1e-12);
        assert_close(peak.share, 0.7, 1e-12);
        let second = peak.second.unwrap();
        assert_close(second.at, 40.0, 0.0);
        assert_close(second.ratio, 15.0 / 34.5, 1e-12);
    }

    #[test]
    fn around_another_value_than_the_highest() {
        let mut values = vec![100.0; 30];
        values.extend([40.0; 15]);
        let density = relative_density(&values, 0.1).unwrap();
        let peak = density.around(41.0);
        assert_close(peak.at, 40.0, 0.0);
        assert_close(peak.share, 1.0 / 3.0, 1e-12);
        assert_close(peak.second.unwrap().at, 100.0, 0.0);
        assert_close(peak.second.unwrap().ratio, 2.0, 1e-12);
        assert_close(density.around(f64::NAN).at, 40.0, 0.0);
        assert_eq!(density.around(100.0), density.peak());
    }

    #[test]
    fn a_value_whose_kernel_overlaps_is_no_second_peak() {
        // Kernels reach 90 to 110 and 76.5 to 93.5: they share 90 to 93.5.
        let peak = relative_density(&[100.0, 100.0, 85.0], 0.1).unwrap().peak();
        assert_eq!(peak.second, None);
        // 65 reaches 71.5 only; 130 starts at 117.
        assert!(relative_density(&[100.0, 100.0, 65.0], 0.1).unwrap().peak().second.is_some());
        assert!(relative_density(&[100.0, 100.0, 130.0], 0.1).unwrap().peak().second.is_some());
    }

    #[test]
    fn refuses_what_has_no_relative_width() {
        assert_eq!(relative_density(&[1.0, 0.0], 0.1), Err(Error::OutOfDomain { index: 1 }));
        assert_eq!(relative_density(&[], 0.1), Err(Error::TooFew { have: 0, need: 1 }));
        assert_eq!(relative_density(&[1.0], 1.0), Err(Error::Parameter("half_width")));
        assert_eq!(relative_density(&[1.0], f64::NAN), Err(Error::Parameter("half_width")));
    }

    proptest! {
        #[test]
        fn scaling_scales_the_peak(values in vec(1..1000_u16, 1..60)) {
            let plain: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
            let scaled: Vec<f64> = plain.iter().map(|v| v * 1024.0).collect();
            let (a, b) = (relative_density(&plain, 0.1).unwrap().peak(), relative_density(&scaled, 0.1).unwrap().peak());
            assert_close(b.at, a.at * 1024.0, 0.0);
            assert_close(b.density, a.density, 1e-12);
            assert_close(b.share, a.share, 1e-12);
        }

        #[test]
        fn peak_is_sane(values in vec(0.001..1e9_f64, 1..60), half_width in 0.01..0.5_f64) {
            let density = relative_density(&values, half_width).unwrap();
            let peak = density.peak();
            prop_assert!(peak.half_maximum.contains(peak.at));
            prop_assert!(peak.density > 0.0 && peak.density <= 1.0 + 1e-12);
            prop_assert!(peak.share > 0.0 && peak.share <= 1.0);
            prop_assert!(values.iter().all(|v| density.at(*v) <= peak.density));
            if let Some(second) = peak.second {
                prop_assert!(second.ratio > 0.0 && second.ratio <= 1.0);
            }
        }

        #[test]
        fn any_bits_never_panic(values in vec(odd_float(), 0..10), half_width in odd_float()) {
            if let Ok(density) = relative_density(&values, half_width.abs().clamp(0.01, 0.9)) {
                let _ = density.peak();
            }
            let _ = relative_density(&values, half_width);
        }
    }
}
