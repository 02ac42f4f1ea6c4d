#![doc = include_str!("wbest.md")]

mod answer;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope, params,
};
use narrows_train::train_method;

use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Wbest;

static INFO: MethodInfo = MethodInfo {
    name: "wbest",
    summary: "available bandwidth from trains at the capacity that pairs show",
    metric: Metric::AvailableIpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: true },
    imposes: Imposes {
        typical_octets: 1_100_000,
        max_octets: 20_000_000,
        typical_time: Duration::from_secs(1),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("wbest.md"),
};

train_method::method!(Wbest);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Counts and formula: ours, or the tool's.
        pub faithful: bool = "adaptive" is { "adaptive" => false, "faithful" => true } {
            name: "preset", source: "ours; constants of the tool",
        },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "ours",
        },
        /// IP-layer capacity of the tight link, if known.
        pub capacity: Option<BitRate> = "measured" { range: AtLeast("1 bit/s"), source: "ours" },
        /// Pairs to send.
        pub pairs: u32 = "60" {
            range: Between("10", "1000"), source: "ours; as published", presets: &[("faithful", "30")],
        },
        /// Packets of a train.
        pub packets: usize = "60" {
            range: Between("10", "1000"), source: "ours; as published", presets: &[("faithful", "30")],
        },
        /// Trains to send.
        pub trains: usize = "10" {
            range: Between("1", "100"), source: "ours; as published", presets: &[("faithful", "1")],
        },
        /// Mean load, of the path's rate.
        pub load: f64 = "0.2" { unit: "share", range: Between("0.001", "1"), source: "ours" },
    }
}

impl Params {
    /// What the longest run imposes: everything twice, and a round trip of 200 ms for each train
    /// (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let octets = u64::from(self.ip_octets.unwrap_or(1500));
        let packets = 2 * u64::from(self.pairs) + (self.packets * self.trains) as u64;
        let trains = u64::from(self.pairs) / 10 + self.trains as u64;
        let slow = Duration::from_millis(200).mul_f64((0.2 / self.load).max(1.0));
        let time = slow * u32::try_from(2 * trains).unwrap_or(u32::MAX);
        Imposes {
            max_octets: usual.max_octets.max(2 * packets * octets),
            max_time: usual.max_time.max(time).min(Duration::from_secs(600)),
            ..usual.clone()
        }
    }
}
