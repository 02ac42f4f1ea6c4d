//! What only the hub may say.

use serde::{Deserialize, Serialize};

/// A message with the signature over its very octets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The message, as JSON text. Its octets are what was signed.
    pub message: String,
    /// Ed25519 (RFC 8032), in hexadecimal.
    pub signature: String,
}
