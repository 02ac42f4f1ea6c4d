//! The accuracy record: every scenario, every method that it expects something of, many seeds, both
//! bounds.

mod plans;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::provenance;
use crate::shell::{quiet, root, say};

/// `--runs N` (default 200), `--write FILE`, `--plans` (every plan in the simulator as well, with
/// its own counts).
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let (mut runs, mut file) = (200u32, None);
    let with_plans = args.iter().any(|arg| arg == "--plans");
    let mut args = args.iter().filter(|arg| *arg != "--plans");
    while let Some(arg) = args.next() {
        let value = args.next().with_context(|| format!("{arg} needs a value"))?;
        match arg.as_str() {
            "--runs" => runs = value.parse().context("--runs needs a number")?,
            "--write" => file = Some(PathBuf::from(value)),
            _ => bail!("unknown option {arg}"),
        }
    }
    if quiet("cargo", &["build", "--release", "--locked", "--bin", "narrows"]).is_none() {
        bail!("the release build failed");
    }
    let (table, all_hold) = sweep(runs)?;
    say(&table);
    let mut page = page(runs, &table, with_plans);
    if with_plans {
        let sections = plans::sections()?;
        say(&sections);
        page.push_str(&sections);
    }
    if let Some(file) = file {
        std::fs::write(root().join(&file), page).with_context(|| file.display().to_string())?;
    }
    Ok(all_hold)
}

/// The sweep alone, by the program that the tests have built.
pub(crate) fn of_built(runs: u32) -> Result<bool> {
    let (table, all_hold) = sweep(runs)?;
    say(&table);
    Ok(all_hold)
}

fn sweep(runs: u32) -> Result<(String, bool)> {
    let mut scenarios: Vec<PathBuf> = std::fs::read_dir(root().join("scenarios"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    scenarios.sort();
    let mut table = String::from(
        "| scenario | method | truth | median error | p90 of abs | wrong and confident | inconclusive | coverage | octets | seconds | holds |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
    );
    let mut fine = true;
    for scenario in scenarios {
        let path = scenario.to_string_lossy().into_owned();
        let args = ["simulate", &path, "--expected", "--runs", &runs.to_string(), "--json"];
        let output = quiet_any("target/release/narrows", &args)?;
        for line in output.lines() {
            let value: Value = serde_json::from_str(line).with_context(|| format!("{path}: {line}"))?;
            fine &= row(&mut table, &value);
        }
    }
    Ok((table, fine))
}

/// Standard output whatever the exit code: a failed expectation is a row, not an error of ours.
fn quiet_any(program: &str, args: &[&str]) -> Result<String> {
    let output = std::process::Command::new(program).args(args).current_dir(root()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        bail!("{} {}: {}", program, args.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(text)
}

fn row(table: &mut String, value: &Value) -> bool {
    let summary = &value["summary"];
    let percent = |name: &str| match summary[name].as_f64() {
        Some(ratio) => format!("{:.2} %", ratio * 100.0),
        None => "–".to_owned(),
    };
    let number = |name: &str| summary[name].as_f64();
    let truth = number("truth_bps").map_or("–".to_owned(), |truth| format!("{:.3} M", truth / 1e6));
    let holds = value["as_expected"].as_bool().unwrap_or(false);
    let _ = writeln!(
        table,
        "| {} | {} | {truth} | {} | {} | {} | {} | {} | {:.0} k | {:.2} | {} |",
        value["scenario"].as_str().unwrap_or("?"),
        value["method"].as_str().unwrap_or("?"),
        percent("median_error_ratio"),
        percent("p90_abs_error_ratio"),
        percent("wrong_confident_ratio"),
        percent("inconclusive_ratio"),
        percent("coverage_ratio"),
        number("median_octets").unwrap_or(0.0) / 1e3,
        number("median_seconds").unwrap_or(0.0),
        if holds { "yes" } else { "NO" },
    );
    holds
}

fn page(runs: u32, table: &str, with_plans: bool) -> String {
    let plans = if with_plans { " --plans" } else { "" };
    let file = "docs/results/accuracy.md";
    let made = provenance::lines(&format!("cargo xtask accuracy{plans} --runs {runs} --write {file}"));
    format!(
        "# What our estimators get wrong\n\n\
         {made}\n\
         Made from the files under `scenarios/`; seeds are the scenario's own seed and the {runs} that follow.\n\
         Errors are relative to the narrow link's capacity; *wrong and confident*\n\
         is a run whose interval misses the truth by more than 10 % of that capacity; *coverage* is the share of the runs with a\n\
         number whose interval holds the truth. *Holds* compares with both bounds that the scenario file states.\n\n{table}"
    )
}
