//! What can go wrong, by who can mend it.

use std::path::PathBuf;
use std::time::Duration;

/// The settings of a channel make no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A key's value.
    #[error("channel.{channel}: {text}")]
    Channel {
        /// Which channel.
        channel: String,
        /// What is wrong, and what would be right.
        text: String,
    },
    /// A channel needs TLS, and the crate was built without its feature `tls`.
    #[error("channel.{channel}: {what}, and this build has no TLS")]
    WithoutTls {
        /// Which channel.
        channel: String,
        /// What needs it.
        what: &'static str,
    },
    /// A file with a secret, or with a certificate.
    #[error("channel.{channel}: {}: {text}", path.display())]
    File {
        /// Which channel.
        channel: String,
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        text: String,
    },
}

/// A notice was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The settings are wrong: no such address, a wrong password, an untrusted certificate.
    #[error("{0}")]
    Settings(String),
    /// The peer is there and does not want this notice.
    #[error("{0}")]
    Refused(String),
    /// The peer is there and cannot take it now.
    #[error("{text}")]
    Busy {
        /// What it said.
        text: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The peer says what no such peer says.
    #[error("{0}")]
    Protocol(String),
    /// The peer cannot be reached.
    #[error("{0}")]
    Unreachable(String),
    /// The peer did not answer in time.
    #[error("{0}")]
    Silent(String),
    /// The program failed, or ran too long.
    #[error("{0}")]
    Program(String),
}

impl SendError {
    /// Who can mend it: `settings`, `peer`, `path`, or the `program` that a channel runs.
    pub const fn who(&self) -> &'static str {
        match self {
            Self::Settings(_) => "settings",
            Self::Refused(_) | Self::Busy { .. } | Self::Protocol(_) => "peer",
            Self::Unreachable(_) | Self::Silent(_) => "path",
            Self::Program(_) => "program",
        }
    }

    /// Whether other notices of the channel may fare better.
    pub(crate) const fn is_of_this_notice(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Program(_))
    }
}

/// Why, and why that, and so on.
pub(crate) fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause| cause.source())
}
