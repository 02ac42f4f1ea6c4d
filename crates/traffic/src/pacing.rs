//! How deadlines are waited for.

use serde::Serialize;

/// How the thread that sends waits for a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// Sleep while there is time, spin for the last 200 µs: departures within microseconds, at the
    /// cost of a processor where gaps are short.
    #[default]
    Spin,
    /// Sleep to the deadline: departures some 50 to 100 µs late, short gaps in small bursts, hardly
    /// any processor time.
    Sleep,
}
