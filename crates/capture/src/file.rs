//! Capture files, packet by packet, whatever their size and state.
//!
//! Shapes: a [`CaptureReader`] reads pcap (micro- and nanoseconds, both octet orders, the longer
//! records of one old variant) and pcapng (several sections and interfaces), plain or compressed
//! with gzip or zstd, from anything that can be read. It holds one window of 1 MiB, never more,
//! beside what unpacking takes. A place that makes no sense is recorded ([`Damages`]) and passed
//! over: reading goes on where the next two records (pcap) or the next block (pcapng) make sense.

mod blocks;
mod legacy;
#[cfg(test)]
mod tests;
mod window;
mod zstd;

use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;
use pcap_parser::parse_pcap_header;
use thiserror::Error;

use self::blocks::Blocks;
use self::legacy::Legacy;
use self::window::Window;
use self::zstd::Zstd;
use crate::damage::{Damage, Damages, Fault};
use crate::packet::{LinkType, RawPacket};

/// Most octets of one packet, as in libpcap and Wireshark.
const MOST_PACKET_OCTETS: u32 = 262_144;

/// A capture that cannot be read at all. The caller can mend it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Nothing in it.
    #[error("it is empty")]
    Empty,
    /// Reading failed at once.
    #[error("it cannot be read: {0}")]
    Reading(String),
    /// Compressed in a way that we do not read.
    #[error("it is compressed with {with}; try `{with} -dc FILE | narrows passive -`")]
    Compressed {
        /// The program that made it.
        with: &'static str,
    },
    /// A capture of another kind.
    #[error("it is a capture of another kind ({kind}); `editcap -F pcapng` of Wireshark converts it")]
    OtherKind {
        /// Which.
        kind: &'static str,
    },
    /// Cut off within its head.
    #[error("it ends within its head, after {octets} octets")]
    NoHead {
        /// How many there are.
        octets: usize,
    },
    /// No capture.
    #[error("it is neither a pcap nor a pcapng capture")]
    NotACapture,
    /// A version that nobody wrote for decades.
    #[error("its format is version {major}.{minor}; 2.3 and 2.4 can be read")]
    Version {
        /// Major.
        major: u16,
        /// Minor.
        minor: u16,
    },
}

/// Reads a capture.
#[derive(Debug)]
pub struct CaptureReader<R: Read> {
    window: Window<Source<R>>,
    format: Format,
    damages: Damages,
    packets: u64,
    octets: u64,
    /// Octets of the record that was shown last.
    shown: usize,
    ended: bool,
}

/// Plain or compressed.
enum Source<R: Read> {
    Plain(std::io::Chain<Cursor<Vec<u8>>, R>),
    Gzip(Box<MultiGzDecoder<std::io::Chain<Cursor<Vec<u8>>, R>>>),
    Zstd(Box<Zstd<std::io::Chain<Cursor<Vec<u8>>, R>>>),
}

#[derive(Debug)]
enum Format {
    Legacy(Legacy),
    Blocks(Blocks),
}

/// A packet's place in the window, and what its record says.
#[derive(Debug)]
struct LocatedPacket {
    at_ns: Option<i64>,
    link: LinkType,
    from: usize,
    to: usize,
    record: usize,
    whole_octets: u32,
    outgoing: Option<bool>,
}

/// Why there is no next packet here.
#[derive(Debug)]
enum Stopped {
    /// The stream ends, within a record or (clean) behind one.
    Ended { clean: bool },
    /// What follows has to be searched.
    Damaged(Fault),
    /// What follows is so many octets away.
    Passable(Fault, usize),
}

impl<R: Read> CaptureReader<R> {
    /// Begins to read: the kind of file, and its head.
    pub fn open(input: R) -> Result<Self, OpenError> {
        let mut window = Window::new(Source::open(input)?);
        let enough = window.fill(24);
        let head = window.seen();
        if head.is_empty() {
            return Err(match window.fault() {
                Some(fault) => OpenError::Reading(fault.to_owned()),
                None => OpenError::Empty,
            });
        }
        other_kind(head)?;
        let format = if head.starts_with(&[0x0A, 0x0D, 0x0D, 0x0A]) {
            if head.len() < 12 {
                return Err(OpenError::NoHead { octets: head.len() });
            }
            Format::Blocks(Blocks::default())
        } else {
            let is_pcap = |magic: [u8; 4]| {
                let words = [u32::from_le_bytes(magic), u32::from_be_bytes(magic)];
                words.iter().any(|word| matches!(word, 0xA1B2_C3D4 | 0xA1B2_3C4D | 0xA1B2_CD34))
            };
            if !head.first_chunk().is_some_and(|magic| is_pcap(*magic)) {
                return Err(OpenError::NotACapture);
            }
            if !enough {
                return Err(OpenError::NoHead { octets: head.len() });
            }
            let (_, header) = parse_pcap_header(head).map_err(|_| OpenError::NotACapture)?;
            if header.version_major != 2 || header.version_minor < 3 {
                return Err(OpenError::Version { major: header.version_major, minor: header.version_minor });
            }
            window.pass(24);
            Format::Legacy(Legacy::new(&header))
        };
        Ok(Self { window, format, damages: Damages::default(), packets: 0, octets: 0, shown: 0, ended: false })
    }

    /// The next packet, or `None` at the end of what can be read.
    #[inline]
    pub fn next_packet(&mut self) -> Option<RawPacket<'_>> {
        self.window.pass(self.shown);
        self.shown = 0;
        let found = self.advance()?;
        self.shown = found.record;
        self.packets += 1;
        self.octets += u64::from(found.whole_octets);
        Some(RawPacket {
            at_ns: found.at_ns,
            link: found.link,
            octets: self.window.part(found.from, found.to),
            whole_octets: found.whole_octets,
            vlan: None,
            outgoing: found.outgoing,
        })
    }

    /// What could not be read so far.
    pub fn damages(&self) -> &Damages {
        &self.damages
    }

    /// Packets so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Octets that those packets had on their links.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Packets that the capture says it dropped.
    pub fn dropped(&self) -> u64 {
        match &self.format {
            Format::Legacy(_) => 0,
            Format::Blocks(blocks) => blocks.dropped(),
        }
    }

    /// The unit of its stamps, in nanoseconds.
    pub fn resolution_ns(&self) -> i64 {
        match &self.format {
            Format::Legacy(legacy) => legacy.resolution_ns(),
            Format::Blocks(blocks) => blocks.resolution_ns(),
        }
    }

    fn advance(&mut self) -> Option<LocatedPacket> {
        while !self.ended {
            let step = match &mut self.format {
                Format::Legacy(legacy) => legacy.next(&mut self.window).map(Some),
                Format::Blocks(blocks) => blocks.next(&mut self.window),
            };
            match step {
                Ok(Some(found)) => return Some(found),
                Ok(None) => {}
                Err(stopped) => self.stop(stopped),
            }
        }
        None
    }

    fn stop(&mut self, stopped: Stopped) {
        match stopped {
            Stopped::Ended { clean } => {
                let fault = self.window.fault().map(|fault| Fault::Reading(fault.to_owned()));
                match fault {
                    Some(fault) => self.damage(fault),
                    None if clean => {}
                    None => self.damage(Fault::Truncated),
                }
                if clean {
                    self.ended = true;
                } else {
                    // It may be the record's length that is wrong: there may be whole ones behind
                    // its head.
                    self.search();
                }
            }
            Stopped::Passable(fault, octets) => {
                self.damage(fault);
                self.damages.skipped(octets as u64);
                self.window.pass(octets);
            }
            Stopped::Damaged(fault) => {
                self.damage(fault);
                self.search();
            }
        }
    }

    fn damage(&mut self, fault: Fault) {
        self.damages.add(Damage { octet: self.window.at(), packet: self.packets, fault });
    }

    /// Passes over octets until something makes sense.
    fn search(&mut self) {
        let begin = self.window.at();
        let mut hopeless = 1;
        loop {
            self.window.pass(hopeless.max(1));
            if !self.window.fill(12) {
                self.ended = true;
                break;
            }
            let right = match &self.format {
                Format::Legacy(legacy) => legacy.looks_right(&mut self.window, 0),
                Format::Blocks(blocks) => blocks.looks_right(&mut self.window, 0),
            };
            if right {
                break;
            }
            let behind = self.window.seen().get(1..).unwrap_or_default();
            hopeless = 1 + match &self.format {
                Format::Legacy(legacy) => legacy.hopeless(behind),
                Format::Blocks(blocks) => blocks.hopeless(behind),
            };
        }
        let rest = if self.ended { self.window.seen().len() as u64 } else { 0 };
        self.damages.skipped(self.window.at() - begin + rest);
    }
}

impl<R: Read> Source<R> {
    fn open(mut input: R) -> Result<Self, OpenError> {
        let mut head = Vec::with_capacity(4);
        let read = input.by_ref().take(4).read_to_end(&mut head);
        read.map_err(|error| OpenError::Reading(error.to_string()))?;
        let (is_gzip, is_zstd) = (head.starts_with(&[0x1F, 0x8B]), head.starts_with(&zstd::MAGIC));
        let chain = Cursor::new(head).chain(input);
        Ok(if is_gzip {
            Self::Gzip(Box::new(MultiGzDecoder::new(chain)))
        } else if is_zstd {
            Self::Zstd(Box::new(Zstd::new(chain)))
        } else {
            Self::Plain(chain)
        })
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(into),
            Self::Gzip(input) => input.read(into),
            Self::Zstd(input) => input.read(into),
        }
    }
}

impl<R: Read> std::fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "plain",
            Self::Gzip(_) => "gzip",
            Self::Zstd(_) => "zstd",
        })
    }
}

/// Files that people take for captures, by their first octets.
fn other_kind(head: &[u8]) -> Result<(), OpenError> {
    let compressed: [(&[u8], &'static str); 3] =
        [(&[0xFD, b'7', b'z', b'X', b'Z'], "xz"), (b"BZh", "bzip2"), (&[0x04, 0x22, 0x4D, 0x18], "lz4")];
    let others: [(&[u8], &'static str); 3] =
        [(b"snoop\0\0\0", "snoop"), (b"TRSNIFF data", "Sniffer"), (b"\x54\x52\x53\x4E", "Sniffer")];
    if let Some((_, with)) = compressed.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(OpenError::Compressed { with });
    }
    if let Some((_, kind)) = others.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(OpenError::OtherKind { kind });
    }
    Ok(())
}
