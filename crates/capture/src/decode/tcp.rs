//! The TCP header and the options that matter here.

use estimate::probe::TcpFields;

use super::ip::{self, Header};
use super::{Endpoint, Unreadable, pair, word};

const FIXED: usize = 20;

/// What a TCP header says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) source: Endpoint,
    pub(super) destination: Endpoint,
    pub(super) fields: TcpFields,
    pub(super) mss: Option<u16>,
    pub(super) window_scale: Option<u8>,
    pub(super) checksum_partial: bool,
}

#[derive(Debug, Default)]
struct Options {
    mss: Option<u16>,
    window_scale: Option<u8>,
    timestamps: Option<(u32, u32)>,
}

#[inline]
pub(super) fn read(header: &Header<'_>) -> Result<Segment, Unreadable> {
    let fixed: &[u8; FIXED] = header.payload.first_chunk().ok_or(Unreadable::CutShort)?;
    let header_octets = u32::from(fixed[12] >> 4) * 4;
    let transport_octets = header.ip_octets - header.header_octets;
    if header_octets < 20 || header_octets > transport_octets {
        return Err(Unreadable::Malformed);
    }
    let end = usize::try_from(header_octets)
        .unwrap_or(FIXED)
        .min(header.payload.len());
    let syn = fixed[13] & 0x02 != 0;
    let options = options(&header.payload[FIXED..end], syn);
    let has_acknowledgement = fixed[13] & 0x10 != 0;
    Ok(Segment {
        source: Endpoint {
            address: header.source,
            port: u16::from_be_bytes([fixed[0], fixed[1]]),
        },
        destination: Endpoint {
            address: header.destination,
            port: u16::from_be_bytes([fixed[2], fixed[3]]),
        },
        fields: TcpFields {
            sequence: word(fixed, 4)?,
            acknowledgement: if has_acknowledgement {
                Some(word(fixed, 8)?)
            } else {
                None
            },
            payload_octets: transport_octets - header_octets,
            syn,
            fin: fixed[13] & 0x01 != 0,
            rst: fixed[13] & 0x04 != 0,
            window: pair(fixed, 14)?,
            timestamps: options.timestamps,
        },
        mss: options.mss,
        window_scale: options.window_scale,
        checksum_partial: u16::from_be_bytes([fixed[16], fixed[17]]) == partial_checksum(header, transport_octets),
    })
}

/// Reads options as far as they were kept and make sense.
#[inline]
fn options(octets: &[u8], syn: bool) -> Options {
    let mut found = Options::default();
    // What nearly every data packet carries, aligned as RFC 7323 appendix A has it.
    if let &[1, 1, 8, 10, a, b, c, d, e, f, g, h, ref rest @ ..] = octets
        && !syn
        && rest.is_empty()
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
            (8, &[a, b, c, d, ref echo @ ..]) => {
                if let Ok(echo) = echo.try_into() {
                    found.timestamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes(echo)));
                }
            }
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

/// The sum over the pseudo-header, not complemented: what Linux leaves in the field for the card to complete.
#[inline]
fn partial_checksum(header: &Header<'_>, transport_octets: u32) -> u16 {
    let words = |address: u128| {
        let mut sum = 0u64;
        let significant = if ip::is_mapped(header.source) { 2 } else { 8 };
        for index in 0..significant {
            sum += u64::try_from(address >> (16 * index) & 0xFFFF).unwrap_or(0);
        }
        sum
    };
    let length = u64::from(transport_octets & 0xFFFF) + u64::from(transport_octets >> 16);
    let mut sum = words(header.source) + words(header.destination) + u64::from(ip::TCP) + length;
    while sum >> 16 != 0 {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or(0)
}
