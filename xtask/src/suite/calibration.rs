//! Whether this machine plays the bare path in time: without that, no test against the real clock
//! says anything.

use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{root, say};

/// An idle path of three hops, whose receiver has the address [`RECEIVER`].
const PATH: &str = "xtask/src/suite/bare.toml";
const RECEIVER: &str = "10.77.3.1";

/// Five seconds each, of which so many must be in time: a stall of the hypervisor is no verdict.
const ROUNDS: usize = 5;
const NEEDED: usize = 4;

/// Plays the path with packets of 20 Mbit/s over it and asks for its own account of how late it
/// was; `program` is `narrows` as built.
pub(super) fn keeps_time(program: &str) -> Result<bool> {
    let program = root().join(program);
    let program = program.to_string_lossy();
    let send = format!("sleep 0.5; exec {program} throughput {RECEIVER} -u -b 20M -t 5");
    let serve = format!("{program} serve");
    let mut in_time = 0;
    for round in 1..=ROUNDS {
        let output = Command::new(&*program)
            .args(["emulate", PATH, "--receiver", &serve, "--", "sh", "-c", &send])
            .current_dir(root())
            .output()
            .context("cannot run the program")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let verdict = verdict(output.status.success(), &said);
        say(&format!("calibration {round} of {ROUNDS}: {}\n", verdict.clone().unwrap_or_else(|why| why)));
        in_time += usize::from(verdict.is_ok());
        if round - in_time > ROUNDS - NEEDED {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the path said of itself: in time, or why not.
fn verdict(ended_well: bool, said: &str) -> Result<String, String> {
    let account = said.lines().find(|line| line.contains("packets released"));
    match account {
        None => Err(format!("the path said nothing: {}", said.trim())),
        Some(line) if said.contains("did not keep time") => Err(format!("did not keep time: {line}")),
        Some(line) if !ended_well => Err(format!("the transfer failed: {line}")),
        Some(line) => Ok(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn only_an_account_of_time_kept_counts() {
        let kept = "narrows: the path: 9 packets released in 5 s; late by 1 us (p50)";
        assert!(verdict(true, kept).is_ok());
        assert!(verdict(false, kept).is_err());
        assert!(verdict(true, &format!("{kept}\ndid not keep time: what the hosts saw")).is_err());
        assert!(verdict(true, "").is_err(), "a path that says nothing has not kept time");
    }
}
