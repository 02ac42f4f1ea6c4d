#![doc = include_str!("cprobe.md")]

mod answer;
mod params;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use narrows_probe::Answering;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope,
};
use narrows_train::train_method;

pub use params::Params;
use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Cprobe;

static INFO: MethodInfo = MethodInfo {
    name: "cprobe",
    summary: "an upper bound of available bandwidth: the asymptotic dispersion rate of short echoed trains",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Icmp,
        works_on_asymmetric: false,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 150_000,
        max_octets: 1_000_000,
        typical_time: Duration::from_secs(1),
        max_time: Duration::from_secs(20),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("cprobe.md"),
};

train_method::method!(
    // Echoes; and its bound is never the automatic choice of a host that answers nothing else.
    Cprobe,
    answered_by: &[Answering::Server, Answering::Reflector, Answering::Echo]
);
