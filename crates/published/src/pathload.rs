#![doc = include_str!("pathload.md")]

mod fleet;
pub mod machine;
mod search;
mod shape;
mod stream;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::probes::TrainReport;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, Range, RawParams, Scope, joined, params,
};
use narrows_probe::{Estimator, Outcome, PathFacts};
use narrows_train::echoed::{Echoed, PEER_KIND};

/// The method.
pub struct Pathload;

params! {
    /// What can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Packets of a stream.
        pub stream_packets: usize = "100" {
            name: "packets", range: Between("40", "1000"), source: "pathload 1.3.2; fewer than 40 give no trend",
        },
        /// Streams of a fleet.
        pub streams: usize = "12" { range: Between("1", "100"), source: "pathload 1.3.2" },
        /// Share of streams that must agree.
        pub fraction: f64 = "0.6" {
            unit: "share", range: Above("0.5", "1"), source: "pathload 1.3.2; 0.7 in [SLoPS03]",
        },
        /// Width of the range that ends the search.
        pub resolution: Option<BitRate> = "2 % of the initial dispersion rate" {
            range: AtLeast("1 bit/s"), source: "pathload 1.3.2; 5 % under coalescence",
        },
        /// Sharpness of the grey region's edges that ends the search.
        pub grey_resolution: Option<BitRate> = "5 % of the initial dispersion rate" {
            name: "grey-resolution", range: AtLeast("1 bit/s"), source: "pathload 1.3.2",
        },
        /// Idle time after a stream.
        pub idle: u32 = "9" {
            unit: "stream lengths", range: Between("1", "100"), source: "pathload 1.3.2: load of a tenth of the rate",
        },
        /// Fleets at most.
        pub max_fleets: u32 = "60" { name: "max-fleets", range: Between("1", "1000"), source: "ours: the end" },
        /// Largest packets down to 12 Mbit/s, where the tool shrinks them below 150 Mbit/s.
        pub full_size: bool = "true" { name: "full-size", range: Range::SWITCH, source: "ours, see above" },
        /// Half the streams, and a third of the idle time.
        pub quick: bool = "false" { range: Range::SWITCH, source: "ours" },
    }
    names INFO;
}

impl Params {
    fn fleet_streams(&self) -> usize {
        if self.quick { self.streams.div_ceil(2) } else { self.streams }
    }

    fn idle_factor(&self) -> u32 {
        if self.quick { self.idle.div_ceil(3) } else { self.idle }
    }
}

impl Method for Pathload {
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

/// What the reports of a run say, in the order in which they came: trains of 51 back-to-back
/// packets (or 36, 21, 6, 4) at the begin are initial ones, neighbouring periodic trains of one
/// rate are a fleet. Pure, and the same machine that a run steps.
pub fn analyse(facts: &PathFacts, reports: &[TrainReport], params: &Params) -> Outcome {
    observations::lead_reports(machine::Machine::new(params.clone()), facts, reports)
}

fn machine(raw: &RawParams) -> Result<machine::Machine, ParamError> {
    Ok(machine::Machine::new(Params::try_from(raw)?))
}

static INFO: MethodInfo = MethodInfo {
    name: "pathload",
    summary: "available bandwidth as a range, from the trend of delays in periodic streams (SLoPS)",
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
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: true },
    imposes: Imposes {
        typical_octets: 9_000_000,
        max_octets: 120_000_000,
        typical_time: Duration::from_secs(10),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: &joined::<10>(Params::PARAMETERS, &[PEER_KIND]),
    manual: include_str!("pathload.md"),
};
