//! `cargo xtask book` runs this on the folder that it has put together: pages in, HTML out.
//!
//! mdBook is used as a library: its own program brings a server, a watcher and an async runtime
//! along.

use std::path::PathBuf;

use anyhow::{Context, Result};
use mdbook_driver::MDBook;

fn main() -> Result<()> {
    let folder: PathBuf = std::env::args_os().nth(1).context("which folder?")?.into();
    MDBook::load(folder)?.build()
}
