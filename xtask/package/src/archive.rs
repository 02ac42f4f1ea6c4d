//! The archive for every Linux: unpacked anywhere, it runs where it lies.

use anyhow::Result;

use crate::contents::{self, Own, UNITS, file, packaging, section};
use crate::release::Release;
use crate::tree::{Tree, xz};

pub(crate) fn make(release: &Release, program: &[u8]) -> Result<Vec<u8>> {
    let mut tree = Tree::default();
    let own = Own::of(program)?;
    tree.add_program("narrows", program);
    for (name, page) in own.man {
        tree.add(format!("man/man{}/{name}", section(&name)), page);
    }
    tree.add("completions/narrows.bash", own.bash);
    tree.add("completions/_narrows", own.zsh);
    tree.add("completions/narrows.fish", own.fish);
    for name in UNITS.into_iter().chain(["narrows.sysusers", "narrows-watch.tmpfiles"]) {
        tree.add(name, packaging(name)?);
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"] {
        tree.add(name, file(name)?);
    }
    contents::documents(&mut tree, "docs")?;
    contents::paths(&mut tree, "share")?;
    xz(&tree.tar(&format!("{}/", release.archive_folder()), release.epoch)?)
}
