//! What of a capture could not be read: where and why.

use thiserror::Error;

/// One place of a capture that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Octets of the (uncompressed) capture before it.
    pub octet: u64,
    /// Packets of the capture before it.
    pub packet: u64,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with a place of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file ends within a record.
    #[error("the capture ends inside a record: it was cut off")]
    Truncated,
    /// Reading failed: the disk, or a damaged compressed stream.
    #[error("it cannot be read on: {0}")]
    Reading(String),
    /// A record says that it holds more than any packet has.
    #[error("a record claims {octets} octets")]
    RecordLength {
        /// How many.
        octets: u64,
    },
    /// A record's stamp has a fraction of a second above one.
    #[error("a record's stamp is impossible")]
    Stamp,
    /// A block's two lengths differ, or one is impossible.
    #[error("a block's length of {octets} octets is impossible")]
    BlockLength {
        /// How many.
        octets: u64,
    },
    /// A block's inside makes no sense.
    #[error("a block of type {kind:#x} makes no sense inside")]
    Block {
        /// The block's type.
        kind: u32,
    },
    /// A packet names an interface that nobody described.
    #[error("a packet belongs to interface {interface}, which the capture does not describe")]
    Interface {
        /// Its number.
        interface: u32,
    },
    /// A section describes more interfaces than we keep.
    #[error("a section describes more than {most} interfaces")]
    TooManyInterfaces {
        /// How many are kept.
        most: usize,
    },
}

/// All that could not be read of one capture: the first places in full, all of them counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Damages {
    first: Vec<Damage>,
    count: u64,
    skipped_octets: u64,
}

impl Damages {
    /// Places that are kept in full.
    pub const KEPT: usize = 16;

    /// The first of them.
    pub fn first(&self) -> &[Damage] {
        &self.first
    }

    /// All of them.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Octets that were passed over in search of something readable.
    pub fn skipped_octets(&self) -> u64 {
        self.skipped_octets
    }

    pub(crate) fn add(&mut self, damage: Damage) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(damage);
        }
    }

    pub(crate) fn skipped(&mut self, octets: u64) {
        self.skipped_octets += octets;
    }
}
