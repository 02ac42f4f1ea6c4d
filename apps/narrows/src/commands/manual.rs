//! `narrows completions` and `narrows man`: both generated from the arguments themselves.

use std::fmt::Write as _;

use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn completions(shell: clap_complete::Shell, mut command: clap::Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut script);
    output::write(&String::from_utf8_lossy(&script), None)?;
    Ok(Exit::Valid)
}

/// One page: the program, then every subcommand with its options.
pub(crate) fn man(command: &clap::Command) -> Result<Exit, Failure> {
    let broken = |error: std::io::Error| Failure::host(format!("cannot write the manual: {error}"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(broken)?;
    parts(command, command.get_name(), &mut page).map_err(broken)?;
    output::write(&String::from_utf8_lossy(&page), None)?;
    Ok(Exit::Valid)
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
