//! The reflector's answer, made out of the packet itself.

use super::extend::{self, Extended};
use super::{
    ErrorEstimate, OPEN, STAMP_REPLY_OCTETS, SessionPacket, StampError, StampTime, Surroundings, layout, put, sign,
    u16_at,
};
use crate::psk::Psk;

/// What the reflector knows of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reflection {
    /// When it had arrived (T2), nanoseconds since 1970.
    pub received_ns: i64,
    /// When the answer leaves (T3), likewise.
    pub transmitted_ns: i64,
    /// The reflector's clock, and the format of its stamps.
    pub error: ErrorEstimate,
    /// The hop limit with which it had arrived.
    pub hop_limit: u8,
    /// The reflector's own number for it; `None`: the packet's again (stateless).
    pub seq: Option<u32>,
    /// What TLVs may ask for.
    pub surroundings: Surroundings,
}

/// Reads a sender's packet as [`reflect`] does.
pub fn peek(packet: &[u8], key: Option<&Psk>) -> Result<SessionPacket, StampError> {
    if key.is_none() && (STAMP_REPLY_OCTETS..OPEN.octets).contains(&packet.len()) {
        let mut whole = [0; OPEN.octets];
        whole[..packet.len()].copy_from_slice(packet);
        return SessionPacket::parse(&whole, None);
    }
    SessionPacket::parse(packet, key)
}

/// Turns a sender's packet into its answer, of the same length. With a key, only an authentic
/// packet, and the answer is authentic too. Without one, TWAMP's packets that end before STAMP's do
/// are answered as well, from 41 octets on: shorter ones would need an answer that is longer than
/// they are. What TLVs ask of the answer's own packet comes with the packet that was read.
pub fn reflect(
    packet: &mut [u8],
    seen: &Reflection,
    key: Option<&Psk>,
) -> Result<(SessionPacket, Extended), StampError> {
    let at = layout(key);
    let asked = peek(packet, key)?;
    let sender_error = u16_at(packet, at.error);
    let (fields, behind) = packet.split_at_mut(at.octets.min(packet.len()));
    fields.fill(0);
    let format = seen.error.format;
    let time = |unix_ns| StampTime::from_unix_ns(unix_ns, format).wire().to_be_bytes();
    let seq = seen.seq.unwrap_or(asked.seq);
    put(fields, 0, &seq.to_be_bytes());
    put(fields, at.error, &seen.error.wire().to_be_bytes());
    put(fields, at.ssid, &asked.ssid.to_be_bytes());
    put(fields, at.received, &time(seen.received_ns));
    put(fields, at.sender_seq, &asked.seq.to_be_bytes());
    put(fields, at.sender_time, &asked.time.wire().to_be_bytes());
    put(fields, at.sender_error, &sender_error.to_be_bytes());
    put(fields, at.sender_ttl, &[seen.hop_limit]);
    put(fields, at.time, &time(seen.transmitted_ns));
    sign(fields, key);
    let extended = extend::answer(behind, (asked.seq, seq), &seen.surroundings, key);
    Ok((asked, extended))
}
