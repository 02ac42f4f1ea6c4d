//! A line of an answer, as documents hold it.

use std::fmt::Write as _;

use narrows_units::Direction;
use serde::Serialize;

/// What a line is about, in the order in which lines stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// What the path can carry.
    Carries,
    /// What a transfer carried.
    Carried,
    /// What that did to the round trip.
    Delay,
    /// What of it others leave now.
    FreeNow,
    /// What holds the result back.
    Limit,
    /// What to do about it.
    Do,
    /// Why it might mislead.
    Doubts,
}

impl Topic {
    /// For people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Carries => "Carries",
            Self::Carried => "Carried",
            Self::Delay => "Delay",
            Self::FreeNow => "Free now",
            Self::Limit => "Limit",
            Self::Do => "Do",
            Self::Doubts => "Doubts",
        }
    }
}

/// One line of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerLine {
    /// Which way the data went.
    pub direction: Direction,
    /// What it is about.
    pub line: Topic,
    /// The rule that wrote it.
    pub rule: &'static str,
    /// For people.
    pub text: String,
}

/// The lines as they stand above a report; directions have a line of their own where there are two.
pub fn answer_text(lines: &[AnswerLine]) -> String {
    let two = lines.iter().any(|line| line.direction != lines[0].direction);
    let mut out = String::new();
    let mut last = None;
    for line in lines {
        if two && last != Some(line.direction) {
            let head = if line.direction == Direction::Reverse { "To this host" } else { "From this host" };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}{head}", if last.is_some() { "\n" } else { "" });
        }
        last = Some(line.direction);
        let _ = writeln!(out, "{:<LABEL$}{}", line.line.label(), line.text);
    }
    out
}

/// Columns of a label.
pub(crate) const LABEL: usize = 10;
