//! `narrows lab exec`: a program in a node of a lab that another process holds.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::failure;
use crate::exit::{Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct ExecArgs {
    /// The lab
    id: String,
    /// The node: sender, receiver, router1, switch1, ...
    node: String,
    /// Program to run there
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

pub(super) fn run(args: &ExecArgs) -> Result<Exit, Failure> {
    super::clean();
    let id = super::id(&args.id)?;
    let (program, arguments) = args.program.split_first().ok_or_else(|| Failure::usage("an empty command"))?;
    narrows_lab::enter_node(&id, &args.node).map_err(|error| failure(&error))?;
    // From here on this process is the program, so its exit code is, too. It only comes back if
    // there is none.
    let error = Command::new(program).args(arguments).exec();
    output::complain(&format!("{program}: {error}"));
    // As shells have it: 127 for a program that is not there, 126 for one that cannot be run.
    Ok(Exit::Program(match error.kind() {
        std::io::ErrorKind::NotFound => 127,
        _ => 126,
    }))
}
