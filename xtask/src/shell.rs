//! Running programs and talking to the person in front.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

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
    watch(Command::new(program).args(args).current_dir(root()))
}

/// The same of any command.
pub(crate) fn watch(command: &mut Command) -> Result<(bool, String)> {
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
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

/// Runs a program in the workspace for its output, both streams of it, and whether it ended well.
/// It takes no processor from anything else: it runs beside what counts.
pub(crate) fn beside(program: &str, args: &[&str], env: &[(&str, &str)]) -> Result<(bool, String)> {
    let output = Command::new("nice")
        .args(["-n", "19", program])
        .args(args)
        .envs(env.iter().copied())
        .current_dir(root())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    let text = [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets).into_owned()).concat();
    Ok((output.status.success(), format!("$ {program} {}\n{text}", args.join(" "))))
}

/// Runs a program quietly; its standard output if it ended well.
pub(crate) fn quiet(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).current_dir(root()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The program that `command` shall ask: the one that `--program PATH` names, or one built now.
/// `None` if it does not build.
pub(crate) fn built_program(command: &str, args: &[String]) -> Result<Option<String>> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => {
            let build = ["build", "--release", "--locked", "--package", "narrows", "--all-features"];
            Ok(shown("cargo", &build, &[])?.then(|| "target/release/narrows".to_owned()))
        }
        ["--program", path] => Ok(Some(path.to_owned())),
        _ => bail!("{command} takes --program PATH and nothing else"),
    }
}
