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
//! | name | unit | default | range | source |
//! |---|---|---|---|---|
//! | `duration` | time | 60 s | 1 ms to 366 d | ours |
//! | `packets` | | 17 | 3 to 4000 | `[BART06]`, recalled and not read again; raised for coarse stamps |
//! | `load` | share | 0.02 | 0.0001 to 0.5 | ours |
//! | `max-rate` | bit/s | the sender's, else 1.5 times what came through | above 0 | ours |
//! | `q` | 1 | 1e-4 | 1e-9 to 1 | advice: 1e-5 to 1e-3 once normalised |
//! | `size` | IP octets | path MTU | 68 and up | fewest packets per octet |
//! | `seed` | | 1 | | ours: of the random rates |
//! | `patience` | time | 10 s | 1 s to 1 h | ours: silence that ends it |
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
//! - A4: nothing is ever congested: [`Verdict::LowerBound`](crate::Verdict), [`Caveat::SenderLimited`](crate::Caveat).
//! - A5: a step takes the filter some tens of trains; innovations beyond three deviations speed it up. Eight rejected states in a
//!   row, or twelve trains in a row at the highest rates without strain, start it anew.
//! - Nothing comes back for `patience`: [`Reason::NoAnswer`](crate::Reason).
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

use units::{BitRate, Layer, Metric, format_duration};

use crate::observations::{self, AnalyseError, Observations};
use crate::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use crate::{Estimator, Outcome};

/// The method.
pub struct Bart;

/// Its parameters; the module's documentation gives unit, range and source of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// How long it goes on.
    pub duration: Duration,
    /// Packets of a train, unless stamps ask for more.
    pub packets: usize,
    /// Mean load, as a share of the path's rate.
    pub load: f64,
    /// Highest rate of a train.
    pub max_rate: Option<BitRate>,
    /// Process noise of both parameters, per train.
    pub q: f64,
    /// Length of the probe packets, IP header included; `None` takes the path MTU.
    pub ip_octets: Option<u16>,
    /// Of the random rates.
    pub seed: u64,
    /// Silence that ends it.
    pub patience: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(60),
            packets: 17,
            load: 0.02,
            max_rate: None,
            q: 1e-4,
            ip_octets: None,
            seed: 1,
            patience: Duration::from_secs(10),
        }
    }
}

impl TryFrom<&RawParams> for Params {
    type Error = ParamError;

    fn try_from(raw: &RawParams) -> Result<Self, ParamError> {
        raw.check_names(&INFO)?;
        let default = Self::default();
        let given = |name: &str| raw.iter().any(|(known, _)| known == name);
        let params = Self {
            duration: raw.get_duration("duration", default.duration)?,
            packets: raw.get("packets", default.packets)?,
            load: raw.get("load", default.load)?,
            max_rate: given("max-rate")
                .then(|| raw.get("max-rate", BitRate::ZERO))
                .transpose()?,
            q: raw.get("q", default.q)?,
            ip_octets: given("size").then(|| raw.get("size", 1500)).transpose()?,
            seed: raw.get("seed", default.seed)?,
            patience: raw.get_duration("patience", default.patience)?,
        };
        params.check()?;
        Ok(params)
    }
}

/// A year, for those who let it run.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);
/// Time that the last train may take beyond `duration`.
const LAST_TRAIN: Duration = Duration::from_secs(5);
/// Packets of a train at most.
const MAX_PACKETS: usize = 4000;

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let refuse = |name: &'static str, value: String, why: &str| {
            Err(ParamError::OutOfRange {
                name,
                value,
                why: why.to_owned(),
            })
        };
        if !(Duration::from_millis(1)..=LONGEST).contains(&self.duration) {
            return refuse("duration", format_duration(self.duration), "1 ms to 366 d");
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&self.patience) {
            return refuse("patience", format_duration(self.patience), "1 s to 1 h");
        }
        if !(3..=MAX_PACKETS).contains(&self.packets) {
            return refuse("packets", self.packets.to_string(), "3 to 4000");
        }
        if !(0.0001..=0.5).contains(&self.load) {
            return refuse("load", self.load.to_string(), "0.0001 to 0.5");
        }
        if self.max_rate == Some(BitRate::ZERO) {
            return refuse("max-rate", "0".to_owned(), "above 0");
        }
        if !(1e-9..=1.0).contains(&self.q) {
            return refuse("q", self.q.to_string(), "1e-9 to 1");
        }
        if let Some(octets) = self.ip_octets.filter(|&octets| octets < 68) {
            return refuse("size", octets.to_string(), "at least 68, the smallest MTU (RFC 791)");
        }
        Ok(())
    }
}

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
    parameters: &[
        ("duration", "how long it goes on (default: 60 s)"),
        (
            "packets",
            "packets of a train, unless stamps ask for more (default: 17)",
        ),
        ("load", "mean load as a share of the path's rate (default: 0.02)"),
        (
            "max-rate",
            "highest rate of a train (default: the sender's, else 1.5 times what came through)",
        ),
        ("q", "process noise of the normalised line, per train (default: 1e-4)"),
        ("size", "IP octets of a probe packet (default: path MTU)"),
        ("seed", "of the random rates (default: 1)"),
        ("patience", "silence that ends it (default: 10 s)"),
    ],
    source: include_str!("bart.rs"),
};
