#![doc = include_str!("available.md")]

mod answer;
mod backlogged;
mod begins;
mod bursts;
mod busy;
mod coarse;
pub(crate) mod curve;
mod curves;
mod fit;
mod full_queue;
mod jumps;
mod levels;
mod loss;
pub mod machine;
mod params;
pub(crate) mod pooled;
mod quantiles;
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
use narrows_train::echoed::{Echoed, PEER_KIND};

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
        observations::replay(Echoed::begin(params, machine)?, observations)
    }
}

fn machine(params: &RawParams) -> Result<machine::Machine, ParamError> {
    Ok(machine::Machine::new(Params::try_from(params)?))
}

static INFO: MethodInfo = MethodInfo {
    name: "slope",
    summary: "available bandwidth from the growth of delays in trains near the turning point, read at burst ends",
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
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: true },
    imposes: Imposes {
        typical_octets: 1_000_000,
        max_octets: 700_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(20),
        fills_path: false,
    },
    parameters: PARAMETERS,
    manual: include_str!("available.md"),
};

/// What can be set.
pub const PARAMETERS: &[Parameter] = &joined::<16>(&[PEER_KIND], Params::PARAMETERS);
