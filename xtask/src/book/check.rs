//! What no page may do: stand in no chapter, or link to what is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use super::pages::{self, Page};

pub(super) const SUMMARY: &str = "docs/SUMMARY.md";

/// Names every page under `docs` without a chapter or with two, and every link that leads nowhere.
pub(crate) fn check(broken: &mut Vec<String>) -> Result<()> {
    let pages = pages::all()?;
    let files: BTreeSet<String> = pages::files()?.into_iter().collect();
    chapters(&pages, broken);
    for (name, page) in &pages {
        links(name, page, &pages, &files, broken);
        broken.extend(page.tags.iter().map(|tag| format!("{name}: a browser takes {tag} for a tag of HTML")));
    }
    Ok(())
}

/// The same for the folder that mdBook reads, where the reference is a part of the pages.
pub(super) fn staged(folder: &Path, broken: &mut Vec<String>) -> Result<()> {
    let (pages, files) = pages::of_folder(folder)?;
    pages
        .iter()
        .filter(|(name, _)| *name != "SUMMARY.md")
        .for_each(|(name, page)| links(name, page, &pages, &files, broken));
    Ok(())
}

fn chapters(pages: &BTreeMap<String, Page>, broken: &mut Vec<String>) {
    let Some(summary) = pages.get(SUMMARY) else {
        broken.push(format!("{SUMMARY} is missing"));
        return;
    };
    let mut named = BTreeSet::new();
    for link in summary.links.iter().filter(|link| !link.is_heading()) {
        if let Some((page, _)) = pages::target(SUMMARY, &link.to)
            && !named.insert(page)
        {
            broken.push(format!("{SUMMARY}:{}: {} is a second chapter of one page", summary.line(link), link.to));
        }
    }
    let docs = pages.keys().filter(|name| name.starts_with("docs/") && *name != SUMMARY);
    broken
        .extend(docs.filter(|name| !named.contains(*name)).map(|name| format!("{name} is in no chapter of {SUMMARY}")));
}

fn links(name: &str, page: &Page, pages: &BTreeMap<String, Page>, files: &BTreeSet<String>, broken: &mut Vec<String>) {
    for link in &page.links {
        let Some((path, anchor)) = pages::target(name, &link.to) else {
            continue;
        };
        let is_folder =
            || files.range(format!("{path}/")..).next().is_some_and(|file| file.starts_with(&format!("{path}/")));
        let missing = match (pages.get(&path), anchor) {
            (Some(page), Some(anchor)) => !page.anchors.contains(&anchor),
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (None, None) => !files.contains(&path) && !is_folder(),
        };
        if missing {
            broken.push(format!("{name}:{}: {} leads nowhere", page.line(link), link.to));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(pages: &[(&str, &str)]) -> Vec<String> {
        let pages: BTreeMap<String, Page> =
            pages.iter().map(|(name, text)| ((*name).to_owned(), Page::of((*text).to_owned()))).collect();
        let files = ["docs/a.svg".to_owned(), "plans/x.toml".to_owned()].into();
        let mut broken = Vec::new();
        chapters(&pages, &mut broken);
        for (name, page) in &pages {
            links(name, page, &pages, &files, &mut broken);
        }
        broken
    }

    #[test]
    fn every_page_is_in_one_chapter() {
        let twice = "- [A](a.md)\n- [A again](a.md)\n";
        let found = faults(&[(SUMMARY, twice), ("docs/a.md", "# A\n"), ("docs/b.md", "# B\n"), ("C.md", "")]);
        assert_eq!(
            found,
            [
                "docs/SUMMARY.md:2: a.md is a second chapter of one page",
                "docs/b.md is in no chapter of docs/SUMMARY.md"
            ]
        );
        assert_eq!(faults(&[("docs/a.md", "")])[..1], ["docs/SUMMARY.md is missing"]);
    }

    #[test]
    fn every_link_leads_somewhere() {
        let fine = "# A\n[](#a) [](a.svg) [](../plans/x.toml) [](../plans) [](https://example.org)\n";
        assert_eq!(faults(&[(SUMMARY, "- [A](a.md)\n"), ("docs/a.md", fine)]), [""; 0]);
        let wrong = "# A\n[](#b) [](b.svg) [](a.svg#x) [](../plan)\n";
        let found = faults(&[(SUMMARY, "- [A](a.md)\n"), ("docs/a.md", wrong)]);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(found[0], "docs/a.md:2: #b leads nowhere");
    }
}
