//! Reports of chirps for tests.

use std::convert::Infallible;
use std::time::Duration;

use narrows_units::{BitRate, Stamp};

use super::points::Reader;
use super::{ChirpReading, Flavour, ladder};
use narrows_probe::outcome::{Estimate, Outcome};
use narrows_probe::probes::{Arrival, Fate, PacingCheck, PeerKind, Train, TrainId, TrainReport};
use narrows_probe::registry::{Method, RawParams};
use narrows_probe::{Budget, StampSource, World, drive};

pub(crate) fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

/// What no run of a test comes near to.
pub(crate) fn budget() -> Budget {
    Budget { octets: 500_000_000, time: Duration::from_secs(600), ..Budget::default() }
}

pub(crate) fn measure<W: World<Fault = Infallible>>(
    method: &dyn Method,
    world: &mut W,
    params: &[(&str, &str)],
) -> Outcome {
    let raw: RawParams = params.iter().copied().collect();
    let mut machine = method.begin(&raw).unwrap();
    let Ok(measured) = drive(world, machine.as_mut(), budget());
    measured.outcome
}

pub(crate) fn estimate(outcome: &Outcome) -> &Estimate {
    outcome.estimate().unwrap_or_else(|| panic!("{outcome:?}"))
}

/// What a chirp of these rates says whose delays are these, ns.
pub(crate) fn found<F: Flavour>(flavour: &F, tool: bool, rates: &[f64], delays: &[i64]) -> ChirpReading {
    let asked = train(rates);
    let report = chirp_report(&asked, |k| delays[usize::try_from(k).unwrap()]);
    let reader = Reader { short_ns: 0.0, tick_ns: 0.0, noise_ns: 0.0, loss: 0.1, tool, group: 1 };
    flavour.find(&reader.read(&asked, &report).unwrap()).unwrap()
}

/// A train of full packets at these rates.
pub(crate) fn train(rates: &[f64]) -> Train {
    Train { id: TrainId(1), packets: ladder::plan(rates, 1, 1500, 0.0, false), peer_kind: PeerKind::Receiver }
}

/// It left as planned, and packet `k` came `delay(k)` ns late, on a clock far behind.
pub(crate) fn chirp_report(train: &Train, delay: impl Fn(i64) -> i64) -> TrainReport {
    let mut at = 0i64;
    let rows = (0u32..).zip(&train.packets).map(|(seq, packet)| {
        at += i64::try_from(packet.gap.as_nanos()).unwrap();
        Arrival {
            seq,
            departed: Stamp::from_nanos(at),
            ip_octets: packet.ip_octets,
            fate: Fate::Received(Stamp::from_nanos(at - 7_000_000_000 + delay(i64::from(seq)))),
        }
    });
    TrainReport {
        id: train.id,
        arrivals: rows.collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: StampSource::Simulated,
        arrived_by: StampSource::Simulated,
        pacing: PacingCheck::Kept,
    }
}

/// Delays of a fluid path, ns: one queue in front of a link of `capacity`, of which `cross` is
/// taken.
pub(crate) fn fluid(train: &Train, capacity: f64, cross: f64) -> Vec<i64> {
    let mut queue = 0.0f64;
    let mut delays = vec![0];
    for packet in &train.packets[1..] {
        let gap = packet.gap.as_secs_f64() * 1e9;
        let service = f64::from(packet.ip_octets) * 8e9 / capacity;
        queue = (queue + service + cross / capacity * gap - gap).max(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "test times are short")]
        delays.push(queue.round() as i64);
    }
    delays
}
