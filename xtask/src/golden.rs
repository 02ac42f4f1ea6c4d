//! Whether the program still gives every value that it gave before the redesign.
//!
//! `record` runs a list of calls and keeps what each printed. `compare` makes the calls of the
//! record again, names mapped by `golden/names.toml`, and lists every value that differs. Both are
//! deleted when the redesign ends.

mod calls;
mod compare;
mod inventory;
mod names;
mod pattern;
mod program;
mod record;
mod refusals;
mod tree;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use self::compare::Tally;
use self::names::Names;
use self::program::Program;
use self::record::{Call, Document};
use crate::shell::{quiet, root, say};

/// Differences of a group that are printed one by one.
const SHOWN: usize = 20;

#[derive(Debug, Default)]
struct Options {
    program: Option<PathBuf>,
    tree: Option<PathBuf>,
    group: Option<String>,
    texts: bool,
    all: bool,
    stored: bool,
}

/// `record --program PATH [--tree DIR]`, or
/// `compare [--program PATH] [--tree DIR] [--group NAME] [--texts] [--all] [--stored]`.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let mut options = Options::default();
    let Some((command, args)) = args.split_first() else {
        bail!("golden record or golden compare");
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--program" => options.program = Some(PathBuf::from(value()?)),
            "--tree" => options.tree = Some(PathBuf::from(value()?)),
            "--group" => options.group = Some(value()?.clone()),
            "--texts" => options.texts = true,
            "--all" => options.all = true,
            "--stored" => options.stored = true,
            _ => bail!("unknown option {arg}"),
        }
    }
    match command.as_str() {
        "record" => record(&options),
        "compare" => compare(&options),
        _ => bail!("golden record or golden compare"),
    }
}

fn program(options: &Options) -> Result<Program> {
    let path = if let Some(path) = &options.program {
        path.clone()
    } else {
        if quiet("cargo", &["build", "--release", "--locked", "--bin", "narrows"]).is_none() {
            bail!("the release build failed");
        }
        root().join("target/release/narrows")
    };
    Program::new(&path, options.tree.as_deref().unwrap_or(&root()))
}

fn record(options: &Options) -> Result<bool> {
    if options.program.is_none() {
        bail!("record needs --program: the program whose behaviour is to be kept");
    }
    let program = program(options)?;
    let mut documents = Vec::new();
    for phase in [calls::before, calls::recordings, calls::replays] {
        let calls = phase(&program)?;
        documents.extend(program::in_parallel(&calls, |call| program.run(call))?);
    }
    for document in &documents {
        if document.exit == Some(program::TIMED_OUT) {
            bail!("{} did not end in time", document.name());
        }
    }
    let octets = record::write(&root().join(record::FILE), &documents)?;
    let kept = program.keep_recordings(&root().join(record::RECORDINGS))?;
    say(&format!("{} documents in {octets} octets, recordings in {kept} octets\n", documents.len()));
    Ok(true)
}

fn compare(options: &Options) -> Result<bool> {
    let names = Names::read(&root().join(names::FILE))?;
    let mut groups: Vec<(String, Vec<Document>)> = Vec::new();
    for document in record::read(&root().join(record::FILE))? {
        match groups.last_mut() {
            Some((group, documents)) if *group == document.group => documents.push(document),
            _ => groups.push((document.group.clone(), vec![document])),
        }
    }
    let program = program(options)?;
    let mut equal = true;
    for (group, documents) in &groups {
        // Replays read what the group of recordings writes, whether that group is judged or not.
        let wanted = options.group.as_ref().is_none_or(|wanted| wanted == group);
        let needed = group == calls::RECORDINGS && !options.stored;
        if !wanted && !needed {
            continue;
        }
        let calls: Vec<Call> = documents.iter().map(|old| names.call(old)).collect();
        let again = program::in_parallel(&calls, |call| program.run(call))?;
        if options.stored && group == calls::RECORDINGS {
            program.use_recordings(&root().join(record::RECORDINGS))?;
        }
        if wanted {
            let mut tally = Tally::default();
            for (old, new) in documents.iter().zip(&again) {
                tally.add(old, new, &names, options.texts);
            }
            equal &= tally.differences.is_empty();
            say(&told(group, &tally, options.all));
        }
    }
    // Part of the record uses part of the map.
    let unused = if options.group.is_none() { names.unused() } else { Vec::new() };
    say(&names.uses());
    for entry in &unused {
        say(&format!("unused in {}: {entry}\n", names::FILE));
    }
    say(if equal && unused.is_empty() { "golden: equal\n" } else { "golden: differs\n" });
    Ok(equal && unused.is_empty())
}

fn told(group: &str, tally: &Tally, all: bool) -> String {
    let mut out = format!(
        "{group:<12} {:>5} documents  {:>8} values  {:>6} differences\n",
        tally.documents,
        tally.values,
        tally.differences.len()
    );
    let shown = if all { usize::MAX } else { SHOWN };
    for difference in tally.differences.iter().take(shown) {
        let _ = writeln!(out, "  {difference}");
    }
    if tally.differences.len() > shown {
        let mut by_path: BTreeMap<String, usize> = BTreeMap::new();
        for difference in &tally.differences {
            *by_path.entry(pattern::general(&difference.path)).or_default() += 1;
        }
        out.push_str("  and more; by path:\n");
        for (path, count) in by_path.iter().take(shown) {
            let _ = writeln!(out, "  {count:>6} {path}");
        }
    }
    out
}
