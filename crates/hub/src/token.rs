//! What a host shows to join: `nw1.<hash of the hub's TLS key>.<20 secret octets>`.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use narrows_units::hex;

/// A token, as its owner has it. The record knows its [`JoinToken::hash`] alone.
///
/// The first part tells the host which TLS key the hub has, so that no certificate authority is
/// needed and nobody in between can read the second part.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// SHA-256 of the `SubjectPublicKeyInfo` of the hub's TLS key.
    pub key_hash: [u8; 32],
    secret: [u8; 20],
}

impl JoinToken {
    /// A new one.
    pub fn new(key_hash: [u8; 32]) -> Result<Self> {
        Ok(Self { key_hash, secret: random()? })
    }

    /// What the record keeps.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.secret).into()
    }
}

/// Random octets of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(|error| Error::Request(format!("no random octets: {error}")))?;
    Ok(octets)
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nw1.{}.{}", hex::to_text(&self.key_hash), hex::to_text(&self.secret))
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nw1.{}.(secret)", hex::to_text(&self.key_hash))
    }
}

impl FromStr for JoinToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::Request("this is no join token: nw1.<64 hexadecimal digits>.<40>".to_owned());
        let mut parts = text.trim().split('.');
        let (Some("nw1"), Some(hash), Some(secret), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let key_hash = hex::to_array(hash).ok_or_else(wrong)?;
        Ok(Self { key_hash, secret: hex::to_array(secret).ok_or_else(wrong)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_what_it_prints_and_nothing_else() {
        let token = JoinToken::new([7; 32]).unwrap();
        let text = token.to_string();
        assert_eq!(text.len(), 4 + 64 + 1 + 40);
        assert_eq!(text.parse::<JoinToken>().unwrap(), token);
        assert_ne!(JoinToken::new([7; 32]).unwrap().hash(), token.hash());
        assert!(!format!("{token:?}").contains(&text[69..]));
        for wrong in ["", "nw1", &text[1..], &text[..108], &text.replace("nw1", "nw2"), &text.replace("07", "0x")] {
            assert!(wrong.parse::<JoinToken>().is_err(), "{wrong}");
        }
    }
}
