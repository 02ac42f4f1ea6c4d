//! ICMP errors and echoes as a virtual router sends them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::packet::{Header, ICMPV4, ICMPV6, IPV4_OCTETS, IPV6_OCTETS, fold, sum};

/// TTL and hop limit of what routers send (RFC 1700: 64).
const ROUTER_HOP_LIMIT: u8 = 64;
/// RFC 1812 §4.3.2.5: ICMP errors should have precedence 6 or 7 (internetwork control is 6).
const PRECEDENCE: u8 = 0xc0;
/// Octets of an ICMP header of either version.
const ICMP_OCTETS: usize = 8;

/// Why a router sends an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The hop limit ran out (type 11 code 0; `ICMPv6` type 3 code 0).
    HopLimitExceeded,
    /// It is for a port of the router itself, on which nobody listens (type 3 code 3; `ICMPv6` type 1 code 4).
    PortUnreachable,
    /// The packet is larger than the next link takes (type 3 code 4 with the MTU of RFC 1191; `ICMPv6` type 2).
    TooBig {
        /// MTU of that link in IP octets.
        mtu: u16,
    },
}

/// Builds the ICMP error that the router `from` sends about `offender`, into `into` (cleared first), at most `max_octets` long but
/// always with the header and 8 octets quoted (RFC 792; IPv6 at most 1280 octets, RFC 4443 §2.4). Returns `false` and leaves `into`
/// empty if none may be sent: about another error, a later fragment, or a packet from or to no single host (RFC 1812 §4.3.2.7,
/// RFC 4443 §2.4 e).
pub(crate) fn error(offender: &[u8], from: IpAddr, trouble: Trouble, max_octets: u16, into: &mut Vec<u8>) -> bool {
    into.clear();
    let Some(header) = Header::read(offender) else {
        return false;
    };
    let offender = &offender[..usize::from(header.ip_octets)];
    if !may_answer(&header, offender) {
        return false;
    }
    let outer = match from {
        IpAddr::V4(_) => IPV4_OCTETS,
        IpAddr::V6(_) => IPV6_OCTETS,
    };
    let most = match from {
        IpAddr::V4(_) => usize::from(max_octets),
        IpAddr::V6(_) => usize::from(max_octets).min(1280),
    };
    let least = header.own_octets + 8;
    let quote = most.saturating_sub(outer + ICMP_OCTETS).max(least).min(offender.len());
    let icmp = match (from, trouble) {
        (IpAddr::V4(_), Trouble::HopLimitExceeded) => [11, 0, 0, 0, 0, 0, 0, 0],
        (IpAddr::V4(_), Trouble::TooBig { mtu }) => {
            let [high, low] = mtu.to_be_bytes();
            [3, 4, 0, 0, 0, 0, high, low]
        }
        (IpAddr::V4(_), Trouble::PortUnreachable) => [3, 3, 0, 0, 0, 0, 0, 0],
        (IpAddr::V6(_), Trouble::PortUnreachable) => [1, 4, 0, 0, 0, 0, 0, 0],
        (IpAddr::V6(_), Trouble::HopLimitExceeded) => [3, 0, 0, 0, 0, 0, 0, 0],
        (IpAddr::V6(_), Trouble::TooBig { mtu }) => {
            let [high, low] = mtu.to_be_bytes();
            [2, 0, 0, 0, 0, 0, high, low]
        }
    };
    wrap(from, header.source, PRECEDENCE, icmp, &offender[..quote], into)
}

/// Builds the answer of the router `from` to an echo request addressed to it, into `into` (cleared first). Returns `false` and
/// leaves `into` empty if `request` is no echo request.
pub(crate) fn echo_reply(request: &[u8], from: IpAddr, into: &mut Vec<u8>) -> bool {
    into.clear();
    let Some(header) = Header::read(request) else {
        return false;
    };
    let body = &request[header.own_octets..usize::from(header.ip_octets)];
    let Some((icmp, data)) = body.split_first_chunk::<ICMP_OCTETS>() else {
        return false;
    };
    let kind = match (from, header.protocol, icmp[0]) {
        (IpAddr::V4(_), ICMPV4, 8) => 0,
        (IpAddr::V6(_), ICMPV6, 128) => 129,
        _ => return false,
    };
    if header.later_fragment || !is_one_host(header.source) {
        return false;
    }
    let icmp = [kind, 0, 0, 0, icmp[4], icmp[5], icmp[6], icmp[7]];
    wrap(from, header.source, 0, icmp, data, into)
}

fn may_answer(header: &Header, offender: &[u8]) -> bool {
    !header.later_fragment
        && is_one_host(header.source)
        && is_one_host(header.destination)
        && !header.may_be_icmp_error(offender)
}

fn is_one_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_multicast() && !address.is_unspecified() && !address.is_loopback() && !broadcast
}

/// Puts the IP header and the checksums around an ICMP message; `false` if the versions of the addresses differ or the packet
/// would be too long for IP.
fn wrap(from: IpAddr, to: IpAddr, service: u8, icmp: [u8; ICMP_OCTETS], data: &[u8], into: &mut Vec<u8>) -> bool {
    let Ok(message) = u16::try_from(ICMP_OCTETS + data.len()) else {
        return false;
    };
    let (outer, pseudo) = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let Some(whole) = message.checked_add(20) else {
                return false;
            };
            into.extend(header_v4(from, to, service, whole));
            (IPV4_OCTETS, 0)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            into.extend(header_v6(from, to, service, message));
            // RFC 8200 §8.1: addresses, length and next header.
            (IPV6_OCTETS, sum(&into[8..40]) + u32::from(message) + u32::from(ICMPV6))
        }
        _ => return false,
    };
    into.extend(icmp);
    into.extend(data);
    let checksum = !fold(u32::from(fold(pseudo)) + sum(&into[outer..]));
    into[outer + 2..outer + 4].copy_from_slice(&checksum.to_be_bytes());
    true
}

fn header_v4(from: Ipv4Addr, to: Ipv4Addr, service: u8, whole: u16) -> [u8; IPV4_OCTETS] {
    let mut header = [0; IPV4_OCTETS];
    header[0] = 0x45;
    header[1] = service;
    header[2..4].copy_from_slice(&whole.to_be_bytes());
    // Don't fragment, so that the identification may be zero (RFC 6864).
    header[6] = 0x40;
    header[8] = ROUTER_HOP_LIMIT;
    header[9] = ICMPV4;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    let checksum = !fold(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

fn header_v6(from: Ipv6Addr, to: Ipv6Addr, service: u8, payload: u16) -> [u8; IPV6_OCTETS] {
    let mut header = [0; IPV6_OCTETS];
    header[0] = 0x60 | (service >> 4);
    header[1] = service << 4;
    header[4..6].copy_from_slice(&payload.to_be_bytes());
    header[6] = ICMPV6;
    header[7] = ROUTER_HOP_LIMIT;
    header[8..24].copy_from_slice(&from.octets());
    header[24..40].copy_from_slice(&to.octets());
    header
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn udp_v4(data: usize) -> Vec<u8> {
        let whole = u16::try_from(28 + data).unwrap();
        let mut packet = header_v4(Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 3, 1), 0, whole).to_vec();
        packet[9] = 17;
        packet.extend([0x12, 0x34, 0x82, 0x9b, 0, 0, 0xab, 0xcd]);
        packet.resize(usize::from(whole), 7);
        packet
    }

    fn udp_v6(data: usize) -> Vec<u8> {
        let payload = u16::try_from(8 + data).unwrap();
        let from: Ipv6Addr = "fd00::1".parse().unwrap();
        let to: Ipv6Addr = "fd00::2".parse().unwrap();
        let mut packet = header_v6(from, to, 0, payload).to_vec();
        packet[6] = 17;
        packet.resize(48 + data, 7);
        packet
    }

    fn router_v4() -> IpAddr {
        IpAddr::from([10, 77, 1, 1])
    }

    /// By hand: 4500 001c 0000 4000 4001 · 0a4d 0101 0a4d 0001 and the error around a bare 28-octet packet.
    #[test]
    fn time_exceeded_v4_by_hand() {
        let mut built = Vec::new();
        let offender = udp_v4(0);
        assert!(error(
            &offender,
            router_v4(),
            Trouble::HopLimitExceeded,
            576,
            &mut built
        ));
        assert_eq!(built.len(), 20 + 8 + 28);
        assert_eq!(&built[..10], &[0x45, 0xc0, 0, 56, 0, 0, 0x40, 0, 64, 1]);
        // 45c0+0038+4000+4001+0a4d+0101+0a4d+0001 = 0xdb95; its complement is 0x246a.
        assert_eq!(&built[10..12], &[0x24, 0x6a]);
        assert_eq!(&built[12..20], &[10, 77, 1, 1, 10, 77, 0, 1]);
        assert_eq!((built[20], built[21]), (11, 0));
        assert_eq!(&built[28..], &offender[..]);
        assert_eq!(fold(sum(&built[..20])), 0xffff);
        assert_eq!(fold(sum(&built[20..])), 0xffff);
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
        assert!(error(
            &udp_v4(1472),
            router_v4(),
            Trouble::TooBig { mtu: 1280 },
            576,
            &mut built
        ));
        assert_eq!(&built[20..22], &[3, 4]);
        assert_eq!(&built[26..28], &[5, 0]);
        let router: IpAddr = "fd00::9".parse().unwrap();
        assert!(error(
            &udp_v6(1452),
            router,
            Trouble::TooBig { mtu: 1400 },
            u16::MAX,
            &mut built
        ));
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
        let pseudo = sum(&built[8..40]) + length + 58;
        assert_eq!(fold(pseudo + sum(&built[40..])), 0xffff);
    }

    #[test]
    fn no_error_about_errors_fragments_or_groups() {
        let mut first = Vec::new();
        assert!(error(
            &udp_v4(8),
            router_v4(),
            Trouble::HopLimitExceeded,
            576,
            &mut first
        ));
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
        assert_eq!(fold(sum(&reply[20..])), 0xffff);
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
                let header = Header::read(&built).unwrap();
                prop_assert_eq!(usize::from(header.ip_octets), built.len());
                prop_assert_eq!(fold(sum(&built[..20])), 0xffff);
                prop_assert_eq!(fold(sum(&built[20..])), 0xffff);
                prop_assert!(built.len() <= usize::from(limit).max(56));
            }
        }
    }
}
