//! What a path answers to load: rates out against rates in, gaps out against gaps in, loss against
//! the size of bursts.

use serde::{Deserialize, Serialize};

use crate::picture::accuracy::names;
use crate::picture::axis::{Axis, Extent};
use crate::picture::frame::{Frame, Key};
use crate::picture::quantity::Quantity;
use crate::picture::series::{self, Drawing, Series, SeriesStyles};

/// What a response curve has on its axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// Rate at the receiver over rate at the sender, in bit/s. Below the diagonal the path is full.
    Rates,
    /// Rate in over rate out (a ratio) over rate in (bit/s): straight above the available capacity
    /// (`[TOPP00]`).
    RateRatio,
    /// Gap at the receiver over gap at the sender, in nanoseconds.
    Gaps,
}

/// The response curve of a path, as measured by trains at several rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResponseCurve {
    /// What the picture shows.
    pub title: String,
    /// What the axes are.
    pub response: Response,
    /// x and y as the response says; low and high: spread over trains of one rate.
    pub series: Vec<Series>,
    /// Straight pieces that a method fitted, each between two points.
    #[serde(default)]
    pub fitted: Vec<Series>,
    /// True capacity of the narrow link, in bit/s (drawn against rates only).
    #[serde(default)]
    pub capacity_bps: Option<f64>,
    /// True available capacity, in bit/s (drawn against rates only).
    #[serde(default)]
    pub available_bps: Option<f64>,
}

/// Share of lost packets over the octets sent back to back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossAgainstBurst {
    /// What the picture shows.
    pub title: String,
    /// x: octets of the burst; y, low, high: share of its packets lost (0 to 1).
    pub series: Vec<Series>,
    /// The largest burst that no queue of the path drops.
    #[serde(default)]
    pub truth_octets: Option<f64>,
    /// The interval that the method gave.
    #[serde(default)]
    pub interval_octets: Option<(f64, f64)>,
}

impl ResponseCurve {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let (across, up, units, (x_title, y_title)) = match self.response {
            Response::Rates => {
                (Quantity::Rate, Quantity::Rate, "Rate received over rate sent", ("rate sent", "rate received"))
            }
            Response::RateRatio => (
                Quantity::Rate,
                Quantity::Count,
                "Rate sent over rate received, by rate sent",
                ("rate sent", "rate sent / rate received"),
            ),
            Response::Gaps => (
                Quantity::Time,
                Quantity::Time,
                "Gap at the receiver over gap at the sender",
                ("gap at the sender", "gap at the receiver"),
            ),
        };
        let (x, y) = series::extents(&self.series);
        let marks =
            if self.response == Response::Gaps { [None, None] } else { [self.available_bps, self.capacity_bps] };
        let x = marks.into_iter().flatten().fold(x, Extent::with);
        let mut frame = Frame::new(&self.title, format!("{units} for {}.", names(&self.series)));
        let x_axis = Axis::linear(x_title, across, x.with(0.0));
        let y_axis = if self.response == Response::RateRatio {
            Axis::plain(y_title, y.with(1.0))
        } else {
            Axis::linear(y_title, up, y.with(0.0))
        };
        let panel = frame.panel(x_axis, y_axis, 280.0);
        self.draw_ideal(&mut frame, &panel);
        let [available, capacity] = marks;
        if let Some(bps) = available {
            let label = format!("available, {}", Quantity::Rate.print(bps));
            frame.vertical(&panel, "rf da1", bps, label);
        }
        if let Some(bps) = capacity {
            let label = format!("capacity, {}", Quantity::Rate.print(bps));
            frame.vertical(&panel, "rf", bps, label);
        }
        series::draw(&mut frame, &panel, styles, &self.series, Drawing::Band, (across, up));
        for piece in &self.fitted {
            let line = panel.all(piece.points.iter().map(|point| (point.x, point.y)));
            frame.svg().polyline("rf da2", &line);
            frame.key(Key::Line("rf da2".to_owned()), piece.label.clone());
        }
        if series::is_empty(&self.series) {
            frame.nothing(&panel, "no trains to show");
        }
        frame
    }

    /// What a path that is never full would answer.
    fn draw_ideal(&self, frame: &mut Frame, panel: &crate::picture::frame::Panel) {
        let ideal: Vec<(f64, f64)> = if self.response == Response::RateRatio {
            vec![(panel.x.low(), 1.0), (panel.x.high(), 1.0)]
        } else {
            let low = panel.x.low().max(panel.y.low());
            let high = panel.x.high().min(panel.y.high());
            if low >= high {
                return;
            }
            vec![(low, low), (high, high)]
        };
        frame.svg().polyline("rs", &panel.all(ideal));
        frame.key(Key::Line("rs".to_owned()), "out as in");
    }
}

impl LossAgainstBurst {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let (x, y) = series::extents(&self.series);
        let interval = self.interval_octets.map(|(low, high)| (low.min(high), low.max(high)));
        let ends = interval.map_or([None, None], |(low, high)| [Some(low), Some(high)]);
        let x = ends.into_iter().chain([self.truth_octets]).flatten().fold(x, Extent::with);
        let mut frame = Frame::new(
            &self.title,
            format!("Share of packets lost over the octets sent back to back, for {}.", names(&self.series)),
        );
        let panel = frame.panel(
            Axis::fitting("octets back to back", Quantity::Octets, x),
            Axis::linear("packets lost", Quantity::Ratio, y.with(0.0).with(0.01)),
            260.0,
        );
        if let Some((low, high)) = interval
            && let (Some(low), Some(high)) = (panel.at(low, panel.y.low()), panel.at(high, panel.y.high()))
        {
            frame.svg().rect("zone", low, high, None);
            frame.key(Key::Area("zone".to_owned()), "interval of the estimate");
        }
        if let Some(truth) = self.truth_octets {
            let label = format!("truth, {}", Quantity::Octets.print(truth));
            frame.vertical(&panel, "rf da1", truth, label);
        }
        series::draw(&mut frame, &panel, styles, &self.series, Drawing::Line, (Quantity::Octets, Quantity::Ratio));
        if series::is_empty(&self.series) {
            frame.nothing(&panel, "no bursts to show");
        }
        frame
    }
}
