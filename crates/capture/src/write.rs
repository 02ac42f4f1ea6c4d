//! Writing what was heard, as a pcap file with nanoseconds.

use std::io::{self, Write};

use crate::packet::{LinkType, RawPacket};

/// Writes packets of one link type.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    out: W,
}

impl<W: Write> PcapWriter<W> {
    /// Begins a file; `snap_octets` is what is kept of a packet at most.
    pub fn new(mut out: W, link: LinkType, snap_octets: u32) -> io::Result<Self> {
        out.write_all(&0xA1B2_3C4D_u32.to_le_bytes())?;
        out.write_all(&[2, 0, 4, 0])?;
        for word in [0, 0, snap_octets, link.number()] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { out })
    }

    /// One packet. A tag that was taken off is put back; what the format has no room for (stamps
    /// before 1970 or after 2106) is cut.
    pub fn write(&mut self, raw: &RawPacket<'_>) -> io::Result<()> {
        let at_ns = raw.at_ns.unwrap_or(0).max(0);
        let seconds = u32::try_from(at_ns / 1_000_000_000).unwrap_or(u32::MAX);
        let nanos = u32::try_from(at_ns % 1_000_000_000).unwrap_or(0);
        let tag = raw.vlan.filter(|_| raw.link == LinkType::ETHERNET && raw.octets.len() >= 12);
        let tag_octets = if tag.is_some() { 4 } else { 0 };
        let kept = u32::try_from(raw.octets.len()).unwrap_or(u32::MAX) + tag_octets;
        let whole = raw.whole_octets.saturating_add(tag_octets).max(kept);
        for word in [seconds, nanos, kept, whole] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        match tag {
            None => self.out.write_all(raw.octets),
            Some(tag) => {
                let (addresses, rest) = raw.octets.split_at(12);
                self.out.write_all(addresses)?;
                self.out.write_all(&[0x81, 0])?;
                self.out.write_all(&tag.to_be_bytes())?;
                self.out.write_all(rest)
            }
        }
    }

    /// Everything is out.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
