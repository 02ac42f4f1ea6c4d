//! Rows from runs, in the plan's order.

use std::collections::{BTreeMap, BTreeSet};

use narrows_report::{
    EvaluationDocument, EvaluationRow, RowKind, RunRow, SamplesRow, Status, Summary, Tracking, TrackingSummary, World,
};
use narrows_scenario::PathDirection;
use narrows_units::Metric;

use crate::cell::{Cell, Judged, Run};
use crate::key::Keys;
use crate::plan::{Plan, PlannedPublished};
use crate::simulated::scale;
use crate::store::Store;
use crate::subject::Subject;
use crate::work::{Shortfalls, recording_key};

/// Every row of `plan`, whose rows to run are `cells`, from what `store` holds.
pub fn document(plan: &Plan, cells: &[Cell], store: &Store, shortfalls: &Shortfalls) -> EvaluationDocument {
    let mut document =
        EvaluationDocument::new(plan.name.clone(), plan.about.clone(), plan.source.clone(), plan.notes.clone());
    let mut reported = BTreeSet::new();
    for scenario in &plan.scenarios {
        for (index, cell) in cells.iter().enumerate() {
            if cell.scenario.name != scenario.name {
                continue;
            }
            let published = of_cell(plan, cell);
            reported.extend(published.iter().map(|(index, _)| *index));
            let published: Vec<&PlannedPublished> = published.into_iter().map(|(_, published)| published).collect();
            // An external tool whose adapter is unknown is never run, and its row has no number.
            let metric = cell.subject.metric().unwrap_or(Metric::TcpAchievableSingle);
            let runs = runs(cell, store);
            rows(&mut document, cell, metric, &runs, &published, shortfalls.of(index));
        }
        let alone = plan.published.iter().enumerate();
        let alone = alone.filter(|(index, published)| published.scenario == scenario.name && !reported.contains(index));
        document.rows.extend(alone.map(|(_, published)| published_only(plan, published)));
    }
    document
}

/// Every finished run of `cells`, in the plan's order, with its cell and seed.
pub fn each_run<'a>(cells: &'a [Cell], store: &'a Store) -> impl Iterator<Item = (&'a Cell, u64, &'a Run)> {
    cells.iter().flat_map(|cell| runs(cell, store).into_iter().map(move |(seed, run)| (cell, seed, run)))
}

fn runs<'a>(cell: &Cell, store: &'a Store) -> Vec<(u64, &'a Run)> {
    let keys = Keys::of_runs(cell);
    let seeds = (0..cell.runs).map(|k| cell.seed_of(k));
    seeds
        .filter_map(|seed| {
            let key = match cell.world {
                World::Recording => recording_key(store, cell, seed)?,
                World::Simulator | World::Lab => keys.seed(seed),
            };
            Some((seed, store.get(key)?))
        })
        .collect()
}

/// The published numbers for a cell: of the method with that label, else of all methods with that
/// name.
fn of_cell<'a>(plan: &'a Plan, cell: &Cell) -> Vec<(usize, &'a PlannedPublished)> {
    let labelled = |word: &str| plan.subjects.iter().any(|subject| subject.label() == word);
    let means = |published: &PlannedPublished| {
        if labelled(&published.method) {
            cell.subject.label() == published.method
        } else {
            cell.subject.answers_to(&published.method)
        }
    };
    let all = plan.published.iter().enumerate();
    all.filter(|(_, published)| published.scenario == cell.scenario.name && means(published)).collect()
}

fn kind(subject: Option<&Subject>) -> RowKind {
    match subject {
        Some(Subject::Method(_)) => RowKind::Method,
        Some(Subject::ExternalTool(_)) => RowKind::ExternalTool,
        None => RowKind::Published,
    }
}

fn params(subject: &Subject) -> BTreeMap<String, String> {
    match subject {
        Subject::Method(method) => method.params.iter().cloned().collect(),
        Subject::ExternalTool(external_tool) => external_tool.params.clone(),
    }
}

/// The path's row, and one per hop of which a run or the paper speaks.
fn rows(
    document: &mut EvaluationDocument,
    cell: &Cell,
    metric: Metric,
    runs: &[(u64, &Run)],
    published: &[&PlannedPublished],
    shortfall: Option<&(Status, String)>,
) {
    let judged: Vec<&(u64, &Run)> = runs.iter().filter(|(_, run)| run.not_judged.is_none()).collect();
    let spoken = judged.iter().flat_map(|(_, run)| run.hops.iter().filter_map(|judged| judged.hop));
    let hops: BTreeSet<u16> = spoken.chain(published.iter().filter_map(|published| published.hop)).collect();
    let status = match (runs.len(), shortfall) {
        (0, Some((status, _))) => *status,
        (0, None) => Status::NotRun,
        (count, _) if count < cell.runs as usize => Status::Partial,
        _ => Status::Measured,
    };
    let why = shortfall.map(|(_, why)| why.clone()).filter(|_| status != Status::Measured);
    let is_lab = cell.world == World::Lab;
    let discarded: u32 = runs.iter().map(|(_, run)| run.measured_before).sum();
    let versions: BTreeSet<&str> = runs.iter().filter_map(|(_, run)| run.external_tool_version.as_deref()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    for hop in std::iter::once(None).chain(hops.into_iter().map(Some)) {
        let table: Vec<RunRow> = judged.iter().map(|(seed, run)| row(*seed, run, hop)).collect();
        let scale = if hop.is_some() { None } else { scale(&cell.scenario.scenario, PathDirection::Forward, metric) };
        let number = published.iter().find(|published| published.hop == hop);
        document.rows.push(EvaluationRow {
            scenario: cell.scenario.name.clone(),
            method: cell.subject.label().to_owned(),
            kind: kind(Some(&cell.subject)),
            params: params(&cell.subject),
            world: Some(cell.world),
            metric,
            hop,
            status,
            why: why.clone(),
            published: number.map(|published| published.numbers.clone()),
            summary: summary(cell, &table, scale),
            judged_runs: is_lab.then_some(judged.len()),
            not_judged_runs: is_lab.then_some(runs.len() - judged.len() + discarded as usize),
            external_tool_version: (!versions.is_empty()).then(|| versions.join(", ")),
            tracking: if hop.is_none() { followed(&judged) } else { None },
        });
    }
}

/// How the runs followed the truth, of methods that tell on their way.
fn followed(judged: &[&(u64, &Run)]) -> Option<TrackingSummary> {
    let runs: Vec<Tracking> = judged.iter().filter_map(|(_, run)| Some(run.tracking.as_ref()?.tracking())).collect();
    TrackingSummary::new(&runs)
}

/// Nobody counts another program's octets within 10 ms, so its peak is not known.
fn summary(cell: &Cell, table: &[RunRow], scale: Option<f64>) -> Summary {
    let mut summary = Summary::new(table, scale);
    if matches!(cell.subject, Subject::ExternalTool(_)) {
        summary.peak_rate_bps = None;
    }
    summary
}

/// A run as `simulate` has it, of the path or of one hop.
fn row(seed: u64, run: &Run, hop: Option<u16>) -> RunRow {
    let nothing = Judged {
        hop,
        truth: None,
        value: None,
        low: None,
        high: None,
        verdict: narrows_probe::BoundKind::Inconclusive,
    };
    let judged = match hop {
        None => run.path,
        Some(_) => run.hops.iter().find(|judged| judged.hop == hop).copied().unwrap_or(nothing),
    };
    RunRow {
        seed,
        truth_bps: judged.truth,
        truth_basis: run.truth_basis,
        long_run_truth_bps: run.long_run_truth.filter(|_| hop.is_none()),
        truth_deviation_bps: run.truth_deviation.filter(|_| hop.is_none()),
        value_bps: judged.value,
        low_bps: judged.low,
        high_bps: judged.high,
        verdict: judged.verdict,
        confidence: run.confidence.filter(|_| hop.is_none()),
        octets: run.octets,
        packets: run.packets,
        seconds: run.time().as_secs_f64(),
        peak_rate_bps: run.peak_rate_bps,
        // Summaries are made of values; the log keeps no account of packets.
        samples: SamplesRow::default(),
        caveats: Vec::new(),
        reason: None,
        tracking: None,
    }
}

fn published_only(plan: &Plan, published: &PlannedPublished) -> EvaluationRow {
    let subject = plan.subjects.iter().find(|subject| subject.answers_to(&published.method));
    EvaluationRow {
        scenario: published.scenario.clone(),
        method: published.method.clone(),
        kind: kind(subject),
        params: BTreeMap::new(),
        world: None,
        metric: published.metric,
        hop: published.hop,
        status: Status::PublishedOnly,
        why: None,
        published: Some(published.numbers.clone()),
        summary: Summary::default(),
        judged_runs: None,
        not_judged_runs: None,
        external_tool_version: None,
        tracking: None,
    }
}
