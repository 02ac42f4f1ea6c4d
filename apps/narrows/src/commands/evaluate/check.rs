//! What a plan would run.

use std::fmt::Write as _;

use narrows_evaluate::{Plan, Subject};

pub(super) fn text(plan: &Plan) -> String {
    let cells = plan.cells();
    let wide = |texts: &mut dyn Iterator<Item = &str>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
    let scenarios = wide(&mut cells.iter().map(|cell| cell.scenario.name.as_str())).max(8);
    let subjects = wide(&mut cells.iter().map(|cell| cell.subject.label())).max(6);
    let mut out = String::new();
    let _ = writeln!(out, "{:<scenarios$}  {:<subjects$}  {:<9}  {:>8}  metric", "scenario", "method", "world", "runs");
    let mut total = 0u64;
    for cell in &cells {
        let metric = cell.subject.metric().map_or("its adapter's", narrows_units::Metric::name);
        let note = match &cell.subject {
            Subject::Method(method) if method.method().is_none() => "  not yet",
            _ => "",
        };
        if note.is_empty() {
            total += u64::from(cell.runs);
        }
        let _ = writeln!(
            out,
            "{:<scenarios$}  {:<subjects$}  {:<9}  {:>8}  {metric}{note}",
            cell.scenario.name,
            cell.subject.label(),
            cell.world.name(),
            cell.runs,
        );
    }
    let _ =
        writeln!(out, "{}: {} rows, {total} runs, {} published numbers", plan.name, cells.len(), plan.published.len());
    out
}
