//! Name and password on their way to a server: RSA around [`narrows_wire::iperf3::auth`], either
//! side.
//!
//! Stock programs up to 3.16 pad by PKCS#1 v1.5, later ones by OAEP with SHA-1 unless told
//! otherwise. A client of ours does as later ones; the server takes either.
//!
//! Whoever can see how a server fails over tokens padded by PKCS#1 v1.5, or how long it takes to,
//! can decrypt tokens of others (that is what went wrong in iperf3 up to 3.16). Here every refusal
//! is the same, and comes [`REFUSED_AFTER`] after its token. Departs from stock iperf3: a token
//! that was accepted once is not accepted again.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod sealed;

#[cfg(not(feature = "tls"))]
pub use absent::{Gate, PublicKey};
#[cfg(all(test, feature = "tls"))]
pub(super) use sealed::tests;
#[cfg(feature = "tls")]
pub use sealed::{Gate, PublicKey};

/// How what is encrypted is filled up to the length of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Padding {
    /// PKCS#1 v1.5: stock programs up to 3.16, and later ones that are told so.
    Pkcs1,
    /// OAEP with SHA-1: later ones.
    #[default]
    Oaep,
}

/// Why there is no token, or nobody who could read one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others than its owner may read or write a private key.
    #[error("the private key {path} is open to others (mode {mode:04o}); say: chmod 600 {path}")]
    Open {
        /// Which.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It holds no key of that kind.
    #[error("{path} holds no {wanted}")]
    NoKey {
        /// Which.
        path: PathBuf,
        /// What should be there.
        wanted: &'static str,
    },
    /// Nobody could run a test.
    #[error("{path} names no user: lines are NAME,SHA256 of {{NAME}}PASSWORD")]
    NoUsers {
        /// Which.
        path: PathBuf,
    },
    /// Lines cannot be told apart.
    #[error("names and passwords have no line ends in them")]
    Lines,
    /// More than fits the key.
    #[error("name and password take {octets} octets, and the key has room for {most}")]
    TooLong {
        /// How many.
        octets: usize,
        /// How many there may be.
        most: usize,
    },
    /// The library gave no reason.
    #[error("this host cannot encrypt by that key")]
    Encrypt,
    /// This build has no library that encrypts.
    #[error("this build has no TLS, and logins need its RSA: add --features tls")]
    NoTls,
}

/// How long after its token a refusal comes, whatever was wrong with it (ours: several times what
/// decryption takes with the longest key).
pub const REFUSED_AFTER: Duration = Duration::from_millis(250);
