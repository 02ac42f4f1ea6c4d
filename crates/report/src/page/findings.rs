//! What the rows say in a few sentences, computed from them.

use std::collections::{BTreeMap, BTreeSet};

use narrows_units::Metric;

use super::markup::Html;
use super::table::{has_runs, published_error};
use crate::evaluation::{EvaluationDocument, EvaluationRow, RowKind, World};
use crate::picture::{Quantity, shorten};

/// One headline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) head: String,
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// Whether it is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Bad,
    Plain,
}

/// Most winners listed per scenario; the table has them all.
const WINNERS_MOST: usize = 500;

pub(super) fn write(out: &mut Html, document: &EvaluationDocument) {
    out.raw("<section id=\"findings\"><h2>What came of it</h2>");
    let findings = all(document);
    if findings.is_empty() {
        out.raw("<p class=\"soft\">No row has runs: there is nothing to find.</p>");
    } else {
        out.raw("<ul class=\"findings\">");
        for finding in findings {
            out.raw(match finding.tone {
                Tone::Good => "<li class=\"good\">",
                Tone::Bad => "<li class=\"bad\">",
                Tone::Plain => "<li>",
            });
            out.element("b", "", &finding.head);
            out.text(&finding.text);
            out.raw("</li>");
        }
        out.raw("</ul>");
        winners(out, document);
    }
    out.raw("</section>");
}

/// Every finding that the rows support.
pub(super) fn all(document: &EvaluationDocument) -> Vec<Finding> {
    let rows: Vec<&EvaluationRow> = document.rows.iter().filter(|row| has_runs(row)).collect();
    let mut findings = closest_overall(&rows);
    findings.extend(wrong_and_confident(&rows));
    findings.extend(coverage(&rows));
    findings.extend(largest_error(&rows));
    findings.extend(beside_the_papers(&rows));
    findings.extend(between_worlds(&rows));
    findings.extend(cheapest(&rows));
    findings.extend(silent(&rows));
    findings
}

/// What a row is about; rows that share it compete.
type Subject<'a> = (&'a str, Option<u16>);

/// The metric in words.
pub(super) const fn words(metric: Metric) -> &'static str {
    match metric {
        Metric::IpCapacity => "IP-layer capacity",
        Metric::ReverseIpCapacity => "IP-layer capacity of the reverse direction",
        Metric::PeakRate => "peak rate",
        Metric::CommittedBurstOctets => "committed burst size",
        Metric::AvailableIpCapacity => "available IP-layer capacity",
        Metric::CrossTraffic => "cross traffic",
        Metric::MaximumBurstOctets => "maximum burst size",
        Metric::UdpAchievable => "achievable UDP rate",
        Metric::TcpAchievableSingle => "achievable rate of one TCP connection",
        Metric::TcpAchievableParallel => "achievable rate of parallel TCP connections",
        Metric::TcpStreamsToFill => "TCP connections that fill the path",
        Metric::TcpWindowOctets => "TCP window that fills the path",
        Metric::RoundTripTime => "round-trip time",
        Metric::PathMtu => "path MTU",
        _ => metric.name(),
    }
}

/// The row with the least absolute median error, of those that answered in at least half of their
/// runs; the first of equals.
fn closest<'a>(rows: impl IntoIterator<Item = &'a EvaluationRow>) -> Option<(&'a EvaluationRow, f64)> {
    let mut best: Option<(&EvaluationRow, f64)> = None;
    for row in rows {
        let silent = row.summary.inconclusive_ratio.is_some_and(|ratio| ratio > 0.5);
        let error = row.summary.median_error_ratio.filter(|error| error.is_finite());
        if let Some(error) = error.filter(|_| has_runs(row) && !silent)
            && best.is_none_or(|(_, least)| error.abs() < least.abs())
        {
            best = Some((row, error));
        }
    }
    best
}

/// `"closest: pathload (−0.9 %, lab)"` for the rows of one scenario. Nothing if they are about
/// several things.
pub(super) fn closest_in_words(rows: &[&EvaluationRow]) -> Option<String> {
    let first = rows.first()?;
    if rows.iter().any(|row| (row.metric, row.hop) != (first.metric, first.hop)) {
        return None;
    }
    let (row, error) = closest(rows.iter().copied())?;
    let world = row.world.map_or("", World::name);
    Some(format!("closest: {} ({}, {world})", shorten(&row.method, 40), Quantity::Ratio.print(error)))
}

/// Per metric and world: who wins how many scenarios.
fn closest_overall(rows: &[&EvaluationRow]) -> Vec<Finding> {
    const MOST: usize = 6;
    let mut contests: BTreeMap<(Metric, World), BTreeMap<Subject<'_>, Vec<&EvaluationRow>>> = BTreeMap::new();
    for row in rows {
        if let Some(world) = row.world {
            let subjects = contests.entry((row.metric, world)).or_default();
            subjects.entry((&row.scenario, row.hop)).or_default().push(row);
        }
    }
    let found = contests.into_iter().filter_map(|((metric, world), subjects)| {
        let mut wins: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut contested = 0usize;
        for rows in subjects.values() {
            let names: BTreeSet<&str> = rows.iter().map(|row| row.method.as_str()).collect();
            if names.len() < 2 {
                continue;
            }
            if let Some((row, error)) = closest(rows.iter().copied()) {
                contested += 1;
                wins.entry(&row.method).or_default().push(error.abs());
            }
        }
        // The first of the longest, in the order of names.
        let (method, mut errors) =
            wins.into_iter().reduce(|best, next| if next.1.len() > best.1.len() { next } else { best })?;
        errors.sort_by(f64::total_cmp);
        let middle = errors.get((errors.len() - 1) / 2).copied()?;
        Some(Finding {
            head: format!("Closest: {}, {}", words(metric), world.name()),
            text: format!(
                "{} in {} of {contested} cases with two or more methods, there off by {} in the middle.",
                shorten(method, 60),
                errors.len(),
                Quantity::Ratio.print(middle)
            ),
            tone: Tone::Good,
        })
    });
    found.take(MOST).collect()
}

/// `"pathload on table10-30 (lab)"`.
fn place(row: &EvaluationRow) -> String {
    let hop = row.hop.map_or_else(String::new, |hop| format!(", hop {hop}"));
    format!(
        "{} on {}{hop} ({})",
        shorten(&row.method, 60),
        shorten(&row.scenario, 60),
        row.world.map_or("nowhere", World::name)
    )
}

/// The row for which `key` is largest; the first of equals.
fn largest<'a>(
    rows: &[&'a EvaluationRow],
    key: impl Fn(&EvaluationRow) -> Option<f64>,
) -> Option<(&'a EvaluationRow, f64)> {
    let mut best: Option<(&EvaluationRow, f64)> = None;
    for &row in rows {
        if let Some(value) = key(row).filter(|value| value.is_finite())
            && best.is_none_or(|(_, most)| value > most)
        {
            best = Some((row, value));
        }
    }
    best
}

fn wrong_and_confident(rows: &[&EvaluationRow]) -> Option<Finding> {
    let (row, worst) = largest(rows, |row| row.summary.wrong_confident_ratio)?;
    let head = "Wrong and confident".to_owned();
    if worst <= 0.0 {
        return Some(Finding {
            head,
            text: "In no row: no interval misses the truth by more than a tenth of the scale.".to_owned(),
            tone: Tone::Good,
        });
    }
    let affected = rows.iter().filter(|row| row.summary.wrong_confident_ratio.is_some_and(|ratio| ratio > 0.0));
    Some(Finding {
        head,
        text: format!(
            "Worst: {}, {} of {}. {} of {} rows have any.",
            place(row),
            Quantity::Ratio.print(worst),
            counted(row.summary.runs, "run"),
            affected.count(),
            rows.len()
        ),
        tone: Tone::Bad,
    })
}

fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn coverage(rows: &[&EvaluationRow]) -> Option<Finding> {
    let (row, least) = largest(rows, |row| row.summary.coverage_ratio.map(|ratio| -ratio))?;
    let least = -least;
    Some(Finding {
        head: "Intervals".to_owned(),
        text: if least >= 1.0 {
            "Every interval of every row covers the truth.".to_owned()
        } else {
            format!("Fewest intervals that cover the truth: {}, {}.", place(row), Quantity::Ratio.print(least))
        },
        tone: if least >= 0.9 { Tone::Good } else { Tone::Plain },
    })
}

fn largest_error(rows: &[&EvaluationRow]) -> Option<Finding> {
    let (row, _) = largest(rows, |row| row.summary.median_error_ratio.map(f64::abs))?;
    Some(Finding {
        head: "Largest typical error".to_owned(),
        text: format!(
            "{}: {} in the median{}.",
            place(row),
            Quantity::Ratio.print(row.summary.median_error_ratio?),
            row.summary
                .p90_abs_error_ratio
                .map_or_else(String::new, |p90| format!(", 90 % within {}", Quantity::Ratio.print(p90)))
        ),
        tone: Tone::Plain,
    })
}

/// Ours relative to the truth, as papers have it.
fn relative_error(row: &EvaluationRow) -> Option<f64> {
    let (value, truth) = row.summary.median_value_bps.zip(row.summary.truth_bps)?;
    let error = (value - truth) / truth;
    error.is_finite().then_some(error)
}

fn beside_the_papers(rows: &[&EvaluationRow]) -> Option<Finding> {
    let pairs: Vec<(f64, f64)> = rows
        .iter()
        .filter(|row| row.kind == RowKind::Method)
        .filter_map(|row| Some((relative_error(row)?.abs(), published_error(row.published.as_ref()?)?.abs())))
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let closer = pairs.iter().filter(|(ours, papers)| ours < papers).count();
    Some(Finding {
        head: "Beside the paper".to_owned(),
        text: format!(
            "Our median is closer to its truth than the printed value to the paper’s in {closer} of {} rows that have both.",
            pairs.len()
        ),
        tone: Tone::Plain,
    })
}

fn between_worlds(rows: &[&EvaluationRow]) -> Option<Finding> {
    let mut simulated: BTreeMap<(Subject<'_>, &str, Metric), &EvaluationRow> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.world == Some(World::Simulator)) {
        simulated.insert(((&row.scenario, row.hop), &row.method, row.metric), row);
    }
    let lab: Vec<&EvaluationRow> = rows.iter().copied().filter(|row| row.world == Some(World::Lab)).collect();
    let difference = |row: &EvaluationRow| {
        let twin = simulated.get(&((row.scenario.as_str(), row.hop), row.method.as_str(), row.metric))?;
        Some((row.summary.median_error_ratio? - twin.summary.median_error_ratio?).abs())
    };
    let pairs = lab.iter().filter(|row| difference(row).is_some()).count();
    let (row, most) = largest(&lab, difference)?;
    Some(Finding {
        head: "Lab and simulator".to_owned(),
        text: format!(
            "Median errors of {} differ by at most {}: {}.",
            counted(pairs, "pair"),
            Quantity::Ratio.print(most),
            place(row)
        ),
        tone: if most <= 0.05 { Tone::Good } else { Tone::Plain },
    })
}

fn cheapest(rows: &[&EvaluationRow]) -> Option<Finding> {
    let good = |row: &EvaluationRow| row.summary.p90_abs_error_ratio.is_some_and(|p90| p90 <= 0.1);
    let usable: Vec<&EvaluationRow> = rows.iter().copied().filter(|row| good(row)).collect();
    let (row, _) =
        largest(&usable, |row| row.summary.median_octets.filter(|&octets| octets > 0.0).map(|octets| -octets))?;
    Some(Finding {
        head: "Cheapest answer within 10 %".to_owned(),
        text: format!(
            "{}: {} in {} (90 % of its runs within a tenth).",
            place(row),
            Quantity::Octets.print(row.summary.median_octets?),
            Quantity::Time.print(row.summary.median_seconds? * 1e9)
        ),
        tone: Tone::Plain,
    })
}

fn silent(rows: &[&EvaluationRow]) -> Option<Finding> {
    let (row, most) = largest(rows, |row| row.summary.inconclusive_ratio.filter(|&ratio| ratio > 0.0))?;
    Some(Finding {
        head: "No answer".to_owned(),
        text: format!(
            "Most often: {}, {} of {} inconclusive.",
            place(row),
            Quantity::Ratio.print(most),
            counted(row.summary.runs, "run")
        ),
        tone: Tone::Plain,
    })
}

/// Who is closest in each case, folded away.
fn winners(out: &mut Html, document: &EvaluationDocument) {
    let worlds: BTreeSet<World> =
        document.rows.iter().filter(|row| has_runs(row)).filter_map(|row| row.world).collect();
    let mut subjects: BTreeMap<(usize, Metric, Option<u16>), Vec<&EvaluationRow>> = BTreeMap::new();
    let groups = super::by_scenario(&document.rows);
    for (index, (_, rows)) in groups.iter().enumerate() {
        for &row in rows.iter().filter(|row| has_runs(row)) {
            subjects.entry((index, row.metric, row.hop)).or_default().push(row);
        }
    }
    out.raw("<details><summary>Closest per scenario and world</summary><div class=\"wide\"><table><thead><tr>");
    out.raw("<th>scenario</th><th>metric</th>");
    for world in &worlds {
        out.element("th", "", world.name());
    }
    out.raw("</tr></thead><tbody>");
    for ((index, metric, hop), rows) in subjects.iter().take(WINNERS_MOST) {
        out.raw("<tr>");
        let name = groups.get(*index).map_or("", |(name, _)| name);
        let hop = hop.map_or_else(String::new, |hop| format!(", hop {hop}"));
        out.element("td", "k", &format!("{name}{hop}"));
        out.element("td", "", words(*metric));
        for &world in &worlds {
            let best = closest(rows.iter().copied().filter(|row| row.world == Some(world)));
            let text = best.map_or_else(
                || "–".to_owned(),
                |(row, error)| format!("{} ({})", row.method, Quantity::Ratio.print(error)),
            );
            out.element("td", "k", &text);
        }
        out.raw("</tr>");
    }
    out.raw("</tbody></table></div>");
    if subjects.len() > WINNERS_MOST {
        out.raw(&format!("<p>{} more are not listed.</p>", subjects.len() - WINNERS_MOST));
    }
    out.raw("</details>");
}
