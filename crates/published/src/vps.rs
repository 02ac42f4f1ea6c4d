//! What methods of variable packet size share: probes of many sizes that die at each router in
//! turn, and the slope of least round trip over size.
//!
//! ```text
//!  RTT_n(L) = a_n + F_n W(L) + B_n W(R)   F_n, B_n: sums of 8/C over the links there, back
//!  C_n = 8 / (F_n - F_n-1)   R: length of the router's answer, a quote included
//! ```
//!
//! [`session`] asks, [`table`] keeps least round trips, [`fit`] draws lines, [`answer`] makes hops
//! of them, [`settings`] holds what the three tools set differently.

pub(super) mod answer;
pub(super) mod fit;
pub(super) mod session;
pub(super) mod settings;
pub(super) mod table;
#[cfg(test)]
pub(super) mod tests;

use std::time::Duration;

use narrows_units::{Layer, Metric};

use narrows_probe::registry::{
    Activity, Classification, Deployment, Imposes, MethodInfo, Methodology, Needs, Privilege, Protocol, Scope,
};

/// What these methods have in common as registry entries.
pub(super) const INFO: MethodInfo = MethodInfo {
    name: "",
    summary: "",
    metric: Metric::IpCapacity,
    class: Classification {
        scope: Scope::PerHop,
        methodology: Methodology::VariableSize,
        activity: Activity::Active,
        protocol: Protocol::Udp,
        works_on_asymmetric: false,
        deployment: Deployment::Sender,
        layer: Some(Layer::Ip),
        privilege: Privilege::RawSocket,
    },
    needs: Needs { single_packet_stamps: true, sender_faster_than_result: false, pacing: false },
    imposes: Imposes {
        typical_octets: 3_300_000,
        max_octets: 20_000_000,
        typical_time: Duration::from_secs(45),
        max_time: Duration::from_secs(600),
        fills_path: false,
    },
    parameters: &[],
    manual: "",
};

/// Registers a method of variable packet size: `INFO` and `settings` are those of the module that
/// says so.
macro_rules! method {
    ($name:ident) => {
        narrows_probe::registry::method!(
            $name,
            run: |raw| Ok(narrows_train::train_method::Machine::new(super::vps::session::MethodRun::new(settings(raw)?))),
            imposes: |raw, usual| settings(raw).map_or(usual.clone(), |settings| settings.imposes(&usual)),
            answered_by: &narrows_probe::registry::EVERYTHING
        );
    };
}
pub(super) use method;
