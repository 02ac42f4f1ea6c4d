//! bprobe: estimates the capacity of the path from echoes of short back-to-back trains in phases of growing packet sizes.
//!
//! # Model
//!
//! ```text
//!  phase 1   |.|.|.|.|.| 124 octets  ──▶ narrow link ──▶ far end ──▶ echoes, each as far from the last as the narrow link put it
//!  phase 2   | . | . | . | 186          intervals of phase 1     [--[==]--]      [-]      union of those that overlap
//!    ...                                intervals of phase 2       [-[==]-]   [--]        intersection over the phases
//!  phase 5   |    .    |    .    | 1500 answer                        ==
//! ```
//!
//! Each spacing of two echoes is an estimate of the narrow link with an interval of error. What other traffic adds or takes is a
//! time, so it moves estimates of different packet sizes to different rates; what the link does is the same rate for all. Estimates
//! of one size that overlap are joined (*union*); what the joined intervals of most sizes have in common (*intersection*) is the
//! answer.
//!
//! # Assumptions
//!
//! - A1 First come, first served, one packet at a time; the echo is sent at once.
//! - A2 Packets leave faster than the narrow link can send them.
//! - A3 Other traffic does not meet most sizes with the same *relative* error.
//! - A4 Stamps are finer than the spacing of the larger packets.
//! - A5 The way back is no slower than the way there, for an echo has the probe's size, unless a reflector sends its stamps along.
//!
//! # Formula
//!
//! `x = 8 W(L) / g` for each spacing `g` (s) of neighbours of one size, `W` the octets on the narrow link's wire; interval
//! `8 W / (g + e) .. 8 W / (g - e)` with `e` the clock's tick or the stamps' error, and no narrower than `tolerance` on either side.
//! Spacings of at least the departures' own do not count (A2). Overlapping intervals of a phase are joined, sets of one are dropped
//! (`union`). The stretch of rates that the most phases cover, then the most estimates, is the answer's interval
//! (`intersect`); the answer is the median of the estimates of the largest size inside it. At the IP layer for full-size packets: `x L / W(L)`.
//!
//! # Parameters
//!
//! Declared below; `narrows methods bprobe` prints the table.
//!
//! # Cost
//!
//! Five sizes up to 1500 octets, ten packets each, twice: 60 kB there and 60 kB back, 0.5 s.
//!
//! # Fails when
//!
//! - A1, A4: packets that come together raise [`Reason::ReceiveBatching`], stamps that blur the largest size by more than a quarter
//!   [`Reason::StampsTooCoarse`] (`nettimer-coarse-stamps`); spacings that a host's own cost per packet may have set
//!   [`Reason::ReceiverTooSlow`].
//! - A2: a lower bound limited by the sender (`nettimer-slow-sender`).
//! - A3: less than two thirds of the phases agree, or half of the estimates, or another stretch has as many, or spacings are on the
//!   mean 1.7 times what it means (ours: a faster link behind a full queue draws pairs of all sizes together): what trains
//!   of all sizes take per octet on the mean leaves a lower bound, with [`Caveat::NotConverged`] (`bprobe-loaded-behind`). A queue that
//!   outlasts trains hides even that, but holds their first packets: unless three trains came at the rate found with their first packets
//!   later than the promptest by no more than a fifth of what it lasts, the confidence is low, and unless two did there is no answer (ours).
//! - A5: without a reflector's stamps a lower bound with [`Caveat::AsymmetricLimit`]: the lesser of both ways is at most the way there
//!   (`bprobe-round-trip`).
//!
//! # References
//!
//! - `[Carter96]` R. Carter, M. Crovella: Measuring bottleneck link speed in packet-switched networks, Performance Evaluation 27-28,
//!   1996. Not re-read: phases, sizes and filters are as recalled, and parameters.

mod answer;
mod filter;
mod params;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope,
};
use narrows_train::campaign;

pub use params::Params;
use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Bprobe;

static INFO: MethodInfo = MethodInfo {
    name: "bprobe",
    summary: "capacity that echoes of trains of several packet sizes have in common",
    metric: Metric::IpCapacity,
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
        typical_octets: 60_000,
        max_octets: 400_000,
        typical_time: Duration::from_millis(600),
        max_time: Duration::from_secs(20),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("bprobe.rs"),
};

campaign::method!(Bprobe);
