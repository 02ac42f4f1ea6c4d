//! TCP headers (RFC 9293) and the options that measuring needs.

use std::net::IpAddr;

use etherparse::TcpHeaderSlice;

use crate::checksum::Sum;
use crate::ip::HeaderError;

/// Octets of a TCP header without options.
pub const TCP_OCTETS: usize = 20;

/// A TCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// What it acknowledges, if it does.
    pub acknowledgement: Option<u32>,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// Window, not scaled.
    pub window: u16,
    /// Checksum.
    pub checksum: u16,
    /// Octets of the header by its own account; fewer than the 20 that it has make no sense.
    pub header_octets: usize,
}

impl TcpHeader {
    /// Reads the header at the front of a segment, of which no more than 20 octets need to be
    /// there.
    #[inline]
    pub fn read(segment: &[u8]) -> Result<Self, HeaderError> {
        let mut fixed: [u8; TCP_OCTETS] = *segment.first_chunk().ok_or(HeaderError::Short)?;
        let header_octets = usize::from(fixed[12] >> 4) * 4;
        if header_octets < TCP_OCTETS {
            return Err(HeaderError::Malformed);
        }
        // Captures cut headers within their options, and the library refuses a header that is not
        // whole.
        fixed[12] = 5 << 4 | fixed[12] & 0x0f;
        let header = TcpHeaderSlice::from_slice(&fixed).map_err(|_| HeaderError::Malformed)?;
        Ok(Self {
            source_port: header.source_port(),
            destination_port: header.destination_port(),
            sequence: header.sequence_number(),
            acknowledgement: header.ack().then(|| header.acknowledgment_number()),
            syn: header.syn(),
            fin: header.fin(),
            rst: header.rst(),
            window: header.window_size(),
            checksum: header.checksum(),
            header_octets,
        })
    }

    /// Writes the header, without options, over the first 20 octets of a segment, checksum over the
    /// rest included; `checksum` and `header_octets` are not asked. `false` if the segment has
    /// fewer octets.
    pub fn write(&self, ends: (IpAddr, IpAddr), segment: &mut [u8]) -> bool {
        let mut header =
            etherparse::TcpHeader::new(self.source_port, self.destination_port, self.sequence, self.window);
        header.ack = self.acknowledgement.is_some();
        header.acknowledgment_number = self.acknowledgement.unwrap_or(0);
        (header.syn, header.fin, header.rst) = (self.syn, self.fin, self.rst);
        let Some(place) = segment.get_mut(..TCP_OCTETS) else {
            return false;
        };
        place.copy_from_slice(&header.to_bytes());
        let octets = u32::try_from(segment.len()).unwrap_or(u32::MAX);
        let sum = Sum::pseudo_header(ends.0, ends.1, crate::TCP, octets).octets(segment);
        segment[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
        true
    }
}

/// The options of a TCP header that tell what a path does to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Maximum segment size, of a SYN.
    pub mss: Option<u16>,
    /// Window scale, of a SYN; at most 14.
    pub window_scale: Option<u8>,
    /// Timestamp and echoed timestamp.
    pub timestamps: Option<(u32, u32)>,
}

impl TcpOptions {
    /// Reads options as far as they were kept and make sense. The library's iterator ends at the
    /// first option that it does not know, and Multipath TCP or Fast Open often come before the
    /// timestamps.
    #[inline]
    pub fn read(octets: &[u8], syn: bool) -> Self {
        let mut found = Self::default();
        // What nearly every data packet carries, aligned as RFC 7323 appendix A has it.
        if let &[1, 1, 8, 10, a, b, c, d, e, f, g, h] = octets
            && !syn
        {
            found.timestamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
            return found;
        }
        let mut rest = octets;
        while let Some((&kind, behind)) = rest.split_first() {
            match kind {
                0 => break,
                1 => {
                    rest = behind;
                    continue;
                }
                _ => {}
            }
            let length = behind.first().map_or(0, |length| usize::from(*length));
            let Some(value) = rest.get(2..length) else { break };
            match (kind, value) {
                (2, &[a, b]) if syn => found.mss = Some(u16::from_be_bytes([a, b])),
                // Above 14 it counts as 14 (RFC 7323 §2.3).
                (3, &[shift]) if syn => found.window_scale = Some(shift.min(14)),
                (8, both) => found.timestamps = timestamps(both).or(found.timestamps),
                _ => {}
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        found
    }
}

/// Value and echo reply of the option of RFC 7323 §3.2.
fn timestamps(octets: &[u8]) -> Option<(u32, u32)> {
    let (value, reply) = octets.split_first_chunk()?;
    let reply: [u8; 4] = reply.try_into().ok()?;
    Some((u32::from_be_bytes(*value), u32::from_be_bytes(reply)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SYN: TcpHeader = TcpHeader {
        source_port: 20_000,
        destination_port: 80,
        sequence: 0x0001_0000,
        acknowledgement: None,
        syn: true,
        fin: false,
        rst: false,
        window: u16::MAX,
        checksum: 0,
        header_octets: TCP_OCTETS,
    };

    /// By hand: c000 + 0201 + c000 + 0202 + 6 + 14 + 4e20 + 50 + 1 + 5002 + ffff = `3_228f`, folded
    /// `2292`.
    #[test]
    fn a_syn_by_hand() {
        let mut segment = [0x55; TCP_OCTETS];
        assert!(SYN.write(([192, 0, 2, 1].into(), [192, 0, 2, 2].into()), &mut segment));
        assert_eq!(segment[..16], [0x4e, 0x20, 0, 80, 0, 1, 0, 0, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff]);
        assert_eq!(segment[16..], [0xdd, 0x6d, 0, 0]);
    }

    #[test]
    fn options_need_not_be_there() {
        let mut segment = [0; 60];
        SYN.write(([192, 0, 2, 1].into(), [192, 0, 2, 2].into()), &mut segment);
        segment[12] = 0xf0;
        let whole = TcpHeader::read(&segment).unwrap();
        assert_eq!(whole.header_octets, 60);
        for length in 0..60 {
            let expected = if length < TCP_OCTETS { Err(HeaderError::Short) } else { Ok(whole) };
            assert_eq!(TcpHeader::read(&segment[..length]), expected);
        }
        segment[12] = 0x40;
        assert_eq!(TcpHeader::read(&segment), Err(HeaderError::Malformed));
    }

    /// As a phone sends them: Multipath TCP and Fast Open among those that everybody knows.
    #[test]
    fn unknown_options_are_passed_over() {
        let known = [2, 4, 5, 0xb4, 4, 2];
        let unknown = [30, 4, 1, 1, 34, 2, 1];
        let others = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 3, 3, 200, 0, 99];
        let octets = [&known[..], &unknown, &others].concat();
        let read = TcpOptions { mss: Some(1_460), window_scale: Some(14), timestamps: Some((1, 2)) };
        assert_eq!(TcpOptions::read(&octets, true), read);
        let data = TcpOptions { timestamps: read.timestamps, ..TcpOptions::default() };
        assert_eq!(TcpOptions::read(&octets, false), data);
        // Cut anywhere, what is whole counts.
        for length in 0..octets.len() {
            let cut = TcpOptions::read(&octets[..length], true);
            assert_eq!(cut.mss.is_some(), length >= 4, "{length}");
            assert_eq!(cut.timestamps.is_some(), length >= 23, "{length}");
            assert_eq!(cut.window_scale.is_some(), length >= 26, "{length}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            ports: (u16, u16),
            numbers: (u32, Option<u32>),
            flags: (bool, bool, bool),
            window: u16,
            mut segment in proptest::collection::vec(any::<u8>(), 20..100),
        ) {
            let header = TcpHeader {
                source_port: ports.0,
                destination_port: ports.1,
                sequence: numbers.0,
                acknowledgement: numbers.1,
                syn: flags.0,
                fin: flags.1,
                rst: flags.2,
                window,
                ..SYN
            };
            let ends = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
            prop_assert!(header.write(ends, &mut segment));
            let read = TcpHeader::read(&segment).unwrap();
            prop_assert_eq!(read, TcpHeader { checksum: read.checksum, ..header });
            let octets = u32::try_from(segment.len()).unwrap();
            let sum = Sum::pseudo_header(ends.0, ends.1, crate::TCP, octets).octets(&segment);
            prop_assert_eq!(sum.checksum(), 0);
        }

        #[test]
        fn no_octets_panic(octets in proptest::collection::vec(any::<u8>(), 0..80), syn: bool) {
            let _ = TcpHeader::read(&octets);
            let _ = TcpOptions::read(&octets, syn);
        }
    }
}
