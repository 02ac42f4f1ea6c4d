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
/// was; `program` is `narrows` as built. Returns whether it kept time, and what it said each time.
pub(super) fn keeps_time(program: &str) -> Result<(bool, Vec<String>)> {
    let program = root().join(program);
    let program = program.to_string_lossy();
    let send = format!("sleep 0.5; exec {program} throughput {RECEIVER} -u -b 20M -t 5");
    let serve = format!("{program} serve");
    let (mut in_time, mut accounts) = (0, Vec::new());
    for round in 1..=ROUNDS {
        let output = Command::new(&*program)
            .args(["emulate", PATH, "--receiver", &serve, "--", "sh", "-c", &send])
            .current_dir(root())
            .output()
            .context("cannot run the program")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let verdict = verdict(output.status.success(), &said);
        in_time += usize::from(verdict.is_ok());
        let account = verdict.unwrap_or_else(|why| why);
        say(&format!("calibration {round} of {ROUNDS}: {account}\n"));
        accounts.push(account);
        if round - in_time > ROUNDS - NEEDED {
            return Ok((false, accounts));
        }
    }
    Ok((true, accounts))
}

/// What the path said of itself: in time, or why not. Only its own *timing valid* counts: whatever
/// else it says, or does not say, is no account of time kept.
fn verdict(ended_well: bool, said: &str) -> Result<String, String> {
    let account = said.lines().find(|line| line.contains("packets released"));
    let valid = said.lines().any(|line| line.ends_with("timing valid"));
    match account {
        None => Err(format!("the path said nothing: {}", said.trim())),
        Some(line) if !valid => Err(format!("timing not valid: {line}")),
        Some(line) if !ended_well => Err(format!("the transfer failed: {line}")),
        Some(line) => Ok(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::verdict;

    /// As the links print it (crates/lab, `prints_its_verdict`).
    const KEPT: &str = "narrows: the path: 9 packets released in 5.0 s; late by 0.2 µs (p50), 25.0 µs (p99), \
                        3000.0 µs (worst); 3 over 100 µs\nnarrows: the path: timing valid\n";

    #[test]
    fn only_an_account_of_time_kept_counts() {
        let late = KEPT.replace("timing valid", "timing not valid: part of what the hosts saw comes from this machine");
        let silent = KEPT.replace("timing valid", "");
        assert!(verdict(true, KEPT).is_ok());
        assert!(verdict(false, KEPT).is_err());
        assert!(verdict(true, &late).unwrap_err().starts_with("timing not valid"));
        assert!(verdict(true, &silent).is_err(), "a path that does not say so has not kept time");
        assert!(verdict(true, "").is_err());
    }
}
