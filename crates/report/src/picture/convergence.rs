//! How a run closed in on its answer, and how a truth that changes was followed.

use serde::{Deserialize, Serialize};

use crate::picture::accuracy::names;
use crate::picture::axis::{Axis, Extent};
use crate::picture::frame::{Frame, Key};
use crate::picture::quantity::Quantity;
use crate::picture::series::{self, Drawing, Point, Series, SeriesStyles};

/// The interval that a run held after each step, closing on the truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    /// What the picture shows.
    pub title: String,
    /// What the values count.
    pub quantity: Quantity,
    /// What x counts: [`Quantity::Count`] of steps, or [`Quantity::Time`] in nanoseconds.
    pub over: Quantity,
    /// x: step or time; y: value; low, high: interval. One series per run or method.
    pub series: Vec<Series>,
    /// The truth.
    #[serde(default)]
    pub truth: Option<f64>,
}

/// What was available over time, and what methods said at which moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// What the picture shows.
    pub title: String,
    /// What the values count.
    pub quantity: Quantity,
    /// x: nanoseconds since the start; y: the truth from then on, until the next point.
    pub truth: Vec<Point>,
    /// x: nanoseconds since the start (the middle of the run); y: value; low, high: interval.
    pub series: Vec<Series>,
}

impl Convergence {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let (x, y) = series::extents(&self.series);
        let y = self.truth.into_iter().fold(y, Extent::with);
        let title = if self.over == Quantity::Time { "time since the start" } else { "step" };
        let mut frame = Frame::new(
            &self.title,
            format!("Interval over {title} for {}. It should close on the truth.", names(&self.series)),
        );
        let panel =
            frame.panel(Axis::linear(title, self.over, x.with(0.0)), Axis::linear("interval", self.quantity, y), 260.0);
        if let Some(truth) = self.truth {
            let label = format!("truth, {}", self.quantity.print(truth));
            frame.horizontal(&panel, "rf da1", truth, label);
        }
        series::draw(&mut frame, &panel, styles, &self.series, Drawing::Band, (self.over, self.quantity));
        if series::is_empty(&self.series) {
            frame.nothing(&panel, "no steps to show");
        } else {
            let class = format!("bd c{}", styles.of(self.series.first().map_or("", Series::owner)).colour());
            frame.key(Key::Area(class), "interval");
        }
        frame
    }
}

impl Timeline {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let (x, y) = series::extents(&self.series);
        let x = self.truth.iter().fold(x, |extent, point| extent.with(point.x));
        let y = self.truth.iter().fold(y, |extent, point| extent.with(point.y));
        let mut frame = Frame::new(
            &self.title,
            format!("The truth over time as a stepped line, and the values of {}.", names(&self.series)),
        );
        let panel = frame.panel(
            Axis::linear("time since the start", Quantity::Time, x.with(0.0)),
            Axis::linear("rate", self.quantity, y.with(0.0)),
            280.0,
        );
        let mut truth = self.truth.clone();
        truth.sort_by(|a, b| a.x.total_cmp(&b.x));
        let mut steps: Vec<(f64, f64)> = truth.iter().map(|point| (point.x, point.y)).collect();
        if let Some(&(_, last)) = steps.last() {
            steps.push((panel.x.high(), last));
            let line = series::thin(&series::stairs(&panel.all(steps)), 2_000);
            frame.svg().polyline("rf", &line);
            frame.key(Key::Line("rf".to_owned()), "truth");
        }
        series::draw(&mut frame, &panel, styles, &self.series, Drawing::Bars, (Quantity::Time, self.quantity));
        if series::is_empty(&self.series) && self.truth.is_empty() {
            frame.nothing(&panel, "nothing to show");
        }
        frame
    }
}
