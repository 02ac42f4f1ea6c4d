//! What each constant of the default estimators pays: the grid without it, and with twice of it.

mod constants;
mod grid;
mod page;
mod program;
mod rewrite;
mod score;
mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::constants::{Constant, others};
use self::grid::{Cell, Order, SUBJECTS, Subject};
use self::page::{Outcome, Section, Try};
use self::program::Varied;
use self::score::{Grid, Judged};
use crate::provenance::Provenance;
use crate::shell::{now, root, say};

/// What the user asked for.
struct Options {
    method: Option<String>,
    runs: u32,
    seed: u64,
    jobs: u32,
    file: Option<PathBuf>,
}

/// `--method slope|capacity` (default both), `--runs N` in each cell (default 12), `--seed N`,
/// `--jobs N` at a time (default 1), `--write FILE`.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let mut options = Options { method: None, runs: 12, seed: 31_000, jobs: 1, file: None };
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let value = rest.next().with_context(|| format!("{arg} needs a value"))?;
        let number = || value.parse().with_context(|| format!("{arg} needs a number"));
        match arg.as_str() {
            "--method" => options.method = Some(value.clone()),
            "--runs" => options.runs = number()?,
            "--seed" => options.seed = u64::from(number()?),
            "--jobs" => options.jobs = number()?,
            "--write" => options.file = Some(value.into()),
            _ => bail!("unknown option {arg}"),
        }
    }
    let asked = |subject: &&Subject| options.method.as_deref().is_none_or(|method| method == subject.method);
    let subjects: Vec<&Subject> = SUBJECTS.iter().filter(asked).collect();
    if subjects.is_empty() || options.runs < 2 {
        bail!("--method takes slope or capacity, --runs at least 2");
    }
    let shipped = program::shipped()?;
    let folders: Vec<&str> = SUBJECTS.iter().flat_map(|subject| subject.folders).copied().collect();
    let varied = program::varied(&folders)?;
    let made = Provenance::begins(&format!("cargo xtask ablate {}", args.join(" ")));
    let mut sections = Vec::new();
    for subject in subjects {
        sections.push(section(subject, &shipped, &varied, &options)?);
    }
    let page = page::page(&sections, options.runs, options.seed, &made);
    say(&page);
    if let Some(file) = &options.file {
        std::fs::write(root().join(file), page).with_context(|| file.display().to_string())?;
    }
    Ok(true)
}

/// The runs of one cell as shipped, and which constants they read.
struct Shipped {
    cell: Cell,
    /// The first quarter of the runs, and the rest.
    parts: [(Vec<Judged>, String); 2],
    keys: BTreeSet<String>,
}

fn section(subject: &'static Subject, shipped: &Path, varied: &Varied, options: &Options) -> Result<Section> {
    let began = now();
    let desk = Desk { subject, program: &varied.program, options };
    let mut cells = Vec::new();
    for cell in subject.cells() {
        cells.push(desk.shipped(cell, shipped)?);
    }
    if cells.iter().all(|cell| cell.keys.is_empty()) {
        bail!("no constant was read: the copy is not the instrumented one");
    }
    let base: Grid = cells.iter().map(|cell| whole(&cell.parts.clone().map(|(runs, _)| runs))).collect();
    say(&format!("{}: {} cells as shipped in {} s\n", subject.method, cells.len(), began.elapsed().as_secs()));
    let own = |file: &str| subject.folders.iter().any(|folder| program::in_folder(file, folder));
    let constants: Vec<&Constant> = varied.constants.iter().filter(|constant| own(&constant.file)).collect();
    let mut rows = Vec::new();
    for (index, constant) in constants.iter().enumerate() {
        for (number, written) in constant.numbers.iter().enumerate() {
            let Some((without, twice)) = others(&written.text) else { continue };
            let of = |value: &str| desk.tried(constant, number, value, &cells, &base);
            let tried = Try::new(constant, number, [(without.clone(), of(&without)?), (twice.clone(), of(&twice)?)]);
            say(&format!("{}/{} after {} s: {tried}\n", index + 1, constants.len(), began.elapsed().as_secs()));
            rows.push(tried);
        }
    }
    let not_varied = varied.skipped.iter().filter(|(file, _, _)| own(file)).cloned().collect();
    let cells = cells.iter().map(|cell| cell.cell).collect();
    Ok(Section { title: subject.title, method: subject.method, cells, base, tries: rows, skipped: not_varied })
}

/// Both parts of a cell's runs.
fn whole(parts: &[Vec<Judged>; 2]) -> Vec<Judged> {
    parts.concat()
}

/// Where runs are ordered.
struct Desk<'a> {
    subject: &'a Subject,
    program: &'a Path,
    options: &'a Options,
}

impl Desk<'_> {
    /// One of the two parts of a cell's runs.
    fn order(&self, cell: Cell, part: usize) -> Order<'_> {
        let first = self.options.runs.div_ceil(4);
        let (from, runs) = if part == 0 { (0, first) } else { (first, self.options.runs - first) };
        let Options { seed, jobs, .. } = *self.options;
        Order { program: self.program, method: self.subject.method, cell, seed: seed + u64::from(from), runs, jobs }
    }

    /// A cell as shipped; an error if the instrumented program answers anything else.
    fn shipped(&self, cell: Cell, shipped: &Path) -> Result<Shipped> {
        let mut keys = BTreeSet::new();
        let mut part = |part| -> Result<(Vec<Judged>, String)> {
            let order = self.order(cell, part);
            let (answer, read) = order.with_keys()?;
            let expected = Order { program: shipped, ..order }.carry_out(None)?;
            if answer.text != expected.text {
                bail!("{}: without an override the instrumented program does not answer as the shipped one", cell.path);
            }
            keys.extend(read);
            Ok((judged(&answer)?, answer.text))
        };
        let parts = [part(0)?, part(1)?];
        Ok(Shipped { cell, parts, keys })
    }

    /// The grid with one number overridden. Cells that never read the constant are as shipped. If a
    /// quarter of the runs gives the same everywhere, the rest is not simulated.
    fn tried(
        &self,
        constant: &Constant,
        number: usize,
        value: &str,
        cells: &[Shipped],
        base: &Grid,
    ) -> Result<Outcome> {
        let key = rewrite::key(constant);
        let reading: Vec<usize> = (0..cells.len()).filter(|&index| cells[index].keys.contains(&key)).collect();
        if reading.is_empty() {
            return Ok(Outcome::NotRead);
        }
        let ablation = format!("{}={value}", rewrite::number_key(constant, number));
        let mut parts: Vec<[Vec<Judged>; 2]> =
            cells.iter().map(|cell| cell.parts.clone().map(|(runs, _)| runs)).collect();
        for part in [0, 1] {
            let mut same = true;
            for &index in &reading {
                let answer = match self.order(cells[index].cell, part).carry_out(Some(&ablation)) {
                    Ok(answer) => answer,
                    Err(error) => return Ok(Outcome::Failed(format!("{error:#}"))),
                };
                same &= answer.text == cells[index].parts[part].1;
                parts[index][part] = judged(&answer)?;
            }
            if part == 0 && same {
                return Ok(Outcome::Same);
            }
        }
        let grid: Grid = parts.iter().map(whole).collect();
        Ok(Outcome::of(base, &grid))
    }
}

fn judged(answer: &grid::Answer) -> Result<Vec<Judged>> {
    let each = answer.document.runs.iter().map(|run| Judged::new(run, answer.capacity_bps));
    each.collect::<Option<Vec<Judged>>>().context("a run without a truth")
}
