//! Curves of the two commands that draw one: the burst that survives over its rate, and what
//! parallel streams get over their number.

use serde::{Deserialize, Serialize};

use crate::picture::accuracy::names;
use crate::picture::axis::{Axis, Extent};
use crate::picture::frame::Frame;
use crate::picture::quantity::Quantity;
use crate::picture::series::{self, Drawing, Series, SeriesStyles};

/// The largest burst that survives, over the rate at which it is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BurstOverRate {
    /// What the picture shows.
    pub title: String,
    /// x: bit/s; y: median in octets, low and high: 10th percentile and maximum.
    pub series: Vec<Series>,
    /// The effective queue, octets.
    #[serde(default)]
    pub queue_octets: Option<f64>,
    /// What the line says is available, bit/s.
    #[serde(default)]
    pub available_bps: Option<f64>,
}

/// What parallel streams get together, over their number (`[Netest03]` figure 5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateOverStreams {
    /// What the picture shows.
    pub title: String,
    /// x: streams; y: bit/s.
    pub series: Vec<Series>,
    /// What is available, bit/s.
    #[serde(default)]
    pub available_bps: Option<f64>,
    /// Streams that fill the path, that are intrusive, that do harm.
    #[serde(default)]
    pub marks: Vec<(String, f64)>,
}

impl BurstOverRate {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let (x, y) = series::extents(&self.series);
        let x = self.available_bps.into_iter().fold(x, Extent::with);
        let y = self.queue_octets.into_iter().fold(y, Extent::with);
        let summary = format!("Octets that survive over the rate at which they are sent, for {}.", names(&self.series));
        let mut frame = Frame::new(&self.title, summary);
        let panel = frame.panel(
            Axis::fitting("rate of the burst", Quantity::Rate, x),
            Axis::linear("octets that survive", Quantity::Octets, y.with(0.0)),
            260.0,
        );
        if let Some(queue) = self.queue_octets {
            let label = format!("effective queue, {}", Quantity::Octets.print(queue));
            frame.horizontal(&panel, "rf da1", queue, label);
        }
        if let Some(available) = self.available_bps {
            let label = format!("available, {}", Quantity::Rate.print(available));
            frame.vertical(&panel, "rf", available, label);
        }
        let units = (Quantity::Rate, Quantity::Octets);
        series::draw(&mut frame, &panel, styles, &self.series, Drawing::Band, units);
        if series::is_empty(&self.series) {
            frame.nothing(&panel, "no bursts to show");
        }
        frame
    }
}

impl RateOverStreams {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let (x, y) = series::extents(&self.series);
        let x = self.marks.iter().map(|(_, streams)| *streams).fold(x, Extent::with);
        let y = self.available_bps.into_iter().fold(y, Extent::with);
        let summary = format!("Rate of all streams together over their number, for {}.", names(&self.series));
        let mut frame = Frame::new(&self.title, summary);
        let panel = frame.panel(
            Axis::plain("streams", x.with(0.0)),
            Axis::linear("rate together", Quantity::Rate, y.with(0.0)),
            260.0,
        );
        if let Some(available) = self.available_bps {
            let label = format!("available, {}", Quantity::Rate.print(available));
            frame.horizontal(&panel, "rf da1", available, label);
        }
        for (label, streams) in &self.marks {
            frame.vertical(&panel, "rf da2", *streams, format!("{label}: {streams}"));
        }
        let units = (Quantity::Count, Quantity::Rate);
        series::draw(&mut frame, &panel, styles, &self.series, Drawing::Line, units);
        if series::is_empty(&self.series) {
            frame.nothing(&panel, "no streams to show");
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use crate::picture::{Picture, Point};

    use super::*;

    #[test]
    fn curves_with_their_marks_and_without_anything() {
        let points = vec![Point::between(2e8, 124e3, 120e3, 126e3), Point::between(1e9, 71e3, 70e3, 71e3)];
        let burst = BurstOverRate {
            title: "to <far>".to_owned(),
            series: vec![Series::new("median", points)],
            queue_octets: Some(64e3),
            available_bps: Some(97e6),
        };
        let svg = Picture::BurstOverRate(burst.clone()).svg();
        assert!(svg.contains("effective queue, 64 kB") && svg.contains("to &lt;far&gt;"), "{svg}");
        let streams = RateOverStreams {
            title: "streams".to_owned(),
            series: vec![Series::new("together", vec![Point::new(1.0, 30e6), Point::new(2.0, 60e6)])],
            available_bps: Some(95e6),
            marks: vec![("fill".to_owned(), 2.0)],
        };
        let svg = Picture::RateOverStreams(streams.clone()).svg();
        assert!(svg.contains("fill: 2") && svg.contains("available, 95 Mbit/s"), "{svg}");
        let empty = BurstOverRate { series: Vec::new(), queue_octets: Some(f64::NAN), available_bps: None, ..burst };
        assert!(Picture::BurstOverRate(empty).svg().contains("no bursts to show"));
        let empty = RateOverStreams { series: Vec::new(), marks: Vec::new(), available_bps: None, ..streams };
        assert!(Picture::RateOverStreams(empty).svg().contains("no streams to show"));
    }
}
