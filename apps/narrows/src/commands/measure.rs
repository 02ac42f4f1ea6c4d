//! `narrows capacity | rtt | udp | tcp HOST`: one metric, one method; and what the commands with
//! reports of their own share.

mod directions;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use narrows_methods as methods;
use narrows_methods::DEFAULT;
use narrows_methods::job::JobReport;
use narrows_net::via::Via;
use narrows_probe::outcome::{Estimate, Reason};
use narrows_probe::progress::{Feed, Observed, Plan, PlannedStage, Progress as Event, StageBegan, StageEnded};
use narrows_probe::{Answering, Budget, Entry, Measured, Method, Order, Outcome, PathFacts, RawParams, World};
use narrows_report::picture::Picture;
use narrows_report::{Document, Problem, ReportFile, Target};
use narrows_trace::{Recorder, Setting, WorldKind};
use narrows_units::{Direction, Metric, Octets, nanos};

use super::methods::unknown;
use crate::budget::BudgetLimits;
use crate::connect::{self, ConnectArgs};
use crate::exit::{Exit, Failure};
use crate::fail_if::FailIfArgs;
use crate::files::FileArgs;
use crate::link::LinkLock;
use crate::progress::{Progress, StreamTo, Wanted};
use crate::record::{FileWriter, RecordArgs};
use crate::remote::Remote;
use crate::{environment, interrupt, output};

/// What every single measurement takes.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that the user sees")]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Method; see `narrows methods`
    #[arg(long, short, add = crate::complete::methods())]
    method: Option<String>,
    /// Parameter of the method, NAME=VALUE; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// How a host that runs no `narrows serve` is made to answer: icmp (echo), `udp[:PORT]` (a
    /// closed port), `tcp[:PORT]` (SYNs; needs `CAP_NET_RAW`; ask the host's owner first) or
    /// `stamp[:PORT]` (an RFC 8762 or TWAMP-Light reflector; --psk-file: its key)
    #[arg(long, value_name = "HOW", conflicts_with_all = ["reverse", "key_name"])]
    via: Option<Via>,
    /// Measure the reverse direction: from the server to this host
    #[arg(long, short = 'R')]
    reverse: bool,
    /// Octets, time and peak rate that it may cost, such as "20 MB, 30 s, 50 Mbit/s"
    #[arg(long, value_parser = crate::budget::parse)]
    pub(super) budget: Option<BudgetLimits>,
    /// Print one JSON object: an entry of `metrics` of `test --json`
    #[arg(long, short = 'J')]
    json: bool,
    /// Print one JSON object per event while it measures, the result in the last one
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) fail_if: FailIfArgs,
    #[command(flatten)]
    pub(super) files: FileArgs,
    #[command(flatten)]
    pub(super) record: RecordArgs,
    /// No progress
    #[arg(long)]
    quiet: bool,
}

impl MeasureArgs {
    /// What another command's flags say of it: method and its parameters, and whether JSON is
    /// wanted and where the result goes.
    pub(super) fn of(
        connect: ConnectArgs,
        (method, params): (String, Vec<String>),
        reverse: bool,
        (json, output): (bool, Option<PathBuf>),
        fail_if: FailIfArgs,
        files: FileArgs,
    ) -> Self {
        Self {
            connect,
            method: Some(method),
            params,
            via: None,
            reverse,
            budget: None,
            json,
            json_stream: false,
            output,
            fail_if,
            files,
            record: RecordArgs { file: None },
            quiet: json,
        }
    }

    pub(super) fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    pub(super) fn params(&self) -> &[String] {
        &self.params
    }

    /// The remote host, as the caller named it.
    pub(super) fn host(&self) -> &str {
        self.connect.host()
    }

    /// Where the progress goes.
    pub(super) fn progress(&self, screen: Option<bool>) -> Wanted<'_> {
        Wanted { quiet: self.quiet, stream: self.json_stream.then_some(StreamTo(self.output.as_deref())), screen }
    }

    /// For whoever follows it.
    pub(super) fn announced(&self, method: &dyn Method, params: &RawParams, address: Option<IpAddr>) -> Plan {
        let info = method.info();
        let direction = if self.reverse { Direction::Reverse } else { Direction::Forward };
        let usual = method.imposes(params);
        let budget = self.budget.map_or(usual.budget(), |limits| limits.over(usual.budget()));
        let stage = PlannedStage {
            metric: info.metric,
            direction,
            octets: usual.typical_octets,
            time_ns: nanos(usual.typical_time),
        };
        Plan {
            command: command_of(info.metric).to_owned(),
            target: self.connect.host().to_owned(),
            address,
            details: format!("{}, method {}", format!("{direction:?}").to_lowercase(), info.name),
            about_ns: Some(stage.time_ns),
            stages: vec![stage],
            most_ns: Some(nanos(budget.time)),
            most_octets: Some(budget.octets),
        }
    }

    pub(super) fn streams(&self) -> bool {
        self.json_stream
    }

    /// Nothing for people is printed.
    pub(super) fn plain(&self) -> bool {
        self.quiet || self.json || self.json_stream
    }

    /// The result is JSON, alone or as the end of a stream.
    pub(super) fn json(&self) -> bool {
        self.json || self.json_stream
    }

    pub(super) fn output(&self) -> Option<&PathBuf> {
        self.output.as_ref()
    }
}

/// `narrows tcp`, with its quick and full form.
#[derive(Debug, clap::Args)]
pub(crate) struct TcpArgs {
    #[command(flatten)]
    measure: MeasureArgs,
    /// Stop soon after slow start, as quick mode does (the default)
    #[arg(long, conflicts_with = "time")]
    quick: bool,
    /// Run this long instead, such as "20 s"
    #[arg(long, short, value_parser = narrows_units::parse_duration_or_seconds)]
    time: Option<std::time::Duration>,
}

pub(crate) fn tcp(args: &TcpArgs) -> Result<Exit, Failure> {
    let mut extra = Vec::new();
    if let Some(time) = args.time {
        extra.push(("mode".to_owned(), "full".to_owned()));
        extra.push(("duration".to_owned(), format!("{} ns", time.as_nanos())));
    } else {
        extra.push(("mode".to_owned(), "quick".to_owned()));
    }
    measure(&args.measure, Metric::TcpAchievableSingle, &extra)
}

/// Measures `metric`, by the automatic choice unless the caller names a method.
pub(crate) fn run(args: &MeasureArgs, metric: Metric) -> Result<Exit, Failure> {
    measure(args, metric, &[])
}

/// The same with parameters that other flags stand for.
pub(super) fn measure(args: &MeasureArgs, metric: Metric, extra: &[(String, String)]) -> Result<Exit, Failure> {
    measure_as(args, metric, extra, |document, outcome| {
        let text =
            if args.json() { document.row_json() + "\n" } else { document.row_text() + &directions::text(outcome) };
        Ok(Reported { text, file: None })
    })
}

/// What a command prints, and its own report file where it has one.
pub(super) struct Reported {
    pub(super) text: String,
    /// What it prints as JSON, and its picture with what to see in it.
    pub(super) file: Option<(String, &'static str, Picture)>,
}

/// The same, printed in another form. What the caller typed overrides `extra`.
pub(super) fn measure_as(
    args: &MeasureArgs,
    metric: Metric,
    extra: &[(String, String)],
    reported: impl FnOnce(&Document, &Outcome) -> Result<Reported, Failure>,
) -> Result<Exit, Failure> {
    let method = choose(args, args.method.as_deref(), metric)?;
    args.fail_if.check(&[method.info().metric], &[])?;
    output::check(args.output.as_ref())?;
    args.files.check()?;
    let given = super::simulate::split(&args.params)?;
    let params: RawParams = extra.iter().cloned().chain(given).collect();
    // Bad parameters are told before anything is connected.
    method.begin(&params).map_err(|error| Failure::usage(error.to_string()))?;
    let progress = Progress::start(args.progress(None), args.announced(method, &params, None))?;
    let _link = (metric != Metric::RoundTripTime)
        .then(|| LinkLock::by_hand(args.host(), &progress).map_err(|failure| progress.failed(failure)))
        .transpose()?;
    let measured = over_sockets(args, method, &params, &progress).map_err(|failure| progress.failed(failure))?;
    let document = document(args, metric, &measured);
    let redaction = document.redaction();
    let document = if args.files.redact() { document.redacted() } else { document };
    let exit = if measured.entry.outcome.estimate().is_some() { Exit::Valid } else { Exit::Inconclusive };
    let Reported { text, file } = reported(&document, &measured.entry.outcome)?;
    if !progress.conclude(&text) {
        output::write(&text, args.output.as_deref())?;
    }
    args.files.write(
        || redaction,
        |command| {
            let report = ReportFile::of(&document, command);
            match file {
                Some((json, caption, picture)) => report.with_json(json).with_picture(caption, picture),
                None => report.with_json(document.row_json()),
            }
        },
    )?;
    args.record.close(measured.writer, measured.write_fault)?;
    if let Some(failure) = measured.failure {
        return Err(failure);
    }
    Ok(args.fail_if.exit(&document, exit))
}

/// One metric as a document of its own.
fn document(args: &MeasureArgs, metric: Metric, measured: &RunResult) -> Document {
    let job: JobReport<()> = JobReport {
        facts: measured.facts.clone(),
        entries: std::iter::once(&measured.entry).chain(&measured.beside).cloned().collect(),
        stages: Vec::new(),
        cost: measured.entry.cost,
        fault: None,
    };
    let kind = match metric {
        Metric::IpCapacity => "capacity",
        Metric::AvailableIpCapacity => "available",
        Metric::RoundTripTime => "rtt",
        Metric::MaximumBurstOctets => "burst",
        Metric::TcpStreamsToFill => "streams",
        Metric::UdpAchievable => "udp",
        _ => "tcp",
    };
    let target = Target { name: args.host().to_owned(), address: measured.address, port: None };
    let mut document = Document::new(kind, env!("CARGO_PKG_VERSION").to_owned(), target, &[job], &[]);
    document.started_at = Some(measured.begun.clone());
    document.error = measured.failure.as_ref().map(|failure| Problem {
        code: failure.exit.code(),
        who: failure.who,
        text: failure.text.clone(),
    });
    document.conclude();
    document
}

/// The method that the caller named, or the automatic choice; either must be able to do with what
/// answers there.
pub(super) fn choose(args: &MeasureArgs, name: Option<&str>, metric: Metric) -> Result<&'static dyn Method, Failure> {
    let name = name.unwrap_or(DEFAULT);
    let answering = args.via.map_or(Answering::Server, Via::answering);
    if let (DEFAULT, Some(via)) = (name, args.via) {
        return methods::automatic_for(metric, answering).ok_or_else(|| not_by(via, None, metric));
    }
    let method = methods::named(name, metric).ok_or_else(|| unknown(name))?;
    if method.info().metric != metric {
        let why = format!("{name} measures {}, not {metric}", method.info().metric);
        return Err(Failure::usage(why));
    }
    match args.via {
        Some(via) if !method.answered_by().contains(&answering) => Err(not_by(via, Some(name), metric)),
        _ => Ok(method),
    }
}

/// Nothing there can answer the method, or any method for this metric; says what could be done
/// instead.
fn not_by(via: Via, name: Option<&str>, metric: Metric) -> Failure {
    let names = |answering: Answering| {
        let able = methods::answered(metric, answering).map(|method| method.info().name);
        able.collect::<Vec<_>>().join(", ")
    };
    let who = name.map_or_else(|| format!("no method for {metric}"), |name| format!("{name} cannot"));
    let verb = if name.is_some() { "work" } else { "works" };
    let mut text = format!("{who} {verb} with hosts that only answer by {via}");
    let here = names(via.answering());
    if !here.is_empty() {
        let _ = write!(text, "; these can: {here}");
    }
    let ways = [
        ("icmp", Answering::Echo),
        ("udp", Answering::ClosedPort),
        ("tcp", Answering::TcpSyn),
        ("stamp", Answering::Reflector),
    ];
    for (way, answering) in ways.into_iter().filter(|(_, answering)| *answering != via.answering()) {
        let remote = names(answering);
        if !remote.is_empty() {
            let _ = write!(text, "; --via {way}: {remote}");
        }
    }
    text += "; with `narrows serve` on that host every method works";
    Failure::usage(text)
}

/// Nobody is there, or nobody who speaks our protocol: says that this is not the only way.
fn hinting(failure: Failure) -> Failure {
    let text = match failure.exit {
        Exit::Unreachable => {
            format!("{}; without a server there, --via icmp, udp, tcp or stamp may do", failure.text)
        }
        _ => failure.text,
    };
    Failure { text, ..failure }
}

/// The subcommand whose metric it is.
fn command_of(metric: Metric) -> &'static str {
    match metric {
        Metric::IpCapacity => "capacity",
        Metric::AvailableIpCapacity => "available",
        Metric::RoundTripTime => "rtt",
        Metric::UdpAchievable => "udp",
        Metric::TcpAchievableSingle => "tcp",
        Metric::MaximumBurstOctets => "burst",
        other => other.name(),
    }
}

/// What was measured, and what broke on the way: what was known by then is a result too.
struct RunResult {
    begun: String,
    address: Option<IpAddr>,
    facts: PathFacts,
    entry: Entry,
    /// The largest packet that passes, where larger ones vanish; or why it was not found.
    beside: Option<Entry>,
    failure: Option<Failure>,
    writer: Option<FileWriter>,
    write_fault: Option<narrows_trace::WriteError>,
}

/// The remote host, connected to, and which way is measured.
pub(super) fn remote(
    args: &MeasureArgs,
    stop: &Arc<AtomicBool>,
    progress: &Progress,
) -> Result<(Remote, Direction), Failure> {
    let peer = args.connect.peer()?;
    let direction = if args.reverse { Direction::Reverse } else { Direction::Forward };
    let world = if let Some(via) = args.via {
        Remote::SingleEnded(Box::new(peer.connect_single_ended(via, None, stop)?))
    } else {
        let world = peer.connect(direction, stop, progress).map_err(hinting)?;
        Remote::Server(Box::new(world))
    };
    Ok((world, direction))
}

fn over_sockets(
    args: &MeasureArgs,
    method: &'static dyn Method,
    params: &RawParams,
    progress: &Progress,
) -> Result<RunResult, Failure> {
    let writer = args.record.open()?;
    let stop = interrupt::flag()?;
    let started = environment::now();
    let (world, direction) = remote(args, stop, progress)?;
    let facts = world.facts();
    progress.plan(args.announced(method, params, Some(world.address().ip())));
    let mut world = Recorder::maybe(world, writer, Setting::new(WorldKind::Sockets).towards(direction));
    let mut one = |method: &'static dyn Method, params: &RawParams| {
        let estimator = method.begin(params).map_err(|error| Failure::usage(error.to_string()))?;
        let usual = method.imposes(params).budget();
        let budget: Budget = args.budget.map_or(usual, |limits| limits.over(usual));
        let metric = method.info().metric;
        let order = Order { metric, method: method.info().name, params, budget, estimator };
        let began = StageBegan { metric, direction, method: method.info().name.to_owned() };
        progress.tell(world.now(), Event::StageBegan(began));
        Ok(match narrows_probe::run(&mut Observed::new(&mut world, progress), order) {
            Ok(measured) => (measured, None),
            Err(broken) => (broken.measured, Some(connect::failure(&broken.fault))),
        })
    };
    let (mut measured, mut failure) = one(method, params)?;
    let mut beside = None;
    if failure.is_none() && full_packets_may_vanish(method, &measured) {
        // The world sends nothing larger than what this finds to pass.
        let pmtu = methods::named(SIZE, Metric::PathMtu).ok_or_else(|| unknown(SIZE))?;
        let (size, fault) = one(pmtu, &RawParams::default())?;
        failure = fault;
        measured.cost = measured.cost.then(size.cost);
        if failure.is_none() && passes_less(&size, facts.path_mtu) {
            let cost = measured.cost;
            (measured, failure) = one(method, params)?;
            measured.cost = cost.then(measured.cost);
            beside = Some(size);
        } else if args.via.is_some() && size.outcome.estimate().is_none() {
            // Why not, which the silence does not say.
            beside = Some(size);
        }
    }
    if let Some(failure) = failure.take_if(|_| world.reports() == 0) {
        return Err(failure);
    }
    let (remote, writer, write_fault) = world.into_parts();
    let metric = method.info().metric;
    let name = answered_by(&measured.outcome).unwrap_or(method.info().name);
    let entry = Entry {
        metric,
        direction: remote.direction(method.info(), &measured.outcome, direction),
        method: name,
        outcome: remote.reported(method.info(), measured.outcome),
        cost: measured.cost,
    };
    if progress.is_watched() {
        progress.tell(remote.now(), Event::StageEnded(StageEnded::of(&entry)));
    }
    let beside = beside.map(|size| Entry {
        metric: Metric::PathMtu,
        direction,
        method: SIZE,
        outcome: size.outcome,
        cost: narrows_probe::Cost::default(),
    });
    let address = Some(remote.address().ip());
    Ok(RunResult { begun: started, address, facts, entry, beside, failure, writer, write_fault })
}

/// Nothing was answered that is as large as the interface sends. A path may drop such packets
/// without a word.
fn full_packets_may_vanish(method: &dyn Method, measured: &Measured) -> bool {
    let small = matches!(method.info().metric, Metric::PathMtu | Metric::RoundTripTime);
    !small && matches!(measured.outcome, Outcome::Inconclusive { reason: Reason::NoAnswer, .. })
}

fn passes_less(size: &Measured, path_mtu: u16) -> bool {
    let found = size.outcome.estimate().and_then(Estimate::ranged::<Octets>);
    found.is_some_and(|range| range.value.count() < u64::from(path_mtu))
}

/// The method that finds the largest packet that passes.
const SIZE: &str = "pmtu";

/// Which methods stand behind the automatic choice's answer, where it says so.
fn answered_by(outcome: &Outcome) -> Option<&'static str> {
    let name = outcome.details().answered_by.as_deref()?;
    ["slope"].into_iter().find(|known| *known == name)
}
