//! Which families of methods the two hosts can carry, and up to what rate.
//!
//! Inequalities of `[Jin03a]` §3–4 and their generalisation: a family whose error is a timing error `σ` on a packet time `8L/R` is
//! usable up to `R = 8·L·e/σ` with `e = 0.1`; one that measures groups of packets is bounded by the hosts alone.

use std::time::Duration;

use serde::Serialize;
use units::BitRate;

use crate::facts::{HostFacts, PathFacts, StampSource};

/// Families of methods that stand or fall together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Single spacings: packet pairs, gap comparisons.
    Pairs,
    /// Constant-rate streams whose delay trend counts.
    Streams,
    /// Trains measured in groups of packets.
    Trains,
    /// Loads and bulk transfers.
    Loads,
}

/// Whether a family can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fitness {
    /// With a margin of a fifth.
    Ok,
    /// Just, or just not.
    Degraded,
    /// No.
    Unusable,
    /// The path's rate is not known yet.
    Unknown,
}

/// A row of the host verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyVerdict {
    /// Which family.
    pub family: Family,
    /// Whether it can be used on a path of the given rate.
    pub fitness: Fitness,
    /// Highest rate for which it can; `None` if nothing on the hosts bounds it.
    pub max_rate_bps: Option<u64>,
    /// What bounds it.
    pub bound_by: &'static str,
}

/// Accepted relative timing error of a spacing (`[Jin03a]` §4.2 asks for a tenth).
const TIMING_ERROR: f64 = 0.1;

/// One row per family, for a path of `rate` (its capacity, or the best guess at it).
pub fn family_verdicts(facts: &PathFacts, rate: Option<BitRate>) -> Vec<FamilyVerdict> {
    let host = host_rate(facts);
    let stamps = spacing_rate(facts);
    let pace = BitRate::over(u64::from(facts.path_mtu), facts.sender.min_gap);
    let row = |family, bounds: &[(Option<BitRate>, &'static str)]| {
        let least = bounds
            .iter()
            .filter_map(|&(rate, why)| rate.map(|rate| (rate, why)))
            .min();
        FamilyVerdict {
            family,
            fitness: fitness(rate, least.map(|(rate, _)| rate)),
            max_rate_bps: least.map(|(rate, _)| rate.bps()),
            bound_by: least.map_or("nothing on the hosts", |(_, why)| why),
        }
    };
    vec![
        row(Family::Pairs, &[(stamps, "receive stamps"), (host, "host rate")]),
        row(Family::Streams, &[(pace, "smallest paced gap"), (host, "host rate")]),
        row(Family::Trains, &[(host, "host rate")]),
        row(Family::Loads, &[(host, "host rate")]),
    ]
}

/// The slower of what sender and receiver can do with full-size packets.
fn host_rate(facts: &PathFacts) -> Option<BitRate> {
    let packet = u64::from(facts.path_mtu);
    let receive = BitRate::over(packet, facts.receiver.receive_cost);
    let send = facts
        .sender
        .max_send_rate
        .or_else(|| BitRate::over(packet, facts.sender.send_cost));
    [
        send,
        receive,
        facts.sender.interface_rate,
        facts.receiver.interface_rate,
    ]
    .into_iter()
    .flatten()
    .min()
}

/// `8·L·e/σ`, with σ the larger of stamp error and clock resolution at the receiver; stamps of the program itself also suffer
/// the cost of two calls (`[Jin03a]` §4.2).
fn spacing_rate(facts: &PathFacts) -> Option<BitRate> {
    let noise = timing_noise(&facts.receiver);
    let usable = BitRate::over(u64::from(facts.path_mtu), noise)?;
    usable.scaled(TIMING_ERROR)
}

fn timing_noise(host: &HostFacts) -> Duration {
    let calls = match host.stamp_source {
        StampSource::User => host.receive_cost * 2,
        StampSource::Simulated | StampSource::Hardware | StampSource::Kernel => Duration::ZERO,
    };
    host.stamp_error.max(host.clock_resolution).max(calls)
}

fn fitness(rate: Option<BitRate>, limit: Option<BitRate>) -> Fitness {
    match (rate, limit) {
        (None, _) => Fitness::Unknown,
        (Some(_), None) => Fitness::Ok,
        (Some(rate), Some(limit)) if rate.as_f64() * 1.2 <= limit.as_f64() => Fitness::Ok,
        (Some(rate), Some(limit)) if rate.as_f64() <= limit.as_f64() * 1.2 => Fitness::Degraded,
        (Some(_), Some(_)) => Fitness::Unusable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Software stamps of 1 µs and 1500 octets: 8·1500·0.1/1 µs = 1.2 Gbit/s, the reference value of the verdict table.
    #[test]
    fn pairs_end_at_1_2_gbit_with_microsecond_stamps() {
        let mut facts = PathFacts::ideal(1500, Duration::from_millis(1));
        facts.receiver.stamp_error = Duration::from_micros(1);
        let fitness_at = |rate: BitRate| {
            let rows = family_verdicts(&facts, Some(rate));
            rows.iter().find(|row| row.family == Family::Pairs).unwrap().clone()
        };
        assert_eq!(fitness_at(BitRate::from_gbps(1)).max_rate_bps, Some(1_200_000_000));
        assert_eq!(fitness_at(BitRate::from_gbps(1)).fitness, Fitness::Ok);
        assert_eq!(fitness_at(BitRate::from_mbps(1400)).fitness, Fitness::Degraded);
        assert_eq!(fitness_at(BitRate::from_gbps(10)).fitness, Fitness::Unusable);
    }

    #[test]
    fn an_unknown_rate_is_not_judged() {
        let rows = family_verdicts(&PathFacts::ideal(1500, Duration::ZERO), None);
        assert!(rows.iter().all(|row| row.fitness == Fitness::Unknown));
    }
}
