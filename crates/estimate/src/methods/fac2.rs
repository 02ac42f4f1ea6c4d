//! FAC2: estimates available IP-layer path capacity from feedback-adaptive trains and the slope of their delays.
//!
//! # Model
//!
//! FIFO links; on the tight one the traffic of others, `X`, takes a share of the capacity `C` and leaves `A = C - X`.
//!
//! ```text
//!  growth of delay                    rate out
//!  ds/dt    __/  slope 1/C            |      _____.--- C R/(R + X)
//!       ___/                          |   _-'
//!  ____/______ R                      |_-'________ R
//!      A                                   A
//! ```
//!
//! A train sent at `R > A` comes out at `C R / (R + X)`, and its delays grow by `(R - A)/C` per unit of send time. Two phases:
//!
//! 1. *Feedback* (`[Netest03]`): the rate out becomes the next rate in. In `y = 1/R` that map is `y' = 1/C + (X/C) y` with the
//!    fixed point `1/A`, so two trains give the fixed point (Aitken's process). The published texts do not give the update
//!    rule; map and acceleration are ours.
//! 2. *Slopes*: trains at constant rates around the estimate, some above, some at it, one below. Each train above gives
//!    `A = R - C s` from the slope `s` of its delays; the answer is the median. `C` comes from all trains together.
//!
//! # Assumptions
//!
//! - A1 FIFO queues, and traffic of others that does not yield within a train.
//! - A2 That traffic is a fluid over the length of a train; bursts round off the knee and spread the trains' estimates.
//! - A3 The link that is tight is tight for all trains.
//! - A4 The sender can go faster than what is available.
//! - A5 Departure stamps are true; planned gaps are never used.
//! - A6 The two clocks drift by less than 1000 ppm within a train.
//!
//! # Formula
//!
//! Rates in bit/s at the IP layer, `s` dimensionless.
//!
//! - `rate_in`, `rate_out` (`reading.rs`): octets that arrived over the time from first departure to last; from first batch end
//!   to last batch end. `growth` is `s`, least squares of relative one-way delay on departure time over the last three quarters
//!   of the train.
//! - Batch ends (`batch_ends`): a packet that the next follows within 0.4 of the narrow link's packet time has waited in the
//!   receiving host; only the last of such a run is kept (`[PJD04]`).
//! - Next rate (`fit::next_rate`): `R_out`, or `(1 - u)/(y1' - u y1)` with `u = (y1' - y0')/(y1 - y0)` kept to half of `R_out`
//!   up to `R_out`.
//! - One link (`fit::through_knee`): `1/C = sum w s (R - A) / sum w (R - A)^2`, weights `w` the trains' send times. Far trains
//!   fix `C` best, and are right if the narrow link is the tight one.
//! - Another link (`fit::hinge`): `s = g max(0, R - K)` by least squares over knee `K` and gradient `g = 1/C`, on trains that
//!   the narrow link lets through. It covers a tight link that is not narrow, and two full links near the knee.
//! - Weights: with `D` the drop of the residual sum over its variance when the gradient is free, the second model has weight
//!   `1/(1 + exp(-(D - ln n)/2))` (Schwarz's criterion). While neither reaches 0.97 the interval spans both.
//! - Interval: order statistics around the median at 95 % (`[DN03]`), widened by twice the error of `C` times the mean overload,
//!   at least 2 % of the path's rate; of the second model also the knees that its likelihood allows at 95 %. By-products, where the error of `C` is below 10 %: cross traffic `C - A`, and `C` itself
//!   where far and near trains agree.
//! - Averaging interval: from the begin of the first slope train to the end of the last; the trains sample about a fifth of it.
//!
//! # Parameters
//!
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `preset` | | `slopes` | or `feedback` | the loop of phase 1 alone, with the confirmation below: `[Netest03]`, as far as it tells |
//! | `size` | IP octets | path MTU | 68 and up | fewest packets per octet |
//! | `capacity` | bit/s | fitted | above 0 | the tight link's, if known |
//! | `train-time` | time | 25 ms | 100 us to 1 s | ours: 200 packets at 100 Mbit/s average the traffic to 5 % |
//! | `trains` | | 10 | 3 to 1000 | ours; twice as many while the run is under 3 s and the interval over 6 % |
//! | `max-trains` | | 50 | from `trains` | ours: the end |
//! | `max-packets` | | 4000 | 50 to 20000 | 10 ms at 5 Gbit/s outweigh a 50 us interrupt timer |
//! | `burst` | octets | 150000 | 20000 and up | ours: half of a small switch's buffer; losses lower it |
//! | `load` | share | 0.2 | 0.001 to 1 | ours: short runs outweigh the 0.1 that long monitoring would take |
//!
//! | `far_end` | | auto | receiver, echo, reflector | ours: measured from one end |
//!
//! With `preset=feedback`: a train is congested if its rate falls by more than 1 %, or by what its stamps may be off; one that is not is
//! a candidate, which a train 10 % faster confirms if its rate falls by at least half of what the law says, or else replaces. Ten rounds,
//! three confirmations; the median of the candidates, between the last rates of either kind, at low confidence. Published is that the
//! received rate is what is available once the two rates agree, five round trips in theory; the rest is ours.
//!
//! # Cost
//!
//! On a 100 Mbit/s path: idle 8 trains, 3 MB, 1 s; loaded 25 to 35 trains, 3 to 7 MB, 2 to 3 s. At 10 Mbit/s 1.5 MB and 5
//! to 8 s, at 10 Gbit/s 30 MB (100 MB through a receiver that batches for 200 us) and under 1 s. The first train goes out as fast as the sender can: 50 packets. Later ones
//! exceed the estimate by at most 35 % of the path's rate and queue no more than `burst`.
//!
//! # Fails when
//!
//! - A1 (schedulers, wireless, yielding TCP): the trains disagree; the interval is wide.
//! - A2 at 10 Mbit/s and high load: trains of 50 packets spread by 15 %; the interval says so.
//! - A3, a tight link several times as fast as the narrow one (1 Gbit/s, 95 % full, behind 100 Mbit/s): overload makes delays
//!   grow by so little that noise hides it, and the estimate is too high, by up to the narrow link's rate less the truth.
//!   Nothing betrays it but a wide interval in most runs.
//! - A3, two links with as much left: what is available holds; the slopes are those of one link with two thirds of the capacity and
//!   a third of the traffic. Single packets of the fastest train show the narrow link's own rate: where that is another, capacity is not
//!   said, and of the traffic only that it is at least what the narrow link leaves. Where no packets follow one another at that rate
//!   (heavy load, batches) nothing tells, so by-products always have low confidence.
//! - A4: [`Verdict::LowerBound`](crate::Verdict), [`Caveat::SenderLimited`](crate::Caveat); never a point.
//! - A receiver that takes packets more slowly than the narrow link sends them, with stamps taken by the program: trains at its
//!   rate do not count; if the knee is there, [`Verdict::LowerBound`](crate::Verdict),
//!   [`Caveat::ReceiverLimited`](crate::Caveat). Stamps of kernel or card do not suffer.
//! - A5: slope trains whose sender calls them broken are repeated, six times for any deviation, then only if a gap exceeds a
//!   tenth of the train: [`Caveat::PacingBroken`](crate::Caveat), in the end [`Reason::SenderCannotPace`](crate::Reason).
//! - A6, clocks that are set: the train is repeated, [`Caveat::ClockStep`](crate::Caveat).
//! - Queues shorter than a train's overload: trains shrink to half of what was lost,
//!   [`Caveat::TrainExceedsBurstLimit`](crate::Caveat) when even 16 packets are too many. Loss at random is borne up to 15 %
//!   of a train, and the rate that arrives counts; the interval's upper end is raised by that share, since what is lost behind
//!   the tight link has gone through it.
//! - Receivers that batch: trains grow to 20 batches, [`Caveat::ReceiveBatching`](crate::Caveat); beyond `max-packets`
//!   [`Reason::ReceiveBatching`](crate::Reason).
//! - Token buckets: trains within the bucket's depth see the rate behind it, longer ones a mixture;
//!   [`Caveat::Shaped`](crate::Caveat) and low confidence if the heads of overloaded trains outrun their tails, or trains bend at one
//!   place; else [`Caveat::BucketNotExcluded`](crate::Caveat) says how deep a bucket would have gone unseen.
//! - Echoes instead of a receiver: the lesser of both ways, [`Caveat::ReverseInfluence`](crate::Caveat).
//!
//! # References
//!
//! - `[Netest03]` G. Jin, B. Tierney, Netest: A Tool to Measure the Maximum Burst Size, Available Bandwidth and Achievable
//!   Throughput, 2003.
//! - `[Jin03a]` G. Jin, B. Tierney, System Capability Effects on Algorithms for Network Bandwidth Measurement, IMC 2003.
//! - `[TOPP00]` B. Melander, M. Björkman, P. Gunningberg, A New End-to-End Probing and Analysis Method, Globecom 2000.
//! - `[PJD04]` R. Prasad, M. Jain, C. Dovrolis, Effects of Interrupt Coalescence on Network Measurements, PAM 2004.
//! - `[DN03]` H. David, H. Nagaraja, Order Statistics, 2003.

mod feedback;
mod finish;
mod fit;
pub(crate) mod machine;
mod reading;
#[cfg(test)]
mod tests;

use std::time::Duration;

use units::{BitRate, Layer, Metric};

use super::echoed::{Echoed, FAR_END};
use crate::facts::Answering;
use crate::observations::{self, AnalyseError, Observations};
use crate::probe::TrainReport;
use crate::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use crate::{Estimator, Outcome, PathFacts};

/// The method.
pub struct Fac2;

/// How far it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Feedback, then slopes (ours).
    Slopes,
    /// The feedback loop alone, as far as it was published.
    Feedback,
}

/// Its parameters; the module's documentation gives unit, range and source of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// How far it goes.
    pub preset: Preset,
    /// Length of the probe packets, IP header included; `None` takes the path MTU.
    pub ip_octets: Option<u16>,
    /// IP-layer capacity of the tight link, if known.
    pub capacity: Option<BitRate>,
    /// Send time that a train aims at.
    pub train_time: Duration,
    /// Slope trains that end a run; twice as many in the first three seconds.
    pub slope_trains: usize,
    /// Trains at most, whatever they are for.
    pub max_trains: usize,
    /// Packets of a train at most.
    pub max_packets: usize,
    /// Octets of queue that a train may build, until losses say less.
    pub burst_octets: u32,
    /// Mean load that the trains impose, as a share of the path's rate.
    pub load: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            preset: Preset::Slopes,
            ip_octets: None,
            capacity: None,
            train_time: Duration::from_millis(25),
            slope_trains: 10,
            max_trains: 50,
            max_packets: 4000,
            burst_octets: 150_000,
            load: 0.2,
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        raw.check_names(&INFO)?;
        let default = Self::default();
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let preset: String = raw.get("preset", "slopes".to_owned())?;
        let params = Self {
            preset: match preset.as_str() {
                "slopes" => Preset::Slopes,
                "feedback" => Preset::Feedback,
                _ => {
                    return Err(ParamError::Unreadable {
                        name: "preset".to_owned(),
                        value: preset,
                        why: "write slopes or feedback".to_owned(),
                    });
                }
            },
            ip_octets: given("size").then(|| raw.get("size", 1500)).transpose()?,
            capacity: given("capacity")
                .then(|| raw.get("capacity", BitRate::ZERO))
                .transpose()?,
            train_time: raw.get_duration("train-time", default.train_time)?,
            slope_trains: raw.get("trains", default.slope_trains)?,
            max_trains: raw.get("max-trains", default.max_trains)?,
            max_packets: raw.get("max-packets", default.max_packets)?,
            burst_octets: raw.get("burst", default.burst_octets)?,
            load: raw.get("load", default.load)?,
        };
        params.check()?;
        Ok(params)
    }
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let refuse = |name: &'static str, value: String, why: &str| {
            Err(ParamError::OutOfRange {
                name,
                value,
                why: why.to_owned(),
            })
        };
        if self.ip_octets.is_some_and(|octets| octets < 68) {
            return refuse(
                "size",
                format!("{:?}", self.ip_octets),
                "at least 68, the smallest MTU (RFC 791)",
            );
        }
        if self.capacity == Some(BitRate::ZERO) {
            return refuse("capacity", "0".to_owned(), "above 0");
        }
        let time = self.train_time;
        if !(Duration::from_micros(100)..=Duration::from_secs(1)).contains(&time) {
            return refuse("train-time", units::format_duration(time), "100 us to 1 s");
        }
        if !(3..=1000).contains(&self.slope_trains) {
            return refuse("trains", self.slope_trains.to_string(), "3 to 1000");
        }
        if self.max_trains < self.slope_trains {
            return refuse("max-trains", self.max_trains.to_string(), "at least trains");
        }
        if !(50..=20_000).contains(&self.max_packets) {
            return refuse("max-packets", self.max_packets.to_string(), "50 to 20000");
        }
        if self.burst_octets < 20_000 {
            return refuse(
                "burst",
                self.burst_octets.to_string(),
                "at least 20000, a dozen packets",
            );
        }
        if !(0.001..=1.0).contains(&self.load) {
            return refuse("load", self.load.to_string(), "0.001 to 1");
        }
        Ok(())
    }
}

impl Method for Fac2 {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        Ok(Box::new(Echoed::begin(params, machine)?))
    }

    fn answered_by(&self) -> &'static [Answering] {
        &[Answering::Server, Answering::Reflector, Answering::Echo]
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        observations::lead(Echoed::begin(params, machine)?, observations)
    }
}

/// What the reports of a run say, in the order in which they came: any trains of 16 packets or more that left evenly. Pure, and the
/// same machine that a run steps.
pub fn analyse(facts: &PathFacts, reports: &[TrainReport], params: &Params) -> Outcome {
    observations::lead_reports(machine::Machine::new(params.clone()), facts, reports)
}

fn machine(raw: &RawParams) -> Result<machine::Machine, ParamError> {
    Ok(machine::Machine::new(Params::try_from(raw)?))
}

static INFO: MethodInfo = MethodInfo {
    name: "fac2",
    summary: "available bandwidth from feedback-adaptive trains and the slope of their delays",
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
        typical_octets: 3_000_000,
        max_octets: 300_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: PARAMETERS,
    source: include_str!("fac2.rs"),
};

/// Name and meaning of each.
pub(crate) const PARAMETERS: &[(&str, &str)] = &[
    (
        "preset",
        "slopes, or feedback: the published loop alone, with its bracket for an interval (default: slopes)",
    ),
    ("size", "IP octets of a probe packet (default: path MTU)"),
    (
        "capacity",
        "IP-layer capacity of the tight link, if known (default: fitted)",
    ),
    ("train-time", "send time that a train aims at (default: 25 ms)"),
    (
        "trains",
        "slope trains that end a run; twice as many in its first 3 s (default: 10)",
    ),
    ("max-trains", "trains of all kinds at most (default: 50)"),
    ("max-packets", "packets of a train at most (default: 4000)"),
    ("burst", "octets of queue that a train may build (default: 150000)"),
    ("load", "mean load as a share of the path's rate (default: 0.2)"),
    FAR_END,
];
