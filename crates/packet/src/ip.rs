//! IP headers of both versions: RFC 791 with options, RFC 8200 with extension headers.

use std::net::IpAddr;

use etherparse::err::{ipv4, ipv6};
use etherparse::{
    IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6Header, Ipv6HeaderSlice,
    ip_number,
};

use crate::checksum::Sum;

/// Octets of an IPv4 header without options.
pub const IPV4_OCTETS: usize = 20;
/// Octets of the IPv6 header without extensions.
pub const IPV6_OCTETS: usize = 40;
/// IPv6 extension headers that are passed over, at most: nobody sends more.
const MOST_EXTENSIONS: usize = 8;

/// What an IP header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpHeader {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol; of IPv6 the first next header.
    pub protocol: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// Length of the packet, header included; `None` where the header has zero in that field, as
    /// packets longer than 65 535 octets have before a card cuts them up.
    pub ip_octets: Option<u32>,
    /// Length of the IPv4 header with its options, or of the IPv6 header without extensions.
    pub header_octets: usize,
    /// Identification; `None` with IPv6.
    pub id: Option<u16>,
    /// More fragments of the same datagram follow. IPv6 tells that in an extension header, and so
    /// it does the offset.
    pub more_fragments: bool,
    /// Where in its datagram the fragment begins, in words of eight octets.
    pub fragment_offset: u16,
}

/// What follows an IP header and its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transport<'a> {
    /// Its protocol.
    pub protocol: u8,
    /// It is in a fragment, the first or a later one, so that it may be no header.
    pub fragment: bool,
    /// Octets before it.
    pub header_octets: usize,
    /// All octets that are there from it on.
    pub octets: &'a [u8],
}

/// Octets that are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// They end within it.
    #[error("the octets end within the header")]
    Short,
    /// It contradicts itself, or is of another version.
    #[error("the header contradicts itself")]
    Malformed,
}

impl IpHeader {
    /// Reads the header at the front of a packet of either version. The packet need not be whole.
    #[inline]
    pub fn read(packet: &[u8]) -> Result<Self, HeaderError> {
        match packet.first().ok_or(HeaderError::Short)? >> 4 {
            4 => Self::read_v4(packet),
            6 => Self::read_v6(packet),
            _ => Err(HeaderError::Malformed),
        }
    }

    /// The same for a packet that must be there whole, and its length. Octets behind it are
    /// allowed.
    #[inline]
    pub fn read_whole(packet: &[u8]) -> Option<(Self, u16)> {
        let header = Self::read(packet).ok()?;
        // A packet without payload says so in IPv6, and nothing that is one in IPv4.
        let least = if header.is_ipv6() { u32::try_from(IPV6_OCTETS).ok()? } else { 0 };
        let ip_octets = u16::try_from(header.ip_octets.unwrap_or(least)).ok()?;
        (header.header_octets..=packet.len()).contains(&usize::from(ip_octets)).then_some((header, ip_octets))
    }

    #[inline]
    fn read_v4(packet: &[u8]) -> Result<Self, HeaderError> {
        let header = Ipv4HeaderSlice::from_slice(packet).map_err(|error| match error {
            ipv4::HeaderSliceError::Len(_) => HeaderError::Short,
            ipv4::HeaderSliceError::Content(_) => HeaderError::Malformed,
        })?;
        Ok(Self {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            protocol: header.protocol().0,
            hop_limit: header.ttl(),
            ip_octets: Some(header.total_len()).filter(|octets| *octets > 0).map(u32::from),
            header_octets: header.slice().len(),
            id: Some(header.identification()),
            more_fragments: header.more_fragments(),
            fragment_offset: header.fragments_offset().value(),
        })
    }

    #[inline]
    fn read_v6(packet: &[u8]) -> Result<Self, HeaderError> {
        let header = Ipv6HeaderSlice::from_slice(packet).map_err(|error| match error {
            ipv6::HeaderSliceError::Len(_) => HeaderError::Short,
            ipv6::HeaderSliceError::Content(_) => HeaderError::Malformed,
        })?;
        let payload = Some(header.payload_length()).filter(|octets| *octets > 0);
        Ok(Self {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            protocol: header.next_header().0,
            hop_limit: header.hop_limit(),
            ip_octets: payload.map(|octets| u32::from(octets) + 40),
            header_octets: IPV6_OCTETS,
            id: None,
            more_fragments: false,
            fragment_offset: 0,
        })
    }

    /// Whether it is of version 6.
    #[inline]
    pub fn is_ipv6(&self) -> bool {
        self.source.is_ipv6()
    }

    /// Whether it is of a fragment that does not begin its datagram (IPv4 only).
    #[inline]
    pub fn is_later_fragment(&self) -> bool {
        self.fragment_offset > 0
    }

    /// What follows in `packet`, which this header was read from, behind the extension headers of
    /// IPv6.
    #[inline]
    pub fn transport<'a>(&self, packet: &'a [u8]) -> Result<Transport<'a>, HeaderError> {
        let mut octets = packet.get(self.header_octets..).ok_or(HeaderError::Short)?;
        let mut protocol = IpNumber(self.protocol);
        let mut fragment = self.more_fragments || self.is_later_fragment();
        let most = if self.is_ipv6() { MOST_EXTENSIONS } else { 0 };
        for _ in 0..most {
            if !Ipv6Header::is_skippable_header_extension(protocol) {
                break;
            }
            if protocol == ip_number::IPV6_FRAG {
                let header = Ipv6FragmentHeaderSlice::from_slice(octets).map_err(|_| HeaderError::Short)?;
                // An "atomic" fragment is a whole packet (RFC 6946).
                fragment |= header.is_fragmenting_payload();
            }
            (protocol, octets) =
                Ipv6Header::skip_header_extension_in_slice(octets, protocol).map_err(|_| HeaderError::Short)?;
        }
        Ok(Transport { protocol: protocol.0, fragment, header_octets: packet.len() - octets.len(), octets })
    }
}

/// The header of a packet that is sent as a whole: no options, no extensions, not to be fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainHeader {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same version.
    pub destination: IpAddr,
    /// Protocol or next header.
    pub protocol: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// Type of service or traffic class.
    pub service: u8,
}

impl PlainHeader {
    /// Appends the header of a packet with so many octets behind it. `None`, and nothing is
    /// appended, if the addresses are of different versions or the packet would be too long for IP.
    pub fn write(&self, payload_octets: usize, into: &mut Vec<u8>) -> Option<()> {
        let payload = u16::try_from(payload_octets).ok()?;
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let protocol = IpNumber(self.protocol);
                let (source, destination) = (source.octets(), destination.octets());
                let mut header = Ipv4Header::new(payload, self.hop_limit, protocol, source, destination).ok()?;
                header.dscp = IpDscp::try_new(self.service >> 2).ok()?;
                header.ecn = IpEcn::try_new(self.service & 3).ok()?;
                // So that the identification may be zero (RFC 6864).
                header.dont_fragment = true;
                header.header_checksum = header.calc_header_checksum();
                into.extend(header.to_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let header = Ipv6Header {
                    traffic_class: self.service,
                    payload_length: payload,
                    next_header: IpNumber(self.protocol),
                    hop_limit: self.hop_limit,
                    source: source.octets(),
                    destination: destination.octets(),
                    ..Ipv6Header::default()
                };
                into.extend(header.to_bytes());
            }
            _ => return None,
        }
        Some(())
    }
}

/// Writes another TTL or hop limit into a packet that [`IpHeader::read`] accepted, and mends the
/// IPv4 header checksum by the change alone (RFC 1624 eqn. 3), so that a checksum that was wrong
/// stays wrong. The library writes whole headers only, with their options decoded.
#[inline]
pub fn set_hop_limit(packet: &mut [u8], hop_limit: u8) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(header) = packet.first_chunk_mut::<IPV4_OCTETS>() else {
                return;
            };
            let before = u16::from_be_bytes([header[8], header[9]]);
            header[8] = hop_limit;
            let after = u16::from_be_bytes([header[8], header[9]]);
            let checksum = u16::from_be_bytes([header[10], header[11]]);
            let sum = Sum::new().word(!checksum).word(!before).word(after);
            header[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
        }
        Some(6) => {
            if let Some(place) = packet.get_mut(7) {
                *place = hop_limit;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
