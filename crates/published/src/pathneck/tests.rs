//! Trains and bounds on a path that answers at once; whole runs are `scenarios/pathneck-*.toml`.

use super::*;
use narrows_probe::contract::{Event, Step};
use narrows_probe::outcome::{BoundKind, Outcome, Reason};
use narrows_probe::probes::{Arrival, Fate, HopReply, HopReplyKind, PacingCheck, PeerKind, Probe, Train, TrainReport};
use narrows_probe::registry::Method;
use narrows_probe::registry::RawParams;
use narrows_probe::{Estimate, PathFacts};
use narrows_units::Stamp;

/// A fluid path of these rates (Mbit/s of the wire, what is free on each), routers that answer at
/// once; `silent` does not.
fn drive(free: &[f64], params: &[(&str, &str)], sent_ns: i64, silent: Option<u8>) -> Outcome {
    let raw = params.iter().copied().collect();
    let mut run = Pathneck.begin(&raw).unwrap();
    let mut now = Stamp::from_nanos(0);
    let mut step = run.step(now, Event::Started(PathFacts::ideal(1500, Duration::from_millis(1))));
    loop {
        step = match step {
            Step::Wait { until } => {
                now = until;
                run.step(now, Event::TimerFired)
            }
            Step::Send(Probe::Train(train)) => {
                let report = forwarded(&train, free, sent_ns, silent);
                now = now + Duration::from_millis(50);
                run.step(now, Event::Train(report))
            }
            Step::Send(other) => panic!("{other:?}"),
            Step::Done(outcome) => return outcome,
        };
    }
}

/// Store and forward, packet by packet, each link at its rate.
fn forwarded(train: &Train, free: &[f64], sent_ns: i64, silent: Option<u8>) -> TrainReport {
    let count = i64::try_from(train.packets.len()).unwrap();
    let departed = |seq: i64| sent_ns * seq / (count - 1);
    let mut at: Vec<i64> = (0..count).map(departed).collect();
    let mut fates = vec![Fate::Lost; train.packets.len()];
    for (hop, rate) in (1u8..).zip(free) {
        let mut idle = 0;
        for (index, plan) in train.packets.iter().enumerate() {
            let limit = plan.hop_limit.map_or(u8::MAX, Into::into);
            if limit < hop {
                continue;
            }
            let wire = f64::from(Framing::ETHERNET.wire_octets(plan.ip_octets.into()));
            #[expect(clippy::cast_possible_truncation, reason = "nanoseconds of one packet")]
            let time = (wire * 8e3 / rate).round() as i64;
            idle = at[index].max(idle) + time;
            at[index] = idle;
            let last = usize::from(hop) == free.len();
            if last {
                fates[index] = Fate::Received(Stamp::from_nanos(at[index] + 77));
            } else if limit == hop && silent != Some(hop) {
                fates[index] = Fate::Answered(HopReply {
                    from: std::net::Ipv4Addr::new(10, 0, 0, hop).into(),
                    returned: Stamp::from_nanos(at[index] + 500_000),
                    reply_ip_octets: 88,
                    kind: HopReplyKind::TimeExceeded,
                });
            }
        }
    }
    let rows = (0u32..).zip(&train.packets).zip(fates).map(|((seq, plan), fate)| Arrival {
        seq,
        departed: Stamp::from_nanos(departed(seq.into())),
        ip_octets: plan.ip_octets,
        fate,
    });
    TrainReport {
        id: train.id,
        arrivals: rows.collect(),
        reordered: 0,
        duplicates: 0,
        local_drops: 0,
        departed_by: narrows_probe::StampSource::Simulated,
        arrived_by: narrows_probe::StampSource::Simulated,
        pacing: PacingCheck::Kept,
    }
}

fn hops_of(estimate: &Estimate, metric: Metric) -> Vec<(u16, BoundKind, f64)> {
    let of_hop = |also: &Estimate| Some((also.hop()?, also.verdict(), also.in_unit().value as f64 / 1e6));
    let own = estimate.also.iter().filter(|also| also.metric == metric);
    own.filter_map(of_hop).collect()
}

#[test]
fn a_train_has_heads_a_load_and_tails_of_33_6_kb() {
    let mut run = Pathneck.begin(&RawParams::new()).unwrap();
    let facts = PathFacts::ideal(1500, Duration::from_millis(1));
    let Step::Send(Probe::Train(train)) = run.step(Stamp::from_nanos(0), Event::Started(facts)) else {
        panic!("no train")
    };
    assert_eq!((train.packets.len(), train.peer_kind), (120, PeerKind::Receiver));
    assert_eq!(train.ip_octets(), 33_600);
    let limits: Vec<u8> = train.packets.iter().map(|plan| plan.hop_limit.map_or(0, Into::into)).collect();
    assert_eq!(limits[..3], [1, 2, 3]);
    assert_eq!(limits[29..31], [30, 0]);
    assert_eq!(limits[89..92], [0, 30, 29]);
    assert_eq!(limits.last(), Some(&1));
}

#[test]
fn the_choke_points_are_those_of_the_path_and_the_bounds_hold() {
    let outcome = drive(&[100.0, 100.0, 10.0, 100.0, 5.0], &[], 0, None);
    let estimate = outcome.estimate().unwrap();
    assert_eq!(estimate.verdict(), BoundKind::UpperBound);
    let mbps = |free: f64| free * 1500.0 / 1538.0;
    assert!((estimate.in_unit().value as f64 / 1e6 / mbps(5.0) - 1.0).abs() < 0.01, "{}", estimate.in_unit().value);
    let available = hops_of(estimate, Metric::AvailableIpCapacity);
    let truth = [
        (1, BoundKind::UpperBound, 100.0),
        (2, BoundKind::LowerBound, 100.0),
        (3, BoundKind::UpperBound, 10.0),
        (4, BoundKind::LowerBound, 10.0),
        (5, BoundKind::UpperBound, 5.0),
    ];
    assert_eq!(available.len(), 5);
    for (found, (hop, verdict, free)) in available.iter().zip(truth) {
        assert_eq!((found.0, found.1), (hop, verdict));
        // Small packets wait behind large ones at every hop: a little more each.
        assert!((0.975..1.005).contains(&(found.2 / mbps(free))), "{found:?} for {free}");
    }
    assert_eq!(hops_of(estimate, Metric::IpCapacity).len(), 5);
}

/// The tool counts 60 x 500 octets and calls 8.1 Mbit/s an upper bound of 9.75.
#[test]
fn the_tools_upper_bounds_are_none() {
    let outcome = drive(&[10.0, 10.0, 10.0, 10.0], &[("preset", "tool")], 0, None);
    let value = outcome.estimate().unwrap().in_unit().value as f64 / 1e6;
    assert!((7.0..8.3).contains(&value), "{value}");
    let ours = drive(&[10.0, 10.0, 10.0, 10.0], &[], 0, None);
    assert!((ours.estimate().unwrap().in_unit().value as f64 / 1e6 - 9.753).abs() < 0.02);
}

#[test]
fn behind_a_slow_sender_there_is_a_lower_bound_and_silent_hops_are_left_out() {
    // 42 kB of the wire in 40 ms: 8.3 Mbit/s.
    let outcome = drive(&[100.0; 4], &[], 40_000_000, Some(2));
    let estimate = outcome.estimate().unwrap();
    assert_eq!(estimate.verdict(), BoundKind::LowerBound);
    assert!(estimate.in_unit().value < 97_000_000, "{}", estimate.in_unit().value);
    let hops: Vec<u16> = hops_of(estimate, Metric::IpCapacity).iter().map(|hop| hop.0).collect();
    assert_eq!(hops, [1, 3, 4]);
    let behind = drive(&[100.0, 100.0, 10.0, 10.0], &[], 0, Some(2));
    let first = hops_of(behind.estimate().unwrap(), Metric::AvailableIpCapacity);
    assert!(first.contains(&(3, BoundKind::UpperBound, first[1].2)), "{first:?}");
}

#[test]
fn four_runs_are_too_few() {
    let mut run = Pathneck.begin(&RawParams::new()).unwrap();
    let now = Stamp::from_nanos(0);
    let mut step = run.step(now, Event::Started(PathFacts::ideal(1500, Duration::from_millis(1))));
    let mut trains = 0;
    let outcome = loop {
        step = match step {
            Step::Send(Probe::Train(_)) if trains == 4 => run.step(now, Event::Stop(Reason::TimeSpent)),
            Step::Send(Probe::Train(train)) => {
                trains += 1;
                run.step(now, Event::Train(forwarded(&train, &[10.0, 10.0], 0, None)))
            }
            Step::Done(outcome) => break outcome,
            _ => run.step(now, Event::TimerFired),
        };
    };
    assert!(outcome.estimate().is_none());
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    for (name, value) in [
        ("hops", "1"),
        ("load", "5"),
        ("octets", "50"),
        ("small", "20"),
        ("runs", "4"),
        ("step", "0 s"),
        ("spacing", "1 h"),
        ("preset", "x"),
        ("color", "red"),
    ] {
        let raw = [(name, value)].into_iter().collect();
        assert!(Pathneck.begin(&raw).is_err(), "{name} = {value}");
    }
}
