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
//! Declared below; `narrows methods fac2` prints the table.
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
//! - A4: [`Verdict::LowerBound`](narrows_probe::Verdict), [`Caveat::SenderLimited`](narrows_probe::Caveat); never a point.
//! - A receiver that takes packets more slowly than the narrow link sends them, with stamps taken by the program: trains at its
//!   rate do not count; if the knee is there, [`Verdict::LowerBound`](narrows_probe::Verdict),
//!   [`Caveat::ReceiverLimited`](narrows_probe::Caveat). Stamps of kernel or card do not suffer.
//! - A5: slope trains whose sender calls them broken are repeated, six times for any deviation, then only if a gap exceeds a
//!   tenth of the train: [`Caveat::PacingBroken`](narrows_probe::Caveat), in the end [`Reason::SenderCannotPace`](narrows_probe::Reason).
//! - A6, clocks that are set: the train is repeated, [`Caveat::ClockStep`](narrows_probe::Caveat).
//! - Queues shorter than a train's overload: trains shrink to half of what was lost,
//!   [`Caveat::TrainExceedsBurstLimit`](narrows_probe::Caveat) when even 16 packets are too many. Loss at random is borne up to 15 %
//!   of a train, and the rate that arrives counts; the interval's upper end is raised by that share, since what is lost behind
//!   the tight link has gone through it.
//! - Receivers that batch: trains grow to 20 batches, [`Caveat::ReceiveBatching`](narrows_probe::Caveat); beyond `max-packets`
//!   [`Reason::ReceiveBatching`](narrows_probe::Reason).
//! - Token buckets: trains within the bucket's depth see the rate behind it, longer ones a mixture;
//!   [`Caveat::Shaped`](narrows_probe::Caveat) and low confidence if the heads of overloaded trains outrun their tails, or trains bend at one
//!   place; else [`Caveat::BucketNotExcluded`](narrows_probe::Caveat) says how deep a bucket would have gone unseen.
//! - Echoes instead of a receiver: the lesser of both ways, [`Caveat::ReverseInfluence`](narrows_probe::Caveat).
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
pub(crate) mod look;
pub(crate) mod machine;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::probes::TrainReport;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Parameter,
    Privilege, Protocol, RawParams, Scope, joined, params,
};
use narrows_probe::{Estimator, Outcome, PathFacts};
use narrows_train::campaign::within;
use narrows_train::echoed::{Echoed, FAR_END};

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

params! {
    /// What can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// How far it goes: slopes, or the published feedback loop alone, with its bracket for an interval.
        pub preset: Preset = "slopes" is { "slopes" => Preset::Slopes, "feedback" => Preset::Feedback } {
            source: "ours; feedback: phase 1 alone, with the confirmation below: [Netest03], as far as it tells",
        },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "fewest packets per octet; 68: RFC 791",
        },
        /// IP-layer capacity of the tight link, if known.
        pub capacity: Option<BitRate> = "fitted" { range: AtLeast("1 bit/s"), source: "ours" },
        /// Send time that a train aims at.
        pub train_time: Duration = "25 ms" {
            name: "train-time", range: Between("100 us", "1 s"), source: "ours: 200 packets at 100 Mbit/s average the traffic to 5 %",
        },
        /// Slope trains that end a run; twice as many while it is under 3 s and the interval over 6 %.
        pub slope_trains: usize = "10" { name: "trains", range: Between("3", "1000"), source: "ours" },
        /// Trains at most, whatever they are for; no fewer than trains.
        pub max_trains: usize = "50" { name: "max-trains", range: AtLeast("3"), source: "ours: the end" },
        /// Packets of a train at most.
        pub max_packets: usize = "4000" {
            name: "max-packets", range: Between("50", "20000"), source: "10 ms at 5 Gbit/s outweigh a 50 us interrupt timer",
        },
        /// Octets of queue that a train may build, until losses say less.
        pub burst_octets: u32 = "150000" {
            name: "burst", unit: "octets", range: AtLeast("20000"),
            source: "ours: a dozen packets at least; half of a small switch's buffer",
        },
        /// Mean load that the trains impose, of the path's rate.
        pub load: f64 = "0.2" {
            unit: "share", range: Between("0.001", "1"), source: "ours: short runs outweigh the 0.1 that long monitoring would take",
        },
    }
    names INFO;
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let enough = self.max_trains >= self.slope_trains;
        within(enough, "max-trains", self.max_trains, "at least trains")
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

/// What can be set.
pub(crate) const PARAMETERS: &[Parameter] = &joined::<10>(Params::PARAMETERS, &[FAR_END]);
