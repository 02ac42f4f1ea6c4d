//! capprobe: estimates IP capacity from the packet pair that waited least.
//!
//! # Model
//!
//! ```text
//!  sender ──▶ [hop 1] ──▶ [narrow hop, C] ──▶ [hop 3] ──▶ receiver
//!  ▮▮           ▮▮           ▮   ▮              ▮   ▮         ▮   ▮
//!  back to back              └─δ─┘ set here          d1 ──────┘   │
//!                                                    d2 ──────────┘
//!  wider than δ:     other packets between the two  ▮ ▯ ▮   d2 is too large
//!  narrower than δ:  the first was held up behind    ▮▮     d1 is too large
//! ```
//!
//! Whatever disperses a pair wrongly is a queue, and a queue delays. The pair whose delays `d1 + d2` are least of many, and equal to
//! the sum of the least `d1` and the least `d2` of all, met no queue at all, and its dispersion is the narrow link's.
//!
//! # Assumptions
//!
//! - A1 FIFO hops of constant rate, no reordering.
//! - A2 The sender is faster than the narrow link.
//! - A3 Arrival stamps resolve the pair's dispersion, and packets are not seen in batches.
//! - A4 Now and then a pair crosses all hops without waiting.
//! - A5 Delays compare: clocks drift steadily, and the route stays.
//! - A6 With echoes: the way back is no narrower than the way there.
//!
//! # Formula
//!
//! `C = 8 W(L) / δ` with δ the dispersion in seconds and `W(L)` the octets that the narrow link's framing makes of L IP octets
//! (`mindelay::wire_rate`), restated for packets of the path's MTU (`mindelay::ip_rate`). A pair counts as clean if
//! `d1 + d2 - (min d1 + min d2)` is at most the tolerance times δ, or what the stamps may be wrong by (`mindelay::read`); δ is the mean
//! over the clean pairs whose sums the stamps cannot tell apart. A run ends when `stable` pairs in a row brought no new minimum
//! and `clean` pairs met the condition. Two runs of two sizes must agree; the answer is their mean, the interval from what all clean
//! pairs and the stamps leave open. If one pair in n is clean, `n = 1/p` pairs are to be expected per clean one
//! (`expected_pairs`): p is about the product of the hops' idle shares, 1/8 on three hops of 50 % load, 1/256 on eight.
//!
//! # Parameters
//!
//! Declared below; `narrows methods capprobe` prints the table.
//!
//! Pairs that differ much in dispersion are compressed more than they should be, for want of resolution: sizes grow. Pairs alike that do
//! not converge are expanded: sizes shrink, since a smaller packet finds empty queues more often. Departs from the kernel code where
//! it takes the winner after `still` pairs whether or not the condition holds: here that ends the run without an answer.
//!
//! # Cost
//!
//! Idle path: a test train of 20 packets and 41 pairs of each size, 145 kB, 2 s at 10 Mbit/s (5 % of the link). At most: seven
//! attempts of two runs of 100 pairs, 2.3 MB (kernel: 500 pairs), and 0.5 MB of checks.
//!
//! # Fails when
//!
//! - A1: reordered pairs are no samples, [`Caveat::Reordering`]. Striped links send the two packets side by side; like batches.
//! - A2: a winner that left as wide as it came is a lower bound, [`Caveat::SenderLimited`].
//! - A3: a batch brings pairs together without delaying them: most confident, and wrong. A test train comes first;
//!   [`Reason::ReceiveBatching`]. Stamps coarser than a tenth of δ with the largest packets: [`Reason::StampsTooCoarse`]. `pbprobe`
//!   measures there.
//! - A4: [`Reason::NotConverged`], with the best pair as evidence only (`best_pair_bps`): heavy load, many loaded hops, or traffic
//!   of constant rate that never leaves a hop idle. Small packets at a steady rate on a hop as slow as the narrow one part every
//!   pair, nearly alike, so that all may agree on `C / (1 + x/C)`: an answer found under load is checked with pairs of three,
//!   two and one sevenths of the smaller size. Those take their share of a large packet's time, with any framing of 0 to 60 octets, or the answer is
//!   [`Reason::NotConverged`] (`small_packets_contradict`); so it is if some of them find no idle moment. Not seen: parted pairs of
//!   all sizes in proportion, as packets do that follow one another much closer than the smallest pair; then the answer is too low.
//! - A5: skew is removed (the line below the first packets' delays); a stepped clock or another route leaves too few clean pairs.
//! - A6: echoes tell the lesser of the two directions' capacities, and the result is a lower bound with
//!   [`Caveat::AsymmetricLimit`]; answers below a quarter of the probes do so only of ways back slower by more than that,
//!   [`Caveat::ReverseInfluence`]. A far host that limits its answers below what a run needs is not asked: [`Reason::NotOffered`]. Echoes with the far end's own stamps (`far_end=reflector`) tell the way there alone.
//!
//! # References
//!
//! - `[CapProbe04]` R. Kapoor, L.-J. Chen, L. Lao, M. Gerla, M. Y. Sanadidi: `CapProbe`: a simple and accurate capacity
//!   estimation technique, SIGCOMM 2004.
//! - `[CapProbeLinux]` `capprobe.c`, a re-implementation of `CapProbe` for Linux 4.1.
//! - `[pbprobe]` source of the tool of `[PBProbe08]`, whose comments quote the constants of `[CapProbe04]`.

mod answer;
mod check;
mod params;
mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

pub use self::params::{Params, Preset};
pub use self::run::Run;
use narrows_probe::contract::Estimator;
use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, EVERYTHING, Imposes, Method, MethodInfo, Methodology, Needs, ParamError,
    Privilege, Protocol, RawParams, Scope,
};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct CapProbe;

static INFO: MethodInfo = MethodInfo {
    name: "capprobe",
    summary: "capacity from the packet pair that met no queue",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
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
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 150_000,
        max_octets: 4_000_000,
        typical_time: Duration::from_secs(2),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("capprobe.rs"),
};

impl Method for CapProbe {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn answered_by(&self) -> &'static [Answering] {
        &EVERYTHING
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        let Ok(params) = Params::try_from(raw) else {
            return usual;
        };
        let pairs = u64::try_from(params.most).unwrap_or(u64::MAX).max(100);
        let attempts = u64::from(params.restarts) + 1;
        let factor = (pairs * attempts).div_ceil(700);
        let time = usual.max_time * u32::try_from(factor).unwrap_or(u32::MAX).max(1);
        usual.lasting(time)
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(raw)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::lead(Run::new(Params::try_from(params)?), observations)
    }
}
