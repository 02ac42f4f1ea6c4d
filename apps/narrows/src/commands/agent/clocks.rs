//! This host's clocks, as the agent asks for them.

use std::time::Duration;

use narrows_agent::Clock;
use narrows_fleet::clock::Boot;
use narrows_net::clock;
use narrows_units::Stamp;

pub(super) struct Clocks;

impl Clock for Clocks {
    fn boot(&self) -> Stamp<Boot> {
        Stamp::from_nanos(clock::boot_ns())
    }

    fn unix_ms(&self) -> i64 {
        clock::wall_ns().div_euclid(1_000_000)
    }

    fn error(&self) -> Option<Duration> {
        clock::wall_error()
    }
}
