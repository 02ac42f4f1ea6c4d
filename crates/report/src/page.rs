//! One self-contained HTML page: what a plan found, in findings, tables and pictures.
//!
//! The page asks for nothing outside of itself, works from a disk and without scripts (a short one
//! adds sorting and filtering), prints, and follows dark and light settings. Text from plans,
//! scenarios and other programs is escaped. It is well-formed XML apart from its document type, so
//! that other programs can read it. The same input gives the same bytes.

mod details;
mod figures;
mod findings;
mod markup;
mod table;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::evaluation::{EvaluationDocument, EvaluationRow, RowKind, Status, World};
use crate::picture::{self, Picture, SeriesStyles};
use markup::{Html, escape};

/// What goes with the rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Pictures {
    /// In the order in which the page shows them within their sections.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// How to run it again.
    #[serde(default)]
    pub reproduction: Reproduction,
}

/// A picture with the words around it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The scenario whose details show it; `None` puts it into the section of its kind.
    #[serde(default)]
    pub scenario: Option<String>,
    /// What to see in it, in one or two sentences; may be empty.
    #[serde(default)]
    pub caption: String,
    /// The picture.
    pub picture: Picture,
}

/// What it takes to run a plan again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reproduction {
    /// The command line; empty if not known.
    #[serde(default)]
    pub command: String,
    /// Seed of the first run; run *k*, counted from zero, has this plus *k*.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Name and version of the program.
    #[serde(default)]
    pub program: String,
    /// Facts about the machine, the kernel and the peers, a line each.
    #[serde(default)]
    pub machine: Vec<String>,
}

/// The page of `document` with these pictures. Values over truths and cost over error are drawn
/// from the rows themselves.
pub fn html(document: &EvaluationDocument, pictures: &Pictures) -> String {
    let mut out = Html::default();
    let styles = SeriesStyles::of_methods(document.rows.iter().map(|row| row.method.as_str()));
    head(&mut out, document);
    title(&mut out, document);
    findings::write(&mut out, document);
    table::write(&mut out, document);
    figures::write(&mut out, document, pictures, &styles);
    details::write(&mut out, document, pictures, &styles);
    caveats(&mut out, document);
    reproduce(&mut out, document, &pictures.reproduction);
    out.raw("</main><script>");
    out.raw(SCRIPT);
    out.raw("</script></body></html>\n");
    out.into_string()
}

const STYLE: &str = include_str!("page/style.css");

/// Holds neither "less than" nor an ampersand, so that the page stays well-formed XML; a test sees
/// to it.
const SCRIPT: &str = include_str!("page/script.js");

fn head(out: &mut Html, document: &EvaluationDocument) {
    out.raw(concat!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>",
        "<meta name=\"color-scheme\" content=\"light dark\"/>",
        // Whatever a name may carry: the page fetches nothing.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; ",
        "script-src 'unsafe-inline'\"/>",
    ));
    out.element("title", "", &format!("{}: accuracy", document.plan));
    out.raw("<style>");
    out.raw(STYLE);
    out.raw(&picture::css());
    out.raw("</style></head><body><main>");
}

fn title(out: &mut Html, document: &EvaluationDocument) {
    out.raw("<header>");
    out.element("h1", "", &document.plan);
    if !document.about.is_empty() {
        out.element("p", "lead", &document.about);
    }
    if !document.source.is_empty() {
        out.raw("<p class=\"soft\">Published numbers: ");
        out.text(&document.source);
        out.raw("</p>");
    }
    out.raw("<dl class=\"facts\">");
    let rows = &document.rows;
    let scenarios: BTreeSet<&str> = rows.iter().map(|row| row.scenario.as_str()).collect();
    let of_kind = |kind| {
        let named = rows.iter().filter(|row| row.kind == kind);
        named.map(|row| row.method.as_str()).collect::<BTreeSet<_>>().len()
    };
    let worlds: BTreeSet<World> = rows.iter().filter_map(|row| row.world).collect();
    let worlds: Vec<&str> = worlds.into_iter().map(World::name).collect();
    let runs: usize = rows.iter().map(|row| row.summary.runs).fold(0, usize::saturating_add);
    for (name, value) in [
        ("scenarios", scenarios.len().to_string()),
        ("methods", of_kind(RowKind::Method).to_string()),
        ("other programs", of_kind(RowKind::ExternalTool).to_string()),
        ("worlds", if worlds.is_empty() { "none".to_owned() } else { worlds.join(", ") }),
        ("rows", rows.len().to_string()),
        ("runs", runs.to_string()),
    ] {
        out.raw("<div>");
        out.element("dt", "", name);
        out.element("dd", "", &value);
        out.raw("</div>");
    }
    out.raw("</dl>");
    out.raw(concat!(
        "<nav><a href=\"#findings\">Findings</a><a href=\"#table\">Table</a><a href=\"#pictures\">Pictures</a>",
        "<a href=\"#scenarios\">Scenarios</a><a href=\"#caveats\">Caveats</a><a href=\"#again\">Run it again</a></nav></header>",
    ));
    if !document.notes.is_empty() {
        out.raw("<section class=\"notes\"><h2>Before comparing</h2><ul>");
        for note in &document.notes {
            out.element("li", "", note);
        }
        out.raw("</ul></section>");
    }
}

fn caveats(out: &mut Html, document: &EvaluationDocument) {
    out.raw("<section id=\"caveats\"><h2>How to read this, and what it does not say</h2><ul>");
    for text in [
        "Errors are relative to the narrow link’s capacity; of metrics that are no rates, to the truth; of rows about one hop, to \
         that hop’s rate. Where the paper’s error is computed here, it is relative to the paper’s own truth.",
        "Wrong and confident: a run whose interval misses the truth by more than a tenth of that scale, as a share of all runs. \
         Coverage: the share of the runs with a number whose interval holds the truth.",
        "The simulator keeps perfect time and plays the scenario exactly. The lab has real kernels, real clocks and one machine; what \
         differs between the two is the hosts’ doing, unless a scenario says otherwise.",
        "A published number was measured on another path, of which the scenario is a model: it stands beside ours, not against it.",
    ] {
        out.element("li", "", text);
    }
    let judged = sum(document, |row| row.judged_runs);
    let unjudged = sum(document, |row| row.not_judged_runs);
    if judged + unjudged > 0 {
        out.raw("<li>");
        out.text(&format!(
            "Of {} runs in real time, {judged} are judged. The machine kept no time in {unjudged}, and no number here rests on those.",
            judged.saturating_add(unjudged)
        ));
        out.raw("</li>");
    }
    for (status, words) in [
        (Status::NotYet, "name methods that do not exist yet"),
        (Status::NotInstalled, "need a program that is not installed here"),
        (Status::NotRun, "ask for a world that is not to be had here"),
        (Status::Failed, "failed in every run"),
        (Status::Partial, "have fewer runs than were asked for"),
    ] {
        let count = document.rows.iter().filter(|row| row.status == status).count();
        if count > 0 {
            out.element("li", "", &format!("{count} of {} rows {words}.", document.rows.len()));
        }
    }
    out.raw("</ul></section>");
}

fn sum(document: &EvaluationDocument, field: impl Fn(&EvaluationRow) -> Option<usize>) -> usize {
    document.rows.iter().filter_map(field).fold(0, usize::saturating_add)
}

fn reproduce(out: &mut Html, document: &EvaluationDocument, how: &Reproduction) {
    out.raw("<section id=\"again\"><h2>Run it again</h2>");
    if !how.command.is_empty() {
        out.element("pre", "", &how.command);
    }
    out.raw("<ul>");
    if let Some(seed) = how.seed {
        let text = format!(
            "The first run of each row has seed {seed}, the next ones {}, and so on. In the simulator the same seed gives the same bytes.",
            seed.saturating_add(1)
        );
        out.element("li", "", &text);
    }
    if !how.program.is_empty() {
        out.element("li", "", &how.program);
    }
    for line in &how.machine {
        out.element("li", "", line);
    }
    out.element("li", "", &format!("Row document: {}.", document.schema));
    out.raw("</ul></section>");
}

/// Rows with the same scenario, in the order of first appearance.
fn by_scenario(rows: &[EvaluationRow]) -> Vec<(&str, Vec<&EvaluationRow>)> {
    let mut index = std::collections::BTreeMap::new();
    let mut groups: Vec<(&str, Vec<&EvaluationRow>)> = Vec::new();
    for row in rows {
        let at = *index.entry(row.scenario.as_str()).or_insert_with(|| {
            groups.push((row.scenario.as_str(), Vec::new()));
            groups.len() - 1
        });
        if let Some((_, group)) = groups.get_mut(at) {
            group.push(row);
        }
    }
    groups
}

#[cfg(test)]
mod tests;
