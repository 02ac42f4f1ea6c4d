//! Reading a capture block by block.

use std::fs::File;
use std::path::Path;

use narrows_sim::Arrival;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

use super::Filter;
use super::link::{IpPacket, ip_packet};
use crate::error::CaptureError;

/// An open capture.
pub(super) struct Capture {
    reader: Box<dyn PcapReaderIterator + Send>,
    filter: Filter,
    /// Of a pcap file, or of each interface of a pcapng section.
    interfaces: Vec<Interface>,
    /// Nanoseconds since 1970 of the first packet, and the last one's time after it.
    began: Option<i128>,
    last_ns: u64,
    read: u64,
    buffer_octets: usize,
    done: bool,
    pub(super) passed_over: u64,
    pub(super) filtered: u64,
    pub(super) out_of_time: u64,
    pub(super) damage: Option<String>,
}

#[derive(Clone, Copy)]
struct Interface {
    link: Linktype,
    /// Units of time per second, and seconds to add; `None`: no such thing as a time.
    units: Option<u64>,
    offset_s: i64,
}

/// One packet record as the file has it.
struct Record {
    packet: Option<IpPacket>,
    /// Nanoseconds since 1970.
    at: Option<i128>,
}

const BUFFER_OCTETS: usize = 1 << 18;
/// No packet record is larger than this (ours: four times the largest packet that anything
/// captures).
const MOST_OCTETS: usize = 1 << 20;

const CUT: &str = "it ends in the middle of a block";
const UNREADABLE: &str = "the system cannot read on";

impl Capture {
    pub(super) fn open(path: &Path, filter: Filter) -> Result<Self, CaptureError> {
        let shown = || path.display().to_string();
        let unreadable = |source| CaptureError::Read { path: shown(), source };
        let file = File::open(path).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(unreadable(std::io::Error::other("not a regular file; it is read twice")));
        }
        let reader = create_reader(BUFFER_OCTETS, file).map_err(|error| match error {
            PcapError::ReadError => unreadable(std::io::ErrorKind::InvalidData.into()),
            _ => CaptureError::Format { path: shown() },
        })?;
        Ok(Self {
            reader,
            filter,
            interfaces: Vec::new(),
            began: None,
            last_ns: 0,
            read: 0,
            buffer_octets: BUFFER_OCTETS,
            done: false,
            passed_over: 0,
            filtered: 0,
            out_of_time: 0,
            damage: None,
        })
    }

    /// The next packet that is to be replayed, its time since the first of them.
    pub(super) fn next_packet(&mut self) -> Option<Arrival> {
        while let Some(record) = self.next_record() {
            let Some(packet) = record.packet else {
                self.passed_over += 1;
                continue;
            };
            if !self.filter.takes(packet.from, packet.to) {
                self.filtered += 1;
                continue;
            }
            return Some(Arrival { at_ns: self.place(record.at), ip_octets: packet.ip_octets });
        }
        None
    }

    fn place(&mut self, at: Option<i128>) -> u64 {
        let since = at.map(|at| at - *self.began.get_or_insert(at));
        match since.and_then(|since| u64::try_from(since).ok()) {
            Some(since) if since >= self.last_ns => self.last_ns = since,
            _ => self.out_of_time += 1,
        }
        self.last_ns
    }

    fn next_record(&mut self) -> Option<Record> {
        enum Step {
            Take(usize, Option<Record>),
            Refill,
            Grow,
            End(Option<String>),
        }
        while !self.done {
            let place = self.reader.consumed();
            let step = match self.reader.next() {
                Ok((length, block)) => Step::Take(length, take(&mut self.interfaces, &block)),
                Err(PcapError::Eof) => Step::End(None),
                Err(PcapError::Incomplete(_)) => Step::Refill,
                Err(PcapError::UnexpectedEof) => Step::End(Some(CUT.to_owned())),
                Err(PcapError::BufferTooSmall) => Step::Grow,
                Err(PcapError::ReadError) => Step::End(Some(UNREADABLE.to_owned())),
                Err(_) => Step::End(Some("what follows is no block of a capture".to_owned())),
            };
            match step {
                Step::Take(length, record) => {
                    self.reader.consume(length);
                    if length == 0 && record.is_none() {
                        self.end(Some("an empty block".to_owned()), place);
                    }
                    if let Some(record) = record {
                        self.read += 1;
                        return Some(record);
                    }
                }
                Step::Refill => {
                    let before = self.reader.data().len();
                    if self.reader.reader_exhausted() {
                        self.end(Some(CUT.to_owned()), place);
                    } else if self.reader.refill().is_err() {
                        self.end(Some(UNREADABLE.to_owned()), place);
                    } else if self.reader.data().len() == before && !self.reader.reader_exhausted() {
                        self.grow(place);
                    }
                }
                Step::Grow => self.grow(place),
                Step::End(why) => self.end(why, place),
            }
        }
        None
    }

    fn grow(&mut self, place: usize) {
        self.buffer_octets *= 2;
        if self.buffer_octets > MOST_OCTETS || !self.reader.grow(self.buffer_octets) || self.reader.refill().is_err() {
            self.end(Some("a block is larger than any packet".to_owned()), place);
        }
    }

    fn end(&mut self, why: Option<String>, place: usize) {
        self.done = true;
        self.damage = why.map(|why| {
            let read = self.read;
            format!("{why}, behind octet {place} and {read} packets, which were kept")
        });
    }
}

/// Understands a block; `None` if it is no packet.
fn take(interfaces: &mut Vec<Interface>, block: &PcapBlockOwned<'_>) -> Option<Record> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let nanos = header.is_nanosecond_precision();
            *interfaces = vec![Interface {
                link: header.network,
                units: Some(if nanos { 1_000_000_000 } else { 1_000_000 }),
                offset_s: 0,
            }];
            None
        }
        PcapBlockOwned::Legacy(frame) => {
            let interface = interfaces.first()?;
            let parts = i128::from(frame.ts_usec) * (1_000_000_000 / i128::from(interface.units?));
            Some(Record {
                packet: ip_packet(interface.link.0, frame.data, frame.origlen),
                at: Some(i128::from(frame.ts_sec) * 1_000_000_000 + parts),
            })
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            None
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
            interfaces.push(Interface {
                link: described.linktype,
                units: described.ts_resolution().filter(|units| *units > 0),
                offset_s: described.ts_offset(),
            });
            None
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = usize::try_from(packet.if_id).ok().and_then(|id| interfaces.get(id));
            let count = (u64::from(packet.ts_high) << 32) | u64::from(packet.ts_low);
            // The library keeps the padding to four octets; what is shorter than the capture length
            // was cut.
            let kept = usize::try_from(packet.caplen).unwrap_or(usize::MAX).min(packet.data.len());
            Some(Record {
                packet: interface
                    .and_then(|interface| ip_packet(interface.link.0, &packet.data[..kept], packet.origlen)),
                at: interface.and_then(|interface| {
                    let nanos = i128::from(count) * 1_000_000_000 / i128::from(interface.units?);
                    Some(nanos + i128::from(interface.offset_s) * 1_000_000_000)
                }),
            })
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let interface = interfaces.first()?;
            Some(Record { packet: ip_packet(interface.link.0, packet.data, packet.origlen), at: None })
        }
        PcapBlockOwned::NG(_) => None,
    }
}
