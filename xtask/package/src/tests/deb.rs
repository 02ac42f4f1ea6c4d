//! The Debian package.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::place::Place;
use super::{Made, Outcome, lacking, not_root};
use crate::shell::{output, output_of};

/// The last line of an installation.
const LAST_LINE: &str = "narrows serve is installed, not started: systemctl enable --now narrows-serve";

pub(super) fn lint(made: &Made) -> Result<Outcome> {
    if let Some(skipped) = lacking(&["lintian"]) {
        return Ok(skipped);
    }
    let deb = made.folder.join(made.release.deb());
    let said = output("lintian", &["--allow-root", "--fail-on", "error,warning", &deb.to_string_lossy()])?;
    ensure!(said.trim().is_empty(), "{said}");
    Ok(Outcome::Passed)
}

pub(super) fn installed(made: &Made) -> Result<Outcome> {
    if let Some(skipped) = lacking(&["mmdebstrap", "chroot"]).or_else(not_root) {
        return Ok(skipped);
    }
    let place = match Place::debian("deb-root") {
        Ok(place) => place,
        Err(error) => return Ok(Outcome::Skipped(format!("no minimal Debian: {error:#}"))),
    };
    let before = place.files()?;
    std::fs::copy(made.folder.join(made.release.deb()), place.path().join("tmp/narrows.deb"))?;
    let said = place.run(&["dpkg", "-i", "/tmp/narrows.deb"])?;
    ensure!(said.lines().any(|line| line == LAST_LINE), "dpkg -i says:\n{said}");
    place.is_installed()?;
    // Again, as an upgrade does, and removed before it is purged.
    place.run(&["dpkg", "-i", "/tmp/narrows.deb"])?;
    place.run(&["dpkg", "-r", "narrows"])?;
    let purged = place.run(&["dpkg", "-P", "narrows"])?;
    ensure!(!purged.contains("warning"), "dpkg -P says:\n{purged}");
    place.is_as_before(&before)?;
    Ok(Outcome::Passed)
}

/// Without a mirror: a root that holds the shared libraries of this machine and nothing else, and a
/// package database of its own.
pub(super) fn unpacked(made: &Made) -> Result<Outcome> {
    if let Some(skipped) = lacking(&["dpkg", "ldd", "chroot"]).or_else(not_root) {
        return Ok(skipped);
    }
    let place = Place::new("dpkg-root")?;
    let database = place.path().join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(database.join(folder))?;
    }
    std::fs::write(database.join("status"), "")?;
    let deb = made.folder.join(made.release.deb());
    let root = format!("--root={}", place.path().display());
    let quiet = ["--force-depends", "--force-script-chrootless", "--log=/dev/null"];
    output_of(Command::new("dpkg").arg(&root).args(quiet).arg("--unpack").arg(&deb))?;
    for library in libraries(&place.path().join("usr/bin/narrows"))? {
        let to = place.path().join(library.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().unwrap_or(place.path()))?;
        std::fs::copy(&library, to)?;
    }
    place.demo("/usr/bin/narrows")?;
    Ok(Outcome::Passed)
}

/// The files that the loader would map.
fn libraries(program: &Path) -> Result<Vec<String>> {
    let text = output("ldd", &[&program.to_string_lossy()])?;
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(str::to_owned);
    Ok(text.lines().filter_map(path).collect())
}
