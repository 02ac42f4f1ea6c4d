#![doc = include_str!("ptr.md")]

use narrows_units::{Layer, Metric};

use crate::igi::{Formula, IMPOSES, MethodRun, PTR, Params};
use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};
use narrows_train::train_method::Machine;

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
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: true },
    imposes: IMPOSES,
    parameters: PTR,
    manual: include_str!("ptr.md"),
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
        Ok(Box::new(Machine::new(MethodRun::new(Formula::Ptr, Params::try_from(raw)?))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        observations::replay(Machine::new(MethodRun::new(Formula::Ptr, Params::try_from(raw)?)), observations)
    }
}
