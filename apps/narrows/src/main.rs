//! `narrows`: what can this path carry, and what is holding me back?
//!
//! One binary; its subcommands are one file each under `commands/`. Results go to standard output, progress and complaints to
//! standard error; exit codes are those of [`exit`].

mod budget;
mod commands;
mod exit;
mod output;
mod progress;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "narrows", version, about, max_term_width = 110)]
#[command(propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the methods, or print one method's manual
    Methods(commands::methods::MethodsArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match &cli.command {
        Command::Methods(args) => commands::methods::run(args),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::complain(&failure.text);
            failure.exit.into()
        }
    }
}
