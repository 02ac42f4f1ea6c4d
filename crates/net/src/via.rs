//! By what a remote host is made to answer.

use std::fmt;
use std::str::FromStr;

use narrows_probe::Answering;
use narrows_wire::stamp::STAMP_PORT;

/// By what a remote host is made to answer, and at which port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// ICMP echoes, over either IP version.
    Icmp,
    /// UDP datagrams to a port on which nothing listens.
    Udp {
        /// The port.
        port: u16,
    },
    /// TCP SYNs, to an open or a closed port. Needs `CAP_NET_RAW`.
    Tcp {
        /// The port.
        port: u16,
    },
    /// STAMP (RFC 8762) or TWAMP-Light packets to a Session-Reflector.
    Stamp {
        /// The port.
        port: u16,
    },
}

impl Via {
    /// First port that traceroute asks at: nothing is known to listen there.
    pub const UDP_PORT: u16 = 33_434;
    /// HTTP: the port that firewalls most often let through.
    pub const TCP_PORT: u16 = 80;

    /// What the peer then is to a method.
    pub fn answering(self) -> Answering {
        match self {
            Self::Icmp => Answering::Echo,
            Self::Udp { .. } => Answering::ClosedPort,
            Self::Tcp { .. } => Answering::TcpSyn,
            Self::Stamp { .. } => Answering::Reflector,
        }
    }

    /// The port; zero where there is none.
    pub fn port(self) -> u16 {
        match self {
            Self::Icmp => 0,
            Self::Udp { port } | Self::Tcp { port } | Self::Stamp { port } => port,
        }
    }

    /// `icmp`, `udp`, `tcp` or `stamp`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Icmp => "icmp",
            Self::Udp { .. } => "udp",
            Self::Tcp { .. } => "tcp",
            Self::Stamp { .. } => "stamp",
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Icmp => f.write_str("ICMP echo"),
            Self::Udp { port } => write!(f, "UDP port {port}"),
            Self::Tcp { port } => write!(f, "TCP port {port}"),
            Self::Stamp { port } => write!(f, "STAMP port {port}"),
        }
    }
}

/// Text that names no way to be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of icmp, udp[:PORT], tcp[:PORT], stamp[:PORT] (ports 1 to 65535)")]
pub struct ViaError(String);

impl FromStr for Via {
    type Err = ViaError;

    fn from_str(text: &str) -> Result<Self, ViaError> {
        let wrong = || ViaError(text.to_owned());
        let (name, port) = match text.split_once(':') {
            None => (text, None),
            Some((name, port)) => {
                let port = port.parse().ok().filter(|port| *port > 0);
                (name, Some(port.ok_or_else(wrong)?))
            }
        };
        match (name, port) {
            ("icmp", None) => Ok(Self::Icmp),
            ("udp", port) => Ok(Self::Udp { port: port.unwrap_or(Self::UDP_PORT) }),
            ("tcp", port) => Ok(Self::Tcp { port: port.unwrap_or(Self::TCP_PORT) }),
            ("stamp", port) => Ok(Self::Stamp { port: port.unwrap_or(STAMP_PORT) }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ports_are_read() {
        assert_eq!("icmp".parse(), Ok(Via::Icmp));
        assert_eq!("udp".parse(), Ok(Via::Udp { port: 33_434 }));
        assert_eq!("tcp:22".parse(), Ok(Via::Tcp { port: 22 }));
        assert_eq!("stamp".parse(), Ok(Via::Stamp { port: 862 }));
        for wrong in ["", "icmp:7", "udp:", "udp:0", "udp:65536", "tcp:-1", "sctp", "TCP", "stamp:862:1"] {
            assert!(wrong.parse::<Via>().is_err(), "{wrong}");
        }
    }
}
