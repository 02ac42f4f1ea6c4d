//! When which measurement ran, and what it sent.

use std::fmt::Write as _;

use narrows_units::Octets;

use super::Spent;
use crate::picture::{Anchor, Svg, escape};

const WIDTH: f64 = 640.0;
const LEFT: f64 = 132.0;
const RIGHT: f64 = 500.0;
const STEP: f64 = 22.0;

/// A bar per measurement over time, as SVG for a page that holds the style.
pub(super) fn timeline(spent: &[Spent]) -> String {
    let whole: f64 = spent.iter().map(|one| one.seconds).sum::<f64>().max(f64::MIN_POSITIVE);
    let across = |seconds: f64| LEFT + (RIGHT - LEFT) * (seconds / whole).clamp(0.0, 1.0);
    let mut svg = Svg::default();
    let mut began = 0.0;
    for (index, one) in spent.iter().enumerate() {
        let top = 6.0 + STEP * index as f64;
        let ended = began + one.seconds;
        svg.line("gr", (LEFT, top + STEP - 3.0), (RIGHT, top + STEP - 3.0));
        svg.text("", Anchor::End, (LEFT - 8.0, top + 13.0), &one.what);
        let end = across(ended).max(across(began) + 2.0);
        let tip = format!("{}: from {began:.1} s to {ended:.1} s", one.what);
        svg.rect("bar c0", (across(began), top + 2.0), (end, top + 15.0), Some(&tip));
        let cost = format!("{:.1} s, {}", one.seconds, Octets::new(one.octets));
        svg.text("so", Anchor::Start, (RIGHT + 8.0, top + 13.0), &cost);
        began = ended;
    }
    let bottom = 6.0 + STEP * spent.len() as f64;
    svg.text("so", Anchor::Start, (LEFT, bottom + 14.0), "0 s");
    svg.text("so", Anchor::End, (RIGHT, bottom + 14.0), &format!("{whole:.1} s"));
    let height = bottom + 22.0;
    let mut out = String::new();
    let name = escape("Time and octets of each measurement");
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "<svg class=\"nw\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{name}\"><title>{name}</title>{}</svg>",
        svg.into_string()
    );
    out
}
