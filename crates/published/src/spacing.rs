//! How far stamps can be trusted with the spacing of single packets.

use narrows_units::{BitRate, nanos_f64};

use narrows_probe::facts::{HostFacts, PathFacts, StampSource};

/// Whose stamps a spacing is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stamped {
    /// The peer's: a receiver, or a reflector that sends its stamps along. One direction.
    PeerKind,
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
    /// Nominal rate of the interface through which the packets left, bit/s; zero if unknown.
    interface: f64,
}

impl Trust {
    pub(super) fn new(facts: &PathFacts, stamped: Stamped, source: StampSource) -> Self {
        let (host, source) = match stamped {
            Stamped::PeerKind => (&facts.receiver, facts.receiver.stamp_source),
            Stamped::Returned => (&facts.sender, source),
        };
        let reflector = match stamped {
            Stamped::PeerKind => 0.0,
            Stamped::Returned => nanos_f64(facts.receiver.receive_cost.max(facts.receiver.send_cost)),
        };
        Self {
            tick_ns: nanos_f64(host.clock_resolution),
            error_ns: nanos_f64(host.stamp_error),
            floor_ns: own_floor_ns(host, source).max(reflector),
            interface: facts.sender.interface_rate.map_or(0.0, BitRate::as_f64),
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

    /// Whether a host rather than a link set the spacing of packets of so many octets: they share a
    /// stamp, come at the host's own pace, or faster than they can have left the sender. Such
    /// packets may have been held back and handed over together.
    pub(super) fn by_host(&self, wire_octets: f64, span_ns: f64) -> bool {
        span_ns <= 0.0 || self.at_floor(span_ns) || 8e9 * wire_octets > AT_INTERFACE * self.interface_or_any() * span_ns
    }

    fn interface_or_any(&self) -> f64 {
        if self.interface > 0.0 { self.interface } else { f64::INFINITY }
    }

    /// A spacing for the mean of those that differ from it by no more than a tick: rounding spreads
    /// one spacing over two readings, and their mean is what was rounded.
    pub(super) fn unrounded(&self, span_ns: f64, all_ns: &[f64]) -> f64 {
        let alike: Vec<f64> =
            all_ns.iter().copied().filter(|other| (other - span_ns).abs() <= self.tick_ns * 1.01).collect();
        if self.tick_ns > WORTH_IT * span_ns { narrows_stat::mean(&alike).unwrap_or(span_ns) } else { span_ns }
    }

    /// Whether packets that far apart could be told apart at all, so that equal stamps mean that
    /// they were held back and handed over together.
    pub(super) fn resolves(&self, span_ns: f64) -> bool {
        self.blur(span_ns) <= COARSEST
    }
}

fn own_floor_ns(host: &HostFacts, source: StampSource) -> f64 {
    match source {
        StampSource::Simulated | StampSource::User => nanos_f64(host.receive_cost),
        StampSource::Kernel | StampSource::Hardware => 0.0,
    }
}

/// More than the interface's rate by this factor is faster than packets can have left (ours).
const AT_INTERFACE: f64 = 1.1;
/// Ticks above this share of the spacing are worth a mean (ours).
const WORTH_IT: f64 = 0.002;
/// Spacings this near to the host's own are as good as at it (ours, as for trains).
const AT_FLOOR: f64 = 0.95;
/// The rate that the mean spacing leaves, wire bit/s: what a path carries at least. Other traffic
/// lengthens spacings on the mean, and what it shortens behind the narrow link it lengthens as
/// often (`[Dovrolis01]`: the asymptotic dispersion rate is below capacity); twice the mean's
/// standard error is taken off. `None` without four spacings.
pub(super) fn mean_bound(wire_octets: f64, spans_ns: &[f64]) -> Option<f64> {
    if spans_ns.len() < 4 {
        return None;
    }
    let mean = narrows_stat::mean(spans_ns)?;
    let spread = narrows_stat::variance_sample(spans_ns).unwrap_or(0.0).sqrt();
    let high = mean + 2.0 * spread / (spans_ns.len() as f64).sqrt();
    (high > 0.0).then(|| 8e9 * wire_octets / high)
}

/// Whether spacings on the mean are so much longer than those at the rate at which they crowd that
/// the crowd is likely to be that of a faster link behind the narrow one, whose queue held the
/// first packet up: that link makes up for each short spacing with a long one. Single long spacings
/// count for four of the crowd's at most.
pub(super) fn outruns(wire_rate: f64, wire_octets: f64, spans_ns: &[f64]) -> bool {
    let crowd = 8e9 * wire_octets / wire_rate;
    let held: Vec<f64> = spans_ns.iter().map(|span| span.min(4.0 * crowd)).collect();
    narrows_stat::mean(&held).is_some_and(|mean| mean > OUTRUNS * crowd)
}

/// Ours: where half of the pairs are at the narrow link's rate and one packet of others parts each
/// of the rest, it is 1.5.
const OUTRUNS: f64 = 1.7;

/// Spacings blurred by more than this tell no rate (ours): a quarter.
pub(super) const COARSEST: f64 = 0.25;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use narrows_probe::testing::closed_form_world::real_host;

    /// Pairs at 12 us, as many parted by one packet; and pairs drawn together to 6 us, as many
    /// pushed apart to 18.
    #[test]
    fn a_crowd_of_short_spacings_that_long_ones_make_up_for_outruns() {
        let wire = 1500.0;
        let parted = [12_000.0, 24_000.0].repeat(8);
        assert!(!outruns(1e9, wire, &parted));
        let drawn = [6_000.0, 18_000.0].repeat(8);
        assert!(outruns(2e9, wire, &drawn));
        let one_long = [&[12_000.0; 15][..], &[9e9]].concat();
        assert!(!outruns(1e9, wire, &one_long));
    }

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
        facts.sender.interface_rate = Some(BitRate::from_gbps(1));
        let wired = Trust::new(&facts, Stamped::PeerKind, StampSource::Kernel);
        // 1538 octets take 12.304 us at 1 Gbit/s.
        assert!(wired.by_host(1538.0, 11_000.0) && !wired.by_host(1538.0, 12_000.0));
        assert!(wired.by_host(1538.0, 0.0) && returned.by_host(1538.0, 6000.0));
        assert!(
            (returned.unrounded(12_000.0, &[12_000.0, 12_000.0, 13_000.0, 20_000.0]) - 37_000.0 / 3.0).abs() < 1e-6
        );
        // 10 us on the mean, all alike: 1250 octets in 10 us are 1 Gbit/s.
        assert!((mean_bound(1250.0, &[10_000.0; 9]).unwrap() - 1e9).abs() < 1.0);
        assert_eq!(mean_bound(1250.0, &[10_000.0; 3]), None);
        let mixed = mean_bound(1250.0, &[10_000.0, 10_000.0, 20_000.0, 20_000.0]).unwrap();
        assert!((mixed - 1e13 / (15_000.0 + 33_333_333.333f64.sqrt())).abs() < 1.0, "{mixed}");
        assert!(returned.resolves(12_304.0) && !returned.resolves(11_000.0));
        let own = Trust::new(&facts, Stamped::PeerKind, StampSource::User);
        assert!(!own.at_floor(1.0), "kernel stamps follow the wire");
        facts.receiver.stamp_source = StampSource::User;
        assert!(Trust::new(&facts, Stamped::PeerKind, StampSource::Kernel).at_floor(6000.0));
    }
}
