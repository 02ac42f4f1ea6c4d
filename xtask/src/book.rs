//! `cargo xtask book`: checks the pages, puts them together with the generated reference, and has
//! mdBook make `target/book/html` of them.
//!
//! ```text
//! docs/SUMMARY.md ─┬─ pages.rs   every page, its links and its anchors
//!                  ├─ check.rs   no page without a chapter, no link to nowhere: part of tidy
//!                  └─ stage.rs   target/book/src: pages, pictures, and what reference.rs generates
//! xtask/book                     mdBook, in a program of its own, reads that folder
//! ```

mod caveats;
mod check;
mod pages;
mod reference;
mod schemas;
mod stage;

use anyhow::Result;

use crate::shell::{built_program, root, say, shown};

pub(crate) use check::check;

/// Where the book is put together; `html` in it is what readers open.
const FOLDER: &str = "target/book";

/// mdBook, as a program of its own, so that no other command builds what only the book needs.
const BUILDER: [&str; 8] = [
    "run",
    "--quiet",
    "--locked",
    "--manifest-path",
    "xtask/book/Cargo.toml",
    "--target-dir",
    "target/book-builder",
    "--",
];

/// `--program PATH` names a program that is built already: the reference is what it says of itself.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let Some(program) = built_program("book", args)? else {
        return Ok(false);
    };
    let mut broken = Vec::new();
    check(&mut broken)?;
    let folder = root().join(FOLDER);
    stage::write(&folder, &program)?;
    check::staged(&folder.join("src"), &mut broken)?;
    for line in &broken {
        say(&format!("book: {line}\n"));
    }
    if !broken.is_empty() {
        return Ok(false);
    }
    let built = shown("cargo", &[&BUILDER[..], &[FOLDER]].concat(), &[])?;
    if built {
        say(&format!("{FOLDER}/html/index.html\n"));
    }
    Ok(built)
}
