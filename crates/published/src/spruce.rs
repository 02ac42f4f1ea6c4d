//! Spruce: estimates available IP-layer path capacity from what other traffic puts between the packets of single pairs.
//!
//! # Model
//!
//! One FIFO link of known capacity `C` is narrow and tight.
//!
//! ```text
//!  at the tight link      [==1==][==2==]       a pair as far apart as the link needs for one packet
//!  behind it              [==1==]###[==2==]    what came in between is others' traffic of just that time
//! ```
//!
//! The second packet arrives when the first has left, so the queue cannot empty between them; the growth of their gap is the
//! traffic of others that arrived meanwhile. Pairs far apart at random times sample that traffic as it is.
//!
//! # Assumptions
//!
//! - A1 FIFO queues; the tight link is the narrow one, and links behind it leave the gap alone on the mean.
//! - A2 `C` is known.
//! - A3 The sender can send two packets `L/C` apart.
//! - A4 Stamps resolve `L/C`: no batches, fine clocks.
//!
//! # Formula
//!
//! `g` gaps in ns, `g_B = L/C` with `L` bits of a packet at the IP layer, `C` in bit/s.
//!
//! - Ours (`answer.rs`): `A = C (1 - sum(g_out - g_B) / sum g_in)` over all pairs, cut to 0 to `C` at the end; its error from the residuals
//!   of that ratio.
//! - Faithful: per pair `a = max(-0.8, 1 - max(0, g_out - g_B)/g_in)`, `A = C max(0, mean a)`.
//! - `g_in` are *departure stamps*. In a fluid both are `A` at any gap that does not let the queue empty, `g_in <= g_B / (1 - X/C)`.
//! - `C`: the parameter, else the commonest gap of three back-to-back trains, as in [`igi`](super::igi) (the original is told `C`).
//! - Interval: Student's t, the error of `C` times the share taken, at least 1 % of `C`.
//!
//! # Parameters
//!
//! Declared below; `narrows methods spruce` prints the table.
//!
//! # Cost
//!
//! 300 pairs of 1500 octets: 0.9 MB in 3 s, and 0.2 MB for `C`. Faithful: 0.3 MB in 10 s.
//!
//! # Fails when
//!
//! - A1, a tight link that is not narrow: pairs leave the narrow link at its own gap, and the tight link sees less of its traffic in
//!   between: too high (`spruce-tight-is-not-narrow`). Back-to-back trains are stretched by more than pairs then say; by 1.5 errors or more:
//!   low confidence; by five: [`Reason::NoAgreement`](narrows_probe::Reason) (`gaps/tight.rs`, ours). A sender less than twice as fast as the link, or
//!   a told capacity (no trains), leaves it unchecked: low confidence.
//! - A2: [`Caveat::CapacityAssumed`] with a told capacity; an error of `C` moves the answer by that times the share taken.
//! - A3: [`Verdict::LowerBound`](narrows_probe::Verdict) if most pairs left more than a quarter too far apart: the queue may empty between them,
//!   and what is read is below what is free (`spruce-slow-sender`). Without a told capacity the sender's own pace would pass for it:
//!   [`Reason::SenderTooSlow`](narrows_probe::Reason), or a bound where trains came as they left.
//! - A4: [`Reason::ReceiveBatching`](narrows_probe::Reason) (`spruce-coalescing`), [`Reason::StampsTooCoarse`](narrows_probe::Reason),
//!   [`Reason::ReceiverTooSlow`](narrows_probe::Reason). From 1 Gbit/s on `L/C` is 12 us: one slip of a host spoils a pair.
//! - The spread of one pair is about the square root of the share taken: 300 pairs leave 5 to 10 % of `C`.
//! - Not reproduced from the tool: a gap cut to whole microseconds, and a capacity derived from it again (2.6 % high at 100 Mbit/s); samples
//!   cut off above `C`, which makes idle and jittery paths read low (faithful keeps that).
//!
//! # References
//!
//! - `[Spruce03]` J. Strauss, D. Katabi, F. Kaashoek, A Measurement Study of Available Bandwidth Estimation Tools, IMC 2003. Constants of
//!   release 0.3.

mod answer;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope, params,
};
use narrows_train::campaign;

use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Spruce;

static INFO: MethodInfo = MethodInfo {
    name: "spruce",
    summary: "available bandwidth from what others put between the packets of pairs",
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
        typical_octets: 1_100_000,
        max_octets: 10_000_000,
        typical_time: Duration::from_secs(4),
        max_time: Duration::from_secs(60),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("spruce.rs"),
};

campaign::method!(Spruce);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Constants and formula: ours, or those of spruce 0.3.
        pub faithful: bool = "adaptive" is { "adaptive" => false, "faithful" => true } {
            name: "preset", source: "ours; spruce 0.3",
        },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "the tool: 1500 on the wire",
        },
        /// IP-layer capacity of the tight link, if known.
        pub capacity: Option<BitRate> = "measured" {
            range: AtLeast("1 bit/s"), source: "the original: told by the user",
        },
        /// Pairs to send.
        pub pairs: u32 = "300" { range: Between("10", "10000"), source: "ours", presets: &[("faithful", "100")] },
        /// Mean time from pair to pair.
        pub spacing: Duration = "10 ms" {
            range: Between("0 s", "10 s"), source: "ours", presets: &[("faithful", "100 ms")],
        },
        /// Largest mean load, as a share of capacity.
        pub load: f64 = "0.05" {
            unit: "share", range: Between("0.001", "1"), source: "the tool: pairs never load the path more",
        },
    }
}

impl Params {
    /// What the longest run imposes: silences of the longest kind between all pairs, a round trip of a second for each train (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let octets = 2 * u64::from(self.ip_octets.unwrap_or(1500)) * u64::from(self.pairs);
        let trains = self.pairs / session::PAIRS_PER_TRAIN + 10;
        let time = (self.spacing * self.pairs).saturating_mul(2) + Duration::from_secs(1) * trains;
        Imposes {
            max_octets: usual.max_octets.max(2 * octets),
            max_time: usual.max_time.max(time),
            ..usual.clone()
        }
    }
}
