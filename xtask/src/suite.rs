//! The tests, in three commands: what every change must pass, what is judged against the real
//! clock, and what takes long.

mod calibration;
mod classes;
mod tally;

use anyhow::{Result, anyhow, bail};

use crate::shell::{captured, quiet, say, shown, watched};
use crate::{accuracy, book, fuzz, install, room, tidy};
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

/// The default features alone, as a newcomer builds them.
const PLAIN: [&str; 6] = ["clippy", "--release", "--locked", "--", "-D", "warnings"];

/// What such a build lacks it says: a build of its own.
const PLAIN_TESTS: [&str; 7] = ["test", "--release", "--locked", "-p", "narrows", "--test", "features"];

/// Everything that must hold before a change lands, in the order in which it fails fastest. Nothing
/// in it compares with the real clock.
pub(crate) fn test() -> Result<bool> {
    let mut tally = Tally::default();
    let not_installed = install::install()?;
    room::reported();
    tally.step("format", shown("cargo", &["fmt", "--all", "--check"], &[])?);
    tally.step("tidy", tidy::run()?);
    let clippy =
        ["clippy", "--release", "--workspace", "--all-features", "--all-targets", "--locked", "--", "-D", "warnings"];
    tally.step("clippy", shown("cargo", &clippy, &[])?);
    tally.step("clippy without features", shown("cargo", &PLAIN, &[])?);
    let (fine, output) = watched("cargo", &[&TESTS[..], &["--no-fail-fast"]].concat())?;
    tally.tests("tests", fine, &output, None);
    let (fine, output) =
        watched("cargo", &["test", "--release", "--workspace", "--all-features", "--locked", "--doc"])?;
    tally.tests("examples in the documentation", fine, &output, None);
    room::reported();
    let doc = ["doc", "--release", "--workspace", "--all-features", "--no-deps", "--locked"];
    tally.step("documentation", shown("cargo", &doc, &[("RUSTDOCFLAGS", "-D warnings")])?);
    sweep(&mut tally, "accuracy, 20 runs per scenario", 20);
    // The book is compiled while the lab waits.
    let book = std::thread::spawn(|| book::of_built(PROGRAM));
    of_class(&mut tally, "lab", Class::Lab, &not_installed)?;
    tally.step("book", book.join().map_err(|_| anyhow!("the book has no end"))??);
    Ok(tally.close())
}

/// What is judged against the real clock: accuracy between real kernels, shapers, pacing. For a
/// quiet machine, one test at a time. A machine that does not keep time over the bare path is told
/// so at once; `--anyway` goes on.
pub(crate) fn judge(args: &[String]) -> Result<bool> {
    let anyway = match args {
        [] => false,
        [arg] if arg == "--anyway" => true,
        _ => bail!("judge takes --anyway and nothing else"),
    };
    let mut tally = Tally::default();
    let not_installed = install::install()?;
    let able = quiet("cargo", &["build", "--release", "--locked", "--bin", "narrows"]).is_some()
        && calibration::keeps_time(PROGRAM)?;
    tally.step("calibration of the bare path", able);
    if !able && !anyway {
        say(
            "This machine does not keep time now, so nothing here would say anything. `--anyway` judges all the same.\n",
        );
        return Ok(tally.close());
    }
    of_class(&mut tally, "judge", Class::Judge, &not_installed)?;
    tally.share_of_cases(LEAST_PERCENT);
    Ok(tally.close())
}

/// What takes long: long runs of what `test` does briefly.
pub(crate) fn soak() -> Result<bool> {
    let mut tally = Tally::default();
    let not_installed = install::install()?;
    of_class(&mut tally, "soak", Class::Soak, &not_installed)?;
    let (fine, output) = watched("cargo", &PLAIN_TESTS)?;
    tally.tests("a build without features", fine, &output, None);
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

/// The ignored tests of a class. As many must run as the sources have; what this machine cannot run
/// is counted as skipped.
fn of_class(tally: &mut Tally, name: &'static str, class: Class, not_installed: &[&str]) -> Result<()> {
    let build = [&TESTS[..], &["--no-run"]].concat();
    tally.step("test programs", shown("cargo", &build, &[])?);
    let missing = classes::missing(PROGRAM, not_installed);
    let all: Vec<Ignored> = classes::ignored()?.into_iter().filter(|test| test.class == class).collect();
    let (lacking, able): (Vec<&Ignored>, Vec<&Ignored>) = all.iter().partition(|test| test.lacks(&missing).is_some());
    for need in &missing {
        let count = lacking.iter().filter(|test| test.lacks(&missing) == Some(need.as_str())).count();
        if count > 0 {
            tally.skip(
                name,
                u64::try_from(count)?,
                &format!("no {need} here; `narrows emulate --check` says more of namespaces"),
            );
        }
    }
    if able.is_empty() && !lacking.is_empty() {
        return Ok(());
    }
    let (fine, output) = ignored_tests(class, &able)?;
    tally.tests(name, fine, &output, Some(u64::try_from(able.len())?));
    Ok(())
}

/// Runs these tests, one at a time. What is not judged against the clock mostly waits: the
/// program's own tests run beside those of the crates, each in namespaces of its own.
fn ignored_tests(class: Class, tests: &[&Ignored]) -> Result<(bool, String)> {
    let command = |tests: &[&Ignored]| {
        let mut words: Vec<String> = TESTS.iter().chain(&ONE_AT_A_TIME).map(|word| (*word).to_owned()).collect();
        words.extend(tests.iter().map(|test| test.name.clone()));
        words
    };
    let run = |words: &[String]| watched("cargo", &words.iter().map(String::as_str).collect::<Vec<_>>());
    let (program, crates): (Vec<&Ignored>, Vec<&Ignored>) = tests.iter().copied().partition(|test| test.of_program);
    if class != Class::Lab || program.is_empty() || crates.is_empty() {
        return run(&command(tests));
    }
    let (program, crates) = (command(&program), command(&crates));
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| captured("cargo", &crates.iter().map(String::as_str).collect::<Vec<_>>()));
        let (fine, mut output) = run(&program)?;
        let (others_fine, others) = beside.join().map_err(|_| anyhow!("the tests of the crates have no end"))??;
        say(&others);
        output.push_str(&others);
        Ok((fine && others_fine, output))
    })
}

const ONE_AT_A_TIME: [&str; 5] = ["--no-fail-fast", "--", "--ignored", "--test-threads=1", "--nocapture"];
