//! What tells the connections of one test from those of others.

/// Octets of a cookie on the wire: 36 characters and a zero.
pub const COOKIE_OCTETS: usize = 37;

/// Characters of stock cookies.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The first octets of every TCP connection of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cookie([u8; COOKIE_OCTETS]);

impl Cookie {
    /// From random octets.
    pub fn new(random: [u8; COOKIE_OCTETS - 1]) -> Self {
        let mut octets = [0; COOKIE_OCTETS];
        for (octet, random) in octets.iter_mut().zip(random) {
            *octet = ALPHABET[usize::from(random) % ALPHABET.len()];
        }
        Self(octets)
    }

    /// From the wire; `None` unless it is printable and ends with its only zero. Any printable
    /// character is taken: the alphabet is the client's affair.
    pub fn parse(octets: [u8; COOKIE_OCTETS]) -> Option<Self> {
        let (last, text) = octets.split_last()?;
        (*last == 0 && text.iter().all(u8::is_ascii_graphic)).then_some(Self(octets))
    }

    /// As on the wire.
    pub fn octets(&self) -> &[u8; COOKIE_OCTETS] {
        &self.0
    }

    /// The characters.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.0[..COOKIE_OCTETS - 1]).unwrap_or_default()
    }
}
