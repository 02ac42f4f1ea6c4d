//! The receiver's window and its autotuning.

/// How the receiver sizes its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiveWindow {
    /// As many octets from the beginning to the end.
    Fixed(u64),
    /// Autotuning up to this limit.
    Autotuned(u64),
}

/// Dynamic right-sizing (Fisk and Feng 2001; Linux `tcp_rcv_space_adjust`): once per round trip the
/// window becomes twice what the application read in it, and more if that was more than in the
/// round before, so that slow start is not held up.
#[derive(Debug)]
pub(super) struct Autotuning {
    octets: u64,
    limit: u64,
    mss: u64,
    /// Smoothed round-trip time as the receiver sees it; `None` before its first sample.
    rtt: Option<f64>,
    round_began: u64,
    round_first: u64,
    /// Octets read in the round before.
    space: u64,
}

/// Window of a new connection (Linux: 65 536 octets with the usual buffer).
const INITIAL_OCTETS: u64 = 65_536;

impl Autotuning {
    pub(super) fn new(window: ReceiveWindow, mss: u64, now: u64) -> Self {
        let (octets, limit) = match window {
            ReceiveWindow::Fixed(octets) => (octets, octets),
            ReceiveWindow::Autotuned(limit) => (INITIAL_OCTETS.min(limit), limit),
        };
        Self {
            // A window below one segment would stop the connection for ever.
            octets: octets.max(mss),
            limit: limit.max(mss),
            mss,
            rtt: None,
            round_began: now,
            round_first: 0,
            space: (10 * mss).min(octets.max(mss)),
        }
    }

    pub(super) fn octets(&self) -> u64 {
        self.octets
    }

    /// A round-trip time from the timestamps option.
    pub(super) fn on_rtt(&mut self, rtt: u64) {
        let sample = rtt as f64;
        self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt + (sample - rtt) / 8.0));
    }

    /// The application has read everything before segment `next`.
    pub(super) fn on_read(&mut self, now: u64, next: u64) {
        if self.octets == self.limit || self.rtt.is_none_or(|rtt| ((now - self.round_began) as f64) < rtt) {
            return;
        }
        let copied = (next - self.round_first) * self.mss;
        if copied > self.space {
            let twice = 2 * copied + 16 * self.mss;
            let growth = u128::from(twice) * u128::from(copied - self.space) / u128::from(self.space);
            let wanted = twice.saturating_add(u64::try_from(2 * growth).unwrap_or(u64::MAX));
            self.octets = self.octets.max(wanted.min(self.limit));
            self.space = copied;
        }
        (self.round_began, self.round_first) = (now, next);
    }
}
