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

impl Signed {
    /// As JSON. Here, where it is compiled for speed, like [`super::Plan::to_text`].
    #[expect(clippy::missing_panics_doc, reason = "two texts")]
    pub fn to_octets(&self) -> Vec<u8> {
        // A message is JSON itself: its quotes are escaped.
        let mut octets = Vec::with_capacity(self.message.len() + self.message.len() / 4 + 256);
        serde_json::to_writer(&mut octets, self).expect("two texts");
        octets
    }
}
