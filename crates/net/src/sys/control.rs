//! Ancillary data: what the kernel says about a message beside its payload. Safe code over plain
//! octets.

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Octets of one message's ancillary data: three stamps, hop limit, extended error with an address,
/// and room.
pub(crate) const CONTROL_OCTETS: usize = 320;

/// `SO_TIMESTAMPING_NEW` (Linux 5.1): the same with 64-bit times on every architecture.
pub(crate) const SO_TIMESTAMPING_NEW: c_int = 65;

/// Storage that is aligned as the kernel writes it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct Control(pub(crate) [u8; CONTROL_OCTETS]);

impl Control {
    pub(crate) const EMPTY: Self = Self([0; CONTROL_OCTETS]);
}

/// What the ancillary data of one message said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ancillary {
    /// Software stamp, `CLOCK_REALTIME` nanoseconds.
    pub(crate) kernel_ns: Option<i64>,
    /// The card's raw stamp, nanoseconds of its own clock.
    pub(crate) hardware_ns: Option<i64>,
    /// Hop limit (TTL) with which the packet arrived.
    pub(crate) hop_limit: Option<u8>,
    /// DSCP and ECN with which the packet arrived, where the socket asks for it.
    pub(crate) traffic_class: Option<u8>,
    /// The message holds datagrams of so many octets each, the last one perhaps shorter
    /// (`UDP_GRO`).
    pub(crate) segment_octets: Option<usize>,
    /// An entry of the error queue.
    pub(crate) error: Option<ExtendedError>,
}

/// `struct sock_extended_err`, and who caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExtendedError {
    pub(crate) errno: u32,
    pub(crate) origin: u8,
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) info: u32,
    pub(crate) data: u32,
    pub(crate) offender: Option<IpAddr>,
}

const HEADER_OCTETS: usize = size_of::<libc::cmsghdr>();
const ALIGNMENT: usize = size_of::<usize>();

impl Ancillary {
    /// Reads every message that it knows; a damaged list ends the reading.
    pub(crate) fn parse(mut octets: &[u8]) -> Self {
        let mut found = Self::default();
        while octets.len() >= HEADER_OCTETS {
            let Some(length) = word(octets, 0).filter(|length| (HEADER_OCTETS..=octets.len()).contains(length)) else {
                break;
            };
            let (Some(level), Some(kind)) = (int(octets, ALIGNMENT), int(octets, ALIGNMENT + 4)) else {
                break;
            };
            found.take(level, kind, &octets[HEADER_OCTETS..length]);
            octets = octets.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        }
        found
    }

    fn take(&mut self, level: c_int, kind: c_int, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_SOCKET, SO_TIMESTAMPING_NEW) => {
                self.kernel_ns = timespec(data, 0);
                self.hardware_ns = timespec(data, 32);
            }
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                self.hop_limit = int(data, 0).and_then(|value| u8::try_from(value).ok());
            }
            // One octet of the one, an integer of the other.
            (libc::IPPROTO_IP, libc::IP_TOS) => self.traffic_class = data.first().copied(),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                self.traffic_class = int(data, 0).and_then(|value| u8::try_from(value).ok());
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                self.segment_octets = int(data, 0).and_then(|octets| usize::try_from(octets).ok());
            }
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                self.error = ExtendedError::parse(data);
            }
            _ => {}
        }
    }
}

impl ExtendedError {
    /// `struct sock_ee_data_rfc4884`: where in the message the extensions begin that an ICMP error
    /// has. What the kernel found wrong with them is for the reader to find again.
    pub(crate) fn extensions_at(&self) -> Option<usize> {
        let [low, high, ..] = self.data.to_ne_bytes();
        Some(usize::from(u16::from_ne_bytes([low, high]))).filter(|at| *at > 0)
    }

    fn parse(data: &[u8]) -> Option<Self> {
        Some(Self {
            errno: int(data, 0)?.cast_unsigned(),
            origin: *data.get(4)?,
            kind: *data.get(5)?,
            code: *data.get(6)?,
            info: int(data, 8)?.cast_unsigned(),
            data: int(data, 12)?.cast_unsigned(),
            offender: address(data.get(16..).unwrap_or_default()).map(|address| address.ip()),
        })
    }
}

/// A socket address as the kernel lays it out (`sockaddr_in`, `sockaddr_in6`).
pub(crate) fn address(data: &[u8]) -> Option<SocketAddr> {
    let family = c_int::from(u16::from_ne_bytes(data.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(data.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET => {
            let octets: [u8; 4] = data.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::new(Ipv4Addr::from(octets).into(), port))
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = data.get(8..24)?.try_into().ok()?;
            Some(SocketAddr::new(Ipv6Addr::from(octets).into(), port))
        }
        _ => None,
    }
}

fn word(octets: &[u8], at: usize) -> Option<usize> {
    Some(usize::from_ne_bytes(octets.get(at..at + ALIGNMENT)?.try_into().ok()?))
}

fn int(octets: &[u8], at: usize) -> Option<c_int> {
    Some(c_int::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?))
}

/// Seconds and nanoseconds, 64 bit each; `None` if both are zero, which is how the kernel says "no
/// stamp".
fn timespec(octets: &[u8], at: usize) -> Option<i64> {
    let seconds = i64::from_ne_bytes(octets.get(at..at + 8)?.try_into().ok()?);
    let nanos = i64::from_ne_bytes(octets.get(at + 8..at + 16)?.try_into().ok()?);
    if (seconds, nanos) == (0, 0) {
        return None;
    }
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One message, padded to the next.
    fn message(level: c_int, kind: c_int, data: &[u8]) -> Vec<u8> {
        let mut octets = (HEADER_OCTETS + data.len()).to_ne_bytes().to_vec();
        octets.extend(level.to_ne_bytes());
        octets.extend(kind.to_ne_bytes());
        octets.extend(data);
        octets.resize(octets.len().next_multiple_of(ALIGNMENT), 0);
        octets
    }

    #[test]
    fn reads_stamps_and_hop_limit() {
        let mut stamps = Vec::new();
        for value in [7i64, 5, 0, 0, 9, 1] {
            stamps.extend(value.to_ne_bytes());
        }
        let mut octets = message(libc::SOL_SOCKET, SO_TIMESTAMPING_NEW, &stamps);
        octets.extend(message(libc::IPPROTO_IP, libc::IP_TTL, &61i32.to_ne_bytes()));
        octets.extend(message(libc::SOL_UDP, libc::UDP_GRO, &1_200i32.to_ne_bytes()));
        let found = Ancillary::parse(&octets);
        assert_eq!(found.kernel_ns, Some(7_000_000_005));
        assert_eq!(found.hardware_ns, Some(9_000_000_001));
        assert_eq!(found.hop_limit, Some(61));
        assert_eq!(found.segment_octets, Some(1_200));
    }

    #[test]
    fn reads_an_extended_error_and_its_offender() {
        let mut data = 113u32.to_ne_bytes().to_vec();
        data.extend([2, 11, 0, 0]);
        data.extend(0u32.to_ne_bytes());
        data.extend(77u32.to_ne_bytes());
        data.extend(2u16.to_ne_bytes());
        data.extend([0, 0, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let error = Ancillary::parse(&message(0, libc::IP_RECVERR, &data)).error.unwrap();
        assert_eq!((error.origin, error.kind, error.data), (2, 11, 77));
        assert_eq!(error.offender, Some("192.0.2.1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn any_octets_end(octets in proptest::collection::vec(any::<u8>(), 0..400)) {
            Ancillary::parse(&octets);
            address(&octets);
        }
    }
}
