use super::*;
use crate::probes::TrainId;

fn sent(host_pair: &mut ClosedFormWorld, train: Train) -> TrainReport {
    match host_pair.send(Probe::Train(train)).unwrap() {
        Event::Train(report) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_idle_path_disperses_a_train_to_its_narrow_link() {
    let hops = [100, 10, 100].map(|mbps| Hop::ethernet(BitRate::from_mbps(mbps)));
    let mut host_pair = ClosedFormWorld::new(hops.to_vec(), 1);
    let report = sent(&mut host_pair, Train::uniform(TrainId(0), 101, 1500, Duration::ZERO));
    // 1538 octets at 10 Mbit/s are 1.2304 ms.
    let stamps: Vec<i64> = report.received().map(|(_, stamp)| stamp.nanos()).collect();
    assert_eq!(stamps[100] - stamps[0], 123_040_000);
    assert!(host_pair.ip_capacity(1500).bps().abs_diff(9_752_925) <= 1);
    assert_eq!(report.lost(), 0);
}

#[test]
fn overload_against_cross_traffic_follows_the_fluid_formula() {
    // [Pathrate04]: r C / (r + x) once r + x > C; all packets alike, so IP rates serve. 20 * 9.7529
    // / 27 = 7.224.
    let mut total = 0.0;
    for seed in 0..20 {
        let hop = Hop::loaded(BitRate::from_mbps(10), Cross::poisson(BitRate::from_mbps(7)));
        let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1)), hop], seed);
        let report = sent(&mut host_pair, Train::at_rate(TrainId(0), 500, 1500, BitRate::from_mbps(20)));
        total += report.arrival_rate().unwrap().as_f64() / 20.0;
    }
    assert!((total / 7.224e6 - 1.0).abs() < 0.02, "{total}");
}

#[test]
fn a_bucket_lets_its_depth_through_and_then_its_rate() {
    let mut hop = Hop::ethernet(BitRate::from_mbps(100));
    hop.bucket = Some(Bucket { rate: BitRate::from_mbps(10), depth_octets: 10 * 1538 });
    let mut host_pair = ClosedFormWorld::new(vec![hop], 1);
    let report = sent(&mut host_pair, Train::uniform(TrainId(0), 60, 1500, Duration::ZERO));
    let at: Vec<i64> = report.received().map(|(_, stamp)| stamp.nanos()).collect();
    assert_eq!(at[5] - at[4], 123_040);
    assert_eq!(at[55] - at[54], 1_230_400);
}

#[test]
fn batches_share_a_stamp_and_faults_show() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1))], 1);
    host_pair.stamping.batch = Some(Duration::from_micros(100));
    let report = sent(&mut host_pair, Train::uniform(TrainId(0), 20, 1500, Duration::ZERO));
    let at: Vec<i64> = report.received().map(|(_, stamp)| stamp.nanos()).collect();
    // 12.304 µs apart: the first and the eight within 100 µs of it.
    assert_eq!(at.iter().filter(|stamp| **stamp == at[0]).count(), 9);
    host_pair.hops[0].loss = 1.0;
    let lossy = sent(&mut host_pair, Train::uniform(TrainId(1), 5, 1500, Duration::ZERO).echoed());
    assert_eq!(lossy.lost(), 5);
}

#[test]
fn echoes_return_after_the_round_trip_and_routers_answer_for_their_mtu() {
    let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_gbps(1)); 2], 1);
    let report = sent(&mut host_pair, Train::uniform(TrainId(0), 1, 500, Duration::ZERO).echoed());
    // Twice 538 octets at 1 Gbit/s and 4 ms.
    let (_, rtt) = report.round_trips().next().unwrap();
    assert_eq!(rtt, Duration::from_nanos(4_008_608));
    host_pair.hops[1].mtu = 400;
    let report = sent(&mut host_pair, Train::uniform(TrainId(1), 1, 500, Duration::ZERO).echoed());
    let Fate::Answered(reply) = report.arrivals[0].fate else { panic!() };
    assert_eq!(reply.kind, HopReplyKind::PacketTooBig { mtu: Some(400) });
}
