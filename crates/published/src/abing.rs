//! abing (ABwE): estimates available IP-layer path capacity from what the traffic of others adds between the packets of pairs.
//!
//! # Model
//!
//! One FIFO link is narrow and tight. Two packets leave it `L/C` apart, and further by what came between them.
//!
//! ```text
//!  pairs in     ||          ||          ||        least or most frequent spacing: L/C, the capacity ("DBC")
//!  pairs out    | |         |#|         | |       mean excess over it: the traffic of others ("XTR")
//!                           traffic between       available: DBC - XTR, smoothed
//! ```
//!
//! Twenty pairs make one measurement; measurements follow one another, and the original reports each with a smoothed value.
//!
//! # Assumptions
//!
//! - A1 FIFO; the narrow link is the tight one.
//! - A2 Pairs arrive at the link at the spacing at which they left, and no further apart than `L/C`, so that the queue does not empty
//!   between the two.
//! - A3 Some pairs pass without anything between, so that spacings crowd at `L/C`.
//! - A4 Stamps tell the spacing of two packets.
//! - A5 Traffic behind the narrow link moves both packets of a pair alike.
//!
//! # Formula
//!
//! Spacings in ns, `L` bits of a packet at the IP layer.
//!
//! - `C` (`capacity_bps`): `capacity`, or the rate at which the spacings of the first measurement's pairs crowd (`pairs.rs`), which leave
//!   back to back, if most come further apart than they left. The original takes the least or most frequent spacing (recalled).
//! - `X/C = (mean g_out - L/C) / mean g_in`, `A = C - X`, kept to `0..C` (`analyse`). That is the fluid law of two packets; with `g_in`
//!   the spacing *as it left*. The original's equation could not be verified; for pairs sent back to back (`gap=0`) it divides by
//!   next to nothing, so after the first measurement pairs leave `gap` of the packet time at `C` apart (ours).
//! - Interval: twice the standard error of `mean g_out`, times `C/mean g_in`; and the error of `C` times `mean g_out/mean g_in - 1`;
//!   2 % of `C` at least.
//! - Evidence: `measurements_bps`, one value per measurement, and `smoothed_bps`, `S := (1 - weight) S + weight A`.
//!
//! # Parameters
//!
//! Declared below; `narrows methods abing` prints the table.
//!
//! # Cost
//!
//! 420 pairs, 1.3 MB, 4.5 s, whatever the path; 2.4 Mbit/s.
//!
//! # Fails when
//!
//! - It tells a trend over seconds, no more: with Poisson traffic of half the link, 400 pairs know it within 9 % of `C`, twenty within
//!   40 %. An interval beyond half of `C` on either side is no answer: [`Reason::NoAgreement`](narrows_probe::Reason).
//! - A1, a tight link that is not narrow: too high. Nothing betrays it.
//! - A2: pairs that come as far apart as they left tell nothing of a faster link: [`Reason::SenderTooSlow`](narrows_probe::Reason).
//! - A3: where two rates crowd alike: [`Caveat::Multimodal`](narrows_probe::Caveat), low confidence.
//! - A4, a receiver that batches or stamps coarsely: [`Reason::ReceiveBatching`](narrows_probe::Reason),
//!   [`Reason::StampsTooCoarse`](narrows_probe::Reason), [`Reason::ReceiverTooSlow`](narrows_probe::Reason). Above 1 Gbit/s that is the rule (tests of
//!   others found the tool poor there, recalled).
//! - Loss: torn pairs are left out; more than half, [`Reason::TooMuchLoss`](narrows_probe::Reason).
//! - `capacity` that is not the link's: [`Caveat::CapacityAssumed`](narrows_probe::Caveat) says what was assumed.
//!
//! The original measures both directions by a daemon that reflects pairs; here each direction is a run of its own.
//!
//! # References
//!
//! - `[ABwE03]` J. Navratil, R. Cottrell, `ABwE`: A Practical Approach to Available Bandwidth Estimation, PAM 2003. Not re-read: numbers and
//!   names are as recalled, the equation is derived.
//! - `[Spruce03]` J. Strauss, D. Katabi, F. Kaashoek, A Measurement Study of Available Bandwidth Estimation Tools, IMC 2003: the same
//!   law with pairs one packet time apart.

mod answer;
mod params;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope,
};
use narrows_train::campaign;

pub use params::Params;
use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Abing;

static INFO: MethodInfo = MethodInfo {
    name: "abing",
    summary: "available bandwidth from what traffic adds between the packets of pairs",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::ProbeGap,
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
        typical_octets: 1_300_000,
        max_octets: 3_000_000,
        typical_time: Duration::from_secs(5),
        max_time: Duration::from_secs(20),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("abing.rs"),
};

campaign::method!(Abing);
