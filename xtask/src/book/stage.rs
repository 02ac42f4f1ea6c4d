//! The folder that mdBook reads: the pages where they are in the repository, the reference beside
//! them, and links to anything else as links to the repository.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::check::SUMMARY;
use super::pages::{self, Page};
use super::reference;
use crate::shell::root;

/// Where this line stands in the list of chapters, the reference follows.
const GENERATED: &str = "<!-- generated reference -->";

/// A page that is generated, and how deep its chapter is.
#[derive(Debug)]
pub(super) struct Generated {
    pub(super) depth: usize,
    pub(super) title: String,
    pub(super) name: String,
    pub(super) text: String,
}

pub(super) fn write(folder: &Path, program: &str) -> Result<()> {
    let source = folder.join("src");
    if source.exists() {
        std::fs::remove_dir_all(&source)?;
    }
    let pages = pages::all()?;
    let url = repository()?;
    for (name, page) in pages.iter().filter(|(name, _)| *name != SUMMARY) {
        file(&source.join(staged(name)), rewritten(name, page, &pages, &url).as_bytes())?;
    }
    for name in pages::files()?.iter().filter(|name| name.starts_with("docs/") && !pages::is_page(name)) {
        file(&source.join(name), &std::fs::read(root().join(name))?)?;
    }
    let generated = reference::pages(program)?;
    for page in &generated {
        file(&source.join(&page.name), page.text.as_bytes())?;
    }
    let summary = pages.get(SUMMARY).context(SUMMARY)?;
    file(&source.join("SUMMARY.md"), chapters(summary, &generated)?.as_bytes())?;
    for name in ["book.toml", "pages.css"] {
        file(&folder.join(name), &std::fs::read(root().join("xtask/book").join(name))?)?;
    }
    Ok(())
}

fn file(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, content).with_context(|| path.display().to_string())
}

/// mdBook opens a folder by its `index`.
fn staged(name: &str) -> String {
    name.strip_suffix("README.md").map_or_else(|| name.to_owned(), |folder| format!("{folder}index.md"))
}

/// A page whose links work in the book. A link that is called as its file is gets the title of the
/// page instead.
fn rewritten(name: &str, page: &Page, pages: &BTreeMap<String, Page>, url: &str) -> String {
    let mut text = page.text.clone();
    // From the end, so that places before stay where they are.
    for link in page.links.iter().rev() {
        let Some((path, _)) = pages::target(name, &link.to) else {
            continue;
        };
        let known = pages.get(&path);
        let to = match known {
            Some(_) => link.to.replace("README.md", "index.md"),
            None if path.starts_with("docs/") && !root().join(&path).is_dir() => continue,
            None => format!("{url}/{path}"),
        };
        let title =
            known.map(|page| &page.title).filter(|_| pages::is_page(&link.title) && link.to.ends_with(&link.title));
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            text.replace_range(link.at.clone(), &format!("[{title}]({to})"));
        } else if let Some(at) = text[link.at.clone()].rfind(&link.to) {
            let at = link.at.start + at;
            text.replace_range(at..at + link.to.len(), &to);
        }
    }
    text
}

/// The list of chapters as mdBook reads it from the folder above, with the reference in its place.
fn chapters(summary: &Page, generated: &[Generated]) -> Result<String> {
    let mut text = summary.text.clone();
    for link in summary.links.iter().rev().filter(|link| !link.is_heading()) {
        let (path, _) = pages::target(SUMMARY, &link.to).with_context(|| link.to.clone())?;
        text.replace_range(link.at.clone(), &format!("[{}]({})", link.title, staged(&path)));
    }
    let mut list = String::new();
    for page in generated {
        let _ = writeln!(list, "{:indent$}- [{}]({})", "", page.title, page.name, indent = page.depth * 2);
    }
    let (before, after) = text.split_once(GENERATED).with_context(|| format!("{SUMMARY} has no line {GENERATED}"))?;
    Ok(format!("{before}{}{after}", list.trim_end()))
}

/// Where the code can be read: what the manifest says.
fn repository() -> Result<String> {
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml"))?.parse()?;
    let url = manifest["workspace"]["package"]["repository"].as_str().context("no repository in Cargo.toml")?;
    Ok(format!("{url}/tree/main"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_lead_to_the_repository() {
        let text = "[a](../crates/x) ![b](b.svg) [c](../README.md#d) [e](#e) [p.md](p.md) [f](../crates/x)\n\n# P\n";
        let pages = [("README.md", ""), ("docs/p.md", text)];
        let pages: BTreeMap<String, Page> =
            pages.into_iter().map(|(name, text)| (name.to_owned(), Page::of(text.to_owned()))).collect();
        assert_eq!(
            rewritten("docs/p.md", &pages["docs/p.md"], &pages, "U"),
            "[a](U/crates/x) ![b](b.svg) [c](../index.md#d) [e](#e) [P](p.md) [f](U/crates/x)\n\n# P\n"
        );
    }

    #[test]
    fn the_reference_stands_where_its_line_does() {
        let summary = format!("# Summary\n\n[Front](../README.md)\n\n# R\n\n- [A](a.md)\n{GENERATED}\n");
        let page = Generated { depth: 1, title: "B".to_owned(), name: "b.md".to_owned(), text: String::new() };
        assert_eq!(
            chapters(&Page::of(summary), &[page]).unwrap(),
            "# Summary\n\n[Front](index.md)\n\n# R\n\n- [A](docs/a.md)\n  - [B](b.md)\n"
        );
    }
}
