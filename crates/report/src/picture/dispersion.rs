//! Histograms of dispersions, with modes and the truth.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::picture::accuracy::FIRST;
use crate::picture::axis::{Axis, Extent, drawable};
use crate::picture::frame::{Frame, Key, Panel};
use crate::picture::quantity::Quantity;
use crate::picture::series::SeriesStyles;
use crate::picture::svg::SeriesStyle;

/// How often pairs or trains gave which rate (or gap), with the modes that a method found and the
/// truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DispersionHistogram {
    /// What the picture shows.
    pub title: String,
    /// What the values count: [`Quantity::Rate`] in bit/s, or [`Quantity::Time`] in nanoseconds for
    /// gaps.
    pub quantity: Quantity,
    /// The bins, in any order.
    pub bins: Vec<Bin>,
    /// Modes that the method found.
    #[serde(default)]
    pub modes: Vec<Mode>,
    /// True value: the narrow link's capacity, or the gap that it sets.
    #[serde(default)]
    pub truth: Option<f64>,
    /// What the method answered.
    #[serde(default)]
    pub estimate: Option<f64>,
}

/// One bin of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Where it starts.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
    /// How many values fell into it.
    pub count: u64,
}

/// A local mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mode {
    /// Where its window starts.
    pub low: f64,
    /// Where its window ends.
    pub high: f64,
    /// Whether the method took it as the answer.
    pub chosen: bool,
}

impl DispersionHistogram {
    /// Counts `samples` in bins of `width` that start at whole multiples of it; a wider bin where
    /// there would be over 200 of them.
    pub fn bins(samples: &[f64], width: f64) -> Vec<Bin> {
        const MOST: f64 = 200.0;
        let usable: Vec<f64> = samples.iter().copied().filter(|&sample| drawable(sample)).collect();
        let low = usable.iter().copied().fold(f64::INFINITY, f64::min);
        let high = usable.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return Vec::new();
        }
        let asked = if width.is_finite() && width > 0.0 { width } else { (high - low) / 40.0 };
        let least = (high - low) / MOST;
        // One value alone, or many equal ones, still need a bin with an extent.
        let width = asked.max(least).max(high.abs().max(1.0) * 1e-6);
        let first = (low / width).floor();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to about 200, by the choice of the width"
        )]
        let index = |sample: f64| ((sample / width).floor() - first).max(0.0) as usize;
        let mut counts = vec![0u64; index(high) + 1];
        for sample in usable {
            if let Some(count) = counts.get_mut(index(sample)) {
                *count += 1;
            }
        }
        let start = |k: usize| (first + k as f64) * width;
        let bins = counts.into_iter().enumerate().map(|(k, count)| Bin { low: start(k), high: start(k + 1), count });
        bins.collect()
    }

    pub(crate) fn draw(&self, _looks: &mut SeriesStyles) -> Frame {
        let counts = self.bins.iter().map(|bin| bin.count as f64);
        let edges = self.bins.iter().filter(|bin| bin.count > 0);
        let edges = edges.flat_map(|bin| [bin.low, bin.high]);
        let marks = [self.truth, self.estimate].into_iter().flatten();
        let x = Extent::of(edges.chain(marks));
        let mut frame = Frame::new(&self.title, self.summary());
        let (title, quantity) = match self.quantity {
            Quantity::Rate => ("dispersion rate", Quantity::Rate),
            Quantity::Time => ("gap at the receiver", Quantity::Time),
            other => ("value", other),
        };
        let panel = frame.panel(
            Axis::linear(title, quantity, x),
            Axis::linear("count", Quantity::Count, Extent::of(counts).with(0.0).with(1.0)),
            250.0,
        );
        self.draw_modes(&mut frame, &panel);
        self.draw_bins(&mut frame, &panel);
        if let Some(truth) = self.truth {
            frame.vertical(&panel, "rf da1", truth, format!("truth, {}", quantity.print(truth)));
        }
        if let Some(value) = self.estimate {
            let class = format!("ln th c{}", SeriesStyle(1).colour());
            frame.vertical(&panel, &class, value, format!("estimate, {}", quantity.print(value)));
        }
        if self.bins.iter().all(|bin| bin.count == 0) {
            frame.nothing(&panel, "no samples to show");
        }
        frame
    }

    fn summary(&self) -> String {
        let total = self.bins.iter().fold(0u64, |sum, bin| sum.saturating_add(bin.count));
        let mut text = format!("Histogram of {total} samples with {} modes.", self.modes.len());
        if let Some(truth) = self.truth {
            let _ = write!(text, " The truth is {}.", self.quantity.print(truth));
        }
        if let Some(value) = self.estimate {
            let _ = write!(text, " The estimate is {}.", self.quantity.print(value));
        }
        text
    }

    fn draw_bins(&self, frame: &mut Frame, panel: &Panel) {
        const MOST: usize = 2_000;
        let class = format!("bar c{}", FIRST.colour());
        for bin in self.bins.iter().filter(|bin| bin.count > 0).take(MOST) {
            if let (Some(from), Some(to)) = (panel.at(bin.low, 0.0), panel.at(bin.high, bin.count as f64)) {
                // A hair between the bars where there is room, at least a pixel of bar everywhere.
                let gap = if to.0 - from.0 > 4.0 { 0.5 } else { 0.0 };
                let right = (to.0 - gap).max(from.0 + 1.0);
                let tip =
                    format!("{} to {}: {}", self.quantity.print(bin.low), self.quantity.print(bin.high), bin.count);
                frame.svg().rect(&class, (from.0 + gap, from.1), (right, to.1), Some(&tip));
            }
        }
    }

    fn draw_modes(&self, frame: &mut Frame, panel: &Panel) {
        for mode in self.modes.iter().take(30) {
            let (low, high) = (mode.low.min(mode.high), mode.low.max(mode.high));
            let Some((from, to)) = panel.at(low, panel.y.low()).zip(panel.at(high, panel.y.high())) else {
                continue;
            };
            let (class, label) =
                if mode.chosen { ("bd c4", "mode taken as the answer") } else { ("zone", "other modes") };
            let to = (to.0.max(from.0 + 2.0), to.1);
            let tip = format!("{} to {}", self.quantity.print(low), self.quantity.print(high));
            frame.svg().rect(class, from, to, Some(&tip));
            frame.key(Key::Area(class.to_owned()), label);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: width 10 puts 1 and 9 into the first bin, 10 into the second, 35 into the fourth.
    #[test]
    fn bins_start_at_multiples() {
        let bins = DispersionHistogram::bins(&[1.0, 9.0, 10.0, 35.0], 10.0);
        let counts: Vec<u64> = bins.iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [2, 1, 0, 1]);
        assert!((bins[3].low - 30.0).abs() < 1e-9 && (bins[3].high - 40.0).abs() < 1e-9);
    }

    #[test]
    fn bins_are_bounded_and_lose_no_sample() {
        for samples in [vec![], vec![5.0], vec![5.0; 100], vec![0.0, 1e12], vec![-1e29, 1e29], vec![f64::NAN, 3.0]] {
            for width in [0.0, 1e-9, 1.0, 1e40, f64::NAN] {
                let bins = DispersionHistogram::bins(&samples, width);
                let usable = samples.iter().filter(|sample| drawable(**sample)).count() as u64;
                assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), usable);
                assert!(bins.len() <= 202, "{samples:?} {width} {}", bins.len());
            }
        }
    }
}
