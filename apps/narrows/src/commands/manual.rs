//! `narrows completions` and `narrows man`: both generated from the arguments themselves.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap_complete::env::Shells;

use crate::complete;
use crate::exit::{Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this folder, and narrows.toml(5)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The manual of the files that hold settings.
const SETTINGS: &str = include_str!("narrows.toml.5");

/// A script that has the shell ask the program itself, so that it knows methods, interfaces and
/// configured hosts.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let shells = Shells::builtins();
    let name = shell.to_string();
    let known = shells.completer(&name).ok_or_else(|| Failure::usage(format!("{name}: no completions for it")))?;
    let mut script = Vec::new();
    let program = env!("CARGO_BIN_NAME");
    let written = known.write_registration(complete::VARIABLE, program, program, program, &mut script);
    written.map_err(|error| Failure::host(format!("cannot write the script: {error}")))?;
    output::write(&String::from_utf8_lossy(&script), None)?;
    Ok(Exit::Valid)
}

/// One page on standard output, or a folder of them.
pub(crate) fn man(args: &ManArgs, command: clap::Command) -> Result<Exit, Failure> {
    match &args.out {
        Some(folder) => {
            let broken = |error: std::io::Error| Failure::host(format!("{}: {error}", folder.display()));
            pages(folder, command).map_err(broken)?;
        }
        None => one_page(&command)?,
    }
    Ok(Exit::Valid)
}

fn pages(folder: &Path, command: clap::Command) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command, folder)?;
    std::fs::write(folder.join("narrows.toml.5"), SETTINGS)
}

/// The program, then every subcommand with its options.
fn one_page(command: &clap::Command) -> Result<(), Failure> {
    let broken = |error: std::io::Error| Failure::host(format!("cannot write the manual: {error}"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(broken)?;
    parts(command, command.get_name(), &mut page).map_err(broken)?;
    output::write(&String::from_utf8_lossy(&page), None)
}
/// The subcommands of a command, each followed by its own.
fn parts(command: &clap::Command, name: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
        let title = format!("{name} {}", part.get_name());
        let mut head = String::new();
        let _ = writeln!(head, ".SH {}", title.to_uppercase());
        page.extend_from_slice(head.as_bytes());
        let man = clap_mangen::Man::new(part.clone().bin_name(&title));
        man.render_description_section(page)?;
        man.render_synopsis_section(page)?;
        man.render_options_section(page)?;
        parts(part, &title, page)?;
    }
    Ok(())
}
