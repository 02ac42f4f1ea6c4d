//! Elastic cross traffic: TCP connections that take what they get.

use scenario::{Cross, Elastic, ElasticControl, Scenario, Source};

use super::congestion::Control;
use super::flow::{FlowConfig, Route};
use super::segment::HEADER_OCTETS;
use super::window::ReceiveWindow;
use crate::rng::{Purpose, Stream};
use crate::{NEVER, nanos};

/// A connection of a scenario's cross traffic, and when it ends ([`NEVER`] if it does not).
pub(crate) type ElasticFlow = (FlowConfig, u64);

/// Window of a connection without a limit: more than any path of this simulator holds.
const UNLIMITED_OCTETS: u64 = 1 << 32;
/// Connections begin at random within this time.
const START_NS: u64 = 1_000_000_000;

/// The connections of a scenario's elastic cross traffic.
///
/// Data cross the shared hops as packets of at most 1500 octets. Acknowledgements do not cross the other way: they take a fixed
/// time, the traffic's `extra_rtt` and the propagation of the shared hops once more, so they are neither queued nor lost.
pub(crate) fn elastic_flows(scenario: &Scenario, seed: u64) -> Vec<ElasticFlow> {
    let each = scenario.cross.iter().enumerate().flat_map(|(index, cross)| {
        let flows = match &cross.source {
            Source::Elastic(elastic) => flows(scenario, cross, elastic, Stream::new(seed, Purpose::Source(index))),
            Source::Open { .. } => Vec::new(),
        };
        flows.into_iter()
    });
    each.collect()
}

fn flows(scenario: &Scenario, cross: &Cross, elastic: &Elastic, mut rng: Stream) -> Vec<ElasticFlow> {
    let hops = scenario.hops(cross.way);
    let last = cross.last_hop.min(hops.len().saturating_sub(1));
    let shared = hops.get(cross.first_hop..=last).unwrap_or_default();
    let ip_octets = shared
        .iter()
        .map(|hop| hop.mtu)
        .fold(1500, u16::min)
        .max(HEADER_OCTETS + 1);
    let propagation: u64 = shared.iter().map(|hop| nanos(hop.delay)).sum();
    let back = nanos(elastic.extra_rtt) + propagation;
    let window = elastic.window_octets.map_or(UNLIMITED_OCTETS, u64::from);
    let config = |begins| FlowConfig {
        begins,
        ip_octets,
        control: match elastic.control {
            ElasticControl::Reno => Control::Reno,
            ElasticControl::Cubic => Control::Cubic,
        },
        window: ReceiveWindow::Fixed(window),
        pacing: None,
        handshake: (back + propagation).max(1),
        route: Route::Hops {
            way: cross.way,
            first: cross.first_hop,
            last,
            back,
        },
    };
    let until = cross.until.map_or(NEVER, nanos);
    (0..elastic.flows)
        .map(|_| (config(nanos(cross.from).saturating_add(rng.below(START_NS))), until))
        .collect()
}
