#![doc = include_str!("topp.md")]

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
use narrows_train::train_method::Machine;

pub use params::Params;
pub(super) use params::{Diet, Kind};
pub(super) use session::MethodRun;

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
    manual: include_str!("topp.md"),
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
pub(super) const NEEDS: Needs = Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: true };

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
        Ok(Box::new(Machine::new(MethodRun::new(Kind::Topp, params))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        let params = Params::read(Kind::Topp, raw)?;
        observations::replay(Machine::new(MethodRun::new(Kind::Topp, params)), observations)
    }
}
