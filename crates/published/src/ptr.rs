//! PTR: estimates available IP-layer path capacity as the rate of the fastest train that comes as it left.
//!
//! # Model
//!
//! Packet transmission rate: the search of [`igi`](super::igi), with which it shares trains and thresholds, for the gap at which a train is
//! no longer stretched; the rate of that train is the answer.
//!
//! ```text
//!  rate out |        ___.--- C R/(R + X)
//!           |   _.-'
//!           | .'  = rate in
//!           +-----|--------- rate in
//!                 A
//! ```
//!
//! # Assumptions
//!
//! - A1 FIFO queues.
//! - A2 Traffic of others is a fluid over the length of a train.
//! - A3 Both hosts are faster than what is available.
//! - A4 Departure stamps are true; planned gaps are never used.
//!
//! # Formula
//!
//! `A = L k / S_out`: `L` bits of a packet at the IP layer, `k` trains, `S_out` the sum of their mean gaps at the receiver, in s, from batch
//! end to batch end (fac2's reading). The tool takes the first of two gaps at which `S_out` does not exceed `S_in`; ours halves the
//! bracket around it until it spans 2 %, and takes the trains on both sides (`igi/answer.rs`). In a fluid, a tolerance of `e` accepts rates
//! up to `A + e C`, whose rate out is at most `A + e X`.
//!
//! Interval: Student's t over the trains at the turning point, at least 2 % of the path's rate.
//!
//! # Parameters
//!
//! Declared below; `narrows methods ptr` prints the table.
//!
//! # Cost
//!
//! As [`igi`](super::igi): 4 to 8 MB, 2 to 5 s on a 100 Mbit/s path.
//!
//! # Fails when
//!
//! - A1 (schedulers, wireless): trains disagree; the interval is wide.
//! - A2, bursts: trains are stretched below what is available, too; the answer is low at high load (`ptr-poisson-load`). In short trains
//!   chance decides which gap is the first that does not grow.
//! - A3: [`Verdict::LowerBound`](narrows_probe::Verdict) with [`Caveat::SenderLimited`](narrows_probe::Caveat) or
//!   [`Caveat::ReceiverLimited`](narrows_probe::Caveat), never a point (`ptr-slow-sender`).
//! - A4: trains with a gap of a tenth of them are sent again, [`Reason::SenderCannotPace`](narrows_probe::Reason) after four in a row.
//! - Receivers that batch: trains grow until they span twelve batches, [`Caveat::ReceiveBatching`](narrows_probe::Caveat); beyond 2000 packets
//!   [`Reason::ReceiveBatching`](narrows_probe::Reason).
//! - Not reproduced: see [`igi`](super::igi). The slack of 5 us per gap makes the tool at 1 Gbit/s take every rate for available; rates of
//!   payload are 5.6 % below those of IP in its packets.
//!
//! # References
//!
//! - `[IGI03]` N. Hu, P. Steenkiste, Evaluation and Characterization of Available Bandwidth Probing Techniques, IEEE JSAC 21(6), 2003.

use narrows_units::{Layer, Metric};

use crate::igi::{Formula, IMPOSES, PTR, Params, Session};
use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use narrows_train::campaign::Machine;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Ptr;

static INFO: MethodInfo = MethodInfo {
    name: "ptr",
    summary: "available bandwidth as the rate of the fastest train that comes as it left",
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
    imposes: IMPOSES,
    parameters: PTR,
    source: include_str!("ptr.rs"),
};

impl Method for Ptr {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        Params::try_from(raw).map_or(IMPOSES, |params| params.imposes(&IMPOSES))
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Machine::new(Session::new(
            Formula::Ptr,
            Params::try_from(raw)?,
        ))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        observations::lead(
            Machine::new(Session::new(Formula::Ptr, Params::try_from(raw)?)),
            observations,
        )
    }
}
