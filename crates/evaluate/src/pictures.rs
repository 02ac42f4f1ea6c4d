//! What the page draws, from rows, from runs and from kept observations.

mod observed;

use std::collections::BTreeMap;

use narrows_probe::BoundKind;
use narrows_report::page::Figure;
use narrows_report::picture::{Convergence, ErrorAgainstUtilisation, Picture, Point, Quantity, Series};
use narrows_report::{EvaluationDocument, EvaluationRow, RowKind, World};
use narrows_scenario::{PathDirection, Scenario};
use narrows_units::Metric;

use crate::cell::{Cell, Run};
use crate::store::Store;
use crate::summary::each_run;
use crate::truth;

/// Most scenarios whose kept observations are drawn: ours; the page is to be read, not to be an
/// archive.
const OBSERVED_MOST: usize = 12;

/// Error against utilisation of the tight link, one picture per metric and world, where the plan
/// has at least two loads.
pub fn of_rows(cells: &[Cell], document: &EvaluationDocument) -> Vec<Figure> {
    let mut loads = BTreeMap::new();
    for cell in cells {
        let scenario = &cell.scenario;
        loads.entry(scenario.name.as_str()).or_insert_with(|| utilisation(&scenario.scenario));
    }
    let mut figures = Vec::new();
    for world in World::ALL {
        for metric in Metric::ALL {
            figures.extend(error_against_load(document, &loads, world, metric));
        }
    }
    figures
}

fn error_against_load(
    document: &EvaluationDocument,
    loads: &BTreeMap<&str, Option<f64>>,
    world: World,
    metric: Metric,
) -> Option<Figure> {
    let mut ours: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    let mut printed: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    let fits =
        |row: &&EvaluationRow| row.metric == metric && row.hop.is_none() && row.world.is_none_or(|own| own == world);
    for row in document.rows.iter().filter(fits) {
        let Some(load) = loads.get(row.scenario.as_str()).copied().flatten() else {
            continue;
        };
        if let (Some(median), Some(spread)) = (row.summary.median_error_ratio, row.summary.error_spread_ratio) {
            let point = if row.summary.runs > 1 {
                Point::between(load, median, median - spread / 2.0, median + spread / 2.0)
            } else {
                Point::new(load, median)
            };
            ours.entry(&row.method).or_default().push(point);
        }
        if let Some(error) = row.published.as_ref().and_then(|published| published.error_ratio) {
            printed.entry(&row.method).or_default().push(Point::new(load, error));
        }
    }
    let of_load = |points: &[Point]| {
        points.iter().map(|point| point.x.to_bits()).collect::<std::collections::BTreeSet<_>>().len()
    };
    if !ours.values().any(|points| of_load(points) > 1) {
        return None;
    }
    let own = |method: &str| document.rows.iter().any(|row| row.method == method && row.kind != RowKind::Published);
    let mut series: Vec<Series> = ours.into_iter().map(|(label, points)| Series::new(label, points)).collect();
    series.extend(
        printed.into_iter().map(|(label, points)| {
            Series::published(format!("{label}, published"), own(label).then_some(label), points)
        }),
    );
    Some(Figure {
        scenario: None,
        caption: "Median error over the load of the tight link; bars span as much as the middle 80 % of the runs do."
            .to_owned(),
        picture: Picture::ErrorAgainstUtilisation(ErrorAgainstUtilisation {
            title: format!("{metric}, {}", world.name()),
            series,
        }),
    })
}

/// Load of the tight link, 0 to 1.
fn utilisation(scenario: &Scenario) -> Option<f64> {
    let truth = scenario.truth(PathDirection::Forward);
    truth.utilisation(truth.tight_hop(truth::path_mtu(scenario))?)
}

/// What the runs themselves show: how values close in on the truth over the runs, and the kept
/// observations of one run per scenario and method.
pub fn of_runs(cells: &[Cell], store: &Store) -> Vec<Figure> {
    let mut figures = convergence(cells, store);
    for (cell, run, file) in observed_runs(cells, store) {
        figures.extend(observed::figures(cell, run, &store.path(file)));
    }
    figures
}

/// The first kept run of as many rows as the page shows, in the plan's order: of every method the
/// scenario in the middle of the plan before those at its ends, so that no method is without a
/// picture because another has many scenarios.
fn observed_runs<'a>(cells: &'a [Cell], store: &'a Store) -> Vec<(&'a Cell, &'a Run, &'a str)> {
    let mut kept: Vec<(usize, &Cell, &Run, &str)> = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        let mut runs = each_run(std::slice::from_ref(cell), store);
        let found = runs.find_map(|(_, _, run)| Some((run, run.recording.as_deref()?)));
        kept.extend(found.map(|(run, file)| (at, cell, run, file)));
    }
    let mut of_subject: BTreeMap<(&str, World), usize> = BTreeMap::new();
    let places: Vec<usize> = kept
        .iter()
        .map(|(_, cell, ..)| {
            let count = of_subject.entry((cell.subject.label(), cell.world)).or_default();
            *count += 1;
            *count
        })
        .collect();
    let from_middle = |place: usize, cell: &Cell| {
        let count = of_subject.get(&(cell.subject.label(), cell.world)).copied().unwrap_or(1);
        (2 * place).abs_diff(count + 1)
    };
    let mut ranked: Vec<_> = kept
        .into_iter()
        .zip(places)
        .map(|((at, cell, run, file), place)| (from_middle(place, cell), at, cell, run, file))
        .collect();
    ranked.sort_by_key(|(rank, at, ..)| (*rank, *at));
    ranked.truncate(OBSERVED_MOST);
    ranked.sort_by_key(|(_, at, ..)| *at);
    ranked.into_iter().map(|(_, _, cell, run, file)| (cell, run, file)).collect()
}

/// Running median over the runs, per scenario and metric: how many runs a row needs.
fn convergence(cells: &[Cell], store: &Store) -> Vec<Figure> {
    let mut pictures: BTreeMap<(usize, Metric), Convergence> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for cell in cells {
        let name = cell.scenario.name.as_str();
        let place = order.iter().position(|known| *known == name).unwrap_or_else(|| {
            order.push(name);
            order.len() - 1
        });
        let Some(metric) = cell.subject.metric() else { continue };
        if place >= OBSERVED_MOST {
            continue;
        }
        let mut values = Vec::new();
        let mut truth = None;
        for (_, _, run) in each_run(std::slice::from_ref(cell), store) {
            if run.not_judged.is_none() && run.path.verdict == BoundKind::Estimated {
                values.extend(run.path.value.map(|value| value as f64));
                truth = truth.or(run.path.truth);
            }
        }
        if values.len() < 3 {
            continue;
        }
        let picture = pictures.entry((place, metric)).or_insert_with(|| Convergence {
            title: format!("{metric} over the number of runs"),
            quantity: metric.unit().into(),
            over: Quantity::Count,
            series: Vec::new(),
            truth: truth.map(|truth| truth as f64),
        });
        let label = format!("{}, {}", cell.subject.label(), cell.world.name());
        picture.series.push(Series {
            method: Some(cell.subject.label().to_owned()),
            ..Series::new(label, running_median(&values))
        });
    }
    let figure = |((place, _), picture): ((usize, Metric), Convergence)| Figure {
        scenario: order.get(place).map(|name| (*name).to_owned()),
        caption: "Median of the first runs, with the middle half of them: how many runs the row needs.".to_owned(),
        picture: Picture::Convergence(picture),
    };
    pictures.into_iter().map(figure).collect()
}

/// Most points of one curve.
const POINTS: usize = 60;

fn running_median(values: &[f64]) -> Vec<Point> {
    let step = values.len().div_ceil(POINTS);
    let counts = (1..=values.len()).filter(|count| count % step == 0 || *count == values.len());
    counts
        .filter_map(|count| {
            let first = &values[..count];
            let at = |p| narrows_stat::quantile(first, p);
            Some(Point::between(count as f64, at(0.5)?, at(0.25)?, at(0.75)?))
        })
        .collect()
}
