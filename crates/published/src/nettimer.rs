//! nettimer: estimates the capacity of the path from the densest rate of a few packet pairs, most often from the sender alone.
//!
//! # Model
//!
//! ```text
//!  two packets ──▶ 1 Gbit/s ──▶ narrow link ──▶ 1 Gbit/s ──▶ far end ──▶ small replies, as far apart as the packets came
//!     |>|>           |>|>        |> |>           |> |>                    .  .
//! ```
//!
//! Two packets of one size that meet at the narrow link leave it one transmission time apart, and keep that distance. Traffic of
//! others spreads it: wider if it gets in between, narrower if it holds the first one up behind the narrow link. What it does
//! is scattered, what the link does is always the same, so the rate at which pairs are densest is the link's.
//!
//! Variants, as `[Abut18]` §IV.A tells them apart: *sender-based* (SBPP), from replies alone; *receiver-based* (RBPP), from the stamps
//! of a far end that cooperates, or of a reflector that sends its stamps along. The passive variants are in `passive`.
//!
//! # Assumptions
//!
//! - A1 First come, first served, one packet at a time, on every link.
//! - A2 The pair leaves faster than the narrow link can send it.
//! - A3 At most a part of the pairs meet other traffic, and that scatters them: the density has one peak.
//! - A4 Stamps are finer than the pair's spacing, and no host hands packets over in batches.
//! - A5 Sender-based: replies are so small, or the way back so fast, that they come back as far apart as they left.
//!
//! # Formula
//!
//! `received = 8 W(L2) / (r2 - r1)` and `sent = 8 W(L2) / (d2 - d1)`, bit/s, of departures `d` and arrivals (or returns) `r` in s, where
//! `W` are the second packet's octets on the narrow link's wire. Pairs with `received > 0.8 sent` were not closed up by any link: they
//! only bound. Density of the others: `d(x) = 1/n sum K((x - x_i) / (c x))`, `K` triangular, `c` = 0.10 (`pairs::densest`). The answer
//! is the received rate of highest score, restated for full-size packets at the IP layer (`x L / W(L)`, `answer`), a spacing
//! of which ticks are a part taken for the mean of those a tick around it; its range is where the density is at least half the peak's, widened by the tick; `peak_share` in the evidence is the share of pairs
//! in it.
//!
//! `preset=tool` is what `[Abut18]` measured: 8 pairs of 565 octets in one second, replies of 60, all round trips, nettimer's score
//! (0.4 density, 0.3 ratio, 0.3 recency), and rates that count IP octets of the probes and no more. That alone makes it low: 565
//! octets of IP occupy 603 of Ethernet, so the best it can say of 10 Mbit/s is 9.37, where full-size packets get 9.75 (published:
//! 9.63 idle, 9.34 to 9.52 under load). The way out is in the default: rates on the wire, and one restatement at the end.
//!
//! # Parameters
//!
//! Declared below; `narrows methods nettimer` prints the table.
//!
//! # Cost
//!
//! Default: 8 pairs of full size and 2 of two thirds of it in 0.2 s, 28 kB, if they agree; 64 pairs and 180 kB at most. Tool: 16 probes and 16 replies, 10 kB
//! there and back, 0.9 s (published: 32 packets, 10 KB, about 1 s).
//!
//! # Fails when
//!
//! - A1: striped links show pairs that came together; [`Reason::ReceiveBatching`].
//! - A2: more pairs bound than count: a lower bound limited by the sender (`nettimer-slow-sender`).
//! - A3: a second peak of at least half the first's density, or a peak with less than half of the pairs, says that traffic of others
//!   decides: [`Caveat::Multimodal`], and what the mean spacing leaves as a lower bound (`nettimer-six-loaded-hops`). Where most
//!   pairs meet the same traffic at the same distance the peak is theirs, and too low: every fourth pair is smaller (where `octets` is not
//!   set), and if most of those are not at the peak, or spacings on the mean are 1.7 times the peak's (a faster link behind a full queue
//!   draws pairs together), the answer is that lower bound as well. Both ours.
//! - A4: [`Reason::StampsTooCoarse`] beyond a quarter of the spacing (`nettimer-coarse-stamps`), [`Reason::ReceiveBatching`]; spacings
//!   that a host's own cost per packet may have set end in [`Reason::ReceiverTooSlow`], for packets handed over together look the same.
//! - A5: unless the far end's own stamps were used. Where replies have more than a quarter of the probe on the wire (a plain echo), the
//!   value is the lesser of both ways, and a lower bound for either, with [`Caveat::AsymmetricLimit`] (`nettimer-closed-port`); smaller ones
//!   leave ways back unseen that are slower than the way there by more than that: [`Caveat::ReverseInfluence`].
//! - Lost or reordered pairs do not count; more than half of them lost is [`Reason::TooMuchLoss`] (hosts limit the rate of ICMP
//!   messages: `nettimer-rate-limited`).
//!
//! # References
//!
//! - `[Nettimer01]` K. Lai, M. Baker: Nettimer, a tool for measuring bottleneck link bandwidth, USITS 2001.
//! - `[Lai99]` K. Lai, M. Baker: Measuring bandwidth, Infocom 1999.
//! - `[Abut18]` F. Abut, M. Leischner, 2018, §IV and tables 4 and 5.

mod answer;
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

pub use params::{End, Params, Preset};
use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Nettimer;

static INFO: MethodInfo = MethodInfo {
    name: "nettimer",
    summary: "capacity as the densest rate of a few packet pairs, from the sender alone",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
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
        typical_octets: 24_000,
        max_octets: 300_000,
        typical_time: Duration::from_millis(300),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: params::Typed::PARAMETERS,
    source: include_str!("nettimer.rs"),
};

campaign::method!(Nettimer);
