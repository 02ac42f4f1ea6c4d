//! The test programs as cargo has built them. Run by themselves they do not hold cargo's lock, so
//! that other steps build beside them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::TESTS;
use crate::shell::{root, watch};

/// A test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    path: PathBuf,
    /// Its package's, where cargo would run it.
    folder: PathBuf,
}

/// What cargo says of a thing that it has built.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    executable: Option<PathBuf>,
    profile: Profile,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Program {
    /// Runs those of its ignored tests that have these names, one at a time.
    pub(super) fn ignored(&self, names: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(["--ignored", "--test-threads=1", "--nocapture"]).args(names);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// The paths of its ignored tests: `module::test`.
    pub(super) fn listed(&self) -> Result<Vec<String>> {
        let mut command = Command::new(&self.path);
        command.args(["--ignored", "--list", "--format", "terse"]).current_dir(&self.folder);
        let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(ToOwned::to_owned).collect())
    }
}

/// Runs the ignored tests of these names, with their output shown as it comes; whether all went
/// well, and that output.
pub(super) fn ignored(programs: &[Program], names: &[&str]) -> Result<(bool, String)> {
    let (mut fine, mut output) = (true, String::new());
    // Without a name a program would run all that it has.
    for program in programs.iter().filter(|_| !names.is_empty()) {
        let (well, said) = watch(&mut program.ignored(names))?;
        fine &= well;
        output.push_str(&said);
    }
    Ok((fine, output))
}

/// All test programs, built now as far as they are not there.
pub(super) fn built() -> Result<Vec<Program>> {
    let output = Command::new("cargo")
        .args(TESTS)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the test programs do not build");
    }
    Ok(listed(&String::from_utf8_lossy(&output.stdout)))
}

fn listed(messages: &str) -> Vec<Program> {
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
    let tests = artifacts.filter(|artifact| artifact.profile.test);
    let program = |artifact: Artifact| {
        let folder = artifact.manifest_path.parent().unwrap_or(Path::new(".")).to_owned();
        Some(Program { path: artifact.executable?, folder })
    };
    tests.filter_map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_known_among_what_else_is_built() {
        let artifact = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{{"name":"a"}},
                    "profile":{{"opt_level":"3","test":{test}}},"executable":{executable}}}"#
            )
            .replace('\n', "")
        };
        let messages = [
            r#"{"reason":"build-script-executed","package_id":"b"}"#.to_owned(),
            artifact(false, "null"),
            artifact(false, r#""/w/target/release/a""#),
            artifact(true, r#""/w/target/release/deps/a-1""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let expected = Program { path: "/w/target/release/deps/a-1".into(), folder: "/w/crates/a".into() };
        assert_eq!(listed(&messages.join("\n")), [expected]);
    }
}
