//! What can be wrong with a profile.

use thiserror::Error;

/// A profile that cannot be used. The writer of the file can mend it; a recorded one is mended by
/// recording it again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Not TOML, or a key that does not exist, is missing, or has the wrong type.
    #[error("the host profile cannot be read: {0}")]
    Syntax(String),
    /// A profile of another version.
    #[error("schema: this is \"{found}\", and this program reads \"{expected}\"; record the host again")]
    Schema {
        /// What the file says.
        found: String,
        /// What is read.
        expected: &'static str,
    },
    /// A value that no host has.
    #[error("{key}: {why}; mend the file, or record the host again")]
    Invalid {
        /// Which key, such as `send.pacing`.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// Too little was seen to make a profile of it.
    #[error("{what}: nothing was seen of it; record for longer, or on a machine that is less busy")]
    TooLittle {
        /// Which part of the profile.
        what: &'static str,
    },
}

impl ProfileError {
    pub(crate) fn invalid(key: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { key: key.into(), why: why.into() }
    }
}
