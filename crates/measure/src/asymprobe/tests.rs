use std::convert::Infallible;
use std::time::Duration;

use narrows_units::{BitRate, Framing, Metric, Receiver, Sender, Stamp};

use super::*;
use narrows_probe::outcome::{Caveat, Diagnostic, Estimate, Reason};
use narrows_probe::probes::{Arrival, Fate, PacingCheck, PeerKind, Probe, TrainReport};
use narrows_probe::{BoundKind, Event, PathFacts, Refusal, StampSource, World, drive};

/// An idle path of some links there and some back, worked out packet by packet; what of it is asked
/// for is a peer that answers in packets of the size it is told.
struct Loop {
    outbound: Vec<BitRate>,
    returning: Vec<BitRate>,
    facts: PathFacts,
    sizes: bool,
    /// The peer says when packets came.
    turns: bool,
    step_ns: i64,
    now: i64,
}

impl Loop {
    fn new(outbound: &[u64], returning: &[u64]) -> Self {
        let rates = |kbps: &[u64]| kbps.iter().map(|rate| BitRate::from_bps(*rate * 1000)).collect();
        Self {
            outbound: rates(outbound),
            returning: rates(returning),
            facts: PathFacts::ideal(1500, Duration::from_millis(10)),
            sizes: true,
            turns: false,
            step_ns: 1,
            now: 0,
        }
    }

    /// Last bits of packets behind these links, for packets whose last bits are there at `at`.
    fn cross(links: &[BitRate], mut at: Vec<f64>, octets: u16) -> Vec<f64> {
        let wire = f64::from(Framing::ETHERNET.wire_octets(u32::from(octets)));
        for rate in links {
            let each = 8.0 * wire / rate.as_f64() * 1e9;
            let mut free = 0.0f64;
            for time in &mut at {
                free = free.max(*time) + each;
                *time = free;
            }
        }
        at
    }
}

impl World for Loop {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        Stamp::from_nanos(self.now)
    }

    fn facts(&self) -> PathFacts {
        self.facts.clone()
    }

    #[expect(clippy::cast_possible_truncation, reason = "whole nanoseconds of a short test")]
    fn send(&mut self, probe: Probe) -> Result<Event, Infallible> {
        let Probe::Train(train) = probe else { panic!("it asks for trains") };
        let PeerKind::EchoSized(reply) = train.peer_kind else { panic!("of sized echoes") };
        if !self.sizes {
            return Ok(Event::Refused(Refusal::NotOffered));
        }
        let sent = vec![self.now as f64; train.packets.len()];
        let outbound = Self::cross(&self.outbound, sent, train.packets[0].ip_octets);
        let returning = Self::cross(&self.returning, outbound.clone(), reply);
        let step = self.step_ns;
        let rows = (0..).zip(outbound.iter().zip(&returning)).map(|(seq, (outbound, returning))| Arrival {
            seq,
            departed: Stamp::from_nanos(self.now),
            ip_octets: train.packets[0].ip_octets,
            fate: Fate::Echoed {
                returned: Stamp::from_nanos((*returning as i64 + 10_000_000) / step * step),
                turned: self.turns.then(|| Stamp::<Receiver>::from_nanos(*outbound as i64 + 77_000_000)),
            },
        });
        let arrivals = rows.collect();
        self.now = *returning.last().unwrap() as i64 + 10_000_000;
        Ok(Event::Train(TrainReport {
            id: train.id,
            arrivals,
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Simulated,
            arrived_by: StampSource::Simulated,
            pacing: PacingCheck::Kept,
        }))
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        self.now = until.nanos();
        Ok(())
    }
}

fn measure(path: &mut Loop, pairs: &[(&str, &str)]) -> Outcome {
    let raw: RawParams = pairs.iter().copied().collect();
    let mut method = AsymProbe.begin(&raw).unwrap();
    let Ok(measured) = drive(path, method.as_mut(), AsymProbe.imposes(&raw).budget());
    measured.outcome
}

fn both(outcome: &Outcome) -> (&Estimate, &Estimate) {
    let forward = outcome.estimate().unwrap_or_else(|| panic!("{outcome:?}"));
    assert_eq!(forward.metric, Metric::IpCapacity);
    assert_eq!(forward.also[0].metric, Metric::ReverseIpCapacity);
    (forward, &forward.also[0])
}

fn off(estimate: &Estimate, kbps: u64) -> f64 {
    estimate.in_unit().value as f64 / (kbps as f64 * 1e3 * 1500.0 / 1538.0) - 1.0
}

/// Directions that differ by less than 1538/102: both are exact, and say so each for itself.
#[test]
fn both_directions_within_the_sizes_are_exact() {
    for (outbound, returning) in [(10_000, 1000), (1000, 10_000), (5000, 5000), (100_000, 8000)] {
        let outcome = measure(&mut Loop::new(&[1_000_000, outbound], &[returning, 1_000_000]), &[]);
        let (forward, reverse) = both(&outcome);
        assert_eq!(
            (forward.verdict(), reverse.verdict()),
            (BoundKind::Estimated, BoundKind::Estimated),
            "{outbound}/{returning}"
        );
        assert!(off(forward, outbound).abs() < 0.001, "{outbound}/{returning}: {}", off(forward, outbound));
        assert!(off(reverse, returning).abs() < 0.001, "{outbound}/{returning}: {}", off(reverse, returning));
        assert!(forward.in_unit().low <= forward.in_unit().value && forward.in_unit().value <= forward.in_unit().high);
        assert_eq!(forward.diagnostics.get("exact"), Some(&Diagnostic::Flag(true)));
    }
}

/// 100 against 2 Mbit/s: `T = 8 W(64) / C2` whatever the long packet's size, so that the forward
/// direction is bounded, and the reverse direction exact.
#[test]
fn beyond_the_sizes_one_is_exact_and_one_a_bound() {
    let plain = measure(&mut Loop::new(&[100_000], &[2000]), &[("trio", "false")]);
    let (forward, reverse) = both(&plain);
    assert_eq!((forward.verdict(), reverse.verdict()), (BoundKind::LowerBound, BoundKind::Estimated));
    assert!(forward.caveats.contains(&Caveat::AsymmetricLimit));
    assert!(off(reverse, 2000).abs() < 0.001);
    // 2 Mbit/s times the ratio of the sizes.
    let bound = 2e6 * 1538.0 / 102.0 * 1500.0 / 1538.0;
    assert!((forward.in_unit().value as f64 / bound - 1.0).abs() < 0.01, "{}", forward.in_unit().value);
    let other = measure(&mut Loop::new(&[2000], &[100_000]), &[("trio", "false")]);
    let (forward, reverse) = both(&other);
    assert_eq!((forward.verdict(), reverse.verdict()), (BoundKind::Estimated, BoundKind::LowerBound));
}

/// Least round trips have no such limit: of one hop they tell the capacity, of several less than
/// it, never more.
#[test]
fn least_round_trips_raise_the_bound_and_never_above_the_truth() {
    let outcome = measure(&mut Loop::new(&[100_000], &[1000]), &[]);
    let (forward, _) = both(&outcome);
    assert_eq!(forward.verdict(), BoundKind::LowerBound);
    assert_eq!(forward.diagnostics.get("by_round_trips"), Some(&Diagnostic::Flag(true)));
    assert!((-0.01..=0.0).contains(&off(forward, 100_000)), "{}", off(forward, 100_000));
    let outcome = measure(&mut Loop::new(&[200_000, 100_000, 200_000], &[1000]), &[]);
    let (forward, _) = both(&outcome);
    // 1/100 against 1/200 + 1/100 + 1/200.
    assert!((off(forward, 100_000) + 0.5).abs() < 0.01, "{}", off(forward, 100_000));
}

#[test]
fn the_fourth_round_trip_is_the_sum_of_the_others() {
    let outcome = measure(&mut Loop::new(&[20_000, 10_000], &[4000, 8000]), &[]);
    let (forward, _) = both(&outcome);
    let number = |name: &str| forward.diagnostics.get(name).and_then(Diagnostic::as_f64).unwrap();
    let bits = 8.0 * (1538.0 - 102.0);
    assert!((number("trio_forward_ns") / (bits * (1e3 / 20.0 + 1e3 / 10.0)) - 1.0).abs() < 1e-4);
    assert!((number("trio_reverse_ns") / (bits * (1e3 / 4.0 + 1e3 / 8.0)) - 1.0).abs() < 1e-4);
    assert!(number("trio_residual_ns").abs() < 10.0);
    assert_eq!(forward.diagnostics.get("trio_valid"), Some(&Diagnostic::Flag(true)));
}

#[test]
fn stamps_too_coarse_for_a_packet_are_said_so() {
    let mut path = Loop::new(&[1_000_000], &[1_000_000]);
    path.step_ns = 5000;
    path.facts.sender.clock_resolution = Duration::from_micros(5);
    let outcome = measure(&mut path, &[]);
    let Outcome::Inconclusive { reason, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(matches!(reason, Reason::StampsTooCoarse | Reason::ReceiveBatching), "{reason}");
}

#[test]
fn a_peer_kind_with_one_size_is_not_enough() {
    let mut path = Loop::new(&[10_000], &[10_000]);
    path.sizes = false;
    let outcome = measure(&mut path, &[]);
    assert!(matches!(outcome, Outcome::Inconclusive { reason: Reason::NotOffered { .. }, .. }));
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, value) in
        [("large", "100"), ("small", "10"), ("third", "1"), ("moved", "0"), ("clean", "0"), ("via", "x")]
    {
        let raw: RawParams = [(name, value)].into_iter().collect();
        assert!(AsymProbe.begin(&raw).is_err(), "{name} = {value}");
    }
}
