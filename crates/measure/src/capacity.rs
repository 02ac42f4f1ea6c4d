#![doc = include_str!("capacity.md")]

mod odd;
pub mod pathrate;
mod run;
pub mod signature;
mod varying;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use self::run::Run;

use crate::capacity::pathrate::Preset;
use narrows_probe::contract::Estimator;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::outcome::Outcome;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope,
};

/// `pathrate`'s phases as short as the samples allow, with checks of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity;

static INFO: MethodInfo = MethodInfo {
    name: "capacity",
    summary: "capacity from pairs and trains, as few as agree; the automatic choice",
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
        typical_octets: 97_000,
        max_octets: 25_000_000,
        typical_time: Duration::from_millis(300),
        max_time: Duration::from_secs(35),
        fills_path: false,
    },
    parameters: pathrate::AUTOMATIC_PARAMETERS,
    manual: include_str!("capacity.md"),
};

impl Method for Capacity {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn begin(&self, raw: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        raw.check_names(&INFO)?;
        Ok(Box::new(Run::new(pathrate::Params::read(raw, Preset::Adaptive)?)))
    }

    fn analyse(&self, observations: &Observations, raw: &RawParams) -> Result<Outcome, AnalyseError> {
        raw.check_names(&INFO)?;
        run::analyse(observations, pathrate::Params::read(raw, Preset::Adaptive)?)
    }
}
