#![doc = include_str!("asymprobe.md")]

mod answer;
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
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct AsymProbe;

static INFO: MethodInfo = MethodInfo {
    name: "asymprobe",
    summary: "capacity of both directions from echoed pairs of unlike requests and replies",
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
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 300_000,
        max_octets: 4_000_000,
        typical_time: Duration::from_secs(4),
        max_time: Duration::from_secs(300),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("asymprobe.md"),
};

impl Method for AsymProbe {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    /// Echoes of another size need a server; answers of one known size show the forward direction
    /// alone.
    fn answered_by(&self) -> &'static [Answering] {
        &[Answering::Server, Answering::ClosedPort, Answering::TcpSyn]
    }

    fn imposes(&self, raw: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        let Ok(params) = Params::try_from(raw) else {
            return usual;
        };
        let factor = params.most.div_ceil(Params::default().most);
        let time = usual.max_time * u32::try_from(factor).unwrap_or(u32::MAX).max(1);
        usual.lasting(time)
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
