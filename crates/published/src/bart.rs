//! bart: follows available IP-layer path capacity with short trains at random rates, by a Kalman filter over the strain line.
//!
//! # Model
//!
//! ```text
//!  strain        ___/  strain = a r + b,  a = 1/C,  b = X/C - 1
//!           ____/
//!  ________/__________ r
//!          A = -b/a
//! ```
//!
//! A FIFO link of capacity `C` of which others take `X` stretches the gaps of a train at rate `r > A = C - X` by the share
//! `(r + X)/C - 1`, its *strain*. Each train is one noisy look at that line; a Kalman filter keeps its two parameters, lets them
//! drift, and so follows what is available for as long as it is wanted.
//!
//! # Assumptions
//!
//! - A1 FIFO queues, one congested link for all trains.
//! - A2 Traffic of others is a fluid over the length of a train.
//! - A3 Gaps at the receiver can be stamped, or batches be told from gaps.
//! - A4 The sender can go faster than what is available.
//! - A5 The line drifts slowly against the time between trains.
//!
//! # Formula
//!
//! Rates in shares of the highest rate, so that both parameters are of order 1.
//!
//! - Strain (`strain.rs`): mean of `(gap out - gap in)/gap in` by actual departures; its variance is that of the gaps over their number.
//! - Filter (`Filter::take`): `P' = P + Q`, `h = (u, 1)`, `K = P' h/(h P' h + R)`, `x += K (strain - h x)`, `P = (I - K h) P'`; a state that
//!   falls or crosses zero outside 0 to 1 is rejected.
//! - Start: the line through the first two congested trains (TOPP), `P = I`.
//! - A train at or below the estimate is skipped (`Machine::learn`): it lies on the flat part. One that shows strain all the same, three
//!   deviations of it, is taken: something has changed.
//! - Rates: uniform from 0.7 of the estimate to the highest, four of five above the estimate (`draw`).
//! - `Q = q I`, ten times as much after each innovation beyond three deviations, halved after each other.
//! - Error: `var A = (var b + A^2 var a + 2 A cov)/a^2`, the delta formula.
//! - Length of trains: `N >= z sigma R/(L delta (1 - u))` with the end stamps' error `sigma` (stamps, or half a batch), `delta` 2 %, `z` 2;
//!   from 10 Gbit/s up, or where packets come in batches, gaps run from batch end to batch end.
//!
//! # Parameters
//!
//! Declared below; `narrows methods bart` prints the table.
//!
//! # Cost
//!
//! `load` of the path's rate, in trains of 17 packets at up to the highest rate.
//!
//! # Fails when
//!
//! - A1: the line bends; the filter follows the part near the highest rate, and errs towards the other link.
//! - A2: trains of 17 packets near the knee are strained below it too; with bursty traffic the estimate is low.
//! - A3: coarse stamps make trains long; beyond 4000 packets the estimate scatters.
//! - A4: nothing is ever congested: [`Verdict::LowerBound`](narrows_probe::Verdict), [`Caveat::SenderLimited`](narrows_probe::Caveat).
//! - A5: a step takes the filter some tens of trains; innovations beyond three deviations speed it up. Eight rejected states in a
//!   row, or twelve trains in a row at the highest rates without strain, start it anew.
//! - Nothing comes back for `patience`: [`Reason::NoAnswer`](narrows_probe::Reason).
//!
//! # References
//!
//! - `[BART06]` S. Ekelin et al., Real-Time Measurement of End-to-End Available Bandwidth using Kalman Filtering, NOMS 2006.
//! - `[TOPP00]` B. Melander, M. Björkman, P. Gunningberg, A New End-to-End Probing and Analysis Method, Globecom 2000.
//! - `[PJD04]` R. Prasad, M. Jain, C. Dovrolis, Effects of Interrupt Coalescence on Network Measurements, PAM 2004.

mod filter;
mod machine;
mod strain;
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
pub struct Bart;

params! {
    /// What can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// How long it goes on.
        pub duration: Duration = "60 s" { range: Between("1 ms", "8784 h"), source: "ours: a leap year at most" },
        /// Packets of a train, unless stamps ask for more.
        pub packets: usize = "17" {
            range: Between("3", "4000"), source: "[BART06], recalled and not read again; raised for coarse stamps",
        },
        /// Mean load, of the path's rate.
        pub load: f64 = "0.02" { unit: "share", range: Between("0.0001", "0.5"), source: "ours" },
        /// Highest rate of a train.
        pub max_rate: Option<BitRate> = "the sender's, else 1.5 times what came through" {
            name: "max-rate", range: AtLeast("1 bit/s"), source: "ours",
        },
        /// Process noise of both parameters of the normalised line, per train.
        pub q: f64 = "1e-4" { range: Between("1e-9", "1"), source: "advice: 1e-5 to 1e-3 once normalised" },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "fewest packets per octet; 68: RFC 791",
        },
        /// Of the random rates.
        pub seed: u64 = "1" { source: "ours" },
        /// Silence that ends it.
        pub patience: Duration = "10 s" { range: Between("1 s", "1 h"), source: "ours" },
    }
    names INFO;
}

/// Time that the last train may take beyond `duration`.
const LAST_TRAIN: Duration = Duration::from_secs(5);
/// Packets of a train at most.
const MAX_PACKETS: usize = 4000;

impl Method for Bart {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        match Params::try_from(params) {
            Ok(params) => {
                let heavier = (params.load / 0.02).max(1.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "at most 25 times sixteen gigabytes"
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
    name: "bart",
    summary: "follows available bandwidth by a Kalman filter over the strain of short trains",
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
        typical_octets: 15_000_000,
        max_octets: 16_000_000_000,
        typical_time: Duration::from_secs(60),
        max_time: Duration::from_secs(65),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    source: include_str!("bart.rs"),
};
