//! What can go wrong with a file, and with a replay.

use std::io;

use thiserror::Error;

/// A recording cannot be written. The measurement goes on without it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The host: disk, pipe, permission.
    #[error("the recording cannot be written: {0}")]
    Host(#[from] io::Error),
    /// One exchange is larger than the format allows.
    #[error("one exchange takes {octets} octets in the recording; the format allows {most}")]
    TooLarge {
        /// Its size.
        octets: usize,
        /// The largest allowed.
        most: usize,
    },
    /// A value cannot be put into the format.
    #[error("the recording cannot hold this: {0}")]
    Unwritable(String),
}

/// A file cannot be read at all. The caller chose it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The host.
    #[error("cannot be read: {0}")]
    Host(#[from] io::Error),
    /// Something else.
    #[error("is no recording of narrows")]
    NoRecording,
    /// From another time.
    #[error("is a recording of format {found}; this program reads format {known}")]
    Version {
        /// The file's.
        found: u16,
        /// Ours.
        known: u16,
    },
}

/// Where and why a file stops making sense. What came before is kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Damage {
    /// The file ends in the middle: the writer was killed, or the file was cut.
    #[error("the file ends in the middle, at octet {at}")]
    Truncated {
        /// Where the last whole block ends.
        at: u64,
    },
    /// A block does not have its checksum.
    #[error("the block at octet {at} is not what was written: its checksum differs")]
    Checksum {
        /// Where the block begins.
        at: u64,
    },
    /// A block says what no writer writes.
    #[error("the block at octet {at} makes no sense: {why}")]
    Nonsense {
        /// Where the block begins.
        at: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// The reader's limits.
    #[error("the file holds more than the reader's limit of {what}")]
    Limit {
        /// Which.
        what: &'static str,
    },
}

/// A recording cannot answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplayFault {
    /// A recording binds one method and one set of parameters.
    #[error("at step {step} the recording holds {held} where the method asked {asked}")]
    Differs {
        /// Which step, from 1.
        step: usize,
        /// What was recorded.
        held: String,
        /// What was asked now.
        asked: String,
    },
    /// The method goes on where the recording ends.
    #[error("the recording ends after {steps} step(s), where the method asked {asked}")]
    Over {
        /// How many it holds.
        steps: usize,
        /// What was asked now.
        asked: String,
    },
    /// The world broke then, and so does the recording.
    #[error("when this was recorded the world broke here: {0}")]
    Recorded(String),
}
