use std::time::Duration;

use proptest::prelude::*;

use super::auth::{Credentials, Users};
use super::*;

fn orders(side: &mut ClientSide, octets: &[u8]) -> Result<Vec<ClientOrder>, ClientFault> {
    side.push(octets);
    let mut all = Vec::new();
    while let Some(order) = side.order()? {
        all.push(order);
    }
    Ok(all)
}

/// What a stock server (3.12) sends behind its states.
const STOCK_RESULTS: &str = r#"{"cpu_util_total":2.5,"cpu_util_user":0.5,"cpu_util_system":2,"sender_has_retransmits":1.8446744073709552e+19,
"congestion_used":"cubic","streams":[{"id":1,"bytes":1.5e+16,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,"start_time":0,
"end_time":1.0002}]}"#;

#[test]
fn a_test_in_order_whatever_the_segments() {
    let mut octets = vec![9, 10, 1, 2, 13];
    octets.extend(frame(&STOCK_RESULTS.replace('\n', "")));
    octets.push(14);
    for step in [1, 2, 3, octets.len()] {
        let mut side = ClientSide::new();
        let mut all = Vec::new();
        for part in octets.chunks(step) {
            all.extend(orders(&mut side, part).unwrap());
        }
        assert_eq!(all.len(), 7, "{all:?}");
        assert_eq!(all[0], ClientOrder::SendParameters);
        assert_eq!(all[4], ClientOrder::SendResults);
        let ClientOrder::TakeResults(results) = &all[5] else { panic!("{all:?}") };
        assert_eq!(results.stream(1).unwrap().octets, 15_000_000_000_000_000);
        assert_eq!(results.stream(1).unwrap().retransmits, None);
        assert_eq!((results.stream(3), results.knows_retransmits), (None, None));
        assert_eq!(all[6], ClientOrder::Finish);
        assert_eq!(side.closed(), None);
    }
}

#[test]
fn refusals_are_understood() {
    let refused = |number, system| ClientFault::Refused { number: ErrorNumber(number), system };
    assert_eq!(orders(&mut ClientSide::new(), &[0xff]), Err(ClientFault::Busy));
    let mut side = ClientSide::new();
    assert_eq!(orders(&mut side, &[9, 0xfe, 0, 0, 0, 27, 0, 0, 0, 4]), Err(refused(27, 4)));
    // Older servers close behind the first number.
    let mut side = ClientSide::new();
    assert_eq!(orders(&mut side, &[9, 0xfe, 0, 0, 0, 142]), Ok(vec![ClientOrder::SendParameters]));
    assert_eq!(side.closed(), Some(refused(142, 0)));
    let mut side = ClientSide::new();
    assert_eq!(orders(&mut side, &[10]), Err(ClientFault::Unexpected { octet: 10, during: "after the greeting" }));
    assert!(matches!(ClientSide::new().closed(), Some(ClientFault::Closed { .. })));
    let mut side = ClientSide::new();
    let long = [9, 10, 1, 2, 13, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(orders(&mut side, &long), Err(ClientFault::TooLong { octets: u32::MAX }));
}

#[test]
fn a_stock_client_is_understood() {
    let text = r#"{"udp":true,"omit":1,"time":2,"num":0,"blockcount":0,"parallel":4,"bidirectional":true,"len":1448,
"bandwidth" :1e+16,"pacing_timer":1000,"client_version":"3.12","udp_counters_64bit":1}"#;
    let mut side = ServerSide::new();
    side.push(&frame(text));
    side.push(&[4]);
    let Some(ServerOrder::Parameters(parameters)) = side.order().unwrap() else { panic!("no parameters") };
    assert_eq!(parameters.transport, Transport::Udp(Counters::Bits64));
    assert_eq!((parameters.flow, parameters.all_streams()), (Flow::Both, 8));
    assert_eq!((parameters.omit_seconds, parameters.seconds, parameters.block_octets), (1, 2, 1448));
    assert_eq!(parameters.rate_bps, 10_000_000_000_000_000);
    assert_eq!(side.order(), Ok(Some(ServerOrder::End)));
    side.push(&frame(&Results::default().to_json()));
    assert!(matches!(side.order(), Ok(Some(ServerOrder::Results(_)))));
    side.push(&[16]);
    assert_eq!(side.order(), Ok(Some(ServerOrder::Done)));
    side.push(&[4]);
    assert_eq!(side.order(), Err(ServerFault::Unexpected { octet: 4 }));
}

#[test]
fn impossible_parameters_are_refused() {
    let bad = [
        "[]",
        "7",
        "{\"parallel\":0}",
        "{\"parallel\":129}",
        "{\"parallel\":\"1\"}",
        "{\"parallel\":1.5}",
        "{\"time\":-1}",
        "{\"time\":86401}",
        "{\"omit\":601}",
        "{\"udp\":true,\"len\":15}",
        "{\"udp\":true,\"len\":65508}",
        "{\"len\":1048577}",
        "{\"TOS\":256}",
        "{\"sctp\":true}",
        "{\"tcp\":true,\"udp\":true}",
        "{\"reverse\":true,\"bidirectional\":true}",
        "{\"bandwidth\":1e300}",
        "{\"congestion\":7}",
        "{\"title\":[1]}",
    ];
    for text in bad {
        assert!(Parameters::parse(text.as_bytes()).is_err(), "{text}");
    }
    assert_eq!(Parameters::parse(b"{}").unwrap().seconds, 0);
    // What must not reach the kernel is passed over.
    let odd = Parameters::parse(b"{\"congestion\":\"a/../b\"}").unwrap();
    assert_eq!(odd.congestion, None);
    let deep = "[".repeat(100_000);
    assert!(Parameters::parse(deep.as_bytes()).is_err());
    let mut side = ServerSide::new();
    side.push(&[0, 0, 0x20, 1]);
    assert_eq!(side.order(), Err(ServerFault::TooLong { octets: 8193 }));
}

#[test]
fn parameters_read_back() {
    let asked = Parameters {
        transport: Transport::Udp(Counters::Bits32),
        flow: Flow::Reverse,
        streams: 3,
        octets: 12_345,
        block_octets: 1_000,
        rate_bps: 5_000_000,
        window_octets: Some(65_536),
        no_delay: true,
        tos: 184,
        congestion: Some("bbr".to_owned()),
        server_output: true,
        auth_token: Some("abc=".to_owned()),
        ..Parameters::default()
    };
    assert_eq!(Parameters::parse(asked.to_json().as_bytes()), Ok(asked));
}

#[test]
fn results_read_back() {
    let results = Results {
        cpu: Cpu { total: 12.5, user: 2.5, system: 10.0 },
        knows_retransmits: Some(true),
        congestion: Some("cubic".to_owned()),
        server_output: Some("one\ntwo".into()),
        streams: vec![StreamResult {
            id: 3,
            octets: 1 << 52,
            retransmits: Some(5),
            jitter_seconds: 0.001,
            lost: 2,
            lost_omitted: Some(1),
            datagrams: 10,
            datagrams_omitted: Some(4),
            span_seconds: Some((0.5, 1.5)),
        }],
    };
    let text = results.to_json();
    assert!(!text.contains("e+"), "{text}");
    assert_eq!(Results::parse(text.as_bytes()), Ok(results));
    let many = format!("{{\"streams\":[{}]}}", vec!["{}"; 257].join(","));
    assert_eq!(Results::parse(many.as_bytes()), Err(JsonError::TooManyStreams));
    assert_eq!(Results::parse(b"{\"streams\":[{\"id\":1}]}"), Err(JsonError::Missing("jitter")));
}

#[test]
fn streams_are_numbered_as_stock_programs_number_them() {
    assert_eq!([0, 1, 2, 3].map(stream_id), [1, 3, 4, 5]);
    assert_eq!(Flow::Both.client_sends(2), [true, true, false, false]);
    let cookie = Cookie::new([0x25; 36]);
    assert_eq!(cookie.text(), "f".repeat(36));
    assert_eq!(Cookie::parse(*cookie.octets()), Some(cookie));
    assert_eq!(Cookie::parse([b'a'; 37]), None);
    assert_eq!(Cookie::parse([0; 37]), None);
}

fn datagram(number: u64, counters: Counters) -> Vec<u8> {
    let mut octets = vec![0; 100];
    let head = DatagramHead { sent: Duration::from_millis(number), number };
    head.write(&mut octets, counters).unwrap();
    assert_eq!(DatagramHead::parse(&octets, counters).map(|head| head.sent), Some(head.sent));
    octets
}

#[test]
fn every_number_counts_once() {
    for counters in [Counters::Bits32, Counters::Bits64] {
        let mut arrivals = Arrivals::new(counters);
        for number in [1, 2, 5, 5, 3, 3, 8] {
            let received = Duration::from_millis(number + 7);
            assert!(arrivals.datagram(&datagram(number, counters), 100, received));
        }
        let counts = arrivals.counts();
        assert_eq!((counts.distinct, counts.highest, counts.lost()), (5, 8, 3));
        assert_eq!((counts.out_of_order, counts.duplicates, counts.octets), (1, 2, 700));
        assert!(counts.jitter_seconds < 1e-9, "{counts:?}");
        assert!(!arrivals.datagram(&[0; 11], 11, Duration::ZERO));
        assert!(!arrivals.datagram(&datagram(0, counters), 100, Duration::ZERO));
        assert_eq!(arrivals.counts(), counts);
    }
}

#[test]
fn narrow_counters_are_unwrapped() {
    let mut arrivals = Arrivals::new(Counters::Bits32);
    let mut number = 1u64;
    // In leaps of what is believed, around the turn and on.
    while number < (1 << 32) + (1 << 31) {
        assert!(arrivals.datagram(&datagram(number, Counters::Bits32), 1, Duration::ZERO));
        assert_eq!(arrivals.counts().highest, number);
        number += 1 << 30;
    }
    let before = arrivals.counts();
    arrivals.datagram(&datagram(before.highest - 3, Counters::Bits32), 1, Duration::ZERO);
    assert_eq!(arrivals.counts().out_of_order, 1);
    assert_eq!(arrivals.counts().highest, before.highest);
}

#[test]
fn jitter_is_that_of_rfc_3550() {
    let mut arrivals = Arrivals::new(Counters::Bits64);
    let mut expected = 0.0;
    let transits = [10u64, 12, 9, 9];
    for (number, transit) in (1u64..).zip(transits) {
        arrivals.datagram(&datagram(number, Counters::Bits64), 1, Duration::from_millis(number + transit));
    }
    for pair in transits.windows(2) {
        expected += (pair[0].abs_diff(pair[1]) as f64 / 1e3 - expected) / 16.0;
    }
    assert!((arrivals.counts().jitter_seconds - expected).abs() < 1e-12);
}

#[test]
fn users_are_admitted_by_name_password_and_time() {
    // sha256 of "{mario}rossi", from the documentation of stock iperf3.
    let users = Users::parse(
        "# name,sha256\nmario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\nempty,\nno comma",
    );
    let good = Credentials { user: "mario".to_owned(), password: "rossi".to_owned(), unix_seconds: 1_000 };
    assert_eq!(Credentials::parse(&good.text()), Some(good.clone()));
    assert_eq!(good.text(), "user: mario\npwd:  rossi\nts:   1000");
    assert!(users.admit(&good, 1_010, 10) && users.admit(&good, 990, 10));
    assert!(!users.admit(&good, 1_011, 10));
    for (user, password) in [("mario", "Rossi"), ("luigi", "rossi"), ("empty", "")] {
        let bad = Credentials { user: user.to_owned(), password: password.to_owned(), ..good.clone() };
        assert!(!users.admit(&bad, 1_000, 10), "{user}");
    }
    assert!(!format!("{good:?}").contains("rossi"));
    for text in ["", "user: a", "user: a\npwd:  b\nts:   x", "pwd: b\nuser: a\nts: 1"] {
        assert_eq!(Credentials::parse(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn no_octets_make_either_side_panic(octets in proptest::collection::vec(any::<u8>(), 0..400), prefix in 0usize..6) {
        let mut client = ClientSide::new();
        client.push(&[9, 10, 1, 2, 13][..prefix.min(5)]);
        client.push(&octets);
        while let Ok(Some(_)) = client.order() {}
        let _ = client.closed();
        let mut server = ServerSide::new();
        if prefix > 2 {
            server.push(&frame("{}"));
        }
        if prefix > 4 {
            server.push(&[4]);
        }
        server.push(&octets);
        while let Ok(Some(_)) = server.order() {}
        let mut arrivals = Arrivals::new(Counters::Bits32);
        for part in octets.chunks(16) {
            arrivals.datagram(part, u64::MAX, Duration::ZERO);
        }
    }

    #[test]
    fn losses_are_what_is_missing(order in Just((1u64..200).collect::<Vec<_>>()).prop_shuffle(), keep in 1usize..199) {
        let mut arrivals = Arrivals::new(Counters::Bits64);
        for &number in &order[..keep] {
            arrivals.datagram(&datagram(number, Counters::Bits64), 1, Duration::ZERO);
        }
        let counts = arrivals.counts();
        prop_assert_eq!(counts.distinct, keep as u64);
        prop_assert_eq!(counts.lost() + keep as u64, *order[..keep].iter().max().unwrap());
    }
}
