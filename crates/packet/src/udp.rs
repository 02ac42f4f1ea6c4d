//! UDP headers (RFC 768).

use std::net::IpAddr;

use etherparse::UdpHeaderSlice;

use crate::checksum::Sum;
use crate::reader::Reader;

/// Octets of a UDP header.
pub const UDP_OCTETS: usize = 8;

/// A UDP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Octets of header and payload.
    pub octets: u16,
    /// Checksum; zero: none (IPv4).
    pub checksum: u16,
}

impl UdpHeader {
    /// Reads the header at the front of a datagram, which need not be whole.
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let header = UdpHeaderSlice::from_slice(datagram).ok()?;
        Some(Self {
            source_port: header.source_port(),
            destination_port: header.destination_port(),
            octets: header.length(),
            checksum: header.checksum(),
        })
    }
}

/// Writes the header of a datagram over its first eight octets, checksum over the rest included.
/// `false` if it has fewer, or more than UDP allows.
pub fn write(ends: (IpAddr, IpAddr), ports: (u16, u16), datagram: &mut [u8]) -> bool {
    let (Ok(octets), Some(place)) = (u16::try_from(datagram.len()), datagram.first_chunk_mut::<UDP_OCTETS>()) else {
        return false;
    };
    let mut header =
        etherparse::UdpHeader { source_port: ports.0, destination_port: ports.1, length: octets, checksum: 0 };
    *place = header.to_bytes();
    let sum = Sum::pseudo_header(ends.0, ends.1, crate::UDP, octets.into()).octets(datagram);
    // Zero would say that there is none; its other form in one's complement is all ones.
    header.checksum = Some(sum.checksum()).filter(|sum| *sum > 0).unwrap_or(u16::MAX);
    datagram[..UDP_OCTETS].copy_from_slice(&header.to_bytes());
    true
}

/// Source and destination port, which TCP and UDP have in the same place: four octets of a header
/// are enough for them.
#[inline]
pub fn ports(transport: &[u8]) -> Option<(u16, u16)> {
    let mut reader = Reader::new(transport);
    Some((reader.u16()?, reader.u16()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By hand: c000 + 0201 + c000 + 0202 + 11 + d + 1234 + 0035 + d + "hello" (6865 6c6c 6f00) =
    /// `2_da68`, folded `da6a`.
    #[test]
    fn a_datagram_by_hand() {
        let mut datagram = *b"........hello";
        let ends = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        assert!(write(ends, (0x1234, 53), &mut datagram));
        assert_eq!(datagram[..8], [0x12, 0x34, 0, 53, 0, 13, 0x25, 0x95]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            addresses: ([u8; 16], [u8; 16]),
            near: u16,
            remote: u16,
            mut datagram in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let ends = (addresses.0.into(), addresses.1.into());
            let written = write(ends, (near, remote), &mut datagram);
            prop_assert_eq!(written, datagram.len() >= UDP_OCTETS);
            if written {
                let read = UdpHeader::read(&datagram).unwrap();
                prop_assert_eq!((read.source_port, read.destination_port), (near, remote));
                prop_assert_eq!(ports(&datagram[..4]), Some((near, remote)));
                prop_assert_eq!(usize::from(read.octets), datagram.len());
                let sum = Sum::pseudo_header(ends.0, ends.1, crate::UDP, read.octets.into());
                prop_assert_eq!(sum.octets(&datagram).checksum(), 0);
                prop_assert!(read.checksum > 0);
            }
            for length in 0..datagram.len().min(UDP_OCTETS) {
                prop_assert_eq!(UdpHeader::read(&datagram[..length]), None);
            }
        }
    }
}
