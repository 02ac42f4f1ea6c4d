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
    cases: Cases,
    broken: Vec<&'static str>,
}

impl Default for Tally {
    fn default() -> Self {
        let began = now();
        Self { began, step_began: began, passed: 0, failed: 0, skipped: 0, cases: Cases::default(), broken: Vec::new() }
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
        let cases = Cases::of(output);
        self.passed += passed.saturating_sub(cases.incomplete_tests);
        self.failed += failed;
        self.skipped += cases.left_out;
        self.cases.counted += cases.counted;
        self.cases.left_out += cases.left_out;
        let fine = ended_well && complete && failed == 0;
        if !fine {
            self.failed += u64::from(failed == 0);
            self.broken.push(name);
        }
        let verdict = if fine { "passed" } else { "FAILED" };
        let rest = match cases.left_out {
            0 => String::new(),
            some => format!(", {some} of {} cases NOT JUDGED", some + cases.counted),
        };
        self.said(name, &format!("{verdict}{rest}"));
    }

    /// Fails unless so many of the cases so far counted: a command that judged little shows
    /// nothing.
    pub(super) fn share_of_cases(&mut self, least_percent: u64) {
        let Cases { counted, left_out, .. } = self.cases;
        let all = counted + left_out;
        say(&format!("{counted} of {all} cases counted; {least_percent} % must\n"));
        self.step("cases that counted", counted * 100 >= all * least_percent && all > 0);
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

/// What tests say of their cases. A test with several prints a line for each, `JUDGED: case` or
/// `NOT JUDGED: case: why`; any other test is one case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cases {
    pub(super) counted: u64,
    pub(super) left_out: u64,
    /// Tests of which some case was not judged: they ended well without having shown all.
    incomplete_tests: u64,
}

impl Cases {
    /// Of test programs that ran one test at a time and whose output was not captured. The words
    /// may stand anywhere in a line, for the name of a test may stand in front.
    pub(super) fn of(output: &str) -> Self {
        let mut all = Self::default();
        let (mut in_test, mut counted, mut left_out) = (false, 0, 0);
        let mut close = |in_test: bool, counted: u64, left_out: u64| {
            all.counted += if in_test && counted + left_out == 0 { 1 } else { counted };
            all.left_out += left_out;
            all.incomplete_tests += u64::from(left_out > 0);
        };
        for line in output.lines() {
            let begins = line.strip_prefix("test ").is_some_and(|rest| rest.contains(" ... "));
            if begins || line.starts_with("test result: ") {
                close(in_test, counted, left_out);
                (in_test, counted, left_out) = (begins, 0, 0);
            }
            let without = line.matches(NOT_JUDGED).count();
            left_out += without as u64;
            counted += (line.matches(JUDGED).count() - without) as u64;
        }
        close(in_test, counted, left_out);
        all
    }
}

const JUDGED: &str = "JUDGED: ";
pub(super) const NOT_JUDGED: &str = "NOT JUDGED: ";

#[cfg(test)]
mod tests {
    use super::{Cases, Tally, count};

    #[test]
    fn what_was_not_judged_did_not_pass() {
        let mut tally = Tally::default();
        let output =
            "test a ... \nNOT JUDGED: a: too busy\nok\ntest b ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored";
        tally.tests("some", true, output, None);
        assert_eq!((tally.passed, tally.failed, tally.skipped), (1, 0, 1));
    }

    /// The harness leaves the line open behind a test's name.
    #[test]
    fn words_are_recognised_wherever_they_stand() {
        let output = "test a ... NOT JUDGED: a: too busy\nok\ntest b ... 10 Mbit/s: NOT JUDGED: late\nok\n\
                      test result: ok. 2 passed; 0 failed; 0 ignored";
        let mut tally = Tally::default();
        tally.tests("some", true, output, None);
        assert_eq!((tally.passed, tally.failed, tally.skipped), (0, 0, 2));
    }

    #[test]
    fn each_condition_is_a_case() {
        let output = "test a ... \nJUDGED: 1\nNOT JUDGED: 2: late\nNOT JUDGED: 3: late\nok\ntest b ... ok\n\
                      test result: ok. 2 passed; 0 failed; 0 ignored";
        assert_eq!(Cases::of(output), Cases { counted: 2, left_out: 2, incomplete_tests: 1 });
        assert_eq!(Cases::of("running 0 tests\n"), Cases::default());
    }

    /// Before, a suite in which nothing was judged passed.
    #[test]
    fn a_suite_that_judged_too_little_fails() {
        let ends = "test result: ok. 3 passed; 0 failed; 0 ignored";
        let two = format!("test a ... ok\ntest b ... ok\ntest c ... NOT JUDGED: c: late\nok\n{ends}");
        for (least, fine) in [(66, true), (70, false)] {
            let mut tally = Tally::default();
            tally.tests("some", true, &two, None);
            tally.share_of_cases(least);
            assert_eq!(tally.close(), fine, "{least}");
        }
        let mut nothing = Tally::default();
        nothing.share_of_cases(70);
        assert!(!nothing.close());
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
