//! IPv4 with options, IPv6 with extension headers.

use super::{Unreadable, pair};

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// Extension headers that are passed over, at most.
const MOST_EXTENSIONS: usize = 8;

/// What an IP header says.
#[expect(clippy::struct_field_names, reason = "the header's own length, beside the packet's")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Header<'a> {
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) protocol: u8,
    pub(super) hop_limit: u8,
    /// Length of the packet, header included.
    pub(super) ip_octets: u32,
    pub(super) ip_id: Option<u16>,
    pub(super) fragment: bool,
    /// Octets before the transport header.
    pub(super) header_octets: u32,
    /// From the transport header on, as much as was kept, without padding.
    pub(super) payload: &'a [u8],
}

/// Reads the header. `room` is what the frame had behind the link's header: the packet's length where it names none, as packets longer
/// than 65 535 octets do before the card cuts them up.
#[inline]
pub(super) fn read(octets: &[u8], room: u32) -> Result<Header<'_>, Unreadable> {
    match octets.first().ok_or(Unreadable::CutShort)? >> 4 {
        4 => version_4(octets, room),
        6 => version_6(octets, room),
        _ => Err(Unreadable::Malformed),
    }
}

#[inline]
fn version_4(octets: &[u8], room: u32) -> Result<Header<'_>, Unreadable> {
    let fixed: &[u8; 20] = octets.first_chunk().ok_or(Unreadable::CutShort)?;
    let header_octets = usize::from(fixed[0] & 0x0F) * 4;
    let said = u32::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let ip_octets = if said == 0 { room } else { said };
    if header_octets < 20 || ip_octets < u32::try_from(header_octets).unwrap_or(u32::MAX) {
        return Err(Unreadable::Malformed);
    }
    // "More fragments", or an offset.
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3FFF != 0;
    Ok(Header {
        source: mapped([fixed[12], fixed[13], fixed[14], fixed[15]]),
        destination: mapped([fixed[16], fixed[17], fixed[18], fixed[19]]),
        protocol: fixed[9],
        hop_limit: fixed[8],
        ip_octets,
        ip_id: Some(u16::from_be_bytes([fixed[4], fixed[5]])),
        fragment,
        header_octets: u32::try_from(header_octets).unwrap_or(u32::MAX),
        payload: payload(octets, header_octets, ip_octets),
    })
}

#[inline]
fn version_6(octets: &[u8], room: u32) -> Result<Header<'_>, Unreadable> {
    const FIXED: usize = 40;
    let fixed: &[u8; FIXED] = octets.first_chunk().ok_or(Unreadable::CutShort)?;
    let said = u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let ip_octets = if said == 0 { room } else { said + 40 };
    if ip_octets < 40 {
        return Err(Unreadable::Malformed);
    }
    let address = |at: usize| {
        let octets: [u8; 16] = fixed[at..].first_chunk().copied().unwrap_or_default();
        u128::from_be_bytes(octets)
    };
    let (mut protocol, mut at, mut fragment) = (fixed[6], FIXED, false);
    for _ in 0..MOST_EXTENSIONS {
        let octets_long = match protocol {
            // Hop-by-hop, routing, destination, mobility, HIP, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => (usize::from(*octets.get(at + 1).ok_or(Unreadable::CutShort)?) + 1) * 8,
            // Authentication: in words, less two.
            51 => (usize::from(*octets.get(at + 1).ok_or(Unreadable::CutShort)?) + 2) * 4,
            44 => {
                // An "atomic" fragment is a whole packet (RFC 6946).
                fragment |= pair(octets, at + 2)? & 0xFFF9 != 0;
                8
            }
            _ => break,
        };
        protocol = *octets.get(at).ok_or(Unreadable::CutShort)?;
        at += octets_long;
    }
    let header_octets = u32::try_from(at).unwrap_or(u32::MAX);
    if header_octets > ip_octets {
        return Err(Unreadable::Malformed);
    }
    Ok(Header {
        source: address(8),
        destination: address(24),
        protocol,
        hop_limit: fixed[7],
        ip_octets,
        ip_id: None,
        fragment,
        header_octets,
        payload: payload(octets, at, ip_octets),
    })
}

/// What was kept behind the header; Ethernet pads short packets, and padding is no payload.
#[inline]
fn payload(octets: &[u8], from: usize, ip_octets: u32) -> &[u8] {
    let end = usize::try_from(ip_octets).unwrap_or(usize::MAX).min(octets.len());
    octets.get(from..end).unwrap_or_default()
}

fn mapped(address: [u8; 4]) -> u128 {
    0xFFFF_0000_0000 | u128::from(u32::from_be_bytes(address))
}

/// Whether an address stands for an IPv4 one.
pub(super) fn is_mapped(address: u128) -> bool {
    address >> 32 == 0xFFFF
}
