//! The packet that an ICMP error is about, as far as it is quoted.

use std::net::IpAddr;

use super::IcmpParseError;
use crate::ip::{HeaderError, IpHeader};
use crate::udp::{self, UdpHeader};

/// A quoted packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted<'a> {
    /// Where it came from.
    pub source: IpAddr,
    /// Where it was bound for.
    pub destination: IpAddr,
    /// What it carried: 6 TCP, 17 UDP, 1 and 58 ICMP.
    pub protocol: u8,
    /// What was left of its hop limit. Zero or one where that ran out; more tells of routers that
    /// do not count.
    pub hop_limit: u8,
    /// Its length as the router saw it, header included. Some routers get it wrong.
    pub ip_octets: u16,
    /// Its identification; `None` with IPv6.
    pub id: Option<u16>,
    /// What followed the IP header, as far as it is quoted.
    pub transport: &'a [u8],
}

impl<'a> Quoted<'a> {
    /// From the IP header on.
    pub fn parse(quote: &'a [u8], ipv6: bool) -> Result<Self, IcmpParseError> {
        let error = |error| match error {
            HeaderError::Short => IcmpParseError::Short("the quoted IP header"),
            HeaderError::Malformed => IcmpParseError::Quote,
        };
        let header = IpHeader::read(quote).map_err(error)?;
        if header.is_ipv6() != ipv6 {
            return Err(IcmpParseError::Quote);
        }
        let transport = header.transport(quote).map_err(error)?;
        let ip_octets = header.ip_octets.unwrap_or(if ipv6 { 40 } else { 0 });
        Ok(Self {
            source: header.source,
            destination: header.destination,
            protocol: transport.protocol,
            hop_limit: header.hop_limit,
            ip_octets: u16::try_from(ip_octets).unwrap_or(u16::MAX),
            id: header.id,
            transport: transport.octets,
        })
    }

    /// Source and destination port of TCP and UDP.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let has_ports = [crate::TCP, crate::UDP].contains(&self.protocol);
        udp::ports(self.transport).filter(|_| has_ports)
    }

    /// Length and checksum in the header of a quoted UDP datagram: eight octets behind the IP
    /// header are enough for that.
    pub fn udp_check(&self) -> Option<(u16, u16)> {
        let header = UdpHeader::read(self.transport).filter(|_| self.protocol == crate::UDP)?;
        Some((header.octets, header.checksum))
    }
}
