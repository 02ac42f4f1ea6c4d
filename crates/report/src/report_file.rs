//! One result as a file to send: a page of HTML, or Markdown for a ticket.
//!
//! [`ReportFile`] holds what both forms show, already in words and figures; each document has a
//! constructor for it. The page asks for nothing outside of itself, works from a disk and without
//! scripts (one sorts the results), follows dark and light settings, and holds its document as
//! JSON, so that programs can read pages. It is well-formed XML apart from its document type. The
//! same document gives the same bytes.

mod cost;
mod figures;
mod hops;
mod hosts;
mod html;
mod markdown;
mod metrics;
mod path;
#[cfg(test)]
pub(crate) mod tests;
mod transfer;

use narrows_units::Octets;

use crate::answer::is_doubt;
use crate::answer_line::AnswerLine;
use crate::document::{CostRow, Document, Note, Target};
use crate::hops::Pipe;
use crate::picture::Picture;
use crate::rows::Remark;

pub use transfer::TransferFile;

/// What a report file shows.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportFile {
    title: String,
    /// Name and value, in the page's head.
    facts: Vec<(&'static str, String)>,
    notes: Vec<String>,
    answer: Vec<AnswerLine>,
    path: Option<Path>,
    results: Table,
    found: Vec<MetricSection>,
    spent: Vec<Spent>,
    cost: String,
    hosts: Table,
    host_notes: Vec<String>,
    advice: Vec<(String, Option<String>)>,
    doubts: Vec<(String, String)>,
    /// The command line that made it; empty where there is none.
    command: String,
    json: String,
}

/// The path, drawn.
#[derive(Debug, Clone, PartialEq)]
enum Path {
    Whole(path::WholePath),
    Hops(Pipe),
}

impl Path {
    fn svg(&self) -> String {
        match self {
            Self::Whole(path) => path.svg(),
            Self::Hops(pipe) => pipe.inline(),
        }
    }
}

/// A table of text, with values to sort by.
#[derive(Debug, Clone, PartialEq, Default)]
struct Table {
    /// Heads; those of numbers are on the right.
    head: Vec<(&'static str, Align)>,
    rows: Vec<Vec<Cell>>,
}

/// Where a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Default)]
struct Cell {
    text: String,
    sort: Option<f64>,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), sort: None }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, sort: None }
    }
}

impl Cell {
    fn number(text: impl Into<String>, sort: Option<f64>) -> Self {
        Self { text: text.into(), sort }
    }
}

/// How one result was found.
#[derive(Debug, Clone, PartialEq)]
struct MetricSection {
    what: String,
    claim: String,
    words: Vec<String>,
    /// What to see in it, and the picture.
    pictures: Vec<(&'static str, Picture)>,
    /// Intermediate results: name and value.
    evidence: Vec<(String, String)>,
}

/// What one measurement cost.
#[derive(Debug, Clone, PartialEq)]
struct Spent {
    what: String,
    seconds: f64,
    octets: u64,
}

impl ReportFile {
    /// Of `test`, `demo`, or one metric alone.
    pub fn of(document: &Document, command: &str) -> Self {
        let mut notes = notes(&document.notes);
        notes.extend(document.error.as_ref().map(|problem| problem.text.clone()));
        Self {
            title: title(document.kind, &document.target),
            facts: facts(document.started_at.as_deref(), &document.cost, &document.version),
            notes,
            answer: document.answer.clone(),
            path: metrics::path(document).map(Path::Whole),
            results: metrics::table(document),
            found: document.metrics.iter().map(metrics::found).collect(),
            spent: metrics::spent(document),
            cost: cost_in_words(&document.cost),
            hosts: hosts::table(document),
            host_notes: hosts::notes(document),
            advice: document.advice.iter().map(|advice| (advice.text.clone(), advice.command.clone())).collect(),
            doubts: metrics::doubts(document),
            command: command.to_owned(),
            json: document.json(),
        }
    }

    /// The same with another document in it, as the command prints it.
    #[must_use]
    pub fn with_json(mut self, json: String) -> Self {
        self.json = json;
        self
    }

    /// The same with the command's own picture, of its first metric, instead of others there.
    #[must_use]
    pub fn with_picture(mut self, caption: &'static str, picture: Picture) -> Self {
        if let Some(first) = self.found.first_mut() {
            first.pictures = vec![(caption, picture)];
        }
        self
    }
}

fn title(kind: &str, target: &Target) -> String {
    let address = target.address.map_or_else(String::new, |address| format!(" ({address})"));
    // An address that the user typed is told once.
    let address = if target.name.contains(address.trim_matches([' ', '(', ')'])) { String::new() } else { address };
    format!("narrows {kind} {}{address}", target.name)
}

fn facts(started_at: Option<&str>, cost: &CostRow, version: &str) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    facts.extend(started_at.map(|at| ("begun", at.to_owned())));
    facts.push(("took", format!("{:.1} s", cost.seconds)));
    facts.push(("sent", Octets::new(cost.octets).to_string()));
    facts.push(("by", format!("narrows {version}")));
    facts
}

fn cost_in_words(cost: &CostRow) -> String {
    let peak = narrows_units::BitRate::from_bps(cost.peak_bps);
    format!(
        "{} in {} packets over {:.1} s, at most {peak} in any 0.1 s",
        Octets::new(cost.octets),
        cost.packets,
        cost.seconds
    )
}

fn notes(notes: &[Note]) -> Vec<String> {
    notes.iter().map(|note| note.text.clone()).collect()
}

/// Every caveat; those that are on every result come last.
fn in_order(mut doubts: Vec<(String, &Remark)>) -> Vec<(String, String)> {
    doubts.sort_by_key(|(_, caveat)| !is_doubt(caveat));
    doubts.into_iter().map(|(on, caveat)| (on, caveat.text.clone())).collect()
}
