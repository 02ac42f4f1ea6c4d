//! `narrows history`: what `narrows watch` kept.

mod compare;
mod document;
mod import;
mod path;
mod table;
mod when;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use narrows_store::records::{Event, Run, Span, Target};
use narrows_store::{Error, Reader};
use narrows_watch::{Signal, WallTime};
use uuid::Uuid;

use crate::exit::{Exit, Failure};
use crate::{output, state};
use compare::CompareArgs;
pub(crate) use document::word;
use document::{HistoryDocument, Names};
pub(crate) use import::figures;
use path::PathArgs;
use when::{When, parse_length, rfc_3339};

/// Print what `narrows watch` kept: values, events, incidents and runs.
///
/// Times are UTC: "2026-11-22 19:42", "2026-11-22", today, yesterday, now; or ago: 90min, 24h, 7d.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HistoryArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Which values; may be repeated [default: available; of one time, all]
    #[arg(long = "metric", value_name = "METRIC", value_parser = metric())]
    metrics: Vec<Signal>,
    /// Points of each metric at most: a point stands for all values of its time
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    points: u16,
    /// A point for each length of time instead, such as 5min, 1h or 1d
    #[arg(long, value_name = "LENGTH", value_parser = parse_length, conflicts_with = "points")]
    every: Option<Duration>,
    /// The newest value at this time only, at most 24 h older
    #[arg(long, value_name = "TIME", value_parser = When::parse,
        conflicts_with_all = ["since", "until", "points", "every"])]
    at: Option<When>,
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
    /// List the paths: routers, MTU, and when they were others
    Path(PathArgs),
    /// Compare two times, metric by metric
    Compare(CompareArgs),
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
    #[command(flatten)]
    answer: Answer,
}

/// From which store, in which form, and where to.
#[derive(Debug, clap::Args)]
struct Answer {
    /// How it is printed
    #[arg(long, value_enum, default_value = "table")]
    format: Form,
    /// Print one JSON object
    #[arg(long, short = 'J', conflicts_with = "format")]
    json: bool,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, clap::Args)]
struct StoreArgs {
    /// The file that `narrows watch` writes [default: /var/lib/narrows/watch.db, for users
    /// ~/.local/state/narrows/watch.db]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

impl StoreArgs {
    fn file(&self) -> PathBuf {
        self.store.clone().unwrap_or_else(state::watch_store)
    }
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
        Some(Action::Path(args)) => path::run(args),
        Some(Action::Compare(args)) => compare::run(args),
        Some(Action::Show { id, format, store }) => show(*id, *format, &store.file()),
        Some(Action::Backup { to, store }) => backup(to, &store.file()),
        Some(Action::Check { store }) => check(&store.file()),
        Some(Action::Import { files, target, store }) => import::run(files, target.as_deref(), &store.file()),
    }
}

fn series(args: &HistoryArgs) -> Result<Exit, Failure> {
    let (now, question) = (now(), &args.question);
    let at = args.at.map(|at| at.at(now));
    let span = match at {
        Some(at) => Span { since: WallTime::from_millis(at.millis() - DAY_MS), until: at },
        None => question.span(now)?,
    };
    if args.every.is_some_and(|every| span.until.since(span.since).div_duration_f64(every) > MOST_POINTS) {
        return Err(Failure::usage(format!("--every: that is more than {MOST_POINTS} points; name a longer one")));
    }
    let asked = Asked::new(&question.targets, &question.answer, span, now)?;
    let usual = if at.is_some() { &Signal::ALL[..] } else { &[Signal::AvailableForward] };
    let metrics = if args.metrics.is_empty() { usual } else { &args.metrics };
    let mut document = asked.document();
    for target in &asked.targets {
        for signal in metrics {
            let (id, reader) = (target.id, &asked.reader);
            let points = match (at, args.every) {
                (Some(at), _) => reader.at(id, *signal, at).map(|point| point.into_iter().collect()),
                (None, Some(every)) => reader.series_every(id, *signal, span, every),
                (None, None) => reader.series(id, *signal, span, usize::from(args.points)),
            };
            document.push_series(target, *signal, &points.map_err(failure)?);
        }
    }
    if document.series.iter().all(|one| one.points.is_empty()) {
        hint_at_metrics(&asked)?;
    }
    asked.write(&document, table::series, HistoryDocument::series_csv)
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
    let asked = list.question.asked()?;
    let limit = usize::from(list.limit);
    let found = asked.of_targets(limit, |target| asked.reader.events(target, asked.span, limit), |event| event.at)?;
    let mut document = asked.document();
    document.push_events(&asked.names, &found);
    asked.say_if_none(found.is_empty(), "no event");
    asked.write(&document, |document| table::events(&document.events), HistoryDocument::events_csv)
}

fn why(list: &ListArgs) -> Result<Exit, Failure> {
    let asked = list.question.asked()?;
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
    asked.say_if_none(incidents.is_empty(), "no incident");
    asked.write(&document, |document| table::incidents(&document.incidents), HistoryDocument::incidents_csv)
}

fn runs(list: &ListArgs) -> Result<Exit, Failure> {
    let asked = list.question.asked()?;
    let limit = usize::from(list.limit);
    let found = asked.of_targets(limit, |target| asked.reader.runs(target, asked.span, limit), |run| run.began)?;
    let mut document = asked.document();
    document.push_runs(&asked.names, &found);
    asked.say_if_none(found.is_empty(), "no run");
    asked.write(&document, |document| table::runs(&document.runs), HistoryDocument::runs_csv)
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

impl Question {
    fn span(&self, now: WallTime) -> Result<Span, Failure> {
        let span = Span { since: self.since.at(now), until: self.until.at(now) };
        if span.since >= span.until {
            return Err(Failure::usage("--since is not before --until"));
        }
        Ok(span)
    }

    fn asked(&self) -> Result<Asked<'_>, Failure> {
        let now = now();
        Asked::new(&self.targets, &self.answer, self.span(now)?, now)
    }
}

fn now() -> WallTime {
    WallTime::from_millis(narrows_net::clock::wall_ns().div_euclid(1_000_000))
}

/// A question with what it needs: the store, its targets, the time.
struct Asked<'a> {
    answer: &'a Answer,
    reader: Reader,
    targets: Vec<Target>,
    /// Targets were named.
    by_name: bool,
    names: Names,
    now: WallTime,
    span: Span,
}

impl<'a> Asked<'a> {
    fn new(targets: &[String], answer: &'a Answer, span: Span, now: WallTime) -> Result<Self, Failure> {
        output::check(answer.output.as_ref())?;
        let reader = open(&answer.store.file())?;
        let all = reader.all_targets().map_err(failure)?;
        let names = Names::new(&all);
        let by_name = !targets.is_empty();
        Ok(Self { answer, reader, targets: chosen(all, targets)?, by_name, names, now, span })
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
        if !self.by_name {
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

    /// An empty answer says why to people; JSON says it by itself.
    fn say_if_none(&self, none: bool, what: &str) {
        if !none || self.answer.json || self.answer.format == Form::Json {
            return;
        }
        let names: Vec<&str> = self.targets.iter().map(|target| &*target.name).collect();
        let of = if self.by_name { format!(" of {}", names.join(", ")) } else { String::new() };
        let [since, until] = [self.span.since, self.span.until].map(|at| table::second(&rfc_3339(at)));
        output::complain(&format!("{what}{of} is stored from {since} to {until} UTC; --since looks further back"));
    }

    fn write(
        &self,
        document: &HistoryDocument,
        table: impl Fn(&HistoryDocument) -> String,
        sheet: impl Fn(&HistoryDocument) -> String,
    ) -> Result<Exit, Failure> {
        let text = match self.answer.format {
            _ if self.answer.json => document.json(),
            Form::Table => table(document),
            Form::Csv => sheet(document),
            Form::Json => document.json(),
        };
        output::write(&text, self.answer.output.as_deref())?;
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
        Error::NotFound | Error::Foreign(_) | Error::Newer { .. } | Error::Older { .. } | Error::TooLong => {
            Failure::usage(error.to_string())
        }
        _ => Failure::host(error.to_string()),
    }
}

const DAY_MS: i64 = 86_400_000;
/// Of one metric.
const MOST_POINTS: f64 = 10_000.0;
