//! What keeps the rate of packets that met no queue from being the forward capacity.

use narrows_probe::PathFacts;
use narrows_probe::outcome::{Caveat, Estimate, Limit};
use narrows_train::mindelay;
use narrows_train::mindelay::{Back, HuntResult, Via};
use narrows_units::Framing;

/// The estimate, as a bound if a host or the reverse direction may have set it. `found` is of
/// packets of `ip_octets`, sent `via` this kind of peer.
pub(crate) fn bounded(
    estimate: Estimate,
    facts: &PathFacts,
    via: Via,
    (ip_octets, framing): (u16, Framing),
    found: &HuntResult,
) -> Estimate {
    let wire = mindelay::wire_rate(framing, ip_octets, found.each_ns);
    let is_interface = facts.sender.interface_rate.is_some_and(|rate| (wire / rate.as_f64() - 1.0).abs() < SAME);
    if found.best.open() && !is_interface {
        return estimate.caveat(Caveat::SenderLimited).at_least(Limit::Sender);
    }
    let host = match via {
        Via::Auto | Via::Receiver | Via::Reflector => &facts.receiver,
        Via::Echo | Via::ClosedPort | Via::Syn => &facts.sender,
    };
    let by_stamps = |rate: f64| host.stamps_limit(rate, ip_octets, found.best.stamped_by);
    if estimate.rate().is_some_and(|rate| by_stamps(rate.value.as_f64())) {
        return estimate.caveat(Caveat::ReceiverLimited).at_least(Limit::Receiver);
    }
    match mindelay::way_back(via.reads(), &found.best, ip_octets) {
        Back::Observed => estimate,
        Back::Slower { reply_ip_octets } => estimate.caveat(Caveat::ReverseInfluence { reply_ip_octets }),
        // Answers that are as long as the probes tell the lesser of two capacities.
        Back::Either => estimate.caveat(Caveat::AsymmetricLimit).at_least(Limit::Path),
    }
}

/// Ours: a rate this near to that of the interface is the interface's.
const SAME: f64 = 0.03;
