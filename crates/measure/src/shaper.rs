#![doc = include_str!("shaper.md")]

mod machine;
mod params;
mod result;
mod search;
mod series;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::Metric;

use self::machine::Run;
use self::params::Params;
use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
#[cfg(doc)]
use narrows_probe::outcome::{BoundKind, Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

/// The method.
pub struct Shaper;

static INFO: MethodInfo = MethodInfo {
    name: "shaper",
    summary: "sustained rate, peak rate and depth of a token bucket, shaper or policer",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(narrows_units::Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 2_600_000,
        max_octets: 4_000_000,
        typical_time: Duration::from_secs(1),
        max_time: Duration::from_secs(20),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("shaper.md"),
};

impl Method for Shaper {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        match Params::try_from(params) {
            Ok(params) => params.imposes(&INFO.imposes),
            Err(_) => INFO.imposes.clone(),
        }
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        params.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(params)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::replay(Run::new(Params::try_from(params)?), observations)
    }
}
