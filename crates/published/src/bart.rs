#![doc = include_str!("bart.md")]

mod filter;
mod machine;
mod strain;
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
pub struct Bart;

params! {
    /// What can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// How long it goes on.
        pub duration: Duration = "60 s" { range: Between("1 ms", "8784 h"), source: "ours: a leap year at most" },
        /// Packets of a train, unless stamps ask for more.
        pub packets: usize = "17" {
            range: Between("3", "4000"), source: "[BART06], recalled and not read again; raised for coarse stamps",
        },
        /// Mean load, of the path's rate.
        pub load: f64 = "0.02" { unit: "share", range: Between("0.0001", "0.5"), source: "ours" },
        /// Highest rate of a train.
        pub max_rate: Option<BitRate> = "the sender's, else 1.5 times what came through" {
            name: "max-rate", range: AtLeast("1 bit/s"), source: "ours",
        },
        /// Process noise of both parameters of the normalised line, per train.
        pub q: f64 = "1e-4" { range: Between("1e-9", "1"), source: "advice: 1e-5 to 1e-3 once normalised" },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "fewest packets per octet; 68: RFC 791",
        },
        /// Of the random rates.
        pub seed: u64 = "1" { source: "ours" },
        /// Silence that ends it.
        pub timeout: Duration = "10 s" { range: Between("1 s", "1 h"), source: "ours" },
    }
    names INFO;
}

/// Time that the last train may take beyond `duration`.
const LAST_TRAIN: Duration = Duration::from_secs(5);
/// Packets of a train at most.
const MAX_PACKETS: usize = 4000;

impl Method for Bart {
    fn info(&self) -> &'static MethodInfo {
        &INFO
    }

    fn imposes(&self, params: &RawParams) -> Imposes {
        let usual = INFO.imposes.clone();
        match Params::try_from(params) {
            Ok(params) => {
                let heavier = (params.load / 0.02).max(1.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "at most 25 times sixteen gigabytes"
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
    name: "bart",
    summary: "follows available bandwidth by a Kalman filter over the strain of short trains",
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
        typical_octets: 15_000_000,
        max_octets: 16_000_000_000,
        typical_time: Duration::from_secs(60),
        max_time: Duration::from_secs(65),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("bart.md"),
};
