#![doc = include_str!("fac2.md")]

mod feedback;
mod finish;
mod fit;
pub(crate) mod machine;
pub(crate) mod observation;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

use narrows_probe::facts::Answering;
use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::probes::TrainReport;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Parameter,
    Privilege, Protocol, RawParams, Scope, joined, params,
};
use narrows_probe::{Estimator, Outcome, PathFacts};
use narrows_train::echoed::{Echoed, PEER_KIND};
use narrows_train::train_method::within;

/// The method.
pub struct Fac2;

/// How far it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Feedback, then slopes (ours).
    Slopes,
    /// The feedback loop alone, as far as it was published.
    Feedback,
}

params! {
    /// What can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// How far it goes: slopes, or the published feedback loop alone, with its bracket for an
        /// interval.
        pub preset: Preset = "slopes" is { "slopes" => Preset::Slopes, "feedback" => Preset::Feedback } {
            source: "ours; feedback: phase 1 alone, with the confirmation below: [Netest03], as far as it tells",
        },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "fewest packets per octet; 68: RFC 791",
        },
        /// IP-layer capacity of the tight link, if known.
        pub capacity: Option<BitRate> = "fitted" { range: AtLeast("1 bit/s"), source: "ours" },
        /// Send time that a train aims at.
        pub train_time: Duration = "25 ms" {
            name: "train-time", range: Between("100 us", "1 s"), source: "ours: 200 packets at 100 Mbit/s average the traffic to 5 %",
        },
        /// Slope trains that end a run; twice as many while it is under 3 s and the interval over 6
        /// %.
        pub slope_trains: usize = "10" { name: "trains", range: Between("3", "1000"), source: "ours" },
        /// Trains at most, whatever they are for; no fewer than trains.
        pub max_trains: usize = "50" { name: "max-trains", range: AtLeast("3"), source: "ours: the end" },
        /// Packets of a train at most.
        pub max_packets: usize = "4000" {
            name: "max-packets", range: Between("50", "20000"), source: "10 ms at 5 Gbit/s outweigh a 50 us interrupt timer",
        },
        /// Octets of queue that a train may build, until losses say less.
        pub burst_octets: u32 = "150000" {
            name: "burst", unit: "octets", range: AtLeast("20000"),
            source: "ours: a dozen packets at least; half of a small switch's buffer",
        },
        /// Mean load that the trains impose, of the path's rate.
        pub load: f64 = "0.2" {
            unit: "share", range: Between("0.001", "1"), source: "ours: short runs outweigh the 0.1 that long monitoring would take",
        },
    }
    names INFO;
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let enough = self.max_trains >= self.slope_trains;
        within(enough, "max-trains", self.max_trains, "at least trains")
    }
}

impl Method for Fac2 {
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

/// What the reports of a run say, in the order in which they came: any trains of 16 packets or more
/// that left evenly. Pure, and the same machine that a run steps.
pub fn analyse(facts: &PathFacts, reports: &[TrainReport], params: &Params) -> Outcome {
    observations::lead_reports(machine::Machine::new(params.clone()), facts, reports)
}

fn machine(raw: &RawParams) -> Result<machine::Machine, ParamError> {
    Ok(machine::Machine::new(Params::try_from(raw)?))
}

static INFO: MethodInfo = MethodInfo {
    name: "fac2",
    summary: "available bandwidth from feedback-adaptive trains and the slope of their delays",
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
    imposes: Imposes {
        typical_octets: 3_000_000,
        max_octets: 300_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: PARAMETERS,
    manual: include_str!("fac2.md"),
};

/// What can be set.
pub(crate) const PARAMETERS: &[Parameter] = &joined::<10>(Params::PARAMETERS, &[PEER_KIND]);
