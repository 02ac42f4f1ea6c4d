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
//!   most 75 %; chance: a fifth of the bursts was cut below a quarter of it. Shaper: trains bend (`crate::bucket`) ahead of 85 % of
//!   the burst.
//! - Octets or packets (`queue.rs`): `MBS (1 - A / R)` in packets, of small over large ones: 1 if packets are counted, the ratio of
//!   lengths if octets are; within a fifth of the middle (logarithmic) neither is claimed.
//! - With `rates` or `curve`: `MBS` at each, and least squares of `1 / MBS = (1 / Q') (1 - A / R)` over the rates, weights `MBS^4`;
//!   rates at which no more came through than at faster ones were not what left (a slower first link) and do not count. Code: `effective`,
//!   `telling`. Queue by delay: longest growth of the delay times the rate that comes through, and one packet.
//!
//! # Parameters
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `ip_octets` | octets | path MTU | 64 to path MTU | ours |
//! | `available_bps` | bit/s | none | above 0 | for the pauses |
//! | `bursts` | count | 20 | 1 to 1000 | 20 bound the loss probability to 14 % |
//! | `confirm` | count | 1 | 1 to 10 | loss-free bursts that make a size survive; the sample corrects a lucky one |
//! | `max_octets` | octets | 2 MB | 8 packets to 64 MB | largest burst |
//! | `total_octets` | octets | 8 MB | above 0 | end of the search |
//! | `max_time` | time | 3 s, at least 20 RTT | 10 ms to 10 min | end of the search |
//! | `rates` | bit/s, comma between | none | up to 8 | `[Netest03]` varies the rate; the line is ours |
//! | `detail` | flag | false | | long and small bursts and the curve; 16 MB, 200 MB and 30 s at most instead |
//! | `curve` | count | 0, detail 4 | 0 to 8 | rates evenly in `1 / R` down to 1.5 times what comes through (ours) |
//! | `rate_bursts` | count | 4 | 1 to 100 | ours |
//! | `small_octets` | octets | 300 | 64 to 9000 | ours: a fifth of 1500 |
//! | `load` | share | none | 0.001 to 1 | the procedure derived from `[Netest03]` has 0.05 |
//! | `far_end` | word | auto | | `crate::methods::echoed` |
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

use units::{BitRate, Metric, Octets};

use super::bulk;
use super::echoed::{Echoed, FAR_END};
use crate::contract::Estimator;
use crate::facts::Answering;
use crate::observations::{self, AnalyseError, Observations};
use crate::outcome::Outcome;
use crate::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use machine::Run;

/// The method.
pub(super) struct Burst;

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
        layer: Some(units::Layer::Ip),
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
    parameters: &[
        ("ip_octets", "length of each packet, octets; default: the path MTU"),
        (
            "available_bps",
            "available rate, for the pauses; default: from the bursts",
        ),
        ("bursts", "bursts in the sample; default 20"),
        ("confirm", "loss-free bursts that make a size survive; default 1"),
        ("max_octets", "largest burst; default 2 MB"),
        ("total_octets", "end of the search; default 8 MB"),
        ("max_time", "end of the search; default 3 s"),
        ("rates", "rates for the line in 1/R, comma between; default: none"),
        (
            "detail",
            "true: what drops, what it counts, and the curve; default false",
        ),
        (
            "curve",
            "rates of the curve where `rates` gives none; default 0, with detail 4",
        ),
        ("rate_bursts", "cut bursts per rate of the curve; default 4"),
        ("small_octets", "length of the small packets of detail; default 300"),
        (
            "load",
            "share of what is available that bursts may average; default: no bound",
        ),
        FAR_END,
    ],
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

/// Parameters, as in the table above.
#[derive(Debug, Clone, PartialEq)]
struct Params {
    ip_octets: Option<u16>,
    available: Option<BitRate>,
    bursts: usize,
    confirm: u32,
    max_octets: u64,
    total_octets: u64,
    max_time: Option<Duration>,
    rates: Vec<BitRate>,
    detail: bool,
    curve: u32,
    rate_bursts: usize,
    small_octets: u16,
    load: Option<f64>,
}

impl Params {
    /// How long the method may take where the caller does not say.
    fn patience(&self) -> Duration {
        Duration::from_secs(if self.detail { 30 } else { 3 })
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        let rates: String = raw.get("rates", String::new())?;
        let rates = rates
            .split(',')
            .filter(|text| !text.trim().is_empty())
            .map(|text| {
                text.parse()
                    .map_err(|error: units::ParseQuantityError| ParamError::Unreadable {
                        name: "rates".to_owned(),
                        value: text.to_owned(),
                        why: error.to_string(),
                    })
            })
            .collect::<Result<Vec<BitRate>, _>>()?;
        bulk::check("rates", rates.len() <= 8, rates.len(), "at most 8 of them")?;
        bulk::check("rates", !rates.contains(&BitRate::ZERO), 0, "rates above zero")?;
        let detail = raw.get("detail", false)?;
        let octets = |usual, detailed| Octets::new(if detail { detailed } else { usual });
        let params = Self {
            ip_octets: bulk::optional(raw, "ip_octets", 0)?,
            available: bulk::optional_rate(raw, "available_bps")?,
            bursts: raw.get("bursts", 20)?,
            confirm: raw.get("confirm", 1)?,
            max_octets: raw.get("max_octets", octets(2_000_000, 16_000_000))?.count(),
            total_octets: raw.get("total_octets", octets(8_000_000, 200_000_000))?.count(),
            max_time: bulk::optional_duration(raw, "max_time", Duration::from_millis(10), Duration::from_secs(600))?,
            rates,
            detail,
            curve: raw.get("curve", if detail { 4 } else { 0 })?,
            rate_bursts: raw.get("rate_bursts", 4)?,
            small_octets: raw.get("small_octets", 300)?,
            load: bulk::optional(raw, "load", 0.0)?,
        };
        let octets = params.ip_octets.unwrap_or(1500);
        bulk::check("ip_octets", octets >= 64, octets, "64 to the path MTU")?;
        bulk::check(
            "bursts",
            (1..=1000).contains(&params.bursts),
            params.bursts,
            "1 to 1000",
        )?;
        bulk::check("confirm", (1..=10).contains(&params.confirm), params.confirm, "1 to 10")?;
        let largest = params.max_octets;
        bulk::check(
            "max_octets",
            (512..=64_000_000).contains(&largest),
            largest,
            "8 packets to 64 MB",
        )?;
        bulk::check("curve", params.curve <= 8, params.curve, "at most 8")?;
        let each = params.rate_bursts;
        bulk::check("rate_bursts", (1..=100).contains(&each), each, "1 to 100")?;
        let small = params.small_octets;
        bulk::check("small_octets", (64..=9000).contains(&small), small, "64 to 9000")?;
        if let Some(load) = params.load {
            let fine = load.is_finite() && (0.001..=1.0).contains(&load);
            bulk::check("load", fine, load, "0.001 to 1")?;
        }
        bulk::check("total_octets", params.total_octets > 0, 0, "above zero")?;
        Ok(params)
    }
}
