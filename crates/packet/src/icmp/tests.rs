use proptest::prelude::*;

use super::*;

/// A quoted UDP packet of 300 octets from 192.0.2.1 port 40000 to 198.51.100.7 port 33434, whose
/// hop limit ran out; as many octets of it as asked for.
fn quote_v4(octets: usize) -> Vec<u8> {
    let mut quote = vec![0x45, 0, 1, 44, 0x12, 0x34, 0x40, 0, 1, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7];
    quote.extend([0x9c, 0x40, 0x82, 0x9a, 1, 24, 0xab, 0xcd]);
    quote.resize(octets, 0x5a);
    quote
}

fn message_v4(kind: u8, code: u8, words: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0, 0, words, 0, 0];
    message.extend(body);
    let sum = checksum(&message).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    message
}

/// Version 2, and objects of these classes and types.
fn extensions(objects: &[(u8, u8, &[u8])], summed: bool) -> Vec<u8> {
    let mut octets = vec![0x20, 0, 0, 0];
    for (class, kind, payload) in objects {
        octets.extend(u16::try_from(payload.len() + 4).unwrap().to_be_bytes());
        octets.extend([*class, *kind]);
        octets.extend(*payload);
    }
    if summed {
        let sum = checksum(&octets).to_be_bytes();
        octets[2..4].copy_from_slice(&sum);
    }
    octets
}

/// RFC 4950: label 24001, class 5, bottom, TTL 1.
const LABEL: [u8; 4] = [0x05, 0xdc, 0x1b, 0x01];

#[test]
fn the_least_quote_tells_ports_length_and_checksum() {
    let message = message_v4(11, 0, 0, &quote_v4(28));
    let error = IcmpError::parse_v4(&message).unwrap();
    assert_eq!((error.kind, error.extensions), (IcmpKind::TimeExceeded, None));
    let quoted = error.quoted;
    assert_eq!(quoted.ports(), Some((40_000, 33_434)));
    assert_eq!(quoted.udp_check(), Some((280, 0xabcd)));
    assert_eq!((quoted.ip_octets, quoted.id, quoted.hop_limit), (300, Some(0x1234), 1));
    assert_eq!(quoted.destination.to_string(), "198.51.100.7");
}

#[test]
fn kinds_of_both_versions() {
    let quote = quote_v4(28);
    for (kind, code, expected) in [
        (3, 3, IcmpKind::PortUnreachable),
        (3, 13, IcmpKind::Unreachable { code: 13 }),
        (11, 1, IcmpKind::TimeExceeded),
    ] {
        assert_eq!(IcmpError::parse_v4(&message_v4(kind, code, 0, &quote)).unwrap().kind, expected);
    }
    let mut too_big = message_v4(3, 4, 0, &quote);
    too_big[6..8].copy_from_slice(&1400u16.to_be_bytes());
    assert_eq!(IcmpError::parse_v4(&too_big), Err(IcmpParseError::Checksum));
    too_big[2..4].fill(0);
    let sum = checksum(&too_big).to_be_bytes();
    too_big[2..4].copy_from_slice(&sum);
    assert_eq!(IcmpError::parse_v4(&too_big).unwrap().kind, IcmpKind::PacketTooBig { mtu: 1400 });
    assert_eq!(IcmpError::parse_v4(&message_v4(0, 0, 0, &quote)), Err(IcmpParseError::NoError(0)));
}

#[test]
fn a_v6_quote_behind_options() {
    let mut quote = vec![0x60, 0, 0, 0, 0, 24, 0, 2];
    quote.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    quote.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    quote.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    quote.extend([0x9c, 0x40, 0x82, 0x9a, 0, 16, 0xab, 0xcd]);
    for (kind, code, word, expected) in [
        (3, 0, 0u32, IcmpKind::TimeExceeded),
        (1, 4, 0, IcmpKind::PortUnreachable),
        (2, 0, 1280, IcmpKind::PacketTooBig { mtu: 1280 }),
    ] {
        let mut message = vec![kind, code, 0, 0];
        message.extend(word.to_be_bytes());
        message.extend(&quote);
        let error = IcmpError::parse_v6(&message).unwrap();
        assert_eq!((error.kind, error.quoted.ports()), (expected, Some((40_000, 33_434))));
        assert_eq!((error.quoted.ip_octets, error.quoted.hop_limit, error.quoted.id), (64, 2, None));
    }
}

#[test]
fn labels_are_read_where_the_length_says() {
    let mut body = quote_v4(128);
    body.extend(extensions(&[(1, 1, &LABEL)], true));
    let message = message_v4(11, 0, 32, &body);
    let error = IcmpError::parse_v4(&message).unwrap();
    let labels: Vec<MplsLabel> = error.extensions.unwrap().labels().collect();
    let label = MplsLabel { label: 24_001, traffic_class: 5, bottom: true, ttl: 1 };
    assert_eq!(labels, [label]);
    // The quote ends where the extensions begin.
    assert_eq!(error.quoted.transport.len(), 108);
}

/// RFC 4884 §5.5.
#[test]
fn old_routers_say_no_length_and_need_a_checksum() {
    for (summed, found) in [(true, true), (false, false)] {
        let mut body = quote_v4(128);
        body.extend(extensions(&[(1, 1, &LABEL)], summed));
        let message = message_v4(11, 0, 0, &body);
        let error = IcmpError::parse_v4(&message).unwrap();
        assert_eq!(error.extensions.is_some(), found);
    }
}

/// RFC 5837 §4.2: incoming, with index, address, name and MTU.
#[test]
fn interfaces_are_read_field_by_field() {
    let mut payload = 7u32.to_be_bytes().to_vec();
    payload.extend([0, 1, 0, 0, 192, 0, 2, 9]);
    payload.extend([8, b'e', b't', b'h', b'0', 0, 0, 0]);
    payload.extend(1500u32.to_be_bytes());
    let octets = extensions(&[(2, 0b1111, &payload), (9, 3, &[1, 2])], true);
    let read = Extensions::parse(&octets).unwrap();
    let expected = InterfaceInfo {
        role: InterfaceRole::Incoming,
        index: Some(7),
        address: Some("192.0.2.9".parse().unwrap()),
        name: Some("eth0".to_owned()),
        mtu: Some(1500),
    };
    let other = Object::Other { class: 9, kind: 3, octets: 2 };
    assert_eq!(read.objects, [Object::Interface(expected), other]);
    // Cut in the name: index and address stay.
    let cut = extensions(&[(2, 0b1111, &payload[..14])], true);
    let Object::Interface(info) = &Extensions::parse(&cut).unwrap().objects[0] else {
        panic!("an interface");
    };
    assert_eq!((info.index, info.address.is_some(), &info.name, info.mtu), (Some(7), true, &None, None));
}

#[test]
fn wrong_extensions_are_named() {
    let good = extensions(&[(1, 1, &LABEL)], true);
    let mut version = good.clone();
    version[0] = 0x10;
    let mut sum = good.clone();
    sum[7] ^= 1;
    let mut length = extensions(&[(1, 1, &LABEL)], false);
    length[5] = 3;
    let mut beyond = extensions(&[(1, 1, &LABEL)], false);
    beyond[5] = 9;
    assert_eq!(Extensions::parse(&version), Err(ExtensionsError::Version(1)));
    assert_eq!(Extensions::parse(&sum), Err(ExtensionsError::Checksum));
    assert_eq!(Extensions::parse(&length), Err(ExtensionsError::Length(3)));
    assert_eq!(Extensions::parse(&beyond), Err(ExtensionsError::Length(9)));
    assert_eq!(Extensions::parse(&good[..6]), Err(ExtensionsError::Checksum));
    assert_eq!(Extensions::parse(&good[..3]), Err(ExtensionsError::Short("their header")));
}

/// A Linux kernel takes ICMP header, quoted IP header and UDP header off, and says where in the
/// rest the extensions begin.
#[test]
fn what_a_kernel_leaves_is_read_alike() {
    let mut rest = quote_v4(128).split_off(28);
    rest.extend(extensions(&[(1, 1, &LABEL)], true));
    for at in [Some(100), None] {
        let found = extensions_behind(&rest, at, 28).unwrap();
        assert_eq!(found.labels().count(), 1);
    }
    assert_eq!(extensions_behind(&rest, Some(5000), 28), None);
    assert_eq!(extensions_behind(&rest[..90], None, 28), None);
    assert_eq!(extensions_behind(&rest, None, 1000), None);
}

proptest! {
    #[test]
    fn any_octets_are_read_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..300), reported in 0usize..300) {
        let _ = IcmpError::parse_v4(&octets);
        let _ = IcmpError::parse_v6(&octets);
        let _ = Quoted::parse(&octets, false);
        let _ = Quoted::parse(&octets, true);
        if let Ok(read) = Extensions::parse(&octets) {
            prop_assert!(read.objects.len() <= MAX_OBJECTS);
        }
        let _ = extensions_behind(&octets, Some(reported), 28);
        let _ = extensions_behind(&octets, None, reported);
    }

    /// Behind a right checksum the objects themselves are reached.
    #[test]
    fn any_objects_end(objects in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut octets = vec![0x20, 0, 0, 0];
        octets.extend(&objects);
        let sum = checksum(&octets).to_be_bytes();
        octets[2..4].copy_from_slice(&sum);
        if let Ok(read) = Extensions::parse(&octets) {
            let labels = read.labels().count();
            prop_assert!(labels * 4 <= objects.len());
        }
    }
}
