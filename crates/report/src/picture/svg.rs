//! A small writer of SVG: elements with escaped text and short numbers.

use std::fmt::Write as _;

use crate::picture::escape::escape;
use crate::picture::style::COLOURS;

/// Elements, in the order in which they are painted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Svg {
    out: String,
}

/// Where text is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// How one series looks: colour, shape and dash follow from its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeriesStyle(pub(crate) usize);

impl SeriesStyle {
    pub(crate) fn colour(self) -> usize {
        self.0 % COLOURS
    }

    /// Lines beyond the colours are dashed.
    pub(crate) fn dash(self) -> &'static str {
        match self.0 / COLOURS {
            0 => "",
            1 => " da1",
            _ => " da2",
        }
    }

    /// Classes of a line.
    pub(crate) fn line(self) -> String {
        format!("ln c{}{}", self.colour(), self.dash())
    }
}

impl Svg {
    pub(crate) fn into_string(self) -> String {
        self.out
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = write!(
            self.out,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1)
        );
    }

    /// A rectangle; a negative extent is drawn towards the other side.
    pub(crate) fn rect(&mut self, class: &str, from: (f64, f64), to: (f64, f64), tip: Option<&str>) {
        let (left, top) = (from.0.min(to.0), from.1.min(to.1));
        let _ = write!(
            self.out,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            number(left),
            number(top),
            number((from.0 - to.0).abs()),
            number((from.1 - to.1).abs())
        );
        self.close("rect", tip);
    }

    /// A line through the points; nothing for fewer than two.
    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() >= 2 {
            let _ = write!(self.out, "<path class=\"{class}\" d=\"{}\"/>", steps(points));
        }
    }

    /// The area between `upper` and `lower`, which share their x.
    pub(crate) fn band(&mut self, class: &str, upper: &[(f64, f64)], lower: &[(f64, f64)]) {
        if upper.len() >= 2 && lower.len() >= 2 {
            let around: Vec<(f64, f64)> = upper.iter().chain(lower.iter().rev()).copied().collect();
            let _ = write!(self.out, "<path class=\"{class}\" d=\"{}Z\"/>", steps(&around));
        }
    }

    /// A marker in the look's shape.
    pub(crate) fn marker(&mut self, style: SeriesStyle, hollow: bool, at: (f64, f64), tip: Option<&str>) {
        let filling = if hollow { " ho" } else { "" };
        self.shape(&format!("mk c{}{filling}", style.colour()), style.0 % 5, at, 3.6, tip);
    }

    /// A small dot, for clouds of singletons.
    pub(crate) fn dot(&mut self, style: SeriesStyle, at: (f64, f64)) {
        let _ = write!(
            self.out,
            "<circle class=\"sm fa c{}\" cx=\"{}\" cy=\"{}\" r=\"1.6\"/>",
            style.colour(),
            number(at.0),
            number(at.1)
        );
    }

    /// Shapes: 0 circle, 1 square, 2 triangle, 3 diamond, 4 triangle upside down, others a cross.
    pub(crate) fn shape(&mut self, class: &str, shape: usize, at: (f64, f64), size: f64, tip: Option<&str>) {
        let (x, y) = at;
        if shape == 0 {
            let _ = write!(
                self.out,
                "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"",
                number(x),
                number(y),
                number(size)
            );
            self.close("circle", tip);
            return;
        }
        let (s, t) = (size * 0.92, size * 1.25);
        let path = match shape {
            1 => steps(&[(x - s, y - s), (x + s, y - s), (x + s, y + s), (x - s, y + s)]) + "Z",
            2 => steps(&[(x, y - t), (x + t, y + s), (x - t, y + s)]) + "Z",
            3 => steps(&[(x, y - t), (x + t, y), (x, y + t), (x - t, y)]) + "Z",
            4 => steps(&[(x, y + t), (x + t, y - s), (x - t, y - s)]) + "Z",
            _ => steps(&[(x - s, y - s), (x + s, y + s)]) + &steps(&[(x - s, y + s), (x + s, y - s)]),
        };
        let _ = write!(self.out, "<path class=\"{class}\" d=\"{path}\"");
        self.close("path", tip);
    }

    pub(crate) fn text(&mut self, class: &str, anchor: Anchor, at: (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let _ = write!(
            self.out,
            "<text{class}{anchor} x=\"{}\" y=\"{}\">{}</text>",
            number(at.0),
            number(at.1),
            escape(text)
        );
    }

    fn close(&mut self, tag: &str, tip: Option<&str>) {
        match tip {
            Some(tip) => {
                let _ = write!(self.out, "><title>{}</title></{tag}>", escape(tip));
            }
            None => self.out.push_str("/>"),
        }
    }
}

fn steps(points: &[(f64, f64)]) -> String {
    let mut out = String::with_capacity(points.len() * 12);
    for (index, &(x, y)) in points.iter().enumerate() {
        let _ = write!(out, "{}{} {}", if index == 0 { 'M' } else { 'L' }, number(x), number(y));
    }
    out
}

/// A coordinate to a tenth of a pixel. What has none (it cannot happen for values that an axis
/// placed) becomes zero: an SVG with "NaN" in it shows nothing at all.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{:.1}", value.clamp(-1e5, 1e5));
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_finite() {
        for (value, text) in
            [(12.0, "12"), (12.34, "12.3"), (-0.01, "0"), (f64::NAN, "0"), (f64::INFINITY, "0"), (1e9, "100000")]
        {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn text_is_escaped() {
        let mut svg = Svg::default();
        svg.text("", Anchor::End, (1.0, 2.0), "</text><script>");
        svg.shape("x", 3, (0.0, 0.0), 3.0, Some("a<b"));
        let text = svg.into_string();
        assert!(text.starts_with("<text text-anchor=\"end\" x=\"1\" y=\"2\">&lt;/text&gt;&lt;script&gt;</text>"));
        assert!(text.ends_with("<title>a&lt;b</title></path>"));
    }
}
