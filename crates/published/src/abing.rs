#![doc = include_str!("abing.md")]

mod answer;
mod params;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope,
};
use narrows_train::train_method;

pub use params::Params;
use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Abing;

static INFO: MethodInfo = MethodInfo {
    name: "abing",
    summary: "available bandwidth from what traffic adds between the packets of pairs",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::ProbeGap,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: true },
    imposes: Imposes {
        typical_octets: 1_300_000,
        max_octets: 3_000_000,
        typical_time: Duration::from_secs(5),
        max_time: Duration::from_secs(20),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("abing.md"),
};

train_method::method!(Abing);
