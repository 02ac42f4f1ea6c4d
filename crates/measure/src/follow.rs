#![doc = include_str!("follow.md")]

mod account;
mod answer;
mod level;
mod machine;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

use narrows_probe::observations;
use narrows_probe::observations::{AnalyseError, Observations};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, RawParams, Scope, params,
};
use narrows_probe::{Estimator, Outcome};

/// The method.
pub struct Track;

params! {
    /// What can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// How long it goes on.
        pub duration: Duration = "60 s" { range: Between("1 ms", "8784 h"), source: "ours: a leap year at most" },
        /// Mean load, of the path's rate.
        pub load: f64 = "0.01" {
            unit: "share", range: Between("0.0001", "0.5"), source: "ours: what a path does not feel",
        },
        /// Time from train to train.
        pub period: Duration = "250 ms" {
            range: Between("10 ms", "60 s"), source: "ours: eight trains in the 2 s within which a change is to be seen",
        },
        /// Time over which trains are averaged.
        pub memory: Duration = "2 s" { range: Between("10 ms", "1 h"), source: "ours" },
        /// Windows whose percentiles are told at the end.
        pub window: Duration = "1 s" { range: Between("10 ms", "24 h"), source: "ours" },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "fewest packets per octet; 68: RFC 791",
        },
        /// IP-layer capacity of the tight link, if known.
        pub capacity: Option<BitRate> = "fitted" { range: AtLeast("1 bit/s"), source: "ours" },
        /// Octets of queue that a train may build, until losses say less.
        pub burst_octets: Option<u32> = "0.5 ms of the path, at least 150000" {
            name: "burst", unit: "octets", range: AtLeast("20000"),
            source: "ours: a dozen packets at least; half of a small switch's buffer",
        },
        /// Packets of a train at most.
        pub max_packets: usize = "4000" { name: "max-packets", range: Between("50", "20000"), source: "ours" },
        /// Silence that ends it.
        pub timeout: Duration = "10 s" { range: Between("1 s", "1 h"), source: "ours" },
        /// After so long without a usable train no value is reported.
        pub stale: Duration = "3 s" { range: Between("100 ms", "1 h"), source: "ours" },
        /// Available rate that is expected: the first train is a little faster.
        pub start_rate: Option<BitRate> = "the sender's highest" {
            name: "start-rate", range: AtLeast("1 bit/s"), source: "ours: of use where it was measured before",
        },
        /// Trains after which it ends.
        pub trains: Option<u32> = "no limit" { range: AtLeast("1"), source: "ours" },
    }
    names INFO;
}

/// Time that the last train may take beyond `duration`.
const LAST_TRAIN: Duration = Duration::from_secs(5);

impl Method for Track {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        match Params::try_from(params) {
            Ok(params) => {
                let heavier = (params.load / 0.01).max(1.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "at most 50 times eight gigabytes"
                )]
                let max_octets = (usual.max_octets as f64 * heavier) as u64;
                Imposes { max_octets, ..usual }.lasting(params.duration + LAST_TRAIN)
            }
            Err(_) => usual,
        }
    }

    fn begin(&self, params: &RawParams) -> Result<Box<dyn Estimator>, ParamError> {
        Ok(Box::new(machine::Machine::new(Params::try_from(params)?)))
    }

    fn analyse(&self, observations: &Observations, params: &RawParams) -> Result<Outcome, AnalyseError> {
        observations::replay(machine::Machine::new(Params::try_from(params)?), observations)
    }
}

static INFO: MethodInfo = MethodInfo {
    name: "track",
    summary: "follows available bandwidth with a mean load of 1 % of the path",
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
    // At most at 100 Gbit/s.
    imposes: Imposes {
        typical_octets: 7_500_000,
        max_octets: 8_000_000_000,
        typical_time: Duration::from_secs(60),
        max_time: Duration::from_secs(65),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("follow.md"),
};
