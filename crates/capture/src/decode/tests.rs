//! Headers of every kind that is understood, and of those that are not.

use std::net::IpAddr;

use super::*;
use crate::packet::LinkType;

const SEGMENT: [u8; 32] = [
    0x03, 0xE8, 0x00, 0x50, 0, 0, 0, 9, 0, 0, 0, 7, 0x80, 0x18, 0x01, 0x00, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 5, 0, 0,
    0, 6,
];

fn ip4(payload_octets: u16, protocol: u8, options: usize, fragment: u16) -> Vec<u8> {
    let header = 20 + options;
    let total = u16::try_from(header + 32).unwrap() + payload_octets;
    let mut packet = vec![0x40 | u8::try_from(header / 4).unwrap(), 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0x12, 0x34]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([63, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(vec![1; options]);
    packet.extend(SEGMENT);
    packet
}

fn ip6(extensions: &[u8], first: u8, payload_octets: u16) -> Vec<u8> {
    let length = u16::try_from(extensions.len() + 32).unwrap() + payload_octets;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([first, 60]);
    packet.extend(
        [[0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], [0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]]
            .concat(),
    );
    packet.extend(extensions);
    packet.extend(SEGMENT);
    packet
}

fn framed(head: &[u8], packet: &[u8]) -> Vec<u8> {
    [head, packet].concat()
}

fn seen(link: LinkType, octets: &[u8]) -> Decoded {
    decode(&RawPacket {
        at_ns: Some(77),
        link,
        octets,
        whole_octets: u32::try_from(octets.len()).unwrap(),
        vlan: None,
        outgoing: None,
    })
}

#[track_caller]
fn tcp(link: LinkType, octets: &[u8]) -> TcpPacket {
    match seen(link, octets) {
        Decoded::Tcp(packet) => packet,
        other => panic!("{other:?}"),
    }
}

fn ethernet(kinds: &[u8], packet: &[u8]) -> Vec<u8> {
    framed(&[&[2; 12], kinds].concat(), packet)
}

#[test]
fn a_tcp_packet_in_full() {
    let packet = tcp(LinkType::ETHERNET, &ethernet(&[8, 0], &ip4(1_000, 6, 0, 0x4000)));
    assert_eq!(packet.source.to_string(), "10.0.0.1:1000");
    assert_eq!(packet.destination.to_string(), "10.0.0.2:80");
    assert_eq!((packet.hop_limit, packet.vlan), (63, 0));
    let seen = packet.seen;
    assert_eq!((seen.at_ns, seen.ip_octets, seen.link_octets, seen.ip_id), (77, 1_052, 14, Some(0x1234)));
    let fields = seen.tcp;
    assert_eq!((fields.sequence, fields.acknowledgement, fields.payload_octets), (9, Some(7), 1_000));
    assert_eq!((fields.window, fields.timestamps), (256, Some((5, 6))));
    assert!(!fields.is_boundary());
}

#[test]
fn links_of_every_kind() {
    let four = ip4(1_000, 6, 0, 0);
    let six = ip6(&[], 6, 1_000);
    let cases: [(LinkType, Vec<u8>, u16, u32); 19] = [
        (LinkType::ETHERNET, ethernet(&[0x81, 0, 0x20, 5, 8, 0], &four), 18, 0x1005),
        (LinkType::ETHERNET, ethernet(&[0x88, 0xA8, 0, 7, 0x81, 0, 0, 5, 8, 0], &four), 22, 0x1007_1005),
        (LinkType::ETHERNET, ethernet(&[0x86, 0xDD], &six), 14, 0),
        (LinkType::ETHERNET, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, 0x21], &four), 22, 0),
        (LinkType::ETHERNET, ethernet(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], &four), 22, 0),
        (LinkType::ETHERNET, ethernet(&[0, 200, 0xAA, 0xAA, 3, 0, 0, 0, 8, 0], &four), 22, 0),
        (LinkType::RAW, four.clone(), 0, 0),
        (LinkType::new(12), six.clone(), 0, 0),
        (LinkType::IPV6, six.clone(), 0, 0),
        (LinkType::NULL, framed(&[2, 0, 0, 0], &four), 4, 0),
        (LinkType::NULL, framed(&[0, 0, 0, 30], &six), 4, 0),
        (LinkType::LOOP, framed(&[0, 0, 0, 2], &four), 4, 0),
        (LinkType::LINUX_SLL, framed(&[0, 4, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0], &four), 16, 0),
        (LinkType::LINUX_SLL2, framed(&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0], &four), 20, 0),
        (LinkType::PPP, framed(&[0xFF, 3, 0, 0x21], &four), 4, 0),
        (LinkType::PPP, framed(&[0x21], &four), 1, 0),
        (LinkType::PPP_HDLC, framed(&[0xFF, 3, 0, 0x57], &six), 4, 0),
        (
            LinkType::RADIOTAP,
            framed(
                &[&[0, 0, 8, 0, 0, 0, 0, 0, 0x88, 1][..], &[0; 24], &[0xAA, 0xAA, 3, 0, 0, 0, 8, 0]].concat(),
                &four,
            ),
            42,
            0,
        ),
        (
            LinkType::IEEE_802_11,
            framed(&[&[8, 0][..], &[0; 22], &[0xAA, 0xAA, 3, 0, 0, 0, 0x86, 0xDD]].concat(), &six),
            32,
            0,
        ),
    ];
    for (link, octets, link_octets, vlan) in cases {
        let packet = tcp(link, &octets);
        assert_eq!((packet.seen.link_octets, packet.vlan), (link_octets, vlan), "{link:?}");
        assert_eq!(packet.seen.tcp.payload_octets, 1_000);
        let sent = matches!(link, LinkType::LINUX_SLL | LinkType::LINUX_SLL2);
        assert_eq!(packet.outgoing, sent.then_some(true));
        // Cut anywhere in its headers it is unreadable or nothing, and no more.
        for end in 0..usize::from(link_octets) + 40 {
            assert!(!matches!(seen(link, &octets[..end]), Decoded::Tcp(_)), "{link:?} {end}");
        }
    }
}

#[test]
fn a_tag_beside_the_frame_is_the_outer_one() {
    let inner = ethernet(&[0x81, 0, 0, 5, 8, 0], &ip4(0, 6, 0, 0));
    let raw = RawPacket {
        at_ns: Some(0),
        link: LinkType::ETHERNET,
        octets: &inner,
        whole_octets: 70,
        vlan: Some(0x6007),
        outgoing: Some(false),
    };
    let Decoded::Tcp(packet) = decode(&raw) else { panic!() };
    assert_eq!((packet.vlan, packet.seen.link_octets), (0x1007_1005, 22));
    assert_eq!(packet.outgoing, Some(false));
}

#[test]
fn ip_headers_with_options_extensions_and_without_length() {
    assert_eq!(tcp(LinkType::RAW, &ip4(10, 6, 40, 0)).seen.tcp.payload_octets, 10);
    // Hop-by-hop, routing, destination options, authentication.
    let chain = [
        vec![43, 0, 0, 0, 0, 0, 0, 0],
        vec![60, 2, 0, 0],
        vec![0; 20],
        vec![51, 0, 0, 0, 0, 0, 0, 0],
        vec![6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    let packet = tcp(LinkType::RAW, &ip6(&chain, 0, 1_000));
    assert_eq!(packet.seen.tcp.payload_octets, 1_000);
    assert_eq!(packet.source.ip(), "2001::1".parse::<IpAddr>().unwrap());
    // Longer than the field can say: what the frame held counts.
    let mut long = ip4(0, 6, 0, 0);
    long[2..4].copy_from_slice(&[0, 0]);
    let raw = RawPacket {
        at_ns: Some(0),
        link: LinkType::ETHERNET,
        octets: &ethernet(&[8, 0], &long),
        whole_octets: 14 + 20 + 32 + 100_000,
        vlan: None,
        outgoing: None,
    };
    let Decoded::Tcp(packet) = decode(&raw) else { panic!() };
    assert_eq!((packet.seen.tcp.payload_octets, packet.seen.ip_octets), (100_000, 100_052));
}

#[test]
fn what_is_not_used_is_reported_apart() {
    assert_eq!(seen(LinkType::RAW, &ip4(0, 6, 0, 0x2000)), Decoded::Fragment);
    assert_eq!(seen(LinkType::RAW, &ip4(0, 6, 0, 0x0010)), Decoded::Fragment);
    assert_eq!(seen(LinkType::RAW, &ip6(&[6, 0, 0, 9, 0, 0, 0, 1], 44, 0)), Decoded::Fragment);
    assert!(matches!(seen(LinkType::RAW, &ip6(&[6, 0, 0, 0, 0, 0, 0, 1], 44, 0)), Decoded::Tcp(_)));
    assert_eq!(seen(LinkType::RAW, &ip4(0, 17, 0, 0)), Decoded::Udp);
    assert_eq!(seen(LinkType::RAW, &ip4(0, 1, 0, 0)), Decoded::OtherIp);
    assert_eq!(seen(LinkType::ETHERNET, &ethernet(&[8, 6], &[0; 28])), Decoded::OtherLink);
    let malformed = Decoded::Unreadable(Unreadable::Malformed);
    assert_eq!(seen(LinkType::RAW, &[0x50; 60]), malformed);
    let mut short_header = ip4(0, 6, 0, 0);
    short_header[0] = 0x44;
    assert_eq!(seen(LinkType::RAW, &short_header), malformed);
    let mut long_tcp = ip4(0, 6, 0, 0);
    long_tcp[32] = 0xF0;
    assert_eq!(seen(LinkType::RAW, &long_tcp), malformed);
    let unknown = Decoded::Unreadable(Unreadable::LinkType(147));
    assert_eq!(seen(LinkType::new(147), &ip4(0, 6, 0, 0)), unknown);
}

#[test]
fn handshake_options_are_read_in_any_order() {
    let mut packet = ip4(0, 6, 0, 0);
    packet.truncate(40);
    let options = [8u8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 4, 2, 1, 3, 3, 200, 2, 4, 5, 0xB4];
    packet.extend(options);
    packet[3] = 60;
    packet[32] = 0xA0;
    packet[33] = 0x02;
    let read = tcp(LinkType::RAW, &packet);
    assert_eq!((read.mss, read.window_scale, read.seen.tcp.timestamps), (Some(1_460), Some(14), Some((1, 0))));
    assert_eq!(read.seen.tcp.payload_octets, 0);
    // Kept in part: what is there counts.
    let read = tcp(LinkType::RAW, &packet[..52]);
    assert_eq!((read.mss, read.seen.tcp.timestamps), (None, Some((1, 0))));
}

#[test]
fn an_unfinished_checksum_is_the_pseudo_header_s() {
    let mut packet = ip4(1_000, 6, 0, 0);
    assert!(!tcp(LinkType::RAW, &packet).checksum_partial);
    // 0a00 + 0001 + 0a00 + 0002 + 6 + 1032.
    let sum: u16 = 0x0A00 + 1 + 0x0A00 + 2 + 6 + 1_032;
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    assert!(tcp(LinkType::RAW, &packet).checksum_partial);
    let mut packet = ip6(&[], 6, 0);
    let sum: u16 = 0x2001 + 1 + 0x2001 + 2 + 6 + 32;
    packet[56..58].copy_from_slice(&sum.to_be_bytes());
    assert!(tcp(LinkType::RAW, &packet).checksum_partial);
}
