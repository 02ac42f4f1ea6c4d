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
//! Declared below; `narrows methods quartets` prints the table.
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

use narrows_units::{Framing, Layer, Metric};

use narrows_probe::facts::Answering;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege, Protocol,
    Range, Scope, params,
};
use narrows_train::campaign;
use narrows_train::campaign::within;

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
    parameters: Params::PARAMETERS,
    source: include_str!("quartets.rs"),
};

campaign::method!(Quartets, answered_by: &[Answering::Server, Answering::Reflector, Answering::Echo]);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Quartets per hop at most.
        pub rounds: u32 = "60" {
            range: Between("10", "1000"), source: "ours; ends when errors are 1 % of the slowest hop's time",
        },
        /// Hops at most.
        pub hops: u8 = "16" { range: Between("1", "64"), source: "ours" },
        /// IP octets of a large packet.
        pub large_octets: Option<u16> = "path MTU" {
            name: "octets", unit: "IP octets", range: Between("200", "65535"), unset: Some("0"),
            source: "derived: as large as fits",
        },
        /// IP octets of a small packet, half of a large one's at most.
        pub small_octets: u16 = "64" {
            name: "small", unit: "IP octets", range: Between("40", "500"),
            source: "derived: as small as it goes; raised to what the world takes",
        },
        /// From pair to pair.
        pub lead: Duration = "10 ms" {
            range: Between("100 us", "1 s"),
            source: "ours, varied by half either way; four times as long once a hop takes a quarter of it",
        },
        /// From the begin of one quartet to the begin of the next.
        pub spacing: Duration = "20 ms" { range: Between("0 s", "10 s"), source: "ours, varied by half either way" },
        /// How links wrap packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
    }
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let fits = self.large_octets.is_none_or(|large| self.small_octets * 2 <= large);
        within(
            fits,
            "small",
            self.small_octets,
            "40 to 500, and half of octets at most",
        )
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
