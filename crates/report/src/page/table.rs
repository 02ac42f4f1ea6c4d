//! The table of all rows: truth, ours, the paper's, error, coverage, cost.

use super::markup::Html;
use super::{by_scenario, escape};
use crate::evaluation::{EvaluationDocument, EvaluationRow, Published, RowKind, Status, World};
use crate::picture::Quantity;

/// Beyond this many rows the table is split and folded, one part per scenario.
const FLAT_MOST: usize = 300;

/// Beyond this many rows the page refers to the other formats.
const ROWS_MOST: usize = 8_000;

/// Errors from which on the small bar is full, whatever the largest is.
const BAR_MOST: f64 = 0.25;

/// Columns that only some plans need.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one column is there")]
struct Columns {
    scenario: bool,
    metric: bool,
    hop: bool,
    published: bool,
    /// The error that fills half of a bar.
    full: f64,
}

pub(super) fn write(out: &mut Html, document: &EvaluationDocument) {
    out.raw("<section id=\"table\"><h2>All rows</h2>");
    let rows = &document.rows;
    if rows.is_empty() {
        out.raw("<p class=\"soft\">The plan made no rows.</p></section>");
        return;
    }
    let first_metric = rows.first().map(|row| row.metric);
    let mut columns = Columns {
        scenario: true,
        metric: rows.iter().any(|row| Some(row.metric) != first_metric),
        hop: rows.iter().any(|row| row.hop.is_some()),
        published: rows.iter().any(|row| row.published.is_some()),
        full: largest_error(rows),
    };
    out.raw("<p class=\"soft\">");
    if let Some(metric) = first_metric.filter(|_| !columns.metric) {
        out.text(&format!("Metric: {}. ", super::findings::words(metric)));
    }
    out.text(&format!(
        "Medians over the runs of a row; a full bar is {}. Grey: not run.",
        Quantity::Ratio.print(columns.full)
    ));
    out.raw("</p>");
    if rows.len() <= FLAT_MOST {
        table(out, &rows.iter().collect::<Vec<_>>(), columns);
    } else {
        columns.scenario = false;
        let mut left = ROWS_MOST;
        for (scenario, group) in by_scenario(rows) {
            if left == 0 {
                break;
            }
            let shown = group.len().min(left);
            left -= shown;
            out.raw("<details><summary>");
            out.text(scenario);
            out.raw(&format!("<span>{} rows", group.len()));
            if let Some(text) = super::findings::closest_in_words(&group) {
                out.text(&format!("; {text}"));
            }
            out.raw("</span></summary>");
            table(out, group.get(..shown).unwrap_or_default(), columns);
            out.raw("</details>");
        }
        if rows.len() > ROWS_MOST {
            out.raw(&format!(
                "<p>{} rows are left out here; the CSV, JSON and Parquet files have them all.</p>",
                rows.len() - ROWS_MOST
            ));
        }
    }
    out.raw("</section>");
}

fn table(out: &mut Html, rows: &[&EvaluationRow], columns: Columns) {
    out.raw("<div class=\"wide\"><table class=\"sortable\"><thead><tr>");
    if columns.scenario {
        out.raw("<th>scenario</th>");
    }
    out.raw("<th>method</th><th>world</th>");
    if columns.metric {
        out.raw("<th>metric</th>");
    }
    if columns.hop {
        out.raw("<th class=\"n\">hop</th>");
    }
    out.raw("<th class=\"n\">truth</th><th class=\"n\">measured</th>");
    if columns.published {
        out.raw("<th class=\"n\">paper</th>");
    }
    out.raw("<th class=\"n\">error</th><th class=\"n\">90 %<br/>within</th>");
    if columns.published {
        out.raw("<th class=\"n\">paper’s<br/>error</th>");
    }
    out.raw(concat!(
        "<th class=\"n\">coverage</th><th class=\"n\">wrong and<br/>confident</th><th class=\"n\">incon-<br/>clusive</th>",
        "<th class=\"n\">sent</th><th class=\"n\">time</th><th class=\"n\">runs</th></tr></thead><tbody>",
    ));
    let mut before: Option<&str> = None;
    for row in rows {
        let repeats = before == Some(row.scenario.as_str());
        write_row(out, row, columns, repeats, before.is_some());
        before = Some(&row.scenario);
    }
    out.raw("</tbody></table></div>");
}

fn write_row(out: &mut Html, row: &EvaluationRow, columns: Columns, repeats: bool, any_before: bool) {
    out.raw(match (has_runs(row), any_before && !repeats) {
        (true, false) => "<tr>",
        (true, true) => "<tr class=\"first\">",
        (false, false) => "<tr class=\"off\">",
        (false, true) => "<tr class=\"off first\">",
    });
    if columns.scenario {
        // A name that repeats the row above is dimmed; long ones may wrap.
        let wrap = if row.scenario.chars().count() > 28 { "k" } else { "s" };
        let again = if repeats { " again" } else { "" };
        out.element("td", &format!("{wrap}{again}"), &row.scenario);
    }
    out.raw("<td class=\"k\">");
    out.text(&row.method);
    tags(out, row);
    out.raw("</td>");
    out.element("td", "", row.world.map_or("–", World::name));
    if columns.metric {
        out.element("td", "", super::findings::words(row.metric));
    }
    if columns.hop {
        out.number(row.hop.map(f64::from), &row.hop.map_or_else(String::new, |hop| hop.to_string()));
    }
    let quantity = Quantity::from(row.metric.unit());
    let published = row.published.as_ref();
    let truth = row.summary.truth_bps.or(published.and_then(|published| published.truth_bps));
    value(out, quantity, truth);
    value(out, quantity, row.summary.median_value_bps);
    if columns.published {
        paper(out, quantity, published);
    }
    error(out, row.summary.median_error_ratio, columns.full);
    value(out, Quantity::Ratio, row.summary.p90_abs_error_ratio);
    if columns.published {
        value(out, Quantity::Ratio, published.and_then(published_error));
    }
    value(out, Quantity::Ratio, row.summary.coverage_ratio);
    wrong(out, row.summary.wrong_confident_ratio);
    value(out, Quantity::Ratio, row.summary.inconclusive_ratio);
    value(out, Quantity::Octets, row.summary.median_octets);
    value(out, Quantity::Time, row.summary.median_seconds.map(|seconds| seconds * 1e9));
    runs(out, row);
    out.raw("</tr>");
}

/// Whether there is anything of ours (or an external tool's, run by us) in the row.
pub(super) fn has_runs(row: &EvaluationRow) -> bool {
    row.summary.runs > 0 && matches!(row.status, Status::Measured | Status::Partial)
}

fn tags(out: &mut Html, row: &EvaluationRow) {
    let kind = match row.kind {
        RowKind::Method => "",
        RowKind::ExternalTool => "other program",
        RowKind::Published => "paper only",
    };
    let status = match row.status {
        Status::PublishedOnly => "",
        other => other.words(),
    };
    for words in [kind, status] {
        if !words.is_empty() {
            out.element("span", "tag", words);
        }
    }
    if let Some(version) = &row.external_tool_version {
        out.element("span", "sub", version);
    }
    if !row.params.is_empty() {
        let params: Vec<String> = row.params.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let params = params.join(", ");
        if !row.method.contains(&params) {
            out.element("span", "sub", &params);
        }
    }
}

fn value(out: &mut Html, quantity: Quantity, value: Option<f64>) {
    let text = value.map_or_else(|| "–".to_owned(), |value| quantity.print(value));
    out.number(value, &text);
}

fn paper(out: &mut Html, quantity: Quantity, published: Option<&Published>) {
    let Some(published) = published else {
        out.number(None, "");
        return;
    };
    if published.value_bps.is_some() {
        value(out, quantity, published.value_bps);
        return;
    }
    let range = published.low_bps.zip(published.high_bps);
    let text = range
        .map_or_else(|| "–".to_owned(), |(low, high)| format!("{} to {}", quantity.print(low), quantity.print(high)));
    out.number(range.map(|(low, high)| f64::midpoint(low, high)), &text);
}

/// The paper's error: computed from its value and its truth where it prints both, for printed
/// errors often lack their sign.
pub(super) fn published_error(published: &Published) -> Option<f64> {
    let computed = published.value_bps.zip(published.truth_bps).and_then(|(value, truth)| {
        let error = (value - truth) / truth;
        error.is_finite().then_some(error)
    });
    computed.or(published.error_ratio)
}

/// The largest median error, within reason.
fn largest_error(rows: &[EvaluationRow]) -> f64 {
    let errors = rows.iter().filter_map(|row| row.summary.median_error_ratio);
    let errors = errors.filter(|error| error.is_finite());
    errors.fold(0.01, |most, error| error.abs().max(most)).min(BAR_MOST)
}

fn error(out: &mut Html, error: Option<f64>, full: f64) {
    let Some(error) = error.filter(|error| error.is_finite()) else {
        out.number(None, "–");
        return;
    };
    out.raw(&format!("<td class=\"n\" data-v=\"{error}\">"));
    out.text(&Quantity::Ratio.print(error));
    let share = (error.abs() / full).min(1.0) * 50.0;
    let (left, class) = if error < 0.0 { (50.0 - share, " class=\"lo\"") } else { (50.0, "") };
    out.raw(&format!("<span class=\"eb\"><i{class} style=\"left:{left:.1}%;width:{share:.1}%\"></i></span></td>"));
}

fn wrong(out: &mut Html, ratio: Option<f64>) {
    match ratio {
        Some(ratio) if ratio > 0.0 => {
            out.raw(&format!("<td class=\"n bad-n\" data-v=\"{ratio}\">"));
            out.text(&Quantity::Ratio.print(ratio));
            out.raw("</td>");
        }
        other => value(out, Quantity::Ratio, other),
    }
}

fn runs(out: &mut Html, row: &EvaluationRow) {
    let count = row.summary.runs;
    match row.not_judged_runs {
        Some(unjudged) if unjudged > 0 => {
            out.raw(&format!("<td class=\"n\" data-v=\"{count}\">"));
            out.text(&count.to_string());
            out.raw("<span class=\"sub\">");
            out.raw(&escape(&format!("{unjudged} not judged")));
            out.raw("</span></td>");
        }
        _ => out.number(Some(count as f64), &count.to_string()),
    }
}
