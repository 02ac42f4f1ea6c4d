//! What can go wrong, by who can mend it.

use std::path::PathBuf;

use narrows_fleet::config::ConfigError;

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the hub did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Who asks: the request makes no sense, or is not allowed.
    #[error("{0}")]
    Request(String),
    /// Who asks: not now. The same may succeed later, or once something else has changed.
    #[error("{0}")]
    Conflict(String),
    /// Who asks: there is no such thing.
    #[error("there is no {0}")]
    Missing(String),
    /// Who wrote the configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Who runs the hub: a file of its state directory.
    #[error("{}: {why}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Who wrote this program; who runs the hub starts it again.
    #[error("a part of the hub failed, and the others are of no use without it: {0}")]
    Task(String),
    /// Who runs the record.
    #[error(transparent)]
    Record(#[from] narrows_record::Error),
    /// Who runs the hub: its address, its TLS.
    #[error(transparent)]
    Serve(#[from] narrows_site::ServeError),
    /// Who runs the bus.
    #[error(transparent)]
    Bus(#[from] narrows_bus::Error),
}
