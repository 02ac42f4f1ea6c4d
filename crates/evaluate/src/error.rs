//! What can be wrong with a plan, with its store, and with a run.

use std::path::PathBuf;

use thiserror::Error;

/// A plan that makes no sense. Its writer can mend it; every variant names the place.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A file that cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML, or a field that does not exist or has the wrong type.
    #[error("{}: {text}", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Line, column and reason.
        text: String,
    },
    /// A value that cannot be used.
    #[error("{place}: {why}")]
    Invalid {
        /// Where in the plan, such as `scenario 2: with`.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A scenario that is none.
    #[error("{place}: {source}")]
    Scenario {
        /// Where in the plan, and which values.
        place: String,
        /// What is wrong with it.
        source: narrows_scenario::ScenarioError,
    },
    /// A parameter that the method cannot use.
    #[error("{place}: {source}")]
    Parameter {
        /// Where in the plan.
        place: String,
        /// What is wrong with it.
        source: narrows_probe::ParamError,
    },
}

impl PlanError {
    /// A value that cannot be used.
    pub(crate) fn invalid(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { place: place.into(), why: why.into() }
    }
}

/// A run that gave nothing. None of these is kept: a later evaluation tries again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunFault {
    /// The other program is not there: the user can install it.
    #[error("{program} is not installed")]
    NotInstalled {
        /// Which.
        program: String,
    },
    /// The world cannot be had on this machine, or cannot carry this out: no further run of the row
    /// is tried.
    #[error("{why}")]
    NotOffered {
        /// Why.
        why: String,
    },
    /// It broke this time: the next run may fare better.
    #[error("{why}")]
    Broke {
        /// How.
        why: String,
    },
}

/// What keeps an evaluation from going on. The host's to mend.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file of the store.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another evaluation is at work on it.
    #[error("{}: another evaluation is at work here; wait for its end, or give another --runs-dir", path.display())]
    Busy {
        /// Which file.
        path: PathBuf,
    },
    /// The directory holds something else.
    #[error("{}: {why}", path.display())]
    NotAStore {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A result file that cannot be made.
    #[error("{}: {why}", path.display())]
    Table {
        /// Which file.
        path: PathBuf,
        /// What went wrong.
        why: String,
    },
}
