//! pipechar: estimates the capacity and the load of every hop from trains whose packets all die there, by the fluid spray effect.
//!
//! # Model
//!
//! ```text
//!  hop limit h:  [=][=][=][=][=] ──▶ … narrow ──▶ [=]   [=]   [=]   [=] ──▶ link h, busy ──▶ [=]   [=][=][=]  ──▶ x x x x
//!                                                                      others' packets push some together   answers, as far apart
//! ```
//!
//! Where what comes together at a link meets or exceeds its rate, packets leave back to back, at the link's own rate. In a train that is
//! long enough some part leaves each router like that, behind the narrow link, too; and the answers to its packets are as far apart as
//! the packets were when they died.
//!
//! # Assumptions
//!
//! - A1 First come, first served; some part of some trains leaves each link back to back.
//! - A2 A router answers every packet, and takes as long for each; the way back leaves the answers as far apart as they were.
//! - A3 The sender sends faster than what is to be found.
//! - A4 The route does not change.
//!
//! # Formula
//!
//! Derived here where `[Jin03a]` §4.3 is silent, as it is on procedure. Of all trains that die at hop h, the times per packet of all parts of
//! `least` packets in a row, and of all pairs (`trains`). The shortest that is *reproducible*, ten parts and one in eight of them within 2 %
//! and what stamps may be off by, and not the shortest of all: no part comes closer than the link sends. Longer parts decide unless pairs
//! are more than 3 % closer. `r = 8 W / t`. What it says of link h, with p the least of the links in front, and q what the hop before gave:
//!
//! - within 5 % of p or q: no slower than that, for without traffic of others the spacing of the links in front is all that is left;
//! - else its capacity: below p it is the narrowest so far, above it is seen behind a narrower one.
//!
//! The mean rate `R_h` of whole trains never rises from hop to hop. Where it falls the link is fuller than `R_h` leaves room for: `X = C R_h-1 /
//! R_h - R_h-1` of others' traffic (a fluid's), in the evidence as `load_ratio`, and `R_h` an upper bound of what is available. Where it rises by
//! more than a tenth the hop before answered slowly, and what it said becomes a lower bound.
//!
//! # Parameters
//!
//! Declared below; `narrows methods pipechar` prints the table.
//!
//! # Cost
//!
//! Per hop 20 trains of 24 packets, 0.72 MB, and 1 s on idle paths.
//!
//! # Fails when
//!
//! - A1: behind the narrow link, with little traffic of others, there is a lower bound (`pathchar-five-hops`). Under traffic that parts all packets
//!   everywhere no rate is reproducible: the hop is left out, and all of them: [`Reason::NoAgreement`].
//! - A2: hops that answer less than nine in ten are left out ([`Caveat::AnswersLimited`]; `pipechar-limited-router`). Answers of R octets on a way
//!   back as slow as the way there hide what is faster than `W(L) / W(R)` of it: a lower bound, [`Caveat::ReverseInfluence`]; a way back
//!   slower than that is taken for the link, unless a later hop's mean shows it.
//! - A3: no hop is known beyond the sender's rate: lower bounds, [`Caveat::SenderLimited`] (`pathneck-slow-sender`).
//! - A4: trains whose answers come from several routers are left out.
//! - Ticks and errors of stamps above a tenth of a part's time: lower bounds; all of them: [`Reason::StampsTooCoarse`]
//!   (`pathchar-coarse-stamps`).
//!
//! # References
//!
//! - `[Jin03a]` G. Jin, B. Tierney: System capability effects on algorithms for network bandwidth measurement, IMC 2003, §4.3.

mod answer;
mod session;
#[cfg(test)]
mod tests;
mod trains;

use std::time::Duration;

use narrows_units::{Framing, Layer, Metric};

#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, EVERYTHING, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, Range, Scope, params,
};
use narrows_train::campaign;
use narrows_train::campaign::within;

use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Pipechar;

static INFO: MethodInfo = MethodInfo {
    name: "pipechar",
    summary: "capacity and load of each hop from trains that die there, by the fluid spray effect",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::PerHop,
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
        typical_octets: 2_200_000,
        max_octets: 25_000_000,
        typical_time: Duration::from_secs(4),
        max_time: Duration::from_secs(300),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("pipechar.rs"),
};

campaign::method!(Pipechar, answered_by: &EVERYTHING);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Packets of a train.
        pub packets: u16 = "24" { range: Between("6", "500"), source: "ours; 20 and more by the derivation" },
        /// Trains per hop.
        pub trains: u32 = "20" { range: Between("4", "1000"), source: "ours" },
        /// Packets of a part of a train, no more than of the train.
        pub least: u16 = "5" { range: Between("2", "100"), source: "ours" },
        /// One in this many packets dies at the hop, the others go on as load; fewer than packets.
        pub every: u16 = "1" { range: Between("1", "100"), source: "ours" },
        /// IP octets of a packet.
        pub octets: Option<u16> = "path MTU" {
            unit: "IP octets", range: Between("100", "65535"), unset: Some("0"), source: "ours",
        },
        /// From train to train.
        pub spacing: Duration = "30 ms" { range: Between("0 s", "60 s"), source: "ours, varied by half either way" },
        /// Hops at most.
        pub hops: u8 = "30" { range: Between("1", "64"), source: "ours" },
        /// How links wrap packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
    }
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let (least, every) = (self.least, self.every);
        within(
            least <= self.packets,
            "least",
            least,
            "2 to 100, and no more than packets",
        )?;
        within(every < self.packets, "every", every, "1 to 100, and fewer than packets")
    }
}

impl Params {
    /// What the longest run imposes: half a second per train (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let trains = self.trains.saturating_mul(u32::from(self.hops));
        let train = u64::from(self.packets) * u64::from(self.octets.unwrap_or(1500));
        let each = self.spacing.mul_f64(1.5) + Duration::from_millis(500);
        Imposes {
            max_octets: usual.max_octets.max(u64::from(trains) * train),
            max_time: usual.max_time.max(each.saturating_mul(trains)),
            ..usual.clone()
        }
    }
}
