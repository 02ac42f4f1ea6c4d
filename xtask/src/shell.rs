//! Running programs and talking to the person in front.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

/// Prints to standard output; a reader that went away is not a fault.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

#[expect(clippy::disallowed_methods, reason = "waits for other programs have an end in real time, and steps are timed")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// Runs a program in the workspace with its output shown; whether it ended well.
pub(crate) fn shown(program: &str, args: &[&str], env: &[(&str, &str)]) -> Result<bool> {
    say(&format!("$ {program} {}\n", args.join(" ")));
    let status = Command::new(program)
        .args(args)
        .envs(env.iter().copied())
        .current_dir(root())
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    Ok(status.success())
}

/// Runs a program in the workspace, shows its standard output line by line, and returns it with
/// whether it ended well.
pub(crate) fn watched(program: &str, args: &[&str]) -> Result<(bool, String)> {
    say(&format!("$ {program} {}\n", args.join(" ")));
    let mut child = Command::new(program)
        .args(args)
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let mut text = String::new();
    let mut output = BufReader::new(child.stdout.take().context("its output is piped")?);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        let read = String::from_utf8_lossy(&line);
        say(&read);
        text.push_str(&read);
        line.clear();
    }
    Ok((child.wait()?.success(), text))
}

/// The same, shown by the caller: for a program that runs beside another.
pub(crate) fn captured(program: &str, args: &[&str]) -> Result<(bool, String)> {
    let output = Command::new(program)
        .args(args)
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Runs a program quietly; its standard output if it ended well.
pub(crate) fn quiet(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).current_dir(root()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
