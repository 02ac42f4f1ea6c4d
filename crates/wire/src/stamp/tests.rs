use proptest::prelude::*;

use super::*;

fn key() -> Psk {
    Psk::from_file_content(b"sixteen octets!!").unwrap()
}

fn clock(format: StampFormat) -> ErrorEstimate {
    ErrorEstimate::new(1_000, true, format)
}

/// 2026-11-21 00:00:00.25 UTC.
const NOON: i64 = 1_795_219_200_250_000_000;

fn packet(format: StampFormat) -> SessionPacket {
    SessionPacket { seq: 0x0102_0304, time: StampTime::from_unix_ns(NOON, format), error: clock(format), ssid: 0xabcd }
}

#[test]
fn the_octets_are_those_of_the_rfc() {
    let mut octets = [0xff; 50];
    packet(StampFormat::Ntp).write(&mut octets, None).unwrap();
    // 1 795 219 200 s + 2 208 988 800 s since 1900; a quarter of a second. S and no Z; 1 µs is 4295
    // parts, 135 times 2^5.
    assert_eq!(octets[..4], [1, 2, 3, 4]);
    assert_eq!(octets[4..8], 4_004_208_000u32.to_be_bytes());
    assert_eq!(octets[8..12], [0x40, 0, 0, 0]);
    assert_eq!(octets[12..14], [0x85, 135]);
    assert_eq!(octets[14..16], [0xab, 0xcd]);
    assert_eq!(octets[16..44], [0; 28]);
    assert_eq!(octets[44..], [0xff; 6], "what follows is left alone");
    packet(StampFormat::Ptp).write(&mut octets, None).unwrap();
    assert_eq!(octets[4..8], 1_795_219_200u32.to_be_bytes());
    assert_eq!(octets[8..12], 250_000_000u32.to_be_bytes());
    assert_eq!(octets[12..14], [0xc5, 135]);
    let mut short = [7; 43];
    assert_eq!(packet(StampFormat::Ntp).write(&mut short, None), None);
    assert_eq!(short, [7; 43]);
}

#[test]
fn times_survive_both_formats_and_the_next_era() {
    // 2036-02-07 06:28:16 UTC is NTP's second zero again.
    for unix_ns in [NOON, NOON + 1, NOON + 999_999_999, 0, 2_085_978_496_000_000_123, 4_000_000_000_000_000_000] {
        for format in [StampFormat::Ntp, StampFormat::Ptp] {
            let there = StampTime::from_unix_ns(unix_ns, format);
            let back = StampTime::from_wire(there.wire(), format).unix_ns();
            assert_eq!(back, unix_ns, "{format:?}");
        }
    }
}

#[test]
fn errors_are_rounded_up_and_never_by_much() {
    for error_ns in [0, 1, 59, 60, 1_000, 999_999, 1_000_000_000, 86_400_000_000_000] {
        let estimate = ErrorEstimate::new(error_ns, false, StampFormat::Ntp);
        assert_eq!(ErrorEstimate::parse(estimate.wire()), Some(estimate));
        let written = estimate.error_ns();
        assert!(written + 1 >= error_ns && written <= error_ns + error_ns / 64 + 1, "{error_ns} {written}");
    }
    assert_eq!(ErrorEstimate::parse(0x8500), None);
    assert_eq!(ErrorEstimate::parse(0x3fff).unwrap().error_ns(), u64::MAX);
}

fn seen(seq: Option<u32>) -> Reflection {
    Reflection {
        received_ns: NOON + 5_000_000,
        transmitted_ns: NOON + 5_020_000,
        error: clock(StampFormat::Ptp),
        hop_limit: 61,
        seq,
        surroundings: Surroundings::default(),
    }
}

#[test]
fn a_reflector_fills_the_packet_in() {
    for (key, length) in [(None, 44), (None, 1472), (Some(key()), 112), (Some(key()), 500)] {
        let mut octets = vec![9; length];
        packet(StampFormat::Ntp).write(&mut octets, key.as_ref()).unwrap();
        let base = stamp_octets(key.is_some());
        write_padding(&mut octets[base..]);
        let (asked, extended) = reflect(&mut octets, &seen(None), key.as_ref()).unwrap();
        assert_eq!((asked, extended.dscp), (packet(StampFormat::Ntp), None));
        let reply = ReflectedPacket::parse(&octets, key.as_ref()).unwrap();
        assert_eq!((reply.seq, reply.sender_seq, reply.ssid), (asked.seq, asked.seq, 0xabcd));
        assert_eq!((reply.received.unix_ns(), reply.transmitted.unix_ns()), (NOON + 5_000_000, NOON + 5_020_000));
        assert_eq!((reply.sender_time, reply.sender_error), (asked.time.wire(), asked.error.wire()));
        assert_eq!((reply.sender_ttl, reply.error.format), (61, StampFormat::Ptp));
        let padding: Vec<Tlv<'_>> = Tlvs::new(&octets[base..]).collect();
        if length > base {
            assert_eq!((padding.len(), padding[0].flags, padding[0].kind), (1, 0, 1));
            assert!(padding[0].value.iter().all(|&octet| octet == 9));
        }
    }
    let mut octets = [0; 44];
    packet(StampFormat::Ntp).write(&mut octets, None).unwrap();
    reflect(&mut octets, &seen(Some(7)), None).unwrap();
    let reply = ReflectedPacket::parse(&octets, None).unwrap();
    assert_eq!((reply.seq, reply.sender_seq), (7, 0x0102_0304));
}

#[test]
fn only_who_holds_the_key_is_heard() {
    let mut octets = [0; 112];
    packet(StampFormat::Ntp).write(&mut octets, Some(&key())).unwrap();
    let other = Psk::from_file_content(b"another sixteen!").unwrap();
    assert_eq!(SessionPacket::parse(&octets, Some(&other)), Err(StampError::NotAuthentic));
    for at in [0, 20, 95, 96, 111] {
        let mut forged = octets;
        forged[at] ^= 1;
        assert_eq!(SessionPacket::parse(&forged, Some(&key())), Err(StampError::NotAuthentic), "{at}");
        assert_eq!(reflect(&mut forged, &seen(None), Some(&key())), Err(StampError::NotAuthentic));
    }
    assert_eq!(SessionPacket::parse(&octets, Some(&key())), Ok(packet(StampFormat::Ntp)));
    // HMAC-SHA-256 of the 96 octets before, cut to 16 (RFC 8762 §4.4).
    assert_eq!(octets[96..], key().stamp_mac(&octets[..96]));
}

#[test]
fn short_and_corrupt_packets_are_not_answered() {
    let mut octets = [0; 44];
    packet(StampFormat::Ntp).write(&mut octets, None).unwrap();
    for length in 0..41 {
        let mut cut = octets[..length].to_vec();
        assert_eq!(reflect(&mut cut, &seen(None), None), Err(StampError::Truncated), "{length}");
    }
    // TWAMP's shorter packets: the answer has as many octets, and is readable.
    let mut cut = octets[..41].to_vec();
    reflect(&mut cut, &seen(None), None).unwrap();
    assert_eq!(ReflectedPacket::parse(&cut, None).unwrap().sender_ttl, 61);
    octets[13] = 0;
    assert_eq!(reflect(&mut octets, &seen(None), None), Err(StampError::ErrorEstimate));
    assert_eq!(ReflectedPacket::parse(&octets[..40], None), Err(StampError::Truncated));
}

/// A packet with these TLVs behind it, answered.
fn answered(tlvs: &[&[u8]], surroundings: Surroundings, key: Option<&Psk>) -> (Vec<u8>, Extended) {
    let base = stamp_octets(key.is_some());
    let mut octets = vec![0; base];
    packet(StampFormat::Ntp).write(&mut octets, key).unwrap();
    octets.extend(tlvs.concat());
    let length = octets.len();
    let seen = Reflection { surroundings, ..seen(Some(9)) };
    let (_, extended) = reflect(&mut octets, &seen, key).unwrap();
    assert_eq!(octets.len(), length);
    (octets.split_off(base), extended)
}

#[test]
fn tlvs_are_marked_as_known_unknown_or_malformed() {
    let all: [&[u8]; 5] = [
        &[UNRECOGNISED, 1, 0, 2, 5, 5],
        &[0, 77, 0, 1, 9],
        &[UNRECOGNISED, 3, 0, 1, 9],
        // Whoever sends it wants more octets back than it sent.
        &[UNRECOGNISED, 12, 0, 8, 0, 0, 5, 0, 0, 9, 0, 0],
        &[0, 3, 0, 200, 1, 2],
    ];
    let (behind, _) = answered(&all, Surroundings::default(), None);
    let marks: Vec<(u8, u8, bool)> = Tlvs::new(&behind).map(|tlv| (tlv.kind, tlv.flags, tlv.whole)).collect();
    assert_eq!(
        marks,
        [(1, 0, true), (77, UNRECOGNISED, true), (3, MALFORMED, true), (12, UNRECOGNISED, true), (3, MALFORMED, false)]
    );
}

#[test]
fn tlvs_are_answered_where_they_stand() {
    let surroundings = Surroundings {
        ports: (862, 40_000),
        // AF41, and congestion experienced.
        traffic_class: Some(34 << 2 | 3),
        synchronised: true,
        counts: Some((0x0102, 0x0103)),
        last: Some((8, 0x1122_3344_5566_7788)),
    };
    let all: [&[u8]; 7] = [
        &[UNRECOGNISED, 2, 0, 12, 0, 0, 0, 0, UNRECOGNISED, 4, 0, 4, 0, 0, 0, 0],
        &[UNRECOGNISED, 3, 0, 4, 0, 0, 0, 0],
        // EF is wanted back.
        &[UNRECOGNISED, 4, 0, 4, 46 << 2, 0, 0, 0],
        &[UNRECOGNISED, 5, 0, 12, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0],
        &[UNRECOGNISED, 6, 0, 4, 0x10, 1, 0, 0],
        &[UNRECOGNISED, 7, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
        &[UNRECOGNISED, 1, 0, 0],
    ];
    let (behind, extended) = answered(&all, surroundings, None);
    assert_eq!(extended.dscp, Some(46));
    let values: Vec<&[u8]> = Tlvs::new(&behind).map(|tlv| tlv.value).collect();
    let wanted: [&[u8]; 7] = [
        &[3, 94, 0x9c, 0x40, UNRECOGNISED, 4, 0, 4, 0, 0, 0, 0],
        &[1, 2, 1, 2],
        // 101110 100010 11 00.
        &[0b1011_1010, 0b0010_1100, 0, 0],
        &[0, 0, 0, 7, 0, 0, 1, 2, 0, 0, 1, 3],
        &[0x10, 1, 0, 0],
        &[0, 0, 0, 8, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 2, 0, 0, 0],
        &[],
    ];
    assert_eq!(values, wanted);
    assert!(Tlvs::new(&behind).all(|tlv| tlv.flags == 0 && tlv.whole));
    // A stateless reflector knows nothing of what was before.
    let (behind, _) = answered(&all, Surroundings::default(), None);
    let follow_up = Tlvs::new(&behind).find(|tlv| tlv.kind == 7).unwrap();
    assert_eq!(follow_up.value, [0; 16]);
}

#[test]
fn sealed_tlvs_are_checked_and_sealed_anew() {
    let asked = [UNRECOGNISED, 3, 0, 4, 0, 0, 0, 0];
    let mut sealed = [&asked[..], &[0; 20]].concat();
    seal(&mut sealed, 0x0102_0304, &key()).unwrap();
    assert_eq!(sealed[..8], asked);
    let (behind, _) = answered(&[&sealed], Surroundings::default(), Some(&key()));
    assert_eq!((behind[0], &behind[4..8]), (0, &[5, 2, 5, 2][..]));
    let whole = [vec![0; 112], behind.clone()].concat();
    assert!(!is_sealed(&whole, 112, &key()), "that packet's number is 0");
    let mut whole = whole;
    whole[..4].copy_from_slice(&9u32.to_be_bytes());
    assert!(is_sealed(&whole, 112, &key()));
    whole[116] ^= 1;
    assert!(!is_sealed(&whole, 112, &key()));
    // Forged, cut off from its packet, or with something behind: nothing is done, and all are
    // marked.
    let mut forged = sealed.clone();
    forged[5] ^= 1;
    let mut other = [&asked[..], &[0; 20]].concat();
    seal(&mut other, 1, &key()).unwrap();
    for wrong in [forged, other, [&sealed[..], &asked].concat()] {
        let (behind, extended) = answered(&[&wrong], Surroundings::default(), Some(&key()));
        assert_eq!(extended, Extended::default());
        for (tlv, before) in Tlvs::new(&behind).zip(Tlvs::new(&wrong)) {
            assert_eq!((tlv.flags, tlv.value), (before.flags | INTEGRITY, before.value));
        }
    }
    // Without a key nobody can tell.
    let (behind, _) = answered(&[&sealed], Surroundings::default(), None);
    let flags: Vec<u8> = Tlvs::new(&behind).map(|tlv| tlv.flags).collect();
    assert_eq!(flags, [0, UNRECOGNISED]);
    assert_eq!(seal(&mut [0; 19], 0, &key()), None);
}

proptest! {
    #[test]
    fn any_octets_end_and_keep_their_length(octets in proptest::collection::vec(any::<u8>(), 0..300), keyed: bool) {
        let key = keyed.then(key);
        let _ = SessionPacket::parse(&octets, key.as_ref());
        if let Ok(reply) = ReflectedPacket::parse(&octets, key.as_ref()) {
            let _ = (reply.received.unix_ns(), reply.transmitted.unix_ns(), reply.error.error_ns());
        }
        let mut answered = octets.clone();
        let result = reflect(&mut answered, &seen(None), key.as_ref());
        prop_assert_eq!(answered.len(), octets.len());
        if result.is_err() {
            prop_assert_eq!(&answered, &octets);
        }
        prop_assert!(Tlvs::new(&octets).count() <= octets.len() / 4);
    }

    #[test]
    fn a_packet_is_read_as_written(seq: u32, wire: u64, error in 1..u16::MAX, ssid: u16, keyed: bool) {
        let key = keyed.then(key);
        let Some(error) = ErrorEstimate::parse(error) else { return Ok(()) };
        let packet = SessionPacket { seq, time: StampTime::from_wire(wire, error.format), error, ssid };
        let mut octets = [3; 150];
        packet.write(&mut octets, key.as_ref()).unwrap();
        prop_assert_eq!(SessionPacket::parse(&octets, key.as_ref()), Ok(packet));
    }
}
