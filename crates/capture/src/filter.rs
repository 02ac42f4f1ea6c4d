//! Filters: a useful part of the language that tcpdump has, translated to the kernel's classic
//! packet filters.
//!
//! Shapes: [`Filter::parse`] reads an expression, [`Filter::compile`] translates it for a link
//! type, [`Program::matches`] runs it where no kernel does (captures in files). The language is
//! that of `pcap-filter(7)` as far as it goes here: `host`, `net`, `port` and `portrange`, each
//! after `src`, `dst`, `src or dst` or `src and dst`, and after `ip`, `ip6`, `arp`, `tcp`, `udp` or
//! `sctp`; these words, `icmp` and `icmp6` alone; `vlan [id]`; `less` and `greater`; `and`, `or`,
//! `not` and parentheses. As there, `and` and `or` bind equally and from left to right, a bare
//! value repeats the words before it (`port 80 or 443`), `vlan` lets what follows look behind the
//! tag, and a packet too short for a test is refused. Addresses and ports are numbers: no name is
//! looked up.

mod code;
mod lower;
mod parse;
#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::packet::{LinkType, RawPacket};

pub use code::{Instruction, Program};

/// A filter that cannot be used. The caller can mend it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FilterError {
    /// A word that is not known, or not here.
    #[error("filter: \"{word}\" at character {at} is not understood here: {expected}")]
    Unexpected {
        /// The word.
        word: String,
        /// Where it begins, counted from 1.
        at: usize,
        /// What could stand there.
        expected: &'static str,
    },
    /// It ends too soon.
    #[error("filter: it ends where {expected} is missing")]
    Ends {
        /// What is missing.
        expected: &'static str,
    },
    /// Deeper than anybody writes.
    #[error("filter: more than {most} parentheses and \"not\"s within each other")]
    TooDeep {
        /// How many may be.
        most: usize,
    },
    /// Longer than anybody writes.
    #[error("filter: more than {most} words")]
    TooManyWords {
        /// How many may be.
        most: usize,
    },
    /// Longer than the kernel takes.
    #[error("filter: it needs {instructions} instructions; the kernel takes 4096")]
    TooLong {
        /// How many.
        instructions: usize,
    },
    /// No filter can be made for this kind of capture.
    #[error("filter: captures of link type {number} cannot be filtered; Ethernet, Linux cooked and raw IP can")]
    LinkType {
        /// Which.
        number: u32,
    },
    /// Tags are only known on Ethernet.
    #[error("filter: \"vlan\" needs an Ethernet capture")]
    NoTags,
}

/// An expression that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(parse::Expression);

/// Where VLAN tags are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tags {
    /// In the frames, as in files.
    InFrames,
    /// The outermost beside them, as the kernel has it.
    Beside,
}

impl Filter {
    /// Reads an expression; an empty one lets everything pass.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parse::parse(text).map(Self)
    }

    /// Translates it. `accepted` is what a program gives for a packet that passes: the octets that
    /// the kernel keeps of it.
    pub fn compile(&self, link: LinkType, tags: Tags, accepted: u32) -> Result<Program, FilterError> {
        let node = lower::lower(&self.0, link, tags)?;
        code::generate(&node, accepted)
    }
}

/// A filter for captures in files: compiled for each link type as it comes.
#[derive(Debug)]
pub struct FileFilter {
    filter: Filter,
    programs: Vec<(LinkType, Result<Program, FilterError>)>,
}

impl FileFilter {
    /// Of this expression.
    pub fn new(filter: Filter) -> Self {
        Self { filter, programs: Vec::new() }
    }

    /// Whether a packet passes; an error if packets of its link type cannot be filtered.
    pub fn matches(&mut self, raw: &RawPacket<'_>) -> Result<bool, FilterError> {
        let known = self.programs.iter().position(|(link, _)| *link == raw.link);
        let index = known.unwrap_or_else(|| {
            let program = self.filter.compile(raw.link, Tags::InFrames, u32::MAX);
            self.programs.push((raw.link, program));
            self.programs.len() - 1
        });
        match &self.programs[index].1 {
            Ok(program) => Ok(program.matches(raw)),
            Err(error) => Err(error.clone()),
        }
    }
}
