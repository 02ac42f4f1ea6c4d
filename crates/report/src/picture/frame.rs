//! The frame around a picture: title, panels with axes, legend below them (where it covers no
//! data), descriptions for screen readers.

use std::fmt::Write as _;

use crate::picture::axis::Axis;
use crate::picture::escape::{escape, shorten};
use crate::picture::style;
use crate::picture::svg::{Anchor, SeriesStyle, Svg};

/// Width of every picture, in pixels.
const WIDTH: f64 = 640.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 624.0;
/// Between the lines of the legend.
const LEGEND_STEP: f64 = 18.0;
/// Most entries that a legend lists.
const LEGEND_MOST: usize = 20;
/// Most characters of an entry.
const LABEL_MOST: usize = 44;

/// A picture under construction. What is drawn later lies above.
#[derive(Debug)]
pub(crate) struct Frame {
    title: String,
    summary: String,
    svg: Svg,
    top: f64,
    legend: Vec<(Key, String)>,
}

/// What stands before a legend's text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Key {
    /// A line with a marker.
    Series(SeriesStyle),
    /// A hollow marker.
    Published(SeriesStyle),
    /// A line alone.
    Line(String),
    /// A filled box.
    Area(String),
    /// A dot.
    Dot(SeriesStyle),
    /// A marker outside of any series: class and shape.
    Mark(&'static str, usize),
    /// Nothing: a remark.
    Text,
}

/// A plotting area with its axes.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    top: f64,
    bottom: f64,
}

impl Panel {
    /// Where a point lies, if it has a place; at the edge if it lies beyond.
    pub(crate) fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.down(y)?))
    }

    /// The pixel column of `x`.
    pub(crate) fn across(&self, x: f64) -> Option<f64> {
        Some(LEFT + self.x.place(x)?.clamp(0.0, 1.0) * (RIGHT - LEFT))
    }

    /// The pixel row of `y`.
    pub(crate) fn down(&self, y: f64) -> Option<f64> {
        Some(self.bottom - self.y.place(y)?.clamp(0.0, 1.0) * (self.bottom - self.top))
    }

    /// Pixel rows of the upper and lower edge.
    pub(crate) fn edges(&self) -> (f64, f64) {
        (self.top, self.bottom)
    }

    /// Those of the points that have a place.
    pub(crate) fn all(&self, points: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
        points.into_iter().filter_map(|(x, y)| self.at(x, y)).collect()
    }
}

impl Frame {
    pub(crate) fn new(title: &str, summary: String) -> Self {
        let mut svg = Svg::default();
        svg.text("ti", Anchor::Start, (8.0, 20.0), &shorten(title, 84));
        Self { title: title.to_owned(), summary, svg, top: 30.0, legend: Vec::new() }
    }

    /// Adds a plotting area of this height below what is there, with grid, ticks and axis titles.
    pub(crate) fn panel(&mut self, x: Axis, y: Axis, height: f64) -> Panel {
        let top = self.top + 24.0;
        let panel = Panel { x, y, top, bottom: top + height };
        self.svg.text("so", Anchor::Start, (8.0, top - 11.0), &shorten(&panel.y.title, 96));
        for tick in &panel.y.ticks {
            if let Some(down) = panel.down(tick.at) {
                self.svg.line("gr", (LEFT, down), (RIGHT, down));
                self.svg.text("so", Anchor::End, (LEFT - 7.0, down + 4.0), &tick.label);
            }
        }
        for tick in &panel.x.ticks {
            if let Some(across) = panel.across(tick.at) {
                self.svg.line("gr", (across, top), (across, panel.bottom));
                self.svg.text("so", Anchor::Middle, (across, panel.bottom + 17.0), &tick.label);
            }
        }
        self.svg.line("ax", (LEFT, panel.bottom), (RIGHT, panel.bottom));
        if !panel.y.is_logarithmic()
            && panel.y.low() < 0.0
            && panel.y.high() > 0.0
            && let Some(zero) = panel.down(0.0)
        {
            self.svg.line("ax", (LEFT, zero), (RIGHT, zero));
        }
        self.svg.text("so", Anchor::End, (RIGHT, panel.bottom + 35.0), &shorten(&panel.x.title, 96));
        self.top = panel.bottom + 40.0;
        panel
    }

    pub(crate) fn svg(&mut self) -> &mut Svg {
        &mut self.svg
    }

    /// Adds a line to the legend, once.
    pub(crate) fn key(&mut self, key: Key, label: impl Into<String>) {
        let entry = (key, label.into());
        if !self.legend.contains(&entry) {
            self.legend.push(entry);
        }
    }

    /// A vertical reference line with its entry in the legend.
    pub(crate) fn vertical(&mut self, panel: &Panel, class: &str, x: f64, label: String) {
        if let Some(across) = panel.across(x) {
            self.svg.line(class, (across, panel.top), (across, panel.bottom));
            self.key(Key::Line(class.to_owned()), label);
        }
    }

    /// A horizontal reference line with its entry in the legend.
    pub(crate) fn horizontal(&mut self, panel: &Panel, class: &str, y: f64, label: String) {
        if let Some(down) = panel.down(y) {
            self.svg.line(class, (LEFT, down), (RIGHT, down));
            self.key(Key::Line(class.to_owned()), label);
        }
    }

    /// Says in the middle of the panel that there is nothing to draw.
    pub(crate) fn nothing(&mut self, panel: &Panel, text: &str) {
        let middle = f64::midpoint(panel.top, panel.bottom);
        self.svg.text("so no", Anchor::Middle, (f64::midpoint(LEFT, RIGHT), middle), text);
    }

    /// Adds a sentence to the description for screen readers.
    pub(crate) fn describe(&mut self, sentence: &str) {
        self.summary.push(' ');
        self.summary.push_str(sentence);
    }

    /// The finished picture. With `style` it stands alone; without, the page has the rules.
    pub(crate) fn finish(mut self, alone: bool) -> String {
        let height = self.draw_legend();
        let mut out = String::new();
        let name = escape(&self.title);
        // In HTML the element is known by its name.
        let namespace = if alone { " xmlns=\"http://www.w3.org/2000/svg\"" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "<svg class=\"nw\"{namespace} viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{name}\"><title>{name}</title><desc>{}</desc>",
            escape(self.summary.trim())
        );
        if alone {
            let _ = write!(
                out,
                "<style>{}</style><rect class=\"bg\" width=\"{WIDTH}\" height=\"{height}\"/>",
                style::css()
            );
        }
        out.push_str(&self.svg.into_string());
        out.push_str("</svg>");
        out
    }

    fn draw_legend(&mut self) -> f64 {
        let mut legend = std::mem::take(&mut self.legend);
        let left_out = legend.len().saturating_sub(LEGEND_MOST);
        legend.truncate(LEGEND_MOST);
        let (mut x, mut y) = (LEFT, self.top + 14.0);
        let any = !legend.is_empty();
        for (key, label) in legend {
            let label = shorten(&label, LABEL_MOST);
            let before = if key == Key::Text { 0.0 } else { 30.0 };
            let width = before + text_width(&label) + 16.0;
            if x > LEFT && x + width > RIGHT + 10.0 {
                (x, y) = (LEFT, y + LEGEND_STEP);
            }
            self.draw_key(&key, x, y - 4.0);
            self.svg.text("", Anchor::Start, (x + before, y), &label);
            x += width;
        }
        if left_out > 0 {
            y += LEGEND_STEP;
            self.svg.text("so no", Anchor::Start, (LEFT, y), &format!("and {left_out} more"));
        }
        (if any { y } else { self.top }) + 12.0
    }

    fn draw_key(&mut self, key: &Key, x: f64, y: f64) {
        let (from, to, middle) = ((x, y), (x + 24.0, y), (x + 12.0, y));
        match key {
            Key::Series(style) => {
                self.svg.line(&style.line(), from, to);
                self.svg.marker(*style, false, middle, None);
            }
            Key::Published(style) => self.svg.marker(*style, true, middle, None),
            Key::Line(class) => self.svg.line(class, from, to),
            Key::Area(class) => self.svg.rect(class, (x, y - 5.0), (x + 24.0, y + 5.0), None),
            Key::Dot(style) => self.svg.dot(*style, middle),
            Key::Text => {}
            Key::Mark(class, shape) => self.svg.shape(class, *shape, middle, 3.6, None),
        }
    }
}

/// About how wide the text is at 12 pixels. Fonts differ; this errs on the wide side of the usual
/// sans-serif ones.
fn text_width(text: &str) -> f64 {
    text.chars()
        .map(|c| match c {
            'i' | 'l' | 'j' | '.' | ',' | ':' | '\'' | '|' | ' ' => 4.0,
            'm' | 'w' | 'M' | 'W' | '%' => 10.5,
            c if c < '\u{1100}' => 7.2,
            _ => 12.5,
        })
        .sum()
}
