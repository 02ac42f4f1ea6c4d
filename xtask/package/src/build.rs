//! The two programs: linked against the system's libraries, and alone.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::shell::{root, say};

/// What cargo left, as octets.
pub(crate) struct Programs {
    /// Needs the system's C library: deb, rpm.
    pub(crate) linked: Vec<u8>,
    /// Needs nothing: archive, OCI.
    pub(crate) alone: Vec<u8>,
}

/// How a program is linked that needs nothing of the system. Relocations are packed, which saves
/// half a megabyte: its own C library can unpack them, and a system's only since glibc 2.36.
const ALONE: [&str; 4] = ["-C", "target-feature=+crt-static", "-C", "link-arg=-Wl,-z,pack-relative-relocs"];

/// Builds both. They share every crate but the last: only that one knows how it is linked.
pub(crate) fn programs() -> Result<Programs> {
    Ok(Programs { linked: built(&[])?, alone: built(&ALONE)? })
}

/// Programs that are there already.
pub(crate) fn read(linked: &str, alone: &str) -> Result<Programs> {
    let read = |path: &str| std::fs::read(path).with_context(|| format!("cannot read {path}"));
    Ok(Programs { linked: read(linked)?, alone: read(alone)? })
}

fn built(flags: &[&str]) -> Result<Vec<u8>> {
    let args =
        ["rustc", "--profile", "dist", "--locked", "--package", "narrows", "--bin", "narrows", "--features", "full"];
    say(&format!("$ cargo {} -- {}\n", args.join(" "), flags.join(" ")));
    let status = Command::new("cargo")
        .args(args)
        .arg("--")
        .args(flags)
        .current_dir(root())
        .env("RUSTFLAGS", unmoved_paths()?)
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "cargo failed: {status}");
    std::fs::read(root().join("target/dist/narrows")).context("cargo left no program")
}

/// Panics name files: not those of the machine that built them, or two machines never agree.
fn unmoved_paths() -> Result<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).context("no home")?;
    let map = |from: PathBuf, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    Ok(format!("{} {}", map(home, "/cargo"), map(root(), "/narrows")))
}
