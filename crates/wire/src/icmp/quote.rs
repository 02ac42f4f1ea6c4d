//! The packet that an ICMP error is about, as far as it is quoted.

use std::net::IpAddr;

use super::{IcmpParseError, v4, v6};
use crate::bytes::Reader;

/// A quoted packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted<'a> {
    /// Where it came from.
    pub source: IpAddr,
    /// Where it was bound for.
    pub destination: IpAddr,
    /// What it carried: 6 TCP, 17 UDP, 1 and 58 ICMP.
    pub protocol: u8,
    /// What was left of its hop limit. Zero or one where that ran out; more tells of routers that do not count.
    pub hop_limit: u8,
    /// Its length as the router saw it, header included. Some routers get it wrong.
    pub ip_octets: u16,
    /// Its identification; `None` with IPv6.
    pub id: Option<u16>,
    /// What followed the IP header, as far as it is quoted.
    pub transport: &'a [u8],
}

/// IPv6 extension headers that are passed over: hop by hop, routing, destination options. They have their length in the same place.
const PASSED: [u8; 3] = [0, 43, 60];
/// Most of them in a row; nobody sends more, and nothing of ours any.
const MOST_PASSED: usize = 8;

impl<'a> Quoted<'a> {
    /// From the IP header on.
    pub fn parse(quote: &'a [u8], ipv6: bool) -> Result<Self, IcmpParseError> {
        if ipv6 {
            Self::parse_v6(quote)
        } else {
            Self::parse_v4(quote)
        }
    }

    fn parse_v4(quote: &'a [u8]) -> Result<Self, IcmpParseError> {
        let short = IcmpParseError::Short("the quoted IP header");
        let mut reader = Reader::new(quote);
        let first = reader.u8().ok_or(short)?;
        let header_octets = usize::from(first & 0x0f) * 4;
        if first >> 4 != 4 || header_octets < 20 {
            return Err(IcmpParseError::Quote);
        }
        let transport = quote.get(header_octets..).ok_or(short)?;
        let mut read = || {
            let _service = reader.u8()?;
            let ip_octets = reader.u16()?;
            let id = reader.u16()?;
            let _fragment = reader.u16()?;
            let (hop_limit, protocol) = (reader.u8()?, reader.u8()?);
            let _checksum = reader.u16()?;
            Some(Self {
                ip_octets,
                id: Some(id),
                hop_limit,
                protocol,
                source: v4(&mut reader)?,
                destination: v4(&mut reader)?,
                transport,
            })
        };
        read().ok_or(short)
    }

    fn parse_v6(quote: &'a [u8]) -> Result<Self, IcmpParseError> {
        let short = IcmpParseError::Short("the quoted IP header");
        let mut reader = Reader::new(quote);
        let mut read = || {
            let first = reader.u32()?;
            let payload_octets = reader.u16()?;
            let (next, hop_limit) = (reader.u8()?, reader.u8()?);
            let (source, destination) = (v6(&mut reader)?, v6(&mut reader)?);
            Some((first >> 28, payload_octets, next, hop_limit, source, destination))
        };
        let (version, payload_octets, mut protocol, hop_limit, source, destination) = read().ok_or(short)?;
        if version != 6 {
            return Err(IcmpParseError::Quote);
        }
        let mut transport = reader.rest();
        for _ in 0..MOST_PASSED {
            if !PASSED.contains(&protocol) {
                break;
            }
            let (Some(next), Some(length)) = (transport.first(), transport.get(1)) else {
                return Err(short);
            };
            protocol = *next;
            transport = transport.get((usize::from(*length) + 1) * 8..).ok_or(short)?;
        }
        Ok(Self {
            source,
            destination,
            protocol,
            hop_limit,
            ip_octets: payload_octets.saturating_add(40),
            id: None,
            transport,
        })
    }

    /// Source and destination port of TCP and UDP.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let mut reader = Reader::new(self.transport);
        let ports = [6, 17].contains(&self.protocol);
        ports.then(|| Some((reader.u16()?, reader.u16()?))).flatten()
    }

    /// Length and checksum in the header of a quoted UDP datagram: eight octets behind the IP header are enough for that.
    pub fn udp_check(&self) -> Option<(u16, u16)> {
        let mut reader = Reader::new(self.transport.get(4..)?);
        (self.protocol == 17)
            .then(|| Some((reader.u16()?, reader.u16()?)))
            .flatten()
    }
}
