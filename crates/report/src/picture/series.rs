//! Series of points, and the ways of drawing them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::picture::axis::Extent;
use crate::picture::frame::{Frame, Key, Panel};
use crate::picture::quantity::Quantity;
use crate::picture::svg::SeriesStyle;

/// One point, in the units that its picture states.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up: a median where many runs stand behind it.
    pub y: f64,
    /// Lower end: the 10th percentile, or the low end of an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end: the 90th percentile, or the high end of an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Series {
    /// What the legend says.
    pub label: String,
    /// The method whose colour it takes; the label's own if `None`. A published series names the
    /// method of ours that it is beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Printed by others: drawn with hollow markers and no line.
    #[serde(default)]
    pub published: bool,
    /// The points, in any order.
    pub points: Vec<Point>,
}

impl Point {
    /// A point without ends.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, low: None, high: None }
    }

    /// A point between two ends.
    pub const fn between(x: f64, y: f64, low: f64, high: f64) -> Self {
        Self { x, y, low: Some(low), high: Some(high) }
    }
}

impl Series {
    /// A measured series.
    pub fn new(label: impl Into<String>, points: Vec<Point>) -> Self {
        Self { label: label.into(), method: None, published: false, points }
    }

    /// A printed series, in the colour of `method`.
    pub fn published(label: impl Into<String>, method: Option<&str>, points: Vec<Point>) -> Self {
        Self { label: label.into(), method: method.map(str::to_owned), published: true, points }
    }

    pub(crate) fn owner(&self) -> &str {
        self.method.as_deref().unwrap_or(&self.label)
    }
}

/// Who has which look. The page keeps one list of methods, so that a method has one colour in all
/// its pictures; other names take what is free in their picture.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeriesStyles {
    methods: Vec<String>,
    others: Vec<(String, SeriesStyle)>,
    taken: BTreeSet<usize>,
}

impl SeriesStyles {
    /// Looks for these methods, in their order.
    pub(crate) fn of_methods<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut styles = Self::default();
        for name in names {
            if !styles.methods.iter().any(|known| known == name) {
                styles.methods.push(name.to_owned());
            }
        }
        styles
    }

    /// The same methods, for the next picture.
    pub(crate) fn afresh(&self) -> Self {
        Self { methods: self.methods.clone(), ..Self::default() }
    }

    /// Keeps the looks of those of the names that are methods from being given to others.
    fn reserve<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            if let Some(index) = self.methods.iter().position(|known| known == name) {
                self.taken.insert(index);
            }
        }
    }

    /// The look of this name; the first free one if it is new.
    pub(crate) fn of(&mut self, name: &str) -> SeriesStyle {
        if let Some(index) = self.methods.iter().position(|known| known == name) {
            self.taken.insert(index);
            return SeriesStyle(index);
        }
        if let Some((_, style)) = self.others.iter().find(|(known, _)| known == name) {
            return *style;
        }
        // One of the first n + 1 numbers is not among n taken ones.
        let free = (0..=self.taken.len()).find(|index| !self.taken.contains(index)).unwrap_or(0);
        self.taken.insert(free);
        self.others.push((name.to_owned(), SeriesStyle(free)));
        SeriesStyle(free)
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawing {
    /// A line through the points with a band between their ends.
    Band,
    /// A line through the points, markers if they are few.
    Line,
    /// A line that keeps its value until the next point.
    Steps,
    /// Markers with bars between the ends.
    Bars,
}

/// Extents across and up of these series, ends included.
pub(crate) fn extents(series: &[Series]) -> (Extent, Extent) {
    let points = || series.iter().flat_map(|series| &series.points);
    (
        Extent::of(points().map(|point| point.x)),
        Extent::of(points().flat_map(|point| [Some(point.y), point.low, point.high].into_iter().flatten())),
    )
}

/// Whether no series has a point that can be drawn.
pub(crate) fn is_empty(series: &[Series]) -> bool {
    !series.iter().flat_map(|series| &series.points).any(|point| point.x.is_finite() && point.y.is_finite())
}

/// Draws all of them and adds them to the legend; bands first, so that no band covers another's
/// line.
pub(crate) fn draw(
    frame: &mut Frame,
    panel: &Panel,
    styles: &mut SeriesStyles,
    series: &[Series],
    drawing: Drawing,
    units: (Quantity, Quantity),
) {
    styles.reserve(series.iter().take(MOST_SERIES).map(Series::owner));
    let sorted: Vec<(SeriesStyle, &Series, Vec<Point>)> = series
        .iter()
        .take(MOST_SERIES)
        .map(|series| {
            let mut points = series.points.clone();
            points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
            (styles.of(series.owner()), series, points)
        })
        .collect();
    if drawing == Drawing::Band {
        for (style, series, points) in &sorted {
            if !series.published {
                draw_band(frame, panel, *style, points);
            }
        }
    }
    for (style, series, points) in &sorted {
        draw_one(frame, panel, (*style, series, points), drawing, units);
    }
    if series.len() > MOST_SERIES {
        frame.describe(&format!("{} series are not drawn.", series.len() - MOST_SERIES));
    }
}

/// Most series in a picture; more are a mass, not a message.
const MOST_SERIES: usize = 21;

/// Series with more points than this have no markers.
const MOST_MARKERS: usize = 60;

/// Most points that a line or a cloud keeps; the picture is 560 pixels wide inside.
const MOST_POINTS: usize = 1_200;

fn draw_band(frame: &mut Frame, panel: &Panel, style: SeriesStyle, points: &[Point]) {
    let ends = |pick: fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
        points
            .iter()
            .filter(|point| point.low.is_some() && point.high.is_some())
            .filter_map(|point| panel.at(point.x, pick(point)?))
            .collect()
    };
    let (upper, lower) = (ends(|point| point.high), ends(|point| point.low));
    let class = format!("bd c{}", style.colour());
    frame.svg().band(&class, &upper, &lower);
    if let ([(x, top)], [(_, bottom)]) = (upper.as_slice(), lower.as_slice()) {
        let class = format!("ln th c{}", style.colour());
        frame.svg().line(&class, (*x, *top), (*x, *bottom));
    }
}

fn draw_one(
    frame: &mut Frame,
    panel: &Panel,
    (style, series, points): (SeriesStyle, &Series, &[Point]),
    drawing: Drawing,
    units: (Quantity, Quantity),
) {
    if drawing == Drawing::Bars {
        for point in points.iter().take(MOST_POINTS) {
            let ends = point.low.zip(point.high);
            if let Some((low, high)) = ends.and_then(|(low, high)| panel.at(point.x, low).zip(panel.at(point.x, high)))
            {
                let class = format!("ln th fa c{}", style.colour());
                frame.svg().line(&class, low, high);
            }
        }
    }
    if !series.published && drawing != Drawing::Bars {
        let mut line = panel.all(points.iter().map(|point| (point.x, point.y)));
        if drawing == Drawing::Steps {
            line = stairs(&line);
        }
        frame.svg().polyline(&style.line(), &thin(&line, MOST_POINTS));
    }
    let markers = series.published || drawing == Drawing::Bars || points.len() <= MOST_MARKERS;
    if markers && drawing != Drawing::Steps {
        let tips = points.len() <= MOST_MARKERS;
        for point in points.iter().take(MOST_POINTS) {
            if let Some(at) = panel.at(point.x, point.y) {
                let tip = tips.then(|| tip(&series.label, point, units));
                frame.svg().marker(style, series.published, at, tip.as_deref());
            }
        }
    }
    let key = if series.published {
        Key::Published(style)
    } else if !markers || drawing == Drawing::Steps {
        Key::Line(style.line())
    } else if drawing == Drawing::Bars {
        Key::Mark(filled(style), style.0 % 5)
    } else {
        Key::Series(style)
    };
    frame.key(key, series.label.clone());
}

/// Classes of a filled marker, by colour.
pub(crate) fn filled(style: SeriesStyle) -> &'static str {
    ["mk c0", "mk c1", "mk c2", "mk c3", "mk c4", "mk c5", "mk c6"][style.colour()]
}

fn tip(label: &str, point: &Point, (x, y): (Quantity, Quantity)) -> String {
    let mut text = format!("{label}: {} at {}", y.print(point.y), x.print(point.x));
    if let (Some(low), Some(high)) = (point.low, point.high) {
        let _ = write!(text, " ({} to {})", y.print(low), y.print(high));
    }
    text
}

/// The corners of a line that keeps its value until the next point.
pub(crate) fn stairs(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::with_capacity(line.len() * 2);
    for (index, &(x, y)) in line.iter().enumerate() {
        if let Some(&(_, before)) = index.checked_sub(1).and_then(|before| line.get(before)) {
            out.push((x, before));
        }
        out.push((x, y));
    }
    out
}

/// At most about `most` points: of each stretch, the lowest and the highest, so that no peak is
/// lost.
pub(crate) fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil((most / 2).max(1));
    let mut out = Vec::with_capacity(most + 2);
    for part in points.chunks(stretch) {
        let by_y = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (Some(&low), Some(&high)) = (part.iter().min_by(by_y), part.iter().max_by(by_y)) else {
            continue;
        };
        if low.0 <= high.0 {
            out.extend([low, high]);
        } else {
            out.extend([high, low]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_peak() {
        let points: Vec<(f64, f64)> = (0..10_000).map(|k| (f64::from(k), if k == 7_777 { 1e6 } else { 0.0 })).collect();
        let thinned = thin(&points, 1_000);
        assert!(thinned.len() <= 1_002);
        assert!(thinned.contains(&(7_777.0, 1e6)));
    }

    #[test]
    fn stairs_turn_at_the_new_value() {
        assert_eq!(stairs(&[(0.0, 1.0), (2.0, 5.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0)]);
        assert!(stairs(&[]).is_empty());
    }

    #[test]
    fn a_name_keeps_its_look() {
        let mut styles = SeriesStyles::of_methods(["a", "b", "a", "c"]);
        styles.reserve(["b", "hop 1"]);
        let given = ["hop 1", "b", "hop 2", "hop 1", "c"].map(|name| styles.of(name).0);
        assert_eq!(given, [0, 1, 2, 0, 2], "c was not reserved");
        assert_eq!(styles.afresh().of("hop 2"), SeriesStyle(0));
    }
}
