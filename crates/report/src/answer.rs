//! What a busy reader wants first: what the path carries, what is free now, what holds it back,
//! what to do, and what to doubt.
//!
//! Each line comes from the first rule of its topic that holds ([`rules`]). Rules read typed rows,
//! findings and advice of a [`Document`], and no other figure enters. Lines are plain ASCII of at
//! most [`WIDTH`] columns, label included. A topic whose metrics were not asked for has no line.

mod figures;
mod hops;
mod limit;
mod rules;
#[cfg(test)]
mod tests;
mod transfer;

use narrows_diagnose::advice::advise;
use narrows_units::{Direction, Metric};

use crate::answer_line::{AnswerLine, LABEL};
use crate::document::Document;
use crate::rows::MetricRow;
pub(crate) use figures::rounded;
pub(crate) use rules::is_doubt;
pub use transfer::{LoadedDelay, Transfer};

/// Columns of a line with its label.
pub(crate) const WIDTH: usize = 79;

impl Document {
    /// Fills in advice and answer, when all else stands.
    pub fn conclude(&mut self) {
        self.advice = advise(&self.findings);
        self.answer = answer(self);
    }
}

/// The answer of a document, one group of lines per direction.
fn answer(document: &Document) -> Vec<AnswerLine> {
    let mut directions: Vec<Direction> = Vec::new();
    // Alone, and of what is measured there and back, only the two rates have a line.
    let has_line = |row: &&MetricRow| {
        let of_answer = matches!(row.metric, Metric::IpCapacity | Metric::AvailableIpCapacity);
        of_answer || (document.is_whole_job() && row.direction != Direction::RoundTrip)
    };
    for row in document.metrics.iter().filter(has_line) {
        if !directions.contains(&row.direction) {
            directions.push(row.direction);
        }
    }
    directions.into_iter().flat_map(|direction| rules::lines(document, direction)).collect()
}
