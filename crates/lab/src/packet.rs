//! What the routers of a path, and its parallel links, make of a packet.

use std::net::IpAddr;

use narrows_packet::ip::IpHeader;
use narrows_packet::{TCP, UDP, udp};

/// FNV-1a, 32 bits.
const FNV_BASIS: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// A hash over addresses, protocol and (of TCP and UDP, in a datagram's beginning) ports, as
/// equal-cost paths and link aggregation groups take it (RFC 2992 §2 leaves the function open; this
/// is FNV-1a).
pub(crate) fn flow(header: &IpHeader, packet: &[u8]) -> u32 {
    let mut hash = FNV_BASIS;
    let mut mix = |octet: u8| hash = (hash ^ u32::from(octet)).wrapping_mul(FNV_PRIME);
    for address in [header.source, header.destination] {
        match address {
            IpAddr::V4(address) => address.octets().into_iter().for_each(&mut mix),
            IpAddr::V6(address) => address.octets().into_iter().for_each(&mut mix),
        }
    }
    mix(header.protocol);
    let has_ports = matches!(header.protocol, TCP | UDP) && !header.is_later_fragment();
    let transport = packet.get(header.header_octets..).filter(|_| has_ports);
    if let Some((from, to)) = transport.and_then(udp::ports) {
        [from, to].iter().flat_map(|port| port.to_be_bytes()).for_each(&mut mix);
    }
    hash
}

#[cfg(test)]
mod tests {
    use narrows_packet::ip::PlainHeader;

    use super::*;

    #[test]
    fn a_port_makes_another_flow_and_a_payload_does_not() {
        let plain = PlainHeader {
            source: [192, 168, 0, 1].into(),
            destination: [192, 168, 0, 199].into(),
            protocol: UDP,
            hop_limit: 64,
            service: 0,
        };
        let mut packet = Vec::new();
        plain.write(8, &mut packet).unwrap();
        packet.extend([0; 8]);
        let header = IpHeader::read(&packet).unwrap();
        let before = flow(&header, &packet);
        packet[27] = 9;
        assert_eq!(flow(&header, &packet), before);
        packet[21] = 9;
        assert_ne!(flow(&header, &packet), before);
        // Fragments that carry no ports are of one flow.
        let fragment = IpHeader { fragment_offset: 1, ..header };
        let before = flow(&fragment, &packet);
        packet[21] = 10;
        assert_eq!(flow(&fragment, &packet), before);
    }
}
