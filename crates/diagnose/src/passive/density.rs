//! Density of rates on a logarithmic axis, in time proportional to the sample.
//!
//! A kernel of fixed width over the logarithm is one of relative width over the rate, as nettimer
//! has it; on a grid a triangular kernel is two running means, so a flow of thousands of samples
//! costs microseconds.

/// Half-width of the kernel, relative to the rate (`[Nettimer01]` has 0.10; ours is finer, for
/// there are more samples).
pub(super) const WIDTH: f64 = 0.02;

/// Steps of the grid per half-width.
const STEPS: usize = 8;
/// Most cells: four decades at the finest width.
const MOST_CELLS: usize = 40_000;

/// A density over the logarithm of the rate.
#[derive(Debug, Clone)]
pub(super) struct LogDensity {
    start: f64,
    step: f64,
    /// Weight under the kernel around each cell; a sample in the middle of it counts one.
    cells: Vec<f64>,
}

/// A local maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Peak {
    /// The rate.
    pub(super) at: f64,
    /// Weight under the kernel around it.
    pub(super) weight: f64,
}

impl LogDensity {
    /// Of these positive rates; `None` if there is none.
    pub(super) fn new(rates: &[f64], width: f64) -> Option<Self> {
        let logs: Vec<f64> =
            rates.iter().filter(|rate| **rate > 0.0 && rate.is_finite()).map(|rate| rate.ln()).collect();
        let low = logs.iter().copied().reduce(f64::min)?;
        let high = logs.iter().copied().fold(low, f64::max);
        let mut step = width / STEPS as f64;
        let reach = STEPS;
        let most = (MOST_CELLS - 4 * reach) as f64;
        if (high - low) / step > most {
            step = (high - low) / most;
        }
        let start = low - 2.0 * reach as f64 * step;
        let place = |log: f64| super::math::size(((log - start) / step).round());
        let mut counts = vec![0.0; place(high) + 2 * reach + 1];
        for log in &logs {
            if let Some(cell) = counts.get_mut(place(*log)) {
                *cell += 1.0;
            }
        }
        Some(Self { start, step, cells: triangle(&counts, reach) })
    }

    /// The highest point.
    pub(super) fn peak(&self) -> Peak {
        let highest = |best: (usize, f64), one: (usize, &f64)| if *one.1 > best.1 { (one.0, *one.1) } else { best };
        let (cell, weight) = self.cells.iter().enumerate().fold((0, 0.0), highest);
        Peak { at: self.rate(cell), weight }
    }

    fn rate(&self, cell: usize) -> f64 {
        (self.start + cell as f64 * self.step).exp()
    }
}

/// Two running sums of `reach` cells each, scaled so that the kernel is one in its middle.
fn triangle(counts: &[f64], reach: usize) -> Vec<f64> {
    let once = running(counts, reach, 0);
    let twice = running(&once, reach, reach - 1);
    twice.into_iter().map(|sum| sum / reach as f64).collect()
}

/// Sum over `reach` cells that end `ahead` cells beyond each.
fn running(counts: &[f64], reach: usize, ahead: usize) -> Vec<f64> {
    let at = |place: usize| counts.get(place).copied().unwrap_or(0.0);
    let mut sum: f64 = (0..ahead).map(at).sum();
    let mut sums = Vec::with_capacity(counts.len());
    for cell in 0..counts.len() {
        sum += at(cell + ahead);
        if let Some(gone) = (cell + ahead).checked_sub(reach) {
            sum -= at(gone);
        }
        sums.push(sum.max(0.0));
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_where_the_samples_are() {
        let mut rates = vec![9.753e6; 30];
        rates.extend([4.8765e6; 12]);
        rates.extend((0..20).map(|step| 1e6 + 3e5 * f64::from(step)));
        let density = LogDensity::new(&rates, WIDTH).unwrap();
        let peak = density.peak();
        assert!((peak.at / 9.753e6 - 1.0).abs() < 0.003, "{peak:?}");
        assert!((peak.weight - 30.0).abs() < 0.5, "{peak:?}");
    }

    #[test]
    fn one_sample_and_none() {
        assert!(LogDensity::new(&[], WIDTH).is_none());
        assert!(LogDensity::new(&[0.0, f64::NAN], WIDTH).is_none());
        let peak = LogDensity::new(&[5e6], WIDTH).unwrap().peak();
        assert!((peak.at / 5e6 - 1.0).abs() < 0.003 && (peak.weight - 1.0).abs() < 1e-9, "{peak:?}");
    }

    #[test]
    fn any_span_of_rates_fits() {
        let density = LogDensity::new(&[1.0, 1e18, 1e18], WIDTH).unwrap();
        assert!(density.cells.len() <= MOST_CELLS + 1);
        assert!((density.peak().at / 1e18 - 1.0).abs() < 0.01);
    }
}
