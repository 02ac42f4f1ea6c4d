#![doc = include_str!("spruce.md")]

mod answer;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{BitRate, Layer, Metric};

#[cfg(doc)]
use narrows_probe::outcome::Caveat;
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope, params,
};
use narrows_train::train_method;

use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Spruce;

static INFO: MethodInfo = MethodInfo {
    name: "spruce",
    summary: "available bandwidth from what others put between the packets of pairs",
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
        typical_octets: 1_100_000,
        max_octets: 10_000_000,
        typical_time: Duration::from_secs(4),
        max_time: Duration::from_secs(60),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("spruce.md"),
};

train_method::method!(Spruce);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Params {
        /// Constants and formula: ours, or those of spruce 0.3.
        pub faithful: bool = "adaptive" is { "adaptive" => false, "faithful" => true } {
            name: "preset", source: "ours; spruce 0.3",
        },
        /// IP octets of a probe packet.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "size", unit: "IP octets", range: Between("68", "65535"), source: "the tool: 1500 on the wire",
        },
        /// IP-layer capacity of the tight link, if known.
        pub capacity: Option<BitRate> = "measured" {
            range: AtLeast("1 bit/s"), source: "the original: told by the user",
        },
        /// Pairs to send.
        pub pairs: u32 = "300" { range: Between("10", "10000"), source: "ours", presets: &[("faithful", "100")] },
        /// Mean time from pair to pair.
        pub spacing: Duration = "10 ms" {
            range: Between("0 s", "10 s"), source: "ours", presets: &[("faithful", "100 ms")],
        },
        /// Largest mean load, as a share of capacity.
        pub load: f64 = "0.05" {
            unit: "share", range: Between("0.001", "1"), source: "the tool: pairs never load the path more",
        },
    }
}

impl Params {
    /// What the longest run imposes: silences of the longest kind between all pairs, a round trip
    /// of a second for each train (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let octets = 2 * u64::from(self.ip_octets.unwrap_or(1500)) * u64::from(self.pairs);
        let trains = self.pairs / session::PAIRS_PER_TRAIN + 10;
        let time = (self.spacing * self.pairs).saturating_mul(2) + Duration::from_secs(1) * trains;
        Imposes { max_octets: usual.max_octets.max(2 * octets), max_time: usual.max_time.max(time), ..usual.clone() }
    }
}
