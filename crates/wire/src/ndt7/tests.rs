use proptest::prelude::*;

use super::*;

#[test]
fn requests_are_for_a_test_or_for_nothing() {
    let target = |path, query| check_target(path, query);
    let plain = |subtest| Ok(Target { subtest, most_octets: None });
    assert_eq!(target("/ndt/v7/download", None), plain(Subtest::Download));
    assert_eq!(
        target("/ndt/v7/upload", Some("client_name=x&client_version=1%2e0&server_x=&&")),
        plain(Subtest::Upload)
    );
    let early = target("/ndt/v7/download", Some("early_exit=250"));
    assert_eq!(early.map(|target| target.most_octets), Ok(Some(250_000_000)));
    for (path, query, why) in [
        ("/", None, TargetError::Path),
        ("/ndt/v7/download/", None, TargetError::Path),
        ("/ndt/v5/upload", None, TargetError::Path),
        ("/ndt/v7/upload", Some("a=%4"), TargetError::Query),
        ("/ndt/v7/upload", Some("a=%zz"), TargetError::Query),
        ("/ndt/v7/upload", Some("=a"), TargetError::Query),
        ("/ndt/v7/upload", Some("a=é"), TargetError::Query),
        ("/ndt/v7/upload", Some("a=1&a=2"), TargetError::Twice),
        ("/ndt/v7/download", Some("early_exit=251"), TargetError::EarlyExit),
    ] {
        assert_eq!(target(path, query), Err(why), "{path} {query:?}");
    }
    let (long, longer) = ("a".repeat(MOST_QUERY_OCTETS), "a".repeat(MOST_QUERY_OCTETS + 1));
    assert!(target("/ndt/v7/upload", Some(&long)).is_ok());
    assert_eq!(target("/ndt/v7/upload", Some(&longer)), Err(TargetError::QueryLength));
}

/// As stock servers and clients write them.
#[test]
fn measurements_are_read_and_written() {
    let text = r#"{"AppInfo":{"ElapsedTime":1250000,"NumBytes":12500000},
        "ConnectionInfo":{"Client":"192.0.2.1:4000","Server":"[2001:db8::1]:443","UUID":"u","StartTime":"2026-01-01T00:00:00Z"},
        "Origin":"server","Test":"download",
        "TCPInfo":{"BusyTime":1,"BytesAcked":12000000,"ElapsedTime":1200000,"MinRTT":9000,"RTT":12000,"RTTVar":300,"State":1,
                   "RWndLimited":0,"SndBufLimited":2,"BytesReceived":77},"BBRInfo":{"BW":1}}"#;
    let read = Measurement::parse(text).unwrap();
    let tcp = read.tcp_info.unwrap();
    assert_eq!((read.test, read.origin.as_deref()), (Some(Subtest::Download), Some("server")));
    assert_eq!((tcp.min_rtt, tcp.rtt_var, tcp.bytes_received), (Some(9_000), Some(300), Some(77)));
    assert_eq!((tcp.receive_window_limited, tcp.send_buffer_limited), (Some(0), Some(2)));
    assert_eq!(payload_bps(tcp.bytes_acked.unwrap(), tcp.elapsed_time.unwrap()), Some(80_000_000));
    assert_eq!(Measurement::parse(&read.to_json()), Some(read));
    let ours = Measurement {
        app_info: Some(AppInfo { elapsed_time: 5, num_bytes: 7 }),
        origin: Some("client".to_owned()),
        test: Some(Subtest::Upload),
        ..Measurement::default()
    };
    assert_eq!(ours.to_json(), r#"{"AppInfo":{"ElapsedTime":5,"NumBytes":7},"Origin":"client","Test":"upload"}"#);
    assert_eq!(Measurement::parse("{}"), Some(Measurement::default()));
    let deep = "[".repeat(2_000);
    for wrong in ["", "[]", "7", r#"{"Test":"sideways"}"#, r#"{"AppInfo":{"NumBytes":"many"}}"#, &deep] {
        assert_eq!(Measurement::parse(wrong), None, "{wrong:.40}");
    }
    assert_eq!(Measurement::parse(&format!("{{}}{}", " ".repeat(MOST_TEXT_OCTETS))), None);
}

#[test]
fn rates_that_cannot_be_are_none() {
    assert_eq!(payload_bps(1, 0), None);
    assert_eq!(payload_bps(-1, 5), None);
    assert_eq!(payload_bps(5, -1), None);
    assert_eq!(payload_bps(i64::MAX, 1), None);
    assert_eq!(payload_bps(1_250_000, 1_000_000), Some(10_000_000));
}

#[test]
fn messages_grow_with_what_was_sent() {
    let (mut octets, mut sent, mut lengths) = (FIRST_OCTETS, 0u64, Vec::new());
    for _ in 0..400 {
        sent += octets as u64;
        octets = next_octets(octets, sent);
        if lengths.last() != Some(&octets) {
            lengths.push(octets);
        }
    }
    // Each power of two from 8 KiB to 1 MiB.
    assert_eq!(lengths, (13..=20).map(|power| 1usize << power).collect::<Vec<_>>());
    assert_eq!(next_octets(FIRST_OCTETS, 16 * (1 << 13) - 1), FIRST_OCTETS);
    assert_eq!(next_octets(FIRST_OCTETS, 16 * (1 << 13)), 2 * FIRST_OCTETS);
}

#[test]
fn measurements_come_four_times_a_second_or_so() {
    let drawn: Vec<f64> = (0..1_000).map(|k| measure_after(f64::from(k) / 1_000.0).as_secs_f64()).collect();
    assert!(drawn.iter().all(|time| (0.025..=0.625).contains(time)));
    // Of an exponential with mean m, held below a and above b: a + m (exp(-a/m) - exp(-b/m)).
    let mean = drawn.iter().sum::<f64>() / 1_000.0;
    let wanted = 0.025 + 0.25 * ((-0.1f64).exp() - (-2.5f64).exp());
    assert!((mean - wanted).abs() < 0.001, "{mean} {wanted}");
    assert!(measure_after(f64::NAN) <= Duration::from_millis(625));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,300}", path in "/?[a-z0-9/]{0,20}") {
        if let Some(read) = Measurement::parse(&text) {
            prop_assert_eq!(Measurement::parse(&read.to_json()), Some(read));
        }
        let _ = check_target(&path, Some(&text));
        let _ = check_target(Subtest::Upload.path(), Some(&text));
    }
}
