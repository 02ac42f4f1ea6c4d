//! Ranges of message fields.

use super::MessageError;

/// Something that can be out of range though its types are right.
pub(crate) trait Check {
    /// The first field that is.
    fn check(&self) -> Result<(), MessageError>;
}

/// Longest text in a message.
pub(crate) const MAX_TEXT: usize = 512;

/// No message speaks of more than an hour.
const MAX_NANOS: u64 = 3_600_000_000_000;

pub(crate) fn ensure(field: &'static str, holds: bool) -> Result<(), MessageError> {
    if holds { Ok(()) } else { Err(MessageError::Range(field)) }
}

pub(crate) fn text(field: &'static str, words: &str) -> Result<(), MessageError> {
    ensure(field, words.len() <= MAX_TEXT && !words.chars().any(char::is_control))
}

pub(crate) fn short(field: &'static str, length: usize, most: usize) -> Result<(), MessageError> {
    ensure(field, length <= most)
}

pub(crate) fn nanos(field: &'static str, nanos: u64) -> Result<(), MessageError> {
    ensure(field, nanos <= MAX_NANOS)
}

pub(crate) fn packets(packets: u32) -> Result<(), MessageError> {
    ensure("packets", packets as usize <= crate::rows::MAX_ROWS)
}

/// From the smallest IPv4 packet that holds a probe header.
pub(crate) fn ip_octets(octets: u16) -> Result<(), MessageError> {
    ensure("ip_octets", octets >= 56)
}

pub(crate) fn permille(field: &'static str, share: Option<u16>) -> Result<(), MessageError> {
    ensure(field, share.is_none_or(|share| share <= 1000))
}

pub(crate) fn streams(streams: u16) -> Result<(), MessageError> {
    ensure("streams", (1..=1024).contains(&streams))
}

/// A kernel's name of a thing, as it may stand in a command: at most 40 octets, visible, and
/// nothing that a shell makes something of.
pub(crate) fn name(field: &'static str, name: &str) -> Result<(), MessageError> {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"_-.:@+".contains(&octet);
    ensure(field, (1..=40).contains(&name.len()) && name.bytes().all(plain))
}

/// The name of a client's key, of whatever form: at most 128 visible octets.
pub(crate) fn key_name(name: &str) -> Result<(), MessageError> {
    ensure("key_name", (1..=128).contains(&name.len()) && name.bytes().all(|octet| octet.is_ascii_graphic()))
}

/// The kernel's names of congestion controls: at most 15 octets, no separators.
pub(crate) fn congestion(name: &str) -> Result<(), MessageError> {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'_' || octet == b'-';
    ensure("congestion", (1..=15).contains(&name.len()) && name.bytes().all(plain))
}
