//! `narrows evaluate PLAN.toml`: scenarios, methods, parameters, seeds and worlds crossed, with the
//! published numbers beside ours.

mod check;
mod lab;
mod progress;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_evaluate::{Cell, ExternalRunner, Options, Plan, Store, carry_out, document, each_run, pictures};
use narrows_report::page::{Figure, Pictures, Reproduction};
use narrows_report::{EvaluationDocument, World};

use self::progress::Bar;
use crate::commands::simulate::processors;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

/// Run a plan: methods over scenarios, in the simulator and in the lab, beside what was published.
#[derive(Debug, clap::Args)]
pub(crate) struct EvaluateArgs {
    /// Plan file
    plan: PathBuf,
    /// List the rows and how many runs each takes; run nothing
    #[arg(long)]
    check: bool,
    /// Only this world
    #[arg(long, value_parser = world, value_name = "simulator|lab|recording")]
    world: Option<World>,
    /// Runs per row, instead of the plan's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    runs: Option<u32>,
    /// Play this host profile at both ends, instead of the scenarios' hosts; in the simulator only
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Only rows whose scenario or method contains this; may be repeated, and rows must fit each
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Where finished runs and raw observations are kept; the plan's name and ".runs" by default.
    /// What is there is not run again
    #[arg(long, value_name = "DIR")]
    runs_dir: Option<PathBuf>,
    /// Simulated runs at a time; as many as there are processors by default
    #[arg(long, short, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    print: PrintArgs,
}

/// What is made of the rows.
#[derive(Debug, clap::Args)]
struct PrintArgs {
    /// Print one JSON object
    #[arg(long, short = 'J')]
    json: bool,
    /// Write what is printed to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the rows as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the rows as Parquet
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Write one row per run as CSV
    #[arg(long, value_name = "FILE")]
    runs_csv: Option<PathBuf>,
    /// Write one row per run as Parquet
    #[arg(long, value_name = "FILE")]
    runs_parquet: Option<PathBuf>,
    /// Write one self-contained page with tables and pictures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// No progress
    #[arg(long)]
    quiet: bool,
}

impl PrintArgs {
    fn files(&self) -> [Option<&PathBuf>; 6] {
        [
            self.output.as_ref(),
            self.csv.as_ref(),
            self.parquet.as_ref(),
            self.runs_csv.as_ref(),
            self.runs_parquet.as_ref(),
            self.html.as_ref(),
        ]
    }
}

impl EvaluateArgs {
    /// Whether it will need private hosts: only a plan with rows in the lab does. What is wrong
    /// with the plan is said later.
    pub(crate) fn builds(&self) -> bool {
        let in_lab = |mut plan: Plan| {
            narrow(self, &mut plan).is_ok() && plan.cells().iter().any(|cell| cell.world == World::Lab)
        };
        let may = !self.check && self.world.is_none_or(|world| world == World::Lab);
        may && Plan::read(&self.plan).is_ok_and(in_lab)
    }
}

pub(crate) fn run(args: &EvaluateArgs) -> Result<Exit, Failure> {
    #[cfg(not(feature = "parquet"))]
    if args.print.parquet.is_some() || args.print.runs_parquet.is_some() {
        return Err(Failure::without("Parquet", "parquet"));
    }
    let mut plan = Plan::read(&args.plan).map_err(|error| Failure::usage(error.to_string()))?;
    narrow(args, &mut plan)?;
    if args.check {
        output::write(&check::text(&plan), args.print.output.as_deref())?;
        return Ok(Exit::Valid);
    }
    for file in args.print.files() {
        output::check(file)?;
    }
    let stop = interrupt::flag()?;
    let folder = args.runs_dir.clone();
    let folder = folder.unwrap_or_else(|| PathBuf::from(format!("{}.runs", plan.name)));
    let mut store = Store::open(&folder).map_err(host)?;
    let cells = plan.cells();
    let options = Options { jobs: args.jobs.map_or_else(processors, usize::from), stop };
    let mut bar = Bar::new(args.print.quiet);
    let mut runners = runners(stop);
    let mut runners: Vec<&mut dyn ExternalRunner> =
        runners.iter_mut().map(|bench| &mut **bench as &mut dyn ExternalRunner).collect();
    let shortfalls = carry_out(&cells, &mut store, &mut runners, options, &mut bar).map_err(host)?;
    bar.finish();
    let document = document(&plan, &cells, &store, &shortfalls);
    write(args, &plan, &cells, &store, &document)?;
    if stop.load(Ordering::Relaxed) {
        output::complain("interrupted: the same command goes on from here");
        return Ok(Exit::Failure);
    }
    let any = document.rows.iter().any(|row| row.summary.median_value_bps.is_some());
    Ok(if any { Exit::Valid } else { Exit::Inconclusive })
}

/// The worlds that are not the simulator's.
fn runners(stop: &Arc<AtomicBool>) -> Vec<Box<dyn ExternalRunner>> {
    vec![Box::new(lab::LabRunner::new(Arc::clone(stop)))]
}

fn host(error: impl std::fmt::Display) -> Failure {
    Failure::host(error.to_string())
}

fn world(text: &str) -> Result<World, String> {
    let found = World::ALL.into_iter().find(|world| world.name() == text);
    found.ok_or_else(|| "the worlds are simulator, lab and recording".to_owned())
}

/// What the flags leave of the plan.
fn narrow(args: &EvaluateArgs, plan: &mut Plan) -> Result<(), Failure> {
    if let Some(world) = args.world {
        plan.only_world(world);
    }
    if let Some(runs) = args.runs {
        plan.runs = narrows_evaluate::plan::Runs { simulator: runs, lab: runs, recording: runs };
        plan.check_size().map_err(|error| Failure::usage(error.to_string()))?;
    }
    if let Some(file) = &args.hosts {
        plan.play(file).map_err(|error| Failure::usage(error.to_string()))?;
    }
    for text in &args.only {
        if !plan.only(text) {
            let why = format!("--only {text}: no row's scenario or method contains it");
            return Err(Failure::usage(why));
        }
    }
    Ok(())
}

/// The files first, the table last: it says what there is.
fn write(
    args: &EvaluateArgs,
    plan: &Plan,
    cells: &[Cell],
    store: &Store,
    document: &EvaluationDocument,
) -> Result<(), Failure> {
    let print = &args.print;
    if let Some(path) = &print.csv {
        output::write(&document.csv(), Some(path))?;
    }
    if let Some(path) = &print.runs_csv {
        output::write(&narrows_evaluate::runs_csv(each_run(cells, store)), Some(path))?;
    }
    #[cfg(feature = "parquet")]
    if let Some(path) = &print.parquet {
        narrows_evaluate::rows_parquet(document, path).map_err(host)?;
    }
    #[cfg(feature = "parquet")]
    if let Some(path) = &print.runs_parquet {
        narrows_evaluate::runs_parquet(each_run(cells, store), path).map_err(host)?;
    }
    if let Some(path) = &print.html {
        let pictures =
            Pictures { figures: figures(cells, store, document), reproduction: reproduction(args, plan, cells) };
        output::write(&narrows_report::page::html(document, &pictures), Some(path))?;
    }
    let text = if print.json { document.json() + "\n" } else { document.text() };
    output::write(&text, print.output.as_deref())
}

fn figures(cells: &[Cell], store: &Store, document: &EvaluationDocument) -> Vec<Figure> {
    let mut figures = pictures::of_rows(cells, document);
    figures.extend(pictures::of_runs(cells, store));
    figures
}

/// How to get the same page again. Nothing in it depends on when, or in how many goes, the plan was
/// run.
fn reproduction(args: &EvaluateArgs, plan: &Plan, cells: &[Cell]) -> Reproduction {
    let mut command = format!("narrows evaluate {}", args.plan.display());
    let mut flag = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            command.extend([" --", name, " ", &value]);
        }
    };
    flag("world", args.world.map(|world| world.name().to_owned()));
    flag("runs", args.runs.map(|runs| runs.to_string()));
    flag("hosts", args.hosts.as_ref().map(|file| file.display().to_string()));
    for text in &args.only {
        flag("only", Some(text.clone()));
    }
    let in_lab = cells.iter().any(|cell| cell.world == World::Lab);
    let kernel = std::fs::read_to_string(Path::new("/proc/sys/kernel/osrelease"));
    let machine = kernel.ok().filter(|_| in_lab).map(|release| format!("Linux {}", release.trim()));
    Reproduction {
        command,
        seed: plan.seed,
        program: format!("narrows {}", env!("CARGO_PKG_VERSION")),
        machine: machine.into_iter().collect(),
    }
}
