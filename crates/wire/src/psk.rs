//! Pre-shared keys.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

use crate::secret::{Nonce, Proof, Secret, Tag, Token};

/// Why octets are no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PskError {
    /// Too short to be a secret.
    #[error("the key has {octets} octets, and must have at least {}", Psk::MIN_OCTETS)]
    Short {
        /// Octets without the newline at the end.
        octets: usize,
    },
    /// Too long for anything but a mistake.
    #[error("the key has more than {} octets; is that the right file?", Psk::MAX_OCTETS)]
    Long,
}

/// A key that both sides hold. Each proves so over both nonces; the proofs differ by direction, so
/// that none can be sent back.
#[derive(Clone)]
pub struct Psk(Vec<u8>);

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Psk(..)")
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

impl Psk {
    /// Least octets (128 bits).
    pub const MIN_OCTETS: usize = 16;
    /// Most octets.
    pub const MAX_OCTETS: usize = 4096;

    /// From a key file's content; one newline at the end is not part of the key.
    pub fn from_file_content(content: &[u8]) -> Result<Self, PskError> {
        let key = content.strip_suffix(b"\n").unwrap_or(content);
        let key = key.strip_suffix(b"\r").unwrap_or(key);
        if key.len() < Self::MIN_OCTETS {
            return Err(PskError::Short { octets: key.len() });
        }
        if key.len() > Self::MAX_OCTETS {
            return Err(PskError::Long);
        }
        Ok(Self(key.to_vec()))
    }

    /// A key of a fleet: its 32 octets, not their text.
    pub fn from_secret(secret: &Secret) -> Self {
        Self(secret.octets().to_vec())
    }

    /// What the client shows.
    pub fn client_proof(&self, client: &Nonce, server: &Nonce) -> Proof {
        let parts: [&[u8]; 3] = [b"narrows 1 client proof", client.octets(), server.octets()];
        Proof::new(mac(&self.0, &parts))
    }

    /// What the server shows, after it has seen the client's.
    pub fn server_proof(&self, client: &Nonce, server: &Nonce) -> Proof {
        let parts: [&[u8]; 3] = [b"narrows 1 server proof", client.octets(), server.octets()];
        Proof::new(mac(&self.0, &parts))
    }
}

impl Psk {
    /// What authenticates a STAMP packet: HMAC-SHA-256, cut to 128 bits (RFC 8762 §4.4).
    pub(crate) fn stamp_mac(&self, fields: &[u8]) -> [u8; 16] {
        let full = mac(&self.0, &[fields]);
        let mut cut = [0; 16];
        cut.copy_from_slice(&full[..16]);
        cut
    }
}

impl Token {
    /// The mark of the session's datagrams.
    pub fn tag(&self) -> Tag {
        let full = mac(self.octets(), &[b"narrows 1 datagram tag"]);
        let mut tag = [0; Tag::OCTETS];
        tag.copy_from_slice(&full[..Tag::OCTETS]);
        Tag::new(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_lengths() {
        assert!(matches!(Psk::from_file_content(b"0123456789abcde\n"), Err(PskError::Short { octets: 15 })));
        assert!(Psk::from_file_content(b"0123456789abcdef\n").is_ok());
        assert!(matches!(Psk::from_file_content(&[7; 4097]), Err(PskError::Long)));
    }

    #[test]
    fn proofs_differ_by_key_direction_and_nonce() {
        let key = Psk::from_file_content(b"0123456789abcdef").unwrap();
        let other = Psk::from_file_content(b"0123456789abcdeg").unwrap();
        let (a, b) = (Nonce::new([1; 16]), Nonce::new([2; 16]));
        let proof = key.client_proof(&a, &b);
        assert_eq!(proof, key.client_proof(&a, &b));
        assert_ne!(proof, key.server_proof(&a, &b));
        assert_ne!(proof, key.client_proof(&b, &a));
        assert_ne!(proof, other.client_proof(&a, &b));
    }

    /// HMAC-SHA-256 of RFC 4231 §4.2 (test case 1), to pin the primitive.
    #[test]
    fn the_primitive_is_hmac_sha_256() {
        let full = mac(&[0x0b; 20], &[b"Hi ", b"There"]);
        assert_eq!(full[..8], [0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53]);
        assert_eq!(full[24..], [0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7]);
    }
}
