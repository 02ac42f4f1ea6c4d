//! What may follow a STAMP packet: a row of TLVs (RFC 8972 §4).

/// Flags, type and length.
pub const TLV_HEADER_OCTETS: usize = 4;
/// The reflector does not know this type; the sender sets it, and a reflector that knows the type
/// clears it.
pub const UNRECOGNISED: u8 = 0x80;
/// The length does not fit; nothing behind was read.
pub const MALFORMED: u8 = 0x40;
/// The HMAC TLV does not fit; nothing was done.
pub const INTEGRITY: u8 = 0x20;

/// Octets that mean nothing (RFC 8972 §4.1).
const EXTRA_PADDING: u8 = 1;

/// One TLV; its value stays in the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// [`UNRECOGNISED`], [`MALFORMED`], [`INTEGRITY`].
    pub flags: u8,
    /// What it is.
    pub kind: u8,
    /// Its value; cut if the packet ends before it does.
    pub value: &'a [u8],
    /// The packet holds all of it.
    pub whole: bool,
}

/// The TLVs behind a packet's fields; ends at the first one that does not fit, or at fewer than
/// four octets.
#[derive(Debug, Clone)]
pub struct Tlvs<'a>(&'a [u8]);

impl<'a> Tlvs<'a> {
    /// Of what follows the fields.
    pub fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Tlv<'a>;

    fn next(&mut self) -> Option<Tlv<'a>> {
        let (&[flags, kind, high, low], rest) = self.0.split_first_chunk::<TLV_HEADER_OCTETS>()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let whole = length <= rest.len();
        let (value, behind) = rest.split_at(length.min(rest.len()));
        self.0 = if whole { behind } else { &[] };
        Some(Tlv { flags, kind, value, whole })
    }
}

/// Makes all that follows a packet's fields one TLV of padding, whose value is left as it is; fewer
/// than four octets are left alone, as padding without a name.
pub fn write_padding(behind: &mut [u8]) {
    let Some((header, value)) = behind.split_first_chunk_mut::<TLV_HEADER_OCTETS>() else {
        return;
    };
    let [high, low] = u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes();
    *header = [UNRECOGNISED, EXTRA_PADDING, high, low];
}
