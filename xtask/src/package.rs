//! `cargo xtask package`: a program of its own, so that no other command builds what only packages
//! need.

use anyhow::Result;

use crate::shell::shown;

const PACKAGER: [&str; 8] = [
    "run",
    "--quiet",
    "--locked",
    "--manifest-path",
    "xtask/package/Cargo.toml",
    "--target-dir",
    "target/packager",
    "--",
];

pub(crate) fn run(args: &[String]) -> Result<bool> {
    let args = args.iter().map(String::as_str);
    shown("cargo", &PACKAGER.into_iter().chain(args).collect::<Vec<_>>(), &[])
}
