//! How long a fresh clone takes, and how large what is packaged is.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use crate::shell::{quiet, root, say};

/// What is measured of a commit.
struct Measured {
    commit: String,
    crates: usize,
    demo: Cost,
    tests: Cost,
    /// The packaged program with every feature, and with those that a build has by default.
    dist_octets: [u64; 2],
}

/// Octets that neither may exceed, with some room for a month's work. They only shrink, unless a
/// commit says what the growth is for.
///
/// The program with every feature has 25.7 MB: machine code 19.4, what unwinding needs 2.9,
/// constants 2.0, pointers with relocations 1.5. Unwinding stays: a thread or task that panics must
/// not end a server. With default features it has 17.2 MB since `watch` is one of them.
const LIMITS: [u64; 2] = [26_500_000, 17_500_000];

/// What a command took.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    processor_seconds: f64,
}

/// `cargo xtask size [COMMIT]`: HEAD, and before it the other commit if one is named. Seconds hold
/// for an idle machine; processor seconds for any.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let commits: Vec<&str> = match args {
        [] => vec!["HEAD"],
        [before] if !before.starts_with('-') => vec![before, "HEAD"],
        _ => bail!("usage: cargo xtask size [COMMIT]"),
    };
    let measured = commits.into_iter().map(measure).collect::<Result<Vec<Measured>>>()?;
    say(&table(&measured));
    let Some(head) = measured.last() else { return Ok(true) };
    let fits = head.dist_octets.iter().zip(LIMITS).all(|(octets, limit)| *octets <= limit);
    if !fits {
        say(&format!("larger than allowed: {} octets\n", LIMITS.map(|limit| limit.to_string()).join(" and ")));
    }
    Ok(fits)
}

fn measure(commit: &str) -> Result<Measured> {
    let named = quiet("git", &["rev-parse", "--short", "--verify", commit]);
    let commit = named.with_context(|| format!("no commit {commit}"))?.trim().to_owned();
    let folder = Folder::new(&commit)?;
    let clone = folder.0.join("narrows");
    let git = |args: &[&str]| {
        let status = Command::new("git").args(args).status().context("cannot run git")?;
        ended_well(status, "git")
    };
    let (from, to) = (root(), clone.to_string_lossy().into_owned());
    git(&["clone", "--quiet", "--no-checkout", &from.to_string_lossy(), &to])?;
    git(&["-C", &to, "checkout", "--quiet", "--detach", &commit])?;
    // Downloads are the network's affair.
    cargo(&clone, &["fetch", "--locked", "--quiet"])?;
    let lock = std::fs::read_to_string(clone.join("Cargo.lock")).context("no Cargo.lock")?;
    let full: &[&str] = if has(&clone, "\nfull = [") { &["--features", "full"] } else { &[] };
    let demo = cargo(&clone, &["build", "--release", "--locked"])?;
    // What the tests build before they run; the demo's build is there already for anyone who
    // follows the README.
    let mut tests = vec!["test", "--release", "--workspace", "--locked", "--no-run"];
    if !full.is_empty() {
        tests.push("--all-features");
    }
    let tests = cargo(&clone, &tests)?;
    let dist_octets = if full.is_empty() { [dist(&clone, &[])?; 2] } else { [dist(&clone, full)?, dist(&clone, &[])?] };
    Ok(Measured {
        commit,
        crates: lock.lines().filter(|line| *line == "[[package]]").count(),
        demo,
        tests,
        dist_octets,
    })
}

/// Octets of the program as it is packaged. Commits from before that profile were packaged as they
/// were released.
fn dist(clone: &Path, features: &[&str]) -> Result<u64> {
    let dist = std::fs::read_to_string(clone.join("Cargo.toml")).is_ok_and(|text| text.contains("[profile.dist]"));
    let profile = if dist { "dist" } else { "release" };
    let binary = ["build", "--profile", profile, "--locked", "--bin", "narrows"];
    cargo(clone, &[&binary, features].concat())?;
    let binary = clone.join("target").join(profile).join("narrows");
    // Changes nothing where the profile has done it.
    let status = Command::new("strip").arg(&binary).status().context("cannot run strip")?;
    ended_well(status, "strip")?;
    Ok(binary.metadata().context("no binary")?.len())
}

fn has(clone: &Path, text: &str) -> bool {
    std::fs::read_to_string(clone.join("apps/narrows/Cargo.toml")).is_ok_and(|manifest| manifest.contains(text))
}

/// Runs cargo in the clone, with a target folder of its own and nothing of the caller's settings.
fn cargo(clone: &Path, args: &[&str]) -> Result<Cost> {
    say(&format!("$ cargo {}\n", args.join(" ")));
    let before = (now()?, processor_time()?);
    let status = Command::new("cargo")
        .args(args)
        .current_dir(clone)
        .env("CARGO_TARGET_DIR", clone.join("target"))
        .env_remove("CARGO_BUILD_JOBS")
        .env_remove("CARGO_INCREMENTAL")
        .env_remove("RUSTFLAGS")
        .stdin(Stdio::null())
        .status()
        .context("cannot run cargo")?;
    ended_well(status, "cargo")?;
    Ok(Cost { seconds: now()? - before.0, processor_seconds: processor_time()? - before.1 })
}

fn ended_well(status: ExitStatus, program: &str) -> Result<()> {
    if status.success() { Ok(()) } else { bail!("{program} failed: {status}") }
}

fn now() -> Result<f64> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(time.num_nanoseconds() as f64 / 1e9)
}

/// Of all programs that this one has run.
fn processor_time() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(micros as f64 / 1e6)
}

fn table(rows: &[Measured]) -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut out = format!(
        "\nFresh clone, {processors} processors, everything downloaded before\n\n\
         commit     crates  cargo run --release -- demo: build  its tests' programs       dist, every feature   default\n"
    );
    let cost = |cost: Cost| format!("{:5.0} s ({:5.0} s of CPU)", cost.seconds, cost.processor_seconds);
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:<10} {:>6}  {:<34}  {:<24}  {:>16.1} MB  {:>5.1} MB",
            row.commit,
            row.crates,
            cost(row.demo),
            cost(row.tests),
            row.dist_octets[0] as f64 / 1e6,
            row.dist_octets[1] as f64 / 1e6,
        );
    }
    out
}

/// A folder that goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(commit: &str) -> Result<Self> {
        let name = format!("narrows-size-{}-{commit}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder of temporary files that stays behind is no reason to fail.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_line() {
        let cost = Cost { seconds: 201.4, processor_seconds: 390.0 };
        let row = Measured {
            commit: "0123abc".to_owned(),
            crates: 300,
            demo: cost,
            tests: cost,
            dist_octets: [12_340_000, 9_870_000],
        };
        let text = table(&[row]);
        let line = text.lines().last().unwrap();
        assert!(line.starts_with("0123abc"), "{text}");
        assert!(line.contains("201 s (  390 s of CPU)") && line.ends_with(" 12.3 MB    9.9 MB"), "{text}");
    }

    #[test]
    fn what_fails_is_reported() {
        assert!(cargo(Path::new("/"), &["build"]).is_err());
        assert!(measure("no-such-commit").is_err());
    }
}
