//! The pipe as an SVG file of its own.

use std::fmt::Write as _;

use super::pipe::{Pipe, Segment};
use crate::picture::{Anchor, Svg, css, escape, shorten};

const WIDTH: f64 = 720.0;
const TOP: f64 = 64.0;
/// Height of a hop's body, and of the slope to the next.
const BODY: f64 = 30.0;
const SLOPE: f64 = 10.0;
/// The pipe's middle, its least half width, and what full width adds to that.
const MIDDLE: f64 = 170.0;
const LEAST: f64 = 8.0;
const MORE: f64 = 122.0;
const TEXT: f64 = 312.0;

impl Pipe {
    /// The drawing as SVG, with its style, for a file that stands alone.
    pub fn svg(&self) -> String {
        let style = format!("<style>{}</style>", css());
        self.drawn(" xmlns=\"http://www.w3.org/2000/svg\"", &style)
    }

    /// The same for a page that has the style.
    pub(crate) fn inline(&self) -> String {
        self.drawn("", "")
    }

    fn drawn(&self, namespace: &str, style: &str) -> String {
        let mut svg = Svg::default();
        svg.text("ti", Anchor::Start, (8.0, 20.0), &shorten(&self.title, 90));
        svg.text("so", Anchor::Start, (8.0, 40.0), &self.scale());
        if self.segments.is_empty() {
            svg.text("so no", Anchor::Start, (8.0, TOP), "no hop answered");
        }
        self.draw_walls(&mut svg);
        for (index, segment) in self.segments.iter().enumerate() {
            draw_body(&mut svg, segment, top(index));
        }
        let height = top(self.segments.len()) + 12.0;
        let mut out = String::new();
        let name = escape(&self.title);
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "<svg class=\"nw\"{namespace} viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{name}\"><title>{name}</title><desc>{}</desc>{style}\
             <rect class=\"bg\" width=\"{WIDTH}\" height=\"{height}\"/>{}</svg>",
            escape(&self.description()),
            svg.into_string(),
        );
        out
    }

    fn description(&self) -> String {
        let hops: Vec<String> =
            self.segments.iter().map(|segment| format!("hop {}: {}", segment.ttl, segment.label)).collect();
        format!("{}. {}", self.scale(), hops.join("; "))
    }

    /// The outline from above to below, both sides.
    fn draw_walls(&self, svg: &mut Svg) {
        let mut right = Vec::new();
        for (index, segment) in self.segments.iter().enumerate() {
            let half = half(segment.drawn);
            right.push((MIDDLE + half, top(index)));
            right.push((MIDDLE + half, top(index) + BODY));
        }
        let left: Vec<(f64, f64)> = right.iter().map(|(x, y)| (2.0 * MIDDLE - x, *y)).collect();
        svg.band("bd c0", &right, &left);
        for pair in right.windows(2).chain(left.windows(2)) {
            if let [from, to] = pair {
                svg.line("ln c0", *from, *to);
            }
        }
    }
}

fn top(index: usize) -> f64 {
    TOP + index as f64 * (BODY + SLOPE)
}

fn half(width: f64) -> f64 {
    LEAST + MORE * width.clamp(0.0, 1.0)
}

fn draw_body(svg: &mut Svg, segment: &Segment, top: f64) {
    let half = half(segment.drawn);
    let tip = format!("hop {}: {}", segment.ttl, segment.label);
    if let Some(free) = segment.free {
        let inside = half * free.clamp(0.0, 1.0);
        svg.rect("bar c2", (MIDDLE - inside, top + 1.0), (MIDDLE + inside, top + BODY - 1.0), Some(&tip));
    }
    if segment.width.is_none() {
        svg.text("so", Anchor::Middle, (MIDDLE, top + 20.0), "?");
    } else if segment.open {
        // A bound: the walls may lie further out.
        for side in [-1.0, 1.0] {
            let at = MIDDLE + side * (half + 9.0);
            svg.line("rs da2", (at, top), (at, top + BODY));
        }
    }
    svg.text("so", Anchor::End, (34.0, top + 20.0), &segment.ttl.to_string());
    let mark = if segment.mark.is_empty() { String::new() } else { format!("  ◀ {}", segment.mark) };
    svg.text("", Anchor::Start, (TEXT, top + 13.0), &shorten(&segment.router, 52));
    svg.text("so", Anchor::Start, (TEXT, top + 28.0), &shorten(&format!("{}{mark}", segment.label), 60));
}
