//! What can be wrong with a scenario.

use narrows_host_profile::ProfileError;
use narrows_units::ParseQuantityError;
use thiserror::Error;

/// A scenario that makes no sense. The writer of the file (or of the builder calls) can mend it;
/// every variant names the place.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Not TOML, or a field that does not exist or has the wrong type.
    #[error("the scenario cannot be read: {0}")]
    Syntax(String),
    /// A quantity that cannot be read.
    #[error("{place}: {source}")]
    Quantity {
        /// Field, such as `hop 2: rate`.
        place: String,
        /// What is wrong with it.
        source: ParseQuantityError,
    },
    /// A value outside what a path can have.
    #[error("{place}: {why}")]
    Invalid {
        /// Field, such as `hop 2: rate`.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A host profile that cannot be used.
    #[error("{place}: {file}: {source}")]
    Profile {
        /// Field, such as `sender: profile`.
        place: String,
        /// The profile's file, as the scenario names it.
        file: String,
        /// What is wrong with it.
        source: ProfileError,
    },
    /// A path needs at least one hop.
    #[error("the scenario has no hop; write at least one [[hop]]")]
    NoHop,
    /// Cross traffic that leaves before it enters: the path has no loops.
    #[error(
        "{place}: enters at hop {first} and leaves behind hop {last}; traffic follows the path and never loops back"
    )]
    Loop {
        /// Which cross traffic.
        place: String,
        /// Its first hop.
        first: usize,
        /// Its last hop.
        last: usize,
    },
}

impl ScenarioError {
    /// A value outside its range.
    pub(crate) fn invalid(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { place: place.into(), why: why.into() }
    }
}
