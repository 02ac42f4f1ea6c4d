#![doc = include_str!("answers.md")]

mod answer;
mod gaps;
mod modes;
mod params;
mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

pub use self::params::Params;
pub(crate) use self::run::MethodRun;
use narrows_probe::contract::Estimator;
use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, EVERYTHING, Imposes, Method, MethodInfo, Methodology, Needs, ParamError,
    Privilege, Protocol, RawParams, Scope,
};
use narrows_train::train_method::Machine;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Answers;

static INFO: MethodInfo = MethodInfo {
    name: "answers",
    summary: "capacity towards a host that runs nothing of ours, from trains that it answers",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 150_000,
        max_octets: 3_000_000,
        typical_time: Duration::from_secs(2),
        max_time: Duration::from_secs(60),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("answers.md"),
};

impl Method for Answers {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn answered_by(&self) -> &'static [Answering] {
        &EVERYTHING
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        let Ok(params) = Params::try_from(raw) else {
            return usual;
        };
        let factor = (params.trains * (params.gaps + 4)).div_ceil(Params::default().trains * 12);
        let time = usual.max_time * u32::try_from(factor).unwrap_or(u32::MAX).max(1);
        usual.lasting(time)
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Machine::new(MethodRun::new(Params::try_from(raw)?))))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::replay(Machine::new(MethodRun::new(Params::try_from(params)?)), observations)
    }
}
