//! track: follows available IP-layer path capacity with constant-rate trains a little above it, at a mean load that the caller sets.
//!
//! # Model
//!
//! ```text
//!  growth of delay                     trains in time
//!  ds/dt    __/  slope 1/C             R |   |     |     |         <- A + 0.1 C, sometimes A + 0.25 C
//!       ___/                             | --|-----|-----|-- A
//!  ____/______ R                         +---|-----|-----|--- t
//!      A                                    each lasts `load` x `period`
//! ```
//!
//! A FIFO link of capacity `C` of which others take `X`. A train at rate `R > A = C - X` makes delays grow by `s = (R - A)/C` per unit
//! of send time, so each train gives `A = R - C s`. The tracker keeps the rate of its trains just above what is available, so that
//! every one of them tells, and an error of `C` moves the answer by a tenth of itself. When two trains in a row do not fit, what
//! is available has changed: the trains before are forgotten, and the rate doubles until a train overloads the path, or down to
//! what came out. Ours; the line is TOPP's and BART's (`[TOPP00]`, `[BART06]`), the use of constant-rate slopes is `fac2`'s.
//!
//! # Assumptions
//!
//! - A1 FIFO queues, and traffic of others that does not yield within a train.
//! - A2 That traffic is a fluid over the length of a train (2.5 ms at the defaults).
//! - A3 The link that is tight now is tight for all trains since the last change.
//! - A4 The sender can go faster than what is available.
//! - A5 Departure stamps are true; planned gaps are never used.
//! - A6 What is available stays for some trains: changes faster than a second are averaged, not followed.
//!
//! # Formula
//!
//! Rates in bit/s at the IP layer, `s` dimensionless.
//!
//! - `s`: least squares of relative one-way delay on departure time over batch ends of the last three quarters of the train
//!   (`fac2`'s `reading.rs`).
//! - `R`: the departure rate, less half of the share that was lost; nothing tells on which side of the tight link it was (`take`).
//! - Error of `s` (`error_of`): the line's, times the root of the samples that stand for an independent one (autocorrelation up to the first
//!   lag that is not positive); at least what the last eight trains' scatter means for a train of this length `T` and rate, as
//!   `T^-1.5 R^-0.5`.
//! - `C` (`Level::capacity`): least squares of `s` on `R` over the overloaded trains since the last change, weighted by these errors, drawn
//!   towards `R/(1 + s)` of the faster trains, which is the capacity if the path is idle, with a relative error of 0.4; after a change times
//!   what the last level's capacity was over the same, with an error of 0.2.
//! - `A` (`Level::now`): mean of `R - C s` over the trains of the last `memory`, or the last eight (sixteen where they scatter by over 2 % of `C`),
//!   weighted by their errors and a scatter that all share (`[DerSimonian86]`'s moment); values beyond five deviations from their median
//!   are left out.
//! - A change (`judge`): two or more trains in a row, each more than two standard deviations off to one side, and together (sum over root of
//!   their number) more than five; a deviation holds the train's error, that of the level, that by `C`, and at least 1.2 % of `C`.
//! - Interval: 90 % of Student's distribution on the trains' spread, with the error of `C` times the mean overload and half of what
//!   was lost; at least 2 % of `C` on either side.
//! - Income (`purse.rs`): `load` times the highest rate that came through (`Level::scale`), never more than `C`. 85 % are
//!   spent while nothing changes; up to 1.5 s of income are there for when something does, and one second's is lent at the begin.
//! - Percentiles: of the means over consecutive windows (`narrows_train::windows`), of single trains' values.
//!
//! # Parameters
//!
//! Declared below; `narrows methods track` prints the table.
//!
//! # Cost
//!
//! `load` of the path's rate: at 1 % of 10 Gbit/s 100 Mbit/s, in trains of 2.5 ms at up to a quarter above what is available. A
//! train has at least 20 packets, so below 100 Mbit/s trains come less often than `period`.
//!
//! # Fails when
//!
//! - A1 (schedulers, wireless): trains disagree; the interval is wide.
//! - A2 (bursty traffic): trains near the knee are biased low by up to the standard deviation of the traffic over a train; their rates
//!   go up to a quarter of the path above what is available to escape that.
//! - A3 (a tight link that is not the narrow one): `C` comes from the near trains; until there are some it is the narrow link's.
//! - A4: [`Verdict::LowerBound`](narrows_probe::Verdict), [`Caveat::SenderLimited`](narrows_probe::Caveat); never a point.
//! - A receiver that takes packets more slowly than the path brings them, with stamps taken by the program: a lower bound,
//!   [`Caveat::ReceiverLimited`](narrows_probe::Caveat).
//! - A host that stalls: its trains are left out, [`Caveat::HostStall`](narrows_probe::Caveat); without any train that tells for `stale` nothing
//!   is told. Nothing at all for `patience`: [`Reason::NoAnswer`](narrows_probe::Reason).
//! - Queues shorter than a train's overload: trains shrink, [`Caveat::TrainExceedsBurstLimit`](narrows_probe::Caveat).
//! - Token buckets deeper than a train: the rate behind the bucket is not seen; [`Caveat::Shaped`](narrows_probe::Caveat) if heads of trains
//!   outrun their tails.
//!
//! # References
//!
//! - `[TOPP00]` B. Melander, M. Björkman, P. Gunningberg, A New End-to-End Probing and Analysis Method, Globecom 2000.
//! - `[BART06]` S. Ekelin et al., Real-Time Measurement of End-to-End Available Bandwidth using Kalman Filtering, NOMS 2006.
//! - `[DerSimonian86]` R. `DerSimonian`, N. Laird, Meta-Analysis in Clinical Trials, Controlled Clinical Trials 7, 1986.
//! - `[Geyer92]` C. Geyer, Practical Markov Chain Monte Carlo, Statistical Science 7, 1992.
//! - `[PJD04]` R. Prasad, M. Jain, C. Dovrolis, Effects of Interrupt Coalescence on Network Measurements, PAM 2004.

mod account;
mod answer;
mod level;
mod machine;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope, params,
};
use narrows_probe::{Estimator, Outcome};

/// The method.
pub struct Track;

params! {
    /// What can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// How long it goes on.
        pub duration: Duration = "60 s" { range: Between("1 ms", "8784 h"), source: "ours: a leap year at most" },
        /// Mean load, of the path's rate.
        pub load: f64 = "0.01" {
            unit: "share", range: Between("0.0001", "0.5"), source: "ours: what a path does not feel",
        },
        /// Time from train to train.
        pub period: Duration = "250 ms" {
            range: Between("10 ms", "60 s"), source: "ours: eight trains in the 2 s within which a change is to be seen",
        },
        /// Time over which trains are averaged.
        pub memory: Duration = "2 s" { range: Between("10 ms", "1 h"), source: "ours" },
        /// Windows whose percentiles are told at the end.
        pub window: Duration = "1 s" { range: Between("10 ms", "24 h"), source: "ours" },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "fewest packets per octet; 68: RFC 791",
        },
        /// IP-layer capacity of the tight link, if known.
        pub capacity: Option<BitRate> = "fitted" { range: AtLeast("1 bit/s"), source: "ours" },
        /// Octets of queue that a train may build, until losses say less.
        pub burst_octets: Option<u32> = "0.5 ms of the path, at least 150000" {
            name: "burst", unit: "octets", range: AtLeast("20000"),
            source: "ours: a dozen packets at least; half of a small switch's buffer",
        },
        /// Packets of a train at most.
        pub max_packets: usize = "4000" { name: "max-packets", range: Between("50", "20000"), source: "ours" },
        /// Silence that ends it.
        pub patience: Duration = "10 s" { range: Between("1 s", "1 h"), source: "ours" },
        /// Time without a train that tells after which nothing is told.
        pub stale: Duration = "3 s" { range: Between("100 ms", "1 h"), source: "ours" },
    }
    names INFO;
}

/// Time that the last train may take beyond `duration`.
const LAST_TRAIN: Duration = Duration::from_secs(5);

impl Method for Track {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        match Params::try_from(params) {
            Ok(params) => {
                let heavier = (params.load / 0.01).max(1.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "at most 50 times eight gigabytes"
                )]
                let max_octets = (usual.max_octets as f64 * heavier) as u64;
                Imposes { max_octets, ..usual }.lasting(params.duration + LAST_TRAIN)
            }
            Err(_) => usual,
        }
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        Ok(Box::new(machine::Machine::new(Params::try_from(params)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        observations::lead(machine::Machine::new(Params::try_from(params)?), observations)
    }
}

static INFO: MethodInfo = MethodInfo {
    name: "track",
    summary: "follows available bandwidth with a mean load of 1 % of the path",
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
    // At most at 100 Gbit/s.
    imposes: Imposes {
        typical_octets: 7_500_000,
        max_octets: 8_000_000_000,
        typical_time: Duration::from_secs(60),
        max_time: Duration::from_secs(65),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("follow.rs"),
};
