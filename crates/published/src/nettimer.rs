#![doc = include_str!("nettimer.md")]

mod answer;
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

pub use params::{End, Params, Preset};
use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Nettimer;

static INFO: MethodInfo = MethodInfo {
    name: "nettimer",
    summary: "capacity as the densest rate of a few packet pairs, from the sender alone",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: false,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 24_000,
        max_octets: 300_000,
        typical_time: Duration::from_millis(300),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: params::Typed::PARAMETERS,
    manual: include_str!("nettimer.md"),
};

train_method::method!(Nettimer);
