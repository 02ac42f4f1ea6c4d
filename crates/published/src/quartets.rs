#![doc = include_str!("quartets.md")]

mod answer;
mod chain;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use narrows_units::{Framing, Layer, Metric};

use narrows_probe::facts::Answering;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, ParamError, Privilege, Protocol,
    Range, Scope, params,
};
use narrows_train::train_method;
use narrows_train::train_method::within;

use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Quartets;

static INFO: MethodInfo = MethodInfo {
    name: "quartets",
    summary: "capacity of each hop from two small packets behind large ones that die one hop apart",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::PerHop,
        methodology: Methodology::VariableSize,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: true,
        deployment: Deployment::Both,
        layer: Some(Layer::Ip),
        privilege: Privilege::None,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: false, pacing: false },
    imposes: Imposes {
        typical_octets: 150_000,
        max_octets: 6_000_000,
        typical_time: Duration::from_secs(3),
        max_time: Duration::from_secs(120),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("quartets.md"),
};

train_method::method!(Quartets, answered_by: &[Answering::Server, Answering::Reflector, Answering::Echo]);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Quartets per hop at most.
        pub rounds: u32 = "60" {
            range: Between("10", "1000"), source: "ours; ends when errors are 1 % of the slowest hop's time",
        },
        /// Hops at most.
        pub hops: u8 = "16" { range: Between("1", "64"), source: "ours" },
        /// IP octets of a large packet.
        pub large_octets: Option<u16> = "path MTU" {
            name: "octets", unit: "IP octets", range: Between("200", "65535"), unset: Some("0"),
            source: "derived: as large as fits",
        },
        /// IP octets of a small packet, half of a large one's at most.
        pub small_octets: u16 = "64" {
            name: "small", unit: "IP octets", range: Between("40", "500"),
            source: "derived: as small as it goes; raised to what the world takes",
        },
        /// From pair to pair.
        pub head_start: Duration = "10 ms" {
            range: Between("100 us", "1 s"),
            source: "ours, varied by half either way; four times as long once a hop takes a quarter of it",
        },
        /// From the begin of one quartet to the begin of the next.
        pub spacing: Duration = "20 ms" { range: Between("0 s", "10 s"), source: "ours, varied by half either way" },
        /// How links wrap packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours: of every link" },
    }
    check Params::check;
}

impl Params {
    fn check(&self) -> Result<(), ParamError> {
        let fits = self.large_octets.is_none_or(|large| self.small_octets * 2 <= large);
        within(fits, "small", self.small_octets, "40 to 500, and half of octets at most")
    }
}

impl Params {
    /// What the longest run imposes: every hop and round, and round trips of up to a tenth of a
    /// second (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let quartets = self.rounds.saturating_mul(u32::from(self.hops));
        let octets = 2 * (u64::from(self.large_octets.unwrap_or(1500)) + u64::from(self.small_octets));
        let each = self.head_start + self.spacing.max(Duration::from_millis(100)).saturating_mul(2);
        Imposes {
            max_octets: usual.max_octets.max(u64::from(quartets) * octets),
            max_time: usual.max_time.max(each.saturating_mul(quartets)),
            ..usual.clone()
        }
    }
}
