#![doc = include_str!("pbprobe.md")]

mod answer;
mod paced;
mod params;
mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

pub use self::params::Params;
pub use self::run::Run;
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

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct PbProbe;

static INFO: MethodInfo = MethodInfo {
    name: "pbprobe",
    summary: "capacity from the bulk of packets that met no queue; for fast paths and coarse stamps",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 1_000_000,
        max_octets: 3_300_000_000,
        typical_time: Duration::from_secs(14),
        max_time: Duration::from_secs(300),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("pbprobe.md"),
};

impl Method for PbProbe {
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
        let usual_parameters = Params::default();
        let factor = params.bulks as f64 / usual_parameters.bulks as f64 * usual_parameters.utilisation
            / params.utilisation.min(usual_parameters.utilisation);
        usual.clone().lasting(usual.max_time.mul_f64(factor.clamp(1.0, 1e4)))
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Run::new(Params::try_from(raw)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        params.check_names(&INFO)?;
        observations::replay(Run::new(Params::try_from(params)?), observations)
    }
}
