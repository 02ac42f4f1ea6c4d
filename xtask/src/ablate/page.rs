//! The page: what constants pay, in the order of how much.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::constants::Constant;
use super::grid::Cell;
use super::score::{Grid, Summary, loss};
use crate::provenance::Provenance;

/// What came of one value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// No run on the grid reads the constant.
    NotRead,
    /// A quarter of the runs gave what they give as shipped.
    Same,
    /// The program did not end well, and said this.
    Failed(String),
    /// How much worse the grid is, its standard error, and the grid.
    Changed { loss: f64, error: f64, summary: Summary },
}

impl Outcome {
    pub(super) fn of(shipped: &Grid, grid: &Grid) -> Self {
        let (loss, error) = loss(shipped, grid);
        Self::Changed { loss, error, summary: Summary::of(grid) }
    }

    /// Shares of the capacity; a program that fails loses everything.
    fn loss(&self) -> f64 {
        match self {
            Self::NotRead | Self::Same => 0.0,
            Self::Failed(_) => 1.0,
            Self::Changed { loss, .. } => *loss,
        }
    }

    /// Whether it is worse (`1.0`) or better (`-1.0`) than shipped by more than chance would have
    /// it.
    fn is(&self, sign: f64) -> bool {
        match self {
            Self::NotRead | Self::Same => false,
            Self::Failed(_) => sign > 0.0,
            Self::Changed { loss, error, .. } => sign * loss > SURE * error && sign * loss > LEAST,
        }
    }
}

/// Standard errors from which a difference counts.
const SURE: f64 = 2.0;
/// And the least that counts, as a share of the capacity.
const LEAST: f64 = 0.000_5;

/// One number of a constant, left out or halved, and doubled.
#[derive(Debug, Clone)]
pub(super) struct Try {
    file: String,
    name: String,
    shipped: String,
    origin: String,
    values: [(String, Outcome); 2],
}

impl Try {
    pub(super) fn new(constant: &Constant, number: usize, values: [(String, Outcome); 2]) -> Self {
        let several = constant.numbers.len() > 1;
        let name = if several { format!("{}[{number}]", constant.name) } else { constant.name.clone() };
        let shipped = constant.numbers[number].text.clone();
        Self { file: constant.file.clone(), name, shipped, origin: constant.origin.clone(), values }
    }

    fn all(&self, is: impl Fn(&Outcome) -> bool) -> bool {
        self.values.iter().all(|(_, outcome)| is(outcome))
    }

    fn pays(&self) -> bool {
        self.values.iter().any(|(_, outcome)| outcome.is(1.0))
    }

    /// The most that another value loses.
    fn most(&self) -> f64 {
        self.values.iter().map(|(_, outcome)| outcome.loss()).fold(f64::MIN, f64::max)
    }
}

/// For those who wait.
impl fmt::Display for Try {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.file, self.name, self.shipped)?;
        for (value, outcome) in &self.values {
            match outcome {
                Outcome::NotRead => write!(f, "; {value}: not read")?,
                Outcome::Same => write!(f, "; {value}: same")?,
                Outcome::Failed(why) => write!(f, "; {value}: fails, {why}")?,
                Outcome::Changed { loss, error, .. } => {
                    write!(f, "; {value}: {:+.2} ± {:.2}", 100.0 * loss, 100.0 * error)?;
                }
            }
        }
        Ok(())
    }
}

/// One method.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) method: &'static str,
    pub(super) cells: Vec<Cell>,
    pub(super) base: Grid,
    pub(super) tries: Vec<Try>,
    /// File, name and reason.
    pub(super) skipped: Vec<(String, String, &'static str)>,
}

/// The whole page.
pub(super) fn page(sections: &[Section], runs: u32, seed: u64, made: &Provenance) -> String {
    let mut text = format!(
        "# What each constant of the default estimators pays\n\n{}\n{}",
        made.lines(),
        RULES.replace("RUNS", &runs.to_string()).replace("SEED", &seed.to_string()),
    );
    for section in sections {
        section.write(&mut text);
    }
    text
}

impl Section {
    fn write(&self, text: &mut String) {
        let paths: Vec<String> = self.cells.iter().map(name).collect();
        let (mut not_read, mut same, mut nothing, mut pays) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for tried in &self.tries {
            if tried.all(|outcome| *outcome == Outcome::NotRead) {
                not_read.push(tried);
            } else if tried.all(|outcome| *outcome == Outcome::Same) {
                same.push(tried);
            } else if tried.pays() {
                pays.push(tried);
            } else {
                nothing.push(tried);
            }
        }
        pays.sort_by(|a, b| b.most().partial_cmp(&a.most()).unwrap_or(Ordering::Equal));
        nothing.sort_by(|a, b| b.most().partial_cmp(&a.most()).unwrap_or(Ordering::Equal));
        let better = self.tries.iter().filter(|tried| tried.values.iter().any(|(_, outcome)| outcome.is(-1.0))).count();
        let _ = write!(
            text,
            "\n## {} (`{}`)\n\nCells: {}.\n\n| numbers of constants | |\n|---|--:|\n\
             | that pay: another value is worse | {} |\n| whose change changes answers, but nothing is worse | {} |\n\
             | whose change changes no answer | {} |\n| that no run reads | {} |\n| that were not varied | {} |\n\
             | of all these: another value is better | {better} |\n\n",
            self.title,
            self.method,
            paths.join(", "),
            pays.len(),
            nothing.len(),
            same.len(),
            not_read.len(),
            self.skipped.len(),
        );
        self.table(text, "Constants that pay", &pays);
        self.table(text, "Constants that change answers and pay nothing", &nothing);
        list(text, "Constants whose change changes no answer", &same);
        list(text, "Constants that no run reads", &not_read);
        let _ = write!(text, "### Not varied\n\n");
        let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (file, name, why) in &self.skipped {
            reasons.entry(why).or_default().push(format!("`{name}` ({file})"));
        }
        for (why, names) in reasons {
            let _ = writeln!(text, "- {why}: {}", names.join(", "));
        }
    }

    fn table(&self, text: &mut String, title: &str, tries: &[&Try]) {
        let _ = write!(text, "### {title}\n\n{HEAD}{}", row("*as shipped*", "", "", "", &Summary::of(&self.base)));
        for tried in tries {
            let constant = format!("`{}` {}", tried.name, tried.file);
            for (value, outcome) in &tried.values {
                let _ = match outcome {
                    Outcome::Changed { loss, error, summary } => {
                        let mark = if outcome.is(1.0) { "**" } else { "" };
                        let lost = format!("{mark}{:+.2} ± {:.2}{mark}", 100.0 * loss, 100.0 * error);
                        let value = format!("{} → {value}", tried.shipped);
                        text.write_str(&row(&constant, &tried.origin, &value, &lost, summary))
                    }
                    Outcome::Same => {
                        writeln!(
                            text,
                            "| {constant} | {} | {} → {value} | same | | | | | | |",
                            tried.origin, tried.shipped
                        )
                    }
                    Outcome::Failed(why) => {
                        let why = why.replace('|', "/");
                        let said = format!("**fails** ({why})");
                        writeln!(
                            text,
                            "| {constant} | {} | {} → {value} | {said} | | | | | | |",
                            tried.origin, tried.shipped
                        )
                    }
                    Outcome::NotRead => Ok(()),
                };
            }
        }
        text.push('\n');
    }
}

const HEAD: &str = "\
| constant | source | value | loss | median | p90 | coverage | bounds/none | MB | s |
|---|---|---|--:|--:|--:|--:|--:|--:|--:|
";

fn row(constant: &str, origin: &str, value: &str, lost: &str, summary: &Summary) -> String {
    format!(
        "| {constant} | {origin} | {value} | {lost} | {:.2} | {:.2} | {:.0} | {:.0}/{:.0} | {:.2} | {:.2} |\n",
        100.0 * summary.median,
        100.0 * summary.p90,
        100.0 * summary.coverage,
        100.0 * summary.bounds,
        100.0 * summary.inconclusive,
        summary.megabytes,
        summary.seconds,
    )
}

/// Constants without a table, by file.
fn list(text: &mut String, title: &str, tries: &[&Try]) {
    let _ = write!(text, "### {title}\n\n");
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for tried in tries {
        files.entry(&tried.file).or_default().push(format!("`{}` {} ({})", tried.name, tried.shipped, tried.origin));
    }
    for (file, names) in files {
        let _ = writeln!(text, "- {file}: {}", names.join(", "));
    }
    text.push_str(if tries.is_empty() { "None.\n\n" } else { "\n" });
}

/// The path, and the hosts if they are measured ones.
fn name(cell: &Cell) -> String {
    let stem = |path: &str| path.rsplit('/').next().unwrap_or(path).trim_end_matches(".toml").to_owned();
    cell.hosts.map_or_else(|| stem(cell.path), |hosts| format!("{} between {}", stem(cell.path), stem(hosts)))
}

/// How to read the tables.
const RULES: &str = "\
This page says which numbers of the default estimators are worth their place. Each number of each constant was left out or halved, and
doubled, one at a time, over paths of `plans/paths` and `scenarios`: RUNS runs in each cell, seeds from SEED on, the same for every row.
These seeds chose no constant. A factor near 1 (0.7 to 1.5) is left out at 1 and doubled by its distance from 1.

The shipped sources stay as they are: the command builds a copy in which each constant is a function that reads an override, and checks that
the copy without overrides answers every cell as the shipped program does, to the last digit.

| column | meaning |
|---|---|
| source | as the constant's comment says: key of a paper, RFC, or ours |
| loss | rise of the mean interval score at equal octets, in per cent of the capacity, ± its standard error over the runs. Bold: more than \
two standard errors, and more than 0.05 |
| median, p90 | unsigned error of values, per cent of the narrow link's capacity, over all runs of all cells |
| coverage | share of the numbers whose interval or bound covers the truth; nominal 90 |
| bounds/none | share of runs with a bound, and without a number |
| MB, s | means of IP octets and of the run's time |

The interval score is the interval's width, and twenty times what it misses the truth by; it is least for the interval that says what is
known (T. Gneiting and A. E. Raftery, 2007). No run counts as more than twice the capacity. A bound counts as an interval that ends at the capacity, and no answer as one from nothing to
the capacity. Errors of sampling fall with the root of the octets, so the score is multiplied by the root of the ratio of octets.

A constant without a loss is a candidate to go. Three kinds of it differ:
- *No run reads it*: the grid has no path that it is for, so the page says nothing against it. Its tests have to.
- *No answer changes*: in a quarter of the runs, every answer is the same to the last digit; the rest was not simulated.
- *Answers change and nothing is worse*: to within twice the standard error that stands beside the loss.
One in forty constants that pay nothing is bold by chance.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(loss: f64, error: f64) -> Outcome {
        let summary = Summary {
            median: 0.01,
            p90: 0.04,
            coverage: 0.9,
            bounds: 0.0,
            inconclusive: 0.0,
            megabytes: 1.0,
            seconds: 2.0,
        };
        Outcome::Changed { loss, error, summary }
    }

    fn tried(name: &str, one: Outcome, two: Outcome) -> Try {
        let values = [("1".to_owned(), one), ("2".to_owned(), two)];
        Try { file: "a.rs".into(), name: name.into(), shipped: "1.5".into(), origin: "ours".into(), values }
    }

    /// Each constant in its own part, the largest loss first.
    #[test]
    fn constants_stand_where_they_belong() {
        let section = Section {
            title: "Capacity",
            method: "capacity",
            cells: vec![Cell { path: "a/b.toml", hosts: Some("hosts/q.toml") }],
            base: Vec::new(),
            tries: vec![
                tried("UNREAD", Outcome::NotRead, Outcome::NotRead),
                tried("SMALL", changed(0.01, 0.002), Outcome::Same),
                tried("NOISE", changed(0.01, 0.006), changed(-0.01, 0.006)),
                tried("STILL", Outcome::Same, Outcome::Same),
                tried("LARGE", changed(-0.02, 0.001), changed(0.03, 0.001)),
                tried("BROKEN", changed(0.0, 0.0), Outcome::Failed("panicked".into())),
            ],
            skipped: vec![("a.rs".into(), "MARK".into(), "an identifier")],
        };
        let mut text = String::new();
        section.write(&mut text);
        let at = |name: &str| text.find(&format!("`{name}`")).unwrap_or_else(|| panic!("{name}: {text}"));
        let order = ["BROKEN", "LARGE", "SMALL", "NOISE", "STILL", "UNREAD", "MARK"].map(at);
        assert!(order.is_sorted(), "{text}");
        let part = |title: &str| text.find(title).unwrap();
        assert!(part("### Constants that change") > at("SMALL") && part("### Constants that change") < at("NOISE"));
        assert!(text.contains("| that pay: another value is worse | 3 |"), "{text}");
        assert!(text.contains("another value is better | 1 |"), "{text}");
        assert!(text.contains("b between q"), "{text}");
    }
}
