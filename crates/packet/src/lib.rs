//! IP, ICMP, UDP and TCP headers and their checksums, read and written.
//!
//! | module | holds |
//! |---|---|
//! | [`checksum`] | the sum of RFC 1071, pseudo headers |
//! | [`ip`] | headers of both versions, chains of IPv6 extension headers, changing a hop limit |
//! | [`icmp`] | echoes; errors with the packet that they quote and their RFC 4884 extensions |
//! | [`tcp`], [`udp`] | headers of TCP and UDP |
//!
//! The crate etherparse reads and writes the fields, and computes the sums. Header types hold their
//! fields by value: no index into a packet is kept. Octets of unknown origin enter through `read`
//! and `parse`, which never panic. A truncated packet is enough if it holds the header: captures
//! and ICMP quotes cut packets short. What is too short or malformed is `None` or an error. Lengths
//! are what the headers claim. The caller checks them against what it has, except in
//! [`ip::IpHeader::read_whole`].

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
