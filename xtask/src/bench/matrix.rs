//! How long the matrix of a hundred hosts takes in a browser: printed, never judged.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::program::{build, built, command, output};
use super::versions;
use crate::provenance::Provenance;
use crate::shell::{quiet, root, say};

const USAGE: &str = "cargo xtask bench matrix [--rounds N] [--write docs/results/matrix-bench.md]";
/// Browsers take a second to start.
const LIMIT: Duration = Duration::from_secs(600);

/// `[--rounds N]` loads of each kind, `[--write FILE]`.
pub(super) fn run(args: &[String]) -> Result<bool> {
    let (mut rounds, mut file) = (20_u32, None);
    let made = Provenance::begins(&format!("cargo xtask bench matrix {}", args.join(" ")));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let value = args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--rounds" => rounds = value?.parse().context("--rounds needs a number")?,
            "--write" => file = Some(PathBuf::from(value?)),
            _ => bail!(USAGE),
        }
    }
    ensure!(rounds > 0, "no load says nothing");
    build(&["-p", "narrows-hub", "--example", "fleet_matrix"])?;
    let mut bench = command(&built("examples/fleet_matrix").to_string_lossy());
    bench.arg(rounds.to_string());
    let table = output(bench, LIMIT)?;
    say(&table);
    if let Some(file) = file {
        std::fs::write(root().join(&file), page(&made, &table)).with_context(|| file.display().to_string())?;
    }
    Ok(true)
}

fn page(made: &Provenance, table: &str) -> String {
    let browser = quiet("chromium", &["--version"]).unwrap_or_else(|| "not installed".to_owned());
    format!(
        "# The matrix of a hundred hosts in a browser\n\n\
         {}\n\
         The command writes this whole page; change the text in `xtask/src/bench/matrix.rs`, and what is measured in\n\
         `crates/hub/examples/fleet_matrix/`.\n\n\
         The hub's page of a made-up fleet of 100 hosts, every cell of the 100 x 100 drawn, in a browser without a screen. Times\n\
         begin with the navigation, and end when the browser has painted. A first load is that of a browser which has just started and\n\
         never saw the page; a second one is its next navigation, with files and compiled scripts at hand. Server and browser share\n\
         this machine. The design asks for less than a second. No test depends on these figures.\n\n\
         {table}\nMeasured on and with:\n\n- browser: {}\n{}",
        made.lines(),
        browser.trim(),
        versions::list(),
    )
}
