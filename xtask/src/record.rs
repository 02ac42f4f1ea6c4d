//! The record between hosts as they were measured: a page for each of what users ask, with a column
//! for ideal hosts and for each profile of `hosts/`.

mod drawn;
mod grid;
mod hosts;
mod sums;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::provenance::Provenance;
use crate::shell::{quiet, root, say};
pub(crate) use hosts::profiles;

/// The program as the release build leaves it.
const PROGRAM: &str = "target/release/narrows";
/// Runs of a path that is cheap, paths of a draw: what the pages have unless asked for less.
const RUNS: u32 = 100;

/// What makes a page: its name in commands, the page, and how it is made of so many runs.
type Subject = (&'static str, &'static str, fn(u32) -> Result<String>);

const SUBJECTS: [Subject; 6] = [
    ("capacity", "docs/results/capacity-grid.md", |runs| grid::page(&grid::CAPACITY, runs)),
    ("available", "docs/results/available-grid.md", |runs| grid::page(&grid::AVAILABLE, runs)),
    ("shapers", "docs/results/kernel-shapers.md", |runs| grid::page(&grid::SHAPERS, runs)),
    ("hops", "docs/results/hops.md", |paths| drawn::page(&drawn::HOPS, paths)),
    ("burst", "docs/results/burst.md", |paths| drawn::page(&drawn::BURST, paths)),
    ("quick-mode", "docs/results/quick-mode.md", |paths| drawn::page(&drawn::QUICK, paths)),
];

/// `[SUBJECT...]` (all of them without any), `--runs N`, `--write` (into the pages; else they are
/// printed alone).
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let (mut runs, mut write, mut words) = (RUNS, false, Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--runs" => {
                let value = rest.next().context("--runs needs a number")?;
                runs = value.parse().context("--runs needs a number")?;
            }
            "--write" => write = true,
            word if SUBJECTS.iter().any(|(name, ..)| *name == word) => words.push(word),
            _ => bail!("unknown: {arg}; subjects are {}", SUBJECTS.map(|(name, ..)| name).join(", ")),
        }
    }
    if quiet("cargo", &["build", "--release", "--workspace", "--all-features", "--locked", "--bin", "narrows"])
        .is_none()
    {
        bail!("the release build failed");
    }
    for (name, file, page) in SUBJECTS.iter().filter(|(name, ..)| words.is_empty() || words.contains(name)) {
        let made = Provenance::begins(&format!("cargo xtask record {name} --runs {runs} --write"));
        let text = page(runs)?;
        let (title, rest) = text.split_once('\n').context("a page has a title")?;
        let text = format!("{title}\n\n{}{rest}", made.lines());
        say(&text);
        if write {
            let path: PathBuf = root().join(file);
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        }
    }
    Ok(true)
}

/// Most columns of a line of prose, as the other pages have it.
const COLUMNS: usize = 150;

/// A paragraph in lines.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
