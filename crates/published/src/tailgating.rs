//! What `tailgate` and `quartets` share: delays of a small packet behind a large one that dies on
//! its way, and hops' times as rates.

use narrows_units::{BitRate, Framing, Metric};

use crate::spacing::Stamped;
use narrows_probe::PathFacts;
use narrows_probe::outcome::{Confidence, Estimate, Limit, Ranged};
use narrows_probe::probes::Arrival;
use narrows_train::train_method::{arrived_ns, returned_ns};

/// What a hop takes for a large packet, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum HopTime {
    /// So much, in this range.
    Measured { low: f64, time: f64, high: f64 },
    /// At most so much: the hop is too fast beside the one before it, or beside the error.
    AtMost(f64),
}

impl HopTime {
    /// Known to `error`, but never better than framing and few samples leave it.
    pub(super) fn known(time: f64, error: f64) -> Self {
        let half = error.max(LEAST_HALF * time);
        Self::Measured { low: (time - half).max(f64::MIN_POSITIVE), time, high: time + half }
    }

    /// Its time, as well as it is known.
    pub(super) fn time(self) -> f64 {
        match self {
            Self::Measured { time, .. } => time,
            Self::AtMost(most) => most,
        }
    }

    /// Its rate for packets of the path MTU at the IP layer, where packets of `large` IP octets
    /// took that time.
    pub(super) fn estimate(self, framing: Framing, facts: Option<&PathFacts>, large: u16) -> Option<Estimate> {
        let full = full_size(facts);
        let wire = |octets: u16| f64::from(framing.wire_octets(u32::from(octets)));
        let bits = 8e9 * wire(large) * f64::from(full) / wire(full);
        let rate = |time_ns: f64| BitRate::from_bps_f64(bits / time_ns);
        let mut estimate = match self {
            Self::Measured { low, time, high } => {
                Estimate::ip_rate(Metric::IpCapacity, rate(time)?, rate(high)?, rate(low)?)
            }
            Self::AtMost(most) => {
                let least = rate(most)?;
                Estimate::ip_rate(Metric::IpCapacity, least, least, least).at_least(Limit::Clock)
            }
        };
        estimate.confidence = Confidence::Low;
        Some(estimate)
    }
}

/// Octets of a full-size packet: those for which the answer is stated.
fn full_size(facts: Option<&PathFacts>) -> u16 {
    facts.map_or(1500, |facts| facts.path_mtu).max(64)
}

/// The hops' estimates that were measured, not bounded.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as `filter` gives it")]
pub(super) fn measured(hop: &&Estimate) -> bool {
    let range = hop.in_unit();
    range.high > range.low
}

/// The path's estimate, from those of its hops, of which `slowest` is the slowest measured. A hop
/// that was refused may be slower than its bound says; the path is no faster than what was
/// measured.
pub(super) fn of_path(hops: &[Estimate], slowest: &Estimate) -> Estimate {
    let nothing = Ranged::exactly(BitRate::ZERO);
    let slowest = slowest.rate().unwrap_or(nothing);
    let low = hops.iter().filter_map(Estimate::rate).map(|hop| hop.low).min();
    let high = hops.iter().filter(measured).filter_map(Estimate::rate).map(|hop| hop.high).min();
    Estimate::ip_rate(Metric::IpCapacity, slowest.value, low.unwrap_or(slowest.low), high.unwrap_or(slowest.high))
}

/// When a packet was at the peer, or was back, and which of the two.
pub(super) fn stamp(row: &Arrival) -> Option<(i64, Stamped)> {
    arrived_ns(row).map(|stamp| (stamp, Stamped::PeerKind)).or_else(|| Some((returned_ns(row)?, Stamped::Returned)))
}

/// The least time between a large packet's departure and the small one's so far.
pub(super) fn least_sent(so_far: Option<i64>, large: &Arrival, small: &Arrival) -> i64 {
    let sent_ns = small.departed.nanos().saturating_sub(large.departed.nanos());
    so_far.map_or(sent_ns, |least| least.min(sent_ns))
}

/// No hop's time is known better (ours: framing, and what few samples leave open).
const LEAST_HALF: f64 = 0.02;
