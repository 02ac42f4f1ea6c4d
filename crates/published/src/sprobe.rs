#![doc = include_str!("sprobe.md")]

mod answer;
mod session;
#[cfg(test)]
mod tests;
mod train;

use std::time::Duration;

use narrows_units::{Framing, Layer, Metric};

use narrows_probe::facts::Answering;
#[cfg(doc)]
use narrows_probe::outcome::{Caveat, Reason};
use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Range, Scope,
    params,
};
use narrows_train::train_method;

use session::MethodRun;

/// The registry entry.
#[derive(Debug, Clone, Copy)]
pub struct Sprobe;

static INFO: MethodInfo = MethodInfo {
    name: "sprobe",
    summary: "capacity of the forward direction to an uncooperative host from TCP SYN pairs, or nothing",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::EndToEnd,
        methodology: Methodology::PacketDispersion,
        activity: Activity::Active,
        protocol: Protocol::Tcp,
        works_on_asymmetric: true,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: true, pacing: false },
    imposes: Imposes {
        typical_octets: 16_200,
        max_octets: 100_000,
        typical_time: Duration::from_millis(2500),
        max_time: Duration::from_secs(30),
        fills_path: false,
    },
    parameters: Params::PARAMETERS,
    manual: include_str!("sprobe.md"),
};

train_method::method!(Sprobe, answered_by: &[Answering::TcpSyn]);

params! {
    /// Everything that can be set.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Params {
        /// Trains at most.
        pub trains: u32 = "10" { range: Between("3", "100"), source: "ours: at most, and no more than it takes" },
        /// Trains that count, after which no more are sent.
        pub enough: u32 = "5" { range: Between("3", "100"), source: "ours" },
        /// Small SYNs on either side of the pair.
        pub small: usize = "3" { range: Between("1", "20"), source: "ours" },
        /// IP octets of a large SYN.
        pub ip_octets: Option<u16> = "path MTU" {
            name: "octets", unit: "IP octets", range: Between("200", "65535"), unset: Some("0"), source: "recalled: 1500",
        },
        /// From the begin of one train to the begin of the next.
        pub spacing: Duration = "500 ms" {
            range: Between("0 s", "10 s"), source: "ours: SYNs to a host that is not ours are sent rarely",
        },
        /// How the narrow link wraps packets.
        pub framing: Framing = "ethernet" { range: Range::FRAMING, unset: Some(""), source: "ours" },
    }
}

impl Params {
    /// What the longest run imposes: round trips of up to a second (ours).
    fn imposes(&self, usual: &Imposes) -> Imposes {
        let small = u64::try_from(self.small).unwrap_or(u64::MAX);
        let octets = 2 * u64::from(self.ip_octets.unwrap_or(1500)) + 2 * small * 60;
        let each = self.spacing.max(Duration::from_secs(1)).saturating_mul(2);
        Imposes {
            max_octets: usual.max_octets.max(u64::from(self.trains) * octets),
            max_time: usual.max_time.max(each.saturating_mul(self.trains)),
            ..usual.clone()
        }
    }
}
