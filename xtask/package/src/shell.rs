//! Running programs and talking to the person in front.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Prints to standard output; a reader that went away is not a fault.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// The program's workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The standard output of a program that ends well; else why it did not.
pub(crate) fn output(program: &str, args: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    output_of(&mut command)
}

/// The same for a command that was prepared.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    if !done.status.success() {
        let complaint = String::from_utf8_lossy(&done.stderr);
        bail!("{name} {}: {}\n{text}{complaint}", args.join(" "), done.status);
    }
    Ok(text)
}

/// Whether a program is on the path, or where system programs are.
pub(crate) fn found(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':').chain(["/usr/sbin", "/sbin"]).any(|folder| Path::new(folder).join(program).is_file())
}
