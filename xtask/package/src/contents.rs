//! What every package holds, and where each kind of system looks for it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::shell::{output, output_of, root};
use crate::tree::{Tree, gzip};

/// The services, all of them off until they are enabled.
pub(crate) const UNITS: [&str; 4] =
    ["narrows-serve.service", "narrows-watch.service", "narrows-hub.service", "narrows-agent.service"];

/// Where a system looks.
pub(crate) struct Layout {
    pub(crate) unit: &'static str,
    pub(crate) zsh: &'static str,
}

/// What the program says of itself.
pub(crate) struct Own {
    /// Name and roff of each page.
    pub(crate) man: Vec<(String, Vec<u8>)>,
    pub(crate) bash: String,
    pub(crate) zsh: String,
    pub(crate) fish: String,
}

/// What a distribution's package installs, but for its own notices.
pub(crate) fn installed(program: &[u8], layout: &Layout) -> Result<Tree> {
    let mut tree = Tree::default();
    let own = Own::of(program)?;
    tree.add_program("usr/bin/narrows", program);
    for (name, page) in &own.man {
        tree.add(format!("usr/share/man/man{}/{name}.gz", section(name)), gzip(page)?);
    }
    tree.add("usr/share/bash-completion/completions/narrows", own.bash);
    tree.add(format!("{}/_narrows", layout.zsh), own.zsh);
    tree.add("usr/share/fish/vendor_completions.d/narrows.fish", own.fish);
    for unit in UNITS {
        tree.add(format!("{}/{unit}", layout.unit), packaging(unit)?);
    }
    tree.add("usr/lib/sysusers.d/narrows.conf", packaging("narrows.sysusers")?);
    tree.add("usr/lib/tmpfiles.d/narrows.conf", packaging("narrows-watch.tmpfiles")?);
    paths(&mut tree, "usr/share/narrows")?;
    documents(&mut tree, "usr/share/doc/narrows")?;
    Ok(tree)
}

/// Paths, plans: `narrows evaluate /usr/share/narrows/plans/smoke.toml`, which name each other; and
/// what Grafana and Prometheus read.
pub(crate) fn paths(tree: &mut Tree, to: &str) -> Result<()> {
    for folder in ["plans", "scenarios", "hosts"] {
        let from = root().join(folder);
        if from.is_dir() {
            tree.add_folder(&from, &format!("{to}/{folder}"))?;
        }
    }
    for name in ["dist/grafana.json", "dist/rules.yml"] {
        tree.add(format!("{to}/{name}"), file(name)?);
    }
    Ok(())
}

/// What a user reads.
pub(crate) fn documents(tree: &mut Tree, to: &str) -> Result<()> {
    tree.add_folder(&root().join("docs/guide"), &format!("{to}/guide"))?;
    for page in ["README.md", "GLOSSARY.md", "SECURITY.md"] {
        tree.add(format!("{to}/{page}"), file(page)?);
    }
    tree.add(format!("{to}/third-party.txt"), third_party()?);
    Ok(())
}

/// Every crate that is linked in: name, version, licence, source.
fn third_party() -> Result<String> {
    let args = ["tree", "--locked", "--package", "narrows", "--features", "full", "--edges", "normal,no-proc-macro"];
    let shape = ["--prefix", "none", "--no-dedupe", "--format", "{p}  {l}  {r}"];
    let text = output("cargo", &[&args[..], &shape].concat())?;
    // Our own crates stand with their folder.
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.contains(" (/")).collect();
    lines.sort_unstable();
    lines.dedup();
    Ok(format!("{}\n", lines.join("\n")))
}

pub(crate) fn packaging(name: &str) -> Result<String> {
    file(&format!("packaging/{name}"))
}

pub(crate) fn file(name: &str) -> Result<String> {
    std::fs::read_to_string(root().join(name)).with_context(|| format!("cannot read {name}"))
}

/// The digit after the last dot of a manual page.
pub(crate) fn section(page: &str) -> &str {
    page.rsplit('.').next().unwrap_or("1")
}

impl Own {
    /// Asks the program.
    pub(crate) fn of(program: &[u8]) -> Result<Self> {
        let folder = root().join("target/packager/own");
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let man = folder.join("man");
        std::fs::create_dir_all(&man)?;
        let path = folder.join("narrows");
        std::fs::write(&path, program)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        let ask = |args: &[&str]| output_of(Command::new(&path).args(args));
        let own = Self {
            man: pages(&path, &man)?,
            bash: ask(&["completions", "bash"])?,
            zsh: ask(&["completions", "zsh"])?,
            fish: ask(&["completions", "fish"])?,
        };
        std::fs::remove_dir_all(&folder)?;
        Ok(own)
    }
}

/// A page for each subcommand where the program writes them, else the one page that it prints.
fn pages(program: &Path, folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let written = output_of(Command::new(program).arg("man").arg("--out").arg(folder));
    if written.is_err() {
        let page = output_of(Command::new(program).arg("man"))?;
        return Ok(vec![("narrows.1".to_owned(), page.into_bytes())]);
    }
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        pages.push((entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?));
    }
    ensure!(!pages.is_empty(), "narrows man --out wrote nothing");
    pages.sort();
    Ok(pages)
}
