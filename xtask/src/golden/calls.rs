//! The calls that are recorded.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::program::{Program, TIMED_OUT, in_parallel};
use super::record::Call;
use super::{inventory, refusals};
use crate::shell::say;

/// The group whose calls write the recordings that later groups read.
pub(super) const RECORDINGS: &str = "recordings";

/// Longest that part of a plan may take.
const PLAN_SECONDS: &str = "20";

/// Recordings that every method is given: a name, a scenario, a method. Trains, pairs, echoes,
/// loads, transfers, captures.
const SHARED: [(&str, &str, &str); 8] = [
    ("trains", "demo", "pathload"),
    ("pairs", "demo", "capacity"),
    ("hops", "hops-three-hops", "hops"),
    ("echoes", "bing-three-hops", "bing"),
    ("round-trips", "demo", "rtt"),
    ("loads", "udp-half-loaded", "udp"),
    ("transfers", "tcp-half-loaded", "tcp"),
    ("captures", "nettimer-passive-loaded", "nettimer-passive"),
];

/// Scenarios whose whole report is kept, beside the demo's own.
const REPORTED: [&str; 7] = [
    "signature-striped-2x100m",
    "capacity-bucket",
    "slow-receiver-loaded",
    "tcp-small-window",
    "burst-shallow-queue",
    "udp-half-loaded",
    "kite-lossy-path",
];

fn call(group: &str, args: &[&str]) -> Call {
    Call { group: group.to_owned(), args: args.iter().map(|&arg| arg.to_owned()).collect() }
}

/// What needs nothing that another call leaves.
pub(super) fn before(program: &Program) -> Result<Vec<Call>> {
    let mut calls = inventory::calls(program)?;
    for path in files(program, "scenarios")? {
        let args = ["simulate", &path, "--expected", "--runs", "5", "--json", "-j", "1"];
        calls.push(call("scenarios", &args));
    }
    calls.extend(plans(program)?);
    let demo = ["demo", "--simulate", "--json"];
    for more in [&[][..], &["--quick"], &["--thorough"], &["--quick", "--seed", "5"]] {
        calls.push(call("reports", &[&demo, more].concat()));
    }
    for name in REPORTED {
        let path = format!("scenarios/{name}.toml");
        calls.push(call("reports", &["demo", &path, "--simulate", "--json"]));
    }
    calls.extend(refusals::calls());
    Ok(calls)
}

/// One recording per method, and those that every method is given.
pub(super) fn recordings(program: &Program) -> Result<Vec<Call>> {
    let recorded = |path: &str, method: &str, file: &str| {
        let args = ["simulate", path, "--method", method, "--json", "-j", "1", "--record", file];
        call(RECORDINGS, &args)
    };
    let mut calls = Vec::new();
    for (name, scenario, method) in SHARED {
        let path = format!("scenarios/{scenario}.toml");
        calls.push(recorded(&path, method, &format!("$TMP/recordings/{name}")));
    }
    for (method, path) in homes(program)? {
        calls.push(recorded(&path, &method, &format!("$TMP/own/{method}")));
    }
    Ok(calls)
}

/// What reads recordings.
pub(super) fn replays(program: &Program) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    for (name, _, _) in SHARED {
        let file = format!("$TMP/recordings/{name}");
        calls.push(call("rows", &["replay", &file, "--dump", "json"]));
    }
    for (name, _, _) in SHARED {
        let file = format!("$TMP/recordings/{name}");
        for method in inventory::methods(program)? {
            calls.push(call("replays", &["replay", &file, "--method", &method, "--json"]));
        }
    }
    for (method, _) in homes(program)? {
        calls.push(call("evidence", &["replay", &format!("$TMP/own/{method}"), "--json"]));
    }
    Ok(calls)
}

/// The first scenario that names each method.
fn homes(program: &Program) -> Result<Vec<(String, String)>> {
    let mut homes = Vec::new();
    let mut texts = Vec::new();
    for path in files(program, "scenarios")? {
        texts.push((std::fs::read_to_string(program.tree.join(&path))?, path));
    }
    for method in inventory::methods(program)? {
        let named = format!("\"{method}\"");
        match texts.iter().find(|(text, _)| text.contains(&named)) {
            Some((_, path)) => homes.push((method, path.clone())),
            None => say(&format!("no recording of {method}: no scenario expects anything of it\n")),
        }
    }
    Ok(homes)
}

fn files(program: &Program, folder: &str) -> Result<BTreeSet<String>> {
    let entries = std::fs::read_dir(program.tree.join(folder)).with_context(|| folder.to_owned())?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "toml"))
        .map(|name| format!("{folder}/{name}"))
        .collect())
}

/// Of each plan all methods over its first scenario; else the first of its methods that ends in
/// time.
fn plans(program: &Program) -> Result<Vec<Call>> {
    let paths: Vec<String> = files(program, "plans")?.into_iter().collect();
    let found = in_parallel(&paths, |path| plan(program, path))?;
    Ok(found.into_iter().flatten().collect())
}

fn plan(program: &Program, path: &str) -> Result<Option<Call>> {
    let simulated = ["evaluate", path, "--world", "simulator", "--runs", "1"];
    let check = call("plans", &[&simulated[..], &["--check"]].concat());
    let table = program.run(&check)?.stdout;
    let mut rows = table.lines().skip(1).map(|line| line.split("  ").map(str::trim));
    let mut first: Vec<&str> = Vec::new();
    let mut choices = Vec::new();
    for row in rows.by_ref() {
        let row: Vec<&str> = row.filter(|cell| !cell.is_empty()).collect();
        if first.is_empty() {
            first.clone_from(&row);
            choices.push(row[0]);
        }
        if row.len() > 2 && row[0] == first[0] {
            choices.push(row[1]);
        }
    }
    let stem = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
    for (at, only) in choices.iter().enumerate() {
        let kept = format!("$TMP/plans/{stem}-{at}");
        let rest = ["--only", only, "--json", "--quiet", "-j", "1", "--runs-dir", &kept];
        let args = [&simulated[..], &rest].concat();
        let ended = program.run_for(&call("plans", &args), PLAN_SECONDS)?;
        let kept = format!("$TMP/plans/{stem}");
        let rest = ["--only", only, "--json", "--quiet", "-j", "1", "--runs-dir", &kept];
        if ended.exit != Some(TIMED_OUT) {
            return Ok(Some(call("plans", &[&simulated[..], &rest].concat())));
        }
        say(&format!("{path}: --only \"{only}\" left out, over {PLAN_SECONDS} s\n"));
    }
    say(&format!("{path}: left out, nothing of it ends in {PLAN_SECONDS} s\n"));
    Ok(None)
}

/// The JSON of a call that must give one document.
pub(super) fn json(program: &Program, args: &[&str]) -> Result<Value> {
    let document = program.run(&call("inventory", args))?;
    serde_json::from_str(&document.stdout).with_context(|| document.name())
}
