//! Burst: estimates the maximum burst size from back-to-back trains.
//!
//! # Model
//! One tight queue of `Q` octets, served at `C`, shared with other traffic at `X`. A burst at rate `R` fills it:
//! ```text
//!   sender --R-->  [ q0 |=== Q ===| ] --C-->  receiver
//!                        ^ X
//! ```
//! The queue overflows once `(Q - q0) 8 / (R + X - C)` have passed, so that the largest burst without loss is
//! `MBS(R) = (Q - q0) R / (R + X - C)`. It is a property of path *and* sender: the rate `R` belongs to every answer.
//!
//! # Assumptions
//! - A1 One element drops first, and drops what arrives last.
//! - A2 The sender can overrun it: `R > C - X`.
//! - A3 The queue is empty again when the next burst comes.
//! - A4 Packets that the receiving host dropped are counted by it and not taken for the path's.
//!
//! # Formula
//! - Search: sizes double from 8 packets until one loses; the bracket is then narrowed to 5 %, first at the size that the last
//!   cut burst let through. Code: `search.rs`.
//! - Sample: bursts of the bracket's upper size plus 5 %, a quarter more after each that survived; `f_i` octets (whole packets) ahead of the
//!   first loss, or at least all octets. Value: the median of `f_i` by the product-limit estimate (`[KM58]`); low: its 10th percentile;
//!   high: its maximum plus one packet. Code: `together`.
//! - No loss in `n` bursts of the smallest `f_i`: loss probability at most `1 - 0.05^(1/n)` (95 %, exact binomial).
//! - Pause between bursts of `B` octets: `max(16 B / A + RTT, min(4 RTT, 200 ms), 50 ms)`, varied by a quarter either way so that no periodic
//!   traffic keeps step (`A` as given, else the slowest rate at which a burst arrived).
//!   Doubled, up to 16 times, while bursts find more than 15 % of the longest delay waiting for them. With `load`, bursts average that share
//!   of `A`, or 1 Mbit/s if that is more.
//! - Policer or queue: delay of the packet ahead of the first loss over `8 m / r - m`'s time to leave, `r` the rate at which
//!   packets behind the loss arrived; 1 for a queue, 0 for a policer, below 0.3 reported as a policer. Ours. Code: `queueing`.
//! - What drops (`policy.rs`, all limits ours): delays `d` of packets ahead of losses, over the least of the run, freed from drift.
//!   Drop-tail: the 10th percentile of `d` is at least 85 % of the 90th, for a queue is as long each time it is full; early drop: at
//!   most 75 %; chance: a fifth of the bursts was cut below a quarter of it. Shaper: trains bend (`narrows_train::bucket`) ahead of 85 % of
//!   the burst.
//! - Octets or packets (`queue.rs`): `MBS (1 - A / R)` in packets, of small over large ones: 1 if packets are counted, the ratio of
//!   lengths if octets are; within a fifth of the middle (logarithmic) neither is claimed.
//! - With `rates` or `curve`: `MBS` at each, and least squares of `1 / MBS = (1 / Q') (1 - A / R)` over the rates, weights `MBS^4`;
//!   rates at which no more came through than at faster ones were not what left (a slower first link) and do not count. Code: `effective`,
//!   `telling`. Queue by delay: longest growth of the delay times the rate that comes through, and one packet.
//!
//! # Parameters
//! Declared below; `narrows methods burst` prints the table.
//!
//! # Cost
//! About `2 MBS` for the search, `3 MBS` for the bracket, 21 `MBS` for the sample: 2 MB and 1.5 s for a queue of 64 kB at
//! 100 Mbit/s. Each burst fills the queue for the time that it takes to drain. In detail about 60 `MBS` more, and 0.35 s per burst that
//! is cut, for losses are waited for.
//!
//! # Fails when
//! - A1 (active queue management): `f_i` scatter; low and high show it. Random loss: a lower bound, `loss`.
//! - Against echoes alone the way back may drop: `reverse_influence`.
//! - A2: no loss up to the cap: a lower bound, limited by the sender if bursts arrive as fast as they leave.
//! - A3 (`A` overrated, or slow shapers with a bucket): later bursts are cut earlier than the first; low shows it.
//! - A4 (receiver that does not count): its socket buffer is taken for the path's queue.
//! - Too few bursts before time or octets ran out: `few_samples`; policer instead of a queue: `policed`.
//!
//! # References
//! - `[KM58]` Kaplan, Meier: Nonparametric estimation from incomplete observations, 1958.
//! - `[Netest03]` Jin, Tierney: Netest: a tool to measure the maximum burst size, available bandwidth and achievable throughput, 2003.
//! - [RFC 5136] Chimento, Ishac: Defining network capacity, 2008.

mod analyse;
mod machine;
mod policy;
mod queue;
mod result;
mod search;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Metric, Octets};

use machine::Run;
use narrows_probe::contract::Estimator;
use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Parameter,
    Privilege, Protocol, Range, RawParams, Scope, joined, params,
};
use narrows_train::echoed::{Echoed, FAR_END};

/// The method.
pub struct Burst;

/// What the last probe may take beyond the end of the search.
const LAST_PROBE: Duration = Duration::from_secs(2);

static INFO: MethodInfo = MethodInfo {
    name: "burst",
    summary: "maximum burst size from back-to-back trains",
    metric: Metric::MaximumBurstOctets,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::BurstLoss,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(narrows_units::Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: false,
        sender_faster_than_result: true,
        pacing: false,
    },
    imposes: Imposes {
        typical_octets: 2_000_000,
        max_octets: 10_000_000,
        typical_time: Duration::from_millis(1500),
        max_time: Duration::from_secs(10),
        fills_path: false,
    },
    parameters: &PARAMETERS,
    source: include_str!("burst.rs"),
};

impl Method for Burst {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        match Params::try_from(params) {
            Ok(params) => {
                let lasting = usual.lasting(params.max_time.unwrap_or(params.patience()) + LAST_PROBE);
                Imposes {
                    max_octets: lasting.max_octets.max(params.total_octets),
                    ..lasting
                }
            }
            Err(_) => usual,
        }
    }

    fn answered_by(&self) -> &'static [Answering] {
        &[Answering::Server, Answering::Reflector, Answering::Echo]
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        params.check_names(&INFO)?;
        Ok(Box::new(Echoed::begin(params, machine)?))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::lead(Echoed::begin(params, machine)?, observations)
    }
}

fn machine(params: &RawParams) -> Result<Run, ParamError> {
    Ok(Run::new(Params::try_from(params)?))
}

impl Params {
    /// How long the method may take where the caller does not say.
    fn patience(&self) -> Duration {
        Duration::from_secs(if self.detail { 30 } else { 3 })
    }
}

params! {
    /// What the caller can set.
    #[derive(Debug, Clone, PartialEq)]
    struct Params {
        /// What drops, what it counts, and the curve.
        detail: bool = "false" { range: Range::SWITCH, source: "ours" },
        /// Length of each packet, no more than the path MTU.
        ip_octets: Option<u16> = "path MTU" { unit: "IP octets", range: AtLeast("64"), source: "ours" },
        /// Available rate, for the pauses.
        available: Option<BitRate> = "from the bursts" {
            name: "available_bps", range: AtLeast("1 bit/s"), source: "measured beforehand",
        },
        /// Bursts in the sample.
        bursts: usize = "20" { range: Between("1", "1000"), source: "20 bound the loss probability to 14 %" },
        /// Loss-free bursts that make a size survive.
        confirm: u32 = "1" { range: Between("1", "10"), source: "ours; the sample corrects a lucky one" },
        /// Largest burst; the least is 8 packets of 64.
        max_octets: u64 = "2 MB" from Octets => (Octets::count) {
            range: Between("512 B", "64 MB"), presets: &[("true", "16 MB")], source: "ours",
        },
        /// Octets that end the search.
        total_octets: u64 = "8 MB" from Octets => (Octets::count) {
            range: AtLeast("1 B"), presets: &[("true", "200 MB")], source: "ours",
        },
        /// End of the search.
        max_time: Option<Duration> = "3 s, at least 20 RTT; true: 30 s" {
            range: Between("10 ms", "10 min"), source: "ours",
        },
        /// Rates of the curve, comma between.
        rates: Vec<BitRate> = "" with (rates) {
            range: Described("up to 8, each above 0"), source: "[Netest03] varies the rate; the line is ours",
        },
        /// Rates of the curve where `rates` gives none, evenly in `1 / R` down to 1.5 times what comes through.
        curve: u32 = "0" { range: Between("0", "8"), presets: &[("true", "4")], source: "ours" },
        /// Cut bursts per rate of the curve.
        rate_bursts: usize = "4" { range: Between("1", "100"), source: "ours" },
        /// Length of the small packets of detail.
        small_octets: u16 = "300" { unit: "IP octets", range: Between("64", "9000"), source: "ours: a fifth of 1500" },
        /// What of the available rate bursts may average.
        load: Option<f64> = "no bound" {
            unit: "share", range: Between("0.001", "1"), source: "the procedure derived from [Netest03] has 0.05",
        },
    }
}

/// Rates with commas between them.
fn rates(text: &str) -> Result<Vec<BitRate>, String> {
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    let rates: Vec<BitRate> = parts
        .map(|part| {
            part.parse()
                .map_err(|error: narrows_units::ParseQuantityError| error.to_string())
        })
        .collect::<Result<_, _>>()?;
    if rates.len() > 8 || rates.contains(&BitRate::ZERO) {
        return Err("write at most 8 rates above zero".to_owned());
    }
    Ok(rates)
}

/// With the far end, which `echoed` reads.
const PARAMETERS: [Parameter; 14] = joined(Params::PARAMETERS, &[FAR_END]);
