//! What a scenario says that a metric's value should be.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::Duration;

use narrows_probe::{Estimate, Finding};
use narrows_scenario::{Arrivals, Crossed, Hop, Loss, PathDirection, Scenario, Source, Truth};
use narrows_units::{BitRate, Framing, Layer, Metric};

/// Loss that `udp` accepts, as the metric's definition has it.
const UDP_LOSS: f64 = 0.01;

/// An acknowledgement with timestamps, IPv4.
const ACK_OCTETS: u16 = 52;

/// The packets whose round trip is the truth.
const ECHO_OCTETS: u16 = 64;
/// Share of what is available that counts as filled, as `streams` has it.
const FILLED: f64 = 0.95;

/// The truth of `metric` over the scenario's time `from..to`, at the layer and packet size of
/// `estimate` where there is one; `None` where the scenario derives none.
pub fn of(
    scenario: &Scenario,
    way: PathDirection,
    metric: Metric,
    estimate: Option<&Estimate>,
    span: (Duration, Duration),
) -> Option<u64> {
    beside(scenario, way, metric, estimate, span, None)
}

/// The same beside what really crossed each hop in that time, where somebody counted it.
pub(crate) fn beside(
    scenario: &Scenario,
    way: PathDirection,
    metric: Metric,
    estimate: Option<&Estimate>,
    span: (Duration, Duration),
    crossed: Option<&[Crossed]>,
) -> Option<u64> {
    let truth = over(scenario, way, span, crossed);
    let mtu = path_mtu(scenario);
    let rate = |rate: BitRate| at_layer(rate, estimate.and_then(|estimate| estimate.layer), mtu).map(BitRate::bps);
    match metric {
        Metric::IpCapacity => rate(truth.capacity(mtu)),
        Metric::ReverseIpCapacity => {
            let back = scenario.truth(way.opposite()).over(span.0, span.1);
            rate(back.capacity(mtu))
        }
        Metric::PeakRate => rate(truth.peak_rate(mtu)),
        Metric::CommittedBurstOctets => Some(truth.committed_burst(mtu)?.1),
        Metric::AvailableIpCapacity => rate(truth.available(mtu)?),
        Metric::CrossTraffic => rate(truth.cross_traffic(mtu)?),
        Metric::TcpAchievableSingle => Some(one_stream(scenario, way, &truth, mtu)?.bps()),
        Metric::TcpAchievableParallel => Some(available_payload(&truth, mtu)?.bps()),
        Metric::TcpStreamsToFill => {
            let each = one_stream(scenario, way, &truth, mtu)?.bps().max(1);
            let filled = available_payload(&truth, mtu)?.scaled(FILLED)?;
            Some(filled.bps().div_ceil(each))
        }
        Metric::TcpWindowOctets => Some(truth.available(mtu)?.octets_in(truth.base_rtt(mtu, ACK_OCTETS))),
        Metric::UdpAchievable => rate(truth.udp_achievable(mtu, UDP_LOSS)?),
        Metric::MaximumBurstOctets => burst(scenario, way, &truth, mtu, estimate),
        Metric::RoundTripTime => u64::try_from(truth.base_rtt(ECHO_OCTETS, ECHO_OCTETS).as_nanos()).ok(),
        Metric::PathMtu => Some(u64::from(mtu)),
        _ => None,
    }
}

/// The truth of one way over a time, beside what was counted in it, if anything was.
pub(crate) fn over<'a>(
    scenario: &'a Scenario,
    way: PathDirection,
    span: (Duration, Duration),
    crossed: Option<&'a [Crossed]>,
) -> Truth<'a> {
    let truth = scenario.truth(way).over(span.0, span.1);
    crossed.map_or(truth, |crossed| truth.beside(crossed))
}

/// Whether a run's truth is what really happened in it: of what is free, beside traffic that is not
/// the same at all times.
pub(crate) fn is_realised(scenario: &Scenario, way: PathDirection, metric: Metric) -> bool {
    let even = |source: &Source| match source {
        Source::Open { arrivals, sizes, .. } => *arrivals == Arrivals::Cbr && sizes.shares().count() == 1,
        Source::Elastic(_) => false,
    };
    let varies = scenario.cross.iter().any(|cross| cross.way == way && !even(&cross.source));
    matches!(metric, Metric::AvailableIpCapacity | Metric::CrossTraffic) && varies
}

fn available_payload(truth: &Truth<'_>, mtu: u16) -> Option<BitRate> {
    at_layer(truth.available(mtu)?, Some(Layer::TcpPayload), mtu)
}

/// What open-loop traffic leaves, or a receive window per round trip if that is less. Paths that
/// cut a stream shorter by loss have no truth of ours.
fn one_stream(scenario: &Scenario, way: PathDirection, truth: &Truth<'_>, mtu: u16) -> Option<BitRate> {
    let receiver = match way {
        PathDirection::Forward => &scenario.receiver,
        PathDirection::Reverse => &scenario.sender,
    };
    let cut = |hop: &Hop| hop.loss != Loss::None || hop.reorder.is_some();
    if scenario.hops(way).iter().any(cut) {
        return None;
    }
    let window = u64::from(receiver.tcp_receive_octets);
    let by_window = BitRate::over(window, truth.base_rtt(mtu, ACK_OCTETS));
    let available = available_payload(truth, mtu)?;
    Some(by_window.map_or(available, |rate| rate.min(available)))
}

/// Largest packet that crosses both ways: a probe that is echoed needs both.
pub fn path_mtu(scenario: &Scenario) -> u16 {
    let there = scenario.truth(PathDirection::Forward).path_mtu();
    there.min(scenario.truth(PathDirection::Reverse).path_mtu())
}

/// Capacity of the narrow link at the IP layer: what errors are measured by.
pub fn scale(scenario: &Scenario, way: PathDirection) -> f64 {
    scenario.truth(way).capacity(path_mtu(scenario)).as_f64()
}

fn at_layer(rate: BitRate, layer: Option<Layer>, mtu: u16) -> Option<BitRate> {
    let layer = layer.unwrap_or(Layer::Ip);
    Framing::BARE.convert(rate, Layer::Ip, layer, u32::from(mtu), false)
}

/// The recursion knows the idle path only: with cross traffic, or drops by chance, the limit is
/// random. The truth is then its median, which the simulator tells.
fn burst(
    scenario: &Scenario,
    way: PathDirection,
    truth: &Truth<'_>,
    mtu: u16,
    estimate: Option<&Estimate>,
) -> Option<u64> {
    let found = estimate.and_then(|estimate| match &estimate.details.finding {
        Finding::Burst(found) => Some(found),
        _ => None,
    });
    let size = found.map_or(mtu, |found| found.ip_octets);
    let shared = scenario.cross.iter().any(|cross| cross.way == way);
    if shared || scenario.hops(way).iter().any(|hop| hop.early_drop.is_some()) {
        return median_burst(scenario, way, size);
    }
    let rate = found.and_then(|found| found.rate_bps);
    truth.burst(size, rate).map(|burst| burst.ip_octets)
}

/// [`narrows_sim::burst_median`], asked once for each path: it takes as long as a run.
fn median_burst(scenario: &Scenario, way: PathDirection, ip_octets: u16) -> Option<u64> {
    static KNOWN: Mutex<BTreeMap<u64, Option<u64>>> = Mutex::new(BTreeMap::new());
    let mut hasher = DefaultHasher::new();
    (format!("{scenario:?}"), way, ip_octets).hash(&mut hasher);
    let key = hasher.finish();
    let known = KNOWN.lock().ok().and_then(|known| known.get(&key).copied());
    known.unwrap_or_else(|| {
        let found = narrows_sim::burst_median(scenario, way, ip_octets);
        if let Ok(mut known) = KNOWN.lock() {
            known.insert(key, found);
        }
        found
    })
}
