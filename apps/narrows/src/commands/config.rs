//! `narrows config`: what files and the environment set, and whether it makes sense.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Command;

use crate::config::{self, Scope, SetTo, Setting};
use crate::exit::{Exit, Failure};
use crate::output;

/// Show or check the settings from files and from the environment.
///
/// The later outweighs: `/etc/narrows/narrows.toml`, `$XDG_CONFIG_HOME/narrows/config.toml`, the
/// host's own tables of both, `NARROWS_<FLAG>`, flags.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print what is set for each command, and where each value comes from
    Show,
    /// Name the file, the line and the key of everything that is wrong
    Check {
        /// Files to check [default: those that are read]
        files: Vec<PathBuf>,
    },
}

pub(crate) fn run(args: &ConfigArgs, command: &Command) -> Result<Exit, Failure> {
    match &args.action {
        Action::Show => {
            output::write(&show(command, &config::paths())?, None)?;
            Ok(Exit::Valid)
        }
        Action::Check { files } => check(command, files),
    }
}

/// As TOML, with the source behind each value.
fn show(command: &Command, paths: &[PathBuf]) -> Result<String, Failure> {
    let mut out = String::new();
    // Writing to a String cannot fail.
    for path in paths {
        let state = if path.exists() { "" } else { " (not there)" };
        let _ = writeln!(out, "# {}{state}", path.display());
    }
    for called in command.get_subcommands() {
        let name = called.get_name();
        let all = config::effective(&[name], called, None, None, paths)?;
        table(&mut out, name, &all);
    }
    let mut hosts: Vec<String> = Vec::new();
    let settings = config::settings(paths)?;
    for setting in &settings {
        if let Scope::Host(host) = &setting.scope
            && !hosts.contains(host)
        {
            hosts.push(host.clone());
        }
    }
    for host in hosts {
        let own = settings.iter().filter(|setting| setting.scope == Scope::Host(host.clone()));
        table(&mut out, &format!("hosts.{host:?}"), &own.cloned().collect::<Vec<_>>());
    }
    Ok(out)
}

fn table(out: &mut String, name: &str, all: &[Setting]) {
    let counts = |at: &usize| all[at + 1..].iter().all(|later| later.flag != all[*at].flag);
    let lines: Vec<usize> = (0..all.len()).filter(counts).collect();
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n[{name}]");
    for at in lines {
        let value = match &all[at].value {
            SetTo::Switch(is_on) => is_on.to_string(),
            SetTo::Values(values) if values.len() == 1 => format!("{:?}", values[0]),
            SetTo::Values(values) => format!("{values:?}"),
        };
        let _ = writeln!(out, "{:<40} # {}", format!("{} = {value}", all[at].flag), all[at].source);
    }
}

fn check(command: &Command, files: &[PathBuf]) -> Result<Exit, Failure> {
    let paths = if files.is_empty() { config::paths() } else { files.to_vec() };
    let (mut faults, mut out) = (Vec::new(), String::new());
    for path in &paths {
        let Some(text) = config::text(path)? else {
            if !files.is_empty() {
                return Err(Failure::usage(format!("{}: there is no such file", path.display())));
            }
            let _ = writeln!(out, "{}: not there", path.display());
            continue;
        };
        let before = faults.len();
        match config::read(path, &text) {
            Err(fault) => faults.push(fault.to_string()),
            Ok(settings) => faults.extend(settings.iter().filter_map(|setting| {
                config::faults(setting, command).map(|why| format!("{}: {why}", setting.source))
            })),
        }
        if faults.len() == before {
            let _ = writeln!(out, "{}: right", path.display());
        }
    }
    output::write(&out, None)?;
    for fault in &faults {
        output::complain(fault);
    }
    Ok(if faults.is_empty() { Exit::Valid } else { Exit::Usage })
}
