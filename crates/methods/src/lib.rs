//! Every method by name, the automatic choices, and the main job of `narrows test`.
//!
//! The methods themselves are in `narrows_measure` (what users get) and `narrows_published` (the
//! tools of the literature). Only `available` is in [`job`]: it runs `capacity` in brief, then
//! `slope`.
//!
//! - [`METHODS`] lists them. Command line, documentation, tests and fuzz targets read this list. To
//!   add a method, write its module in one of those crates and add one line here.
//! - [`automatic`] is the method that answers for a metric unless the caller names another;
//!   [`automatic_for`] the same against a host that runs no server.
//! - [`job::main_job`] runs methods in order over one world: each gets what the earlier ones found,
//!   and its outcome is an entry of the result. The order and the budget are in `job/plan.rs`.
//!
//! Nothing here reads a clock or opens a socket. A method that the world cannot serve ends with a
//! reason, and the job goes on; a world that fails ends the job.

pub mod job;
#[cfg(test)]
mod misbehaving;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod parameters;

use narrows_measure::{
    answers, asymprobe, available, burst, capacity, follow, hops, pmtu, rtt, shaper, streams, tcp, udp, window,
};
use narrows_probe::facts::Answering;
use narrows_probe::registry::{Method, Scope};
use narrows_published::{
    abing, assolo, bart, bing, bprobe, capprobe, clink, cprobe, diettopp, fac2, igi, kite, kite2, nettimer, pathchar,
    pathchirp, pathload, pathneck, pbprobe, pchar, pipechar, ptr, quartets, rapid, rfc9097, sprobe, spruce, tailgate,
    topp, wbest, yaz,
};
use narrows_units::Metric;

/// Every method, one per line, in the order in which the main job asks.
pub const METHODS: &[&dyn Method] = &[
    &rtt::Rtt,
    &pmtu::Pmtu,
    &capacity::Capacity,
    &hops::Hops,
    &answers::Answers,
    &capacity::pathrate::Pathrate,
    &nettimer::Nettimer,
    &bprobe::Bprobe,
    &sprobe::Sprobe,
    &tailgate::Tailgate,
    &quartets::Quartets,
    &pathchar::Pathchar,
    &pchar::Pchar,
    &clink::Clink,
    &bing::Bing,
    &pathneck::Pathneck,
    &pipechar::Pipechar,
    &capprobe::CapProbe,
    &pbprobe::PbProbe,
    &asymprobe::AsymProbe,
    &shaper::Shaper,
    &capacity::signature::SignatureMethod,
    &available::Slope,
    &fac2::Fac2,
    &pathload::Pathload,
    &bart::Bart,
    &follow::Track,
    &igi::Igi,
    &ptr::Ptr,
    &spruce::Spruce,
    &topp::Topp,
    &diettopp::DietTopp,
    &wbest::Wbest,
    &yaz::Yaz,
    &kite::Kite,
    &kite2::Kite2,
    &abing::Abing,
    &cprobe::Cprobe,
    &pathchirp::Pathchirp,
    &assolo::Assolo,
    &rapid::Rapid,
    &burst::Burst,
    &udp::Udp,
    &rfc9097::Rfc9097,
    &tcp::Tcp,
    &streams::Streams,
    &window::Window,
    &narrows_diagnose::passive::Passive,
    &narrows_diagnose::passive::NettimerPassive,
    &narrows_diagnose::passive::Pprate,
    &narrows_diagnose::passive::Multiq,
];

/// The method of that name; also the automatic choice that is no method of its own, for recordings
/// name it.
pub fn find(name: &str) -> Option<&'static dyn Method> {
    let automatic: &dyn Method = &job::Available;
    let all = METHODS.iter().copied().chain([automatic]);
    all.into_iter().find(|method| method.info().name == name)
}

/// The method that answers for a metric unless the caller names another: the one place where that
/// is decided. `None` where no method gives the metric. It may give it as one of its other
/// quantities.
pub fn automatic(metric: Metric) -> Option<&'static dyn Method> {
    Some(match metric {
        Metric::RoundTripTime => &rtt::Rtt,
        Metric::PathMtu => &pmtu::Pmtu,
        Metric::IpCapacity => &capacity::Capacity,
        Metric::ReverseIpCapacity => &asymprobe::AsymProbe,
        Metric::PeakRate | Metric::CommittedBurstOctets => &shaper::Shaper,
        Metric::AvailableIpCapacity | Metric::CrossTraffic => &job::Available,
        Metric::MaximumBurstOctets => &burst::Burst,
        Metric::UdpAchievable => &udp::Udp,
        Metric::TcpAchievableSingle => &tcp::Tcp,
        Metric::TcpAchievableParallel | Metric::TcpStreamsToFill => &streams::Streams,
        Metric::TcpWindowOctets => &window::Window,
        _ => return None,
    })
}

/// The method that answers hop by hop unless the caller names another.
pub fn automatic_per_hop() -> &'static dyn Method {
    &hops::Hops
}

/// The methods for a metric that this answers, in the order of [`METHODS`].
pub fn answered(metric: Metric, answering: Answering) -> impl Iterator<Item = &'static dyn Method> {
    METHODS
        .iter()
        .copied()
        .filter(move |method| method.info().metric == metric && method.answered_by().contains(&answering))
}

/// The automatic choice against a host at which this answers. It is that of [`automatic`] if that
/// method works with such answers. Else it is the most accurate one in the simulator with such a
/// host, else the first method that works and answers for the path as a whole.
///
/// Capacity by echoes, SYNs and closed ports: `answers`, which alone expects a host at rest to be
/// late with its first answer, and never turns that into a bound.
///
/// Available bandwidth by echoes: [`automatic`]'s own, which reads them. `fac2`, whose trains are
/// few and short, would answer if it did not.
pub fn automatic_for(metric: Metric, answering: Answering) -> Option<&'static dyn Method> {
    let usual = automatic(metric).filter(|method| method.answered_by().contains(&answering));
    let other: Option<&'static dyn Method> = match (metric, answering) {
        (Metric::IpCapacity, Answering::Echo | Answering::ClosedPort | Answering::TcpSyn) => Some(&answers::Answers),
        (Metric::AvailableIpCapacity, Answering::Echo) => Some(&fac2::Fac2),
        _ => None,
    };
    let whole = |method: &&dyn Method| method.info().class.scope == Scope::EndToEnd;
    usual.or(other).or_else(|| answered(metric, answering).find(whole))
}

/// What the user types for [`automatic`].
pub const DEFAULT: &str = "default";

/// What plans say for [`automatic_per_hop`].
pub const DEFAULT_PER_HOP: &str = "default_per_hop";

/// The method of that name, or the automatic choice for `metric` if the name is [`DEFAULT`], or per
/// hop if it is [`DEFAULT_PER_HOP`].
pub fn named(name: &str, metric: Metric) -> Option<&'static dyn Method> {
    match name {
        DEFAULT => automatic(metric),
        DEFAULT_PER_HOP => Some(automatic_per_hop()),
        _ => find(name),
    }
}
