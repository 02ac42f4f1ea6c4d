//! What many runs come to: errors, coverage and bounds, as the pages print them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use narrows_stat::{binomial_cdf, median, quantile};

/// Share of intervals, and of bounds, that are meant to hold the truth; a count with a smaller
/// probability than the second is no chance: the rule of `crates/evaluate/src/expected.rs`.
const NOMINAL: f64 = 0.9;
const UNLIKELY: f64 = 0.001;
/// An interval that misses the truth by more than this share of the capacity is wrong and
/// confident.
const WRONG: f64 = 0.1;
/// A value within this share of the capacity is near: marked low, it is doubted for nothing.
const NEAR: f64 = 0.05;

/// What a run claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    Value,
    AtLeast,
    AtMost,
    Nothing,
}

/// One run, as `narrows evaluate --runs-csv` prints it.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) scenario: String,
    claim: Claim,
    /// The method doubts what it claims.
    low: bool,
    truth: Option<f64>,
    /// Value, and both ends of its interval.
    value: Option<[f64; 3]>,
    octets: f64,
    seconds: f64,
    /// What errors are relative to.
    scale: f64,
}

/// The runs of a table.
pub(super) fn runs(csv: &str) -> Result<Vec<Run>> {
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().context("the table has a head")?.split(',').collect();
    let places: BTreeMap<&str, usize> = head.iter().enumerate().map(|(place, name)| (*name, place)).collect();
    lines.map(|line| run(line, &places).with_context(|| line.to_owned())).collect()
}

fn run(line: &str, places: &BTreeMap<&str, usize>) -> Result<Run> {
    let fields = fields(line);
    let field = |name: &str| {
        let place = places.get(name).with_context(|| format!("no column {name}"))?;
        fields.get(*place).map(String::as_str).with_context(|| format!("no field {name}"))
    };
    let number = |name: &str| -> Result<Option<f64>> {
        let text = field(name)?;
        if text.is_empty() { Ok(None) } else { Ok(Some(text.parse()?)) }
    };
    let value = match (number("value_bps")?, number("low_bps")?, number("high_bps")?) {
        (Some(value), Some(low), Some(high)) => Some([value, low, high]),
        _ => None,
    };
    let truth = number("truth_bps")?;
    Ok(Run {
        scenario: field("scenario")?.to_owned(),
        claim: match field("verdict")? {
            "estimated" => Claim::Value,
            "lower_bound" => Claim::AtLeast,
            "upper_bound" => Claim::AtMost,
            _ => Claim::Nothing,
        },
        low: field("confidence")? == "low",
        truth,
        value,
        octets: number("octets")?.unwrap_or(0.0),
        seconds: number("time_ns")?.unwrap_or(0.0) / 1e9,
        scale: number("scale_bps")?.or(truth).unwrap_or(1.0),
    })
}

/// Fields of a line; commas in quotes are part of theirs.
fn fields(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quoted = false;
    for letter in line.trim_end_matches('\r').chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            _ => {
                if let Some(last) = all.last_mut() {
                    last.push(letter);
                }
            }
        }
    }
    all
}

/// How many of so many hold the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held {
    pub(super) held: u64,
    pub(super) of: u64,
}

impl Held {
    /// So few that the binomial of nine in ten excludes chance.
    pub(super) fn too_few(self) -> bool {
        self.of > 0 && binomial_cdf(self.held, self.of, NOMINAL) < UNLIKELY
    }

    /// In per cent; bold if they are too few; a dash if there are none.
    pub(super) fn cell(self) -> String {
        if self.of == 0 {
            return "–".to_owned();
        }
        let share = format!("{:.0}", 100.0 * self.held as f64 / self.of as f64);
        if self.too_few() { format!("**{share}**") } else { share }
    }
}

/// Runs summed up.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) runs: usize,
    pub(super) values: usize,
    pub(super) bounds: usize,
    pub(super) none: usize,
    pub(super) wrong: usize,
    /// Answers that are not marked low, and those of them that are wrong.
    pub(super) sure: usize,
    pub(super) sure_and_wrong: usize,
    /// Values near the truth, and those of them that are marked low.
    near: usize,
    near_and_low: usize,
    errors: Vec<f64>,
    pub(super) intervals: Held,
    pub(super) bounds_held: Held,
    /// Lower bounds, as shares of the truth.
    lower: Vec<f64>,
    octets: Vec<f64>,
    seconds: Vec<f64>,
}

impl Sums {
    pub(super) fn of<'a>(runs: impl Iterator<Item = &'a Run>) -> Self {
        let mut sums = Self::default();
        for run in runs {
            sums.add(run);
        }
        sums
    }

    fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.octets.push(run.octets);
        self.seconds.push(run.seconds);
        let (Some([value, low, high]), Some(truth)) = (run.value, run.truth) else {
            self.none += 1;
            return;
        };
        let miss = match run.claim {
            Claim::Value => (low - truth).max(truth - high).max(0.0),
            Claim::AtLeast => (low - truth).max(0.0),
            Claim::AtMost => (truth - high).max(0.0),
            Claim::Nothing => {
                self.none += 1;
                return;
            }
        };
        let wrong = miss > WRONG * run.scale;
        self.wrong += usize::from(wrong);
        self.sure += usize::from(!run.low);
        self.sure_and_wrong += usize::from(wrong && !run.low);
        let counted = if run.claim == Claim::Value { &mut self.intervals } else { &mut self.bounds_held };
        counted.of += 1;
        counted.held += u64::from(miss <= 0.0);
        if run.claim == Claim::Value {
            self.values += 1;
            let error = (value - truth) / run.scale;
            self.errors.push(error);
            let near = error.abs() <= NEAR;
            self.near += usize::from(near);
            self.near_and_low += usize::from(near && run.low);
        } else {
            self.bounds += 1;
        }
        if run.claim == Claim::AtLeast && truth > 0.0 {
            self.lower.push(value / truth);
        }
    }

    /// Median error with its sign, and what nine of ten errors are within, in per cent.
    pub(super) fn errors(&self) -> String {
        let absolute: Vec<f64> = self.errors.iter().map(|error| error.abs()).collect();
        match (median(&self.errors), quantile(&absolute, 0.9)) {
            (Some(middle), Some(most)) => format!("{}, {}", signed(middle), percent(most)),
            _ => "–".to_owned(),
        }
    }

    /// Median and smallest share of the truth of lower bounds, in per cent.
    pub(super) fn tightness(&self) -> String {
        let least = self.lower.iter().copied().reduce(f64::min);
        match (median(&self.lower), least) {
            (Some(middle), Some(least)) => format!("{}, {}", percent(middle), percent(least)),
            _ => "–".to_owned(),
        }
    }

    /// Coverage, and what there is instead of values.
    pub(super) fn held(&self) -> String {
        let some = |count: usize, word: &str| if count > 0 { format!(", {count}{word}") } else { String::new() };
        format!("{}{}{}", self.intervals.cell(), some(self.bounds, "b"), some(self.none, "n"))
    }

    /// Median octets and seconds.
    pub(super) fn cost(&self) -> String {
        let middle = |values: &[f64]| median(values).unwrap_or(0.0);
        format!("{:.2} MB, {:.2} s", middle(&self.octets) / 1e6, middle(&self.seconds))
    }

    /// Of answers that are not marked low those that are wrong, and of values near the truth those
    /// that are marked low, in per cent.
    pub(super) fn doubts(&self) -> String {
        let share = |count: usize, of: usize| percent(count as f64 / of.max(1) as f64);
        format!("{}, {}", share(self.sure_and_wrong, self.sure), share(self.near_and_low, self.near))
    }

    /// A share of all runs, in per cent.
    pub(super) fn share(&self, count: usize) -> String {
        percent(count as f64 / self.runs.max(1) as f64)
    }
}

/// With two digits behind the point where the first one says little.
fn percent(ratio: f64) -> String {
    let value = 100.0 * ratio;
    if value.abs() < 0.995 { format!("{value:.2}") } else { format!("{value:.1}") }
}

fn signed(ratio: f64) -> String {
    if ratio < 0.0 { percent(ratio) } else { format!("+{}", percent(ratio)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "scenario,method,verdict,truth_bps,value_bps,low_bps,high_bps,octets,time_ns,scale_bps,confidence\r\n\
        a,\"m, n\",estimated,100,110,90,120,1000000,500000000,200,low\r\n\
        a,m,estimated,100,160,130,170,3000000,500000000,200,medium\r\n\
        b,m,lower_bound,100,80,80,100,2000000,1500000000,200,high\r\n\
        b,m,inconclusive,100,,,,2000000,1500000000,200,\r\n";

    /// By hand: errors of +5 and +30 % of 200, so the median is 17.5 and nine of ten are within
    /// 27.5; the second interval misses by 30, more than a tenth of 200.
    #[test]
    fn sums_by_hand() {
        let runs = runs(CSV).unwrap();
        let sums = Sums::of(runs.iter());
        assert_eq!((sums.runs, sums.values, sums.bounds, sums.none, sums.wrong), (4, 2, 1, 1, 1));
        assert_eq!(sums.errors(), "+17.5, 27.5");
        assert_eq!((sums.intervals, sums.bounds_held), (Held { held: 1, of: 2 }, Held { held: 1, of: 1 }));
        assert_eq!(sums.tightness(), "80.0, 80.0");
        assert_eq!(sums.held(), "50, 1b, 1n");
        // One of two that are not marked low is wrong; the one value near the truth is marked low.
        assert_eq!(sums.doubts(), "50.0, 100.0");
        assert_eq!(sums.cost(), "2.00 MB, 1.00 s");
    }

    /// 79 of 100 have a probability of 0.0005 if nine in ten are right, 80 of 100 one of 0.002.
    #[test]
    fn coverage_is_judged_by_the_binomial() {
        assert!(Held { held: 79, of: 100 }.too_few() && !Held { held: 80, of: 100 }.too_few());
        assert_eq!(Held { held: 79, of: 100 }.cell(), "**79**");
        assert_eq!(Held::default().cell(), "–");
    }

    #[test]
    fn a_table_without_a_column_is_refused() {
        assert!(runs("scenario,verdict\na,estimated\n").is_err());
    }
}
