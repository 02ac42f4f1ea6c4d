//! cprobe: estimates from above the available IP-layer path capacity, by the asymptotic dispersion rate of short echoed trains.
//!
//! # Model
//!
//! ```text
//!  train of 10, as fast as the host can ─▶ tight link, C, with traffic X ─▶ far end ─▶ echoes, as far apart as the link put them
//!   ||||||||||                                                              |  | |  |  | |  |   octets over time = R_out
//! ```
//!
//! The rate at which an overloading train comes is the *asymptotic dispersion rate* `C R/(R + X)`: it lies between what is available and
//! the capacity. The original called it the available bandwidth, which it is not (`[Dovrolis01]`); what it does tell is an upper
//! bound, and, with the capacity known, an estimate.
//!
//! # Assumptions
//!
//! - A1 FIFO queues; fluid traffic of others over some trains.
//! - A2 Trains leave faster than what is available, and their queue never empties.
//! - A3 The narrow link is the tight one, where `capacity` is given.
//! - A4 Stamps tell the spacing of ten packets.
//! - A5 The way back leaves the spacing alone: the far end's own receive stamps, or replies a quarter of the probes at most.
//!
//! # Formula
//!
//! Per train: spacings of neighbours; `g_out` is their mean over all trains, `g_in` that of the same neighbours as they left, `g_trim` the
//! mean without each train's `dropped` largest and smallest, `e` the standard error of `g_out` over trains (`means`).
//!
//! - `L/g_trim`: the original's value, evidence `asymptotic_dispersion_bps`. Dropping extremes takes from skewed spacings mostly what
//!   traffic added, so only the bound uses it. Bias as an estimate of `A`: `X (R - A)/(R + X)`, by the fluid law; half
//!   of `C - A` at R = C and u = 1/2 is 33 % of `A`, and all of `C - A` where `R` is far above `C`.
//! - Upper bound: `L/(min(g_out, g_trim) - 2 e)`: at `R > A` the fluid law gives `R_out >= A`.
//! - With `capacity` `C`: `X = R (C - R_out)/R_out`, `A = C - X`, derived; in spacings `A = C (1 - (g_out - L/C)/g_in)`. Interval: `2 e C/g_in`.
//!   Trains that left much faster than `C` divide by next to nothing: beyond half of `C`, the upper bound.
//!
//! # Parameters
//!
//! Declared below; `narrows methods cprobe` prints the table.
//!
//! # Cost
//!
//! 100 packets, 150 kB, 1 s.
//!
//! # Fails when
//!
//! - It never tells what is available without `capacity`: an upper bound is all, however idle or busy the path.
//! - A2, trains that come as they left: [`Reason::SenderTooSlow`](narrows_probe::Reason); a train of ten that passes proves nothing.
//! - A3, a tight link behind the narrow one: with `capacity`, too high or too low; the upper bound holds.
//! - A4: [`Reason::ReceiveBatching`](narrows_probe::Reason), [`Reason::StampsTooCoarse`](narrows_probe::Reason),
//!   [`Reason::ReceiverTooSlow`](narrows_probe::Reason).
//! - A5, echoes of full length without the far end's stamps: they tell the lesser of both ways, which bounds neither.
//!   [`Reason::NotOffered`](narrows_probe::Reason), unless `symmetric`; then [`Caveat::AsymmetricLimit`](narrows_probe::Caveat).
//! - A host that limits its answers is asked for one train of as many as it gives.
//! - Loss: neighbours count that both arrived; more than half lost, [`Reason::TooMuchLoss`](narrows_probe::Reason).
//!
//! # References
//!
//! - `[Carter96]` R. Carter, M. Crovella: Measuring bottleneck link speed in packet-switched networks, Performance Evaluation 27-28,
//!   1996. Not re-read: trains, packets and the dropping of extremes are as recalled, and parameters.
//! - `[Dovrolis01]` C. Dovrolis, P. Ramanathan, D. Moore, What Do Packet Dispersion Techniques Measure?, INFOCOM 2001.

mod answer;
mod params;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use narrows_probe::Answering;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope,
};
use narrows_train::campaign;

pub use params::Params;
use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Cprobe;

static INFO: MethodInfo = MethodInfo {
    name: "cprobe",
    summary: "an upper bound of available bandwidth: the asymptotic dispersion rate of short echoed trains",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Icmp,
        works_on_asymmetric: false,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: true,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 150_000,
        max_octets: 1_000_000,
        typical_time: Duration::from_secs(1),
        max_time: Duration::from_secs(20),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("cprobe.rs"),
};

campaign::method!(
    // Echoes; and its bound is never the automatic choice of a host that answers nothing else.
    Cprobe,
    answered_by: &[Answering::Server, Answering::Reflector, Answering::Echo]
);
