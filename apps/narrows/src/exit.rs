//! Exit codes, and errors that carry one.
//!
//! 0 measured and valid; 1 runtime failure; 2 usage; 3 peer unreachable or silent; 4 refused (key,
//! busy, limit); 5 missing privilege; 6 protocol or version; 10 measured, and a limit is crossed;
//! 11 measured, inconclusive; 130 a second interrupt, 143 a second request to terminate.

use std::fmt;
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Measured and valid.
    Valid,
    /// Something failed on the way.
    Failure,
    /// The call makes no sense.
    Usage,
    /// The peer cannot be reached, or fell silent.
    Unreachable,
    /// The peer refuses: key, busy, limit.
    Refused,
    /// A privilege is missing.
    Privilege,
    /// The peer speaks something else.
    Protocol,
    /// Measured, and a limit that the caller set is crossed.
    Threshold,
    /// Measured, without a conclusion.
    Inconclusive,
    /// As the program did that was run on the user's behalf.
    Program(u8),
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::Refused => 4,
            Self::Privilege => 5,
            Self::Protocol => 6,
            Self::Threshold => 10,
            Self::Inconclusive => 11,
            Self::Program(code) => code,
        }
    }

    /// The way to end that has this code.
    pub(crate) fn from_code(code: u8) -> Self {
        let all = [
            Self::Valid,
            Self::Failure,
            Self::Usage,
            Self::Unreachable,
            Self::Refused,
            Self::Privilege,
            Self::Protocol,
            Self::Threshold,
            Self::Inconclusive,
        ];
        all.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Failure)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error with its exit code and the party that can mend it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// `caller`, `host`, `peer` or `path`.
    pub(crate) who: &'static str,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, who: "caller", text: text.into() }
    }

    /// What this build lacks, and how to get one that has it.
    #[cfg(not(all(feature = "fleet", feature = "otlp", feature = "parquet")))]
    pub(crate) fn without(what: &str, feature: &str) -> Self {
        Self::lacking(&format!("this build has no {what}"), feature)
    }

    /// The same of something that says by itself what is lacking.
    pub(crate) fn lacking(text: &dyn fmt::Display, feature: &str) -> Self {
        Self::usage(format!("{text}: cargo install --locked --path apps/narrows --features {feature}"))
    }

    pub(crate) fn host(text: impl Into<String>) -> Self {
        Self { exit: Exit::Failure, who: "host", text: text.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}
