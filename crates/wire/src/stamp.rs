//! STAMP (RFC 8762), with session identifiers and TLVs of RFC 8972; TWAMP-Light (RFC 5357 appendix
//! I) is the same but for the names.
//!
//! | | unauthenticated | authenticated |
//! |---|---|---|
//! | sender's packet, and reflector's | 44 octets | 112 octets, the last 16 of them an HMAC over the 96 before |
//! | behind it | padding, or TLVs | the same, not covered by that HMAC |
//!
//! A reflector answers with exactly as many octets as it received. TWAMP reflectors end their
//! fields after 41 octets, so that is what a reply must have at least.

mod extend;
mod reflect;
mod time;
mod tlv;

use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::psk::Psk;

pub use extend::{Extended, Surroundings, is_sealed, seal};
pub use reflect::{Reflection, peek, reflect};
pub use time::{ErrorEstimate, StampFormat, StampTime};
pub use tlv::{INTEGRITY, MALFORMED, TLV_HEADER_OCTETS, Tlv, Tlvs, UNRECOGNISED, write_padding};

/// The reflector's usual UDP port (RFC 8762 §4.1).
pub const STAMP_PORT: u16 = 862;
/// Octets of a packet without authentication.
pub const STAMP_OCTETS: usize = 44;
/// Octets of a packet with it.
pub const STAMP_AUTH_OCTETS: usize = 112;
/// Least octets of a reply: up to the sender's TTL (RFC 5357 §4.2.1 with no padding).
pub const STAMP_REPLY_OCTETS: usize = 41;

/// Why octets are no STAMP packet. The right answer to all of these is silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StampError {
    /// Shorter than its mode demands.
    #[error("truncated")]
    Truncated,
    /// A multiplier of zero marks a clock that does not know itself (RFC 4656 §4.1.2).
    #[error("corrupt error estimate")]
    ErrorEstimate,
    /// The HMAC does not fit, or there is none.
    #[error("not authentic")]
    NotAuthentic,
}

/// Where the fields are: RFC 8762 §4.2.1 and §4.3.1 (open), §4.2.2 and §4.3.2 (authenticated).
#[derive(Debug, Clone, Copy)]
struct Layout {
    octets: usize,
    time: usize,
    error: usize,
    ssid: usize,
    received: usize,
    sender_seq: usize,
    sender_time: usize,
    sender_error: usize,
    sender_ttl: usize,
}

const OPEN: Layout = Layout {
    octets: STAMP_OCTETS,
    time: 4,
    error: 12,
    ssid: 14,
    received: 16,
    sender_seq: 24,
    sender_time: 28,
    sender_error: 36,
    sender_ttl: 40,
};

const AUTHENTICATED: Layout = Layout {
    octets: STAMP_AUTH_OCTETS,
    time: 16,
    error: 24,
    ssid: 26,
    received: 32,
    sender_seq: 48,
    sender_time: 64,
    sender_error: 72,
    sender_ttl: 80,
};

/// Where the HMAC is.
const HMAC: std::ops::Range<usize> = 96..112;

fn layout(key: Option<&Psk>) -> &'static Layout {
    if key.is_some() { &AUTHENTICATED } else { &OPEN }
}

/// Octets of a packet, without what follows it.
pub fn stamp_octets(authenticated: bool) -> usize {
    if authenticated { STAMP_AUTH_OCTETS } else { STAMP_OCTETS }
}

/// What a Session-Sender sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionPacket {
    /// From 0, one more per packet.
    pub seq: u32,
    /// When it left (T1).
    pub time: StampTime,
    /// How good that clock is.
    pub error: ErrorEstimate,
    /// Session identifier; zero for none.
    pub ssid: u16,
}

/// What a Session-Reflector answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReflectedPacket {
    /// The sender's number again (stateless), or a count of the reflector's own from 0.
    pub seq: u32,
    /// When the answer left (T3).
    pub transmitted: StampTime,
    /// How good the reflector's clock is.
    pub error: ErrorEstimate,
    /// Session identifier, as received; TWAMP reflectors leave zero.
    pub ssid: u16,
    /// When the packet had arrived (T2).
    pub received: StampTime,
    /// The packet's number.
    pub sender_seq: u32,
    /// The packet's T1, as received.
    pub sender_time: u64,
    /// The packet's error estimate, as received.
    pub sender_error: u16,
    /// The hop limit with which the packet arrived; 255 less that is the number of hops, where the
    /// sender began at 255.
    pub sender_ttl: u8,
}

impl SessionPacket {
    /// Writes the fields at the front of `packet`, zeroes what must be zero, and leaves what
    /// follows alone. With a key, the authenticated form, and its HMAC. `None`, and nothing
    /// written, if it does not fit.
    pub fn write(&self, packet: &mut [u8], key: Option<&Psk>) -> Option<()> {
        let at = layout(key);
        let fields = packet.get_mut(..at.octets)?;
        fields.fill(0);
        put(fields, 0, &self.seq.to_be_bytes());
        put(fields, at.time, &self.time.wire().to_be_bytes());
        put(fields, at.error, &self.error.wire().to_be_bytes());
        put(fields, at.ssid, &self.ssid.to_be_bytes());
        sign(fields, key);
        Some(())
    }

    /// Reads a packet; with a key, only an authentic one.
    pub fn parse(packet: &[u8], key: Option<&Psk>) -> Result<Self, StampError> {
        let at = layout(key);
        let fields = packet.get(..at.octets).ok_or(StampError::Truncated)?;
        verify(fields, key)?;
        let error = ErrorEstimate::parse(u16_at(fields, at.error)).ok_or(StampError::ErrorEstimate)?;
        Ok(Self {
            seq: u32_at(fields, 0),
            time: StampTime::from_wire(u64_at(fields, at.time), error.format),
            error,
            ssid: u16_at(fields, at.ssid),
        })
    }
}

impl ReflectedPacket {
    /// Reads a reply; with a key, only an authentic one. Without, 41 octets suffice, as TWAMP
    /// reflectors send them.
    pub fn parse(packet: &[u8], key: Option<&Psk>) -> Result<Self, StampError> {
        let at = layout(key);
        let least = if key.is_some() { at.octets } else { STAMP_REPLY_OCTETS };
        let fields = packet.get(..least.max(packet.len().min(at.octets))).ok_or(StampError::Truncated)?;
        verify(fields, key)?;
        let error = ErrorEstimate::parse(u16_at(fields, at.error)).ok_or(StampError::ErrorEstimate)?;
        Ok(Self {
            seq: u32_at(fields, 0),
            transmitted: StampTime::from_wire(u64_at(fields, at.time), error.format),
            error,
            ssid: u16_at(fields, at.ssid),
            received: StampTime::from_wire(u64_at(fields, at.received), error.format),
            sender_seq: u32_at(fields, at.sender_seq),
            sender_time: u64_at(fields, at.sender_time),
            sender_error: u16_at(fields, at.sender_error),
            sender_ttl: fields.get(at.sender_ttl).copied().unwrap_or(0),
        })
    }
}

/// Where `seq` of the sender's packet is in the packet, for those who see only a part of it quoted.
pub const STAMP_SEQ: std::ops::Range<usize> = 0..4;

fn put(fields: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = fields.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

fn take<const N: usize>(fields: &[u8], at: usize) -> [u8; N] {
    let found = fields.get(at..).and_then(|rest| rest.first_chunk::<N>());
    found.copied().unwrap_or([0; N])
}

fn u16_at(fields: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(take(fields, at))
}

fn u32_at(fields: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(take(fields, at))
}

fn u64_at(fields: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(take(fields, at))
}

fn sign(fields: &mut [u8], key: Option<&Psk>) {
    if let Some(key) = key {
        let mac = key.stamp_mac(&fields[..HMAC.start]);
        put(fields, HMAC.start, &mac);
    }
}

fn verify(fields: &[u8], key: Option<&Psk>) -> Result<(), StampError> {
    let Some(key) = key else { return Ok(()) };
    let shown = fields.get(HMAC).ok_or(StampError::Truncated)?;
    if bool::from(key.stamp_mac(&fields[..HMAC.start]).ct_eq(shown)) { Ok(()) } else { Err(StampError::NotAuthentic) }
}

#[cfg(test)]
mod tests;
