//! Errors that the caller can mend.

use thiserror::Error;

/// A parameter that cannot be used. The caller can mend it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParamError {
    /// No such parameter.
    #[error("{method} has no parameter \"{name}\"; it has: {known}")]
    Unknown {
        /// The method.
        method: &'static str,
        /// What was given.
        name: String,
        /// What there is.
        known: String,
    },
    /// The value cannot be read.
    #[error("{name} = \"{value}\": {why}")]
    Unreadable {
        /// The parameter.
        name: String,
        /// What was given.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// The value is outside what the method can do.
    #[error("{name} = {value} is out of range: {why}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// The range, and where it comes from.
        why: String,
    },
}
