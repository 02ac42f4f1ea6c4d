//! Elastic cross traffic: TCP connections that take what they get.

use narrows_scenario::{Cross, Elastic, ElasticControl, Scenario, Source, Workload};
use narrows_units::nanos;

use super::congestion::Control;
use super::flow::{FlowConfig, Programs, Route};
use super::segment::HEADER_OCTETS;
use super::web::TransferStream;
use super::window::ReceiveWindow;
use crate::NEVER;
use crate::rng::{Purpose, Stream};

/// A connection of a scenario's cross traffic, and when it ends ([`NEVER`] if it does not).
pub(crate) type ElasticFlow = (FlowConfig, u64);

/// Window of a connection without a limit: more than any path of this simulator holds.
const UNLIMITED_OCTETS: u64 = 1 << 32;
/// Connections begin at random within this time.
const START_NS: u64 = 1_000_000_000;

/// Transfers of which each has a connection of its own, which opens as time passes.
#[derive(Debug)]
pub(crate) struct Transfers {
    stream: TransferStream,
    config: FlowConfig,
    until: u64,
}

impl Transfers {
    /// When the next begins; [`NEVER`] if none does any more.
    pub(crate) fn next_at(&self) -> u64 {
        Some(self.stream.peek_ns()).filter(|at| *at < self.until).unwrap_or(NEVER)
    }

    /// The next transfer, and when it is broken off.
    pub(crate) fn open(&mut self) -> ElasticFlow {
        let transfer = self.stream.next_transfer();
        let programs = Programs { total: Some(transfer.payload_octets), ..Programs::default() };
        let begins = transfer.at_ns.saturating_add(self.config.handshake);
        (FlowConfig { begins, programs, ..self.config }, self.until)
    }
}

/// The short transfers of a scenario's elastic cross traffic, by source.
pub(crate) fn transfers(scenario: &Scenario, seed: u64) -> Vec<Transfers> {
    let each = scenario.cross.iter().enumerate().filter_map(|(index, cross)| {
        let Source::Elastic(elastic) = &cross.source else { return None };
        Some(Transfers {
            stream: TransferStream::new(cross, seed, index)?,
            config: config(scenario, cross, elastic),
            until: cross.until.map_or(NEVER, nanos),
        })
    });
    each.collect()
}

/// The connections of a scenario's elastic cross traffic that are known from the beginning.
///
/// Data cross the shared hops as packets of at most 1500 octets. Acknowledgements do not cross the
/// other way: they take a fixed time, the traffic's `extra_rtt` and the propagation of the shared
/// hops once more, so they are neither queued nor lost.
pub(crate) fn elastic_flows(scenario: &Scenario, seed: u64) -> Vec<ElasticFlow> {
    let each = scenario.cross.iter().enumerate().flat_map(|(index, cross)| {
        let flows = match &cross.source {
            Source::Elastic(elastic) if !matches!(elastic.workload, Workload::Web { .. }) => {
                flows(scenario, cross, elastic, Stream::new(seed, Purpose::Source(index)))
            }
            Source::Elastic(_) | Source::Open { .. } => Vec::new(),
        };
        flows.into_iter()
    });
    each.collect()
}

fn flows(scenario: &Scenario, cross: &Cross, elastic: &Elastic, mut rng: Stream) -> Vec<ElasticFlow> {
    let config = config(scenario, cross, elastic);
    let until = cross.until.map_or(NEVER, nanos);
    let begins = |rng: &mut Stream| nanos(cross.from).saturating_add(rng.below(START_NS));
    (0..elastic.flows).map(|_| (FlowConfig { begins: begins(&mut rng), ..config }, until)).collect()
}

/// A connection of this traffic, which begins with it.
fn config(scenario: &Scenario, cross: &Cross, elastic: &Elastic) -> FlowConfig {
    let hops = scenario.hops(cross.way);
    let last = cross.last_hop.min(hops.len().saturating_sub(1));
    let shared = hops.get(cross.first_hop..=last).unwrap_or_default();
    let ip_octets = shared.iter().map(|hop| hop.mtu).fold(1500, u16::min).max(HEADER_OCTETS + 1);
    let propagation: u64 = shared.iter().map(|hop| nanos(hop.delay)).sum();
    let back = nanos(elastic.extra_rtt) + propagation;
    let window = elastic.window_octets.map_or(UNLIMITED_OCTETS, u64::from);
    FlowConfig {
        begins: nanos(cross.from),
        ip_octets,
        control: match elastic.control {
            ElasticControl::Reno => Control::Reno,
            ElasticControl::Cubic => Control::Cubic,
            ElasticControl::Bbr => Control::Bbr,
        },
        window: ReceiveWindow::Fixed(window),
        pacing: elastic.pacing,
        programs: programs(&elastic.workload),
        handshake: (back + propagation).max(1),
        route: Route::Hops { way: cross.way, first: cross.first_hop, last, back },
    }
}

fn programs(workload: &Workload) -> Programs {
    match *workload {
        Workload::Greedy | Workload::Web { .. } => Programs::default(),
        Workload::Backup { payload } => Programs { total: Some(payload.count()), ..Programs::default() },
        Workload::Video { rate, chunk } => {
            Programs { chunks: Some((rate.octets_in(chunk), nanos(chunk))), ..Programs::default() }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narrows_scenario::{Hop, PathDirection};
    use narrows_units::BitRate;

    use super::*;

    #[test]
    fn connections_as_described() {
        const MS: u64 = 1_000_000;
        let hop = |delay_ms, mtu| {
            let hop = Hop::rate(BitRate::from_mbps(10)).mtu(mtu);
            hop.delay(Duration::from_millis(delay_ms))
        };
        let elastic = Elastic {
            extra_rtt: Duration::from_millis(30),
            window_octets: Some(20_000),
            ..Elastic::greedy(50, ElasticControl::Reno)
        };
        let cross = Cross {
            from: Duration::from_secs(2),
            until: Some(Duration::from_secs(9)),
            ..Cross::elastic_on_hop(1, elastic).to_hop(2)
        };
        let hops = Scenario::new("three hops").hop(hop(1, 1500)).hop(hop(2, 9000));
        let scenario = hops.hop(hop(4, 1400)).cross(cross).validate().unwrap();
        let flows = elastic_flows(&scenario, 1);
        assert_eq!(flows.len(), 50);
        for (flow, until) in &flows {
            assert!((2000 * MS..3000 * MS).contains(&flow.begins));
            assert_eq!((*until, flow.ip_octets, flow.handshake), (9000 * MS, 1400, 42 * MS));
            assert_eq!((flow.control, flow.window), (Control::Reno, ReceiveWindow::Fixed(20_000)));
            let Route::Hops { way, first, last, back } = flow.route else {
                panic!("{flow:?}");
            };
            assert_eq!((way, first, last, back), (PathDirection::Forward, 1, 2, 36 * MS));
        }
        let mean = flows.iter().map(|(flow, _)| flow.begins / MS).sum::<u64>() / 50;
        assert!((2350..2650).contains(&mean), "{mean}");
    }
}
