use proptest::prelude::*;

use super::*;

fn handshakes() -> Vec<Handshake> {
    let (session, nonce) = (77, Nonce::new([1; 16]));
    let (cookie, token) = (Cookie::new([2; 16]), Token::new([3; 16]));
    vec![
        Handshake::Hello { session, nonce },
        Handshake::Cookie { session, nonce, cookie },
        Handshake::Start { session, nonce, cookie, token, flow: 300 },
        Handshake::Started { session, nonce, flow: 300 },
    ]
}

#[test]
fn no_answer_is_longer_than_its_question() {
    let lengths: Vec<usize> = handshakes().iter().map(|message| message.encode().len()).collect();
    assert_eq!(lengths, [64, 44, 64, 32]);
}

#[test]
fn handshakes_there_and_back_and_truncated() {
    for message in handshakes() {
        let octets = message.encode();
        assert_eq!(Datagram::parse(&octets), Ok(Datagram::Handshake(message)));
        for cut in 0..octets.len() {
            assert_eq!(Datagram::parse(&octets[..cut]), Err(DatagramError::Truncated), "{cut}");
        }
    }
}

#[test]
fn the_layout_of_an_echo_request() {
    let probe = Probe {
        kind: ProbeKind::EchoRequest { reply_octets: Some(0x0102) },
        tag: Tag::new([0xAA; 8]),
        id: 0x0304_0506,
        seq: 0x0708_090A,
        stamp_ns: 0x0B0C_0D0E_0F10_1112,
    };
    let mut octets = [0xFF; 40];
    probe.write(&mut octets).unwrap();
    let expected = [
        b'N', b'W', 1, 2, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 3, 4, 5, 6, 7, 8, 9, 0xA, 0xB, 0xC, 0xD, 0xE,
        0xF, 0x10, 0x11, 0x12, 1, 2, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF,
    ];
    assert_eq!(octets, expected);
    assert_eq!(&octets[Probe::SEQ_OFFSET..][..4], &probe.seq.to_be_bytes());
    assert_eq!(&octets[Probe::STAMP_OFFSET..][..8], &probe.stamp_ns.to_be_bytes());
}

#[test]
fn an_echo_never_grows() {
    let request = |reply_octets| Probe {
        kind: ProbeKind::EchoRequest { reply_octets },
        tag: Tag::new([0; 8]),
        id: 0,
        seq: 0,
        stamp_ns: 0,
    };
    assert_eq!(request(None).echo_octets(1472), Some(1472));
    assert_eq!(request(Some(36)).echo_octets(1472), Some(36));
    assert_eq!(request(Some(1472)).echo_octets(1472), Some(1472));
    assert_eq!(request(Some(1473)).echo_octets(1472), None);
    assert_eq!(request(Some(35)).echo_octets(1472), None);
    let reply = Probe { kind: ProbeKind::EchoReply { turned_ns: 1 }, ..request(None) };
    assert_eq!(reply.echo_octets(1472), None);
}

#[test]
fn foreign_datagrams() {
    assert_eq!(Datagram::parse(b"GET / HTTP/1.1"), Err(DatagramError::Magic));
    assert_eq!(Datagram::parse(b"NW\x02\x01"), Err(DatagramError::Version));
    assert_eq!(Datagram::parse(b"NW\x01\x20"), Err(DatagramError::Kind));
    assert_eq!(Datagram::parse(b"NW\x01\x00"), Err(DatagramError::Kind));
}

fn kinds() -> impl Strategy<Value = ProbeKind> {
    prop_oneof![
        Just(ProbeKind::Train),
        Just(ProbeKind::Load),
        Just(ProbeKind::Wake),
        proptest::option::of(1u16..).prop_map(|reply_octets| ProbeKind::EchoRequest { reply_octets }),
        any::<i64>().prop_map(|turned_ns| ProbeKind::EchoReply { turned_ns }),
    ]
}

proptest! {
    #[test]
    fn probes_there_and_back(
        kind in kinds(), tag: [u8; 8], id: u32, seq: u32, stamp_ns: i64, padding in 0usize..100,
    ) {
        let probe = Probe { kind, tag: Tag::new(tag), id, seq, stamp_ns };
        let mut octets = vec![0xEE; probe.header_octets() + padding];
        probe.write(&mut octets).unwrap();
        prop_assert_eq!(Datagram::parse(&octets), Ok(Datagram::Probe(probe)));
        prop_assert!(octets[probe.header_octets()..].iter().all(|octet| *octet == 0xEE));
        let cut = probe.header_octets() - 1;
        prop_assert_eq!(Datagram::parse(&octets[..cut]), Err(DatagramError::Truncated));
        prop_assert_eq!(probe.write(&mut octets[..cut]), None);
    }

    #[test]
    fn any_octets_are_survived(octets: Vec<u8>, kind: u8) {
        let _ = Datagram::parse(&octets);
        let mut ours = vec![b'N', b'W', 1, kind];
        ours.extend(octets);
        if let Ok(Datagram::Probe(probe)) = Datagram::parse(&ours) {
            prop_assert!(probe.echo_octets(ours.len()).is_none_or(|reply| reply <= ours.len()));
        }
    }
}
