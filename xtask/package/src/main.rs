//! `cargo xtask package [--test]`: builds the program and makes its packages in `target/package`.
//!
//! | artefact | file | tested by |
//! |---|---|---|
//! | `narrows_VERSION-1_ARCH.deb` | `deb.rs` | `tests/deb.rs` |
//! | `narrows-VERSION-1.ARCH.rpm` | `rpm.rs` | `tests/rpm.rs` |
//! | `narrows-VERSION-ARCH-linux.tar.xz`, static | `archive.rs` | `tests/archive.rs` |
//! | `narrows-VERSION-ARCH.oci`, an OCI layout | `oci.rs` | `tests/oci.rs` |
//!
//! **Invariant:** an artefact is a function of the commit, the compiler and the system's C library:
//! times come from the commit, owners are root, and entries are sorted.

mod archive;
mod build;
mod contents;
mod deb;
mod linked;
mod oci;
mod release;
mod rpm;
mod shell;
mod tests;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::build::Programs;
use crate::release::Release;
use crate::shell::say;
use crate::tree::Tree;

const USAGE: &str = "\
cargo xtask package          make target/package/narrows_*.deb, *.rpm, *.tar.xz (static) and *.oci
cargo xtask package --test   make them twice, then install each into an empty root and try it there
                    --programs LINKED STATIC   of programs that are built already
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    let test = args.first() == Some(&"--test");
    args.drain(..usize::from(test));
    let built = match args[..] {
        [] => build::programs(),
        ["--programs", linked, alone] => build::read(linked, alone),
        _ => {
            say(USAGE);
            return ExitCode::from(2);
        }
    };
    match built.and_then(|programs| package(&programs, test)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("package: {error:#}\n"));
            ExitCode::FAILURE
        }
    }
}

fn package(programs: &Programs, test: bool) -> Result<bool> {
    let release = Release::of_the_tree()?;
    let folder = shell::root().join("target/package");
    let artefacts = Artefacts::make(&release, programs)?;
    if test {
        // Of the same programs: that the compiler repeats itself is not ours to test each time.
        let again = Artefacts::make(&release, programs)?;
        ensure!(again == artefacts, "the packages differ from those made a moment ago");
        say("made twice: every octet is the same\n");
    }
    artefacts.write(&folder)?;
    if test { tests::all(&release, &folder) } else { Ok(true) }
}

/// What is made, by its name in the folder.
#[derive(PartialEq)]
struct Artefacts {
    files: Vec<(String, Vec<u8>)>,
    oci: (String, Tree),
}

impl Artefacts {
    fn make(release: &Release, programs: &Programs) -> Result<Self> {
        let files = vec![
            (release.deb(), deb::make(release, &programs.linked)?),
            (release.rpm(), rpm::make(release, &programs.linked)?),
            (release.archive(), archive::make(release, &programs.alone)?),
        ];
        Ok(Self { files, oci: (release.oci(), oci::make(release, &programs.alone)?) })
    }

    /// Replaces what earlier runs left: stale packages beside fresh ones help nobody.
    fn write(&self, folder: &Path) -> Result<()> {
        if folder.exists() {
            std::fs::remove_dir_all(folder).with_context(|| format!("cannot clear {}", folder.display()))?;
        }
        std::fs::create_dir_all(folder)?;
        for (name, octets) in &self.files {
            std::fs::write(folder.join(name), octets)?;
            say(&format!("{:>10} octets  {}\n", octets.len(), relative(&folder.join(name)).display()));
        }
        let (name, layout) = &self.oci;
        layout.unpack(&folder.join(name))?;
        say(&format!("{:>10} octets  {}/\n", layout.octets(), relative(&folder.join(name)).display()));
        Ok(())
    }
}

fn relative(path: &Path) -> PathBuf {
    path.strip_prefix(shell::root()).unwrap_or(path).to_path_buf()
}
