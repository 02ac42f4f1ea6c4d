//! One quantity over another, where no picture of its own tells more.

use serde::{Deserialize, Serialize};

use crate::picture::accuracy::names;
use crate::picture::axis::{Axis, Extent};
use crate::picture::frame::Frame;
use crate::picture::quantity::Quantity;
use crate::picture::series::{self, Drawing, Series, SeriesStyles};

/// One quantity over another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What the picture shows.
    pub title: String,
    /// What is across.
    pub x_title: String,
    /// In what.
    pub x: Quantity,
    /// What is up.
    pub y_title: String,
    /// In what.
    pub y: Quantity,
    /// The points; low and high: bars.
    pub series: Vec<Series>,
    /// Values on the axis that goes up, with their names.
    #[serde(default)]
    pub marks: Vec<(String, f64)>,
    /// The axis that goes up begins at zero.
    #[serde(default)]
    pub from_zero: bool,
}

impl Curve {
    /// The same as close as its values are.
    #[must_use]
    pub fn above(self) -> Self {
        Self { from_zero: false, ..self }
    }

    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let (x, y) = series::extents(&self.series);
        let y = self.marks.iter().map(|(_, at)| *at).fold(y, Extent::with);
        let y = if self.from_zero { y.with(0.0) } else { y };
        let summary = format!("{} over {}, for {}.", self.y_title, self.x_title, names(&self.series));
        let mut frame = Frame::new(&self.title, summary);
        let across = |quantity| match quantity {
            Quantity::Count => Axis::plain(&self.x_title, x.with(0.0)),
            other => Axis::linear(&self.x_title, other, x.with(0.0)),
        };
        let panel = frame.panel(across(self.x), Axis::linear(&self.y_title, self.y, y), 240.0);
        for (name, at) in &self.marks {
            frame.horizontal(&panel, "rf da1", *at, format!("{name}, {}", self.y.print(*at)));
        }
        let bars = self.series.iter().flat_map(|series| &series.points).any(|point| point.low.is_some());
        let drawing = if bars { Drawing::Bars } else { Drawing::Line };
        series::draw(&mut frame, &panel, styles, &self.series, drawing, (self.x, self.y));
        if series::is_empty(&self.series) {
            frame.nothing(&panel, "nothing to show");
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use crate::picture::{Picture, Point};

    use super::*;

    #[test]
    fn a_curve_with_a_mark_and_an_empty_one() {
        let curve = Curve {
            title: "rate <over> window".to_owned(),
            x_title: "window".to_owned(),
            x: Quantity::Octets,
            y_title: "rate".to_owned(),
            y: Quantity::Rate,
            series: vec![Series::new("one connection", vec![Point::new(2e4, 1e7), Point::new(8e4, 5e7)])],
            marks: vec![("answer".to_owned(), 5e7)],
            from_zero: true,
        };
        let svg = Picture::Curve(curve.clone()).svg();
        assert!(svg.contains("answer, 50 Mbit/s") && svg.contains("rate &lt;over&gt; window"), "{svg}");
        let empty = Curve { series: Vec::new(), marks: vec![("answer".to_owned(), f64::NAN)], ..curve };
        assert!(Picture::Curve(empty).svg().contains("nothing to show"));
    }
}
