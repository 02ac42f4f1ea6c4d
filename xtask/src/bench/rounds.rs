//! Contenders that take turns, and the tables of what they reached.

use std::fmt::Write as _;

use anyhow::Result;

use crate::shell::say;

/// One number that every contender reaches in every round.
#[derive(Clone)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) digits: usize,
    /// How contenders are set against the reference, if at all.
    pub(super) ratio: Ratio,
}

/// How two numbers of one round become a ratio.
#[derive(Clone, Copy)]
pub(super) enum Ratio {
    /// The contender's over the reference's: above 1 the contender has more.
    OfReference,
    /// The reference's over the contender's: above 1 the contender errs less.
    ToReference,
    /// Not at all.
    None,
}

/// Measures once; one number per metric.
pub(super) type Measure<'a> = Box<dyn FnMut() -> Result<Vec<f64>> + 'a>;

/// A program in one of its ways to run.
pub(super) struct Contender<'a> {
    pub(super) name: String,
    pub(super) measure: Measure<'a>,
}

impl<'a> Contender<'a> {
    pub(super) fn new(name: impl Into<String>, measure: impl FnMut() -> Result<Vec<f64>> + 'a) -> Self {
        Self { name: name.into(), measure: Box::new(measure) }
    }
}

/// What all contenders reached: per contender, per round, one number per metric. A contender that
/// failed once is out.
#[derive(Clone)]
pub(super) struct Results {
    metrics: Vec<Metric>,
    rows: Vec<(String, Vec<Vec<f64>>)>,
    failures: Vec<String>,
}

/// Lets every contender measure once per round, in turn.
pub(super) fn interleave(rounds: usize, metrics: Vec<Metric>, contenders: Vec<Contender<'_>>) -> Results {
    let mut failures = Vec::new();
    let mut running: Vec<(Contender<'_>, Vec<Vec<f64>>)> = contenders.into_iter().map(|c| (c, Vec::new())).collect();
    for round in 1..=rounds {
        running.retain_mut(|(contender, reached)| {
            say(&format!("  round {round} of {rounds}: {}", contender.name));
            match (contender.measure)() {
                Ok(numbers) => {
                    let shown: Vec<String> = numbers.iter().map(|number| format!("{number:.3}")).collect();
                    say(&format!(": {}\n", shown.join(", ")));
                    reached.push(numbers);
                    true
                }
                Err(error) => {
                    say(&format!(": failed: {error:#}\n"));
                    failures.push(format!("{}: failed in round {round}: {error:#}", contender.name));
                    false
                }
            }
        });
    }
    let rows = running.into_iter().map(|(c, reached)| (c.name, reached)).collect();
    Results { metrics, rows, failures }
}

impl Results {
    /// The ratios, round by round, of one contender to another in one metric.
    pub(super) fn median_ratio(&self, metric: usize, contender: &str, reference: &str) -> Option<f64> {
        let find = |name: &str| self.rows.iter().find(|(own, _)| own == name).map(|(_, reached)| reached);
        let (ours, theirs) = (find(contender)?, find(reference)?);
        let ratios = ours.iter().zip(theirs).map(|(our, their)| {
            let (our, their) = (our[metric], their[metric]);
            match self.metrics[metric].ratio {
                Ratio::OfReference => our / their,
                Ratio::ToReference => their / our,
                Ratio::None => f64::NAN,
            }
        });
        let median = spread(ratios)?.1;
        median.is_finite().then_some(median)
    }

    /// The median of what one contender reached in one metric.
    pub(super) fn median(&self, metric: usize, contender: &str) -> Option<f64> {
        let (_, reached) = self.rows.iter().find(|(own, _)| own == contender)?;
        spread(reached.iter().map(|numbers| numbers[metric])).map(|(_, median, _)| median)
    }

    /// Who is out, and why.
    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// One table per metric, and a line per contender that is out.
    pub(super) fn tables(&self, reference: &str) -> String {
        let mut text = String::new();
        for (index, metric) in self.metrics.iter().enumerate() {
            let with_ratio = !matches!(metric.ratio, Ratio::None);
            let (head, rule) = match metric.ratio {
                Ratio::OfReference => (format!(" ÷ {reference} |"), "--:|"),
                Ratio::ToReference => (format!(" {reference} ÷ this |"), "--:|"),
                Ratio::None => (String::new(), ""),
            };
            let _ = writeln!(text, "| {} | min | median | max |{head}\n|---|--:|--:|--:|{rule}", metric.name);
            for (name, reached) in &self.rows {
                let Some((least, middle, most)) = spread(reached.iter().map(|numbers| numbers[index])) else {
                    continue;
                };
                let digits = metric.digits;
                let _ = write!(text, "| {name} | {least:.digits$} | {middle:.digits$} | {most:.digits$} |");
                if with_ratio {
                    let ratio = self.median_ratio(index, name, reference);
                    let _ = write!(text, " {} |", ratio.map_or("–".to_owned(), ratio_text));
                }
                text.push('\n');
            }
            text.push('\n');
        }
        for failure in &self.failures {
            let _ = writeln!(text, "{failure}\n");
        }
        text
    }
}

/// Two digits behind the point, or more where they would be noughts.
fn ratio_text(ratio: f64) -> String {
    let digits = if ratio < 0.1 { 5 } else { 2 };
    format!("{ratio:.digits$}")
}

/// Says whether a ratio reaches its goal.
pub(super) fn goal(what: &str, ratio: Option<f64>, least: f64) -> String {
    match ratio {
        Some(ratio) => {
            let verdict = if ratio >= least { "met" } else { "missed" };
            format!("Goal: {what} ≥ {least}: {verdict} ({ratio:.2}).\n\n")
        }
        None => format!("Goal: {what} ≥ {least}: not judged.\n\n"),
    }
}

/// Smallest, median and largest.
fn spread(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64, f64)> {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_by(f64::total_cmp);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let middle = sorted.len() / 2;
    let median =
        if sorted.len().is_multiple_of(2) { f64::midpoint(sorted[middle - 1], sorted[middle]) } else { sorted[middle] };
    Some((first, median, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        assert_eq!(spread([3.0, 1.0, 2.0].into_iter()), Some((1.0, 2.0, 3.0)));
        assert_eq!(spread([4.0, 1.0].into_iter()), Some((1.0, 2.5, 4.0)));
        assert_eq!(spread(std::iter::empty()), None);
    }

    #[test]
    fn ratios_are_of_the_same_round_and_failures_are_out() {
        let metric = |ratio| Metric { name: "m", digits: 0, ratio };
        let mut ours = [10.0, 40.0, 90.0].into_iter();
        let mut theirs = [10.0, 20.0, 30.0].into_iter();
        let mut calls = 0;
        let results = interleave(
            3,
            vec![metric(Ratio::OfReference), metric(Ratio::ToReference)],
            vec![
                Contender::new("ours", || Ok(vec![ours.next().unwrap(); 2])),
                Contender::new("theirs", || Ok(vec![theirs.next().unwrap(); 2])),
                Contender::new("broken", || {
                    calls += 1;
                    anyhow::bail!("no")
                }),
            ],
        );
        assert_eq!(results.median_ratio(0, "ours", "theirs"), Some(2.0));
        assert_eq!(results.median_ratio(1, "ours", "theirs"), Some(0.5));
        assert_eq!(results.median_ratio(0, "broken", "theirs"), None);
        let tables = results.tables("theirs");
        assert!(tables.contains("| ours | 10 | 40 | 90 | 2.00 |"), "{tables}");
        assert!(tables.contains("broken: failed in round 1: no"), "{tables}");
        assert_eq!(calls, 1);
    }
}
