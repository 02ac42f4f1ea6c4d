//! TOPP: estimates available IP-layer path capacity, and the tight link's, from the break in the response to trains of rising rate.
//!
//! # Model
//!
//! Trains of pairs: rates go up in equal steps, and rate in over rate out is drawn over rate in.
//!
//! ```text
//!  in/out |                    .'  second link, if any
//!         |             __..-''
//!         |       __.--'   slope 1/C, would cross zero at X/C
//!      1  |------'
//!         +------|--------------- rate in
//!                A
//! ```
//!
//! Below the available rate `A` trains come as they left; above it a FIFO link of capacity `C` with `X` of others' traffic
//! lets out `C R/(R + X)`, so that `R_in/R_out = R_in/C + X/C`. Each further link that fills up bends the line upward.
//!
//! # Assumptions
//!
//! - A1 FIFO queues.
//! - A2 Traffic of others is a fluid over the length of a train, and the same for all trains.
//! - A3 Both hosts are faster than what is available.
//! - A4 Departure stamps are true; planned gaps are never used.
//!
//! # Formula
//!
//! `x` rate in, bit/s at the IP layer, from departure stamps; `y` rate in over rate out (batch end to batch end, fac2's reading).
//!
//! - Break (`fit::segments`): the points below it stand about 1, those above it on a line, `y = a + b x`; the break is where the squares are
//!   least, weighted by send time. Two lines are tried as well, and believed if they pay for three more parameters (Schwarz's
//!   criterion); then the first counts.
//! - `A = (1 - a)/b`, `C = 1/b`, `var A = (var a + A^2 var b + 2 A cov(a, b))/b^2`.
//! - Points a tenth of `C` and more above the knee count alone where there are enough: bursts round the corner off.
//! - Interval: Student's t on that error, at least 1 % of the path's rate, and what bursts add to a train at the knee
//!   (`gaps/account.rs`: rounding).
//!
//! # Parameters
//!
//! Declared below; `narrows methods topp` prints the table.
//!
//! # Cost
//!
//! 75 trains, 6.7 MB, 3 to 6 s on a 100 Mbit/s path.
//!
//! # Fails when
//!
//! - A1 (schedulers, wireless): points stand on no line: [`Reason::NoAgreement`](narrows_probe::Reason), or a wide interval.
//! - A2, bursts: the corner is rounded, and the break comes low (`topp-poisson-load`). Traffic that yields (TCP) bends the line down:
//!   `C` too high.
//! - A3: [`Verdict::LowerBound`](narrows_probe::Verdict), never a point (`topp-slow-sender`).
//! - A4: trains with a gap of a tenth of them are sent again, [`Reason::SenderCannotPace`](narrows_probe::Reason) after four in a row.
//! - Receivers that batch: trains grow until they span twelve batches; beyond 2000 packets [`Reason::ReceiveBatching`](narrows_probe::Reason).
//! - `C` is the tight link's, which need not be the path's: it stands in the evidence.
//!
//! # References
//!
//! - `[TOPP00]` B. Melander, M. Björkman, P. Gunningberg, A New End-to-End Probing and Analysis Method for Estimating Bandwidth
//!   Bottlenecks, Globecom 2000. Known from summaries; counts and ranges are ours.

mod answer;
mod fit;
mod params;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use narrows_train::campaign::Machine;

pub use params::Params;
pub(super) use params::{Diet, Kind};
pub(super) use session::Session;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Topp;

static INFO: MethodInfo = MethodInfo {
    name: "topp",
    summary: "available bandwidth and the tight link's capacity from trains of rising rate",
    metric: Metric::AvailableIpCapacity,
    class: CLASS,
    needs: NEEDS,
    imposes: IMPOSES,
    parameters: params::Topp::PARAMETERS,
    source: include_str!("topp.rs"),
};

/// Both stand at the same place in the field.
pub(super) const CLASS: Classification = Classification {
    scope: Scope::EndToEnd,
    methodology: Methodology::ProbeRate,
    activity: Activity::Active,
    protocol: Protocol::Udp,
    works_on_asymmetric: true,
    deployment: Deployment::Both,
    layer: Some(Layer::Ip),
    privilege: Privilege::None,
};

/// And need the same.
pub(super) const NEEDS: Needs = Needs {
    single_packet_stamps: false,
    sender_faster_than_result: true,
    pacing: true,
};

/// And cost about the same.
pub(super) const IMPOSES: Imposes = Imposes {
    typical_octets: 6_700_000,
    max_octets: 40_000_000,
    typical_time: Duration::from_secs(5),
    max_time: Duration::from_secs(60),
    fills_path: false,
};

impl Method for Topp {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        Params::read(Kind::Topp, raw).map_or(IMPOSES, |params| params.imposes(&IMPOSES))
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        let params = Params::read(Kind::Topp, raw)?;
        Ok(Box::new(Machine::new(Session::new(Kind::Topp, params))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        let params = Params::read(Kind::Topp, raw)?;
        observations::lead(Machine::new(Session::new(Kind::Topp, params)), observations)
    }
}
