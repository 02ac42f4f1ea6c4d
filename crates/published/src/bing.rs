#![doc = include_str!("bing.md")]

mod rules;
mod session;
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
pub struct Bing;

static INFO: MethodInfo = MethodInfo {
    name: "bing",
    summary: "capacity of each hop from least round trips of few sizes to both of its ends",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::PerHop,
        methodology: Methodology::VariableSize,
        activity: Activity::Active,
        protocol: Protocol::Icmp,
        works_on_asymmetric: false,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: false, pacing: false },
    imposes: Imposes {
        typical_octets: 500_000,
        max_octets: 8_000_000,
        typical_time: Duration::from_secs(9),
        max_time: Duration::from_secs(600),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("bing.md"),
};

train_method::method!(Bing, answered_by: &EVERYTHING);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Packet sizes.
        pub sizes: u16 = "10" { range: Between("2", "100"), source: "tool; 2: as it began" },
        /// IP octets of the smallest.
        pub smallest: u16 = "64" {
            unit: "IP octets", range: Between("28", "700"), source: "tool: what its header needs",
        },
        /// Probes per size and hop.
        pub repeats: u32 = "16" { range: Between("1", "1000"), source: "ours: the tool goes on until it is stopped" },
        /// Times that the worst half is probed again.
        pub passes: u32 = "4" { range: Between("0", "100"), source: "ours, likewise" },
        /// From an answer to the next probe.
        pub gap: Duration = "10 ms" { range: Between("0 s", "10 s"), source: "ours, varied by half either way" },
        /// Hops at most.
        pub hops: u8 = "30" { range: Between("1", "64"), source: "ours: the tool is given two hosts" },
        /// How links wrap packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
    }
}

impl Params {
    /// What the longest run imposes: all sizes at all hops, and round trips of a tenth of a second
    /// (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let rounds = self.repeats.saturating_add(self.passes);
        let probes = rounds.saturating_mul(u32::from(self.sizes)).saturating_mul(u32::from(self.hops));
        Imposes {
            max_octets: usual.max_octets.max(u64::from(probes) * 1500),
            max_time: usual.max_time.max((self.gap + Duration::from_millis(100)).saturating_mul(probes)),
            ..usual.clone()
        }
    }
}
