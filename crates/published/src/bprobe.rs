#![doc = include_str!("bprobe.md")]

mod answer;
mod filter;
mod params;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope,
};
use narrows_train::train_method;

pub use params::Params;
use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Bprobe;

static INFO: MethodInfo = MethodInfo {
    name: "bprobe",
    summary: "capacity that echoes of trains of several packet sizes have in common",
    metric: Metric::IpCapacity,
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
        typical_octets: 60_000,
        max_octets: 400_000,
        typical_time: Duration::from_millis(600),
        max_time: Duration::from_secs(20),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("bprobe.md"),
};

train_method::method!(Bprobe);
