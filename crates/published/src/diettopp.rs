//! `DietTopp`: estimates available IP-layer path capacity, and the tight link's, from a line through trains that all overload the path.
//!
//! # Model
//!
//! [`topp`](super::topp) without its lower half: back-to-back trains come out at their *proportional share* `p = C R/(R + X)`, which is more than
//! is available; from there on every train is overloaded, and one line through all of them tells both ends.
//!
//! ```text
//!  in/out |           x  x
//!         |       x x        slope 1/C
//!         |    x
//!      1  |..'
//!         +--|-|-------|--- rate in
//!            A p     1.5 p
//! ```
//!
//! # Assumptions
//!
//! - A1 FIFO queues; one congested link, also at `1.5 p`.
//! - A2 Traffic of others is a fluid over the length of a train, and the same for all trains.
//! - A3 Both hosts are faster than `1.5 p`, or at least than what is available by more than 5 %.
//! - A4 Departure stamps are true; planned gaps are never used.
//!
//! # Formula
//!
//! `x` rate in, bit/s at the IP layer, `y` rate in over rate out; least squares of `y = a + b x`, weighted by send time, over all trains of rates that
//! were stretched by more than 5 % on the mean. `A = (1 - a)/b`, `C = 1/b`; `var A = (var a + A^2 var b + 2 A cov(a, b))/b^2`
//! (`topp/fit.rs`). Refused unless `b > 0` and `A` lies between 0 and the lowest `x`. Interval: Student's t on that error, at least 1 %
//! of the path's rate, and what bursts add to a train at the knee.
//!
//! # Parameters
//!
//! Declared below; `narrows methods diettopp` prints the table.
//!
//! # Cost
//!
//! 60 trains, 5.5 MB, 3 to 5 s on a 100 Mbit/s path.
//!
//! # Fails when
//!
//! - A1, links that fill up one after the other: the line is bent, and the answer too low; [`topp`](super::topp) finds the first.
//! - A2 at high load: what is available lies far below all points, and the error grows with the distance:
//!   [`Caveat::CoarseResolution`](narrows_probe::Caveat), [`Reason::NoAgreement`](narrows_probe::Reason) beyond half of the path's rate (`diettopp-busy`).
//! - A3: [`Verdict::LowerBound`](narrows_probe::Verdict), never a point (`diettopp-slow-sender`).
//! - A4: as [`topp`](super::topp).
//! - Receivers that batch: trains grow until they span twelve batches; beyond 2000 packets [`Reason::ReceiveBatching`](narrows_probe::Reason).
//! - Not reproduced from the tool: its "Mb" are 2^20; back to back is taken for 100 Mbit/s; the point of the proportional share lies
//!   wherever the sender's speed puts it (here it counts up to `3 p`); points of the flat part take part in the line (a block that drops
//!   them is disabled).
//!
//! # References
//!
//! - `[DietTopp04]` A. Johnsson, B. Melander, M. Björkman, `DietTopp`: A First Implementation and Evaluation of a Simplified Bandwidth
//!   Measurement Method, SNCNW 2004. Constants of the tool of that year.
//! - `[TOPP00]` B. Melander, M. Björkman, P. Gunningberg, A New End-to-End Probing and Analysis Method, Globecom 2000.

use crate::topp::{CLASS, Diet, IMPOSES, Kind, NEEDS, Params, Session};
use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{Imposes, Method, MethodInfo, ParamError, RawParams};
use narrows_train::campaign::Machine;
use narrows_units::Metric;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct DietTopp;

static INFO: MethodInfo = MethodInfo {
    name: "diettopp",
    summary: "available bandwidth and the tight link's capacity from trains that overload the path",
    metric: Metric::AvailableIpCapacity,
    class: CLASS,
    needs: NEEDS,
    imposes: IMPOSES,
    parameters: Diet::PARAMETERS,
    source: include_str!("diettopp.rs"),
};

impl Method for DietTopp {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        Params::read(Kind::Diet, raw).map_or(IMPOSES, |params| params.imposes(&IMPOSES))
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        let params = Params::read(Kind::Diet, raw)?;
        Ok(Box::new(Machine::new(Session::new(Kind::Diet, params))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        let params = Params::read(Kind::Diet, raw)?;
        observations::lead(Machine::new(Session::new(Kind::Diet, params)), observations)
    }
}
