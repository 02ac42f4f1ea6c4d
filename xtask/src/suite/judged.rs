//! The page of a run against the real clock: each test, what of it counted, and how long it took.

use std::fmt::Write as _;

use anyhow::Result;

use super::programs::Program;
use super::tally::{Cases, NOT_JUDGED};
use crate::provenance::Provenance;
use crate::shell::{now, say, watch};

/// What one test said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    path: String,
    passed: bool,
    cases: Cases,
    /// Why cases were left out, as the test says it.
    left_out: Vec<String>,
    seconds: u64,
}

/// Runs the ignored tests of these names, each by itself, with its output shown as it comes;
/// whether all went well, their output, and what each said.
pub(super) fn run(programs: &[Program], names: &[&str]) -> Result<(bool, String, Vec<Judged>)> {
    let (mut fine, mut output, mut all) = (true, String::new(), Vec::new());
    for program in programs {
        let wanted = |path: &String| path.rsplit("::").next().is_some_and(|name| names.contains(&name));
        for path in program.listed()?.into_iter().filter(wanted) {
            let began = now();
            let (passed, said) = watch(program.ignored(&[&path]).arg("--exact"))?;
            let seconds = began.elapsed().as_secs();
            say(&format!("{path}: {seconds} s\n"));
            fine &= passed;
            all.push(Judged { left_out: reasons(&said), cases: Cases::of(&said), path, passed, seconds });
            output.push_str(&said);
        }
    }
    Ok((fine, output, all))
}

/// What stands behind the mark of a case that did not count.
fn reasons(said: &str) -> Vec<String> {
    let behind = |line: &str| Some(line.split_once(NOT_JUDGED)?.1.trim().to_owned());
    said.lines().filter_map(behind).collect()
}

/// The page: `calibration` is what the bare path said of itself.
pub(super) fn page(made: &Provenance, calibration: &[String], all: &[Judged]) -> String {
    let counted: u64 = all.iter().map(|one| one.cases.counted).sum();
    let left_out: u64 = all.iter().map(|one| one.cases.left_out).sum();
    let failed = all.iter().filter(|one| !one.passed).count();
    let mut out = format!("# What was judged against the real clock\n\n{}\n", made.lines());
    let _ = write!(
        out,
        "Accuracy, pacing and shapers between real kernels. A case counts if the path that was played kept time under it; what\n\
         an estimator said never decides whether it counts. **{counted} of {} cases counted; {failed} of {} tests failed.**\n\n\
         ## The bare path\n\n",
        counted + left_out,
        all.len()
    );
    for line in calibration {
        let _ = writeln!(out, "- {line}");
    }
    out.push_str("\n## Tests\n\n| test | cases that counted | left out | verdict | seconds |\n|---|--:|--:|---|--:|\n");
    for one in all {
        let verdict = if one.passed { "passed" } else { "FAILED" };
        let (path, cases) = (&one.path, &one.cases);
        let _ = writeln!(out, "| `{path}` | {} | {} | {verdict} | {} |", cases.counted, cases.left_out, one.seconds);
    }
    let why: Vec<&String> = all.iter().flat_map(|one| &one.left_out).collect();
    if !why.is_empty() {
        out.push_str("\n## Left out\n\n");
        for line in why {
            let _ = writeln!(out, "- {line}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Judged, page, reasons};
    use crate::provenance::Provenance;
    use crate::suite::tally::Cases;

    #[test]
    fn the_page_says_what_counted_and_why_the_rest_did_not() {
        let said = "test a::b ... \nJUDGED: 1\n2: NOT JUDGED: 2: the path was late\nok\n\
                    test result: ok. 1 passed; 0 failed; 0 ignored";
        assert_eq!(reasons(said), ["2: the path was late"]);
        let one = Judged {
            path: "a::b".to_owned(),
            passed: true,
            cases: Cases::of(said),
            left_out: reasons(said),
            seconds: 7,
        };
        let text = page(&Provenance::begins("c"), &["late by 1 us".to_owned()], &[one]);
        assert!(text.contains("**1 of 2 cases counted; 0 of 1 tests failed.**"), "{text}");
        assert!(text.contains("| `a::b` | 1 | 1 | passed | 7 |"), "{text}");
        assert!(text.contains("- late by 1 us\n") && text.ends_with("- 2: the path was late\n"), "{text}");
    }
}
