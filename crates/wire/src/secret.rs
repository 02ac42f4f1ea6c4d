//! Fixed-length octet strings: nonces, tokens, cookies, tags, proofs.

use std::fmt;
use std::str::FromStr;

use narrows_units::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use subtle::ConstantTimeEq;

/// Lower-case hexadecimal of exactly `2 * N` digits.
fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_lower = !text.bytes().any(|digit| digit.is_ascii_uppercase());
    is_lower.then(|| hex::to_array(text))?
}

macro_rules! octet_string {
    ($(#[$doc:meta])* $name:ident, $octets:literal, $shown:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name([u8; $octets]);

        impl $name {
            /// Length in octets.
            pub const OCTETS: usize = $octets;

            /// From octets.
            pub const fn new(octets: [u8; $octets]) -> Self {
                Self(octets)
            }

            /// The octets.
            pub const fn octets(&self) -> &[u8; $octets] {
                &self.0
            }
        }

        /// In constant time.
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.0.ct_eq(&other.0).into()
            }
        }

        impl Eq for $name {}

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if $shown {
                    write!(f, "{}({})", stringify!($name), hex::to_text(&self.0))
                } else {
                    write!(f, "{}(..)", stringify!($name))
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&hex::to_text(&self.0))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                from_hex(&text).map(Self).ok_or_else(|| {
                    de::Error::invalid_value(de::Unexpected::Str("other text"), &"lower-case hexadecimal of fixed length")
                })
            }
        }
    };
}

octet_string! {
    /// A random number used once.
    Nonce, 16, true
}
octet_string! {
    /// Given by the server over the control connection; proves on other sockets that they belong to
    /// the session.
    Token, 16, false
}
octet_string! {
    /// A stateless proof that its bearer receives at the address it sends from.
    Cookie, 16, true
}
octet_string! {
    /// Marks the session's datagrams; derived from the token, so that no datagram of a load shows
    /// the token itself.
    Tag, 8, true
}
octet_string! {
    /// Proof of a shared key.
    Proof, 32, false
}
octet_string! {
    /// A key of a fleet: see [`crate::fleet_key`].
    Secret, 32, false
}

impl Secret {
    /// As plans and key files have it.
    pub fn to_hex(&self) -> String {
        hex::to_text(&self.0)
    }
}

/// Text that is no [`Secret`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not {} hexadecimal digits in lower case", 2 * Secret::OCTETS)]
pub struct SecretError;

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        from_hex(text).map(Self).ok_or(SecretError)
    }
}
