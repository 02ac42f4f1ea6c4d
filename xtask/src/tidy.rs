//! The rules of the house that no compiler checks.

mod age;
mod arrows;
mod chart;
mod circles;
mod files;
mod methods;
mod msrv;
mod papers;
mod words;

use anyhow::{Result, bail};

use crate::book;
use crate::shell::say;

/// Runs every rule, prints what breaks one, and returns whether none is broken.
pub(crate) fn run() -> Result<bool> {
    with(&[])
}

/// The same; `--mark` writes into pages of results that they are older than the code.
pub(crate) fn with(args: &[String]) -> Result<bool> {
    let mark = match args {
        [] => false,
        [arg] if arg == "--mark" => true,
        _ => bail!("tidy takes --mark and nothing else"),
    };
    age::report(mark)?;
    let mut broken = Vec::new();
    files::check(&mut broken)?;
    arrows::check(&mut broken)?;
    chart::check(&mut broken)?;
    circles::check(&mut broken)?;
    methods::check(&mut broken)?;
    msrv::check(&mut broken)?;
    papers::check(&mut broken)?;
    words::check(&mut broken)?;
    book::check(&mut broken)?;
    for line in &broken {
        say(&format!("tidy: {line}\n"));
    }
    Ok(broken.is_empty())
}
