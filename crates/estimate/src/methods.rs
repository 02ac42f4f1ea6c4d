//! Every method, one file or folder each, and the slice that lists them.
//!
//! Command line, documentation, tests and fuzz targets read [`METHODS`]; adding a method is one module and one line here.

pub mod asymprobe;
pub mod bprobe;
mod bulk;
pub mod burst;
mod campaign;
pub mod capprobe;
#[cfg(test)]
mod chaos;
pub mod fac2;
#[cfg(test)]
mod fluid;
mod mindelay;
pub mod nettimer;
pub mod pathload;
pub mod pathrate;
pub mod pbprobe;
pub mod pmtu;
pub mod rtt;
pub mod shaper;
pub mod signature;
pub mod slope;
mod spacing;
pub mod sprobe;
pub mod streams;
pub mod tailgate;
pub mod tcp;
pub mod udp;
pub mod window;

use units::Metric;

use crate::facts::Answering;
use crate::registry::Method;

/// Every method, one per line, in the order in which the main job asks.
pub const METHODS: &[&dyn Method] = &[
    &rtt::Rtt,
    &pmtu::Pmtu,
    &crate::job::Capacity,
    &pathrate::Pathrate,
    &nettimer::Nettimer,
    &bprobe::Bprobe,
    &sprobe::Sprobe,
    &tailgate::Tailgate,
    &capprobe::CapProbe,
    &pbprobe::PbProbe,
    &asymprobe::AsymProbe,
    &shaper::Shaper,
    &signature::SignatureMethod,
    &slope::Slope,
    &fac2::Fac2,
    &pathload::Pathload,
    &burst::Burst,
    &udp::Udp,
    &tcp::Tcp,
    &streams::Streams,
    &window::Window,
    &crate::passive::Passive,
    &crate::passive::NettimerPassive,
    &crate::passive::Pprate,
    &crate::passive::Multiq,
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
        Metric::IpCapacity => &crate::job::Capacity,
        Metric::ReverseIpCapacity => &asymprobe::AsymProbe,
        Metric::PeakRate | Metric::CommittedBurstOctets => &shaper::Shaper,
        Metric::AvailableIpCapacity | Metric::CrossTraffic => &crate::job::Available,
        Metric::MaximumBurstOctets => &burst::Burst,
        Metric::UdpAchievable => &udp::Udp,
        Metric::TcpAchievableSingle => &tcp::Tcp,
        Metric::TcpAchievableParallel | Metric::TcpStreamsToFill => &streams::Streams,
        Metric::TcpWindowOctets => &window::Window,
        _ => return None,
    })
}

/// The methods for a metric that this answers, in the order of [`METHODS`].
pub fn answered(metric: Metric, answering: Answering) -> impl Iterator<Item = &'static dyn Method> {
    METHODS
        .iter()
        .copied()
        .filter(move |method| method.info().metric == metric && method.answered_by().contains(&answering))
}

/// The automatic choice against a host at which this answers: [`automatic`]'s if that can do with it, else what was most accurate in
/// the simulator with such a host, else the first method that can.
///
/// Capacity by echoes: `capprobe`, right in all runs on idle and loaded paths, while `nettimer` under load behind the narrow link fell a
/// quarter short in one of four. By SYNs and closed ports: `nettimer`, which asks for the fewest answers (such hosts mostly limit them,
/// and SYNs should be few), and tells the way there even where the way back is slower, where `capprobe`'s check by small packets,
/// which are no longer than their answers, does not.
pub fn automatic_for(metric: Metric, answering: Answering) -> Option<&'static dyn Method> {
    let usual = automatic(metric).filter(|method| method.answered_by().contains(&answering));
    let other: Option<&'static dyn Method> = match (metric, answering) {
        (Metric::IpCapacity, Answering::Echo) => Some(&capprobe::CapProbe),
        (Metric::IpCapacity, Answering::ClosedPort | Answering::TcpSyn) => Some(&nettimer::Nettimer),
        _ => None,
    };
    usual.or(other).or_else(|| answered(metric, answering).next())
}

/// What the user types for [`automatic`].
pub const DEFAULT: &str = "default";

/// The method of that name, or the automatic choice for `metric` if the name is [`DEFAULT`].
pub fn named(name: &str, metric: Metric) -> Option<&'static dyn Method> {
    if name == DEFAULT { automatic(metric) } else { find(name) }
}
