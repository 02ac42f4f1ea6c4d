//! IP, ICMP, UDP and TCP headers and their checksums, read and written.
//!
//! | module | holds |
//! |---|---|
//! | [`checksum`] | the sum of RFC 1071, pseudo headers |
//! | [`ip`] | headers of both versions, chains of IPv6 extension headers, changing a hop limit |
//! | [`icmp`] | echoes; errors with the packet that they quote and their RFC 4884 extensions |
//! | [`tcp`], [`udp`] | headers of TCP and UDP |
//!
//! Fields and sums are those of etherparse. A header type here holds the fields by value, so that nothing is left in it that could
//! be out of bounds. Octets of unknown origin enter through `read` and `parse`, which never panic and need no more of a packet than they
//! return: a capture keeps the front of a packet, an ICMP error quotes the front of one. Lengths are what headers say; whether they can be
//! true is the caller's question, except in [`ip::IpHeader::read_whole`].

pub mod checksum;
pub mod icmp;
pub mod ip;
mod reader;
pub mod tcp;
pub mod udp;

/// Protocol number of `ICMPv4`.
pub const ICMPV4: u8 = 1;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Next-header number of `ICMPv6`.
pub const ICMPV6: u8 = 58;
