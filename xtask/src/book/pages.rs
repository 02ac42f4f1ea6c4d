//! A page as a reader of Markdown sees it: where it links to, and what can be linked to in it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::shell::{quiet, root};

#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) text: String,
    pub(super) links: Vec<Link>,
    pub(super) anchors: Vec<String>,
    /// Its first heading.
    pub(super) title: String,
    /// Tags that a browser would take for its own, such as `<HOST>` outside of code.
    pub(super) tags: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) title: String,
    pub(super) to: String,
    /// Where it stands in the text, from `[` to `)`.
    pub(super) at: Range<usize>,
}

pub(super) fn is_page(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "md")
}

/// All pages by their names: those under `docs`, and those at the root.
pub(super) fn all() -> Result<BTreeMap<String, Page>> {
    let names = files()?;
    let ours = names.iter().filter(|name| is_page(name) && (name.starts_with("docs/") || !name.contains('/')));
    ours.map(|name| {
        let text = std::fs::read_to_string(root().join(name)).with_context(|| name.clone())?;
        Ok((name.clone(), Page::of(text)))
    })
    .collect()
}

/// Those of a folder that is no repository, with the names of all its files.
pub(super) fn of_folder(folder: &Path) -> Result<(BTreeMap<String, Page>, BTreeSet<String>)> {
    let (mut pages, mut files, mut open) = (BTreeMap::new(), BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(inside) = open.pop() {
        for entry in std::fs::read_dir(&inside)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            if is_page(&name) {
                pages.insert(name.clone(), Page::of(std::fs::read_to_string(&path)?));
            }
            files.insert(name);
        }
    }
    Ok((pages, files))
}

/// Every file of the repository that is there.
pub(super) fn files() -> Result<Vec<String>> {
    let files =
        quiet("git", &["ls-files", "--cached", "--others", "--exclude-standard"]).context("git ls-files failed")?;
    Ok(files.lines().filter(|name| root().join(name).is_file()).map(ToOwned::to_owned).collect())
}

impl Link {
    /// In the list of chapters: a name for those below, without a page of its own.
    pub(super) fn is_heading(&self) -> bool {
        self.to.is_empty()
    }
}

impl Page {
    pub(super) fn of(text: String) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        let mut open: Vec<Link> = Vec::new();
        for (event, at) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let heading = heading.take().unwrap_or_default();
                    page.anchors.push(unique(&page.anchors, anchor(&heading)));
                    if page.title.is_empty() {
                        page.title = heading;
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    open.push(Link { title: String::new(), to: dest_url.into_string(), at });
                }
                Event::End(TagEnd::Link | TagEnd::Image) => page.links.extend(open.pop()),
                Event::Text(part) | Event::Code(part) => {
                    let titles = open.iter_mut().map(|link| &mut link.title);
                    titles.chain(heading.as_mut()).for_each(|text| text.push_str(&part));
                }
                Event::Html(tag) | Event::InlineHtml(tag) if !tag.starts_with("<!--") => {
                    page.tags.push(tag.trim().to_owned());
                }
                _ => {}
            }
        }
        page.text = text;
        page
    }

    pub(super) fn line(&self, link: &Link) -> usize {
        self.text[..link.at.start].matches('\n').count() + 1
    }
}

/// What a heading is called in links, by GitHub and by mdBook alike.
fn anchor(heading: &str) -> String {
    let parts = heading.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then(|| letter.to_ascii_lowercase()),
    });
    parts.collect()
}

fn unique(known: &[String], anchor: String) -> String {
    let mut names = std::iter::once(anchor.clone()).chain((1..).map(|number| format!("{anchor}-{number}")));
    names.find(|name| !known.contains(name)).unwrap_or(anchor)
}

/// The file or folder of the repository that a link names, and the anchor in it; `None`: elsewhere.
pub(super) fn target(from: &str, to: &str) -> Option<(String, Option<String>)> {
    if to.contains("://") || to.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = to.split_once('#').map_or((to, None), |(path, anchor)| (path, Some(anchor.to_owned())));
    if path.is_empty() {
        return Some((from.to_owned(), anchor));
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    Some((parts.join("/"), anchor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_links_and_anchors() {
        let text = "# A `b` & c\n[x](y.md#z) <HOST>\n```\n[no](no.md)\n# no\n```\n## A b  c\n![p](p.svg)\n";
        let page = Page::of(text.to_owned());
        assert_eq!(page.title, "A b & c");
        assert_eq!(page.anchors, ["a-b--c", "a-b--c-1"]);
        let links: Vec<_> =
            page.links.iter().map(|link| (link.title.as_str(), link.to.as_str(), page.line(link))).collect();
        assert_eq!(links, [("x", "y.md#z", 2), ("p", "p.svg", 8)]);
        assert_eq!(page.tags, ["<HOST>"]);
    }

    #[test]
    fn links_are_relative_to_their_page() {
        let is = |to, path: &str, anchor: Option<&str>| {
            assert_eq!(target("docs/guide/a.md", to), Some((path.to_owned(), anchor.map(ToOwned::to_owned))), "{to}");
        };
        is("b.md#c", "docs/guide/b.md", Some("c"));
        is("../../README.md", "README.md", None);
        is("#here", "docs/guide/a.md", Some("here"));
        is("../../../out.md", "../out.md", None);
        assert_eq!(target("a.md", "https://example.org/"), None);
    }
}
