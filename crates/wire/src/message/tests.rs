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
    }
}

fn client_messages() -> Vec<ClientMessage> {
    vec![
        ClientMessage::Hello {
            version: 1,
            nonce: Nonce::new([0xAB; 16]),
        },
        ClientMessage::Prove {
            proof: Proof::new([1; 32]),
        },
        ClientMessage::Slot { kind: SlotKind::Load },
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
        }),
        ClientMessage::TransferBegin(TransferPlan {
            id: 3,
            direction: Direction::Forward,
            max_streams: 4,
            max_duration_ns: 10_000_000_000,
            congestion: Some("cubic".into()),
            window_octets: None,
            pacing_bps: None,
        }),
        ClientMessage::Alive,
    ]
}

fn server_messages() -> Vec<ServerMessage> {
    vec![
        ServerMessage::Welcome {
            version: 1,
            nonce: Nonce::new([2; 16]),
            auth: Auth::Psk,
        },
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
        ServerMessage::TransferSamples {
            id: 3,
            stream: 0,
            samples: vec![sample(); TransferSent::MAX_SAMPLES],
        },
        ServerMessage::Alive,
    ]
}

fn body(frame: &[u8]) -> &[u8] {
    &frame[crate::FRAME_HEADER_OCTETS..]
}

#[test]
fn there_and_back() {
    for message in client_messages() {
        assert_eq!(ClientMessage::parse(body(&message.frame())), Ok(message));
    }
    for message in server_messages() {
        assert_eq!(ServerMessage::parse(body(&message.frame())), Ok(message));
    }
}

#[test]
fn what_the_wire_shows() {
    let hello = ClientMessage::Hello {
        version: 1,
        nonce: Nonce::new([0xAB; 16]),
    };
    assert_eq!(
        body(&hello.frame()),
        br#"{"hello":{"version":1,"nonce":"abababababababababababababababab"}}"#
    );
    assert_eq!(body(&ClientMessage::Alive.frame()), br#""alive""#);
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
        r#"{"hello":{"version":1,"nonce":"abababababababababababababababab","more":0}}"#,
        r#"{"hello":{"version":1,"nonce":"abababababababababababababababab"},"bye":null}"#,
        r#""alive" "alive""#,
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
        };
        ClientMessage::parse(body(&ClientMessage::TransferBegin(plan).frame()))
    };
    assert!(plan("bbr2_x-1").is_ok());
    for name in ["", "../../x", "a b", "sixteen_letters_"] {
        assert_eq!(plan(name), Err(MessageError::Range("congestion")), "{name}");
    }
    let long = ServerMessage::refused(RefusalCode::Limit, Some(1), "é".repeat(900));
    assert_eq!(ServerMessage::parse(body(&long.frame())), Ok(long));
    let escape = ServerMessage::Refused {
        code: RefusalCode::Limit,
        id: None,
        text: "\u{1b}[2J".into(),
    };
    assert_eq!(
        ServerMessage::parse(body(&escape.frame())),
        Err(MessageError::Range("text"))
    );
}

proptest! {
    #[test]
    fn cut_and_mutated_messages_are_survived(
        which in 0usize..13, at: prop::sample::Index, octet: u8, cut in any::<bool>(),
    ) {
        let frames: Vec<Vec<u8>> = client_messages()
            .iter()
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
