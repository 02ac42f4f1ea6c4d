//! The two clocks of a fleet. Their stamps do not subtract.

use narrows_units::Clock;

/// A host's time since it started, sleep included (`CLOCK_BOOTTIME`): leases run on it, because
/// nobody can set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Boot {}

/// The hub's Unix time: timetables run on it, because every host can learn it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hub {}

impl Clock for Boot {
    const NAME: &'static str = "boot";
}

impl Clock for Hub {
    const NAME: &'static str = "hub";
}
