//! The figures of `narrows watch`, its store and its pages: printed, never judged.

mod process;
mod pulses;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::program::{build, built, command, narrows, output};
use super::versions;
use crate::provenance::Provenance;
use crate::shell::{root, say};

const USAGE: &str =
    "cargo xtask bench watch [--rows N] [--seconds N] [--program-folder DIR] [--write docs/results/watch-bench.md]";
/// What the goals are stated for.
const ROWS: u64 = 10_000_000;
/// Half of it is for a machine that is busy.
const LIMIT: Duration = Duration::from_secs(1200);

/// `[--rows N]` (a small run), `[--seconds N]` with twenty targets, `[--program-folder DIR]` with
/// `narrows`, such as the packaged one, `[--write FILE]`.
pub(super) fn run(args: &[String]) -> Result<bool> {
    let (mut rows, mut file, mut seconds, mut folder) = (ROWS, None, 600, None);
    let made = Provenance::begins(&format!("cargo xtask bench watch {}", args.join(" ")));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let value = args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--rows" => rows = value?.parse().context("--rows needs a number")?,
            "--seconds" => seconds = value?.parse().context("--seconds needs a number")?,
            "--program-folder" => folder = Some(PathBuf::from(value?).canonicalize()?),
            "--write" => file = Some(PathBuf::from(value?)),
            _ => bail!(USAGE),
        }
    }
    ensure!(rows >= 100_000, "fewer than 100 000 rows say nothing");
    build(&["-p", "narrows-web", "--example", "watch_bench"])?;
    let program = narrows(folder)?;
    let scratch = Scratch::new()?;
    let mut bench = command(&built("examples/watch_bench").to_string_lossy());
    bench.arg(&scratch.0).arg(rows.to_string());
    let table = output(bench, LIMIT)?;
    let table =
        table + &process::rows(&program, &scratch.0, &scratch.0.join("watch.db"), Duration::from_secs(seconds))?;
    drop(scratch);
    say(&table);
    if let Some(file) = file {
        std::fs::write(root().join(&file), page(&made, rows, &table)).with_context(|| file.display().to_string())?;
    }
    Ok(true)
}

/// A folder for up to 2 GB, gone when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let folder = root().join(format!("target/bench/watch-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

fn remove(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        say(&format!("{}: {error}\n", folder.display()));
    }
}

fn page(made: &Provenance, rows: u64, table: &str) -> String {
    let small = if rows < ROWS { "This was a small run: the goals are stated for 10 000 000 rows.\n\n" } else { "" };
    format!(
        "# `narrows watch`, its store and its pages\n\n\
         {}\n\
         The command writes this whole page; change the text in `xtask/src/bench/watch.rs` and `crates/web/examples/watch_bench/`.\n\n\
         A year of twenty targets with four signals and their round trips is written as `narrows watch` writes it: {rows} values,\n\
         60 round trips for each minute of the last week and for one minute of each hour before, 2000 events. Then the store is\n\
         asked 200 times for each kind of answer, in its own process; a second process serves the pages from it, and its memory\n\
         is taken. Clients run on the same machine. Last, `narrows watch` itself begins with that store, and follows twenty\n\
         addresses of loopback with a new one; then the same with the store of a year, while its pages are asked without end. No test depends on these figures.\n\n\
         {small}{table}\nMeasured on and with:\n\n{}",
        made.lines(),
        versions::list(),
    )
}
