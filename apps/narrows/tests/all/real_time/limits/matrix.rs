//! The verdicts as a matrix, and the section of the page that has it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

/// What is said where the samples do not tell.
const UNCLEAR: [&str; 3] = ["unexplained loss", "path", "nothing"];

/// The verdicts on one induced limit.
#[derive(Debug, Default)]
struct Row {
    right: u32,
    unclear: u32,
    wrong: u32,
    /// The path was late, so that the run says nothing.
    not_judged: u32,
    said: BTreeMap<String, u32>,
}

/// The verdicts on all of them, in the order in which they were first induced.
#[derive(Debug, Default)]
pub(super) struct Matrix(Vec<(&'static str, Row)>);

impl Matrix {
    fn row(&mut self, what: &'static str) -> &mut Row {
        let place = self.0.iter().position(|(name, _)| *name == what).unwrap_or_else(|| {
            self.0.push((what, Row::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }

    /// What was said of a run whose timing was valid. A shaper's bits wait in a queue: *queue* is
    /// as unclear of it as no verdict.
    pub(super) fn add(&mut self, what: &'static str, right: &[&str], said: &str) {
        let shaped = right.contains(&"shaper") && said == "queue";
        let row = self.row(what);
        if right.contains(&said) {
            row.right += 1;
        } else if shaped || UNCLEAR.contains(&said) {
            row.unclear += 1;
        } else {
            row.wrong += 1;
        }
        *row.said.entry(said.to_owned()).or_default() += 1;
    }

    pub(super) fn add_not_judged(&mut self, what: &'static str) {
        self.row(what).not_judged += 1;
    }

    /// One in fifty verdicts may be wrong, and one at all.
    pub(super) fn holds(&self) -> bool {
        let judged: u32 = self.0.iter().map(|(_, row)| row.right + row.unclear + row.wrong).sum();
        let wrong: u32 = self.0.iter().map(|(_, row)| row.wrong).sum();
        wrong <= judged.div_ceil(50)
    }

    /// Rows: induced; columns: how it was judged, and what was said.
    pub(super) fn table(&self) -> String {
        let mut text = String::from(
            "| induced | judged | right | unclear | wrong | not in time | said |\n|---|--:|--:|--:|--:|--:|---|\n",
        );
        for (what, row) in &self.0 {
            let said: Vec<String> = row.said.iter().map(|(said, count)| format!("{said} {count}")).collect();
            let _ = writeln!(
                text,
                "| {what} | {} | {} | {} | {} | {} | {} |",
                row.right + row.unclear + row.wrong,
                row.right,
                row.unclear,
                row.wrong,
                row.not_judged,
                said.join(", ")
            );
        }
        text
    }
}

/// Writes the matrix into `docs/results/verdicts.md` between its marks, if `UPDATE_VERDICTS` is
/// set.
pub(super) fn page(matrix: &Matrix, took: Duration) {
    const MARKS: [&str; 2] = ["<!-- kernels: begin -->\n", "<!-- kernels: end -->\n"];
    if std::env::var_os("UPDATE_VERDICTS").is_none() {
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/verdicts.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, rest) = page.split_once(MARKS[0]).expect("the page has a begin");
    let (_, tail) = rest.split_once(MARKS[1]).expect("the page has an end");
    let git = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let commit =
        git.map_or_else(|_| "unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let made = format!("commit {commit}, {} s, {cores} cores, Linux {}", took.as_secs(), kernel.trim());
    let text = format!("{head}{}`{COMMAND}`, {made}:\n\n{}{}{tail}", MARKS[0], matrix.table(), MARKS[1]);
    std::fs::write(path, text).unwrap();
}

const COMMAND: &str = "UPDATE_VERDICTS=1 cargo test --release --workspace --all-features -- --ignored --nocapture what_limited_a_transfer_between_kernels";

#[test]
fn a_matrix_counts_what_is_right_unclear_and_wrong() {
    let mut matrix = Matrix::default();
    matrix.add("shaper", &["shaper"], "shaper");
    matrix.add("shaper", &["shaper"], "queue");
    matrix.add("policer", &["policer"], "unexplained loss");
    matrix.add("policer", &["policer"], "queue");
    matrix.add_not_judged("policer");
    let text = matrix.table();
    assert!(text.contains("| shaper | 2 | 1 | 1 | 0 | 0 | queue 1, shaper 1 |"), "{text}");
    assert!(text.ends_with("| policer | 2 | 0 | 1 | 1 | 1 | queue 1, unexplained loss 1 |\n"), "{text}");
    assert!(matrix.holds(), "one at all");
    matrix.add("policer", &["policer"], "shaper");
    assert!(!matrix.holds(), "two of five");
}
