//! What the agent asks of its host's clocks. The program answers; tests do it in their own time.

use std::time::Duration;

use narrows_fleet::clock::Boot;
use narrows_units::Stamp;

/// The clocks of a host.
pub trait Clock: Send + Sync {
    /// `CLOCK_BOOTTIME`: leases run on it.
    fn boot(&self) -> Stamp<Boot>;

    /// Unix time in ms, by this host's own clock.
    fn unix_ms(&self) -> i64;

    /// How far [`Clock::unix_ms`] may be off; `None`: nobody disciplines this clock.
    fn error(&self) -> Option<Duration>;
}

/// The hub's time as this agent knows it.
///
/// A clock that is synchronised within a second is believed. Else the last message of the hub that
/// came while we listened says how far this clock is off: it was on its way for less than a second.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HubTime {
    offset_ms: Option<i64>,
}

impl HubTime {
    /// The hub sent a message of this time just now.
    pub(crate) fn heard(&mut self, made_ms: i64, clock: &dyn Clock) {
        self.offset_ms = Some(made_ms - clock.unix_ms());
    }

    /// Unix time of the hub, in ms.
    pub(crate) fn now_ms(self, clock: &dyn Clock) -> i64 {
        let offset_ms = self.offset_ms.filter(|_| !synchronised(clock));
        clock.unix_ms() + offset_ms.unwrap_or(0)
    }

    /// Whether [`Self::now_ms`] is right within a second.
    pub(crate) fn is_known(self, clock: &dyn Clock) -> bool {
        self.offset_ms.is_some() || synchronised(clock)
    }
}

pub(crate) fn synchronised(clock: &dyn Clock) -> bool {
    clock.error().is_some_and(|error| error <= BELIEVED)
}

const BELIEVED: Duration = Duration::from_secs(1);
