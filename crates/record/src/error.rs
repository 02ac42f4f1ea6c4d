//! Why the record did not do what it was asked.

use crate::rows::Reservation;

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the record did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database cannot be reached, or its disk is full: try again later.
    #[error("the record does not answer: {0}")]
    Unavailable(String),
    /// The database is of another program, or of a newer version of this one.
    #[error("this is no record that this version can use: {0}")]
    Foreign(String),
    /// The database broke a rule of its own.
    #[error("the record is damaged: {0}")]
    Damaged(String),
    /// Nothing that the record can keep, now or later: [`crate::unfit`] says so before.
    #[error("the record cannot keep this: {0}")]
    Unfit(String),
    /// The token is unknown, used or too old.
    #[error(
        "this token is not valid: it is used up, older than a day, or unknown here; `narrows hub token` makes another"
    )]
    Token,
    /// Another run has a key of this reservation at this time.
    #[error("{} is reserved already at this time", .0.key)]
    Reserved(Box<Reservation>),
    /// Another proof runs, of this bottleneck: that one has to end first.
    #[error("a proof of {0} runs over one of these paths; it takes some minutes")]
    Proving(String),
    /// Another grouping by delays runs: one at a time.
    #[error("paths are being grouped by their delays; it takes two minutes")]
    Grouping,
    /// Nobody can read on after this number without a gap.
    #[error("nothing can be read on from this cursor: {0}; begin anew with a time")]
    Cursor(String),
    /// There is no such thing.
    #[error("there is no such thing")]
    NotFound,
}
