//! IP packets as octets: read what a router reads, change what a router changes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Octets of an IPv4 header without options.
pub(crate) const IPV4_OCTETS: usize = 20;
/// Octets of the IPv6 header.
pub(crate) const IPV6_OCTETS: usize = 40;
/// Protocol number of `ICMPv4`.
pub(crate) const ICMPV4: u8 = 1;
/// Protocol number of TCP.
const TCP: u8 = 6;
/// FNV-1a, 32 bits.
const FNV_BASIS: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;
/// Protocol number of UDP.
pub(crate) const UDP: u8 = 17;
/// Next-header number of `ICMPv6`.
pub(crate) const ICMPV6: u8 = 58;

/// What a router needs of an IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Length of the packet by its own header; never more than the octets it was read from.
    pub(crate) ip_octets: u16,
    /// Length of the IPv4 header with its options, or of the fixed IPv6 header.
    pub(crate) own_octets: usize,
    /// TTL or hop limit.
    pub(crate) hop_limit: u8,
    /// Protocol or first next header.
    pub(crate) protocol: u8,
    /// Whether it is a fragment that does not begin its datagram (IPv4 only; IPv6 tells it in an extension header).
    pub(crate) later_fragment: bool,
    /// Source address.
    pub(crate) source: IpAddr,
    /// Destination address.
    pub(crate) destination: IpAddr,
}

impl Header {
    /// Reads the header of an IPv4 (RFC 791) or IPv6 (RFC 8200) packet; `None` if it is neither, or longer than the octets given.
    pub(crate) fn read(octets: &[u8]) -> Option<Self> {
        match octets.first()? >> 4 {
            4 => Self::read_v4(octets),
            6 => Self::read_v6(octets),
            _ => None,
        }
    }

    fn read_v4(octets: &[u8]) -> Option<Self> {
        let fixed: &[u8; IPV4_OCTETS] = octets.first_chunk()?;
        let own_octets = usize::from(fixed[0] & 0x0f) * 4;
        let ip_octets = u16::from_be_bytes([fixed[2], fixed[3]]);
        let whole = usize::from(ip_octets);
        if own_octets < IPV4_OCTETS || whole < own_octets || whole > octets.len() {
            return None;
        }
        Some(Self {
            ip_octets,
            own_octets,
            hop_limit: fixed[8],
            protocol: fixed[9],
            later_fragment: u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff != 0,
            source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]).into(),
            destination: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]).into(),
        })
    }

    fn read_v6(octets: &[u8]) -> Option<Self> {
        let fixed: &[u8; IPV6_OCTETS] = octets.first_chunk()?;
        let payload = u16::from_be_bytes([fixed[4], fixed[5]]);
        let ip_octets = payload.checked_add(40)?;
        if usize::from(ip_octets) > octets.len() {
            return None;
        }
        Some(Self {
            ip_octets,
            own_octets: IPV6_OCTETS,
            hop_limit: fixed[7],
            protocol: fixed[6],
            later_fragment: false,
            source: address_v6(&fixed[8..24])?,
            destination: address_v6(&fixed[24..40])?,
        })
    }

    /// A hash over addresses, protocol and (of TCP and UDP, in a datagram's beginning) ports, as equal-cost paths and link aggregation
    /// groups take it (RFC 2992 §2 leaves the function open; this is FNV-1a).
    pub(crate) fn flow(&self, octets: &[u8]) -> u32 {
        let mut hash = FNV_BASIS;
        let mut mix = |octet: u8| hash = (hash ^ u32::from(octet)).wrapping_mul(FNV_PRIME);
        for address in [self.source, self.destination] {
            match address {
                IpAddr::V4(address) => address.octets().into_iter().for_each(&mut mix),
                IpAddr::V6(address) => address.octets().into_iter().for_each(&mut mix),
            }
        }
        mix(self.protocol);
        let ports = octets.get(self.own_octets..self.own_octets + 4);
        if let Some(ports) = ports.filter(|_| matches!(self.protocol, TCP | UDP) && !self.later_fragment) {
            ports.iter().copied().for_each(&mut mix);
        }
        hash
    }

    /// Whether the packet is an ICMP error or a redirect, judged by its type; also if the type is cut off or hidden, since then
    /// nobody can say that it is not.
    pub(crate) fn may_be_icmp_error(&self, octets: &[u8]) -> bool {
        let kind = octets.get(self.own_octets);
        match (self.source, self.protocol) {
            (IpAddr::V4(_), ICMPV4) => kind.is_none_or(|kind| matches!(kind, 3 | 4 | 5 | 11 | 12)),
            (IpAddr::V6(_), ICMPV6) => kind.is_none_or(|&kind| kind < 128 || kind == 137),
            _ => false,
        }
    }
}

fn address_v6(octets: &[u8]) -> Option<IpAddr> {
    let octets: [u8; 16] = octets.try_into().ok()?;
    Some(Ipv6Addr::from(octets).into())
}

/// Writes another TTL or hop limit into a packet that [`Header::read`] accepted, and mends the IPv4 header checksum by the change
/// alone (RFC 1624 eqn. 3), so that a checksum that was wrong stays wrong.
pub(crate) fn set_hop_limit(octets: &mut [u8], hop_limit: u8) {
    match octets.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(header) = octets.first_chunk_mut::<IPV4_OCTETS>() else {
                return;
            };
            let before = u16::from_be_bytes([header[8], header[9]]);
            header[8] = hop_limit;
            let after = u16::from_be_bytes([header[8], header[9]]);
            let checksum = u16::from_be_bytes([header[10], header[11]]);
            let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
            let checksum = (!fold(sum)).to_be_bytes();
            header[10..12].copy_from_slice(&checksum);
        }
        Some(6) => {
            if let Some(place) = octets.get_mut(7) {
                *place = hop_limit;
            }
        }
        _ => {}
    }
}

/// One's complement sum of 16-bit words (RFC 1071); an odd last octet counts as the upper half of a word.
pub(crate) fn sum(octets: &[u8]) -> u32 {
    let words = octets.chunks(2).map(|word| match word {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    words.fold(0, |sum, word| u32::from(fold(sum + word)))
}

/// Folds the carries of a sum of fewer than 65 536 words into 16 bits.
pub(crate) fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    let twice = (once & 0xffff) + (once >> 16);
    // Two folds leave at most 16 bits: the first leaves at most 0x1fffe.
    (twice & 0xffff) as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The IPv4 header that is used as the example of the checksum in many texts: checksum 0xb861.
    const EXAMPLE: [u8; 20] = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8,
        0x00, 0xc7,
    ];

    fn example() -> Vec<u8> {
        let mut packet = EXAMPLE.to_vec();
        packet.resize(0x73, 0);
        packet
    }

    #[test]
    fn reads_ipv4() {
        let header = Header::read(&example()).unwrap();
        assert_eq!((header.ip_octets, header.hop_limit, header.protocol), (115, 64, 17));
        assert_eq!(header.source.to_string(), "192.168.0.1");
        assert_eq!(header.destination.to_string(), "192.168.0.199");
        assert!(!header.later_fragment);
    }

    #[test]
    fn reads_ipv6() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 63];
        packet.extend(Ipv6Addr::LOCALHOST.octets());
        packet.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(Header::read(&packet), None, "cut short");
        packet.extend([0; 8]);
        let header = Header::read(&packet).unwrap();
        assert_eq!((header.ip_octets, header.hop_limit, header.protocol), (48, 63, 17));
        assert_eq!(header.destination.to_string(), "fd00::2");
    }

    #[test]
    fn a_port_makes_another_flow_and_a_payload_does_not() {
        let mut packet = example();
        packet.resize(28, 0);
        packet[3] = 28;
        packet[9] = UDP;
        let header = Header::read(&packet).unwrap();
        let flow = header.flow(&packet);
        packet[27] = 9;
        assert_eq!(header.flow(&packet), flow);
        packet[21] = 9;
        assert_ne!(header.flow(&packet), flow);
        // Fragments that carry no ports are of one flow.
        let fragment = Header {
            later_fragment: true,
            ..header
        };
        let before = fragment.flow(&packet);
        packet[21] = 10;
        assert_eq!(fragment.flow(&packet), before);
    }

    #[test]
    fn a_good_header_sums_to_all_ones() {
        assert_eq!(fold(sum(&EXAMPLE)), 0xffff);
    }

    /// RFC 1071 §3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
    #[test]
    fn sum_of_rfc_1071() {
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[0x12]), 0x1200);
    }

    /// TTL 64 to 61 takes 0x0300 from the word, so the checksum gains it: 0xb861 + 0x0300.
    #[test]
    fn hop_limit_changes_the_checksum_by_itself() {
        let mut packet = example();
        set_hop_limit(&mut packet, 61);
        assert_eq!(packet[8], 61);
        assert_eq!([packet[10], packet[11]], [0xbb, 0x61]);
        assert_eq!(fold(sum(&packet[..20])), 0xffff);
    }

    #[test]
    fn an_error_is_known_by_its_type() {
        let mut packet = example();
        packet[9] = ICMPV4;
        let header = Header::read(&packet).unwrap();
        packet[20] = 8;
        assert!(!header.may_be_icmp_error(&packet));
        packet[20] = 11;
        assert!(header.may_be_icmp_error(&packet));
        assert!(header.may_be_icmp_error(&packet[..20]));
    }

    proptest! {
        #[test]
        fn no_octets_panic(mut octets in proptest::collection::vec(any::<u8>(), 0..200), limit: u8) {
            if let Some(header) = Header::read(&octets) {
                prop_assert!(usize::from(header.ip_octets) <= octets.len());
                prop_assert!(header.own_octets <= usize::from(header.ip_octets));
                let _ = header.may_be_icmp_error(&octets);
            }
            set_hop_limit(&mut octets, limit);
        }

        #[test]
        fn every_hop_limit_keeps_a_good_checksum_good(limits in proptest::collection::vec(any::<u8>(), 1..20)) {
            let mut packet = example();
            for limit in limits {
                set_hop_limit(&mut packet, limit);
                prop_assert_eq!(packet[8], limit);
                prop_assert_eq!(fold(sum(&packet[..20])), 0xffff);
            }
        }
    }
}
