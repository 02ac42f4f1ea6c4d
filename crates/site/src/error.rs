//! What is wrong with a web config file.

use std::path::PathBuf;

/// What is wrong with a web config file; its owner mends it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebConfigError {
    /// It cannot be read.
    #[error("{0}")]
    Read(std::io::Error),
    /// It is not of the format.
    #[error("{0}")]
    Format(String),
    /// A certificate or key cannot be used.
    #[error("{}: {why}", path.display())]
    Tls {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It asks for TLS, and the crate was built without its feature `tls`.
    #[error("it asks for TLS, and this build has none")]
    WithoutTls,
    /// A user's entry is no bcrypt hash.
    #[error("user {0}: this is no bcrypt hash (htpasswd -nBC 10 \"\" makes one)")]
    User(String),
}
