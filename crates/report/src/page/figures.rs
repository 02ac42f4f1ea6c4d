//! Pictures by section, bounded in number and size.

use std::collections::BTreeMap;

use narrows_units::Metric;

use super::markup::Html;
use super::table::has_runs;
use super::{Figure, Pictures};
use crate::evaluation::{EvaluationDocument, EvaluationRow, RowKind, World};
use crate::picture::{CostAgainstError, EstimateAgainstTruth, Picture, Point, Quantity, Series, SeriesStyles};

/// Most pictures per section.
const SECTION_MOST: usize = 24;

/// Octets of pictures at which the page takes no more; browsers grow slow beyond.
pub(super) const SIZE_MOST: usize = 12_000_000;

/// The parts of the gallery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Accuracy,
    Response,
    Delay,
    Transfer,
    Time,
}

const SECTIONS: [(Section, &str); 5] = [
    (Section::Accuracy, "How far off, at what cost"),
    (Section::Response, "What the path answers"),
    (Section::Delay, "Delays and round trips"),
    (Section::Transfer, "Transfers"),
    (Section::Time, "Closing in, and following a path that changes"),
];

fn section(picture: &Picture) -> Section {
    match picture {
        Picture::ErrorAgainstUtilisation(_) | Picture::EstimateAgainstTruth(_) | Picture::CostAgainstError(_) => {
            Section::Accuracy
        }
        Picture::ResponseCurve(_)
        | Picture::DispersionHistogram(_)
        | Picture::LossAgainstBurst(_)
        | Picture::BurstOverRate(_)
        | Picture::RateOverStreams(_)
        | Picture::Curve(_) => Section::Response,
        Picture::DelayTrend(_) | Picture::SizeRegression(_) => Section::Delay,
        Picture::TransferOverTime(_) => Section::Transfer,
        Picture::Convergence(_) | Picture::Timeline(_) => Section::Time,
    }
}

pub(super) fn write(out: &mut Html, document: &EvaluationDocument, pictures: &Pictures, styles: &SeriesStyles) {
    let own = of_rows(document, pictures);
    let given = pictures.figures.iter().filter(|figure| figure.scenario.is_none());
    let all: Vec<&Figure> = given.chain(&own).collect();
    out.raw("<section id=\"pictures\"><h2>Pictures</h2>");
    if all.is_empty() {
        out.raw("<p class=\"soft\">The rows give none of the plan as a whole.</p>");
    } else {
        out.raw(
            "<p class=\"soft\">Filled markers: measured here; hollow: published. A method has one colour in all pictures.</p>",
        );
    }
    for (section_kind, heading) in SECTIONS {
        let of_section: Vec<&Figure> =
            all.iter().copied().filter(|figure| section(&figure.picture) == section_kind).collect();
        if of_section.is_empty() {
            continue;
        }
        out.element("h3", "", heading);
        grid(out, &of_section, SECTION_MOST, styles);
    }
    out.raw("</section>");
}

/// The pictures beside each other, at most so many; says how many are left out.
pub(super) fn grid(out: &mut Html, figures: &[&Figure], most: usize, styles: &SeriesStyles) {
    let mut shown = 0;
    out.raw("<div class=\"figures\">");
    for figure in figures.iter().take(most) {
        if out.len() > SIZE_MOST {
            break;
        }
        out.raw("<figure>");
        out.raw(&figure.picture.inline(styles));
        if !figure.caption.is_empty() {
            out.element("figcaption", "", &figure.caption);
        }
        out.raw("</figure>");
        shown += 1;
    }
    out.raw("</div>");
    if figures.len() > shown {
        out.raw(&format!("<p>{} more pictures are left out.</p>", figures.len() - shown));
    }
}

/// What the rows alone can show, unless the plan's own pictures do.
fn of_rows(document: &EvaluationDocument, pictures: &Pictures) -> Vec<Figure> {
    let given = |kind: fn(&Picture) -> bool| pictures.figures.iter().any(|figure| kind(&figure.picture));
    let truths = !given(|picture| matches!(picture, Picture::EstimateAgainstTruth(_)));
    let costs = !given(|picture| matches!(picture, Picture::CostAgainstError(_)));
    let mut groups: BTreeMap<(Metric, World), Vec<&EvaluationRow>> = BTreeMap::new();
    for row in document.rows.iter().filter(|row| has_runs(row)) {
        if let Some(world) = row.world {
            groups.entry((row.metric, world)).or_default().push(row);
        }
    }
    let mut figures = Vec::new();
    for ((metric, world), rows) in &groups {
        if truths {
            figures.extend(truth_figure(*metric, *world, rows));
        }
        if costs {
            figures.extend(cost_figure(*metric, *world, rows, Quantity::Octets));
            figures.extend(cost_figure(*metric, *world, rows, Quantity::Time));
        }
    }
    figures
}

/// Fewer points tell nothing that the table does not.
const POINTS_LEAST: usize = 3;

fn truth_figure(metric: Metric, world: World, rows: &[&EvaluationRow]) -> Option<Figure> {
    let mut series = per_method(rows, |row| Some(Point::new(row.summary.truth_bps?, row.summary.median_value_bps?)));
    if count(&series) < POINTS_LEAST {
        return None;
    }
    let published = per_method(rows, |row| {
        let published = row.published.as_ref()?;
        Some(Point::new(published.truth_bps.or(row.summary.truth_bps)?, published.value_bps?))
    });
    series.extend(published.into_iter().map(|one| {
        let label = format!("{}, published", one.label);
        Series::published(label, Some(&one.label), one.points)
    }));
    Some(Figure {
        scenario: None,
        caption: "Median of each row over its truth.".to_owned(),
        picture: Picture::EstimateAgainstTruth(EstimateAgainstTruth {
            title: format!("Estimate against truth: {}, {}", super::findings::words(metric), world.name()),
            quantity: metric.unit().into(),
            series,
        }),
    })
}

fn cost_figure(metric: Metric, world: World, rows: &[&EvaluationRow], cost: Quantity) -> Option<Figure> {
    let series = per_method(rows, |row| {
        let spent = match cost {
            Quantity::Time => row.summary.median_seconds? * 1e9,
            _ => row.summary.median_octets?,
        };
        Some(Point::new(spent, row.summary.median_error_ratio?))
    });
    if count(&series) < POINTS_LEAST {
        return None;
    }
    let thing = if cost == Quantity::Time { "time" } else { "octets" };
    Some(Figure {
        scenario: None,
        caption: "One marker per row; down and to the left is better.".to_owned(),
        picture: Picture::CostAgainstError(CostAgainstError {
            title: format!("Error against {thing}: {}, {}", super::findings::words(metric), world.name()),
            cost,
            series,
        }),
    })
}

fn count(series: &[Series]) -> usize {
    series.iter().map(|series| series.points.len()).sum()
}

/// A series per method, in the order of the rows.
fn per_method(rows: &[&EvaluationRow], point: impl Fn(&EvaluationRow) -> Option<Point>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows.iter().filter(|row| row.kind != RowKind::Published) {
        let Some(point) = point(row) else {
            continue;
        };
        match all.iter_mut().find(|series| series.label == row.method) {
            Some(series) => series.points.push(point),
            None => all.push(Series::new(row.method.clone(), vec![point])),
        }
    }
    all
}
