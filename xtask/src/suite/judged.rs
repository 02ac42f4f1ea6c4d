//! The page of a run against the real clock: each test, what of it counted, and how long it took.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::programs::Program;
use super::tally::{Cases, NOT_JUDGED};
use crate::provenance::Provenance;
use crate::shell::{now, say, watch};

/// What a run takes at most.
const MOST: Duration = Duration::from_secs(25 * 60);

/// Tests that wait for minutes, and for how many at least: begun last, so that the others are
/// judged in any case. The last one takes what is left for more runs.
const LONG: [(&str, u64); 2] =
    [("a_new_user_sees_the_path_and_hears_what_became_of_it", 5), ("what_limited_a_transfer_between_kernels", 6)];

/// Tells a test how many seconds it may take.
const SECONDS: &str = "NARROWS_JUDGE_SECONDS";

/// The minutes of the others at most.
const USUAL: u64 = 2;

/// Why a test did not begin.
const NO_TIME: &str = "no time was left for it in 25 minutes";

/// What one test said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    path: String,
    /// `None` if it did not begin.
    passed: Option<bool>,
    cases: Cases,
    /// Why cases were left out, as the test says it.
    left_out: Vec<String>,
    seconds: u64,
}

/// Runs the ignored tests of these names, each by itself, with its output shown as it comes;
/// whether all went well, their output, and what each said. A test for which too little is left
/// of [`MOST`] since `began` is not begun, and is told.
pub(super) fn run(programs: &[Program], names: &[&str], began: Instant) -> Result<(bool, String, Vec<Judged>)> {
    let (mut fine, mut output, mut all) = (true, String::new(), Vec::new());
    for (program, path) in in_order(programs, names)? {
        let (at, left) = (now(), MOST.saturating_sub(began.elapsed()));
        let mut test = program.ignored(&[&path]);
        test.arg("--exact").env(SECONDS, left.as_secs().to_string());
        let ran = if left >= takes(&path) { Some(watch(&mut test)?) } else { None };
        let seconds = at.elapsed().as_secs();
        let said = ran.as_ref().map_or_else(|| format!("\n{NOT_JUDGED}{path}: {NO_TIME}\n"), |(_, said)| said.clone());
        say(&if ran.is_some() { format!("{path}: {seconds} s\n") } else { said.clone() });
        let passed = ran.map(|(passed, _)| passed);
        fine &= passed.unwrap_or(true);
        output.push_str(&said);
        all.push(Judged { left_out: reasons(&said), cases: Cases::of(&said), path, passed, seconds });
    }
    Ok((fine, output, all))
}

/// The tests of these names, those that wait for minutes last.
fn in_order<'a>(programs: &'a [Program], names: &[&str]) -> Result<Vec<(&'a Program, String)>> {
    let mut all = Vec::new();
    for program in programs {
        let wanted = |path: &String| path.rsplit("::").next().is_some_and(|name| names.contains(&name));
        all.extend(program.listed()?.into_iter().filter(wanted).map(|path| (program, path)));
    }
    all.sort_by_key(|(_, path)| takes(path));
    Ok(all)
}

/// What a test takes at most.
fn takes(path: &str) -> Duration {
    let minutes = LONG.iter().find(|(name, _)| path.ends_with(name)).map_or(USUAL, |(_, minutes)| *minutes);
    Duration::from_secs(60 * minutes)
}

/// How many tests did not begin, by what [`run`] put out.
pub(super) fn not_begun(output: &str) -> u64 {
    output.lines().filter(|line| line.starts_with(NOT_JUDGED) && line.ends_with(NO_TIME)).count() as u64
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
    let failed = all.iter().filter(|one| one.passed == Some(false)).count();
    let seconds: u64 = all.iter().map(|one| one.seconds).sum();
    let mut out = format!("# What was judged against the real clock\n\n{}\n", made.lines());
    let _ = write!(
        out,
        "Accuracy, pacing and shapers between real kernels. A case counts if the path that was played kept time under it; what\n\
         an estimator said never decides whether it counts. **{counted} of {} cases counted; {failed} of {} tests failed; {seconds} s.**\n\n\
         ## The bare path\n\n",
        counted + left_out,
        all.len()
    );
    for line in calibration {
        let _ = writeln!(out, "- {line}");
    }
    out.push_str("\n## Tests\n\n| test | cases that counted | left out | verdict | seconds |\n|---|--:|--:|---|--:|\n");
    for one in all {
        let verdict = match one.passed {
            Some(true) => "passed",
            Some(false) => "FAILED",
            None => "not begun",
        };
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
    use super::{Judged, MOST, NO_TIME, NOT_JUDGED, not_begun, page, reasons, takes};
    use crate::provenance::Provenance;
    use crate::suite::tally::Cases;

    #[test]
    fn the_page_says_what_counted_and_why_the_rest_did_not() {
        let said = "test a::b ... \nJUDGED: 1\n2: NOT JUDGED: 2: the path was late\nok\n\
                    test result: ok. 1 passed; 0 failed; 0 ignored";
        assert_eq!(reasons(said), ["2: the path was late"]);
        let one = Judged {
            path: "a::b".to_owned(),
            passed: Some(true),
            cases: Cases::of(said),
            left_out: reasons(said),
            seconds: 7,
        };
        let text = page(&Provenance::begins("c"), &["late by 1 us".to_owned()], &[one]);
        assert!(text.contains("**1 of 2 cases counted; 0 of 1 tests failed; 7 s.**"), "{text}");
        assert!(text.contains("| `a::b` | 1 | 1 | passed | 7 |"), "{text}");
        assert!(text.contains("- late by 1 us\n") && text.ends_with("- 2: the path was late\n"), "{text}");
    }

    #[test]
    fn what_waits_for_minutes_begins_last_and_only_if_it_can_end_in_time() {
        let long = "real_time::limits::what_limited_a_transfer_between_kernels";
        assert!(takes(long) > takes("a::what_is_short") && takes(long) < MOST);
        let said = format!("JUDGED: one\n\n{NOT_JUDGED}{long}: {NO_TIME}\n");
        assert_eq!(not_begun(&said), 1);
        assert_eq!((Cases::of(&said).left_out, reasons(&said).len()), (1, 1));
    }
}
