//! Everything that must hold before a change lands, in the order in which it fails fastest.

use anyhow::Result;

use crate::shell::{quiet, say, shown, watched};
use crate::{accuracy, install, room, tidy};

/// Tests counted over all steps.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
    broken: Vec<&'static str>,
}

impl Tally {
    /// A step that is itself one test.
    fn step(&mut self, name: &'static str, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
            self.broken.push(name);
        }
        say(&format!("== {name}: {}\n\n", if passed { "passed" } else { "FAILED" }));
    }

    /// A run of test programs, counted by what they print.
    fn tests(&mut self, name: &'static str, ended_well: bool, output: &str) {
        let before = self.failed;
        for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
            self.passed += count(line, "passed");
            self.failed += count(line, "failed");
        }
        let not_judged = not_judged(output);
        self.passed = self.passed.saturating_sub(not_judged);
        self.skipped += not_judged;
        if !ended_well || self.failed > before {
            self.failed += u64::from(self.failed == before);
            self.broken.push(name);
        }
        let verdict = if self.broken.contains(&name) {
            "FAILED"
        } else {
            "passed"
        };
        let rest = match not_judged {
            0 => String::new(),
            some => format!(", {some} NOT JUDGED"),
        };
        say(&format!("== {name}: {verdict}{rest}\n\n"));
    }

    fn skip(&mut self, name: &str, why: &str) {
        self.skipped += 1;
        say(&format!("== {name}: SKIPPED: {why}\n\n"));
    }

    fn close(&self) -> bool {
        for name in &self.broken {
            say(&format!("failed: {name}\n"));
        }
        say(&format!(
            "{} passed, {} failed, {} skipped\n",
            self.passed, self.failed, self.skipped
        ));
        self.failed == 0 && self.broken.is_empty()
    }
}

/// The number in front of `word` in cargo's closing line.
fn count(line: &str, word: &str) -> u64 {
    line.split(';')
        .filter_map(|part| part.trim().strip_suffix(word))
        .filter_map(|part| part.split_whitespace().next_back()?.parse::<u64>().ok())
        .sum()
}

/// Tests that ended well without having shown anything: the machine was too busy for them, and each said so on a line of its own.
fn not_judged(output: &str) -> u64 {
    let lines = output.lines().filter(|line| line.starts_with("NOT JUDGED: "));
    u64::try_from(lines.count()).unwrap_or(u64::MAX)
}

pub(crate) fn run() -> Result<bool> {
    let mut tally = Tally::default();
    let missing = install::install()?;
    room::told();
    tally.step("format", shown("cargo", &["fmt", "--all", "--check"], &[])?);
    tally.step("tidy", tidy::run()?);
    // One profile and the tests' features throughout: what a step has built the next one finds, `target/release/narrows` as well.
    let clippy = [
        "clippy",
        "--release",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    tally.step("clippy", shown("cargo", &clippy, &[])?);
    let tests = ["test", "--release", "--workspace", "--locked", "--no-fail-fast"];
    let (fine, output) = watched("cargo", &tests)?;
    tally.tests("tests", fine, &output);
    room::told();
    let doc = ["doc", "--release", "--workspace", "--no-deps", "--locked"];
    tally.step(
        "documentation",
        shown("cargo", &doc, &[("RUSTDOCFLAGS", "-D warnings")])?,
    );
    let swept = accuracy::of_built(20).unwrap_or_else(|error| {
        say(&format!("{error:#}\n"));
        false
    });
    tally.step("accuracy, 20 runs per scenario", swept);
    room::told();
    lab(&mut tally, &missing)?;
    room::told();
    Ok(tally.close())
}

pub(crate) fn lab_alone() -> Result<bool> {
    let mut tally = Tally::default();
    let missing = install::install()?;
    let build = ["build", "--release", "--locked", "--bin", "narrows"];
    tally.step("release build", shown("cargo", &build, &[])?);
    lab(&mut tally, &missing)?;
    Ok(tally.close())
}

/// Tests in namespaces: one at a time, in release, because they share the machine's time.
fn lab(tally: &mut Tally, missing: &[&str]) -> Result<()> {
    const NAME: &str = "lab suite";
    let check = quiet("target/release/narrows", &["emulate", "--check"]);
    if check.is_none() {
        let why = "namespaces or TUN devices are not to be had here; `narrows emulate --check` says which";
        tally.skip(NAME, why);
        return Ok(());
    }
    let needed: Vec<&str> = missing
        .iter()
        .copied()
        .filter(|name| !install::is_rival(name))
        .collect();
    if !needed.is_empty() {
        tally.skip(NAME, &format!("it needs {}", needed.join(", ")));
        return Ok(());
    }
    let args = [
        "test",
        "--release",
        "--workspace",
        // What these two leave out by default takes minutes, not privileges.
        "--exclude",
        "narrows-estimate",
        "--exclude",
        "narrows-sim",
        "--locked",
        "--no-fail-fast",
        "--",
        "--ignored",
        "--test-threads=1",
        "--nocapture",
    ];
    let (fine, output) = watched("cargo", &args)?;
    tally.tests(NAME, fine, &output);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Tally, count};

    #[test]
    fn what_was_not_judged_did_not_pass() {
        let mut tally = Tally::default();
        let output =
            "test a ... \nNOT JUDGED: a: too busy\nok\ntest b ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored";
        tally.tests("some", true, output);
        assert_eq!((tally.passed, tally.failed, tally.skipped), (1, 0, 1));
    }

    #[test]
    fn cargo_s_closing_line_is_counted() {
        let line = "FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(
            (count(line, "passed"), count(line, "failed"), count(line, "ignored")),
            (12, 3, 1)
        );
    }
}
