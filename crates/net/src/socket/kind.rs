//! What a probing socket sends, and so what stands in front of its payloads.

use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::sys::option;

/// What a socket sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UDP datagrams; payloads are UDP's.
    Udp,
    /// ICMP echo requests by a socket that needs no privilege, if the group of the process is in
    /// `net.ipv4.ping_group_range`. Payloads begin at the ICMP header, whose identifier and
    /// checksum the kernel fills in.
    Ping,
    /// ICMP echo requests by a raw socket (`CAP_NET_RAW`), which hears echo replies alone. Payloads
    /// begin at the ICMP header; over IPv4 those received begin at the IP header.
    RawIcmp,
    /// TCP segments by a raw socket (`CAP_NET_RAW`). Payloads begin at the TCP header; over IPv4
    /// those received begin at the IP header. The kernel's own TCP sees what comes back too.
    RawTcp,
}

impl Kind {
    /// Payloads received over this IP version begin at the IP header.
    pub fn receives_ip_header(self, ipv6: bool) -> bool {
        !ipv6 && matches!(self, Self::RawIcmp | Self::RawTcp)
    }

    pub(super) fn open(self, local: SocketAddr) -> io::Result<Socket> {
        let ipv6 = local.is_ipv6();
        let icmp = if ipv6 { Protocol::ICMPV6 } else { Protocol::ICMPV4 };
        let (kind, protocol) = match self {
            Self::Udp => (Type::DGRAM, Protocol::UDP),
            Self::Ping => (Type::DGRAM, icmp),
            Self::RawIcmp => (Type::RAW, icmp),
            Self::RawTcp => (Type::RAW, Protocol::TCP),
        };
        let socket = Socket::new(Domain::for_address(local), kind, Some(protocol))?;
        match self {
            Self::Udp if ipv6 => socket.set_only_v6(true)?,
            Self::RawIcmp => hear_echo_replies(&socket, ipv6)?,
            Self::Udp | Self::Ping | Self::RawTcp => {}
        }
        Ok(socket)
    }
}

/// A raw socket gets every ICMP message of the host unless it says which ones it wants.
fn hear_echo_replies(socket: &Socket, ipv6: bool) -> io::Result<()> {
    /// `ICMP_FILTER`, at level `SOL_RAW`: a bit per type up to 31, set for those that are not
    /// wanted.
    const ICMP_FILTER: c_int = 1;
    /// `ICMPV6_FILTER`, at level `IPPROTO_ICMPV6`: the same for all 256 types.
    const ICMPV6_FILTER: c_int = 1;
    const ECHO_REPLY: u32 = 1 << 0;
    const ECHO_REPLY_6: usize = 129;
    if ipv6 {
        let mut unwanted = [0xffu8; 32];
        let word = ECHO_REPLY_6 / 32;
        let bits = (!(1u32 << (ECHO_REPLY_6 % 32))).to_ne_bytes();
        unwanted[4 * word..4 * word + 4].copy_from_slice(&bits);
        option::set(socket.as_fd(), libc::IPPROTO_ICMPV6, ICMPV6_FILTER, &unwanted)
    } else {
        option::set(socket.as_fd(), libc::SOL_RAW, ICMP_FILTER, &(!ECHO_REPLY).to_ne_bytes())
    }
}
