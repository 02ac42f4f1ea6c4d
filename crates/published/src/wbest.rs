//! `WBest`: estimates available IP-layer path capacity from trains sent at the capacity that pairs have shown.
//!
//! # Model
//!
//! One FIFO link, wired or wireless, is narrow and tight. Pairs back to back show its (effective) capacity; a train at just that rate fills
//! what others leave and more, and by how much it is stretched says how much they take.
//!
//! ```text
//!  1  pairs        [][]     [][]     [][]   gap behind the link: L/C
//!  2  train at C   |--|--|--|--|--|--|      behind the link: C C/(C + X)
//! ```
//!
//! No search: one rate is enough, so it is quick.
//!
//! # Assumptions
//!
//! - A1 FIFO queues; the tight link is the narrow one.
//! - A2 Pairs show `C`: in most of them nothing came in between.
//! - A3 The sender is as fast as the narrow link.
//! - A4 Stamps resolve single gaps (for the pairs).
//!
//! # Formula
//!
//! Rates in bit/s at the IP layer.
//!
//! - `C`: faithful, the median of `L/g` over the pairs' gaps `g`; ours, the commonest gap (`gaps/narrow.rs`), since on loaded paths others'
//!   packets come between most pairs. On wireless links the median is the effective capacity meant by `[WBest08]`.
//! - Per train with rate in `R` (departure stamps) and rate out `R'` (batch end to batch end): `A = R + C (1 - R/R')`, which for `R = C` is the
//!   published `C (2 - C/R')`, and in a fluid is exact for every `R > A`; `A = R'` where the train was not stretched; 0 where it is negative,
//!   as published for `R' < C/2`.
//! - The answer is the mean over trains (faithful: one train), between 0 and `C`. Faithful also takes the share lost off it, a
//!   correction for wireless loss; ours lowers the interval's end by it.
//! - Interval: Student's t over trains (faithful: over the train's own gaps), the error of `C`, at least 2 % of `C`.
//!
//! # Parameters
//!
//! Declared below; `narrows methods wbest` prints the table.
//!
//! # Cost
//!
//! 60 pairs and 10 trains of 60: 1.1 MB in 1 s on a 100 Mbit/s path. Faithful: 135 kB in 0.2 s.
//!
//! # Fails when
//!
//! - A1, a tight link that is not narrow: a train at the narrow link's rate is stretched by another link, whose capacity the formula does
//!   not have: too high (`wbest-tight-is-not-narrow`). Pairs grow by more than trains then say; by 1.5 errors or more:
//!   the interval's upper end as an upper bound, which holds for any such link; by five:
//!   [`Reason::NoAgreement`](narrows_probe::Reason) (`gaps/tight.rs`, ours). A sender less than twice as fast as the link, or a told capacity (no
//!   pairs), leaves it unchecked: low confidence.
//! - A2 at high load: `C` too low. With trains at a rate between `A` and `C` the formula errs by that shortfall times the share taken.
//! - A3: [`Verdict::LowerBound`](narrows_probe::Verdict) where trains come as they left, never a point; else
//!   [`Reason::SenderTooSlow`](narrows_probe::Reason), since `C` is not known (`wbest-slow-sender`).
//! - A4: [`Reason::ReceiveBatching`](narrows_probe::Reason), [`Reason::StampsTooCoarse`](narrows_probe::Reason); with `capacity` told, trains alone do.
//! - Half of a link's own bursts (aggregated frames) make one train's rate a matter of chance: the interval is wide.
//!
//! # References
//!
//! - `[WBest08]` M. Li, M. Claypool, R. Kinicki, `WBest`: a Bandwidth Estimation Tool for IEEE 802.11 Wireless Networks, IEEE LCN 2008.
//!   Formula and counts as in the tool; the text of the paper was not at hand.

mod answer;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope, params,
};
use narrows_train::campaign;

use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Wbest;

static INFO: MethodInfo = MethodInfo {
    name: "wbest",
    summary: "available bandwidth from trains at the capacity that pairs show",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: true,
        pacing: true,
    },
    imposes: Imposes {
        typical_octets: 1_100_000,
        max_octets: 20_000_000,
        typical_time: Duration::from_secs(1),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("wbest.rs"),
};

campaign::method!(Wbest);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Counts and formula: ours, or the tool's.
        pub faithful: bool = "adaptive" is { "adaptive" => false, "faithful" => true } {
            name: "preset", source: "ours; constants of the tool",
        },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "ours",
        },
        /// IP-layer capacity of the tight link, if known.
        pub capacity: Option<BitRate> = "measured" { range: AtLeast("1 bit/s"), source: "ours" },
        /// Pairs to send.
        pub pairs: u32 = "60" {
            range: Between("10", "1000"), source: "ours; as published", presets: &[("faithful", "30")],
        },
        /// Packets of a train.
        pub packets: usize = "60" {
            range: Between("10", "1000"), source: "ours; as published", presets: &[("faithful", "30")],
        },
        /// Trains to send.
        pub trains: usize = "10" {
            range: Between("1", "100"), source: "ours; as published", presets: &[("faithful", "1")],
        },
        /// Mean load, of the path's rate.
        pub load: f64 = "0.2" { unit: "share", range: Between("0.001", "1"), source: "ours" },
    }
}

impl Params {
    /// What the longest run imposes: everything twice, and a round trip of 200 ms for each train (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let octets = u64::from(self.ip_octets.unwrap_or(1500));
        let packets = 2 * u64::from(self.pairs) + (self.packets * self.trains) as u64;
        let trains = u64::from(self.pairs) / 10 + self.trains as u64;
        let slow = Duration::from_millis(200).mul_f64((0.2 / self.load).max(1.0));
        let time = slow * u32::try_from(2 * trains).unwrap_or(u32::MAX);
        Imposes {
            max_octets: usual.max_octets.max(2 * packets * octets),
            max_time: usual.max_time.max(time).min(Duration::from_secs(600)),
            ..usual.clone()
        }
    }
}
