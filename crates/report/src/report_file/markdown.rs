//! Answer and results as Markdown, for a ticket.

use std::fmt::Write as _;

use super::{Align, ReportFile, Table};
use crate::answer_line::answer_text;
use crate::picture::is_unprintable;

impl ReportFile {
    /// The answer in a block of its own, and the results as a table.
    pub fn markdown(&self) -> String {
        let mut out = format!("### {}\n\n", escaped(&self.title));
        let facts: Vec<String> = self.facts.iter().map(|(name, value)| format!("{name} {}", escaped(value))).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}\n", facts.join(", "));
        for note in &self.notes {
            let _ = writeln!(out, "> {}\n", escaped(note));
        }
        if !self.answer.is_empty() {
            // No line of it begins with a fence: each begins with its label.
            let _ = writeln!(out, "```text\n{}```\n", answer_text(&self.answer));
        }
        table(&mut out, &self.results);
        if !self.doubts.is_empty() {
            out.push_str("\nDoubts:\n\n");
        }
        for (on, text) in &self.doubts {
            let _ = writeln!(out, "- {}: {}", escaped(on), escaped(text));
        }
        if !self.command.is_empty() {
            let _ = writeln!(out, "\n    {}", line(&self.command));
        }
        out
    }
}

fn table(out: &mut String, table: &Table) {
    let heads: Vec<String> = table.head.iter().map(|(name, _)| escaped(name)).collect();
    let rules: Vec<&str> =
        table.head.iter().map(|(_, align)| if *align == Align::Right { "--:" } else { "---" }).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "| {} |\n| {} |", heads.join(" | "), rules.join(" | "));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|cell| escaped(&cell.text)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

/// On one line, without what a terminal or a browser could obey.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_unprintable(c) { '\u{fffd}' } else { c }).collect()
}

/// The same with what Markdown could take for markup behind a backslash.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in line(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '#') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
