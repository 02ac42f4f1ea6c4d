//! The line on which trains of two rates lie (ours).
//!
//! A train of rate `r` leaves a FIFO link of capacity `C` beside other traffic `x` at
//! `r C / (r + x)`, so that `r / left = (r + x) / C`: a straight line in `r`.

use narrows_stat::{mean, variance_sample};

/// Trains of one rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// Rate with which they left, bit/s.
    pub(super) sent: f64,
    /// Arrival time over departure time, and its standard error.
    pub(super) slowed: f64,
    pub(super) scatter: f64,
    pub(super) trains: usize,
}

impl Point {
    /// Of the rates at which trains were sent and came; `None` for fewer than `least`.
    pub(super) fn of(trains: &[(f64, f64)], least: usize) -> Option<Self> {
        let sent: Vec<f64> = trains.iter().map(|(sent, _)| *sent).collect();
        let sent = mean(&sent).filter(|sent| sent.is_finite())?;
        // As if all had left at the one rate.
        let slowed: Vec<f64> = trains.iter().map(|(_, came)| sent / came).collect();
        let scatter = (variance_sample(&slowed)? / slowed.len() as f64).sqrt();
        (trains.len() >= least).then_some(Self { sent, slowed: mean(&slowed)?, scatter, trains: trains.len() })
    }
}

/// `slowed = (sent + traffic) / capacity`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) capacity: f64,
    pub(super) traffic: f64,
}

impl Line {
    pub(super) fn through(fast: Point, slow: Point) -> Option<Self> {
        let capacity = (fast.sent - slow.sent) / (fast.slowed - slow.slowed);
        let line = Self { capacity, traffic: slow.slowed * capacity - slow.sent };
        (capacity.is_finite() && capacity > 0.0).then_some(line)
    }
}
