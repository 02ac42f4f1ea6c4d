//! What a reflector makes of the TLVs behind a packet (RFC 8972 §4): each is answered where it
//! stands, in as many octets as it has.
//!
//! | type | TLV | answer |
//! |--:|---|---|
//! | 1 | extra padding | as it is |
//! | 2 | location | the ports as they arrived; sub-TLVs are not filled in, and are marked so |
//! | 3 | timestamp information | where this side's stamps come from |
//! | 4 | class of service | the code point and ECN that arrived; [`Extended::dscp`] is what the answer is to carry |
//! | 5 | direct measurement | packets of this session that arrived, and that were answered, this one included |
//! | 6 | access report | as it is, which acknowledges it |
//! | 7 | follow-up telemetry | when the answer before really left (stateful reflectors) |
//! | 8 | HMAC | checked, and made anew; where it is wrong every TLV gets [`INTEGRITY`] and nothing else happens to any |
//!
//! Everything else is marked [`UNRECOGNISED`], type 12 with it: what it asks for is more octets
//! than came.

use subtle::ConstantTimeEq;

use super::tlv::{INTEGRITY, MALFORMED, TLV_HEADER_OCTETS, UNRECOGNISED};
use super::{put, u32_at};
use crate::psk::Psk;

/// What the reflector knows of a packet beside [`super::Reflection`], for TLVs that ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// UDP ports with which the packet arrived: its destination, its source.
    pub ports: (u16, u16),
    /// DSCP and, in the two lowest bits, ECN with which it arrived; `None`: this host does not
    /// tell.
    pub traffic_class: Option<u8>,
    /// Synchronised from outside (by NTP, as far as a host can tell).
    pub synchronised: bool,
    /// The session's packets that arrived and that were answered, this one included; `None` for a
    /// stateless reflector.
    pub counts: Option<(u32, u32)>,
    /// Number of the session's last answer, and when it left, as stamps are written.
    pub last: Option<(u32, u64)>,
}

/// What TLVs ask of the answer's packet itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extended {
    /// The code point to send it with.
    pub dscp: Option<u8>,
}

mod kind {
    pub(super) const EXTRA_PADDING: u8 = 1;
    pub(super) const LOCATION: u8 = 2;
    pub(super) const TIMESTAMP_INFORMATION: u8 = 3;
    pub(super) const CLASS_OF_SERVICE: u8 = 4;
    pub(super) const DIRECT_MEASUREMENT: u8 = 5;
    pub(super) const ACCESS_REPORT: u8 = 6;
    pub(super) const FOLLOW_UP: u8 = 7;
    pub(super) const HMAC: u8 = 8;
}

/// Octets of an HMAC TLV's value.
const HMAC_OCTETS: usize = 16;

/// One TLV's place behind the packet: type, where it begins, its value, and whether that is whole.
#[derive(Debug, Clone)]
struct Place {
    kind: u8,
    at: usize,
    value: std::ops::Range<usize>,
    whole: bool,
}

fn places(behind: &[u8]) -> Vec<Place> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(&[_, kind, high, low]) = behind.get(at..).and_then(|rest| rest.first_chunk()) {
        let begin = at + TLV_HEADER_OCTETS;
        let end = begin + usize::from(u16::from_be_bytes([high, low]));
        let whole = end <= behind.len();
        found.push(Place { kind, at, value: begin..end.min(behind.len()), whole });
        if !whole {
            break;
        }
        at = end;
    }
    found
}

/// Answers the TLVs behind a packet whose number is `asked_seq`, of an answer whose number is
/// `seq`.
pub(super) fn answer(
    behind: &mut [u8],
    (asked_seq, seq): (u32, u32),
    seen: &Surroundings,
    key: Option<&Psk>,
) -> Extended {
    let places = places(behind);
    let sealed = key.zip(places.iter().find(|place| place.kind == kind::HMAC && place.whole));
    if let Some((key, place)) = sealed
        && !is_authentic(behind, place, asked_seq, key)
    {
        for place in &places {
            behind[place.at] |= INTEGRITY;
        }
        return Extended::default();
    }
    let mut extended = Extended::default();
    for place in &places {
        if !place.whole {
            behind[place.at] |= MALFORMED;
            break;
        }
        let (before, value) = behind.split_at_mut(place.value.start);
        let length = place.value.len();
        let flags = &mut before[place.at];
        match fill(place.kind, &mut value[..length], seen, key, &mut extended) {
            Filled::Known => *flags &= !UNRECOGNISED,
            Filled::Unknown => *flags |= UNRECOGNISED,
            Filled::Malformed => *flags = (*flags & !UNRECOGNISED) | MALFORMED,
        }
    }
    if let Some((key, place)) = sealed {
        let mac = mac(behind, place, seq, key);
        put(behind, place.value.start, &mac);
    }
    extended
}

enum Filled {
    Known,
    Unknown,
    Malformed,
}

fn fill(kind: u8, value: &mut [u8], seen: &Surroundings, key: Option<&Psk>, extended: &mut Extended) -> Filled {
    let exactly = |octets: usize, length: usize| {
        if length == octets { Filled::Known } else { Filled::Malformed }
    };
    let length = value.len();
    match kind {
        kind::EXTRA_PADDING => return Filled::Known,
        kind::LOCATION if length >= 4 => {
            put(value, 0, &seen.ports.0.to_be_bytes());
            put(value, 2, &seen.ports.1.to_be_bytes());
            let mut at = 4;
            while at + TLV_HEADER_OCTETS <= length {
                value[at] |= UNRECOGNISED;
                at += TLV_HEADER_OCTETS + usize::from(u16::from_be_bytes([value[at + 2], value[at + 3]]));
            }
            return Filled::Known;
        }
        kind::LOCATION => return Filled::Malformed,
        kind::TIMESTAMP_INFORMATION if length == 4 => {
            /// NTP; a local clock that nothing disciplines.
            const SOURCES: [u8; 2] = [1, 5];
            /// Software of this host.
            const LOCAL: u8 = 2;
            let source = SOURCES[usize::from(!seen.synchronised)];
            put(value, 0, &[source, LOCAL, source, LOCAL]);
        }
        kind::CLASS_OF_SERVICE if length == 4 => {
            // DSCP1, DSCP2, ECN, RP: 6, 6, 2 and 2 bits.
            extended.dscp = Some(value[0] >> 2);
            let (dscp, ecn) = seen.traffic_class.map_or((0, 0), |class| (class >> 2, class & 3));
            value[0] = (value[0] & 0xfc) | (dscp >> 4);
            value[1] = (dscp << 4) | (ecn << 2);
        }
        kind::DIRECT_MEASUREMENT if length == 12 => {
            let (arrived, answered) = seen.counts.unwrap_or((0, 0));
            put(value, 4, &arrived.to_be_bytes());
            put(value, 8, &answered.to_be_bytes());
        }
        kind::FOLLOW_UP if length == 16 => {
            /// Software of this host.
            const LOCAL: u8 = 2;
            value.fill(0);
            if let Some((number, left)) = seen.last {
                put(value, 0, &number.to_be_bytes());
                put(value, 4, &left.to_be_bytes());
                put(value, 12, &[LOCAL]);
            }
        }
        kind::HMAC if key.is_none() => return Filled::Unknown,
        _ => {}
    }
    match kind {
        kind::TIMESTAMP_INFORMATION | kind::CLASS_OF_SERVICE | kind::ACCESS_REPORT => exactly(4, length),
        kind::DIRECT_MEASUREMENT => exactly(12, length),
        kind::FOLLOW_UP | kind::HMAC => exactly(HMAC_OCTETS, length),
        _ => Filled::Unknown,
    }
}

/// Over the packet's number and all TLVs before (RFC 8972 §4.8).
fn mac(behind: &[u8], place: &Place, seq: u32, key: &Psk) -> [u8; HMAC_OCTETS] {
    let mut text = seq.to_be_bytes().to_vec();
    text.extend_from_slice(&behind[..place.at]);
    key.stamp_mac(&text)
}

/// Whether it is right, and the last of them all.
fn is_authentic(behind: &[u8], place: &Place, seq: u32, key: &Psk) -> bool {
    let shown = &behind[place.value.clone()];
    let last = place.value.end == behind.len();
    last & (shown.len() == HMAC_OCTETS) && bool::from(mac(behind, place, seq, key).ct_eq(shown))
}

/// A sender's HMAC TLV at the end of `behind`, over the number of its packet and what stands
/// before. `None`: no room.
pub fn seal(behind: &mut [u8], seq: u32, key: &Psk) -> Option<()> {
    let at = behind.len().checked_sub(TLV_HEADER_OCTETS + HMAC_OCTETS)?;
    put(behind, at, &[UNRECOGNISED, kind::HMAC, 0, 16]);
    let place = Place { kind: kind::HMAC, at, value: at + TLV_HEADER_OCTETS..behind.len(), whole: true };
    let mac = mac(behind, &place, seq, key);
    put(behind, place.value.start, &mac);
    Some(())
}

/// Whether the TLVs behind an answer are authentic: those of a packet with this number.
pub fn is_sealed(packet: &[u8], base: usize, key: &Psk) -> bool {
    let Some(behind) = packet.get(base..) else { return false };
    let places = places(behind);
    let sealed = places.iter().find(|place| place.kind == kind::HMAC && place.whole);
    sealed.is_some_and(|place| is_authentic(behind, place, u32_at(packet, 0), key))
}
