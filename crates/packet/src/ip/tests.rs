use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::checksum::checksum;

/// The IPv4 header that is used as the example of the checksum in many texts: checksum 0xb861.
const EXAMPLE: [u8; 20] = [
    0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00,
    0xc7,
];

fn example() -> Vec<u8> {
    let mut packet = EXAMPLE.to_vec();
    packet.resize(0x73, 0);
    packet
}

fn ipv6(first: u8, behind: &[u8]) -> Vec<u8> {
    let plain = PlainHeader {
        source: Ipv6Addr::LOCALHOST.into(),
        destination: "fd00::2".parse().unwrap(),
        protocol: first,
        hop_limit: 63,
        service: 0,
    };
    let mut packet = Vec::new();
    plain.write(behind.len(), &mut packet).unwrap();
    packet.extend(behind);
    packet
}

#[test]
fn reads_ipv4() {
    let (header, ip_octets) = IpHeader::read_whole(&example()).unwrap();
    assert_eq!((ip_octets, header.hop_limit, header.protocol), (115, 64, 17));
    assert_eq!(header.source.to_string(), "192.168.0.1");
    assert_eq!(header.destination.to_string(), "192.168.0.199");
    assert!(!header.is_later_fragment() && !header.more_fragments);
    assert_eq!(header.transport(&example()).unwrap().octets.len(), 95);
    // Cut short it still says what it is.
    assert_eq!(IpHeader::read(&EXAMPLE), Ok(header));
    assert_eq!(IpHeader::read_whole(&EXAMPLE), None);
}

#[test]
fn reads_ipv6() {
    let packet = ipv6(17, &[0; 8]);
    let (header, ip_octets) = IpHeader::read_whole(&packet).unwrap();
    assert_eq!((ip_octets, header.hop_limit, header.protocol), (48, 63, 17));
    assert_eq!(header.destination.to_string(), "fd00::2");
    assert_eq!(IpHeader::read_whole(&packet[..47]), None);
    // Nothing behind the header is a packet; the length is what a jumbogram would have, too.
    let empty = ipv6(59, &[]);
    assert_eq!(IpHeader::read(&empty).unwrap().ip_octets, None);
    assert_eq!(IpHeader::read_whole(&empty).unwrap().1, 40);
}

#[test]
fn contradictions_are_malformed_and_cuts_are_short() {
    for (at, value, whole) in [(0, 0x44, false), (0, 0x55, false), (3, 19, true)] {
        let mut packet = example();
        packet[at] = value;
        let error = IpHeader::read(&packet);
        assert_eq!(error == Err(HeaderError::Malformed), !whole, "{at}");
        assert_eq!(IpHeader::read_whole(&packet), None, "{at}");
    }
    let mut options = example();
    options[0] = 0x4f;
    for (packet, header_octets) in [(example(), 20), (ipv6(17, &[0; 8]), 40), (options, 60)] {
        for length in 0..header_octets {
            assert_eq!(IpHeader::read(&packet[..length]), Err(HeaderError::Short), "{length}");
        }
        assert_eq!(IpHeader::read(&packet[..header_octets]).unwrap().header_octets, header_octets);
    }
}

/// Hop by hop, routing, destination options, authentication, atomic fragment, TCP.
#[test]
fn extension_headers_are_passed_over() {
    let chain = [
        vec![43, 0, 0, 0, 0, 0, 0, 0],
        vec![60, 2, 0, 0],
        vec![0; 20],
        vec![51, 0, 0, 0, 0, 0, 0, 0],
        vec![44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        vec![6, 0, 0, 0, 0, 0, 0, 1],
        vec![9; 20],
    ]
    .concat();
    let packet = ipv6(0, &chain);
    let header = IpHeader::read(&packet).unwrap();
    let expected = Transport { protocol: 6, fragment: false, header_octets: 40 + 60, octets: &[9; 20] };
    assert_eq!(header.transport(&packet), Ok(expected));
    for length in 0..100 {
        assert_eq!(header.transport(&packet[..length]), Err(HeaderError::Short), "{length}");
    }
    // A fragment's offset is told in its extension header.
    let later = ipv6(44, &[6, 0, 0, 9, 0, 0, 0, 1, 1, 2]);
    assert!(IpHeader::read(&later).unwrap().transport(&later).unwrap().fragment);
    // More of them than anybody sends are not followed.
    let endless = ipv6(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(20));
    let transport = IpHeader::read(&endless).unwrap().transport(&endless).unwrap();
    assert_eq!((transport.protocol, transport.header_octets), (60, 40 + 64));
}

/// TTL 64 to 61 takes 0x0300 from the word, so the checksum gains it: 0xb861 + 0x0300.
#[test]
fn hop_limit_changes_the_checksum_by_itself() {
    let mut packet = example();
    set_hop_limit(&mut packet, 61);
    assert_eq!(packet[8], 61);
    assert_eq!([packet[10], packet[11]], [0xbb, 0x61]);
    assert_eq!(checksum(&packet[..20]), 0);
}

#[test]
fn what_is_too_long_or_of_two_versions_is_not_written() {
    let plain = PlainHeader {
        source: Ipv4Addr::LOCALHOST.into(),
        destination: Ipv4Addr::LOCALHOST.into(),
        protocol: 17,
        hop_limit: 64,
        service: 0,
    };
    let mut packet = Vec::new();
    assert_eq!(plain.write(65_516, &mut packet), None);
    let mixed = PlainHeader { destination: Ipv6Addr::LOCALHOST.into(), ..plain };
    assert_eq!(mixed.write(8, &mut packet), None);
    assert!(packet.is_empty());
    assert_eq!(plain.write(65_515, &mut packet), Some(()));
}

fn plain_headers() -> impl Strategy<Value = PlainHeader> {
    let addresses = prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(from, to)| (IpAddr::V4(from), IpAddr::V4(to))),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(from, to)| (IpAddr::V6(from), IpAddr::V6(to))),
    ];
    (addresses, any::<(u8, u8, u8)>()).prop_map(|((source, destination), (protocol, hop_limit, service))| PlainHeader {
        source,
        destination,
        protocol,
        hop_limit,
        service,
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(plain in plain_headers(), payload in 1usize..65_515) {
        let mut packet = Vec::new();
        plain.write(payload, &mut packet).unwrap();
        let header = IpHeader::read(&packet).unwrap();
        prop_assert_eq!((header.source, header.destination), (plain.source, plain.destination));
        prop_assert_eq!((header.protocol, header.hop_limit), (plain.protocol, plain.hop_limit));
        prop_assert_eq!(header.header_octets, packet.len());
        prop_assert_eq!(header.ip_octets, u32::try_from(packet.len() + payload).ok());
        prop_assert!(!header.more_fragments && header.fragment_offset == 0);
        let service = if header.is_ipv6() { packet[0] << 4 | packet[1] >> 4 } else { packet[1] };
        prop_assert_eq!(service, plain.service);
        prop_assert!(header.is_ipv6() || checksum(&packet) == 0);
    }

    #[test]
    fn no_octets_panic(mut octets in proptest::collection::vec(any::<u8>(), 0..200), version in 0u8..16, limit: u8) {
        if let Some(first) = octets.first_mut() {
            *first = *first & 0x0f | version << 4;
        }
        if let Ok(header) = IpHeader::read(&octets) {
            prop_assert!(header.header_octets <= octets.len());
            if let Ok(transport) = header.transport(&octets) {
                prop_assert_eq!(transport.header_octets + transport.octets.len(), octets.len());
            }
        }
        if let Some((header, ip_octets)) = IpHeader::read_whole(&octets) {
            prop_assert!(header.header_octets <= usize::from(ip_octets) && usize::from(ip_octets) <= octets.len());
        }
        set_hop_limit(&mut octets, limit);
    }

    #[test]
    fn every_hop_limit_keeps_a_good_checksum_good(limits in proptest::collection::vec(any::<u8>(), 1..20)) {
        let mut packet = example();
        for limit in limits {
            set_hop_limit(&mut packet, limit);
            prop_assert_eq!(packet[8], limit);
            prop_assert_eq!(checksum(&packet[..20]), 0);
        }
    }
}
