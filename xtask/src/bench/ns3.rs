//! Packet times of ns-3, kept for `crates/sim/tests/all/ns3.rs`: makes the files anew from the
//! packets that they list. `xtask/bench/ns3/README.md` says how they read.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::program::{command, found, output};
use super::versions;
use crate::shell::{root, say};

const FILES: &str = "crates/sim/tests/fixtures/ns3";
/// Compilation and each run.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Plays every list; says which files are not as they were.
pub(super) fn run(args: &[String]) -> Result<bool> {
    if !args.is_empty() {
        bail!("cargo xtask bench ns3 takes nothing else");
    }
    let program = compile()?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(root().join(FILES)).context(FILES)? {
        files.push(entry?.path());
    }
    files.sort();
    let mut changed = 0;
    for file in &files {
        let name = file.file_name().unwrap_or_default().display().to_string();
        let old = std::fs::read_to_string(file).with_context(|| name.clone())?;
        let new = play(&program, file)?;
        changed += usize::from(new != old);
        say(&format!("{name}: {}\n", if new == old { "as it was" } else { "CHANGED" }));
        std::fs::write(file, new).with_context(|| name)?;
    }
    say(&format!("ns-3 {}: {changed} of {} files changed\n", versions::ns3().unwrap_or_default(), files.len()));
    Ok(true)
}

fn play(program: &Path, file: &Path) -> Result<String> {
    let mut command = Command::new(program);
    let list = std::fs::File::open(file)?;
    command.arg("play").stdin(list).stderr(Stdio::inherit());
    let played = command.output().context("cannot run the ns-3 program")?;
    ensure!(played.status.success(), "the ns-3 program failed on {}", file.display());
    Ok(String::from_utf8(played.stdout)?)
}

/// Compiles the program; where it is.
fn compile() -> Result<PathBuf> {
    ensure!(found("g++"), "g++ is not installed");
    ensure!(versions::ns3().is_some(), "ns-3 is not installed (Debian package: libns3-dev)");
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder)?;
    let program = folder.join("ns3_paths");
    let mut compiler = command("g++");
    compiler.args(["-std=c++17", "-O2", "xtask/bench/ns3/paths.cc", "-o"]).arg(&program).args([
        "-lns3-point-to-point",
        "-lns3-traffic-control",
        "-lns3-network",
        "-lns3-core",
    ]);
    output(compiler, TIMEOUT).context("xtask/bench/ns3/paths.cc does not compile")?;
    Ok(program)
}
