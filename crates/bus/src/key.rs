//! Who a client is: an Ed25519 key in the textual form of NATS ("nkey"), for both buses.

use std::fmt;
use std::sync::Arc;

use nkeys::{KeyPair, KeyPairType};

use crate::error::{Error, Result};

/// A client's key. Its seed never leaves the host.
#[derive(Clone)]
pub struct Key {
    pair: Arc<KeyPair>,
}

impl Key {
    /// A new key.
    pub fn new() -> Self {
        Self { pair: Arc::new(KeyPair::new_user()) }
    }

    /// The key of a seed in textual form, 58 characters that begin with "SU".
    pub fn from_seed(seed: &str) -> Result<Self> {
        match KeyPair::from_seed(seed) {
            Ok(pair) if pair.key_pair_type() == KeyPairType::User => Ok(Self { pair: Arc::new(pair) }),
            // The text is a secret, also when it is mistyped.
            _ => Err(Error::Subject("(a seed)".to_owned())),
        }
    }

    /// The seed in textual form, to be kept in a file that nobody else can read.
    #[expect(clippy::missing_panics_doc, reason = "a key is made or read from a seed, so it has one")]
    pub fn seed(&self) -> String {
        self.pair.seed().expect("a key that was made or read from a seed has one")
    }

    /// The public key in textual form, 56 characters that begin with "U".
    pub fn public(&self) -> String {
        self.pair.public_key()
    }

    /// Signs octets (RFC 8032).
    #[expect(clippy::missing_panics_doc, reason = "a key is made or read from a seed, so it signs")]
    pub fn sign(&self, octets: &[u8]) -> Vec<u8> {
        self.pair.sign(octets).expect("a key with a seed signs")
    }
}

impl Default for Key {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Key({})", self.public())
    }
}

/// Whether a text is the public key of a client.
pub fn is_public_key(text: &str) -> bool {
    KeyPair::from_public_key(text).is_ok_and(|pair| pair.key_pair_type() == KeyPairType::User)
}

/// Whether the owner of a public key signed these octets.
pub fn verifies(public: &str, octets: &[u8], signature: &[u8]) -> bool {
    is_public_key(public) && KeyPair::from_public_key(public).is_ok_and(|pair| pair.verify(octets, signature).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pair of the page `auth_intro/nkey_auth` of <https://docs.nats.io>.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

    #[test]
    fn a_published_seed_gives_its_public_key() {
        let key = Key::from_seed(SEED).unwrap();
        assert_eq!((key.public().as_str(), key.seed().as_str()), (PUBLIC, SEED));
        assert!(is_public_key(PUBLIC));
        assert!(!is_public_key(&PUBLIC.replace('X', "Y")));
        assert!(Key::from_seed(PUBLIC).is_err());
    }

    #[test]
    fn a_signature_is_of_these_octets_by_this_key() {
        let (key, other) = (Key::new(), Key::new());
        let signature = key.sign(b"nonce");
        assert!(verifies(&key.public(), b"nonce", &signature));
        assert!(!verifies(&key.public(), b"nonce2", &signature));
        assert!(!verifies(&other.public(), b"nonce", &signature));
        assert!(!verifies("U", b"nonce", &signature));
    }

    #[test]
    fn a_seed_is_never_printed() {
        let key = Key::from_seed(SEED).unwrap();
        assert_eq!(format!("{key:?}"), format!("Key({PUBLIC})"));
        let error = Key::from_seed(&SEED[1..]).unwrap_err().to_string();
        assert!(!error.contains(&SEED[1..]), "{error}");
    }
}
