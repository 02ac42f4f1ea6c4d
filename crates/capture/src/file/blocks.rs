//! Blocks of the newer capture file (pcapng).
//!
//! Section headers, interface descriptions and statistics are read by pcap-parser. Packets are not:
//! its reader of enhanced packet blocks allocates for the options of every packet. Nor are time
//! units: it takes those with a binary base for errors, and reads a clock's offset in little-endian
//! order whatever the section's.

use std::io::Read;

use pcap_parser::{
    InterfaceDescriptionBlock, InterfaceStatisticsBlock, OptionCode, parse_interfacedescriptionblock_be,
    parse_interfacedescriptionblock_le, parse_interfacestatisticsblock_be, parse_interfacestatisticsblock_le,
};

use super::window::Window;
use super::{LocatedPacket, MOST_PACKET_OCTETS, Stopped};
use crate::damage::Fault;
use crate::packet::LinkType;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// Types that are written often enough to be a landmark after damage.
const LANDMARKS: [u32; 7] = [SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, 4, STATISTICS, ENHANCED_PACKET];
/// Longest block that is looked into; there is no packet that needs more.
const MOST_BLOCK_OCTETS: usize = 512 * 1024;
/// Interfaces of a section that are kept.
const MOST_INTERFACES: usize = 4_096;

/// Where in a section we are.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Of sections that have ended.
    dropped_before: u64,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link: LinkType,
    unit: Unit,
    offset_seconds: i64,
    snap_octets: u32,
    dropped: u64,
}

/// A stamp's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Whole nanoseconds.
    Nanos(u64),
    /// A fraction of a second: one over this.
    PerSecond(u128),
}

impl Blocks {
    /// Packets that the capture says it dropped.
    pub(super) fn dropped(&self) -> u64 {
        let now = self.interfaces.iter().map(|interface| interface.dropped);
        now.fold(self.dropped_before, u64::saturating_add)
    }

    /// Finest unit of any stamp so far.
    pub(super) fn resolution_ns(&self) -> i64 {
        let units = self.interfaces.iter().map(|interface| interface.unit.nanos());
        units.min().unwrap_or(1)
    }

    /// The next packet, or `None` after a block that holds none; the window is passed on over the
    /// latter.
    pub(super) fn next<R: Read>(&mut self, window: &mut Window<R>) -> Result<Option<LocatedPacket>, Stopped> {
        if !window.fill(12) {
            return Err(Stopped::Ended { clean: window.seen().is_empty() });
        }
        if word(window.seen(), 0, false) == SECTION {
            self.begin_section(window)?;
        }
        let kind = word(window.seen(), 0, self.big_endian);
        let length = self.length(window)?;
        let found = match kind {
            ENHANCED_PACKET => Some(self.enhanced(window.part(0, length))?),
            SIMPLE_PACKET => Some(self.simple(window.part(0, length))?),
            OLD_PACKET => Some(self.old(window.part(0, length))?),
            INTERFACE => {
                self.interface(window.part(0, length))?;
                None
            }
            STATISTICS => {
                self.statistics(window.part(0, length));
                None
            }
            _ => None,
        };
        if found.is_none() {
            window.pass(length);
        }
        Ok(found)
    }

    /// Whether the window's place `at` looks like a block.
    pub(super) fn looks_right<R: Read>(&self, window: &mut Window<R>, at: usize) -> bool {
        if !window.fill(at + 12) {
            return false;
        }
        let head = window.part(at, at + 12);
        let kind = word(head, 0, self.big_endian);
        if !LANDMARKS.contains(&kind) {
            return false;
        }
        let big_endian = if kind == SECTION {
            match order(head) {
                Some(order) => order,
                None => return false,
            }
        } else {
            self.big_endian
        };
        let length = usize::try_from(word(head, 1, big_endian)).unwrap_or(usize::MAX);
        let fits = (12..=MOST_BLOCK_OCTETS).contains(&length) && length.is_multiple_of(4);
        fits && window.fill(at + length)
            && usize::try_from(word(window.part(at + length - 4, at + length), 0, big_endian)) == Ok(length)
    }

    /// Octets at the beginning of these at which no landmark begins: a quick look before a thorough
    /// one.
    pub(super) fn hopeless(&self, octets: &[u8]) -> usize {
        let hope = octets.windows(4).position(|place| {
            let kind = word(place, 0, self.big_endian);
            // The largest of the small ones, or the section's, which is the same in both orders.
            (1..=ENHANCED_PACKET).contains(&kind) || kind == SECTION
        });
        hope.unwrap_or(octets.len().saturating_sub(3))
    }

    fn begin_section<R: Read>(&mut self, window: &Window<R>) -> Result<(), Stopped> {
        let damaged = Stopped::Damaged(Fault::Block { kind: SECTION });
        self.big_endian = order(window.seen()).ok_or(damaged)?;
        self.dropped_before = self.dropped();
        self.interfaces.clear();
        Ok(())
    }

    /// The block's length, once all of it is in the window and says the same at its end.
    fn length<R: Read>(&self, window: &mut Window<R>) -> Result<usize, Stopped> {
        let said = word(window.seen(), 1, self.big_endian);
        let wrong = Stopped::Damaged(Fault::BlockLength { octets: u64::from(said) });
        let length = usize::try_from(said).unwrap_or(usize::MAX);
        if !(12..=MOST_BLOCK_OCTETS).contains(&length) || !length.is_multiple_of(4) {
            return Err(wrong);
        }
        if !window.fill(length) {
            return Err(Stopped::Ended { clean: false });
        }
        if word(window.part(length - 4, length), 0, self.big_endian) == said { Ok(length) } else { Err(wrong) }
    }

    fn interface(&mut self, block: &[u8]) -> Result<(), Stopped> {
        let too_many = Fault::TooManyInterfaces { most: MOST_INTERFACES };
        if self.interfaces.len() >= MOST_INTERFACES {
            return Err(Stopped::Passable(too_many, block.len()));
        }
        let wrong = Stopped::Passable(Fault::Block { kind: INTERFACE }, block.len());
        let parsed = if self.big_endian {
            parse_interfacedescriptionblock_be(block)
        } else {
            parse_interfacedescriptionblock_le(block)
        };
        let Ok((_, description)) = parsed else {
            return Err(wrong);
        };
        let number = u32::from_ne_bytes(description.linktype.0.to_ne_bytes());
        self.interfaces.push(Interface {
            link: LinkType::new(number & 0xFFFF),
            unit: unit(&description),
            offset_seconds: self.offset(&description),
            snap_octets: description.snaplen,
            dropped: 0,
        });
        Ok(())
    }

    /// A clock's offset in seconds, in the section's own order.
    fn offset(&self, description: &InterfaceDescriptionBlock<'_>) -> i64 {
        let option = description
            .options
            .iter()
            .find(|option| option.code == OptionCode::IfTsoffset)
            .and_then(|option| option.as_bytes().ok()?.try_into().ok());
        match option {
            Some(octets) if self.big_endian => i64::from_be_bytes(octets),
            Some(octets) => i64::from_le_bytes(octets),
            None => 0,
        }
    }

    /// Packets dropped on an interface. A block that cannot be read says nothing; it harms nothing
    /// either.
    fn statistics(&mut self, block: &[u8]) {
        let parsed: Option<InterfaceStatisticsBlock<'_>> = if self.big_endian {
            parse_interfacestatisticsblock_be(block).ok().map(|(_, block)| block)
        } else {
            parse_interfacestatisticsblock_le(block).ok().map(|(_, block)| block)
        };
        let Some(statistics) = parsed else { return };
        let of = |code: OptionCode| {
            let option = statistics.options.iter().find(|option| option.code == code)?;
            let octets: [u8; 8] = option.as_bytes().ok()?.try_into().ok()?;
            Some(if self.big_endian { u64::from_be_bytes(octets) } else { u64::from_le_bytes(octets) })
        };
        let dropped = of(OptionCode::IsbIfDrop).unwrap_or(0).saturating_add(of(OptionCode::IsbOsDrop).unwrap_or(0));
        let index = usize::try_from(statistics.if_id).unwrap_or(usize::MAX);
        if let Some(interface) = self.interfaces.get_mut(index) {
            // Counted since the capture began; some writers repeat themselves.
            interface.dropped = interface.dropped.max(dropped);
        }
    }

    fn enhanced(&self, block: &[u8]) -> Result<LocatedPacket, Stopped> {
        const HEAD: usize = 28;
        let field = |index: usize| word(block, 2 + index, self.big_endian);
        let interface = self.described(field(0), block)?;
        let kept = kept(field(3), HEAD, block)?;
        Ok(LocatedPacket {
            at_ns: Some(Self::stamp(&interface, (field(1), field(2)), block)?),
            link: interface.link,
            from: HEAD,
            to: HEAD + kept,
            record: block.len(),
            whole_octets: field(4),
            outgoing: self.way(block.get(HEAD + kept.next_multiple_of(4)..).unwrap_or_default()),
        })
    }

    /// The obsolete packet block: as an enhanced one, but for 16 bits of interface and 16 of drops.
    fn old(&self, block: &[u8]) -> Result<LocatedPacket, Stopped> {
        const HEAD: usize = 28;
        let first = block.get(8..10).and_then(|octets| octets.try_into().ok()).unwrap_or_default();
        let number = if self.big_endian { u16::from_be_bytes(first) } else { u16::from_le_bytes(first) };
        let field = |index: usize| word(block, 2 + index, self.big_endian);
        let interface = self.described(u32::from(number), block)?;
        let kept = kept(field(3), HEAD, block)?;
        Ok(LocatedPacket {
            at_ns: Some(Self::stamp(&interface, (field(1), field(2)), block)?),
            link: interface.link,
            from: HEAD,
            to: HEAD + kept,
            record: block.len(),
            whole_octets: field(4),
            outgoing: None,
        })
    }

    /// A simple packet block: of the first interface, and without a stamp.
    fn simple(&self, block: &[u8]) -> Result<LocatedPacket, Stopped> {
        const HEAD: usize = 12;
        let interface = self.described(0, block)?;
        let whole = word(block, 2, self.big_endian);
        let room = block.len().saturating_sub(HEAD + 4);
        let snap = match interface.snap_octets {
            0 => u32::MAX,
            octets => octets,
        };
        let kept = usize::try_from(whole.min(snap)).unwrap_or(usize::MAX).min(room);
        Ok(LocatedPacket {
            at_ns: None,
            link: interface.link,
            from: HEAD,
            to: HEAD + kept,
            record: block.len(),
            whole_octets: whole,
            outgoing: None,
        })
    }

    fn described(&self, number: u32, block: &[u8]) -> Result<Interface, Stopped> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let unknown = Fault::Interface { interface: number };
        let found = self.interfaces.get(index).copied();
        found.ok_or(Stopped::Passable(unknown, block.len()))
    }

    fn stamp(interface: &Interface, (high, low): (u32, u32), block: &[u8]) -> Result<i64, Stopped> {
        let ticks = u64::from(high) << 32 | u64::from(low);
        let nanos = match interface.unit {
            Unit::Nanos(each) => u128::from(ticks) * u128::from(each),
            Unit::PerSecond(units) => u128::from(ticks) * 1_000_000_000 / units,
        };
        i64::try_from(nanos)
            .ok()
            .and_then(|nanos| nanos.checked_add(interface.offset_seconds.checked_mul(1_000_000_000)?))
            .ok_or(Stopped::Passable(Fault::Stamp, block.len()))
    }

    /// Which way the packet went, where its flags say so.
    fn way(&self, options: &[u8]) -> Option<bool> {
        const FLAGS: u16 = 2;
        let mut rest = options;
        while let &[a, b, c, d, ref behind @ ..] = rest {
            let pair = |octets| {
                if self.big_endian { u16::from_be_bytes(octets) } else { u16::from_le_bytes(octets) }
            };
            let (code, length) = (pair([a, b]), usize::from(pair([c, d])));
            match code {
                0 => return None,
                FLAGS if length == 4 && behind.len() >= 4 => {
                    return match word(behind, 0, self.big_endian) & 3 {
                        1 => Some(false),
                        2 => Some(true),
                        _ => None,
                    };
                }
                _ => rest = behind.get(length.next_multiple_of(4)..)?,
            }
        }
        None
    }
}

impl Unit {
    fn nanos(self) -> i64 {
        match self {
            Self::Nanos(nanos) => i64::try_from(nanos).unwrap_or(i64::MAX),
            Self::PerSecond(units) => i64::try_from(1_000_000_000 / units).unwrap_or(i64::MAX).max(1),
        }
    }
}

/// A stamp's unit: ten or two to the minus n, a millionth of a second if nothing is said.
fn unit(description: &InterfaceDescriptionBlock<'_>) -> Unit {
    let option = description.options.iter().find(|option| option.code == OptionCode::IfTsresol);
    let code = option.and_then(|option| option.as_bytes().ok()?.first().copied()).unwrap_or(6);
    let exponent = u32::from(code & 0x7F);
    let units = if code & 0x80 == 0 {
        // Beyond 10^38 nothing fits, and no clock is.
        10u128.checked_pow(exponent)
    } else {
        1u128.checked_shl(exponent)
    };
    let units = units.unwrap_or(u128::MAX).max(1);
    match u64::try_from(units) {
        Ok(units) if 1_000_000_000 % units == 0 => Unit::Nanos(1_000_000_000 / units),
        _ => Unit::PerSecond(units),
    }
}

/// A section's order: whether big-endian.
fn order(head: &[u8]) -> Option<bool> {
    match head.get(8..12)? {
        [0x1A, 0x2B, 0x3C, 0x4D] => Some(true),
        [0x4D, 0x3C, 0x2B, 0x1A] => Some(false),
        _ => None,
    }
}

/// Octets kept of a packet, if the block has room for them.
fn kept(said: u32, head: usize, block: &[u8]) -> Result<usize, Stopped> {
    let octets = usize::try_from(said).unwrap_or(usize::MAX);
    if said > MOST_PACKET_OCTETS || octets.saturating_add(head + 4) > block.len() {
        let fault = Fault::RecordLength { octets: u64::from(said) };
        return Err(Stopped::Passable(fault, block.len()));
    }
    Ok(octets)
}

#[inline]
fn word(octets: &[u8], index: usize, big_endian: bool) -> u32 {
    let octets: [u8; 4] =
        octets.get(4 * index..4 * index + 4).and_then(|octets| octets.try_into().ok()).unwrap_or_default();
    if big_endian { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) }
}
