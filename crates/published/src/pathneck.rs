#![doc = include_str!("pathneck.md")]

mod answer;
mod session;
mod steps;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Framing, Layer, Metric};

#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, EVERYTHING, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol,
    Range, Scope, params,
};
use narrows_train::train_method;

use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Pathneck;

static INFO: MethodInfo = MethodInfo {
    name: "pathneck",
    summary: "choke points along the path, and bounds of what is available there, from recursive packet trains",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::PerHop,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Icmp,
        works_on_asymmetric: true,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs { single_packet_stamps: false, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 336_000,
        max_octets: 2_000_000,
        typical_time: Duration::from_secs(8),
        max_time: Duration::from_secs(60),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("pathneck.md"),
};

train_method::method!(Pathneck, answered_by: &EVERYTHING);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// With `tool` as the original counts, cleans up, and sees the first hop.
        pub as_tool: bool = "" is { "" => false, "tool" => true } {
            name: "preset", source: "the three bugs of the tool",
        },
        /// Measurement packets on either side.
        pub hops: u8 = "30" { range: Between("2", "60"), source: "tool" },
        /// Load packets.
        pub load: u16 = "60" { range: Between("10", "1000"), source: "tool; 20 on access links of 10 Mbit/s and less" },
        /// IP octets of a load packet.
        pub load_octets: u16 = "500" {
            name: "octets", unit: "IP octets", range: Between("100", "9000"), source: "tool",
        },
        /// IP octets of a measurement packet.
        pub small_octets: u16 = "60" { name: "small", unit: "IP octets", range: Between("28", "500"), source: "tool" },
        /// Trains.
        pub runs: u32 = "10" { range: Between("5", "1000"), source: "tool" },
        /// Least difference of two segments' gaps.
        pub step: Duration = "100 us" { range: Between("1 us", "1 s"), source: "tool" },
        /// Pause before a train.
        pub spacing: Duration = "300 ms" { range: Between("0 s", "60 s"), source: "tool, varied by half either way" },
        /// How links wrap packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
    }
}

impl Params {
    /// What the longest run imposes: a second of waiting per train (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let ends = 2 * u64::from(self.hops) * u64::from(self.small_octets);
        let train = ends + u64::from(self.load) * u64::from(self.load_octets);
        let each = self.spacing.mul_f64(1.5) + Duration::from_secs(2);
        Imposes {
            max_octets: usual.max_octets.max(train * u64::from(self.runs)),
            max_time: usual.max_time.max(each.saturating_mul(self.runs)),
            ..usual.clone()
        }
    }
}
