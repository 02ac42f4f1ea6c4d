//! Slope: estimates available IP-layer path capacity from the growth of delays in constant-rate trains, read at batch ends.
//!
//! # Model
//!
//! FIFO links; on the tight one the traffic of others, `X`, takes a share of the capacity `C` and leaves `A = C - X`.
//!
//! ```text
//!  delay                                  departures   | | | | | | | | | | | |
//!   |            . '      slope s         arrivals          ||||     ||||     ||||
//!   |        . '          (R - A)/C                            ^        ^        ^
//!   |_ _ . '                              batch ends: waited least for the interrupt
//!   +----------- departure time
//!     ^ the head has filled the queue: from here on it counts
//! ```
//!
//! A train sent at `R > A` fills the tight link's queue, so that its delays grow by `s = (R - A)/C` per unit of send time: `A = R - C s`.
//! Near the knee `s` is small, and a wrong `C` matters little. Two modes:
//!
//! - `slope`: trains at constant rates a little above the knee;
//! - `curve`: trains whose rate grows from below the knee to above it, and the queue that such a train should build,
//!   `Q_k(A) = max(0, Q_(k-1) + b_k - A g_k)`, fitted to the delays with free intercept and scale.
//!
//! Before either, a few short trains find the knee roughly: the rate out becomes the next rate in, accelerated (as in `fac2`).
//!
//! # Assumptions
//!
//! - A1 FIFO queues, and traffic of others that does not yield within a train.
//! - A2 The link that is tight is tight for all trains near the knee.
//! - A3 The sender can go faster than what is available.
//! - A4 Departure stamps are true; planned gaps are never used.
//! - A5 The two clocks drift by less than 1000 ppm within a train.
//! - A6 Delays wander as random walks do once the queue has formed; what is available varies about one mean during the run.
//!
//! # Formula
//!
//! Rates in bit/s at the IP layer, `s` dimensionless. The specification's core is derived there (`[D]`); what is added here is ours.
//!
//! - Batch ends (`ends.rs`, `[PJD04]`): a packet that the next one follows within 0.4 of the narrow link's packet time has waited in the
//!   receiving host; only the last of such a run is kept.
//! - Pauses (`busy.rs`): a departure gap of eight usual ones that is longer than the delay gathered so far may have emptied the queue;
//!   the train is cut there, and each stretch has its own intercept.
//! - Heads (`sizes.rs`): the first packets of a train leave at up to 1.4 times the path's rate, until their queue is one standard deviation of
//!   what the traffic of others adds or takes within the train. So the train may go at the knee, where a wrong `C` does not matter.
//! - Senders that are held up (`machine/hosts.rs`, ours): what trains fell short of the rate asked for, in the mean of the last ones, is asked
//!   for on top, up to a third; where nobody shares the path, trains would stay below the knee otherwise.
//! - The busy parts (`busy.rs`): from where the delay exceeds the least by 0.4 of what the head was to build, to where it has fallen to a
//!   third of that. Both are stopping times, which look at no later packet: what a part gathers is `(R - A)/C` of its time in the mean,
//!   whatever began or ended it. Idle moments, in which delays do not fall as they should, stay out. (Plain slopes of short trains are 1
//!   to 3 % of the capacity low.)
//! - Whole trains (`joint.rs`, ours): beside bursts longer than trains the busy parts alone are those that met a burst, and the mean over
//!   them is low (by 8 % of the capacity beside Pareto on/off traffic). From a spread of single trains of 0.3 of the path's rate on, and fully from
//!   0.45, the idle parts count by their time, at `R + p (C - R)` with `p` the share of their packets that did not wait. The interval
//!   stays as wide as the busy parts' own spread makes it.
//! - Slope and rate: from end to end, summed over the parts; delays are medians of five neighbours. So `A` is the growth of
//!   `bits - C delay`, whatever the departures were. A train without busy parts (below the knee): least squares over its last two thirds.
//! - Standard error of a slope over `T` seconds: `sqrt(v/T)`, `v` from the steps between eight blocks.
//! - All trains (`joint.rs`): `s_j = (R_j - A)/C + e_j`, `var e_j ~ 1/T_j`, for trains that the narrow link lets through. `A` (flat between
//!   nothing and the path's rate) and the variance are integrated, `C` on a grid: the narrow link's own capacity (trains sent at once come
//!   out at it; else `C = (R - A)/s` of trains far above the knee) with prior weight 0.7, or any up to ten times that, one `r` times as
//!   fast being tight in one of `r` cases. The answer is the posterior's median. With `C` given it is the weighted mean of `R_j - C s_j`;
//!   with nothing known of it, least squares of `s` on `R` and their zero crossing. Trains count by their time alone: a rare train that met
//!   a burst is what bursty traffic looks like, so the mean is not made robust against it, but those of a sleeping host count a quarter.
//! - Interval, 90 %, at most up to the tight link's capacity: Student's over the trains, times 0.65 and twice the trains' spread as a share of the
//!   path's rate (at most 1.6: bursts without a typical size, of which few trains meet the largest), 0.7 of what a twentieth of the belief in
//!   `C` puts beyond on either side (all of it where trains disagree), and a floor of 0.5 % of the path's rate, in squares. What a run ends by
//!   is wider.
//! - What others gave up (`begins.rs`, `levels.rs`, ours): a transfer that its window holds sends by the answers it gets, so it goes on as if
//!   nobody probed for a round trip, and then by `1/(1 + s)` of that. So the busy time that leaves within the first 10, 20, 50 and 100 ms of
//!   each train is read by itself (at least four trains that last longer by three tenths), and compared with the same train's whole. And it
//!   sends `W/(T + q)` behind a queue of `q`: the busy parts, in up to twelve blocks each, are regressed on the delay at which a block begins,
//!   where single trains spread by less than a tenth of the path's rate. What either says less by `d`, more than `e` (2.5 standard errors;
//!   1.5 for the 100 ms, 2 for the queue: one of five is chosen), makes the answer less by the largest `d (1 - e^2/d^2)`, by half of it
//!   at most; the interval reaches down to it (from `d > e/2` on). From 1.5 standard errors on confidence is low. Beside traffic that asks nobody all
//!   say the same. It has to show under the belief's mean capacity and under the narrow link's: a wrong one makes it up.
//! - Idle moments (`joint.rs`, ours): the interval reaches up to what the trains say with all that lies between their busy parts, in
//!   squares, but for 3 % of the path's rate that this reads high anyway; beside bursts shorter than the spread shows, that is more.
//! - Variation: the 10th, 50th and 90th percentile of the trains' own values, each over the busy part of a train (`window_ns`).
//! - Curves (`curve.rs`): accepted if the F statistic against a constant exceeds 6.7 (16 effective samples at most) and the scale is at
//!   least 0.3 of the known `1/C`; the answer is the mean of the trains' knees. Traffic that is no fluid rounds the knee off, so that they
//!   read 1 to 8 % of the capacity low: the interval's upper end reaches 12 % further, and confidence is low.
//!
//! # Parameters
//!
//! Declared below; `narrows methods slope` prints the table.
//!
//! # Cost
//!
//! At 100 Mbit/s: steady traffic 9 to 13 trains, 0.8 to 1 MB, 2 s; Poisson traffic 1 to 2.5 MB, 2.2 to 3.3 s; a tight link beside the narrow
//! one up to 5 MB and 5 s. At 1 Gbit/s 5 to 9 MB and 2 s; at 10 and 40 Gbit/s 40 to 65 MB, 1 to 2 s. A run whose interval is wider than 12 % of
//! the path's rate (18 % once it has spent half as much again) goes on, at up to a quarter of the path's rate, for twelve times the octets and
//! 5 s at most. The queue that a train may build starts at `burst` and grows to four times that, as far as half of it has stood without a
//! loss.
//!
//! # Fails when
//!
//! - A1 (schedulers, wireless, yielding TCP): the trains disagree; the interval is wide. TCP that yields within a train leaves more
//!   than it does without the probes; begins and queues tell, as far as so little time tells anything. Links that
//!   send many packets at a time after contention: low by up to a seventh of the capacity, and the interval does not say so.
//! - A2, two links with as much left: the knee holds within the interval, the by-products come out too low.
//! - A2, a tight link several times as fast as the narrow one: the gradient is small against the noise, the interval wide.
//! - A3: [`Verdict::LowerBound`](narrows_probe::Verdict), [`Caveat::SenderLimited`](narrows_probe::Caveat); never a point. A receiver that stamps in the
//!   program and cannot keep up likewise, [`Caveat::ReceiverLimited`](narrows_probe::Caveat).
//! - A4: stamps that are taken when a packet is handed to the kernel, before it leaves, look like delay that grows: too low.
//! - A5, clocks that are set: the train is repeated, [`Caveat::ClockStep`](narrows_probe::Caveat).
//! - A6, bursts of many packets: trains find the link idle at times and read low; overload, length and load grow with the trains' spread
//!   to prevent it, and the interval says what is left; confidence is low from a spread of 15 % of the path's rate.
//! - A1, trains of more than 50 ms (below some 25 Mbit/s): they outlast round trips, transfers may have given way; confidence is low.
//! - A1, transfers that send their window in bursts which no train meets: too high, and nothing tells.
//! - Queues shorter than a train's overload: trains shrink, [`Caveat::TrainExceedsBurstLimit`](narrows_probe::Caveat) when even 16 packets are
//!   too many.
//! - Receivers that batch: trains grow to 20 batches; beyond `max-packets` [`Reason::ReceiveBatching`](narrows_probe::Reason).
//! - Token buckets that three trains or more bend at: [`Caveat::Shaped`](narrows_probe::Caveat), low confidence, and no more than the bucket's rate
//!   (`bucket_watch.rs`; trains in which a host or the path stood still are left out). Deeper ones are not seen, and the answer is what is
//!   free behind them for a while: [`Caveat::BucketNotExcluded`](narrows_probe::Caveat) says from which depth on.
//!
//! # References
//!
//! - `[SLoPS02]` M. Jain, C. Dovrolis, End-to-End Available Bandwidth: Measurement Methodology, Dynamics, and Relation with TCP
//!   Throughput, SIGCOMM 2002: delays of streams above the knee grow.
//! - `[PJD04]` R. Prasad, M. Jain, C. Dovrolis, Effects of Interrupt Coalescence on Network Measurements, PAM 2004.
//! - `[Jin03a]` G. Jin, B. Tierney, System Capability Effects on Algorithms for Network Bandwidth Measurement, IMC 2003.
//! - `[TOPP00]` B. Melander, M. Björkman, P. Gunningberg, A New End-to-End Probing and Analysis Method, Globecom 2000.

mod answer;
mod begins;
mod busy;
mod coarse;
pub(crate) mod curve;
mod curves;
pub(crate) mod ends;
pub(crate) mod joint;
mod levels;
pub mod machine;
mod params;
mod sizes;
#[cfg(test)]
mod tests;
pub(crate) mod train;

use std::time::Duration;

use narrows_units::{Layer, Metric};

pub use params::{Mode, Params};

use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Parameter,
    Privilege, Protocol, RawParams, Scope, joined,
};
use narrows_probe::{Answering, Estimator, Outcome};
use narrows_train::echoed::{Echoed, FAR_END};

/// The method.
pub struct Slope;

impl Method for Slope {
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

fn machine(params: &RawParams) -> Result<machine::Machine, ParamError> {
    Ok(machine::Machine::new(Params::try_from(params)?))
}

static INFO: MethodInfo = MethodInfo {
    name: "slope",
    summary: "available bandwidth from the growth of delays in trains near the knee, read at batch ends",
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
        typical_octets: 1_000_000,
        max_octets: 700_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(20),
        fills_path: false,
    },
    parameters: PARAMETERS,
    source: include_str!("available.rs"),
};

/// What can be set.
pub const PARAMETERS: &[Parameter] = &joined::<13>(&[FAR_END], Params::PARAMETERS);
