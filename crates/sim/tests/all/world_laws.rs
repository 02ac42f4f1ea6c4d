//! Laws that hold of the world over any path and between any hosts.

use std::num::NonZeroU8;
use std::time::Duration;

use narrows_probe::probes::{Fate, Load, PacketPlan, PeerKind, Then, Train, TrainId, TrainReport};
use narrows_probe::{Event, Probe, World};
use narrows_scenario::{
    Arrivals, ClockModel, Coalescing, Cross, Hop, Host, Jitter, Loss, PathDirection, Queue, Reorder, Router, Scenario,
    SizeMix, Stalls,
};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Delta};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn config() -> ProptestConfig {
    ProptestConfig { cases: 150, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

fn micros(most: u64) -> impl Strategy<Value = Duration> {
    (0..=most).prop_map(Duration::from_micros)
}

fn host() -> impl Strategy<Value = Host> {
    let stalls = proptest::option::of((micros(50_000), micros(3000)));
    let coalescing = proptest::option::of((micros(300), 1u32..20));
    let clock = (-1_000_000_000i64..1_000_000_000, -100.0..100.0, 1u64..2000);
    let interface = proptest::option::of(5u64..100);
    (micros(20), micros(20), micros(30), stalls, coalescing, clock, interface).prop_map(
        |(send_cost, receive_cost, pacing_jitter, stalls, coalescing, clock, interface)| Host {
            clock: ClockModel {
                offset: Delta::from_nanos(clock.0),
                skew_ppm: clock.1,
                granularity: Duration::from_nanos(clock.2),
                steps: Vec::new(),
            },
            send_cost,
            receive_cost,
            pacing_jitter,
            stalls: stalls.map(|(every, lasting)| Stalls { every: every + Duration::from_millis(1), lasting }),
            coalescing: coalescing.map(|(timer, frames)| Coalescing { timer, frames }),
            interface_rate: interface.map(BitRate::from_mbps),
            ..Host::default()
        },
    )
}

fn hop() -> impl Strategy<Value = Hop> {
    let disturbed = (0.0..0.1, micros(500), proptest::option::of((0.0..0.3, micros(800))));
    (5u64..100, micros(5000), 2u32..100, disturbed, any::<bool>(), 28u16..600).prop_map(
        |(mbps, delay, queue, (ratio, jitter, reorder), answers, icmp_max_octets)| {
            let mut hop = Hop::rate(BitRate::from_mbps(mbps))
                .delay(delay)
                .queue(Queue::Packets(queue))
                .loss(Loss::Random { ratio })
                .jitter(Jitter::Uniform(jitter))
                .router(Router { answers, icmp_max_octets, ..Router::default() });
            hop.reorder = reorder.map(|(ratio, by)| Reorder { ratio, by });
            hop
        },
    )
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let cross = proptest::option::of((1u64..5, any::<bool>()));
    (proptest::collection::vec(hop(), 1..4), host(), host(), cross).prop_map(|(hops, sender, receiver, cross)| {
        let mut scenario = Scenario::new("random").sender(sender).receiver(receiver);
        scenario.warm_up = Duration::from_millis(50);
        for hop in hops {
            scenario = scenario.hop(hop);
        }
        if let Some((mbps, back)) = cross {
            let way = if back { PathDirection::Reverse } else { PathDirection::Forward };
            let traffic = Cross::on_hop(0, Arrivals::Poisson, BitRate::from_mbps(mbps), SizeMix::imix());
            scenario = scenario.cross(traffic.way(way));
        }
        scenario.validate().expect("all values are in range")
    })
}

fn train() -> impl Strategy<Value = Train> {
    let packet = (micros(1000), 28u16..=1500, proptest::option::weighted(0.2, 1u8..5));
    let peer_kind =
        prop_oneof![Just(PeerKind::Receiver), Just(PeerKind::Echo), (28u16..=1500).prop_map(PeerKind::EchoSized)];
    (proptest::collection::vec(packet, 1..60), peer_kind).prop_map(|(packets, peer_kind)| Train {
        id: TrainId(7),
        packets: packets
            .into_iter()
            .map(|(gap, ip_octets, hop_limit)| PacketPlan {
                gap,
                ip_octets,
                hop_limit: hop_limit.and_then(NonZeroU8::new),
            })
            .collect(),
        peer_kind,
    })
}

fn way() -> impl Strategy<Value = PathDirection> {
    prop_oneof![Just(PathDirection::Forward), Just(PathDirection::Reverse)]
}

fn send_train(world: &mut SimWorld, train: &Train) -> TrainReport {
    let Ok(event) = world.send(Probe::Train(train.clone()));
    match event {
        Event::Train(report) => report,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(config())]

    /// One row per packet, in order; departures in order and no closer than the host can send; time
    /// passes; the same again from the same seed.
    #[test]
    fn rows_of_trains(scenario in scenario(), train in train(), way in way(), seed in any::<u64>()) {
        let mut world = SimWorld::new(&scenario, way, seed);
        let before = world.true_time();
        let report = send_train(&mut world, &train);
        prop_assert_eq!(report.arrivals.len(), train.packets.len());
        let host = if way == PathDirection::Forward { &scenario.sender } else { &scenario.receiver };
        // Readings of a slow or coarse clock may be that much closer.
        let slack = host.clock.granularity + host.send_cost / 1000 + Duration::from_nanos(2);
        for pair in report.arrivals.windows(2) {
            prop_assert_eq!(pair[1].seq, pair[0].seq + 1);
            prop_assert!(pair[1].departed - pair[0].departed >= Delta::from(host.send_cost) + -Delta::from(slack));
        }
        for (row, plan) in report.arrivals.iter().zip(&train.packets) {
            prop_assert_eq!(row.ip_octets, plan.ip_octets);
            let possible = match row.fate {
                Fate::Received(_) => train.peer_kind == PeerKind::Receiver,
                Fate::Echoed { returned, .. } => train.peer_kind != PeerKind::Receiver && returned > row.departed,
                Fate::Answered(reply) => plan.hop_limit.is_some() && (56..=600).contains(&reply.reply_ip_octets),
                Fate::Lost => true,
            };
            prop_assert!(possible, "{:?}", row);
        }
        prop_assert!(world.true_time() > before);
        prop_assert_eq!(send_train(&mut SimWorld::new(&scenario, way, seed), &train), report);
    }

    /// A receiver whose clock is off shows every packet that much later, and changes nothing else.
    #[test]
    fn offsets_shift_stamps_alone(scenario in scenario(), train in train(), offset in -1_000_000_000i64..1_000_000_000) {
        let mut shifted = scenario.clone();
        // Whole ticks, so that rounding stays the same.
        let tick = i64::try_from(scenario.receiver.clock.granularity.as_nanos()).unwrap();
        let offset = Delta::from_nanos(offset / tick * tick);
        shifted.receiver.clock.offset = shifted.receiver.clock.offset + offset;
        let mut report = send_train(&mut SimWorld::new(&scenario, PathDirection::Forward, 3), &train);
        for row in &mut report.arrivals {
            match &mut row.fate {
                Fate::Received(stamp) | Fate::Echoed { turned: Some(stamp), .. } => *stamp = *stamp + offset,
                Fate::Echoed { turned: None, .. } | Fate::Answered(_) | Fate::Lost => {}
            }
        }
        prop_assert_eq!(send_train(&mut SimWorld::new(&shifted, PathDirection::Forward, 3), &train), report);
    }

    /// Every packet of a finished load is counted, as received or as lost; intervals follow one
    /// another.
    #[test]
    fn counts_of_loads(scenario in scenario(), way in way(), mbps in 1u64..50, burst in 1u16..10, seed in any::<u64>()) {
        let mut world = SimWorld::new(&scenario, way, seed);
        let (mut sent, mut received, mut lost, mut reordered) = (0, 0, 0, 0);
        let mut last = None;
        for then in [Then::Continue, Then::Continue, Then::Finish] {
            let load = Load {
                rate: BitRate::from_mbps(mbps),
                ip_octets: 1000,
                burst,
                streams: 1,
                duration: Duration::from_millis(120),
                status_every: Duration::from_millis(25),
                then,
            };
            let Ok(Event::Load(report)) = world.send(Probe::Load(load)) else {
                panic!("a load is offered");
            };
            sent += report.sent_packets;
            received += report.totals().0;
            lost += report.totals().2;
            for status in &report.statuses {
                reordered += status.reordered;
                prop_assert!(last.is_none_or(|last| last == status.from), "{:?}", status);
                last = Some(status.to);
                if let Some((least, mean, most)) = status.delay_above_min {
                    prop_assert!(least <= mean && mean <= most);
                }
            }
            let most = Duration::from_millis(120) + Duration::from_millis(30);
            prop_assert!(report.sent_ip_octets <= BitRate::from_mbps(mbps).octets_in(most) + 20_000);
        }
        prop_assert!(received > 0);
        // A packet that comes late, when its interval has been reported and none is lost after it,
        // stays in the count of losses.
        prop_assert!((sent..=sent + reordered).contains(&(received + lost)));
    }
}
