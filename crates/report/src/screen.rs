//! Live screens: what a run has told so far, as styled lines of a terminal of a given size.
//!
//! [`Model`] takes in [`Timed`](narrows_probe::Timed) events and gives a [`Screen`]. It is pure:
//! the same events give the same lines, and nothing here knows a terminal. Who paints gives each
//! [`Tone`] a colour.
//!
//! Rules common to all screens: the first row names program, peer, direction and time; the last
//! two rows tell cost and keys. Columns are fixed, so that nothing jumps when a figure grows. What
//! is not known is blank or `-`, never 0.

mod canvas;
mod chart;
mod figures;
mod hops;
mod model;
mod over;
pub mod picture;
#[cfg(test)]
mod runs;
mod stages;
mod state;
#[cfg(test)]
mod tests;
mod throughput;
mod watch;

pub use canvas::{Screen, Tone};
pub use model::Model;
use narrows_units::Metric;

/// Smallest terminal that a screen is laid out for: columns and rows. Below it there is one line.
pub const LEAST: (u16, u16) = (60, 16);

/// How a screen is to look, and where in it the user is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the view")]
pub struct ScreenView {
    /// Nothing beyond ASCII.
    pub ascii: bool,
    /// What lies over the screen.
    pub over: Over,
    /// The view stands still while the measurement goes on.
    pub frozen: bool,
    /// The next stage waits until the user says so.
    pub paused: bool,
    /// The user asked for the end.
    pub ending: bool,
    /// The hop whose details are shown, from the first; or the first line shown of a list.
    pub selected: usize,
    /// Addresses instead of names.
    pub addresses: bool,
}

/// What lies over a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Over {
    /// Nothing.
    #[default]
    Nothing,
    /// Why results might mislead.
    Doubts,
    /// The keys.
    Help,
}

/// A peer's text, without what could move a cursor or turn the text around it.
pub(crate) fn printable(text: &str) -> String {
    let harmless = |c: char| {
        !c.is_control() && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    text.chars().map(|c| if harmless(c) { c } else { '?' }).collect()
}

/// A metric, in at most fourteen columns.
fn name(metric: Metric) -> &'static str {
    match metric {
        Metric::TcpStreamsToFill => "TCP, streams",
        other => crate::text::name(other),
    }
}
