//! What is only compiled and read: lints, documentation and its examples, the book.

use anyhow::Result;

use super::tally::Tally;
use crate::shell::{beside, say};

/// Every feature, and everything that is built.
const LINTS: [&str; 9] =
    ["clippy", "--release", "--workspace", "--all-features", "--all-targets", "--locked", "--", "-D", "warnings"];

/// The default features alone, as a newcomer builds them.
const PLAIN_LINTS: [&str; 6] = ["clippy", "--release", "--locked", "--", "-D", "warnings"];

const EXAMPLES: [&str; 6] = ["test", "--release", "--workspace", "--all-features", "--locked", "--doc"];

const DOCUMENTATION: [&str; 6] = ["doc", "--release", "--workspace", "--all-features", "--no-deps", "--locked"];

/// A step that ran while something else was on the screen.
pub(super) struct Ended {
    name: &'static str,
    result: Result<(bool, String)>,
    /// What it printed counts tests.
    tests: bool,
}

impl Ended {
    /// Shows what it said, and counts it.
    pub(super) fn tell(self, tally: &mut Tally) {
        let (fine, output) = self.result.unwrap_or_else(|error| (false, format!("{error:#}\n")));
        say(&output);
        if self.tests {
            tally.tests(self.name, fine, &output, None);
        } else {
            tally.step(self.name, fine);
        }
    }
}

/// All of them, one after the other.
pub(super) fn steps(program: &str) -> Vec<Ended> {
    let of = |name, result| Ended { name, result, tests: false };
    let lints = of("clippy", beside("cargo", &LINTS, &[]));
    let plain = of("clippy, default features", beside("cargo", &PLAIN_LINTS, &[]));
    let examples = beside("cargo", &EXAMPLES, &[]);
    let examples = Ended { name: "examples in the documentation", result: examples, tests: true };
    let pages = of("documentation", beside("cargo", &DOCUMENTATION, &[("RUSTDOCFLAGS", "-D warnings")]));
    let book = of("book", beside("cargo", &["xtask", "book", "--program", program], &[]));
    vec![lints, plain, examples, pages, book]
}
