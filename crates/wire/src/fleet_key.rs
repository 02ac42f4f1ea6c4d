//! Keys of a fleet: who may measure to whom in which week.
//!
//! The hub has one secret per tenant. From it follows the key of each server, and from that the key
//! of each client to this server. So the server derives a client's key from the client's name,
//! and keeps no list; each client has one key per server, and cannot derive another one's.
//!
//! ```text
//! tenant secret ──▶ key of server b in a week ──▶ key of client a to server b in that week
//! ```
//!
//! HKDF-SHA-256 (RFC 5869) without salt; `docs/design/protocol.md` has the inputs. The order of
//! derivation is that of `DRKey` (Rothenberger et al., *PISKES*, ASIA CCS 2020). Weeks are ours: a
//! key that leaked is worth nothing a fortnight later.

mod table;

use std::fmt;
use std::str::FromStr;

use hkdf::Hkdf;
use sha2::Sha256;

pub use table::{Lease, NoKey, NotLeased, Table, TableError};

pub use crate::secret::{Secret, SecretError};

/// The key of the server of `agent` in this week (whole weeks since 1970).
pub fn server(tenant: &Secret, agent: &str, week: u32) -> Secret {
    derive(tenant, "narrows 4 server", agent, week)
}

/// The key of the client `agent` to the server that has `server_key`, in the same week.
pub fn client(server_key: &Secret, agent: &str, week: u32) -> Secret {
    derive(server_key, "narrows 4 client", agent, week)
}

fn derive(from: &Secret, purpose: &str, agent: &str, week: u32) -> Secret {
    let mut key = [0; Secret::OCTETS];
    let week = week.to_string();
    let info = [purpose.as_bytes(), b"\0", agent.as_bytes(), b"\0", week.as_bytes()];
    hkdf(None, from.octets(), &info, &mut key);
    Secret::new(key)
}

fn hkdf(salt: Option<&[u8]>, input: &[u8], info: &[&[u8]], output: &mut [u8]) {
    let extracted = Hkdf::<Sha256>::new(salt, input);
    extracted.expand_multi_info(info, output).expect("HKDF gives up to 8160 octets");
}

/// A client's key by name: `agent@week`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName {
    agent: String,
    week: u32,
}

/// Text that names no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not AGENT@WEEK: a name of 1 to 64 of the letters a-z, A-Z, 0-9, \"-\" and \"_\", and the weeks since 1970")]
pub struct KeyNameError;

impl KeyName {
    /// Whose.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Of which week.
    pub const fn week(&self) -> u32 {
        self.week
    }
}

impl FromStr for KeyName {
    type Err = KeyNameError;

    fn from_str(text: &str) -> Result<Self, KeyNameError> {
        let (agent, week) = text.split_once('@').ok_or(KeyNameError)?;
        let plain = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
        let named = (1..=64).contains(&agent.len()) && agent.bytes().all(plain);
        let name = Self { agent: agent.to_owned(), week: week.parse().map_err(|_| KeyNameError)? };
        // A number has several spellings, and a key one name.
        if named && name.to_string() == text { Ok(name) } else { Err(KeyNameError) }
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.agent, self.week)
    }
}

#[cfg(test)]
mod tests;
