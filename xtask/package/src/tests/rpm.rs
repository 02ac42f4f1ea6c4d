//! The RPM package.

use std::process::Command;

use anyhow::{Result, ensure};

use super::place::Place;
use super::{Made, Outcome, lacking, not_root};
use crate::shell::{output, output_of};

pub(super) fn lint(made: &Made) -> Result<Outcome> {
    if let Some(skipped) = lacking(&["rpmlint"]) {
        return Ok(skipped);
    }
    let package = made.folder.join(made.release.rpm());
    let lint = Command::new("rpmlint").arg(&package).output()?;
    let said = String::from_utf8_lossy(&lint.stdout);
    ensure!(said.contains("packages and 0 specfiles checked"), "{said}");
    // Who releases it signs it.
    let errors: Vec<&str> =
        said.lines().filter(|line| line.contains(": E: ") && !line.contains("no-signature")).collect();
    ensure!(errors.is_empty(), "{}", errors.join("\n"));
    Ok(Outcome::Passed)
}

/// The root has files and a shell of Debian, but a database of packages that is empty: so the names
/// of what is required are compared with the libraries that are there.
pub(super) fn installed(made: &Made) -> Result<Outcome> {
    if let Some(skipped) = lacking(&["rpm", "mmdebstrap", "chroot"]).or_else(not_root) {
        return Ok(skipped);
    }
    let place = match Place::debian("rpm-root") {
        Ok(place) => place,
        Err(error) => return Ok(Outcome::Skipped(format!("no root to install into: {error:#}"))),
    };
    let before = place.files()?;
    let package = made.folder.join(made.release.rpm()).to_string_lossy().into_owned();
    output("rpm", &["--checksig", "--nosignature", &package])?;
    let needed = output("rpm", &["-qp", "--requires", &package])?;
    ensure!(needed.contains("libc.so.6(GLIBC_"), "the C library is not required:\n{needed}");
    let rpm = |args: &[&str]| output_of(Command::new("rpm").arg("--root").arg(place.path()).args(args));
    rpm(&["--initdb"])?;
    rpm(&["-i", "--nodeps", &package])?;
    rpm(&["-V", "--nodeps", "narrows"])?;
    place.is_installed()?;
    rpm(&["-e", "--nodeps", "narrows"])?;
    place.is_as_before(&before)?;
    Ok(Outcome::Passed)
}
