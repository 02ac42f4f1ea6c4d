//! Size against round-trip time: the regressions from which per-hop methods take a hop's rate.

use serde::{Deserialize, Serialize};

use crate::picture::axis::{Axis, Extent};
use crate::picture::frame::{Frame, Key};
use crate::picture::quantity::Quantity;
use crate::picture::series::{SeriesStyles, filled};

/// Least round-trip times per packet size, hop by hop, with the fitted lines (`[Downey99]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeRegression {
    /// What the picture shows.
    pub title: String,
    /// One entry per hop, nearest first.
    pub hops: Vec<HopRegression>,
}

/// One hop's points and line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HopRegression {
    /// What the legend says, such as `"hop 2"`.
    pub label: String,
    /// Least round-trip time per size.
    pub least: Vec<SizedRoundTrip>,
    /// All singletons, drawn faintly; may be empty.
    #[serde(default)]
    pub all: Vec<SizedRoundTrip>,
    /// The fitted line.
    #[serde(default)]
    pub fit: Option<SizeFit>,
}

/// A round-trip time of a packet of a size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SizedRoundTrip {
    /// Its IP octets.
    pub ip_octets: u64,
    /// Its round-trip time in nanoseconds.
    pub round_trip_ns: f64,
}

/// A line through round-trip times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SizeFit {
    /// Round-trip time at no octets, in nanoseconds.
    pub intercept_ns: f64,
    /// Nanoseconds per octet.
    pub slope_ns_per_octet: f64,
    /// The hop's rate that the difference to the previous hop's slope gives.
    #[serde(default)]
    pub rate_bps: Option<f64>,
}

/// Most singletons drawn per hop.
const MOST_SINGLETONS: usize = 1_500;

impl SizeRegression {
    pub(crate) fn draw(&self, styles: &mut SeriesStyles) -> Frame {
        let hops = || self.hops.iter().take(MOST_HOPS);
        let sizes = hops().flat_map(|hop| hop.least.iter().chain(&hop.all));
        let x = Extent::of(sizes.map(|point| point.ip_octets as f64));
        let least = Extent::of(hops().flat_map(|hop| hop.least.iter().map(|point| point.round_trip_ns)));
        // Queueing makes singletons that tower above the line; those beyond three times the least
        // stay at the upper edge.
        let all = hops().flat_map(|hop| hop.all.iter().map(|point| point.round_trip_ns));
        let highest = hops().flat_map(|hop| hop.least.iter().map(|point| point.round_trip_ns)).fold(0.0, f64::max);
        let y = all.fold(least, |extent, value| extent.with(value.min(highest * 3.0)));
        let labels: Vec<&str> = hops().map(|hop| hop.label.as_str()).collect();
        let mut frame = Frame::new(
            &self.title,
            format!("Least round-trip time over packet size with fitted lines for {}.", labels.join(", ")),
        );
        let panel = frame.panel(
            Axis::linear("packet size, IP octets", Quantity::Count, x.with(0.0)),
            Axis::linear("round-trip time", Quantity::Time, y.with(0.0)),
            280.0,
        );
        for hop in hops() {
            let style = styles.of(&hop.label);
            let stride = hop.all.len().div_ceil(MOST_SINGLETONS).max(1);
            let cloud = hop.all.iter().step_by(stride);
            for at in panel.all(cloud.map(|point| (point.ip_octets as f64, point.round_trip_ns))) {
                frame.svg().dot(style, at);
            }
            if let Some(fit) = hop.fit {
                let value = |octets: f64| fit.intercept_ns + fit.slope_ns_per_octet * octets;
                // Only the part inside: the edge would bend it.
                let inside = |&(_, ns): &(f64, f64)| (panel.y.low()..=panel.y.high()).contains(&ns);
                let samples = panel.x.samples(100).into_iter().map(|octets| (octets, value(octets)));
                let line = panel.all(samples.filter(inside));
                let ends: Vec<(f64, f64)> = line.first().into_iter().chain(line.last()).copied().collect();
                frame.svg().polyline(&style.line(), &ends);
            }
            for point in hop.least.iter().take(MOST_SINGLETONS) {
                if let Some(at) = panel.at(point.ip_octets as f64, point.round_trip_ns) {
                    let tip = format!("{} octets: {}", point.ip_octets, Quantity::Time.print(point.round_trip_ns));
                    frame.svg().marker(style, false, at, Some(&tip));
                }
            }
            let rate = hop.fit.and_then(|fit| fit.rate_bps);
            let label =
                rate.map_or_else(|| hop.label.clone(), |bps| format!("{}, {}", hop.label, Quantity::Rate.print(bps)));
            let key = if hop.fit.is_some() { Key::Series(style) } else { Key::Mark(filled(style), style.0 % 5) };
            frame.key(key, label);
        }
        if self.hops.len() > MOST_HOPS {
            frame.describe(&format!("{} hops are not drawn.", self.hops.len() - MOST_HOPS));
        }
        if self.hops.iter().all(|hop| hop.least.is_empty() && hop.all.is_empty()) {
            frame.nothing(&panel, "no round trips to show");
        }
        frame
    }
}

const MOST_HOPS: usize = 14;
