//! Echoes and errors to be sent.

use std::net::IpAddr;

use etherparse::{
    IcmpEchoHeader, Icmpv4Header, Icmpv4Slice, Icmpv4Type, Icmpv6Header, Icmpv6Slice, Icmpv6Type, icmpv4, icmpv6,
};

use super::{ICMP_OCTETS, IcmpKind};
use crate::checksum::checksum;
use crate::ip::PlainHeader;
use crate::{ICMPV4, ICMPV6};

/// Identifier and sequence number of an echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Identifier.
    pub identifier: u16,
    /// Sequence number.
    pub sequence: u16,
}

/// What an ICMP message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// An error; its data are the quote.
    Error(IcmpKind),
    /// An echo request.
    EchoRequest(Echo),
    /// An echo reply.
    EchoReply(Echo),
}

impl Message {
    /// Reads an echo, and what it carries; errors are read by [`super::IcmpError`]. The checksum is
    /// not looked at.
    pub fn read_echo(message: &[u8], ipv6: bool) -> Option<(Self, &[u8])> {
        if ipv6 {
            let slice = Icmpv6Slice::from_slice(message).ok()?;
            let echo = match slice.icmp_type() {
                Icmpv6Type::EchoRequest(echo) => Self::EchoRequest(echo.into()),
                Icmpv6Type::EchoReply(echo) => Self::EchoReply(echo.into()),
                _ => return None,
            };
            return Some((echo, slice.payload()));
        }
        let slice = Icmpv4Slice::from_slice(message).ok()?;
        let echo = match slice.icmp_type() {
            Icmpv4Type::EchoRequest(echo) => Self::EchoRequest(echo.into()),
            Icmpv4Type::EchoReply(echo) => Self::EchoReply(echo.into()),
            _ => return None,
        };
        Some((echo, slice.payload()))
    }

    /// Its header, with a checksum of zero.
    pub fn header(self, ipv6: bool) -> [u8; ICMP_OCTETS] {
        let octets = if ipv6 {
            Icmpv6Header::new(self.v6()).to_bytes().first_chunk().copied()
        } else {
            Icmpv4Header::new(self.v4()).to_bytes().first_chunk().copied()
        };
        // No message of these has a shorter one; timestamps and redirects have longer ones.
        octets.unwrap_or_default()
    }

    fn v4(self) -> Icmpv4Type {
        use icmpv4::{DestUnreachableHeader, TimeExceededCode};
        match self {
            Self::EchoRequest(echo) => Icmpv4Type::EchoRequest(echo.into()),
            Self::EchoReply(echo) => Icmpv4Type::EchoReply(echo.into()),
            Self::Error(IcmpKind::TimeExceeded) => Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit),
            Self::Error(IcmpKind::PortUnreachable) => Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Port),
            Self::Error(IcmpKind::PacketTooBig { mtu }) => {
                let next_hop_mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
                Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::FragmentationNeeded { next_hop_mtu })
            }
            Self::Error(IcmpKind::Unreachable { code }) => {
                Icmpv4Type::Unknown { type_u8: icmpv4::TYPE_DEST_UNREACH, code_u8: code, bytes5to8: [0; 4] }
            }
        }
    }

    fn v6(self) -> Icmpv6Type {
        use icmpv6::{DestUnreachableCode, TimeExceededCode};
        match self {
            Self::EchoRequest(echo) => Icmpv6Type::EchoRequest(echo.into()),
            Self::EchoReply(echo) => Icmpv6Type::EchoReply(echo.into()),
            Self::Error(IcmpKind::TimeExceeded) => Icmpv6Type::TimeExceeded(TimeExceededCode::HopLimitExceeded),
            Self::Error(IcmpKind::PortUnreachable) => Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Port),
            Self::Error(IcmpKind::PacketTooBig { mtu }) => Icmpv6Type::PacketTooBig { mtu },
            Self::Error(IcmpKind::Unreachable { code }) => {
                Icmpv6Type::Unknown { type_u8: icmpv6::TYPE_DST_UNREACH, code_u8: code, bytes5to8: [0; 4] }
            }
        }
    }
}

/// Appends a whole packet: IP header (its protocol is ICMP, whatever `ip` says), ICMP header and
/// `data`, with their checksums. `None`, and nothing is appended, where [`PlainHeader::write`]
/// would refuse.
pub fn write_packet(ip: &PlainHeader, message: Message, data: &[u8], into: &mut Vec<u8>) -> Option<()> {
    let octets = ICMP_OCTETS + data.len();
    match (ip.source, ip.destination) {
        (IpAddr::V4(_), IpAddr::V4(_)) => {
            let protocol = ICMPV4;
            PlainHeader { protocol, ..*ip }.write(octets, into)?;
            into.extend(Icmpv4Header::with_checksum(message.v4(), data).to_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let protocol = ICMPV6;
            let (source, destination) = (source.octets(), destination.octets());
            let header = Icmpv6Header::with_checksum(message.v6(), source, destination, data).ok()?;
            PlainHeader { protocol, ..*ip }.write(octets, into)?;
            into.extend(header.to_bytes());
        }
        _ => return None,
    }
    into.extend(data);
    Some(())
}

/// Writes the checksum of an `ICMPv4` message into its header. Over IPv6 it covers the addresses,
/// and kernels write it.
pub fn write_checksum(message: &mut [u8]) {
    if let Some([_, _, place @ ..]) = message.first_chunk_mut::<4>() {
        *place = [0; 2];
        let sum = checksum(message).to_be_bytes();
        message[2..4].copy_from_slice(&sum);
    }
}

impl From<Echo> for IcmpEchoHeader {
    fn from(echo: Echo) -> Self {
        Self { id: echo.identifier, seq: echo.sequence }
    }
}

impl From<IcmpEchoHeader> for Echo {
    fn from(header: IcmpEchoHeader) -> Self {
        Self { identifier: header.id, sequence: header.seq }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::super::IcmpError;
    use super::*;
    use crate::checksum::Sum;
    use crate::ip::IpHeader;
    use crate::{UDP, udp};

    /// A packet as `ping` sends it: RFC 792's fields, type 8, and a checksum by hand: 0800 + 1234 +
    /// 0001 + 6162 + 6364 = defb.
    #[test]
    fn an_echo_by_hand() {
        let echo = Echo { identifier: 0x1234, sequence: 1 };
        let mut message = [&Message::EchoRequest(echo).header(false)[..], b"abcd"].concat();
        write_checksum(&mut message);
        assert_eq!(message, *b"\x08\0\x21\x04\x12\x34\0\x01abcd");
        let read = Message::read_echo(&message, false);
        assert_eq!(read, Some((Message::EchoRequest(echo), &b"abcd"[..])));
        assert_eq!(Message::EchoReply(echo).header(true)[..2], [129, 0]);
        for length in 0..ICMP_OCTETS {
            assert_eq!(Message::read_echo(&message[..length], false), None);
        }
        write_checksum(&mut message[..3]);
    }

    fn ends(ipv6: bool) -> (IpAddr, IpAddr) {
        if ipv6 {
            (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::from([0xfd; 16]).into())
        } else {
            (Ipv4Addr::LOCALHOST.into(), Ipv4Addr::from([10, 0, 0, 9]).into())
        }
    }

    fn plain(ipv6: bool, protocol: u8) -> PlainHeader {
        let (source, destination) = ends(ipv6);
        PlainHeader { source, destination, protocol, hop_limit: 64, service: 0xc0 }
    }

    /// A UDP packet that an error is about.
    fn offender(ipv6: bool, payload: &[u8]) -> Vec<u8> {
        let mut datagram = [&[0; udp::UDP_OCTETS][..], payload].concat();
        assert!(udp::write(ends(ipv6), (40_000, 33_434), &mut datagram));
        let mut packet = Vec::new();
        plain(ipv6, UDP).write(datagram.len(), &mut packet).unwrap();
        packet.extend(datagram);
        packet
    }

    fn kinds() -> impl Strategy<Value = IcmpKind> {
        prop_oneof![
            Just(IcmpKind::TimeExceeded),
            Just(IcmpKind::PortUnreachable),
            any::<u16>().prop_map(|mtu| IcmpKind::PacketTooBig { mtu: mtu.into() }),
            // 3 and 4 are ports and, in version 4, packets that are too big.
            (5u8..16).prop_map(|code| IcmpKind::Unreachable { code }),
        ]
    }

    proptest! {
        #[test]
        fn an_error_that_is_written_is_read(
            kind in kinds(),
            ipv6: bool,
            payload in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let offender = offender(ipv6, &payload);
            let mut packet = Vec::new();
            write_packet(&plain(ipv6, 0), Message::Error(kind), &offender, &mut packet).unwrap();
            let (header, ip_octets) = IpHeader::read_whole(&packet).unwrap();
            prop_assert_eq!(usize::from(ip_octets), packet.len());
            let message = header.transport(&packet).unwrap();
            let parse = |octets| if ipv6 { IcmpError::parse_v6(octets) } else { IcmpError::parse_v4(octets) };
            let error = parse(message.octets).unwrap();
            prop_assert_eq!((error.kind, error.extensions), (kind, None));
            prop_assert_eq!(error.quoted.ports(), Some((40_000, 33_434)));
            prop_assert_eq!(usize::from(error.quoted.ip_octets), offender.len());
            if ipv6 {
                let octets = u32::try_from(message.octets.len()).unwrap();
                let sum = Sum::pseudo_header(header.source, header.destination, ICMPV6, octets);
                prop_assert_eq!(sum.octets(message.octets).checksum(), 0);
            }
            // Cut anywhere, it is read as far as it goes or refused.
            for length in 0..message.octets.len() {
                let cut = parse(&message.octets[..length]);
                prop_assert!(length >= offender.len() - payload.len() || cut.is_err());
            }
        }

        #[test]
        fn an_echo_that_is_written_is_read(
            ipv6: bool,
            reply: bool,
            identifier: u16,
            sequence: u16,
            data in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let echo = Echo { identifier, sequence };
            let message = if reply { Message::EchoReply(echo) } else { Message::EchoRequest(echo) };
            let mut packet = Vec::new();
            write_packet(&plain(ipv6, 0), message, &data, &mut packet).unwrap();
            let octets = &packet[if ipv6 { 40 } else { 20 }..];
            prop_assert_eq!(Message::read_echo(octets, ipv6), Some((message, &data[..])));
            prop_assert!(ipv6 || checksum(octets) == 0);
        }

        #[test]
        fn no_octets_panic(octets in proptest::collection::vec(any::<u8>(), 0..60), ipv6: bool) {
            let _ = Message::read_echo(&octets, ipv6);
        }
    }
}
