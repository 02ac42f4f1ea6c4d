#![doc = include_str!("igi.md")]

mod answer;
mod params;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use narrows_train::train_method::Machine;

pub(super) use params::PTR;
pub use params::{Params, Preset};
pub(super) use session::{Formula, MethodRun};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Igi;

static INFO: MethodInfo = MethodInfo {
    name: "igi",
    summary: "available bandwidth from gaps that grew in the train at the turning point",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::ProbeGap,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: true },
    imposes: IMPOSES,
    parameters: &params::IGI,
    manual: include_str!("igi.md"),
};

/// What a search for the turning point imposes.
pub(super) const IMPOSES: Imposes = Imposes {
    typical_octets: 6_000_000,
    max_octets: 40_000_000,
    typical_time: Duration::from_secs(4),
    max_time: Duration::from_secs(60),
    fills_path: false,
};

impl Method for Igi {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        Params::of_igi(raw).map_or(IMPOSES, |params| params.imposes(&IMPOSES))
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Machine::new(MethodRun::new(Formula::Igi, Params::of_igi(raw)?))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        observations::replay(Machine::new(MethodRun::new(Formula::Igi, Params::of_igi(raw)?)), observations)
    }
}
