//! Kernel density with a biweight kernel of fixed width on a grid, and its significant modes, after
//! the Click package `multiq` (`[MultiQ03]`).

use crate::error::{Error, LARGEST, check_at_least};
use crate::order::floor_index;

/// A density on an evenly spaced grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Biweight {
    start: f64,
    step: f64,
    half_width: f64,
    count: usize,
    densities: Vec<f64>,
}

/// A significant local maximum of a [`Biweight`] density.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DensityMode {
    /// Position of the maximum.
    pub at: f64,
    /// Density there, per unit of the sample.
    pub density: f64,
    /// `density * n * half_width`: of the order of the number of values under the kernel.
    pub mass: f64,
    /// Grid position left of the maximum at which the density has dipped significantly (or ends).
    pub low: f64,
    /// The same on the right.
    pub high: f64,
}

/// Most grid cells a density may have.
pub const MAX_GRID_CELLS: usize = 1_000_000;

/// Density of a sample under the kernel `15/16 (1 - u^2)^2`, `u = (x - x_i) / half_width`, on a
/// grid of eighteen steps per half-width that starts one half-width and a step and a half below the
/// smallest value.
pub fn biweight_density(values: &[f64], half_width: f64) -> Result<Biweight, Error> {
    check_at_least(values, 1)?;
    if !(1.0 / LARGEST..=LARGEST).contains(&half_width) {
        return Err(Error::Parameter("half_width"));
    }
    let (lowest, highest) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    let step = half_width / STEPS_PER_HALF_WIDTH;
    let margin = half_width + 1.5 * step;
    let start = lowest - margin;
    let cells = floor_index((highest - lowest + 2.0 * margin) / step).saturating_add(1);
    if cells > MAX_GRID_CELLS {
        return Err(Error::TooMany { have: cells, limit: MAX_GRID_CELLS });
    }
    let mut densities = vec![0.0; cells];
    let scale = 15.0 / 16.0 / (values.len() as f64 * half_width);
    for value in values {
        let first = floor_index((value - half_width - start) / step);
        let last = floor_index((value + half_width - start) / step).saturating_add(1).min(cells - 1);
        for (cell, density) in densities.iter_mut().enumerate().take(last + 1).skip(first) {
            let u = (start + cell as f64 * step - value) / half_width;
            *density += scale * (1.0 - u * u).max(0.0).powi(2);
        }
    }
    Ok(Biweight { start, step, half_width, count: values.len(), densities })
}

impl Biweight {
    /// Position of the first cell.
    pub fn start(&self) -> f64 {
        self.start
    }

    /// Distance between cells.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// Density at each cell, per unit of the sample; integrates to one.
    pub fn densities(&self) -> &[f64] {
        &self.densities
    }

    /// Local maxima of at least `min_mass` that stand `significance` standard deviations above the
    /// dips on both sides, in order of position.
    ///
    /// The standard deviation of a peak is `sqrt(mass) / (n half_width)`, as for a Poisson count.
    /// Where brackets overlap the highest maximum stays.
    pub fn modes(&self, significance: f64, min_mass: f64) -> Vec<DensityMode> {
        let mut kept: Vec<DensityMode> = Vec::new();
        for mode in self.maxima().filter_map(|cell| self.bracket(cell, significance, min_mass)) {
            match kept.last_mut() {
                Some(last) if mode.low < last.high => {
                    if mode.density > last.density {
                        *last = mode;
                    }
                }
                _ => kept.push(mode),
            }
        }
        kept
    }

    /// Cells higher than their left and not lower than their right neighbour.
    fn maxima(&self) -> impl Iterator<Item = usize> {
        self.densities.windows(3).enumerate().filter(|(_, w)| w[1] > w[0] && w[1] >= w[2]).map(|(i, _)| i + 1)
    }

    fn bracket(&self, cell: usize, significance: f64, min_mass: f64) -> Option<DensityMode> {
        let per_density = self.count as f64 * self.half_width;
        let density = self.densities[cell];
        let mass = density * per_density;
        if mass < min_mass {
            return None;
        }
        let dip = (density - significance * mass.sqrt() / per_density).max(0.0);
        let left = walk(self.densities[..cell].iter().rev(), density, dip)?;
        let right = walk(self.densities[cell + 1..].iter(), density, dip)?;
        let position = |cell: usize| self.start + cell as f64 * self.step;
        Some(DensityMode {
            at: position(cell),
            density,
            mass,
            low: position(cell - left),
            high: position(cell + right),
        })
    }
}

/// Cells walked until the density is down at `dip` or the grid ends; `None` if it first rises above
/// the peak.
fn walk<'a>(densities: impl Iterator<Item = &'a f64>, peak: f64, dip: f64) -> Option<usize> {
    let mut walked = 0;
    for density in densities {
        if *density > peak {
            return None;
        }
        walked += 1;
        if *density <= dip {
            break;
        }
    }
    Some(walked)
}

const STEPS_PER_HALF_WIDTH: f64 = 18.0;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{assert_close, odd_float};

    #[test]
    fn one_value_has_the_shape_of_the_kernel() {
        let density = biweight_density(&[100.0], 9.0).unwrap();
        assert_close(density.step(), 0.5, 0.0);
        assert_close(density.start(), 100.0 - 9.0 - 0.75, 1e-12);
        // The cells next to the value lie a quarter off: u = 1/36.
        let want = 15.0 / 16.0 / 9.0 * (1.0 - 1.0 / 1296.0_f64).powi(2);
        let highest = density.densities().iter().copied().fold(0.0, f64::max);
        assert_close(highest, want, 1e-12);
    }

    #[test]
    fn three_modes_of_known_mass() {
        // Inter-arrival times of 120, 240 and 360 us, 40, 25 and 4 of them, jittered by a
        // microsecond.
        let mut values = Vec::new();
        for (at, times) in [(120.0, 40), (240.0, 25), (360.0, 4)] {
            values.extend((0..times).map(|i| at + f64::from(i % 3) - 1.0));
        }
        let density = biweight_density(&values, 20.0).unwrap();
        let modes = density.modes(2.0, 10.0);
        assert_eq!(modes.len(), 2, "the third mode has too few points: {modes:?}");
        assert_close(modes[0].at, 120.0, 1.2);
        assert_close(modes[1].at, 240.0, 1.2);
        // All 40 values lie near the kernel's middle, whose height is 15/16.
        assert_close(modes[0].mass, 37.5, 0.5);
        assert!(modes[0].low < 120.0 && modes[0].high > 120.0 && modes[0].high < modes[1].low);
        assert_eq!(density.modes(2.0, 1.0).len(), 3);
    }

    #[test]
    fn a_ripple_is_not_a_mode() {
        // Two bumps of 20 values a little more than a kernel apart: the dip between them is real
        // only at low significance.
        let mut values = vec![100.0; 20];
        values.extend([113.0; 21]);
        let density = biweight_density(&values, 10.0).unwrap();
        assert_eq!(density.modes(0.5, 5.0).len(), 2);
        let strict = density.modes(3.5, 5.0);
        assert_eq!(strict.len(), 1);
        assert_close(strict[0].at, 113.0, 1.0);
    }

    #[test]
    fn equal_bumps_without_a_dip_are_one_mode() {
        // One and a half half-widths apart: the sum dips to 7.2 points of 18.75, not to 18.75 less
        // 3.5 sigma, 3.6.
        let mut values = vec![100.0; 20];
        values.extend([113.5; 20]);
        let density = biweight_density(&values, 9.0).unwrap();
        assert_eq!(density.modes(3.5, 5.0).len(), 1);
        assert_eq!(density.modes(2.0, 5.0).len(), 2);
    }

    #[test]
    fn refuses_what_would_not_fit() {
        assert!(matches!(biweight_density(&[0.0, 1e9], 1e-3), Err(Error::TooMany { limit: MAX_GRID_CELLS, .. })));
        assert_eq!(biweight_density(&[1.0], 0.0), Err(Error::Parameter("half_width")));
        assert_eq!(biweight_density(&[], 1.0), Err(Error::TooFew { have: 0, need: 1 }));
    }

    proptest! {
        #[test]
        fn integrates_to_one(values in vec(-1e3..1e3_f64, 1..50), half_width in 1.0..100.0_f64) {
            let density = biweight_density(&values, half_width).unwrap();
            let integral = density.densities().iter().sum::<f64>() * density.step();
            assert_close(integral, 1.0, 1e-4);
        }

        #[test]
        fn modes_are_apart_and_ordered(values in vec(0.0..1e3_f64, 1..80), significance in 0.0..3.0_f64) {
            let modes = biweight_density(&values, 30.0).unwrap().modes(significance, 1.0);
            for mode in &modes {
                prop_assert!(mode.low < mode.at && mode.at < mode.high && mode.mass >= 1.0);
            }
            prop_assert!(modes.windows(2).all(|pair| pair[0].at < pair[1].at && pair[0].high <= pair[1].low));
        }

        #[test]
        fn any_bits_never_panic(values in vec(odd_float(), 0..6), half_width in odd_float()) {
            if let Ok(density) = biweight_density(&values, half_width) {
                prop_assert!(density.densities().iter().all(|d| d.is_finite()));
                let _ = density.modes(half_width, half_width);
            }
        }
    }
}
