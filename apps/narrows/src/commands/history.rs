//! `narrows history`: what `narrows watch` kept.

mod document;
mod import;
mod table;
mod when;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use narrows_store::records::{Event, Run, Span, Target};
use narrows_store::{Error, Reader};
use narrows_watch::{Signal, WallTime};
use uuid::Uuid;

use crate::exit::{Exit, Failure};
use crate::output;
use document::{HistoryDocument, Names};
pub(crate) use import::figures;
use when::When;

/// Print what `narrows watch` kept: values, events, incidents and runs.
///
/// Times are UTC: "2026-11-22 19:42", "2026-11-22", today, yesterday, now; or ago: 90min, 24h, 7d.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HistoryArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Which values; may be repeated
    #[arg(long = "metric", value_name = "METRIC", default_value = "available", value_parser = metric())]
    metrics: Vec<Signal>,
    /// Points of each metric at most: a point stands for all values of its time
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    points: u16,
    #[command(flatten)]
    question: Question,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List what happened: changes, routes, servers that went and came
    Events(ListArgs),
    /// Explain incidents: the cause, the events that belong together, the evidence
    Why(ListArgs),
    /// List what was run
    Runs(ListArgs),
    /// Print one run with its document
    Show {
        /// The run's number, as `history runs` prints it
        id: Uuid,
        /// How it is printed
        #[arg(long, value_enum, default_value = "table")]
        format: Form,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Copy the store to a new file, while `narrows watch` goes on
    Backup {
        /// The new file
        to: PathBuf,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Look through the store for damage
    Check {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Add stored results: JSON of any measuring command, or pages that hold it
    Import {
        /// What was stored
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Add them to this target [default: the one that each document names]
        #[arg(long, value_name = "NAME")]
        target: Option<String>,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// A list of what falls into a time.
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    question: Question,
    /// The newest ones only
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    limit: u16,
}

/// About whom, of which time, and in which form.
#[derive(Debug, clap::Args)]
struct Question {
    /// Targets by their names [default: all]
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// From this time on
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = When::parse)]
    since: When,
    /// Up to this time, and without it
    #[arg(long, value_name = "TIME", default_value = "now", value_parser = When::parse)]
    until: When,
    /// How it is printed
    #[arg(long, value_enum, default_value = "table")]
    format: Form,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, clap::Args)]
struct StoreArgs {
    /// The file that `narrows watch` writes
    #[arg(long, value_name = "FILE", default_value = "/var/lib/narrows/watch.db")]
    store: PathBuf,
}

/// How a history is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// For people
    Table,
    /// A header line and one line each
    Csv,
    /// One JSON object
    Json,
}

fn metric() -> impl TypedValueParser<Value = Signal> {
    let find = |name: String| Signal::ALL.into_iter().find(|signal| signal.name() == name);
    PossibleValuesParser::new(Signal::ALL.map(Signal::name)).try_map(move |name| find(name).ok_or("no such metric"))
}

pub(crate) fn run(args: &HistoryArgs) -> Result<Exit, Failure> {
    match &args.action {
        None => series(args),
        Some(Action::Events(list)) => events(list),
        Some(Action::Why(list)) => why(list),
        Some(Action::Runs(list)) => runs(list),
        Some(Action::Show { id, format, store }) => show(*id, *format, &store.store),
        Some(Action::Backup { to, store }) => backup(to, &store.store),
        Some(Action::Check { store }) => check(&store.store),
        Some(Action::Import { files, target, store }) => import::run(files, target.as_deref(), &store.store),
    }
}

fn series(args: &HistoryArgs) -> Result<Exit, Failure> {
    let asked = Asked::new(&args.question)?;
    let mut document = asked.document();
    for target in &asked.targets {
        for signal in &args.metrics {
            let points = asked.reader.series(target.id, *signal, asked.span, usize::from(args.points));
            document.push_series(target, *signal, &points.map_err(failure)?);
        }
    }
    if document.series.iter().all(|one| one.points.is_empty()) {
        hint_at_metrics(&asked)?;
    }
    asked.write(&match args.question.format {
        Form::Table => table::series(&document),
        Form::Csv => document.series_csv(),
        Form::Json => document.json(),
    })
}

/// Says which metrics the targets have: a target without our server has no available rate.
fn hint_at_metrics(asked: &Asked<'_>) -> Result<(), Failure> {
    let mut known = Vec::new();
    for target in &asked.targets {
        known.extend(asked.reader.newest(target.id).map_err(failure)?.into_keys());
    }
    known.sort_unstable();
    known.dedup();
    let names: Vec<&str> = known.into_iter().map(Signal::name).collect();
    output::complain(&match &names[..] {
        [] => "no values of these targets are stored".to_owned(),
        _ => format!("no such values in this time; stored are values of {}", names.join(", ")),
    });
    Ok(())
}

fn events(list: &ListArgs) -> Result<Exit, Failure> {
    let asked = Asked::new(&list.question)?;
    let limit = usize::from(list.limit);
    let found = asked.of_targets(limit, |target| asked.reader.events(target, asked.span, limit), |event| event.at)?;
    let mut document = asked.document();
    document.push_events(&asked.names, &found);
    asked.write(&match list.question.format {
        Form::Table => table::events(&document.events),
        Form::Csv => document.events_csv(),
        Form::Json => document.json(),
    })
}

fn why(list: &ListArgs) -> Result<Exit, Failure> {
    let asked = Asked::new(&list.question)?;
    let limit = usize::from(list.limit);
    let incidents =
        asked.of_targets(limit, |target| asked.reader.incidents(target, asked.span, limit), |it| it.began)?;
    let mut document = asked.document();
    for incident in &incidents {
        // What an event changed may have begun before anyone saw an incident in it.
        let since = WallTime::from_millis(incident.began.millis() - DAY_MS);
        let until = incident.ended.map_or(asked.now, |ended| WallTime::from_millis(ended.millis() + DAY_MS));
        let all = asked.reader.events(Some(incident.target), Span { since, until }, usize::MAX).map_err(failure)?;
        let own: Vec<Event> = all.into_iter().filter(|event| event.incident == Some(incident.id)).rev().collect();
        document.push_incident(&asked.names, incident, &own);
    }
    asked.write(&match list.question.format {
        Form::Table => table::incidents(&document.incidents),
        Form::Csv => document.incidents_csv(),
        Form::Json => document.json(),
    })
}

fn runs(list: &ListArgs) -> Result<Exit, Failure> {
    let asked = Asked::new(&list.question)?;
    let limit = usize::from(list.limit);
    let found = asked.of_targets(limit, |target| asked.reader.runs(target, asked.span, limit), |run| run.began)?;
    let mut document = asked.document();
    document.push_runs(&asked.names, &found);
    asked.write(&match list.question.format {
        Form::Table => table::runs(&document.runs),
        Form::Csv => document.runs_csv(),
        Form::Json => document.json(),
    })
}

fn show(id: Uuid, format: Form, store: &Path) -> Result<Exit, Failure> {
    let reader = open(store)?;
    let found: Run = reader.run(id).map_err(|error| match error {
        Error::NotFound => Failure::usage(format!("there is no run {id}; narrows history runs lists them")),
        other => failure(other),
    })?;
    let mut document = HistoryDocument::new(None);
    document.push_runs(&Names::new(&reader.all_targets().map_err(failure)?), &[found]);
    let text = match format {
        Form::Table => table::runs(&document.runs) + &table::documents(&document.runs),
        Form::Csv => document.runs_csv(),
        Form::Json => document.json(),
    };
    output::write(&text, None)?;
    Ok(Exit::Valid)
}

fn backup(to: &Path, store: &Path) -> Result<Exit, Failure> {
    if to.exists() {
        return Err(Failure::usage(format!("{} exists: name a new file", to.display())));
    }
    open(store)?.backup(to).map_err(failure)?;
    Ok(Exit::Valid)
}

fn check(store: &Path) -> Result<Exit, Failure> {
    let reader = open(store)?;
    reader.check().map_err(failure)?;
    let size = reader.size().map_err(failure)?;
    output::write(&format!("{} is whole: {}\n", store.display(), narrows_units::Octets::new(size)), None)?;
    Ok(Exit::Valid)
}

/// A question with what it needs: the store, its targets, the time.
struct Asked<'a> {
    question: &'a Question,
    reader: Reader,
    targets: Vec<Target>,
    names: Names,
    now: WallTime,
    span: Span,
}

impl<'a> Asked<'a> {
    fn new(question: &'a Question) -> Result<Self, Failure> {
        output::check(question.output.as_ref())?;
        let now = WallTime::from_millis(narrows_net::clock::wall_ns().div_euclid(1_000_000));
        let span = Span { since: question.since.at(now), until: question.until.at(now) };
        if span.since >= span.until {
            return Err(Failure::usage("--since is not before --until"));
        }
        let reader = open(&question.store.store)?;
        let all = reader.all_targets().map_err(failure)?;
        let names = Names::new(&all);
        let targets = chosen(all, &question.targets)?;
        Ok(Self { question, reader, targets, names, now, span })
    }

    fn document(&self) -> HistoryDocument {
        HistoryDocument::new(Some(self.span))
    }

    /// Rows of the targets that were named, or of all: newest first.
    fn of_targets<T>(
        &self,
        limit: usize,
        ask: impl Fn(Option<narrows_watch::schedule::TargetId>) -> narrows_store::Result<Vec<T>>,
        at: impl Fn(&T) -> WallTime,
    ) -> Result<Vec<T>, Failure> {
        if self.question.targets.is_empty() {
            return ask(None).map_err(failure);
        }
        let mut found = Vec::new();
        for target in &self.targets {
            found.extend(ask(Some(target.id)).map_err(failure)?);
        }
        found.sort_by_key(|row| std::cmp::Reverse(at(row)));
        found.truncate(limit);
        Ok(found)
    }

    fn write(&self, text: &str) -> Result<Exit, Failure> {
        output::write(text, self.question.output.as_deref())?;
        Ok(Exit::Valid)
    }
}

/// The targets of these names; all that are followed where none is given.
fn chosen(all: Vec<Target>, names: &[String]) -> Result<Vec<Target>, Failure> {
    if names.is_empty() {
        return Ok(all.into_iter().filter(|target| target.retired.is_none()).collect());
    }
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|target| target.name != **name)) {
        let known: Vec<&str> = all.iter().map(|target| &*target.name).collect();
        return Err(Failure::usage(format!("there is no target {unknown:?}; stored are: {}", known.join(", "))));
    }
    Ok(all.into_iter().filter(|target| names.contains(&target.name)).collect())
}

fn open(store: &Path) -> Result<Reader, Failure> {
    if !store.exists() {
        return Err(Failure::usage(format!("{}: there is no store; --store names another", store.display())));
    }
    Reader::open(store).map_err(failure)
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn failure(error: Error) -> Failure {
    match error {
        Error::NotFound | Error::Foreign(_) | Error::Newer { .. } | Error::TooLong => Failure::usage(error.to_string()),
        _ => Failure::host(error.to_string()),
    }
}

const DAY_MS: i64 = 86_400_000;
