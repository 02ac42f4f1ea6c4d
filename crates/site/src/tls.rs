//! TLS of connections: what `tls_server_config` of a web config file says. Without the crate's
//! feature `tls` there is none: whoever asks for it is refused, so that nothing is sent in clear.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod present;

use std::path::PathBuf;

#[cfg(not(feature = "tls"))]
pub(crate) use absent::{Section, Tls};
#[cfg(feature = "tls")]
pub(crate) use present::{Section, Tls};

/// A certificate and its key, in PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTls {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}
