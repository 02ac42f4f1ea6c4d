//! How far stamps can be trusted with the spacing of single packets.

use crate::facts::{HostFacts, PathFacts, StampSource};
use crate::methods::campaign::nanos;

/// Whose stamps a spacing is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stamped {
    /// The far end's: a receiver, or a reflector that sends its stamps along. One direction.
    FarEnd,
    /// This host's, of what came back. Both directions.
    Returned,
}

/// What one spacing may be wrong by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trust {
    /// The clock's step.
    tick_ns: f64,
    /// What one stamp is off by, its own step left out.
    error_ns: f64,
    /// Packets closer than this are seen, or sent back, this far apart.
    floor_ns: f64,
}

impl Trust {
    pub(super) fn new(facts: &PathFacts, stamped: Stamped, source: StampSource) -> Self {
        let (host, source) = match stamped {
            Stamped::FarEnd => (&facts.receiver, facts.receiver.stamp_source),
            Stamped::Returned => (&facts.sender, source),
        };
        let reflector = match stamped {
            Stamped::FarEnd => 0.0,
            Stamped::Returned => nanos(facts.receiver.receive_cost.max(facts.receiver.send_cost)),
        };
        Self {
            tick_ns: nanos(host.clock_resolution),
            error_ns: nanos(host.stamp_error),
            floor_ns: own_floor_ns(host, source).max(reflector),
        }
    }

    /// Relative error of a spacing: a whole tick, or the errors of both stamps.
    pub(super) fn blur(&self, span_ns: f64) -> f64 {
        self.tick_ns.max(std::f64::consts::SQRT_2 * self.error_ns) / span_ns
    }

    /// Whether the host's own cost per packet may have set the spacing.
    pub(super) fn at_floor(&self, span_ns: f64) -> bool {
        self.floor_ns > 0.0 && span_ns <= self.floor_ns / AT_FLOOR
    }

    /// Whether packets that far apart could be told apart at all, so that equal stamps mean that they were held back and handed over
    /// together.
    pub(super) fn resolves(&self, span_ns: f64) -> bool {
        self.blur(span_ns) <= COARSEST
    }
}

fn own_floor_ns(host: &HostFacts, source: StampSource) -> f64 {
    match source {
        StampSource::Simulated | StampSource::User => nanos(host.receive_cost),
        StampSource::Kernel | StampSource::Hardware => 0.0,
    }
}

/// Spacings this near to the host's own are as good as at it (ours, as for trains).
const AT_FLOOR: f64 = 0.95;
/// Spacings blurred by more than this tell no rate (ours): a quarter.
pub(super) const COARSEST: f64 = 0.25;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testbed::real_host;

    #[test]
    fn ticks_errors_and_costs() {
        let us = Duration::from_micros;
        let mut facts = PathFacts::ideal(1500, us(1000));
        facts.sender = real_host(us(2), us(3), us(4));
        facts.receiver = real_host(us(1), us(5), us(6));
        facts.sender.clock_resolution = us(1);
        let returned = Trust::new(&facts, Stamped::Returned, StampSource::Kernel);
        assert!((returned.blur(123_040.0) - 2000.0 * 2f64.sqrt() / 123_040.0).abs() < 1e-12);
        // The reflector reads a packet in 6 us.
        assert!(returned.at_floor(6300.0) && !returned.at_floor(6400.0));
        assert!(returned.resolves(12_304.0) && !returned.resolves(11_000.0));
        let own = Trust::new(&facts, Stamped::FarEnd, StampSource::User);
        assert!(!own.at_floor(1.0), "kernel stamps follow the wire");
        facts.receiver.stamp_source = StampSource::User;
        assert!(Trust::new(&facts, Stamped::FarEnd, StampSource::Kernel).at_floor(6000.0));
    }
}
