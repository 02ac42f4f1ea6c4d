//! Per-scenario details: everything that the main table leaves out, and the scenario's own
//! pictures.

use std::collections::BTreeMap;

use super::markup::Html;
use super::{Figure, Pictures, by_scenario, figures};
use crate::evaluation::{EvaluationDocument, EvaluationRow, Status, World};
use crate::picture::{Quantity, SeriesStyles};

/// Most scenarios with details, most rows and pictures in one of them.
const SCENARIOS_MOST: usize = 150;
const ROWS_MOST: usize = 200;
const PICTURES_MOST: usize = 8;

pub(super) fn write(out: &mut Html, document: &EvaluationDocument, pictures: &Pictures, styles: &SeriesStyles) {
    let mut figures: BTreeMap<&str, Vec<&Figure>> = BTreeMap::new();
    for figure in &pictures.figures {
        if let Some(scenario) = &figure.scenario {
            figures.entry(scenario).or_default().push(figure);
        }
    }
    let groups = by_scenario(&document.rows);
    out.raw("<section id=\"scenarios\"><h2>Scenario by scenario</h2>");
    if groups.is_empty() {
        out.raw("<p class=\"soft\">None.</p>");
    }
    // Those with pictures first come first served: what is left out is rows that the main table
    // has.
    let mut left_out = 0usize;
    for (index, (scenario, rows)) in groups.iter().enumerate() {
        let own = figures.remove(scenario).unwrap_or_default();
        if index >= SCENARIOS_MOST || out.len() > figures::SIZE_MOST {
            left_out += 1;
            continue;
        }
        one(out, scenario, rows, &own, styles);
    }
    if left_out > 0 {
        out.raw(&format!(
            "<p>The details of {left_out} more scenarios are left out; the other formats have their rows.</p>"
        ));
    }
    let unmatched_replies: usize = figures.values().map(Vec::len).sum();
    if unmatched_replies > 0 {
        out.raw(&format!("<p>{unmatched_replies} pictures belong to scenarios without rows and are left out.</p>"));
    }
    out.raw("</section>");
}

fn one(out: &mut Html, scenario: &str, rows: &[&EvaluationRow], own: &[&Figure], styles: &SeriesStyles) {
    out.raw("<details><summary>");
    out.text(scenario);
    out.raw("<span>");
    let mut words = Vec::new();
    let truth = rows.iter().find_map(|row| Some((row.metric, row.summary.truth_bps?)));
    if let Some((metric, truth)) = truth {
        words.push(format!("{} {}", super::findings::words(metric), Quantity::from(metric.unit()).print(truth)));
    }
    words.extend(super::findings::closest_in_words(rows));
    if !own.is_empty() {
        words.push(format!("pictures: {}", own.len()));
    }
    out.text(&words.join("; "));
    out.raw("</span></summary>");
    table(out, rows);
    if !own.is_empty() {
        figures::grid(out, own, PICTURES_MOST, styles);
    }
    out.raw("</details>");
}

fn table(out: &mut Html, rows: &[&EvaluationRow]) {
    out.raw(concat!(
        "<div class=\"wide\"><table><thead><tr><th>method</th><th>world</th><th>status</th><th class=\"n\">bias</th>",
        "<th class=\"n\">spread<br/>(p90 − p10)</th><th class=\"n\">95 % within</th><th class=\"n\">packets</th>",
        "<th class=\"n\">highest rate<br/>over 10 ms</th><th class=\"n\">runs judged<br/>/ not</th>",
        "<th class=\"n\">paper’s time,<br/>packets, octets</th><th>remarks</th></tr></thead><tbody>",
    ));
    for row in rows.iter().take(ROWS_MOST) {
        write_row(out, row);
    }
    out.raw("</tbody></table></div>");
    if rows.len() > ROWS_MOST {
        out.raw(&format!("<p>{} more rows are left out here.</p>", rows.len() - ROWS_MOST));
    }
}

fn write_row(out: &mut Html, row: &EvaluationRow) {
    let has_runs = super::table::has_runs(row);
    out.raw(if has_runs { "<tr>" } else { "<tr class=\"off\">" });
    out.raw("<td class=\"k\">");
    out.text(&row.method);
    if let Some(hop) = row.hop {
        out.text(&format!(", hop {hop}"));
    }
    if !row.params.is_empty() {
        let params: Vec<String> = row.params.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        out.element("span", "sub", &params.join(", "));
    }
    out.raw("</td>");
    out.element("td", "", row.world.map_or("–", World::name));
    let status = match row.status {
        Status::Measured => "measured",
        other => other.words(),
    };
    out.element("td", "", status);
    let summary = &row.summary;
    let print =
        |quantity: Quantity, value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| quantity.print(value));
    out.element("td", "n", &print(Quantity::Ratio, summary.mean_error_ratio));
    out.element("td", "n", &print(Quantity::Ratio, summary.error_spread_ratio));
    out.element("td", "n", &print(Quantity::Ratio, summary.p95_abs_error_ratio));
    out.element("td", "n", &print(Quantity::Count, summary.median_packets));
    let peak = summary.peak_rate_bps.map(|bps| bps as f64);
    out.element("td", "n", &print(Quantity::Rate, peak));
    let judged = match (row.judged_runs, row.not_judged_runs) {
        (None, None) => "–".to_owned(),
        (judged, unjudged) => format!("{} / {}", judged.unwrap_or(0), unjudged.unwrap_or(0)),
    };
    out.element("td", "n", &judged);
    out.element("td", "n", &papers_cost(row));
    let mut remarks: Vec<&str> = Vec::new();
    remarks.extend(row.why.as_deref());
    remarks.extend(row.published.as_ref().map(|published| published.note.as_str()));
    remarks.retain(|remark| !remark.is_empty());
    out.element("td", "k", &remarks.join(" · "));
    out.raw("</tr>");
}

fn papers_cost(row: &EvaluationRow) -> String {
    let Some(published) = &row.published else {
        return String::new();
    };
    let time = published.seconds.map(|seconds| Quantity::Time.print(seconds * 1e9));
    let packets = published.packets.map(|packets| packets.to_string());
    let octets = published.octets.map(|octets| Quantity::Octets.print(octets as f64));
    [time, packets, octets].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
