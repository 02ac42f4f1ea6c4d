//! quartets: estimates the capacity of every hop from two large packets that die one hop apart, and how much sooner the small ones behind them come.
//!
//! # Model
//!
//! ```text
//!  [======]q   [======]q ──▶ … link h-1 ──▶ x    q ──▶ link h ──▶ …      the second large packet dies here,
//!                                    [======]q ──▶ link h ──▶ x   q ──▶ …  and the first one hop further on
//! ```
//!
//! Two pairs, each a large *pacesetter* with a small probe right behind it. The first pair's small packet is held back by one link more.
//! How much longer it takes is what that link needs for the pacesetter, less what the link before needs for the small packet.
//!
//! It is packet tailgating (`tailgate`) with both delays taken in one go: `tailgate` compares least delays, each the best of all its
//! trains; a quartet compares two delays a few milliseconds apart, and the most frequent difference of many is the answer. So neither
//! clocks' drift nor slow changes of the path matter, and half of the quartets may meet queues; but both pairs must meet none, or the same,
//! and errors add from hop to hop, if ever less.
//!
//! # Assumptions
//!
//! - A1 First come, first served, one packet at a time, and each hop one link: a switch inside a hop adds its own time.
//! - A2 A quarter of the quartets for each hop meet no queue, or alike.
//! - A3 The small packet catches up on each link: `C_h / C_h-1 <= W(Lp) / W(Lq)`.
//! - A4 The route does not change within a quartet, and routers count the hop limit down.
//! - A5 Delays are of one way, or the way back disturbs both small packets alike.
//!
//! # Formula
//!
//! Derived; of the paper only the idea was to be had. `d(h) = D(h) - D(h-1)`, ns: D from the departure of the large packet to the arrival of the
//! small one; of the first hop the second pair is a small packet alone. With `w = W(Lq) / W(Lp)`, octets on the wire (`chain`):
//!
//! `P(1) = d(1)`, `P(h) = d(h) + w P(h-1)`, `C_h = 8 W(Lp) / P(h)`
//!
//! d(h) is the middle of the shortest range that holds a quarter of the quartets' differences, five at least, and its error half of that
//! range (half of the middle half's, where the quarter is not eight times as short), a tick or an error of a stamp at least. Every other
//! quartet is sent the other way around, and the two middles' mean taken: what clocks drift between the pairs cancels; where they differ by
//! more than clocks drift, that is the error. A hop whose `d` is
//! below two errors is refused: it has a lower bound, and the next one a wider range. Rates are stated for full packets at the IP layer.
//!
//! # Parameters
//!
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `rounds` | 1 | 60 | 10 to 1000 | ours: quartets per hop at most; ends when errors are 1 % of the slowest hop's time |
//! | `hops` | 1 | 16 | 1 to 64 | ours |
//! | `octets` | IP octets | path MTU | 200 to 65535 | derived: as large as fits |
//! | `small` | IP octets | 64 | 40 to 500 | derived: as small as it goes; raised to what the world takes |
//! | `lead` | s | 10 ms | 100 us to 1 s | ours: from pair to pair, varied by half either way; four times as long once a hop takes a quarter of it |
//! | `spacing` | s | 20 ms | 0 to 10 s | ours, varied by half either way |
//! | `framing` | | ethernet | ethernet, vlan, bare, octets | ours: of every link |
//!
//! # Cost
//!
//! Per hop 20 to 60 quartets of 3.1 kB: 0.2 MB and 2 s for three idle hops.
//!
//! # Fails when
//!
//! - A1: switches inside a hop make it look slower: two links of 100 Mbit/s look like 50 (`[PDM03]`). Hops have low confidence for that.
//! - A2: the range that holds a quarter is wide: wide intervals, [`Caveat::NotConverged`], refused hops; all of them:
//!   [`Reason::NotConverged`].
//! - A3: the hop is refused; a lower bound that holds. The same where the small packet leaves later than the first link needs for the
//!   large one.
//! - A4: the pacesetter never arrives within `hops`: [`Reason::MissingInput`].
//! - A5: over round trips routers' messages about pacesetters go back in front of the small packets' answers. [`Caveat::AsymmetricLimit`].
//! - Ticks of the size of a hop's time: refused hops; all of them: [`Reason::StampsTooCoarse`] (`nettimer-coarse-stamps`).
//!
//! # References
//!
//! - `[Pasztor02]` A. Pásztor, D. Veitch: Active probing using packet quartets, IMW 2002.
//! - `[Lai00]` K. Lai, M. Baker: Measuring link bandwidths using a deterministic model of packet delay, SIGCOMM 2000.
//! - `[PDM03]` R. Prasad, C. Dovrolis, B. Mah: The effect of layer-2 store-and-forward devices on per-hop capacity estimation, Infocom 2003.

mod answer;
mod chain;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use units::{Framing, Layer, Metric};

use crate::facts::Answering;
use crate::methods::campaign::{self, read_framing, within};
#[cfg(doc)]
use crate::outcome::{Caveat, Reason};
use crate::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege, Protocol,
    RawParams, Scope,
};

use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Quartets;

static INFO: MethodInfo = MethodInfo {
    name: "quartets",
    summary: "capacity of each hop from two small packets behind large ones that die one hop apart",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::PerHop,
        methodology: Methodology::VariableSize,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: true,
        sender_faster_than_result: false,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 150_000,
        max_octets: 6_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &[
        ("rounds", "quartets per hop at most, 10..1000; 60"),
        ("hops", "hops at most, 1..64; 16"),
        ("octets", "IP octets of a large packet, 200..65535; path MTU"),
        ("small", "IP octets of a small packet, 40..500; 64"),
        ("lead", "from pair to pair, 100 us..1 s; 10 ms"),
        ("spacing", "from quartet to quartet, 0..10 s; 20 ms"),
        (
            "framing",
            "of every link: ethernet, vlan, bare, or octets per packet; ethernet",
        ),
    ],
    source: include_str!("quartets.rs"),
};

campaign::method!(Quartets, answered_by: &[Answering::Server, Answering::Reflector, Answering::Echo]);

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Quartets per hop at most.
    pub rounds: u32,
    /// Hops at most.
    pub hops: u8,
    /// IP octets of a large packet; `None`: what the path takes.
    pub large_octets: Option<u16>,
    /// IP octets of a small packet.
    pub small_octets: u16,
    /// From pair to pair.
    pub lead: Duration,
    /// From the begin of one quartet to the begin of the next.
    pub spacing: Duration,
    /// How links wrap packets.
    pub framing: Framing,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            rounds: 60,
            hops: 16,
            large_octets: None,
            small_octets: 64,
            lead: Duration::from_millis(10),
            spacing: Duration::from_millis(20),
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
            rounds: raw.get("rounds", base.rounds)?,
            hops: raw.get("hops", base.hops)?,
            large_octets: Some(octets).filter(|octets| *octets > 0),
            small_octets: raw.get("small", base.small_octets)?,
            lead: raw.get_duration("lead", base.lead)?,
            spacing: raw.get_duration("spacing", base.spacing)?,
            framing: read_framing(raw, base.framing)?,
        };
        within(
            (10..=1000).contains(&params.rounds),
            "rounds",
            params.rounds,
            "10 to 1000",
        )?;
        within((1..=64).contains(&params.hops), "hops", params.hops, "1 to 64")?;
        let large = params.large_octets.is_none_or(|octets| octets >= 200);
        within(large, "octets", octets, "200 to 65535")?;
        let small = params.small_octets;
        let fits = (40..=500).contains(&small) && params.large_octets.is_none_or(|large| small * 2 <= large);
        within(fits, "small", small, "40 to 500, and half of octets at most")?;
        let text = units::format_duration(params.lead);
        let lead = (Duration::from_micros(100)..=Duration::from_secs(1)).contains(&params.lead);
        within(lead, "lead", text.as_str(), "100 us to 1 s")?;
        let text = units::format_duration(params.spacing);
        within(
            params.spacing <= Duration::from_secs(10),
            "spacing",
            text.as_str(),
            "0 to 10 s",
        )?;
        Ok(params)
    }
}

impl Params {
    /// What the longest run imposes: every hop and round, and round trips of up to a tenth of a second (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let quartets = self.rounds.saturating_mul(u32::from(self.hops));
        let octets = 2 * (u64::from(self.large_octets.unwrap_or(1500)) + u64::from(self.small_octets));
        let each = self.lead + self.spacing.max(Duration::from_millis(100)).saturating_mul(2);
        Imposes {
            max_octets: usual.max_octets.max(u64::from(quartets) * octets),
            max_time: usual.max_time.max(each.saturating_mul(quartets)),
            ..usual.clone()
        }
    }
}
