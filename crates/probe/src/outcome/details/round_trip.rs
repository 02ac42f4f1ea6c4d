//! Round trips, and each way of them.

use narrows_units::Delta;
use serde::{Deserialize, Serialize};

use crate::outcome::Diagnostics;

/// Round trips beyond the shortest.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RoundTripFinding {
    /// Half of them were shorter.
    pub median_ns: Delta,
    /// 95 of a hundred were shorter.
    pub p95_ns: Delta,
    /// Each direction alone, where the peer reported when it turned the echoes.
    pub directions: Option<Directions>,
}

/// Both directions of a round trip, as the clocks of both ends have it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Directions {
    /// The peer's clock is ahead of this host's by this.
    pub clock_offset_ns: Delta,
    /// One-way delays and the offset are wrong by no more than this.
    pub clock_error_bound_ns: Delta,
    /// What the remote host says of its clock, where it says anything.
    pub remote_clock: Option<RemoteClock>,
    /// Towards the peer.
    pub forward: Option<DirectionDelays>,
    /// Back from it.
    pub reverse: Option<DirectionDelays>,
    /// Packets lost towards the peer, and on the reverse direction, where it counts them.
    pub lost: Option<(u64, u64)>,
}

/// What a remote host says of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteClock {
    /// It is disciplined from outside.
    pub synchronised: bool,
    /// It is off by no more than this.
    pub error_ns: Delta,
    /// The same of this host's.
    pub near_error_ns: Option<Delta>,
}

/// Delays of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DirectionDelays {
    /// Least, median, 95th percentile and most, with the clocks' offset taken out.
    pub one_way_ns: [Delta; 4],
    /// Above the least: median, 95th percentile and most.
    pub variation_ns: [Delta; 3],
    /// Between successive packets: mean and 95th percentile.
    pub successive_ns: [Delta; 2],
}

impl Directions {
    /// The same for people.
    pub fn tell(&self, diagnostics: &mut Diagnostics) {
        diagnostics.insert("clock_offset_ns", self.clock_offset_ns);
        diagnostics.insert("clock_error_bound_ns", self.clock_error_bound_ns);
        if let Some(clock) = self.remote_clock {
            diagnostics.insert("remote_clock_synchronised", clock.synchronised);
            diagnostics.insert("remote_clock_error_ns", clock.error_ns);
            if let Some(near) = clock.near_error_ns {
                diagnostics.insert("near_clock_error_ns", near);
            }
        }
        for (names, delays) in [(&FORWARD, self.forward), (&REVERSE, self.reverse)] {
            let Some(delays) = delays else { continue };
            let values = delays.one_way_ns.into_iter().chain(delays.variation_ns);
            for (name, value) in names.iter().zip(values.chain(delays.successive_ns)) {
                diagnostics.insert(name, value);
            }
        }
    }
}

const FORWARD: [&str; 9] = [
    "forward_one_way_delay_min_ns",
    "forward_one_way_delay_median_ns",
    "forward_one_way_delay_p95_ns",
    "forward_one_way_delay_max_ns",
    "forward_delay_variation_median_ns",
    "forward_delay_variation_p95_ns",
    "forward_delay_variation_max_ns",
    "forward_successive_variation_mean_ns",
    "forward_successive_variation_p95_ns",
];
const REVERSE: [&str; 9] = [
    "reverse_one_way_delay_min_ns",
    "reverse_one_way_delay_median_ns",
    "reverse_one_way_delay_p95_ns",
    "reverse_one_way_delay_max_ns",
    "reverse_delay_variation_median_ns",
    "reverse_delay_variation_p95_ns",
    "reverse_delay_variation_max_ns",
    "reverse_successive_variation_mean_ns",
    "reverse_successive_variation_p95_ns",
];
