//! ICMP of both versions: echoes, and errors: what a router says of a packet that it did not pass
//! on, which packet that was, and what the answer says beside.
//!
//! ```text
//!  ICMP header, 8 octets: type, code, checksum, length of the quote (RFC 4884), MTU
//!  the quote: IP header and what followed (8 octets or more, RFC 792; RFC 1812, RFC 4443)
//!  extensions (RFC 4884): version 2, checksum, objects: MPLS labels (RFC 4950), others
//! ```
//!
//! All of it comes from anybody: [`Message::read_echo`], [`IcmpError::parse_v4`],
//! [`IcmpError::parse_v6`], [`Quoted::parse`] and [`Extensions::parse`] read any octets without a
//! panic and without an allocation that the octets could make large.

use etherparse::{icmpv4, icmpv6};

use crate::checksum::checksum;
use crate::ip::IpHeader;

mod extension;
mod quote;
mod write;

pub use extension::{Extensions, ExtensionsError, InterfaceInfo, InterfaceRole, MAX_OBJECTS, MplsLabel, Object};
pub use quote::Quoted;
pub use write::{Echo, Message, write_checksum, write_packet};

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

/// Octets of the ICMP header of an error or an echo.
pub const ICMP_OCTETS: usize = 8;
/// Shortest quote in front of extensions, and where those begin that do not say how long the quote
/// is (RFC 4884 §5.5).
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

impl IcmpKind {
    /// By type and code of `ICMPv4` (RFC 792) and the MTU of RFC 1191; `None` if it is no error
    /// about a packet.
    pub fn of_v4(kind: u8, code: u8, mtu: u32) -> Option<Self> {
        match (kind, code) {
            (icmpv4::TYPE_TIME_EXCEEDED, _) => Some(Self::TimeExceeded),
            (icmpv4::TYPE_DEST_UNREACH, icmpv4::CODE_DST_UNREACH_PORT) => Some(Self::PortUnreachable),
            (icmpv4::TYPE_DEST_UNREACH, icmpv4::CODE_DST_UNREACH_NEED_FRAG) => Some(Self::PacketTooBig { mtu }),
            (icmpv4::TYPE_DEST_UNREACH, code) => Some(Self::Unreachable { code }),
            _ => None,
        }
    }

    /// By type and code of `ICMPv6` (RFC 4443).
    pub fn of_v6(kind: u8, code: u8, mtu: u32) -> Option<Self> {
        match (kind, code) {
            (icmpv6::TYPE_TIME_EXCEEDED, _) => Some(Self::TimeExceeded),
            (icmpv6::TYPE_DST_UNREACH, icmpv6::CODE_DST_UNREACH_PORT) => Some(Self::PortUnreachable),
            (icmpv6::TYPE_PACKET_TOO_BIG, _) => Some(Self::PacketTooBig { mtu }),
            (icmpv6::TYPE_DST_UNREACH, code) => Some(Self::Unreachable { code }),
            _ => None,
        }
    }
}

impl<'a> IcmpError<'a> {
    /// An `ICMPv4` message, from its own header on (RFC 792).
    pub fn parse_v4(message: &'a [u8]) -> Result<Self, IcmpParseError> {
        let [kind, code, _, _, _, words, mtu @ ..] = header(message)?;
        if checksum(message) != 0 {
            return Err(IcmpParseError::Checksum);
        }
        let mtu = u16::from_be_bytes(mtu).into();
        let kind = IcmpKind::of_v4(kind, code, mtu).ok_or(IcmpParseError::NoError(kind))?;
        // In words of 32 bits. Where the next MTU is told, the octet before it still is the length.
        Self::with_quote(kind, &message[ICMP_OCTETS..], usize::from(words) * 4, false)
    }

    /// An `ICMPv6` message, from its own header on (RFC 4443). The kernel has checked its checksum,
    /// which covers the addresses.
    pub fn parse_v6(message: &'a [u8]) -> Result<Self, IcmpParseError> {
        let [kind, code, _, _, mtu @ ..] = header(message)?;
        // In words of 64 bits; the message that says what would fit has an MTU there, and no
        // extensions.
        let reported = if kind == icmpv6::TYPE_PACKET_TOO_BIG { 0 } else { usize::from(mtu[0]) * 8 };
        let mtu = u32::from_be_bytes(mtu);
        let kind = IcmpKind::of_v6(kind, code, mtu).ok_or(IcmpParseError::NoError(kind))?;
        Self::with_quote(kind, &message[ICMP_OCTETS..], reported, true)
    }

    fn with_quote(kind: IcmpKind, body: &'a [u8], reported: usize, ipv6: bool) -> Result<Self, IcmpParseError> {
        let (quote, extensions) = split(body, reported);
        Ok(Self { kind, quoted: Quoted::parse(quote, ipv6)?, extensions })
    }
}

/// The quote, and the extensions behind it, of what follows the ICMP header. `reported`: how long
/// the quote is said to be, zero: not said.
pub(crate) fn split(body: &[u8], reported: usize) -> (&[u8], Option<Extensions>) {
    if reported >= LEAST_QUOTE
        && let Some((quote, rest)) = body.split_at_checked(reported)
    {
        return (quote, Extensions::parse(rest).ok());
    }
    // Routers older than RFC 4884 append them to 128 octets without a word. A quote that long is
    // much more often a quote, so that nothing but a checksum that fits will do.
    if reported == 0
        && let Some((quote, rest)) = body.split_at_checked(LEAST_QUOTE)
        && let Ok(extensions) = Extensions::parse_checked(rest)
    {
        return (quote, Some(extensions));
    }
    (body, None)
}

/// The extensions in an answer whose ICMP header and IP headers a kernel has taken off: `rest` is
/// what it left, `at` where it says that they begin in that, and `taken` how many octets of the
/// quote it took off.
pub fn extensions_behind(rest: &[u8], at: Option<usize>, taken: usize) -> Option<Extensions> {
    match at {
        Some(at) => Extensions::parse(rest.get(at..)?).ok(),
        None => Extensions::parse_checked(rest.get(LEAST_QUOTE.checked_sub(taken)?..)?).ok(),
    }
}

fn header(message: &[u8]) -> Result<[u8; ICMP_OCTETS], IcmpParseError> {
    message.first_chunk::<ICMP_OCTETS>().copied().ok_or(IcmpParseError::Short("the ICMP header"))
}

/// Whether a packet is an ICMP error or a redirect, judged by its type; also if the type is cut off
/// or hidden, since then nobody can say that it is not.
pub fn may_be_error(header: &IpHeader, packet: &[u8]) -> bool {
    let kind = packet.get(header.header_octets);
    match (header.is_ipv6(), header.protocol) {
        (false, crate::ICMPV4) => kind.is_none_or(|kind| matches!(kind, 3 | 4 | 5 | 11 | 12)),
        (true, crate::ICMPV6) => kind.is_none_or(|&kind| kind < 128 || kind == icmpv6::TYPE_REDIRECT_MESSAGE),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
