//! Every method, one file or folder each, and the slice that lists them.
//!
//! Command line, documentation, tests and fuzz targets read [`METHODS`]; adding a method is one module and one line here.

mod bulk;
pub mod burst;
#[cfg(test)]
mod chaos;
pub mod fac2;
#[cfg(test)]
mod fluid;
pub mod pathload;
pub mod pathrate;
pub mod pmtu;
pub mod rtt;
pub mod signature;
pub mod streams;
pub mod tcp;
pub mod udp;
pub mod window;

use units::Metric;

use crate::registry::Method;

/// Every method, one per line, in the order in which the main job asks.
pub const METHODS: &[&dyn Method] = &[
    &rtt::Rtt,
    &pmtu::Pmtu,
    &pathrate::Pathrate,
    &signature::SignatureMethod,
    &fac2::Fac2,
    &pathload::Pathload,
    &burst::Burst,
    &udp::Udp,
    &tcp::Tcp,
    &streams::Streams,
    &window::Window,
];

/// The method of that name; also the automatic choice that is no method of its own, for recordings name it.
pub fn find(name: &str) -> Option<&'static dyn Method> {
    let automatic: &dyn Method = &crate::job::Available;
    let all = METHODS.iter().copied().chain([automatic]);
    all.into_iter().find(|method| method.info().name == name)
}

/// The method that answers for a metric unless the caller names another: the one place where that is decided. `None` where no
/// method gives the metric. It may give it as one of its other quantities.
pub fn automatic(metric: Metric) -> Option<&'static dyn Method> {
    Some(match metric {
        Metric::RoundTripTime => &rtt::Rtt,
        Metric::PathMtu => &pmtu::Pmtu,
        Metric::IpCapacity => &pathrate::Pathrate,
        Metric::AvailableIpCapacity | Metric::CrossTraffic => &crate::job::Available,
        Metric::MaximumBurstOctets => &burst::Burst,
        Metric::UdpAchievable => &udp::Udp,
        Metric::TcpAchievableSingle => &tcp::Tcp,
        Metric::TcpAchievableParallel | Metric::TcpStreamsToFill => &streams::Streams,
        Metric::TcpWindowOctets => &window::Window,
        _ => return None,
    })
}

/// What the user types for [`automatic`].
pub const DEFAULT: &str = "default";

/// The method of that name, or the automatic choice for `metric` if the name is [`DEFAULT`].
pub fn named(name: &str, metric: Metric) -> Option<&'static dyn Method> {
    if name == DEFAULT { automatic(metric) } else { find(name) }
}
