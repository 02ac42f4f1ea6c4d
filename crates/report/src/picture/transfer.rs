//! A transfer over time: its rate and its congestion windows.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::picture::accuracy::names;
use crate::picture::axis::{Axis, Extent};
use crate::picture::frame::{Frame, Panel};
use crate::picture::quantity::Quantity;
use crate::picture::series::{self, Drawing, Series, SeriesStyles};

/// Rate and congestion window of a transfer over time, on one time axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferOverTime {
    /// What the picture shows.
    pub title: String,
    /// x: nanoseconds since the start; y: bit/s.
    pub rates: Vec<Series>,
    /// x: nanoseconds since the start; y: octets. One series per connection; none leaves the lower
    /// panel out.
    #[serde(default)]
    pub windows: Vec<Series>,
    /// When the quick mode stopped, or would have.
    #[serde(default)]
    pub stop_ns: Option<f64>,
    /// What it answered.
    #[serde(default)]
    pub value_bps: Option<f64>,
    /// The truth.
    #[serde(default)]
    pub truth_bps: Option<f64>,
}

impl TransferOverTime {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let (x, y) = series::extents(&self.rates);
        let (wx, wy) = series::extents(&self.windows);
        let x = wx.ends().into_iter().chain([Some(0.0), self.stop_ns]).flatten().fold(x, Extent::with);
        let y = [Some(0.0), self.value_bps, self.truth_bps].into_iter().flatten().fold(y, Extent::with);
        let mut frame = Frame::new(&self.title, self.summary());
        let both = !self.windows.is_empty();
        let time = || Axis::linear("time since the start", Quantity::Time, x);
        let upper = frame.panel(time(), Axis::linear("rate", Quantity::Rate, y), if both { 170.0 } else { 260.0 });
        self.mark_stop(&mut frame, &upper);
        if let Some(truth) = self.truth_bps {
            frame.horizontal(&upper, "rf da1", truth, format!("truth, {}", Quantity::Rate.print(truth)));
        }
        if let Some(value) = self.value_bps {
            frame.horizontal(&upper, "rf da2", value, format!("answer, {}", Quantity::Rate.print(value)));
        }
        series::draw(&mut frame, &upper, styles, &self.rates, Drawing::Line, (Quantity::Time, Quantity::Rate));
        if series::is_empty(&self.rates) {
            frame.nothing(&upper, "no rates to show");
        }
        if both {
            let lower = frame.panel(time(), Axis::linear("congestion window", Quantity::Octets, wy.with(0.0)), 130.0);
            self.mark_stop(&mut frame, &lower);
            series::draw(&mut frame, &lower, styles, &self.windows, Drawing::Steps, (Quantity::Time, Quantity::Octets));
        }
        frame
    }

    fn summary(&self) -> String {
        let mut text = format!("Rate over time for {}.", names(&self.rates));
        if !self.windows.is_empty() {
            let _ = write!(text, " Below: congestion window for {}.", names(&self.windows));
        }
        if let Some(stop) = self.stop_ns {
            let _ = write!(text, " Quick mode stops after {}.", Quantity::Time.print(stop));
        }
        text
    }

    fn mark_stop(&self, frame: &mut Frame, panel: &Panel) {
        if let Some(stop) = self.stop_ns {
            let label = format!("quick mode stops, {}", Quantity::Time.print(stop));
            frame.vertical(panel, "rf", stop, label);
        }
    }
}
