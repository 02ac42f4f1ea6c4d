//! The tests, in three commands: what every change must pass, what is judged against the real
//! clock, and what takes long.

mod beside;
mod calibration;
mod classes;
mod judged;
mod lanes;
mod programs;
mod tally;

use anyhow::{Context, Result, anyhow, bail};

use crate::provenance::Provenance;
use crate::shell::{now, root, say, shown, watched};
use crate::{accuracy, fuzz, install, room, tidy};
use classes::{Class, Ignored};
use tally::Tally;

pub(crate) use classes::of_file;

/// The program as the tests' build leaves it.
const PROGRAM: &str = "target/release/narrows";

/// Of the cases that are judged against the real clock so many per cent must count.
const LEAST_PERCENT: u64 = 70;

/// One profile and one set of features throughout, so that each step finds what the one before has
/// built. Examples are left out: clippy has checked them.
const TESTS: [&str; 8] =
    ["test", "--release", "--workspace", "--all-features", "--locked", "--lib", "--bins", "--tests"];

/// What such a build lacks it says: a build of its own.
const PLAIN_TESTS: [&str; 7] = ["test", "--release", "--locked", "-p", "narrows", "--test", "features"];

/// The smallest build; that of the default features is linted by `test`.
const SLIM_LINTS: [&str; 7] = ["clippy", "--release", "--locked", "--no-default-features", "--", "-D", "warnings"];

/// Everything that must hold before a change lands. Nothing in it compares with the real clock.
pub(crate) fn test() -> Result<bool> {
    let mut tally = Tally::default();
    let not_installed = install::install()?;
    room::reported();
    tally.step("format", shown("cargo", &["fmt", "--all", "--check"], &[])?);
    tally.step("tidy", tidy::run()?);
    let (fine, output) = watched("cargo", &[&TESTS[..], &["--no-fail-fast"]].concat())?;
    tally.tests("tests", fine, &output, None);
    room::reported();
    sweep(&mut tally, "accuracy, 20 runs per scenario", 20);
    let programs = programs::built()?;
    // The lab mostly waits: what is only compiled and read is so meanwhile.
    let beside = std::thread::spawn(|| beside::steps(PROGRAM));
    of_class(&mut tally, ("lab", Class::Lab), &not_installed, |names| lanes::run(&programs, names))?;
    for step in beside.join().map_err(|_| anyhow!("the steps beside the lab have no end"))? {
        step.tell(&mut tally);
    }
    Ok(tally.close())
}

/// What is judged against the real clock: accuracy between real kernels, shapers, pacing. For a
/// quiet machine, one test at a time. A machine that does not keep time over the bare path is told
/// so at once; `--anyway` goes on. `--write FILE` leaves a page of what was said.
pub(crate) fn judge(args: &[String]) -> Result<bool> {
    let (anyway, page) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => (false, None),
        ["--anyway"] => (true, None),
        ["--write", page] => (false, Some(page)),
        ["--anyway", "--write", page] => (true, Some(page)),
        _ => bail!("judge takes [--anyway] [--write FILE]"),
    };
    let mut tally = Tally::default();
    let not_installed = install::install()?;
    let programs = programs::built()?;
    let began = now();
    let made = Provenance::begins(&format!("cargo xtask judge {}", args.join(" ")));
    let (able, accounts) = calibration::keeps_time(PROGRAM)?;
    tally.step("calibration of the bare path", able);
    if !able && !anyway {
        say(
            "This machine does not keep time now, so nothing here would say anything. `--anyway` judges all the same.\n",
        );
        return Ok(tally.close());
    }
    let mut all = Vec::new();
    of_class(&mut tally, ("judge", Class::Judge), &not_installed, |names| {
        let (fine, output, said) = judged::run(&programs, names, began)?;
        all = said;
        Ok((fine, output))
    })?;
    tally.share_of_cases(LEAST_PERCENT);
    if let Some(page) = page {
        std::fs::write(root().join(page), judged::page(&made, &accounts, &all)).context(page.to_owned())?;
    }
    Ok(tally.close())
}

/// What takes long: long runs of what `test` does briefly.
pub(crate) fn soak() -> Result<bool> {
    let mut tally = Tally::default();
    let not_installed = install::install()?;
    let programs = programs::built()?;
    of_class(&mut tally, ("soak", Class::Soak), &not_installed, |names| programs::ignored(&programs, names))?;
    let (fine, output) = watched("cargo", &PLAIN_TESTS)?;
    tally.tests("a build with the default features", fine, &output, None);
    tally.step("clippy without features", shown("cargo", &SLIM_LINTS, &[])?);
    sweep(&mut tally, "accuracy, 100 runs per scenario", 100);
    tally.step("fuzzing, 5 minutes per target", fuzz::run(&["--seconds".to_owned(), "300".to_owned()])?);
    Ok(tally.close())
}

fn sweep(tally: &mut Tally, name: &'static str, runs: u32) {
    let swept = accuracy::of_built(runs).unwrap_or_else(|error| {
        say(&format!("{error:#}\n"));
        false
    });
    tally.step(name, swept);
}

/// The ignored tests of a class, run as the class is run. As many must run as the sources have;
/// what this machine cannot run is counted as skipped.
fn of_class(
    tally: &mut Tally,
    (name, class): (&'static str, Class),
    not_installed: &[&str],
    run: impl FnOnce(&[&str]) -> Result<(bool, String)>,
) -> Result<()> {
    let missing = classes::missing(PROGRAM, not_installed);
    let all = classes::ignored()?.into_iter().filter(|test| test.class == class);
    let (lacking, able): (Vec<Ignored>, Vec<Ignored>) = all.partition(|test| test.lacks(&missing).is_some());
    for need in &missing {
        let count = lacking.iter().filter(|test| test.lacks(&missing) == Some(need.as_str())).count();
        if count > 0 {
            let why = format!("no {need} here; `narrows emulate --check` says more of namespaces");
            tally.skip(name, u64::try_from(count)?, &why);
        }
    }
    if able.is_empty() && !lacking.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = able.iter().map(|test| test.name.as_str()).collect();
    let (fine, output) = run(&names)?;
    let begun = u64::try_from(able.len())? - judged::not_begun(&output);
    tally.tests(name, fine, &output, Some(begun));
    Ok(())
}
