//! From a link's header to the IP packet behind it.

use super::{Unreadable, pair};
use crate::packet::{LinkType, RawPacket};

/// VLAN tags and MPLS labels that are passed over, at most: more is no network, but an attack.
const MOST_TAGS: usize = 8;

/// An IP packet in its frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encapsulated<'a> {
    pub(super) octets: &'a [u8],
    /// Octets of the frame before it.
    pub(super) link_octets: u32,
    pub(super) vlan: u32,
    pub(super) outgoing: Option<bool>,
}

impl<'a> Encapsulated<'a> {
    fn new(whole: &'a [u8], at: usize) -> Result<Self, Unreadable> {
        Ok(Self {
            octets: whole.get(at..).ok_or(Unreadable::CutShort)?,
            link_octets: u32::try_from(at).unwrap_or(u32::MAX),
            vlan: 0,
            outgoing: None,
        })
    }

    /// A tag that the capturing host took off: the outermost.
    pub(super) fn push_outer(&mut self, tag: u16) {
        // One tag left in the frame stands in the lower half already.
        self.vlan = if self.vlan == 0 { named(tag) } else { named(tag) << 16 | self.vlan & 0xFFFF };
        self.link_octets += 4;
    }
}

/// The IP packet in a frame, or `None` if there is none in it.
#[inline]
pub(super) fn strip<'a>(raw: &RawPacket<'a>) -> Result<Option<Encapsulated<'a>>, Unreadable> {
    let whole = raw.octets;
    match raw.link {
        LinkType::ETHERNET => ether_type(whole, 12),
        LinkType::RAW | LinkType(12 | 14) | LinkType::IPV4 | LinkType::IPV6 => Encapsulated::new(whole, 0).map(Some),
        LinkType::LINUX_SLL => cooked(whole, 0, 14),
        LinkType::LINUX_SLL2 => cooked_2(whole),
        LinkType::NULL | LinkType::LOOP => loopback(whole),
        LinkType::PPP | LinkType::PPP_HDLC => ppp(whole, 0),
        LinkType::PPP_ETHER => ppp(whole, 6),
        LinkType::IEEE_802_11 => wireless(whole, 0),
        LinkType::RADIOTAP => {
            let length = whole.get(2..4).and_then(|pair| pair.first_chunk());
            let length = length.ok_or(Unreadable::CutShort)?;
            wireless(whole, usize::from(u16::from_le_bytes(*length)))
        }
        LinkType(number) => Err(Unreadable::LinkType(number)),
    }
}

/// From the type field of an Ethernet frame on, through VLAN tags, `PPPoE` and MPLS labels.
#[inline]
fn ether_type(whole: &[u8], at: usize) -> Result<Option<Encapsulated<'_>>, Unreadable> {
    let (mut at, mut vlan) = (at, 0u32);
    for _ in 0..=MOST_TAGS {
        let kind = pair(whole, at)?;
        at += 2;
        match kind {
            0x0800 | 0x86DD => {
                let encapsulated = Encapsulated::new(whole, at)?;
                return Ok(Some(Encapsulated { vlan, ..encapsulated }));
            }
            0x8100 | 0x88A8 | 0x9100 | 0x9200 => {
                vlan = vlan << 16 | named(pair(whole, at)?);
                at += 2;
            }
            0x8864 => {
                let inner = ppp(whole, at + 6)?;
                return Ok(inner.map(|inner| Encapsulated { vlan, ..inner }));
            }
            0x8847 | 0x8848 => {
                let inner = labels(whole, at)?;
                return Ok(inner.map(|inner| Encapsulated { vlan, ..inner }));
            }
            // IEEE 802.3: a length, then LLC, and perhaps SNAP with a type behind it.
            0..=0x05DC if whole.get(at..at + 6) == Some(&[0xAA, 0xAA, 3, 0, 0, 0]) => at += 6,
            _ => return Ok(None),
        }
    }
    Err(Unreadable::Malformed)
}

/// A tag's VLAN identifier, told apart from no tag.
fn named(tag: u16) -> u32 {
    u32::from(tag & 0x0FFF) | 0x1000
}

/// MPLS: labels until the last one; then an IP packet, if it begins like one.
fn labels(whole: &[u8], at: usize) -> Result<Option<Encapsulated<'_>>, Unreadable> {
    for label in 0..MOST_TAGS {
        let at = at + 4 * label;
        let third = whole.get(at + 2).ok_or(Unreadable::CutShort)?;
        if third & 1 == 1 {
            let encapsulated = Encapsulated::new(whole, at + 4)?;
            let version = encapsulated.octets.first().ok_or(Unreadable::CutShort)? >> 4;
            return Ok(matches!(version, 4 | 6).then_some(encapsulated));
        }
    }
    Err(Unreadable::Malformed)
}

/// PPP: address and control, if they were not left out, then a protocol of one octet or two.
fn ppp(whole: &[u8], at: usize) -> Result<Option<Encapsulated<'_>>, Unreadable> {
    let mut at = at;
    if whole.get(at..at + 2) == Some(&[0xFF, 0x03]) {
        at += 2;
    }
    let first = *whole.get(at).ok_or(Unreadable::CutShort)?;
    let protocol = if first & 1 == 1 {
        at += 1;
        u16::from(first)
    } else {
        at += 2;
        pair(whole, at - 2)?
    };
    match protocol {
        0x0021 | 0x0057 => Encapsulated::new(whole, at).map(Some),
        _ => Ok(None),
    }
}

/// BSD loopback: an address family. Which numbers mean IPv6 differs; in which order they are
/// written, too.
fn loopback(whole: &[u8]) -> Result<Option<Encapsulated<'_>>, Unreadable> {
    let family: [u8; 4] = *whole.first_chunk().ok_or(Unreadable::CutShort)?;
    let known = [u32::from_le_bytes(family), u32::from_be_bytes(family)];
    if known.iter().any(|family| matches!(family, 2 | 10 | 24 | 28 | 30)) {
        Encapsulated::new(whole, 4).map(Some)
    } else {
        Ok(None)
    }
}

/// Linux cooked capture: which way at `way`, the Ethernet type at `kind`.
fn cooked(whole: &[u8], way: usize, kind: usize) -> Result<Option<Encapsulated<'_>>, Unreadable> {
    let sent = sent(pair(whole, way)?);
    let encapsulated = ether_type(whole, kind)?;
    Ok(encapsulated.map(|encapsulated| Encapsulated { outgoing: sent, ..encapsulated }))
}

fn cooked_2(whole: &[u8]) -> Result<Option<Encapsulated<'_>>, Unreadable> {
    let kind = pair(whole, 0)?;
    let sent = sent(u16::from(*whole.get(10).ok_or(Unreadable::CutShort)?));
    let encapsulated = match kind {
        0x0800 | 0x86DD => Some(Encapsulated::new(whole, 20)?),
        // The tag's control information and the type that follows it lie behind the header.
        0x8100 | 0x88A8 => {
            let tag = named(pair(whole, 20)?);
            ether_type(whole, 22)?.map(|inner| Encapsulated { vlan: tag, ..inner })
        }
        _ => None,
    };
    Ok(encapsulated.map(|encapsulated| Encapsulated { outgoing: sent, ..encapsulated }))
}

/// Linux's kinds of packets: 0 is to this host, 4 from it; 1 to 3 are broadcast, multicast and
/// others'.
fn sent(kind: u16) -> Option<bool> {
    match kind {
        0 => Some(false),
        4 => Some(true),
        _ => None,
    }
}

/// IEEE 802.11: data frames with an unencrypted LLC and SNAP header.
fn wireless(whole: &[u8], at: usize) -> Result<Option<Encapsulated<'_>>, Unreadable> {
    let control = whole.get(at..at + 2).ok_or(Unreadable::CutShort)?;
    let (kind, flags) = (control[0], control[1]);
    let is_data = kind & 0x0C == 0x08;
    let is_empty = kind & 0x40 != 0;
    let is_protected = flags & 0x40 != 0;
    if !is_data || is_empty || is_protected {
        return Ok(None);
    }
    let four_addresses = flags & 3 == 3;
    let has_qos = kind & 0x80 != 0;
    let header = 24 + if four_addresses { 6 } else { 0 } + if has_qos { 2 } else { 0 };
    let at = at + header;
    if whole.get(at..at + 6) != Some(&[0xAA, 0xAA, 3, 0, 0, 0]) {
        return Ok(None);
    }
    ether_type(whole, at + 6)
}
