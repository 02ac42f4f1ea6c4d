//! ICMP errors: what a router says of a packet that it did not pass on, which packet that was, and what the answer says beside.
//!
//! ```text
//!  ICMP header, 8 octets: type, code, checksum, length of the quote (RFC 4884), MTU
//!  the quote: IP header, and what followed it (at least 8 octets, RFC 792; up to 576 or 1280 octets in all, RFC 1812 and 4443)
//!  extensions (RFC 4884): version 2, checksum, objects: MPLS label stack (RFC 4950), interface information (RFC 5837), others
//! ```
//!
//! All of it comes from anybody: [`IcmpError::parse_v4`], [`IcmpError::parse_v6`], [`Quoted::parse`] and [`Extensions::parse`] read any
//! octets without a panic and without an allocation that the octets could make large.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::bytes::Reader;

mod extension;
mod quote;

pub use extension::{Extensions, ExtensionsError, InterfaceInfo, InterfaceRole, MAX_OBJECTS, MplsLabel, Object};
pub use quote::Quoted;

/// What an ICMP error says, in terms that both versions share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpKind {
    /// The hop limit ran out.
    TimeExceeded,
    /// Nothing listens on the port.
    PortUnreachable,
    /// The packet does not fit on the next link.
    PacketTooBig {
        /// The next link's MTU; zero where the router says none.
        mtu: u32,
    },
    /// Any other unreachable.
    Unreachable {
        /// Its code.
        code: u8,
    },
}

/// An ICMP error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IcmpError<'a> {
    /// What it says.
    pub kind: IcmpKind,
    /// The packet that it is about.
    pub quoted: Quoted<'a>,
    /// What else it says; `None` without extensions, or with damaged ones.
    pub extensions: Option<Extensions>,
}

/// Octets of the ICMP header of an error.
const HEADER_OCTETS: usize = 8;
/// Shortest quote in front of extensions, and where those begin that do not say how long the quote is (RFC 4884 §5.5).
const LEAST_QUOTE: usize = 128;

/// Octets that are no ICMP error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IcmpParseError {
    /// They end too early.
    #[error("the message ends in the middle of {0}")]
    Short(&'static str),
    /// It is another kind of message.
    #[error("ICMP type {0} is no error about a packet")]
    NoError(u8),
    /// The checksum is another.
    #[error("the checksum does not fit")]
    Checksum,
    /// The quote is no packet of this IP version.
    #[error("what is quoted is no IP packet")]
    Quote,
}

impl<'a> IcmpError<'a> {
    /// An `ICMPv4` message, from its own header on (RFC 792).
    pub fn parse_v4(message: &'a [u8]) -> Result<Self, IcmpParseError> {
        let header = header(message)?;
        if internet_checksum(message) != 0 {
            return Err(IcmpParseError::Checksum);
        }
        let kind = match (header[0], header[1]) {
            (11, _) => IcmpKind::TimeExceeded,
            (3, 3) => IcmpKind::PortUnreachable,
            (3, 4) => IcmpKind::PacketTooBig {
                mtu: u32::from(u16::from_be_bytes([header[6], header[7]])),
            },
            (3, code) => IcmpKind::Unreachable { code },
            (other, _) => return Err(IcmpParseError::NoError(other)),
        };
        // In words of 32 bits. Where the next MTU is told, the octet before it still is the length.
        Self::with_quote(kind, &message[HEADER_OCTETS..], usize::from(header[5]) * 4, false)
    }

    /// An `ICMPv6` message, from its own header on (RFC 4443). The kernel has checked its checksum, which covers the addresses.
    pub fn parse_v6(message: &'a [u8]) -> Result<Self, IcmpParseError> {
        let header = header(message)?;
        let kind = match (header[0], header[1]) {
            (3, _) => IcmpKind::TimeExceeded,
            (1, 4) => IcmpKind::PortUnreachable,
            (2, _) => IcmpKind::PacketTooBig {
                mtu: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            },
            (1, code) => IcmpKind::Unreachable { code },
            (other, _) => return Err(IcmpParseError::NoError(other)),
        };
        // In words of 64 bits; the message that says what would fit has an MTU there, and no extensions.
        let told = if header[0] == 2 { 0 } else { usize::from(header[4]) * 8 };
        Self::with_quote(kind, &message[HEADER_OCTETS..], told, true)
    }

    fn with_quote(kind: IcmpKind, body: &'a [u8], told: usize, ipv6: bool) -> Result<Self, IcmpParseError> {
        let (quote, extensions) = split(body, told);
        Ok(Self {
            kind,
            quoted: Quoted::parse(quote, ipv6)?,
            extensions,
        })
    }
}

/// The quote, and the extensions behind it, of what follows the ICMP header. `told`: how long the quote is said to be, zero: not said.
pub(crate) fn split(body: &[u8], told: usize) -> (&[u8], Option<Extensions>) {
    if told >= LEAST_QUOTE
        && let Some((quote, rest)) = body.split_at_checked(told)
    {
        return (quote, Extensions::parse(rest).ok());
    }
    // Routers older than RFC 4884 append them to 128 octets without a word. A quote that long is much more often a quote, so that nothing
    // but a checksum that fits will do.
    if told == 0
        && let Some((quote, rest)) = body.split_at_checked(LEAST_QUOTE)
        && let Ok(extensions) = Extensions::parse_checked(rest)
    {
        return (quote, Some(extensions));
    }
    (body, None)
}

/// The extensions in an answer whose ICMP header and IP headers a kernel has taken off: `rest` is what it left, `at` where it says that they
/// begin in that, and `taken` how many octets of the quote it took off.
pub fn extensions_behind(rest: &[u8], at: Option<usize>, taken: usize) -> Option<Extensions> {
    match at {
        Some(at) => Extensions::parse(rest.get(at..)?).ok(),
        None => Extensions::parse_checked(rest.get(LEAST_QUOTE.checked_sub(taken)?..)?).ok(),
    }
}

fn header(message: &[u8]) -> Result<[u8; HEADER_OCTETS], IcmpParseError> {
    message
        .first_chunk::<HEADER_OCTETS>()
        .copied()
        .ok_or(IcmpParseError::Short("the ICMP header"))
}

/// RFC 1071: zero over octets that hold their own checksum.
pub(crate) fn internet_checksum(octets: &[u8]) -> u16 {
    let (pairs, odd) = octets.as_chunks::<2>();
    let mut sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    sum += odd.first().map_or(0, |last| u64::from(*last) << 8);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

fn v4(reader: &mut Reader<'_>) -> Option<IpAddr> {
    reader.take::<4>().map(|octets| Ipv4Addr::from(octets).into())
}

fn v6(reader: &mut Reader<'_>) -> Option<IpAddr> {
    reader.take::<16>().map(|octets| Ipv6Addr::from(octets).into())
}

#[cfg(test)]
mod tests;
