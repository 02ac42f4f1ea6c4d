//! Records of the classic capture file (pcap).

use pcap_parser::{
    LegacyPcapBlock, PcapError, PcapHeader, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
};
use std::io::Read;

use super::window::Window;
use super::{LocatedPacket, MOST_PACKET_OCTETS, Stopped};
use crate::damage::Fault;
use crate::packet::LinkType;

/// How far apart two neighbouring records may be for a place after damage to look like a record: a
/// day.
const NEAR_SECONDS: u32 = 86_400;

/// What the file's header says.
#[derive(Debug)]
pub(super) struct Legacy {
    big_endian: bool,
    header_octets: usize,
    /// Nanoseconds of one unit of a stamp's fraction.
    unit_ns: u32,
    link: LinkType,
    last_seconds: Option<u32>,
}

/// The fields of a record's header.
struct Head {
    seconds: u32,
    fraction: u32,
    kept: u32,
    whole: u32,
}

impl Legacy {
    pub(super) fn new(header: &PcapHeader) -> Self {
        let network = u32::from_ne_bytes(header.network.0.to_ne_bytes());
        Self {
            big_endian: header.is_bigendian(),
            header_octets: if header.is_modified_format() { 24 } else { 16 },
            unit_ns: if header.is_nanosecond_precision() { 1 } else { 1_000 },
            // The upper bits say how long a frame check sequence is.
            link: LinkType::new(network & 0xFFFF),
            last_seconds: None,
        }
    }

    pub(super) const fn resolution_ns(&self) -> i64 {
        self.unit_ns as i64
    }

    /// The next record.
    pub(super) fn next<R: Read>(&mut self, window: &mut Window<R>) -> Result<LocatedPacket, Stopped> {
        if !window.fill(self.header_octets) {
            return Err(Stopped::Ended { clean: window.seen().is_empty() });
        }
        let head = self.head(window.seen());
        self.check(&head).map_err(Stopped::Damaged)?;
        let kept = usize::try_from(head.kept).unwrap_or(usize::MAX);
        if !window.fill(self.header_octets + kept) {
            return Err(Stopped::Ended { clean: false });
        }
        let parsed = if self.big_endian {
            parse_pcap_frame_be(window.seen())
        } else if self.header_octets == 24 {
            parse_pcap_frame_modified(window.seen())
        } else {
            parse_pcap_frame(window.seen())
        };
        let block: LegacyPcapBlock<'_> = parsed
            .map(|(_, block)| block)
            .map_err(|_: pcap_parser::nom::Err<PcapError<&[u8]>>| Stopped::Ended { clean: false })?;
        self.last_seconds = Some(block.ts_sec);
        let at_ns = i64::from(block.ts_sec) * 1_000_000_000 + i64::from(block.ts_usec) * i64::from(self.unit_ns);
        Ok(LocatedPacket {
            at_ns: Some(at_ns),
            link: self.link,
            from: self.header_octets,
            to: self.header_octets + block.data.len(),
            record: self.header_octets + block.data.len(),
            whole_octets: block.origlen,
            outgoing: None,
        })
    }

    /// Whether the window's place `at` looks like the beginning of a record that is followed by
    /// another one, or by nothing.
    pub(super) fn looks_right<R: Read>(&self, window: &mut Window<R>, at: usize) -> bool {
        if !window.fill(at + self.header_octets) {
            return false;
        }
        let first = self.head(window.part(at, at + self.header_octets));
        if !self.is_plausible(&first, self.last_seconds) {
            return false;
        }
        let next = at + self.header_octets + usize::try_from(first.kept).unwrap_or(usize::MAX);
        if !window.fill(next + self.header_octets) {
            return window.seen().len() == next;
        }
        let second = self.head(window.part(next, next + self.header_octets));
        self.is_plausible(&second, Some(first.seconds))
    }

    /// Octets at the beginning of these at which no record can begin, by what it would keep alone:
    /// a quick look before a thorough one.
    pub(super) fn hopeless(&self, octets: &[u8]) -> usize {
        let kept = |place: &[u8]| match *place {
            [.., a, b, c, d] if self.big_endian => u32::from_be_bytes([a, b, c, d]),
            [.., a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
            _ => 0,
        };
        let hope = octets.windows(12).position(|place| (1..=MOST_PACKET_OCTETS).contains(&kept(place)));
        hope.unwrap_or(octets.len().saturating_sub(11))
    }

    fn is_plausible(&self, head: &Head, near: Option<u32>) -> bool {
        self.check(head).is_ok() && head.kept > 0 && near.is_none_or(|near| near.abs_diff(head.seconds) <= NEAR_SECONDS)
    }

    fn check(&self, head: &Head) -> Result<(), Fault> {
        // No packet has no octets; files that were laid out ahead and never filled are full of
        // them. Nor is more kept of one than it had.
        if head.kept > MOST_PACKET_OCTETS || head.whole == 0 || head.kept > head.whole {
            return Err(Fault::RecordLength { octets: u64::from(head.kept) });
        }
        if u64::from(head.fraction) * u64::from(self.unit_ns) >= 1_000_000_000 {
            return Err(Fault::Stamp);
        }
        Ok(())
    }

    fn head(&self, octets: &[u8]) -> Head {
        let word = |index: usize| {
            let octets: [u8; 4] =
                octets.get(4 * index..4 * index + 4).and_then(|octets| octets.try_into().ok()).unwrap_or_default();
            if self.big_endian { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) }
        };
        Head { seconds: word(0), fraction: word(1), kept: word(2), whole: word(3) }
    }
}
