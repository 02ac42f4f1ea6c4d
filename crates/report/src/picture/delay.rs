//! One-way delays of a train or stream, and the trend that a method saw in them.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::picture::axis::{Axis, Extent};
use crate::picture::frame::{Frame, Key, Panel};
use crate::picture::quantity::Quantity;
use crate::picture::series::{SeriesStyles, thin};
use crate::picture::svg::SeriesStyle;

/// One-way delays of the packets of one train or stream. The clocks' offset is unknown, so delays
/// are relative to the least.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DelayTrend {
    /// What the picture shows.
    pub title: String,
    /// Packets that arrived.
    pub packets: Vec<DelayedPacket>,
    /// Numbers of packets that were lost.
    #[serde(default)]
    pub lost: Vec<u64>,
    /// The groups whose medians were tested.
    #[serde(default)]
    pub groups: Vec<DelayGroup>,
    /// What the method concluded.
    #[serde(default)]
    pub trend: Option<Trend>,
    /// The tests behind that.
    #[serde(default)]
    pub tests: Vec<TrendTest>,
}

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DelayedPacket {
    /// Its number within the train, from 0.
    pub packet: u64,
    /// Its one-way delay with an unknown offset, in nanoseconds.
    pub delay_ns: i64,
}

/// Consecutive packets whose median stands for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DelayGroup {
    /// Its first packet.
    pub first: u64,
    /// Its last packet.
    pub last: u64,
    /// The median of its delays, with the same offset as the packets'.
    pub median_ns: i64,
}

/// Whether delays rise along a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// They do: the rate is above what is available.
    Increasing,
    /// They do not.
    None,
    /// The tests disagree or lie between their thresholds.
    Ambiguous,
}

/// A trend test with its thresholds, such as the pairwise comparison test (`[SLoPS02]` §IV).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrendTest {
    /// Its name.
    pub name: String,
    /// Its statistic.
    pub value: f64,
    /// From here on it says "increasing".
    pub increasing_above: f64,
    /// Below it says "no trend".
    pub none_below: f64,
}

impl DelayTrend {
    pub(crate) fn draw(&self, _looks: &mut SeriesStyles) -> Frame {
        let delays = self.packets.iter().map(|packet| packet.delay_ns);
        let medians = self.groups.iter().map(|group| group.median_ns);
        let least = delays.chain(medians).min().unwrap_or(0);
        // In floating point, so that no pair of stamps can overflow.
        let relative = |delay: i64| delay as f64 - least as f64;
        let numbers = self.packets.iter().map(|packet| packet.packet as f64);
        let x = Extent::of(numbers.chain(self.lost.iter().map(|&packet| packet as f64)));
        let y = Extent::of(self.packets.iter().map(|packet| relative(packet.delay_ns)));
        let mut frame = Frame::new(&self.title, self.summary());
        let panel = frame.panel(
            Axis::linear("packet", Quantity::Count, x),
            Axis::linear("one-way delay above the least", Quantity::Time, y.with(0.0).with(1_000.0)),
            250.0,
        );
        let line = panel.all(self.packets.iter().map(|packet| (packet.packet as f64, relative(packet.delay_ns))));
        let line = thin(&line, 1_200);
        frame.svg().polyline("rs fa", &line);
        for &at in &line {
            frame.svg().dot(SeriesStyle(0), at);
        }
        if !line.is_empty() {
            frame.key(Key::Dot(SeriesStyle(0)), "packets");
        }
        self.draw_groups(&mut frame, &panel, relative);
        self.draw_lost(&mut frame, &panel);
        if let Some(trend) = self.trend {
            let colour = match trend {
                Trend::Increasing => 1,
                Trend::None => 2,
                Trend::Ambiguous => 4,
            };
            frame.key(
                Key::Mark(crate::picture::series::filled(SeriesStyle(colour)), 1),
                format!("verdict: {}", trend.words()),
            );
        }
        for test in self.tests.iter().take(4) {
            frame.key(Key::Text, test.words());
        }
        if self.packets.is_empty() {
            frame.nothing(&panel, "no packets to show");
        }
        frame
    }

    fn summary(&self) -> String {
        let mut text = format!(
            "One-way delays of {} packets, {} lost, in {} groups.",
            self.packets.len(),
            self.lost.len(),
            self.groups.len()
        );
        if let Some(trend) = self.trend {
            let _ = write!(text, " Verdict: {}.", trend.words());
        }
        for test in self.tests.iter().take(4) {
            let _ = write!(text, " {}.", test.words());
        }
        text
    }

    fn draw_groups(&self, frame: &mut Frame, panel: &Panel, relative: impl Fn(i64) -> f64) {
        let class = format!("ln c{}", SeriesStyle(1).colour());
        let mut middles = Vec::new();
        for group in self.groups.iter().take(500) {
            let median = relative(group.median_ns);
            let ends = panel.at(group.first as f64, median).zip(panel.at(group.last as f64, median));
            if let Some((from, to)) = ends {
                frame.svg().line(&class, from, to);
                middles.push((f64::midpoint(from.0, to.0), from.1));
            }
        }
        if !middles.is_empty() {
            let thin = format!("ln th da2 c{}", SeriesStyle(1).colour());
            frame.svg().polyline(&thin, &middles);
            frame.key(Key::Line(class), "medians of groups");
        }
    }

    fn draw_lost(&self, frame: &mut Frame, panel: &Panel) {
        let (top, bottom) = panel.edges();
        for &packet in self.lost.iter().take(500) {
            if let Some(across) = panel.across(packet as f64) {
                frame.svg().shape("rf", 9, (across, top + 8.0), 3.5, None);
                frame.svg().line("rs fa", (across, top + 12.0), (across, bottom));
            }
        }
        if !self.lost.is_empty() {
            frame.key(Key::Mark("rf", 9), format!("lost: {}", self.lost.len()));
        }
    }
}

impl Trend {
    const fn words(self) -> &'static str {
        match self {
            Self::Increasing => "increasing",
            Self::None => "no trend",
            Self::Ambiguous => "ambiguous",
        }
    }
}

impl TrendTest {
    fn words(&self) -> String {
        use crate::picture::quantity::significant;
        format!(
            "{} {} (none < {}, increasing > {})",
            self.name,
            significant(self.value, 3),
            significant(self.none_below, 3),
            significant(self.increasing_above, 3)
        )
    }
}
