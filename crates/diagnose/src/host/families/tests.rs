use super::*;

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// The reference host of the specification: clock 25 ns, software stamps of 1 µs, a spinning sender
/// of 0.3 µs, sends of 1 µs.
fn reference(stamp_error: Duration, coalescing: Option<Duration>) -> Ends {
    let facts = HostFacts {
        send_cost: us(1),
        receive_cost: ns(300),
        clock_resolution: ns(25),
        stamp_error,
        stamp_source: if stamp_error < ns(100) { StampSource::Hardware } else { StampSource::Kernel },
        min_gap: us(2),
        max_send_rate: Some(BitRate::from_gbps(20)),
        ..HostFacts::ideal()
    };
    let end = End { coalescing, departure_noise: Some(ns(300)), ..End::of(facts) };
    Ends { sender: end.clone(), receiver: end, ip_octets: 1500 }
}

#[track_caller]
fn max_mbps(ends: &Ends, family: HostFamily) -> f64 {
    let rows = ends.families(None);
    let row = rows.iter().find(|row| row.family == family).unwrap();
    assert_eq!(row.verdict, if family == HostFamily::RoundTrips { row.verdict } else { HostVerdict::Unknown });
    row.max_rate_bps.unwrap() as f64 / 1e6
}

#[track_caller]
fn is_between(value: f64, low: f64, high: f64) {
    assert!(value >= low && value <= high, "{value} is not within {low}..{high}");
}

/// The specification's table, column "software stamps, no coalescing".
#[test]
fn software_stamps() {
    let ends = reference(us(1), None);
    is_between(max_mbps(&ends, HostFamily::Pairs), 1199.9, 1200.1);
    is_between(max_mbps(&ends, HostFamily::Gaps), 1199.9, 1200.1);
    is_between(max_mbps(&ends, HostFamily::Chirps), 600.0, 1200.1);
    is_between(max_mbps(&ends, HostFamily::VariableSizes), 580.0, 600.0);
    // One send per 2 µs.
    is_between(max_mbps(&ends, HostFamily::Streams), 5999.0, 6001.0);
    is_between(max_mbps(&ends, HostFamily::Trains), 19_999.0, 20_001.0);
    is_between(max_mbps(&ends, HostFamily::Loads), 19_999.0, 20_001.0);
}

/// The same with interrupts held back for 50 µs.
#[test]
fn held_back_interrupts() {
    let ends = reference(us(1), Some(us(50)));
    for family in [HostFamily::Pairs, HostFamily::Gaps, HostFamily::Chirps] {
        is_between(max_mbps(&ends, family), 23.9, 24.1);
    }
    is_between(max_mbps(&ends, HostFamily::VariableSizes), 150.0, 250.0);
    is_between(max_mbps(&ends, HostFamily::Streams), 5999.0, 6001.0);
    is_between(max_mbps(&ends, HostFamily::Trains), 19_999.0, 20_001.0);
    // 10 Gbit/s, a tenth: 417 packets per car, 625 KB.
    let rows = ends.families(Some(BitRate::from_gbps(10)));
    let trains = rows.iter().find(|row| row.family == HostFamily::Trains).unwrap();
    assert_eq!(trains.sub_train_packets, Some(417));
    assert_eq!(trains.verdict, HostVerdict::Ok);
    let pairs = rows.iter().find(|row| row.family == HostFamily::Pairs).unwrap();
    assert_eq!(pairs.verdict, HostVerdict::Unusable);
    assert!(pairs.reason.contains("held back for"), "{}", pairs.reason);
}

/// The same with stamps of the card, which coalescing does not touch.
#[test]
fn stamps_of_the_card() {
    let mut ends = reference(ns(10), Some(us(50)));
    // The clock of the program resolves 25 ns; the card's own stamps 10.
    ends.receiver.facts.clock_resolution = ns(10);
    for end in [&mut ends.sender, &mut ends.receiver] {
        end.facts.max_send_rate = Some(BitRate::from_gbps(200));
        end.facts.receive_cost = ns(60);
    }
    is_between(max_mbps(&ends, HostFamily::Pairs), 119_000.0, 121_000.0);
    is_between(max_mbps(&ends, HostFamily::Chirps), 3990.0, 4010.0);
}

/// Ok up to five sixths of what is possible, degraded up to six fifths, unusable above.
#[test]
fn verdicts() {
    let ends = reference(us(1), None);
    for (mbps, verdict) in [
        (1000, HostVerdict::Ok),
        (1001, HostVerdict::Degraded),
        (1440, HostVerdict::Degraded),
        (1441, HostVerdict::Unusable),
    ] {
        let rows = ends.families(Some(BitRate::from_mbps(mbps)));
        assert_eq!(rows[0].verdict, verdict, "{mbps} Mbit/s");
        assert!((rows[0].margin.unwrap() - 1200.0 / mbps as f64).abs() < 1e-6);
    }
    assert_eq!(ends.are_the_bottleneck(BitRate::from_gbps(10)), Some(false));
    assert_eq!(ends.are_the_bottleneck(BitRate::from_gbps(17)), Some(true));
    let rows = ends.families(Some(BitRate::from_gbps(3)));
    // Trains and loads go equally high: the frugal one is named.
    assert_eq!(usable(&rows), Some((HostFamily::Trains, BitRate::from_gbps(20))));
}

#[test]
fn a_card_without_a_wire_is_never_fine_for_spacings() {
    let mut ends = reference(us(1), None);
    ends.receiver.facts.virtual_interface = true;
    let rows = ends.families(Some(BitRate::from_mbps(10)));
    for row in &rows {
        let spaced = matches!(row.family, HostFamily::Pairs | HostFamily::Gaps | HostFamily::Chirps);
        assert_eq!(row.verdict == HostVerdict::Degraded, spaced, "{row:?}");
        assert_eq!(row.reason.contains("interface is virtual"), spaced, "{row:?}");
    }
    ends.receiver.facts.stamp_source = StampSource::Hardware;
    assert!(ends.families(Some(BitRate::from_mbps(10))).iter().all(|row| row.verdict == HostVerdict::Ok));
}

#[test]
fn the_slower_host_binds() {
    let mut ends = reference(us(1), None);
    ends.receiver.ceiling = Some(BitRate::from_gbps(2));
    let (rate, why) = ends.host_rate().unwrap();
    assert_eq!((rate, why), (BitRate::from_gbps(2), "the receiver's ceiling"));
    // A stamp taken by the program costs two calls more.
    ends.receiver.facts.stamp_source = StampSource::User;
    ends.receiver.facts.receive_cost = us(3);
    let rows = ends.families(None);
    assert!(rows[0].reason.contains("reading and stamping"), "{}", rows[0].reason);
    is_between(rows[0].max_rate_bps.unwrap() as f64 / 1e6, 199.0, 201.0);
}

/// Hosts without any cost, and hosts whose every cost is absurd, have rows all the same.
#[test]
fn odd_hosts_end() {
    let ideal = End::of(HostFacts::ideal());
    let never = End::of(HostFacts {
        send_cost: Duration::MAX / 4,
        receive_cost: Duration::MAX / 4,
        clock_resolution: Duration::MAX / 4,
        stamp_error: Duration::MAX / 4,
        stamp_source: StampSource::User,
        min_gap: Duration::MAX / 4,
        max_send_rate: Some(BitRate::from_bps(0)),
        ..HostFacts::ideal()
    });
    for (sender, receiver) in
        [(ideal.clone(), never.clone()), (never.clone(), ideal.clone()), (ideal.clone(), ideal), (never.clone(), never)]
    {
        for ip_octets in [0, 20, 1500, u16::MAX] {
            let ends = Ends { sender: sender.clone(), receiver: receiver.clone(), ip_octets };
            for rate in [None, Some(BitRate::from_bps(0)), Some(BitRate::from_bps(u64::MAX))] {
                assert_eq!(ends.families(rate).len(), 8);
            }
        }
    }
}

/// Jumbo frames space packets wider, but what a packet of 9000 octets costs was not measured.
#[test]
fn long_packets_widen_spacings_alone() {
    let mut ends = reference(us(1), None);
    ends.ip_octets = 9000;
    ends.sender.facts.max_send_rate = None;
    is_between(max_mbps(&ends, HostFamily::Pairs), 7199.0, 7201.0);
    // One send per microsecond, of 1500 octets.
    is_between(max_mbps(&ends, HostFamily::Loads), 11_999.0, 12_001.0);
    is_between(max_mbps(&ends, HostFamily::Streams), 5999.0, 6001.0);
}
