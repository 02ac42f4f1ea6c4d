//! Yaz: estimates available IP-layer path capacity from trains whose mean spacing grows until it survives the path.
//!
//! # Model
//!
//! FIFO links; on the tight one the traffic of others, `X`, takes a share `u = X/C` of the capacity `C` and leaves `A = C - X`.
//!
//! ```text
//!  spacing out                  a train at spacing g_in < L/A comes at g_out = L/C + u g_in;
//!   |      .-' g_out = g_in     the next one leaves at g_in + s (g_out - g_in); where nothing
//!   |  _.-/-- L/C + u g_in      has grown, L/g_in is what is available
//!   |-' /
//!   |__/______ spacing in
//!      L/A
//! ```
//!
//! The mean spacing of a train is compared, never a single gap. The search begins at the highest rate and only ever slows down.
//!
//! # Assumptions
//!
//! - A1 FIFO queues, and traffic of others that does not yield within a train.
//! - A2 That traffic is a fluid over the length of a train.
//! - A3 The sender can go faster than what is available.
//! - A4 Departure stamps are true; planned gaps are never used.
//! - A5 What is available stays for the time of the search, for it never goes back.
//!
//! # Formula
//!
//! Spacings in ns, `L` bits of a packet at the IP layer, `R = L/g_in`, `d = g_out - g_in` over the trains of one rate.
//!
//! - Too fast: `d > max(floor, L/(R - w) - g_in) + allowance s_d`, with the resolution `w` and the spread `s_d` of one train
//!   (`turning.rs`, `limit_ns`), or losses above `loss`. The original, and `preset=tool`: `|d|`, and no allowance.
//! - Next spacing (`next_gap`): `g_in + step |d|`, at least by `step` of the limit. With `step` = 1 that is the map of `fac2`; the
//!   tool takes 1/2.
//! - Fluid law: a step takes `step (1 - u)` off the error of the spacing; the rate at the stop is above `A` by up to `w/(1 - u)`, with
//!   a floor of 1 us by about `R C 1 us/L`: 7 % at 1 Gbit/s, all there is at 10 Gbit/s with packets of 1500 octets. Intervals cover it.
//! - Interval: the errors of `d` (twice the standard error; limit) over `1 - u`, `u` as the rounds show it.
//! - Spacing that would exceed `max-gap`: packets are halved, down to `min-size`; then the answer is an upper bound.
//!
//! # Parameters
//!
//! | name | unit | default | preset tool | range | source |
//! |---|---|---|---|---|---|
//! | `preset` | | adaptive | tool | | the tool's constants, read in its source |
//! | `size` | IP octets | path MTU | 1500 | 68 and up | tool |
//! | `min-size` | IP octets | 200 | 200 | 68 and up | tool |
//! | `start` | bit/s | the sender's highest | 40 us per packet | above 0 | tool: 300 Mbit/s for 1500 octets; it ignores its own option |
//! | `packets` | | by `train-time` | 50 | 16 to 20000 | tool: 2 to 250 |
//! | `train-time` | time | 25 ms | - | 100 us to 1 s | ours: 50 to 600 packets |
//! | `max-packets` | | 4000 | 250 | 50 to 20000 | tool; ours |
//! | `streams` | | 2 | 1 | 1 to 100 | tool: 1 to 5; ours: two tell what trains differ by |
//! | `max-streams` | | 12 | 1 | from `streams` | ours |
//! | `resolution` | bit/s or share | 0.01 | 500 kbit/s | above 0 | tool; a share of the rate is ours |
//! | `floor` | time | 0 | 1 us | 0 to 1 ms | tool: clocks of a microsecond |
//! | `step` | | 1 | 0.5 | 0.1 to 1 | tool; ours |
//! | `allowance` | deviations | 0.8 | 0 | 0 to 3 | ours: what a knee that packets round off adds |
//! | `max-gap` | time | 3.2 ms | 3.2 ms | 10 us to 100 ms | tool: 1 ms, or the least packet at the resolution |
//! | `max-rounds` | | 40 | 40 | 3 to 200 | ours: the end of any search |
//! | `loss` | share | 0.03 | 0.03 | 0 to 0.5 | ours; the tool: one packet |
//! | `burst` | octets | 150000 | 10000000 | 20000 and up | ours: half of a small switch's buffer |
//! | `load` | share | 0.2 | 0.2 | 0.001 to 1 | ours; the tool pauses for 50 ms on the mean |
//!
//! # Cost
//!
//! On a 100 Mbit/s path 10 to 35 trains, 2 to 6 MB, 1 to 4 s. With `preset=tool` 8 to 20 trains of 50 packets, 1 MB.
//!
//! # Fails when
//!
//! - A2: at 10 Mbit/s and high load trains of 50 packets spread by 15 %; the search stops early or late and the interval says so.
//!   With `preset=tool` (fifty packets, one train, no allowance) it stops anywhere within a tenth of the capacity.
//! - A3: [`Verdict::LowerBound`](crate::Verdict), [`Caveat::SenderLimited`](crate::Caveat); never a point. `start` below what is
//!   available: a lower bound, too.
//! - A5, more traffic during the search: too low; less: too high. Nothing betrays either.
//! - Loss: trains shrink first where late packets are lost; losses above `loss` then count as too fast. All lost:
//!   [`Reason::NoAnswer`](crate::Reason) after seven trains.
//! - Receivers that batch: batch ends count, trains grow to 20 batches, [`Caveat::ReceiveBatching`](crate::Caveat); beyond
//!   `max-packets` [`Reason::ReceiveBatching`](crate::Reason).
//! - A receiver that stamps more slowly than the path sends: [`Verdict::LowerBound`](crate::Verdict).
//! - Token buckets deeper than a train: the rate behind them; [`Caveat::Shaped`](crate::Caveat) where heads outrun tails.
//!
//! Not reproduced from the tool (read in its source, release of 2006): the initial spacing given by the user is overwritten by
//! 40 us, so that rates above 300 Mbit/s are out of reach; receiver means are cut to whole microseconds on the wire; the checks
//! that the sender kept its spacing, and that the rate was too high to tell, are compiled out; one lost packet counts as two, so that any loss
//! is congestion; a gap above a clock tick is left out, but for losses; the target is cut to whole microseconds, and raised by 2 us
//! where that stalls it, five times; one train rejected by the receiver ends a run of one stream with an error. Its check of the
//! hop limit is not made: worlds do not tell it.
//!
//! # References
//!
//! - `[Yaz06]` J. Sommers, P. Barford, W. Willinger, A Proposed Framework for Calibration of Available Bandwidth Estimation Tools,
//!   ISCC 2006. Not re-read: the tool's source is what is followed.
//! - `[Kachan17]` D. Kachan, V. Kirova, M. Korniichuk, Performance evaluation of PRM-based available bandwidth using estimation tools
//!   in a high-speed network environment, 2017.
//! - `[PJD04]` R. Prasad, M. Jain, C. Dovrolis, Effects of Interrupt Coalescence on Network Measurements, PAM 2004.

#[cfg(test)]
mod tests;

use std::time::Duration;

use units::{BitRate, Layer, Metric};

use crate::contract::Estimator;
use crate::methods::campaign::{Machine, nanos, unreadable, within};
use crate::methods::turning::{Ending, Length, Resolution, Rule, Seen, Session, Settings, Turn};
use crate::observations::{self, AnalyseError, Observations};
use crate::outcome::Outcome;
use crate::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Yaz;

/// Its parameters; the module's documentation gives unit, range and source of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// What all such searches share.
    pub search: Settings,
    /// Least IP octets of a packet.
    pub min_octets: u16,
    /// Share of the stretch by which the spacing grows.
    pub step: f64,
    /// Widest spacing.
    pub max_gap: Duration,
}

impl Params {
    fn adaptive() -> Self {
        Self {
            search: Settings {
                ip_octets: None,
                start: None,
                length: Length::Time(Duration::from_millis(25)),
                max_packets: 4000,
                streams: 2,
                most_streams: 12,
                max_rounds: 40,
                resolution: Resolution::Share(0.01),
                floor: Duration::ZERO,
                allowance: 0.8,
                compression: false,
                loss: 0.03,
                burst_octets: 150_000,
                load: 0.2,
            },
            min_octets: 200,
            step: 1.0,
            max_gap: Duration::from_micros(3200),
        }
    }

    fn tool() -> Self {
        let octets = 1500;
        Self {
            search: Settings {
                ip_octets: Some(octets),
                start: BitRate::over(octets.into(), Duration::from_micros(40)),
                length: Length::Packets(50),
                max_packets: 250,
                streams: 1,
                most_streams: 1,
                resolution: Resolution::Rate(BitRate::from_bps(500_000)),
                floor: Duration::from_micros(1),
                allowance: 0.0,
                compression: true,
                burst_octets: 10_000_000,
                ..Self::adaptive().search
            },
            step: 0.5,
            ..Self::adaptive()
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        raw.check_names(&INFO)?;
        let base = match raw.get("preset", "adaptive".to_owned())?.as_str() {
            "adaptive" => Self::adaptive(),
            "tool" => Self::tool(),
            other => return Err(unreadable("preset", other, "write adaptive or tool")),
        };
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let mut search = base.search;
        if given("train-time") {
            search.length = Length::Time(raw.get_duration("train-time", Duration::ZERO)?);
        }
        if given("packets") {
            search.length = Length::Packets(raw.get("packets", 50)?);
        }
        search.floor = raw.get_duration("floor", search.floor)?;
        let params = Self {
            search: search.read(raw)?,
            min_octets: raw.get("min-size", base.min_octets)?,
            step: raw.get("step", base.step)?,
            max_gap: raw.get_duration("max-gap", base.max_gap)?,
        };
        within(
            params.min_octets >= 68,
            "min-size",
            params.min_octets,
            "at least 68, the smallest MTU (RFC 791)",
        )?;
        within((0.1..=1.0).contains(&params.step), "step", params.step, "0.1 to 1")?;
        let floor = params.search.floor.as_secs_f64();
        within(floor <= 1e-3, "floor", floor, "0 to 1 ms")?;
        let gap = params.max_gap.as_secs_f64();
        within((1e-5..=0.1).contains(&gap), "max-gap", gap, "10 us to 100 ms")?;
        Ok(params)
    }
}

/// The tool's rule.
#[derive(Debug, Clone)]
struct Slower {
    min_octets: u16,
    step: f64,
    max_gap_ns: f64,
}

impl Slower {
    fn session(params: Params) -> Session<Self> {
        let rule = Self {
            min_octets: params.min_octets,
            step: params.step,
            max_gap_ns: nanos(params.max_gap),
        };
        Session::new(rule, params.search)
    }
}

impl Rule for Slower {
    const READS: (&'static str, &'static str) = (
        "yaz",
        "trains of 16 packets or more to the receiver, of ever lower rates",
    );

    fn turn(&mut self, settings: &Settings, seen: &Seen) -> Turn {
        let mut all = seen.judged();
        let Some(round) = all.next_back() else {
            return Turn::Stop(Ending::Exhausted);
        };
        if !round.is_congested() {
            // At the first rate already: nothing tells how much more there is.
            let first = all.next_back().is_none() && settings.start.is_some();
            return Turn::Stop(if first { Ending::BelowStart } else { Ending::Settled });
        }
        let grown = round.stretch().abs().max(seen.limit_ns(settings, round));
        let gap = round.gap_in() + (self.step * grown).max(1.0);
        if gap < self.max_gap_ns {
            return Turn::Gap(gap);
        }
        let octets = (round.ip_octets / 2).max(self.min_octets);
        if octets >= round.ip_octets {
            return Turn::Stop(Ending::TooLow);
        }
        // The same rate in smaller packets.
        Turn::Smaller(octets, gap * f64::from(octets) / f64::from(round.ip_octets))
    }

    fn value(&self, _: &Settings, seen: &Seen) -> Option<f64> {
        let last = seen.judged().next_back().filter(|round| !round.is_congested())?;
        Some(last.rate_in()).filter(|rate| rate.is_finite())
    }
}

static INFO: MethodInfo = MethodInfo {
    name: "yaz",
    summary: "available bandwidth from trains that slow down until their mean spacing survives the path",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::ProbeRate,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs {
        single_packet_stamps: false,
        sender_faster_than_result: true,
        pacing: true,
    },
    imposes: Imposes {
        typical_octets: 4_000_000,
        max_octets: 300_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: PARAMETERS,
    source: include_str!("yaz.rs"),
};

/// Name and meaning of each.
const PARAMETERS: &[(&str, &str)] = &[
    (
        "preset",
        "adaptive or tool (its constants, and its rule for spacing that shrinks); adaptive",
    ),
    ("size", "IP octets of a packet (default: path MTU; tool: 1500)"),
    ("min-size", "IP octets of a packet at least, where rates are low; 200"),
    (
        "start",
        "rate of the first train (default: the sender's highest; tool: 40 us per packet)",
    ),
    ("packets", "packets of a train (default: by train-time; tool: 50)"),
    ("train-time", "send time that a train aims at (default: 25 ms)"),
    ("max-packets", "packets of a train at most (default: 4000; tool: 250)"),
    ("streams", "trains of one rate at least (default: 2; tool: 1)"),
    ("max-streams", "trains of one rate at most (default: 12; tool: 1)"),
    (
        "resolution",
        "share of the rate, or rate, that counts (default: 0.01; tool: 500 kbit/s)",
    ),
    (
        "floor",
        "difference of mean spacings that never counts (default: 0; tool: 1 us)",
    ),
    (
        "step",
        "share of the growth by which the spacing is widened, 0.1..1; 1, tool 0.5",
    ),
    (
        "allowance",
        "deviations of a full queue's train that are allowed for, 0..3; 0.8, tool 0",
    ),
    ("max-gap", "widest spacing before packets are halved (default: 3.2 ms)"),
    ("max-rounds", "rates tried at most (default: 40)"),
    (
        "loss",
        "share of packets lost from which a rate is too high (default: 0.03)",
    ),
    (
        "burst",
        "octets of queue that a train may build (default: 150000; tool: 10000000)",
    ),
    ("load", "mean load as a share of the path's rate (default: 0.2)"),
];

impl Method for Yaz {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        Params::try_from(raw).map_or(usual.clone(), |params| params.search.imposes(&usual))
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        Ok(Box::new(Machine::new(Slower::session(Params::try_from(raw)?))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        observations::lead(Machine::new(Slower::session(Params::try_from(raw)?)), observations)
    }
}
