//! Tests between namespaces mostly wait, each in namespaces of its own: some modules of them run
//! beside each other.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};

use super::programs::Program;
use crate::shell::say;

/// Modules at a time. Ours: two processors are busy with four, beside lints that yield to them.
const LANES: usize = 4;

/// Modules that wait for minutes: begun last, they would keep everybody waiting.
const LONGEST: [&str; 4] = ["watch_faults", "watch_hosts", "from_here_lab", "hostile_lab"];

/// Modules that wait for minutes and whose tests share nothing: each may have a lane.
const SPLIT: [&str; 1] = ["watch_faults"];

/// Modules that look at what a killed lab left, which any lab that begins elsewhere removes: they
/// run when all others have ended.
const ALONE: [&str; 1] = ["lab_command"];

/// A module's tests, by path, in a program.
type Module<'a> = (&'a Program, Vec<String>);

/// Runs the ignored tests of these names: within a module one at a time. Each module's output is
/// shown when it ends. Returns whether all went well, and the output.
pub(super) fn run(programs: &[Program], names: &[&str]) -> Result<(bool, String)> {
    let mut waiting = Vec::new();
    for program in programs {
        waiting.extend(modules(&program.listed()?, names).into_iter().map(|paths| (program, paths)));
    }
    waiting.sort_by_key(|(_, paths)| !is_of(&LONGEST, paths));
    let mut alone = waiting.extract_if(.., |(_, paths)| is_of(&ALONE, paths)).collect::<Vec<_>>().into_iter();
    let waiting = Mutex::new(waiting.into_iter());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let mut ended = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(|| lane(next))).collect();
        let ended = lanes.into_iter().map(|lane| lane.join().map_err(|_| anyhow!("a lane of tests has no end"))?);
        ended.collect::<Result<Vec<_>>>()
    })?;
    ended.push(lane(|| alone.next())?);
    Ok((ended.iter().all(|(fine, _)| *fine), ended.into_iter().map(|(_, said)| said).collect()))
}

/// Whether their module is one of these.
fn is_of(modules: &[&str], paths: &[String]) -> bool {
    paths.first().and_then(|path| path.split("::").next()).is_some_and(|module| modules.contains(&module))
}

/// Takes one module after the other.
fn lane<'a>(mut next: impl FnMut() -> Option<Module<'a>>) -> Result<(bool, String)> {
    let (mut fine, mut output) = (true, String::new());
    while let Some((program, paths)) = next() {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let mut command = program.ignored(&paths);
        let ended = command.arg("--exact").stderr(Stdio::inherit()).output();
        let ended = ended.with_context(|| format!("cannot run {command:?}"))?;
        let said = String::from_utf8_lossy(&ended.stdout);
        say(&said);
        fine &= ended.status.success();
        output.push_str(&said);
    }
    Ok((fine, output))
}

/// The paths of tests that have these names, module by module, or one by one where modules are
/// [`SPLIT`].
fn modules(paths: &[String], names: &[&str]) -> Vec<Vec<String>> {
    let mut modules: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for path in paths {
        if path.rsplit("::").next().is_some_and(|name| names.contains(&name)) {
            let module = path.split("::").next().unwrap_or_default();
            let test = if SPLIT.contains(&module) { path.as_str() } else { "" };
            modules.entry((module, test)).or_default().push(path.clone());
        }
    }
    modules.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::modules;

    #[test]
    fn tests_are_taken_by_module_and_whole_name() {
        let paths = ["b::deep::one", "a::one", "b::one_more", "b::two"].map(ToOwned::to_owned);
        assert_eq!(modules(&paths, &["one", "two"]), [vec!["a::one"], vec!["b::deep::one", "b::two"]]);
        assert!(modules(&paths, &[]).is_empty());
        let paths = ["watch_faults::one", "watch_faults::two"].map(ToOwned::to_owned);
        assert_eq!(modules(&paths, &["one", "two"]).len(), 2);
    }
}
