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
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `packets` | 1 | 24 | 6 to 500 | ours; 20 and more by the derivation |
//! | `trains` | 1 | 20 | 4 to 1000 | ours |
//! | `least` | 1 | 5 | 2 to 100 | ours: packets of a part |
//! | `every` | 1 | 1 | 1 to 100 | ours: only each so many-th packet dies at the hop, the others go on as load |
//! | `octets` | IP octets | path MTU | 100 to 65535 | ours |
//! | `spacing` | s | 30 ms | 0 to 60 s | ours, varied by half either way |
//! | `hops` | 1 | 30 | 1 to 64 | ours |
//! | `framing` | | ethernet | ethernet, vlan, bare, octets | ours: of every link |
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

use units::{Framing, Layer, Metric};

use crate::methods::campaign::{self, read_framing, within};
#[cfg(doc)]
use crate::outcome::{Caveat, Reason};
use crate::registry::{
    Activity, Classification, Deployment, EVERYTHING, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

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
    parameters: &[
        ("packets", "of a train, 6..500; 24"),
        ("trains", "per hop, 4..1000; 20"),
        ("least", "packets of a part of a train, 2..100; 5"),
        ("every", "each so many-th packet dies at the hop, 1..100; 1"),
        ("octets", "IP octets of a packet, 100..65535; path MTU"),
        ("spacing", "from train to train, 0..60 s; 30 ms"),
        ("hops", "hops at most, 1..64; 30"),
        (
            "framing",
            "of every link: ethernet, vlan, bare, or octets per packet; ethernet",
        ),
    ],
    source: include_str!("pipechar.rs"),
};

campaign::method!(Pipechar, answered_by: &EVERYTHING);

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Packets of a train.
    pub packets: u16,
    /// Trains per hop.
    pub trains: u32,
    /// Packets of a part.
    pub least: u16,
    /// Each so many-th packet dies at the hop.
    pub every: u16,
    /// IP octets of a packet; `None`: what the path takes.
    pub octets: Option<u16>,
    /// From train to train.
    pub spacing: Duration,
    /// Hops at most.
    pub hops: u8,
    /// How links wrap packets.
    pub framing: Framing,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            packets: 24,
            trains: 20,
            least: 5,
            every: 1,
            octets: None,
            spacing: Duration::from_millis(30),
            hops: 30,
            framing: Framing::ETHERNET,
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let base = Self::default();
        let octets: u16 = raw.get("octets", 0)?;
        let params = Self {
            packets: raw.get("packets", base.packets)?,
            trains: raw.get("trains", base.trains)?,
            least: raw.get("least", base.least)?,
            every: raw.get("every", base.every)?,
            octets: Some(octets).filter(|octets| *octets > 0),
            spacing: raw.get_duration("spacing", base.spacing)?,
            hops: raw.get("hops", base.hops)?,
            framing: read_framing(raw, base.framing)?,
        };
        within(
            (6..=500).contains(&params.packets),
            "packets",
            params.packets,
            "6 to 500",
        )?;
        within(
            (4..=1000).contains(&params.trains),
            "trains",
            params.trains,
            "4 to 1000",
        )?;
        let least = (2..=100).contains(&params.least) && params.least <= params.packets;
        within(least, "least", params.least, "2 to 100, and no more than packets")?;
        let every = (1..=100).contains(&params.every) && params.every < params.packets;
        within(every, "every", params.every, "1 to 100, and fewer than packets")?;
        let large = params.octets.is_none_or(|octets| octets >= 100);
        within(large, "octets", octets, "100 to 65535")?;
        let text = units::format_duration(params.spacing);
        let spacing = params.spacing <= Duration::from_secs(60);
        within(spacing, "spacing", text.as_str(), "0 to 60 s")?;
        within((1..=64).contains(&params.hops), "hops", params.hops, "1 to 64")?;
        Ok(params)
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
