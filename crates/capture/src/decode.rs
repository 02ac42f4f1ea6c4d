//! Headers of captured packets, read in place.
//!
//! Shapes: [`decode`] goes from the link layer to the TCP header of a [`RawPacket`] and copies only
//! what passive methods need. Lengths come from the headers, so that a capture of headers alone
//! serves; octets that a capture does not hold make a packet unreadable, never anything worse.
//! Tunnels are not looked into: what is in them was not sent by the hosts at their ends.

mod ip;
mod link;
mod tcp;
#[cfg(test)]
mod tests;

use narrows_diagnose::passive::SeenPacket;
use narrows_packet::{TCP, UDP};

use crate::packet::RawPacket;

/// One end of a connection. IPv4 addresses are mapped into IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Address.
    pub address: u128,
    /// Port.
    pub port: u16,
}

/// What a packet turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// TCP, whole enough to be used.
    Tcp(TcpPacket),
    /// UDP.
    Udp,
    /// Another protocol over IP.
    OtherIp,
    /// A fragment of an IP packet.
    Fragment,
    /// Not IP.
    OtherLink,
    /// TCP without a stamp.
    Unstamped,
    /// Its headers make no sense, or the capture holds too little of them.
    Unreadable(Unreadable),
}

/// Why headers cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// The capture does not hold all of the headers.
    CutShort,
    /// A header contradicts itself or the packet's length.
    Malformed,
    /// A link type that we do not know.
    LinkType(u32),
}

/// A TCP packet's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpPacket {
    /// Where it comes from.
    pub source: Endpoint,
    /// Where it goes.
    pub destination: Endpoint,
    /// VLAN identifiers, the outer one in the upper half; 0 without.
    pub vlan: u32,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// The checksum is that of the pseudo-header alone: the card was to complete it.
    pub checksum_partial: bool,
    /// The capturing host sent it, where the capture says so.
    pub outgoing: Option<bool>,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Window scale option.
    pub window_scale: Option<u8>,
    /// What passive methods are shown.
    pub seen: SeenPacket,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::net::SocketAddr::new(self.ip(), self.port).fmt(f)
    }
}

impl Endpoint {
    /// Its address.
    pub fn ip(&self) -> std::net::IpAddr {
        std::net::Ipv6Addr::from_bits(self.address).to_canonical()
    }
}

/// Reads a packet's headers.
#[inline]
pub fn decode(raw: &RawPacket<'_>) -> Decoded {
    let mut encapsulated = match link::strip(raw) {
        Ok(Some(encapsulated)) => encapsulated,
        Ok(None) => return Decoded::OtherLink,
        Err(why) => return Decoded::Unreadable(why),
    };
    if let Some(tag) = raw.vlan {
        encapsulated.push_outer(tag);
    }
    let packet = match ip::read(encapsulated.octets, raw.whole_octets.saturating_sub(encapsulated.link_octets)) {
        Ok(packet) => packet,
        Err(why) => return Decoded::Unreadable(why),
    };
    if packet.fragment {
        return Decoded::Fragment;
    }
    match packet.protocol {
        TCP => match (tcp::read(&packet), raw.at_ns) {
            (Err(why), _) => Decoded::Unreadable(why),
            (Ok(_), None) => Decoded::Unstamped,
            (Ok(segment), Some(at_ns)) => Decoded::Tcp(TcpPacket {
                source: segment.source,
                destination: segment.destination,
                vlan: encapsulated.vlan,
                hop_limit: packet.header.hop_limit,
                checksum_partial: segment.checksum_partial,
                outgoing: encapsulated.outgoing.or(raw.outgoing),
                mss: segment.options.mss,
                window_scale: segment.options.window_scale,
                seen: SeenPacket {
                    at_ns,
                    departed_ns: None,
                    ip_octets: packet.ip_octets,
                    link_octets: u16::try_from(encapsulated.link_octets).unwrap_or(u16::MAX),
                    ip_id: packet.header.id,
                    tcp: segment.fields,
                },
            }),
        },
        UDP => Decoded::Udp,
        _ => Decoded::OtherIp,
    }
}

/// Two octets in network order.
#[inline]
fn pair(octets: &[u8], at: usize) -> Result<u16, Unreadable> {
    let pair = octets.get(at..at + 2).and_then(|pair| pair.first_chunk());
    pair.map(|pair| u16::from_be_bytes(*pair)).ok_or(Unreadable::CutShort)
}
