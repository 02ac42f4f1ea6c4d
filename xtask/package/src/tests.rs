//! Each artefact, installed into an empty root and tried there. What this machine lacks for a test
//! is said by name, and never counts as passed.

mod archive;
mod deb;
mod oci;
mod place;
mod rpm;

use std::path::Path;

use anyhow::Result;

use crate::release::Release;
use crate::shell::{found, output, say};

/// How a test ended that did not fail.
enum Outcome {
    Passed,
    /// What it lacked.
    Skipped(String),
}

/// What tests need to know.
struct Made<'a> {
    release: &'a Release,
    /// `target/package`.
    folder: &'a Path,
}

type Test = fn(&Made) -> Result<Outcome>;

/// In this order; whether none failed.
pub(crate) fn all(release: &Release, folder: &Path) -> Result<bool> {
    let tests: [(&str, Test); 9] = [
        ("deb: lintian is silent", deb::lint),
        ("deb: installed, tried and purged in an empty Debian", deb::installed),
        ("deb: unpacked by dpkg --root beside the libraries it needs", deb::unpacked),
        ("rpm: rpmlint finds no error", rpm::lint),
        ("rpm: installed, tried and erased in an empty root", rpm::installed),
        ("archive: runs in a root that has nothing else", archive::alone),
        ("completions: zsh and fish can read them", archive::completions),
        ("oci: every digest is right, and it runs unpacked", oci::unpacked),
        ("oci: skopeo and umoci read it", oci::read_by_others),
    ];
    let made = Made { release, folder };
    let (mut failed, mut skipped) = (0, 0);
    for (name, test) in tests {
        match test(&made) {
            Ok(Outcome::Passed) => say(&format!("passed   {name}\n")),
            Ok(Outcome::Skipped(why)) => {
                skipped += 1;
                say(&format!("SKIPPED  {name}: {why}\n"));
            }
            Err(error) => {
                failed += 1;
                say(&format!("FAILED   {name}: {error:#}\n"));
            }
        }
    }
    say(&format!("{} passed, {failed} failed, {skipped} skipped\n", tests.len() - failed - skipped));
    Ok(failed == 0)
}

/// What is missing of these programs, as a reason to skip.
fn lacking(programs: &[&str]) -> Option<Outcome> {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !found(program)).collect();
    (!missing.is_empty()).then(|| Outcome::Skipped(format!("not installed: {}", missing.join(", "))))
}

/// Other roots are for root.
fn not_root() -> Option<Outcome> {
    let root = output("id", &["-u"]).is_ok_and(|id| id.trim() == "0");
    (!root).then(|| Outcome::Skipped("needs root".to_owned()))
}
