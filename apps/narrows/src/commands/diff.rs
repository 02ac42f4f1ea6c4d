//! `narrows diff A B`: two stored results compared.

use std::path::{Path, PathBuf};

use narrows_report::diff::{Change, DiffDocument};
use narrows_report::readings::{readings, stored};
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::output;

/// Compare two stored results: JSON of any measuring command, or pages that hold it.
///
/// A change counts if the intervals are disjoint and the values differ by more than the threshold.
/// Ends with code 10 if a metric is worse, with 11 if layers or directions differ, else with 0.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The first result
    before: PathBuf,
    /// The second
    after: PathBuf,
    /// Changes up to this share of the first value do not count
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    threshold: f64,
    /// Print one JSON object
    #[arg(long, short = 'J')]
    json: bool,
    /// Write the comparison to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A percentage, with its sign or without.
fn share(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().trim_end_matches('%').trim().parse().ok();
    let number = number.filter(|percent| (0.0..=1000.0).contains(percent));
    number.map(|percent| percent / 100.0).ok_or_else(|| format!("\"{text}\": write a percentage from 0 to 1000"))
}

pub(crate) fn run(args: &DiffArgs) -> Result<Exit, Failure> {
    let (before, after) = (read(&args.before)?, read(&args.after)?);
    let side = |path: &Path| path.display().to_string();
    let (first, second) = (side(&args.before), side(&args.after));
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let diff = DiffDocument::new(version, (&first, &before), (&second, &after), args.threshold);
    let text = if args.json { diff.json() + "\n" } else { diff.text() };
    output::write(&text, args.output.as_deref())?;
    Ok(match diff.verdict {
        Change::Worse => Exit::Threshold,
        Change::NotComparable => Exit::Inconclusive,
        Change::Unchanged | Change::Unknown | Change::Changed | Change::Better => Exit::Valid,
    })
}

/// A document with figures in it.
fn read(path: &Path) -> Result<Value, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let document = stored(&text).map_err(|error| wrong(&error))?;
    if readings(&document).is_empty() {
        return Err(wrong(&"is no result of a measuring command"));
    }
    Ok(document)
}
