//! What can go wrong, by who can mend it.

use std::path::PathBuf;

/// What the agent answers with.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an agent cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Caller: no join token.
    #[error("this is no join token: one looks like nw1.<64 hexadecimal digits>.<40 hexadecimal digits>")]
    Token,
    /// Caller: no address of a hub.
    #[error("\"{0}\" is no address of a hub: give https://HOST:8622, HOST:PORT or HOST")]
    Url(String),
    /// Caller: this host belongs to no fleet.
    #[error("this host has not joined a fleet: narrows agent join URL TOKEN")]
    NotJoined,
    /// Caller: it belongs to one already.
    #[error("this host is the agent {0} already; `narrows agent leave` ends that")]
    Joined(String),
    /// Caller: it belongs to one already, whose hub had another key.
    #[error(
        "this host is the agent {agent} of a hub at {hub} with another key than the token names: if that hub was made \
         anew, `narrows agent leave`, then join again"
    )]
    OtherHub {
        /// Its name there.
        agent: String,
        /// Where that hub was.
        hub: String,
    },
    /// Caller: another process is this agent.
    #[error("an agent runs already on {0}")]
    Running(PathBuf),
    /// Host: a file.
    #[error("{path}: {why}")]
    File {
        /// Which file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Host: the database of results that wait.
    #[error("the spool: {0}")]
    Spool(#[from] rusqlite::Error),
    /// Who wrote this program; a service manager starts it again.
    #[error("a part of the agent failed, and the others are of little use without it: {0}")]
    Task(String),
    /// Path: the hub does not answer.
    #[error("the hub at {hub} does not answer: {why}")]
    Unreachable {
        /// Where it should be.
        hub: String,
        /// What happened instead.
        why: String,
    },
    /// Caller: the address or the token; else somebody in between.
    #[error(
        "the certificate at {0} is not of the hub that the token names: another hub answers at this address, or \
         somebody is in between. Take the address and the token from the same hub"
    )]
    OtherKey(String),
    /// Peer: the hub said no.
    #[error("the hub refuses: {0}")]
    Refused(String),
    /// Peer: the hub says what we do not understand.
    #[error("the hub answers what this version does not understand: {0}")]
    Protocol(String),
    /// Path: the bus.
    #[error(transparent)]
    Bus(#[from] narrows_bus::Error),
}

impl Error {
    #[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
    pub(crate) fn file(path: impl Into<PathBuf>, why: impl ToString) -> Self {
        Self::File { path: path.into(), why: why.to_string() }
    }
}
