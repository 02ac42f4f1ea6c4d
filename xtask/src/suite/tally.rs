//! What passed, what failed, and what could not be said, over all steps of a command.

use std::time::Instant;

use crate::shell::{now, say};

/// Tests counted over all steps.
pub(super) struct Tally {
    began: Instant,
    step_began: Instant,
    passed: u64,
    failed: u64,
    skipped: u64,
    broken: Vec<&'static str>,
}

impl Default for Tally {
    fn default() -> Self {
        let began = now();
        Self { began, step_began: began, passed: 0, failed: 0, skipped: 0, broken: Vec::new() }
    }
}

impl Tally {
    /// Closes a step with its verdict and how long it took.
    fn said(&mut self, name: &str, verdict: &str) {
        let seconds = self.step_began.elapsed().as_secs();
        self.step_began = now();
        say(&format!("== {name}: {verdict} ({seconds} s)\n\n"));
    }

    /// A step that is itself one test.
    pub(super) fn step(&mut self, name: &'static str, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
            self.broken.push(name);
        }
        self.said(name, if passed { "passed" } else { "FAILED" });
    }

    /// A run of test programs, counted by what they print. Where it is known how many tests should
    /// have run, any other count is a failure.
    pub(super) fn tests(&mut self, name: &'static str, ended_well: bool, output: &str, expected: Option<u64>) {
        let (mut passed, mut failed) = (0, 0);
        for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
            passed += count(line, "passed");
            failed += count(line, "failed");
        }
        let ran = passed + failed;
        let complete = ran > 0 && expected.is_none_or(|expected| expected == ran);
        if !complete {
            let expected = expected.map_or_else(|| "some".to_owned(), |expected| expected.to_string());
            say(&format!("{name}: {ran} tests ran, {expected} should have\n"));
        }
        let not_judged = not_judged(output);
        self.passed += passed.saturating_sub(not_judged);
        self.failed += failed;
        self.skipped += not_judged;
        let fine = ended_well && complete && failed == 0;
        if !fine {
            self.failed += u64::from(failed == 0);
            self.broken.push(name);
        }
        let verdict = if fine { "passed" } else { "FAILED" };
        let rest = match not_judged {
            0 => String::new(),
            some => format!(", {some} of {ran} NOT JUDGED"),
        };
        self.said(name, &format!("{verdict}{rest}"));
    }

    /// So many tests were left out, for this reason.
    pub(super) fn skip(&mut self, name: &str, count: u64, why: &str) {
        self.skipped += count;
        say(&format!("== {name}: {count} SKIPPED: {why}\n\n"));
    }

    /// Prints the closing lines; whether nothing failed.
    pub(super) fn close(&self) -> bool {
        for name in &self.broken {
            say(&format!("failed: {name}\n"));
        }
        say(&format!(
            "{} passed, {} failed, {} skipped, in {} s\n",
            self.passed,
            self.failed,
            self.skipped,
            self.began.elapsed().as_secs()
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

/// Tests that ended well without having shown anything: each said so on a line of its own.
fn not_judged(output: &str) -> u64 {
    let lines = output.lines().filter(|line| line.starts_with("NOT JUDGED: "));
    u64::try_from(lines.count()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Tally, count};

    #[test]
    fn what_was_not_judged_did_not_pass() {
        let mut tally = Tally::default();
        let output =
            "test a ... \nNOT JUDGED: a: too busy\nok\ntest b ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored";
        tally.tests("some", true, output, None);
        assert_eq!((tally.passed, tally.failed, tally.skipped), (1, 0, 1));
    }

    #[test]
    fn a_run_of_fewer_tests_than_there_are_fails() {
        let output = "test result: ok. 2 passed; 0 failed; 0 ignored";
        for (output, expected, fine) in [
            (output, Some(2), true),
            (output, Some(3), false),
            (output, None, true),
            ("test result: ok. 0 passed; 0 failed; 7 ignored", None, false),
        ] {
            let mut tally = Tally::default();
            tally.tests("some", true, output, expected);
            assert_eq!(tally.close(), fine, "{output} {expected:?}");
        }
    }

    #[test]
    fn cargo_s_closing_line_is_counted() {
        let line = "FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!((count(line, "passed"), count(line, "failed"), count(line, "ignored")), (12, 3, 1));
    }
}
