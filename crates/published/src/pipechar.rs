#![doc = include_str!("pipechar.md")]

mod answer;
mod session;
#[cfg(test)]
mod tests;
mod trains;

use std::time::Duration;

use narrows_units::{Framing, Layer, Metric};

#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, EVERYTHING, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege,
    Protocol, Range, Scope, params,
};
use narrows_train::train_method;
use narrows_train::train_method::within;

use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Pipechar;

static INFO: MethodInfo = MethodInfo {
    name: "pipechar",
    summary: "capacity and load of each hop from trains that die there, by the fluid spray effect",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::PerHop,
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
        typical_octets: 2_200_000,
        max_octets: 25_000_000,
        typical_time: Duration::from_secs(4),
        max_time: Duration::from_secs(300),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("pipechar.md"),
};

train_method::method!(Pipechar, answered_by: &EVERYTHING);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Packets of a train.
        pub packets: u16 = "24" { range: Between("6", "500"), source: "ours; 20 and more by the derivation" },
        /// Trains per hop.
        pub trains: u32 = "20" { range: Between("4", "1000"), source: "ours" },
        /// Packets of a part of a train, no more than of the train.
        pub least: u16 = "5" { range: Between("2", "100"), source: "ours" },
        /// One in this many packets dies at the hop, the others go on as load; fewer than packets.
        pub every: u16 = "1" { range: Between("1", "100"), source: "ours" },
        /// IP octets of a packet.
        pub octets: Option<u16> = "path MTU" {
            unit: "IP octets", range: Between("100", "65535"), unset: Some("0"), source: "ours",
        },
        /// From train to train.
        pub spacing: Duration = "30 ms" { range: Between("0 s", "60 s"), source: "ours, varied by half either way" },
        /// Hops at most.
        pub hops: u8 = "30" { range: Between("1", "64"), source: "ours" },
        /// How links wrap packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
    }
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let (least, every) = (self.least, self.every);
        within(least <= self.packets, "least", least, "2 to 100, and no more than packets")?;
        within(every < self.packets, "every", every, "1 to 100, and fewer than packets")
    }
}

impl Params {
    /// What the longest run imposes: half a second per train (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let trains = self.trains.saturating_mul(u32::from(self.hops));
        let train = u64::from(self.packets) * u64::from(self.octets.unwrap_or(1500));
        let each = self.spacing.mul_f64(1.5) + Duration::from_millis(500);
        Imposes {
            max_octets: usual.max_octets.max(u64::from(trains) * train),
            max_time: usual.max_time.max(each.saturating_mul(trains)),
            ..usual.clone()
        }
    }
}
