//! Which families of methods two hosts can carry, and up to what rate: the inequalities of
//! `[Jin03a]` §4, generalised.
//!
//! Symbols: `L` packet, `R` rate, `g = 8L/R` packet time, `e` accepted relative timing error (a
//! tenth), `σ` noise of receive stamps (99th percentile less median), `δ` resolution of the clock,
//! `ts` cost of one reading, `I` period of interrupt coalescing (nothing to stamps of the card),
//! `J` noise of departures.
//!
//! | family | condition | usable up to |
//! |---|---|---|
//! | pairs | `g ≥ max(δ, σ, I)/e`; stamps of the program itself: also `2 ts + 2 calls` | `8L·e / max(…)` |
//! | gaps | as pairs, at both ends | `8L·e / max(…, J)` |
//! | variable sizes | least residual `s` of the minimum over `n` probes: `8ΔS/R ≥ k·s` | `8ΔS / (k·s)`, `s² = (2σ)² + (I/√n)²` |
//! | streams | one send per gap, the sender 1.1 times as fast as what is free | `min(8L/g_min, host/1.1)` |
//! | chirps | pairs, at the sender too, and neighbours that differ: `g(1 - 1/γ) ≥ δ/e` | the least |
//! | trains | cars of `m` packets with `m·g ≥ max(δ, ts + call, I, σ)/e` | the hosts |
//! | loads | nothing but the hosts | the hosts |
//! | round trips | `σ` far below the effect: 10 µs of 100 | no rate |
//!
//! Without stamps of the card no family of single spacings is better than *degraded* on a card that
//! has no wire.

mod rows;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::BitRate;
use serde::Serialize;

use narrows_probe::facts::{HostFacts, PathFacts, StampSource};

/// Families of methods that stand or fall together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostFamily {
    /// Packet pairs: single spacings at the receiver.
    Pairs,
    /// Gap comparisons: spacings at both ends (IGI, Spruce, TOPP, Delphi).
    Gaps,
    /// Round trips of packets of different sizes (pathchar).
    VariableSizes,
    /// Constant-rate streams whose delay trend counts (SLoPS, pathload).
    Streams,
    /// Trains of shrinking gaps (pathChirp, ASSOLO).
    Chirps,
    /// Trains measured in groups of packets (FAC2, PBProbe, pathneck).
    Trains,
    /// Loads and bulk transfers.
    Loads,
    /// Statistics of round trips and one-way delays.
    RoundTrips,
}

/// Whether a family can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostVerdict {
    /// With a margin of a fifth.
    Ok,
    /// Just, or just not.
    Degraded,
    /// No.
    Unusable,
    /// The rate of the path, or what the hosts can do, is not known.
    Unknown,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyRow {
    /// Which family.
    pub family: HostFamily,
    /// Whether it can be used on a path of the rate asked about.
    pub verdict: HostVerdict,
    /// Highest rate for which it can; `None` if no rate bounds it, or none is known.
    pub max_rate_bps: Option<u64>,
    /// The resource that it needs.
    pub needs: &'static str,
    /// What binds, with its number.
    pub reason: String,
    /// `max_rate_bps` over the rate asked about.
    pub margin: Option<f64>,
    /// Packets of one car (trains alone) at the rate asked about.
    pub sub_train_packets: Option<u64>,
}

/// One host, in the role that it plays.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// What it can do.
    pub facts: HostFacts,
    /// Period of its interrupt coalescing: seen by probes, or set in the driver.
    pub coalescing: Option<Duration>,
    /// Noise of its departures (99th percentile of gap errors of a spinning sender).
    pub departure_noise: Option<Duration>,
    /// What can pass between a program there and the wire.
    pub ceiling: Option<BitRate>,
}

/// Sender and receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Ends {
    /// Who sends.
    pub sender: End,
    /// Who receives.
    pub receiver: End,
    /// Largest IP packet.
    pub ip_octets: u16,
}

impl End {
    /// A host of which only its facts are known.
    pub fn of(facts: HostFacts) -> Self {
        Self { facts, coalescing: None, departure_noise: None, ceiling: None }
    }

    /// Stamps of the card do not wait for interrupts.
    fn stamped_by_card(&self) -> bool {
        self.facts.stamp_source == StampSource::Hardware
    }

    fn held_back(&self) -> Duration {
        self.coalescing.filter(|_| !self.stamped_by_card()).unwrap_or_default()
    }
}

impl Ends {
    /// Hosts of which only what a measurement knows before its first probe is known: no period of
    /// coalescing, no ceiling.
    pub fn of_path(facts: &PathFacts) -> Self {
        Self {
            sender: End::of(facts.sender.clone()),
            receiver: End::of(facts.receiver.clone()),
            ip_octets: facts.path_mtu,
        }
    }

    /// The table, for a path of `rate` (what is known or guessed of it).
    pub fn families(&self, rate: Option<BitRate>) -> Vec<FamilyRow> {
        rows::all(self, rate)
    }

    /// Octets of the packets that costs are known of: a longer one costs more, by nobody knows how
    /// much.
    fn costed_octets(&self) -> u64 {
        const MEASURED: u16 = 1500;
        u64::from(self.ip_octets.min(MEASURED))
    }

    /// What both hosts can carry with full-size packets, and which of them and what it is that
    /// binds.
    pub fn host_rate(&self) -> Option<(BitRate, &'static str)> {
        let packet = self.costed_octets();
        let (sender, receiver) = (&self.sender.facts, &self.receiver.facts);
        let sending = sender.max_send_rate.or_else(|| BitRate::over(packet, sender.send_cost));
        [
            (sending, "what the sender can send"),
            (BitRate::over(packet, receiver.receive_cost), "what the receiver can take, one call per packet"),
            (sender.interface_rate, "the sender's link"),
            (receiver.interface_rate, "the receiver's link"),
            (self.sender.ceiling, "the sender's ceiling"),
            (self.receiver.ceiling, "the receiver's ceiling"),
        ]
        .into_iter()
        .filter_map(|(rate, why)| rate.map(|rate| (rate, why)))
        .min()
    }

    /// Whether the hosts are slower than a path of this rate, with a margin of a fifth; `None` if
    /// nothing of them is known.
    pub fn are_the_bottleneck(&self, rate: BitRate) -> Option<bool> {
        let (host, _) = self.host_rate()?;
        Some(host.as_f64() < 1.2 * rate.as_f64())
    }
}

/// The family to use: of those that are not ruled out the one that goes highest, and up to what
/// rate.
pub fn usable(rows: &[FamilyRow]) -> Option<(HostFamily, BitRate)> {
    let fits = |row: &&FamilyRow| matches!(row.verdict, HostVerdict::Ok | HostVerdict::Unknown);
    rows.iter()
        .filter(fits)
        .filter_map(|row| Some((row.family, BitRate::from_bps(row.max_rate_bps?))))
        // The first of equals: the table goes from the frugal to the costly.
        .rev()
        .max_by_key(|(_, rate)| *rate)
}
