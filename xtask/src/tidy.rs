//! The rules of the house that no compiler checks.

mod arrows;
mod circles;
mod files;
mod methods;
mod msrv;
mod words;

use anyhow::Result;

use crate::shell::say;

/// Runs every rule, prints what breaks one, and returns whether none is broken.
pub(crate) fn run() -> Result<bool> {
    let mut broken = Vec::new();
    files::check(&mut broken)?;
    arrows::check(&mut broken)?;
    circles::check(&mut broken)?;
    methods::check(&mut broken)?;
    msrv::check(&mut broken)?;
    words::check(&mut broken)?;
    for line in &broken {
        say(&format!("tidy: {line}\n"));
    }
    Ok(broken.is_empty())
}
