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
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `preset` | | adaptive | adaptive, faithful | ours; constants and formula of spruce 0.3 |
//! | `size` | IP octets | path MTU | 68 to 65535 | the tool: 1500 on the wire |
//! | `capacity` | bit/s | measured | above 0 | the original: told by the user |
//! | `pairs` | | 300 | 10 to 10000 | ours; faithful: 100 |
//! | `spacing` | time | 10 ms | 0 to 10 s | mean from pair to pair; ours; faithful: 100 ms |
//! | `load` | share | 0.05 | 0.001 to 1 | the tool: pairs never load the path more |
//!
//! # Cost
//!
//! 300 pairs of 1500 octets: 0.9 MB in 3 s, and 0.2 MB for `C`. Faithful: 0.3 MB in 10 s.
//!
//! # Fails when
//!
//! - A1, a tight link that is not narrow: pairs leave the narrow link at its own gap, and the tight link sees less of its traffic in
//!   between: too high (`spruce-tight-is-not-narrow`). Back-to-back trains are stretched by more than pairs then say; by 1.5 errors or more:
//!   low confidence; by five: [`Reason::NoAgreement`](crate::Reason) (`gaps/tight.rs`, ours). A sender less than twice as fast as the link, or
//!   a told capacity (no trains), leaves it unchecked: low confidence.
//! - A2: [`Caveat::CapacityAssumed`] with a told capacity; an error of `C` moves the answer by that times the share taken.
//! - A3: [`Verdict::LowerBound`](crate::Verdict) if most pairs left more than a quarter too far apart: the queue may empty between them,
//!   and what is read is below what is free (`spruce-slow-sender`). Without a told capacity the sender's own pace would pass for it:
//!   [`Reason::SenderTooSlow`](crate::Reason), or a bound where trains came as they left.
//! - A4: [`Reason::ReceiveBatching`](crate::Reason) (`spruce-coalescing`), [`Reason::StampsTooCoarse`](crate::Reason),
//!   [`Reason::ReceiverTooSlow`](crate::Reason). From 1 Gbit/s on `L/C` is 12 us: one slip of a host spoils a pair.
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

use units::{BitRate, Layer, Metric};

use crate::methods::campaign::{self, unreadable, within};
#[cfg(doc)]
use crate::outcome::Caveat;
use crate::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege, Protocol,
    RawParams, Scope,
};

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
    parameters: &[
        ("preset", "adaptive, or faithful to spruce 0.3; adaptive"),
        ("size", "IP octets of a probe packet, 68..65535; path MTU"),
        ("capacity", "IP-layer capacity of the tight link, if known; measured"),
        ("pairs", "pairs, 10..10000; 300 (faithful: 100)"),
        (
            "spacing",
            "mean time from pair to pair, 0..10 s; 10 ms (faithful: 100 ms)",
        ),
        ("load", "largest mean load as a share of capacity, 0.001..1; 0.05"),
    ],
    source: include_str!("spruce.rs"),
};

campaign::method!(Spruce);

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The tool's constants and formula.
    pub faithful: bool,
    /// IP octets of a probe packet; `None` takes the path MTU.
    pub ip_octets: Option<u16>,
    /// IP-layer capacity of the tight link, if known.
    pub capacity: Option<BitRate>,
    /// Pairs to send.
    pub pairs: u32,
    /// Mean time from pair to pair.
    pub spacing: Duration,
    /// Largest mean load, as a share of capacity.
    pub load: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            faithful: false,
            ip_octets: None,
            capacity: None,
            pairs: 300,
            spacing: Duration::from_millis(10),
            load: 0.05,
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let word: String = raw.get("preset", "adaptive".to_owned())?;
        let base = match word.as_str() {
            "adaptive" => Self::default(),
            "faithful" => Self {
                faithful: true,
                pairs: 100,
                spacing: Duration::from_millis(100),
                ..Self::default()
            },
            _ => return Err(unreadable("preset", &word, "write adaptive or faithful")),
        };
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let (size, capacity): (u16, BitRate) = (raw.get("size", 0)?, raw.get("capacity", BitRate::ZERO)?);
        let params = Self {
            ip_octets: given("size").then_some(size),
            capacity: given("capacity").then_some(capacity),
            pairs: raw.get("pairs", base.pairs)?,
            spacing: raw.get_duration("spacing", base.spacing)?,
            load: raw.get("load", base.load)?,
            ..base
        };
        within(!given("size") || size >= 68, "size", size, "68 to 65535")?;
        within(params.capacity != Some(BitRate::ZERO), "capacity", 0, "above 0")?;
        within(
            (10..=10_000).contains(&params.pairs),
            "pairs",
            params.pairs,
            "10 to 10000",
        )?;
        let text = units::format_duration(params.spacing);
        within(
            params.spacing <= Duration::from_secs(10),
            "spacing",
            text.as_str(),
            "0 to 10 s",
        )?;
        within((0.001..=1.0).contains(&params.load), "load", params.load, "0.001 to 1")?;
        Ok(params)
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
