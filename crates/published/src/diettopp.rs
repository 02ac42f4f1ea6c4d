#![doc = include_str!("diettopp.md")]

use crate::topp::{CLASS, Diet, IMPOSES, Kind, MethodRun, NEEDS, Params};
use narrows_probe::contract::Estimator;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
use narrows_probe::registry::{Imposes, Method, MethodInfo, ParamError, RawParams};
use narrows_train::train_method::Machine;
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
    manual: include_str!("diettopp.md"),
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
        Ok(Box::new(Machine::new(MethodRun::new(Kind::Diet, params))))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        let params = Params::read(Kind::Diet, raw)?;
        observations::replay(Machine::new(MethodRun::new(Kind::Diet, params)), observations)
    }
}
