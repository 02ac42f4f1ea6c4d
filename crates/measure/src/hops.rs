#![doc = include_str!("hops.md")]

mod answer;
mod busy;
mod by_tailgating_probes;
mod line;
mod pace;
mod picture;
mod plan;
mod remote;
mod round;
mod route;
mod session;
mod spacings;
mod stages;
mod table;
mod tailgating_probes;
mod trailing_packets;

use std::time::Duration;

use narrows_units::{Framing, Layer, Metric};

#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::registry::{
    Activity, Classification, Deployment, EVERYTHING, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol,
    Range, Scope, params,
};
use narrows_train::train_method::method;
use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Hops;

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Hops at most.
        hops: u8 = "30" { range: Between("1", "64"), source: "traceroute" },
        /// Time from round to round.
        pace: Duration = "50 ms" {
            range: Between("1 ms", "10 s"), source: "`capacity` §8.7: 20 probes per second and hop; varied by half either way",
        },
        /// Probes per hop at most.
        probes: u32 = "200" {
            range: Between("24", "2000"), source: "ours; a fifth of it where the router limits its answers",
        },
        /// How links wrap packets.
        framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
        /// Whether the peer's own stamps tell the last hop, where they can be had.
        remote_stamps: bool = "answers" is { "answers" => false, "stamps" => true } {
            name: "last_hop", source: "ours: by what the last hop is told; stamps need a server there",
        },
    }
}

impl Params {
    /// All probes to all hops, at routers that limit their answers to one in three seconds.
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let probes = u64::from(self.probes) * u64::from(self.hops);
        let time = self.pace.max(Duration::from_secs(1)).saturating_mul(self.probes) * 2;
        Imposes {
            max_octets: usual.max_octets.max(probes.saturating_mul(1500)),
            max_time: usual.max_time.max(time),
            ..usual.clone()
        }
    }
}

static INFO: MethodInfo = MethodInfo {
    name: "hops",
    summary: "capacity, latency, waiting and loss of each hop, all hops at once, with devices inside hops told apart",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::PerHop,
        methodology: Methodology::VariableSize,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: false, pacing: false },
    imposes: Imposes {
        typical_octets: 100_000,
        max_octets: 6_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(300),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("hops.md"),
};

method!(Hops, answered_by: &EVERYTHING);
