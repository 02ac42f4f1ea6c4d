//! Rows and runs as Parquet.

use std::path::Path;

use narrows_report::EvaluationDocument;

use super::columns::Table;
use super::{scale, word};
use crate::cell::{Cell, Run};
use crate::error::StoreError;

/// Writes the document's rows, with the JSON document's names; published numbers as `published_*`,
/// parameters as one text.
pub fn rows_parquet(document: &EvaluationDocument, path: &Path) -> Result<(), StoreError> {
    let mut table = Table::default();
    let rows = &document.rows;
    table.texts("scenario", rows.iter().map(|row| Some(row.scenario.clone())));
    table.texts("method", rows.iter().map(|row| Some(row.method.clone())));
    table.texts("kind", rows.iter().map(|row| word(&row.kind)));
    let pair = |(name, value): (&String, &String)| format!("{name}={value}");
    let params = rows.iter().map(|row| row.params.iter().map(pair).collect::<Vec<_>>().join(" "));
    table.texts("params", params.map(Some));
    table.texts("world", rows.iter().map(|row| row.world.map(|world| world.name().to_owned())));
    table.texts("metric", rows.iter().map(|row| Some(row.metric.name().to_owned())));
    table.whole("hop", rows.iter().map(|row| row.hop.map(i64::from)));
    table.texts("status", rows.iter().map(|row| Some(row.status.name().to_owned())));
    table.texts("why", rows.iter().map(|row| row.why.clone()));
    table.whole("runs", rows.iter().map(|row| i64::try_from(row.summary.runs).ok()));
    let mut number = |name, value: fn(&narrows_report::Summary) -> Option<f64>| {
        table.numbers(name, rows.iter().map(|row| value(&row.summary)));
    };
    number("truth_bps", |summary| summary.truth_bps);
    number("median_value_bps", |summary| summary.median_value_bps);
    number("median_error_ratio", |summary| summary.median_error_ratio);
    number("mean_error_ratio", |summary| summary.mean_error_ratio);
    number("error_spread_ratio", |summary| summary.error_spread_ratio);
    number("p90_abs_error_ratio", |summary| summary.p90_abs_error_ratio);
    number("p95_abs_error_ratio", |summary| summary.p95_abs_error_ratio);
    number("inconclusive_ratio", |summary| summary.inconclusive_ratio);
    number("wrong_confident_ratio", |summary| summary.wrong_confident_ratio);
    number("coverage_ratio", |summary| summary.coverage_ratio);
    number("median_octets", |summary| summary.median_octets);
    number("median_packets", |summary| summary.median_packets);
    number("median_seconds", |summary| summary.median_seconds);
    table.whole("peak_rate_bps", rows.iter().map(|row| row.summary.peak_rate_bps.and_then(signed)));
    let count = |count: Option<usize>| count.and_then(|count| i64::try_from(count).ok());
    table.whole("judged_runs", rows.iter().map(|row| count(row.judged_runs)));
    table.whole("not_judged_runs", rows.iter().map(|row| count(row.not_judged_runs)));
    table.texts("external_tool_version", rows.iter().map(|row| row.external_tool_version.clone()));
    published(&mut table, document);
    table.write(path)
}

fn published(table: &mut Table, document: &EvaluationDocument) {
    let all = || document.rows.iter().map(|row| row.published.as_ref());
    table.numbers("published_value_bps", all().map(|numbers| numbers?.value_bps));
    table.numbers("published_truth_bps", all().map(|numbers| numbers?.truth_bps));
    table.numbers("published_low_bps", all().map(|numbers| numbers?.low_bps));
    table.numbers("published_high_bps", all().map(|numbers| numbers?.high_bps));
    table.numbers("published_error_ratio", all().map(|numbers| numbers?.error_ratio));
    table.numbers("published_seconds", all().map(|numbers| numbers?.seconds));
    table.whole("published_octets", all().map(|numbers| signed(numbers?.octets?)));
    table.whole("published_packets", all().map(|numbers| signed(numbers?.packets?)));
    table.texts("published_note", all().map(|numbers| Some(numbers?.note.clone())));
}

/// Writes one row per finished run.
pub fn runs_parquet<'a>(runs: impl Iterator<Item = (&'a Cell, u64, &'a Run)>, path: &Path) -> Result<(), StoreError> {
    let runs: Vec<(&Cell, u64, &Run)> = runs.collect();
    let mut table = Table::default();
    table.texts("scenario", runs.iter().map(|(cell, ..)| Some(cell.scenario.name.clone())));
    table.texts("method", runs.iter().map(|(cell, ..)| Some(cell.subject.label().to_owned())));
    table.texts("world", runs.iter().map(|(cell, ..)| Some(cell.world.name().to_owned())));
    table.whole("seed", runs.iter().map(|(_, seed, _)| signed(*seed)));
    table.texts("truth_basis", runs.iter().map(|(.., run)| word(&run.truth_basis)));
    table.texts("verdict", runs.iter().map(|(.., run)| word(&run.path.verdict)));
    let mut number = |name, value: fn(&Run) -> Option<u64>| {
        table.whole(name, runs.iter().map(|(.., run)| value(run).and_then(signed)));
    };
    number("truth_bps", |run| run.path.truth);
    number("value_bps", |run| run.path.value);
    number("low_bps", |run| run.path.low);
    number("high_bps", |run| run.path.high);
    number("long_run_truth_bps", |run| run.long_run_truth);
    number("octets", |run| Some(run.octets));
    number("packets", |run| Some(run.packets));
    number("time_ns", |run| Some(run.time_ns));
    number("peak_rate_bps", |run| Some(run.peak_rate_bps));
    table.whole("scale_bps", runs.iter().map(|(cell, ..)| scale(cell).and_then(signed)));
    table.texts("confidence", runs.iter().map(|(.., run)| run.confidence.as_ref().and_then(word)));
    table.texts("caveats", runs.iter().map(|(.., run)| Some(run.caveats.join(" "))));
    table.texts("reason", runs.iter().map(|(.., run)| run.reason.clone()));
    table.texts("not_judged", runs.iter().map(|(.., run)| run.not_judged.clone()));
    table.texts("recording", runs.iter().map(|(.., run)| run.recording.clone()));
    table.write(path)
}

fn signed(value: u64) -> Option<i64> {
    i64::try_from(value).ok()
}
