use proptest::prelude::*;

use super::*;

fn host() -> HostFacts {
    HostFacts {
        send_cost_ns: 1000,
        receive_cost_ns: 900,
        clock_resolution_ns: 20,
        stamp_error_ns: 4000,
        stamp_source: StampSource::Kernel,
        min_gap_ns: 2000,
        max_send_rate_bps: Some(u64::MAX),
        interface_rate_bps: None,
        virtual_interface: true,
    }
}

fn sample() -> TcpSample {
    TcpSample {
        at_ns: i64::MIN,
        state: TcpState::Recovery,
        rtt_ns: 3_600_000_000_000,
        rtt_var_ns: 3_600_000_000_000,
        min_rtt_ns: Some(u64::MAX),
        mss_octets: u32::MAX,
        cwnd_segments: u32::MAX,
        ssthresh_segments: Some(u32::MAX),
        in_flight_segments: u32::MAX,
        acked_octets: u64::MAX,
        sent_octets: Some(u64::MAX),
        retransmitted_octets: Some(u64::MAX),
        retransmitted_segments: u32::MAX,
        timeouts: Some(u32::MAX),
        delivery_rate_bps: Some((u64::MAX, false)),
        pacing_rate_bps: Some(u64::MAX),
        peer_window_octets: Some(u32::MAX),
        unsent_octets: Some(u32::MAX),
        busy_ns: Some(u64::MAX),
        limited_by_receive_window_ns: Some(u64::MAX),
        limited_by_send_buffer_ns: Some(u64::MAX),
        bbr_pacing_gain: Some(u32::MAX),
        window_scaled: Some(false),
        reordered: Some(u32::MAX),
        needless: Some(u32::MAX),
        path_mtu_octets: Some(u32::MAX),
    }
}

fn lease() -> Lease {
    Lease { run: uuid::Uuid::from_u128(0x0192_0000_0000_7000_8000_0000_0000_0001), fence: u64::MAX }
}

fn client_messages() -> Vec<ClientMessage> {
    vec![
        ClientMessage::Hello { version: 1, nonce: Nonce::new([0xAB; 16]), key_name: None },
        ClientMessage::Hello { version: 4, nonce: Nonce::new([0xAB; 16]), key_name: Some("ams-1@2951".to_owned()) },
        ClientMessage::Prove { proof: Proof::new([1; 32]) },
        ClientMessage::slot(SlotKind::Load),
        ClientMessage::Slot { kind: SlotKind::Load, beside: Some(Token::new([7; 16])), lease: None },
        ClientMessage::Slot { kind: SlotKind::Load, beside: None, lease: Some(lease()) },
        ClientMessage::ExpectTrain(TrainExpectation {
            id: 1,
            flow: 0,
            packets: 100,
            ip_octets: 150_000,
            duration_ns: 12_000_000,
            quiet_ns: 300_000_000,
        }),
        ClientMessage::LoadBegin(LoadPlan {
            id: 2,
            direction: Direction::Reverse,
            streams: 2,
            ip_octets: 1500,
            max_rate_bps: None,
            max_duration_ns: 10_000_000_000,
            status_every_ns: 50_000_000,
            quiet_ns: 300_000_000,
            tuning: None,
        }),
        ClientMessage::TransferBegin(TransferPlan {
            id: 3,
            direction: Direction::Forward,
            max_streams: 4,
            max_duration_ns: 10_000_000_000,
            congestion: Some("cubic".into()),
            window_octets: None,
            pacing_bps: None,
            tuning: None,
        }),
        ClientMessage::AskHost,
        ClientMessage::Alive,
    ]
}

/// What version 3 brought.
fn tuned_messages() -> Vec<ClientMessage> {
    vec![
        ClientMessage::LoadBegin(LoadPlan {
            id: 2,
            direction: Direction::Reverse,
            streams: 1,
            ip_octets: 1500,
            max_rate_bps: None,
            max_duration_ns: 10_000_000_000,
            status_every_ns: 50_000_000,
            quiet_ns: 300_000_000,
            tuning: Some(LoadTuning { packets: Some(u64::MAX), traffic_class: 184, mean_rate: true }),
        }),
        ClientMessage::TransferBegin(TransferPlan {
            id: 3,
            direction: Direction::Reverse,
            max_streams: 4,
            max_duration_ns: 10_000_000_000,
            congestion: None,
            window_octets: None,
            pacing_bps: Some(1),
            tuning: Some(TransferTuning {
                payload_octets: Some(u64::MAX),
                block_octets: Some(TransferTuning::MOST_BLOCK),
                burst_blocks: Some(TransferTuning::MOST_BURST),
                no_delay: true,
                zero_copy: true,
                traffic_class: u8::MAX,
            }),
        }),
    ]
}

fn settings() -> HostSettings {
    HostSettings {
        interface: Some("enp3s0f0np0.100".to_owned()),
        driver: Some("mlx5_core".to_owned()),
        qdisc: Some("fq_codel".to_owned()),
        interface_bps: Some(u64::MAX),
        half_duplex: Some(false),
        receive_gather_us: Some(u32::MAX),
        clock_source: Some("kvm-clock".to_owned()),
        idle_exit_ns: Some(3_600_000_000_000),
        congestion_control: Some("cubic".to_owned()),
        congestion_controls: vec!["reno".to_owned(); HostSettings::MAX_CONTROLS],
        tcp_rmem_octets: Some([0, 1, u64::MAX]),
        counted: SettingsCounted {
            steal_permille: Some(1000),
            fragments: Some(u64::MAX),
            ..SettingsCounted::default()
        },
        ..HostSettings::default()
    }
}

fn server_messages() -> Vec<ServerMessage> {
    vec![
        ServerMessage::Welcome { version: 1, nonce: Nonce::new([2; 16]), auth: Auth::Psk },
        ServerMessage::Session {
            session: u64::MAX,
            token: Token::new([3; 16]),
            proof: None,
            limits: SessionLimits::default(),
            host: host(),
        },
        ServerMessage::refused(RefusalCode::Full, None, "no"),
        ServerMessage::LoadStatus(LoadStatus {
            id: 2,
            from_ns: -1,
            to_ns: 5,
            packets: 1,
            ip_octets: 1500,
            lost: 0,
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            delay_ns: Some((-3, -2, -2)),
            receiver_cpu_permille: Some(1000),
        }),
        ServerMessage::TransferSamples { id: 3, stream: 0, samples: vec![sample(); TransferSent::MAX_SAMPLES] },
        ServerMessage::TransferSent(TransferSent {
            id: 3,
            began_ns: 1,
            ended_ns: 2,
            streams: vec![BulkStream {
                congestion: "cubic".to_owned(),
                granted_send_buffer_octets: None,
                stands: Some(SocketStands { traffic_class: 184, no_delay: true }),
            }],
            sender_cpu_permille: None,
            spent: true,
        }),
        ServerMessage::LoadSent(LoadSent {
            id: 2,
            began_ns: 1,
            ended_ns: 2,
            packets: 1,
            ip_octets: 1500,
            send_failures: 0,
            sender_cpu_permille: None,
            held_up_ns: 7,
            spent: true,
        }),
        ServerMessage::HostReported(Box::new(settings())),
        ServerMessage::Alive,
    ]
}

fn body(frame: &[u8]) -> &[u8] {
    &frame[crate::FRAME_HEADER_OCTETS..]
}

#[test]
fn there_and_back() {
    for message in client_messages().into_iter().chain(tuned_messages()) {
        assert_eq!(ClientMessage::parse(body(&message.frame())), Ok(message));
    }
    for message in server_messages() {
        assert_eq!(ServerMessage::parse(body(&message.frame())), Ok(message));
    }
}

#[test]
fn what_the_wire_shows() {
    let hello = ClientMessage::Hello { version: 1, nonce: Nonce::new([0xAB; 16]), key_name: None };
    assert_eq!(body(&hello.frame()), br#"{"hello":{"version":1,"nonce":"abababababababababababababababab"}}"#);
    assert_eq!(body(&ClientMessage::Alive.frame()), br#""alive""#);
    let slot = ClientMessage::Slot { kind: SlotKind::Load, beside: None, lease: Some(lease()) };
    assert_eq!(
        body(&slot.frame()),
        br#"{"slot":{"kind":"load","lease":{"run":"01920000-0000-7000-8000-000000000001","fence":18446744073709551615}}}"#
    );
}

/// Version 4: a key's name is short and visible, and only a load has a lease.
#[test]
fn names_of_keys_and_leases_are_checked() {
    let hello = |name: &str| {
        let text = serde_json::json!({"hello": {"version": 4, "nonce": "ab".repeat(16), "key_name": name}}).to_string();
        ClientMessage::parse(text.as_bytes())
    };
    assert!(hello("ams-1@2951").is_ok() && hello("one of a later form:7").is_err() && hello("later:7").is_ok());
    for name in ["", "a\u{7f}", "\n", "é", &"n".repeat(129)] {
        assert_eq!(hello(name), Err(MessageError::Range("key_name")), "{name:?}");
    }
    let slot = |text: &str| ClientMessage::parse(format!(r#"{{"slot":{{{text}}}}}"#).as_bytes());
    let lease = r#""lease":{"run":"01920000-0000-7000-8000-000000000001","fence":7}"#;
    assert!(slot(&format!(r#""kind":"load",{lease}"#)).is_ok());
    assert_eq!(slot(&format!(r#""kind":"light",{lease}"#)), Err(MessageError::Range("lease")));
    for half in [r#""lease":{"fence":7}"#, r#""lease":{"run":"x","fence":7}"#, r#""lease":{"run":"","fence":-1}"#] {
        assert!(matches!(slot(&format!(r#""kind":"load",{half}"#)), Err(MessageError::Syntax(_))), "{half}");
    }
}

/// A later version may say more, in any message and however deep; what is missing where it may be
/// is unknown.
#[test]
fn unknown_fields_are_ignored() {
    let more = |text: &str| text.replacen(":{", r#":{"more":[{"and":{"more":null}}],"#, 1);
    for message in client_messages().into_iter().chain(tuned_messages()) {
        let text = String::from_utf8(body(&message.frame()).to_vec()).unwrap();
        assert_eq!(ClientMessage::parse(more(&text).as_bytes()), Ok(message));
    }
    for message in server_messages() {
        let text = String::from_utf8(body(&message.frame()).to_vec()).unwrap();
        assert_eq!(ServerMessage::parse(more(&text).as_bytes()), Ok(message));
    }
    assert_eq!(
        ServerMessage::parse(br#"{"host_reported":{"counted":{"later":7}}}"#),
        Ok(ServerMessage::HostReported(Box::default()))
    );
}

#[test]
fn names_that_a_shell_makes_something_of_are_refused() {
    for name in ["", "a b", "x;y", "$(x)", "`x`", "é", "a\nb", &"x".repeat(41)] {
        let reported = HostSettings { driver: Some(name.to_owned()), ..HostSettings::default() };
        let frame = ServerMessage::HostReported(Box::new(reported)).frame();
        assert_eq!(ServerMessage::parse(body(&frame)), Err(MessageError::Range("driver")), "{name:?}");
    }
}

#[test]
fn versions_agree_on_the_older_newest() {
    assert_eq!(crate::agreed(crate::OLDEST_VERSION - 1), None);
    for version in crate::OLDEST_VERSION..=crate::VERSION {
        assert_eq!(crate::agreed(version), Some(version));
    }
    assert_eq!(crate::agreed(crate::VERSION + 1), Some(crate::VERSION));
    assert_eq!(crate::agreed(u16::MAX), Some(crate::VERSION));
}

#[test]
fn hostile_texts() {
    for text in [
        "",
        "null",
        "[]",
        r#"{"hello":{}}"#,
        r#"{"hello":{"version":1}}"#,
        r#"{"hello":{"version":-1,"nonce":"abababababababababababababababab"}}"#,
        r#"{"hello":{"version":1e3,"nonce":"abababababababababababababababab"}}"#,
        r#"{"hello":{"version":70000,"nonce":"abababababababababababababababab"}}"#,
        r#"{"hello":{"version":1,"nonce":"ABABABABABABABABABABABABABABABAB"}}"#,
        r#"{"hello":{"version":1,"nonce":"ab"}}"#,
        r#"{"hello":{"version":1,"version":1,"nonce":"abababababababababababababababab"}}"#,
        r#"{"hello":{"version":1,"nonce":"abababababababababababababababab"},"bye":null}"#,
        r#""alive" "alive""#,
        r#"{"ask_host":{}}"#,
        r#""host_reported""#,
        r#""welcome""#,
        r#"{"train_sent":{"id":1,"packets":65537}}"#,
        r#"{"load_segment":{"id":1,"rate_bps":0,"burst":1,"duration_ns":1,"continues":false}}"#,
        r#"{"load_segment":{"id":1,"rate_bps":NaN,"burst":1,"duration_ns":1,"continues":false}}"#,
        r#"{"load_segment":{"id":1,"rate_bps":1,"burst":0,"duration_ns":1,"continues":false}}"#,
    ] {
        assert!(ClientMessage::parse(text.as_bytes()).is_err(), "{text}");
    }
    let deep = "[".repeat(60_000);
    assert!(ClientMessage::parse(deep.as_bytes()).is_err());
    assert!(ServerMessage::parse(deep.as_bytes()).is_err());
}

#[test]
fn ranges() {
    let plan = |congestion: &str| {
        let plan = TransferPlan {
            id: 3,
            direction: Direction::Forward,
            max_streams: 4,
            max_duration_ns: 10,
            congestion: Some(congestion.to_owned()),
            window_octets: None,
            pacing_bps: None,
            tuning: None,
        };
        ClientMessage::parse(body(&ClientMessage::TransferBegin(plan).frame()))
    };
    assert!(plan("bbr2_x-1").is_ok());
    for name in ["", "../../x", "a b", "sixteen_letters_"] {
        assert_eq!(plan(name), Err(MessageError::Range("congestion")), "{name}");
    }
    let tuned = |fields: &str| {
        let text = format!(
            r#"{{"transfer_begin":{{"id":3,"direction":"reverse","max_streams":4,"max_duration_ns":10,{fields}}}}}"#
        );
        ClientMessage::parse(text.as_bytes())
    };
    assert!(tuned(r#""pacing_bps":1,"tuning":{"burst_blocks":1000,"block_octets":1048576}"#).is_ok());
    assert!(tuned(r#""tuning":{"sooner":true}"#).is_ok());
    for (fields, wrong) in [
        (r#""tuning":{"payload_octets":0}"#, "payload_octets"),
        (r#""tuning":{"block_octets":0}"#, "block_octets"),
        (r#""tuning":{"block_octets":1048577}"#, "block_octets"),
        (r#""tuning":{"burst_blocks":1}"#, "burst_blocks"),
        (r#""pacing_bps":1,"tuning":{"burst_blocks":0}"#, "burst_blocks"),
        (r#""pacing_bps":1,"tuning":{"burst_blocks":1001}"#, "burst_blocks"),
    ] {
        assert_eq!(tuned(fields), Err(MessageError::Range(wrong)), "{fields}");
    }
    for fields in [
        r#""tuning":{"traffic_class":256}"#,
        r#""tuning":{"traffic_class":-1}"#,
        r#""tuning":{"no_delay":1}"#,
        r#""tuning":{"no_delay":true,"no_delay":true}"#,
    ] {
        assert!(matches!(tuned(fields), Err(MessageError::Syntax(_))), "{fields}");
    }
    let beside = r#"{"slot":{"kind":"light","beside":"07070707070707070707070707070707"}}"#;
    assert_eq!(ClientMessage::parse(beside.as_bytes()), Err(MessageError::Range("beside")));
    let long = ServerMessage::refused(RefusalCode::Limit, Some(1), "é".repeat(900));
    assert_eq!(ServerMessage::parse(body(&long.frame())), Ok(long));
    let escape = ServerMessage::Refused { code: RefusalCode::Limit, id: None, text: "\u{1b}[2J".into() };
    assert_eq!(ServerMessage::parse(body(&escape.frame())), Err(MessageError::Range("text")));
}

proptest! {
    #[test]
    fn cut_and_mutated_messages_are_survived(
        which in 0usize..20, at: prop::sample::Index, octet: u8, cut in any::<bool>(),
    ) {
        let frames: Vec<Vec<u8>> = client_messages()
            .iter()
            .chain(&tuned_messages())
            .map(ClientMessage::frame)
            .chain(server_messages().iter().map(ServerMessage::frame))
            .collect();
        let mut octets = body(&frames[which]).to_vec();
        let at = at.index(octets.len());
        if cut {
            octets.truncate(at);
            prop_assert!(ClientMessage::parse(&octets).is_err() && ServerMessage::parse(&octets).is_err());
        } else {
            octets[at] = octet;
            // What still parses is in range: its frame parses again to the same.
            if let Ok(message) = ClientMessage::parse(&octets) {
                prop_assert_eq!(ClientMessage::parse(body(&message.frame())), Ok(message));
            }
            if let Ok(message) = ServerMessage::parse(&octets) {
                prop_assert_eq!(ServerMessage::parse(body(&message.frame())), Ok(message));
            }
        }
    }

    #[test]
    fn any_octets_are_survived(octets: Vec<u8>) {
        let _ = (ClientMessage::parse(&octets), ServerMessage::parse(&octets));
    }
}
