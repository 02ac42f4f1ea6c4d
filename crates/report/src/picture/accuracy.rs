//! How far off methods are: error against load, estimate against truth, cost against error.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::picture::axis::Axis;
use crate::picture::frame::{Frame, Key};
use crate::picture::quantity::Quantity;
use crate::picture::series::{self, Drawing, Series, SeriesStyles};
use crate::picture::svg::SeriesStyle;

/// Median error over the load of the path, one line per method with the band from the 10th to the
/// 90th percentile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorAgainstUtilisation {
    /// What the picture shows, with the scenarios' common name.
    pub title: String,
    /// x: share of the tight link that other traffic takes (0 to 1); y, low, high: signed error as
    /// a share (−0.05 is 5 % too low).
    pub series: Vec<Series>,
}

/// Values over truths; on the diagonal a value is right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EstimateAgainstTruth {
    /// What the picture shows.
    pub title: String,
    /// What values and truths count.
    pub quantity: Quantity,
    /// x: truth; y: median value; low, high: its spread or interval.
    pub series: Vec<Series>,
}

/// What an answer costs, and how far off it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostAgainstError {
    /// What the picture shows.
    pub title: String,
    /// What the cost counts: [`Quantity::Octets`] sent, [`Quantity::Time`] (in nanoseconds) or
    /// [`Quantity::Count`] of packets.
    pub cost: Quantity,
    /// x: cost; y: absolute error as a share. One series per method, a point per scenario.
    pub series: Vec<Series>,
}

/// Errors beyond this are drawn at the edge: one runaway must not flatten all the others.
const FARTHEST: f64 = 2.0;

/// The tolerance around the truth that the pictures shade: what separates *wrong and confident*
/// from the rest.
const TOLERANCE: f64 = 0.1;

impl ErrorAgainstUtilisation {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let (x, y) = series::extents(&self.series);
        let beyond = |value: f64| value.abs() > FARTHEST;
        let outside = self.series.iter().flat_map(|series| &series.points);
        let outside = outside.filter(|point| point.y.is_finite() && beyond(point.y)).count();
        let mut frame = Frame::new(
            &self.title,
            format!(
                "Signed error over the load of the path for {}. Zero is right; shaded: within a tenth.",
                names(&self.series)
            ),
        );
        let panel = frame.panel(
            Axis::linear("load of the tight link", Quantity::Ratio, x.with(0.0)),
            Axis::linear(
                "error, shares of the narrow link’s capacity",
                Quantity::Ratio,
                y.within(-FARTHEST, FARTHEST).with(-0.05).with(0.05),
            ),
            270.0,
        );
        if let (Some(low), Some(high)) = (panel.at(panel.x.low(), -TOLERANCE), panel.at(panel.x.high(), TOLERANCE)) {
            frame.svg().rect("zone", low, high, None);
            frame.key(Key::Area("zone".to_owned()), "within 10 %");
        }
        series::draw(&mut frame, &panel, styles, &self.series, Drawing::Band, (Quantity::Ratio, Quantity::Ratio));
        if outside > 0 {
            mark_outside(&mut frame, &panel, &self.series);
            frame.describe(&format!("{outside} points lie beyond ±200 % and are drawn at the edge."));
        }
        if series::is_empty(&self.series) {
            frame.nothing(&panel, "no errors to show");
        }
        frame
    }
}

/// A cross over each point that lies beyond the axis.
fn mark_outside(frame: &mut Frame, panel: &crate::picture::frame::Panel, all: &[Series]) {
    for point in all.iter().flat_map(|series| &series.points) {
        if point.y.abs() > FARTHEST
            && let Some(at) = panel.at(point.x, point.y)
        {
            frame.svg().shape("rf", 9, at, 6.0, Some(&Quantity::Ratio.print(point.y)));
        }
    }
    frame.key(Key::Mark("rf", 9), "beyond the axis");
}

impl EstimateAgainstTruth {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let (x, y) = series::extents(&self.series);
        let mut frame = Frame::new(
            &self.title,
            format!(
                "Values over truths for {}. On the diagonal a value is right; shaded: within a tenth.",
                names(&self.series)
            ),
        );
        let panel =
            frame.panel(Axis::fitting("truth", self.quantity, x), Axis::fitting("estimate", self.quantity, y), 300.0);
        // The diagonal only where both axes reach: a value at the edge would bend it.
        let (low, high) = (panel.x.low().max(panel.y.low()), panel.x.high().min(panel.y.high()));
        let inside = panel.x.samples(160).into_iter().chain([low, high]);
        let mut inside: Vec<f64> = inside.filter(|&v| (low..=high).contains(&v)).collect();
        inside.sort_by(f64::total_cmp);
        let along = |factor: f64| panel.all(inside.iter().map(|&truth| (truth, truth * factor)));
        frame.svg().band("zone", &along(1.0 + TOLERANCE), &along(1.0 - TOLERANCE));
        frame.svg().polyline("rs da1", &along(1.0));
        series::draw(&mut frame, &panel, styles, &self.series, Drawing::Bars, (self.quantity, self.quantity));
        frame.key(Key::Line("rs da1".to_owned()), "right");
        frame.key(Key::Area("zone".to_owned()), "within 10 %");
        if series::is_empty(&self.series) {
            frame.nothing(&panel, "no estimates to show");
        }
        frame
    }
}

impl CostAgainstError {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let title = match self.cost {
            Quantity::Octets => "octets sent",
            Quantity::Time => "time taken",
            Quantity::Count => "packets sent",
            Quantity::Rate | Quantity::Ratio => "cost",
        };
        // Zero has no place on a logarithmic axis: errors too small to tell from none sit at a
        // hundredth of a per cent.
        let floor = 1e-4;
        let raised_any = self.series.iter().flat_map(|series| &series.points).any(|point| point.y.abs() < floor);
        let raised: Vec<Series> = self
            .series
            .iter()
            .map(|series| {
                let mut series = series.clone();
                for point in &mut series.points {
                    point.y = point.y.abs().max(floor);
                    (point.low, point.high) = (None, None);
                }
                series
            })
            .collect();
        let (x, y) = series::extents(&raised);
        let mut frame = Frame::new(
            &self.title,
            format!("Absolute error over {title} for {}. Down and to the left is better.", names(&self.series)),
        );
        let y_title = if raised_any { "absolute error (0.01 % stands for less, too)" } else { "absolute error" };
        let panel = frame.panel(
            Axis::fitting(title, self.cost, x),
            Axis::logarithmic(y_title, Quantity::Ratio, y.with(0.1)),
            280.0,
        );
        if let Some(tolerated) = panel.down(TOLERANCE) {
            let bottom = panel.edges().1;
            let (left, right) = (panel.across(panel.x.low()), panel.across(panel.x.high()));
            if let (Some(left), Some(right)) = (left, right) {
                frame.svg().rect("zone", (left, tolerated), (right, bottom), None);
                frame.key(Key::Area("zone".to_owned()), "within 10 %");
            }
        }
        series::draw(&mut frame, &panel, styles, &raised, Drawing::Bars, (self.cost, Quantity::Ratio));
        if series::is_empty(&self.series) {
            frame.nothing(&panel, "no costs to show");
        }
        frame
    }
}

/// The series' names for a description, at most eight of them.
pub(crate) fn names(series: &[Series]) -> String {
    const MOST: usize = 8;
    if series.is_empty() {
        return "no series".to_owned();
    }
    let mut text = series.iter().take(MOST).map(|series| series.label.as_str()).collect::<Vec<_>>().join(", ");
    if series.len() > MOST {
        let _ = write!(text, " and {} more", series.len() - MOST);
    }
    text
}

/// Looks that belong to no method.
pub(crate) const FIRST: SeriesStyle = SeriesStyle(0);
