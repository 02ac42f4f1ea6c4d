//! The whole path as one pipe between two hosts.

use std::fmt::Write as _;

use crate::picture::{Anchor, Svg, escape, shorten};

/// A path of which only the whole is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WholePath {
    /// The host at its end.
    pub(super) there: String,
    /// What is known of it, in words.
    pub(super) label: String,
    /// Its capacity, bit/s.
    pub(super) capacity: Option<u64>,
    /// The truth may be more.
    pub(super) open: bool,
    /// What is free of it, bit/s.
    pub(super) free: Option<u64>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 122.0;
/// Where the pipe begins and ends, and its middle.
const LEFT: f64 = 118.0;
const RIGHT: f64 = 522.0;
const MIDDLE: f64 = 46.0;
/// Half its height at no capacity, and what the highest one adds.
const LEAST: f64 = 6.0;
const MORE: f64 = 30.0;
/// Rates of the scale, as powers of ten.
const DECADES: (f64, f64) = (6.0, 11.0);

impl WholePath {
    /// As SVG for a page that holds the style.
    pub(super) fn svg(&self) -> String {
        let mut svg = Svg::default();
        for (left, name) in [(8.0, "this host"), (RIGHT, self.there.as_str())] {
            svg.rect("zone", (left, MIDDLE - 22.0), (left + LEFT - 8.0, MIDDLE + 22.0), None);
            svg.text("", Anchor::Middle, (left + (LEFT - 8.0) / 2.0, MIDDLE + 4.0), &shorten(name, 17));
        }
        self.draw_pipe(&mut svg);
        svg.text("", Anchor::Middle, (WIDTH / 2.0, MIDDLE + 54.0), &shorten(&self.label, 96));
        let free = if self.free.is_some() { "; filled: what is free now" } else { "" };
        let scale = format!("height: capacity, logarithmic, 1 Mbit/s to 100 Gbit/s{free}");
        svg.text("so", Anchor::Middle, (WIDTH / 2.0, MIDDLE + 71.0), &scale);
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "<svg class=\"nw\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" \
             aria-label=\"The path\"><title>The path</title><desc>{}</desc>{}</svg>",
            escape(&format!("From this host to {}: {}", self.there, self.label)),
            svg.into_string()
        );
        out
    }

    fn draw_pipe(&self, svg: &mut Svg) {
        let place = |bps: u64| ((bps.max(1) as f64).log10() - DECADES.0) / (DECADES.1 - DECADES.0);
        let half = LEAST + MORE * self.capacity.map_or(0.5, |bps| place(bps).clamp(0.0, 1.0));
        let walls = [-1.0, 1.0].map(|side| [(LEFT, MIDDLE + side * half), (RIGHT, MIDDLE + side * half)]);
        if self.capacity.is_none() {
            for [from, to] in walls {
                svg.line("rs da2", from, to);
            }
            svg.text("so", Anchor::Middle, (WIDTH / 2.0, MIDDLE + 4.0), "not known");
            return;
        }
        svg.band("bd c0", &walls[0], &walls[1]);
        if let Some((free, capacity)) = self.free.zip(self.capacity) {
            let inside = half * (free as f64 / capacity.max(1) as f64).clamp(0.0, 1.0);
            svg.rect("bar c2", (LEFT, MIDDLE - inside), (RIGHT, MIDDLE + inside), Some("free now"));
        }
        for wall in walls {
            // Of a bound the walls may lie further out.
            svg.line(if self.open { "ln c0 da2" } else { "ln c0" }, wall[0], wall[1]);
        }
    }
}
