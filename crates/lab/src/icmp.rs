//! ICMP errors and echoes as a virtual router sends them.

use std::net::IpAddr;

use narrows_packet::icmp::{self, ICMP_OCTETS, IcmpKind, Message};
use narrows_packet::ip::{IPV4_OCTETS, IPV6_OCTETS, IpHeader, PlainHeader};
use narrows_packet::{ICMPV4, ICMPV6};

/// TTL and hop limit of what routers send (RFC 1700: 64).
const ROUTER_HOP_LIMIT: u8 = 64;
/// RFC 1812 §4.3.2.5: ICMP errors should have precedence 6 or 7 (internetwork control is 6).
const PRECEDENCE: u8 = 0xc0;

/// Why a router sends an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The hop limit ran out (type 11 code 0; `ICMPv6` type 3 code 0).
    HopLimitExceeded,
    /// It is for a port of the router itself, on which nobody listens (type 3 code 3; `ICMPv6` type
    /// 1 code 4).
    PortUnreachable,
    /// The packet is larger than the next link takes (type 3 code 4 with the MTU of RFC 1191;
    /// `ICMPv6` type 2).
    TooBig {
        /// MTU of that link in IP octets.
        mtu: u16,
    },
}

/// Builds the ICMP error that the router `from` sends about `offender`, into `into` (cleared
/// first), at most `max_octets` long but always with the header and 8 octets quoted (RFC 792; IPv6
/// at most 1280 octets, RFC 4443 §2.4). Returns `false` and leaves `into` empty if none may be
/// sent: about another error, a later fragment, or a packet from or to no single host (RFC 1812
/// §4.3.2.7, RFC 4443 §2.4 e).
pub(crate) fn error(offender: &[u8], from: IpAddr, trouble: Trouble, max_octets: u16, into: &mut Vec<u8>) -> bool {
    into.clear();
    let Some((header, ip_octets)) = IpHeader::read_whole(offender) else {
        return false;
    };
    let offender = &offender[..usize::from(ip_octets)];
    if !may_answer(&header, offender) {
        return false;
    }
    let (outer, most) = match from {
        IpAddr::V4(_) => (IPV4_OCTETS, usize::from(max_octets)),
        IpAddr::V6(_) => (IPV6_OCTETS, usize::from(max_octets).min(1280)),
    };
    let least = header.header_octets + 8;
    let quote = most.saturating_sub(outer + ICMP_OCTETS).max(least).min(offender.len());
    let kind = match trouble {
        Trouble::HopLimitExceeded => IcmpKind::TimeExceeded,
        Trouble::PortUnreachable => IcmpKind::PortUnreachable,
        Trouble::TooBig { mtu } => IcmpKind::PacketTooBig { mtu: mtu.into() },
    };
    let plain = plain(from, header.source, PRECEDENCE);
    icmp::write_packet(&plain, Message::Error(kind), &offender[..quote], into).is_some()
}

/// Builds the answer of the router `from` to an echo request addressed to it, into `into` (cleared
/// first). Returns `false` and leaves `into` empty if `request` is no echo request.
pub(crate) fn echo_reply(request: &[u8], from: IpAddr, into: &mut Vec<u8>) -> bool {
    into.clear();
    let Some((header, ip_octets)) = IpHeader::read_whole(request) else {
        return false;
    };
    let expected = if from.is_ipv6() { ICMPV6 } else { ICMPV4 };
    if header.protocol != expected || header.is_later_fragment() || !is_one_host(header.source) {
        return false;
    }
    let body = &request[header.header_octets..usize::from(ip_octets)];
    let Some((Message::EchoRequest(echo), data)) = Message::read_echo(body, from.is_ipv6()) else {
        return false;
    };
    icmp::write_packet(&plain(from, header.source, 0), Message::EchoReply(echo), data, into).is_some()
}

fn may_answer(header: &IpHeader, offender: &[u8]) -> bool {
    !header.is_later_fragment()
        && is_one_host(header.source)
        && is_one_host(header.destination)
        && !icmp::may_be_error(header, offender)
}

fn is_one_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_multicast() && !address.is_unspecified() && !address.is_loopback() && !broadcast
}

/// The header of what the router `from` sends.
fn plain(from: IpAddr, to: IpAddr, service: u8) -> PlainHeader {
    PlainHeader { source: from, destination: to, protocol: 0, hop_limit: ROUTER_HOP_LIMIT, service }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use narrows_packet::UDP;
    use narrows_packet::checksum::{Sum, checksum};
    use proptest::prelude::*;

    use super::*;

    fn udp_v4(data: usize) -> Vec<u8> {
        let mut packet = udp_header([10, 77, 0, 1].into(), [10, 77, 3, 1].into(), data);
        packet.extend([0x12, 0x34, 0x82, 0x9b, 0, 0, 0xab, 0xcd]);
        packet.resize(28 + data, 7);
        packet
    }

    fn udp_v6(data: usize) -> Vec<u8> {
        let mut packet = udp_header("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap(), data);
        packet.resize(48 + data, 7);
        packet
    }

    fn udp_header(from: IpAddr, to: IpAddr, data: usize) -> Vec<u8> {
        let mut packet = Vec::new();
        let header = PlainHeader { protocol: UDP, ..plain(from, to, 0) };
        header.write(8 + data, &mut packet).unwrap();
        packet
    }

    fn router_v4() -> IpAddr {
        IpAddr::from([10, 77, 1, 1])
    }

    /// By hand: 4500 001c 0000 4000 4001 · 0a4d 0101 0a4d 0001 and the error around a bare 28-octet
    /// packet.
    #[test]
    fn time_exceeded_v4_by_hand() {
        let mut built = Vec::new();
        let offender = udp_v4(0);
        assert!(error(&offender, router_v4(), Trouble::HopLimitExceeded, 576, &mut built));
        assert_eq!(built.len(), 20 + 8 + 28);
        assert_eq!(&built[..10], &[0x45, 0xc0, 0, 56, 0, 0, 0x40, 0, 64, 1]);
        // 45c0+0038+4000+4001+0a4d+0101+0a4d+0001 = 0xdb95; its complement is 0x246a.
        assert_eq!(&built[10..12], &[0x24, 0x6a]);
        assert_eq!(&built[12..20], &[10, 77, 1, 1, 10, 77, 0, 1]);
        assert_eq!((built[20], built[21]), (11, 0));
        assert_eq!(&built[28..], &offender[..]);
        assert_eq!(checksum(&built[..20]), 0);
        assert_eq!(checksum(&built[20..]), 0);
    }

    #[test]
    fn quotes_no_more_than_allowed_and_no_less_than_rfc_792() {
        let mut built = Vec::new();
        let big = udp_v4(1400);
        for (limit, whole) in [(576, 576), (56, 56), (20, 56), (1500, 28 + 1428)] {
            assert!(error(&big, router_v4(), Trouble::HopLimitExceeded, limit, &mut built));
            assert_eq!(built.len(), whole, "limit {limit}");
        }
    }

    #[test]
    fn too_big_names_the_mtu() {
        let mut built = Vec::new();
        assert!(error(&udp_v4(1472), router_v4(), Trouble::TooBig { mtu: 1280 }, 576, &mut built));
        assert_eq!(&built[20..22], &[3, 4]);
        assert_eq!(&built[26..28], &[5, 0]);
        let router: IpAddr = "fd00::9".parse().unwrap();
        assert!(error(&udp_v6(1452), router, Trouble::TooBig { mtu: 1400 }, u16::MAX, &mut built));
        assert_eq!(built.len(), 1280);
        assert_eq!(&built[40..42], &[2, 0]);
        assert_eq!(&built[44..48], &[0, 0, 5, 120]);
    }

    #[test]
    fn icmpv6_sums_over_the_pseudo_header() {
        let mut built = Vec::new();
        let router: IpAddr = "fd00::9".parse().unwrap();
        assert!(error(&udp_v6(4), router, Trouble::HopLimitExceeded, 576, &mut built));
        assert_eq!(built.len(), 40 + 8 + 52);
        assert_eq!((built[40], built[41]), (3, 0));
        let length = u32::try_from(built.len() - 40).unwrap();
        let sum = Sum::pseudo_header(router, "fd00::1".parse().unwrap(), 58, length);
        assert_eq!(sum.octets(&built[40..]).checksum(), 0);
    }

    #[test]
    fn no_error_about_errors_fragments_or_groups() {
        let mut first = Vec::new();
        assert!(error(&udp_v4(8), router_v4(), Trouble::HopLimitExceeded, 576, &mut first));
        let mut second = vec![1];
        let from = IpAddr::from([10, 77, 1, 2]);
        assert!(!error(&first, from, Trouble::HopLimitExceeded, 576, &mut second));
        assert!(second.is_empty());
        let mut fragment = udp_v4(8);
        fragment[7] = 1;
        assert!(!error(&fragment, from, Trouble::HopLimitExceeded, 576, &mut second));
        let mut group = udp_v4(8);
        group[16] = 224;
        assert!(!error(&group, from, Trouble::HopLimitExceeded, 576, &mut second));
    }

    #[test]
    fn echo_comes_back_with_its_data() {
        let mut request = udp_v4(5);
        request[9] = ICMPV4;
        request[20..28].copy_from_slice(&[8, 0, 0, 0, 1, 2, 3, 4]);
        let mut reply = Vec::new();
        assert!(echo_reply(&request, router_v4(), &mut reply));
        assert_eq!(reply.len(), request.len());
        assert_eq!(reply[20], 0);
        assert_eq!(&reply[24..], &request[24..]);
        assert_eq!(checksum(&reply[20..]), 0);
        assert!(!echo_reply(&reply, router_v4(), &mut Vec::new()));
    }

    proptest! {
        #[test]
        fn no_octets_panic(octets in proptest::collection::vec(any::<u8>(), 0..200), limit: u16, mtu: u16, v6: bool) {
            let from: IpAddr = if v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
            let mut built = Vec::new();
            for trouble in [Trouble::HopLimitExceeded, Trouble::PortUnreachable, Trouble::TooBig { mtu }] {
                let sent = error(&octets, from, trouble, limit, &mut built);
                prop_assert_eq!(sent, !built.is_empty());
            }
            let sent = echo_reply(&octets, from, &mut built);
            prop_assert_eq!(sent, !built.is_empty());
        }

        /// Anything that claims to be IPv4 reaches the deeper code more often than noise does.
        #[test]
        fn plausible_octets_give_well_formed_answers(mut octets in proptest::collection::vec(any::<u8>(), 28..200), limit: u16) {
            octets[0] = 0x45;
            let whole = u16::try_from(octets.len()).unwrap().to_be_bytes();
            octets[2..4].copy_from_slice(&whole);
            let mut built = Vec::new();
            if error(&octets, router_v4(), Trouble::HopLimitExceeded, limit, &mut built) {
                let (_, ip_octets) = IpHeader::read_whole(&built).unwrap();
                prop_assert_eq!(usize::from(ip_octets), built.len());
                prop_assert_eq!(checksum(&built[..20]), 0);
                prop_assert_eq!(checksum(&built[20..]), 0);
                prop_assert!(built.len() <= usize::from(limit).max(56));
            }
        }
    }
}
