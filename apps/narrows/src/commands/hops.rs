//! `narrows hops HOST`: the path, hop by hop.

mod args;
mod flows;
mod server;
mod watched;

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_net::names::Names;
use narrows_probe::progress::Plan;
use narrows_probe::{Method, Order, RawParams};
use narrows_report::hops::{HopsDocument, HopsRequest, Pipe};
use narrows_report::{Note, Problem, ReportFile, Target};
use narrows_trace::{Recorder, Setting, WorldKind};
use narrows_units::{BitRate, Direction, Metric};

use self::args::Form;
pub(crate) use self::args::HopsArgs;
use self::watched::{Board, Watched};
use crate::connect;
use crate::exit::{Exit, Failure};
use crate::link::LinkLock;
use crate::progress::Progress;
use crate::record::FileWriter;
use crate::sparing::Sparing;
use crate::{environment, interrupt, output};

/// Wait for names that are still looked up when the measurement is over.
const NAMES_WAIT: Duration = Duration::from_secs(1);

/// What was measured, and what broke on the way.
struct RunResult {
    document: HopsDocument,
    failure: Option<Failure>,
    writer: Option<FileWriter>,
    write_fault: Option<narrows_trace::WriteError>,
}

pub(crate) fn run(args: &HopsArgs) -> Result<Exit, Failure> {
    let (method, params) = args.chosen()?;
    args.fail_if.check(&[Metric::IpCapacity, Metric::AvailableIpCapacity, Metric::RoundTripTime], &[])?;
    output::check(args.output.as_ref())?;
    output::check(args.svg.as_ref())?;
    args.files.check()?;
    let progress = Progress::start(args.progress(), announced(args, method, &params, None))?;
    let _link = LinkLock::by_hand(&args.host, &progress).map_err(|failure| progress.failed(failure))?;
    let ended = measure(args, (method, &params), None, &progress).map_err(|failure| progress.failed(failure))?;
    let mut document = ended.document;
    if interrupt::flag()?.load(Ordering::Relaxed) {
        document.notes.push(Note { id: "interrupted", text: "interrupted: this is what was known by then".to_owned() });
    }
    document.error = ended.failure.as_ref().map(|failure| Problem {
        code: failure.exit.code(),
        who: failure.who,
        text: failure.text.clone(),
    });
    let mut document = document.from(u16::from(args.first_ttl.get()));
    document.conclude();
    let redaction = document.redaction();
    if args.files.redact() {
        document = document.redacted();
    }
    print(args, &document, &progress)?;
    args.files.write(|| redaction, |command| ReportFile::of_hops(&document, command))?;
    args.record.close(ended.writer, ended.write_fault)?;
    if let Some(failure) = ended.failure {
        return Err(failure);
    }
    let exit = if document.has_any_value() { Exit::Valid } else { Exit::Inconclusive };
    Ok(args.fail_if.exit(&document, exit))
}

/// The flags alone, for who calls it without a command line.
#[cfg(feature = "watch")]
#[derive(Debug, clap::Parser)]
struct Alone {
    #[command(flatten)]
    args: HopsArgs,
}

/// What `narrows hops HOST` would print with this budget, whose server is at `port` if there is
/// one; nothing is printed, and the link is the caller's already.
#[cfg(feature = "watch")]
pub(crate) fn of_host((host, port): (&str, u16), budget: &str, over_second: BitRate) -> Result<HopsDocument, Failure> {
    let port = port.to_string();
    let words = ["hops", host, "--server-port", &port, "--budget", budget, "--quiet", "--no-dns", "--json"];
    let alone = <Alone as clap::Parser>::try_parse_from(words).map_err(|error| Failure::usage(error.to_string()))?;
    let args = alone.args;
    let (method, params) = args.chosen()?;
    let ended = measure(&args, (method, &params), Some(over_second), &Progress::new(true))?;
    let mut document = ended.document;
    document.conclude();
    ended.failure.map_or(Ok(document), Err)
}

fn print(args: &HopsArgs, document: &HopsDocument, progress: &Progress) -> Result<(), Failure> {
    let strokes = args.strokes();
    let here = if args.files.redact() { "this-host".to_owned() } else { environment::hostname() };
    let text = match args.form() {
        Form::Json => document.json() + "\n",
        Form::Mtr => document.mtr(&here) + "\n",
        Form::Text => {
            let table = strokes.plain(&document.text(args.wide));
            if args.report || args.wide { table } else { format!("{table}\n{}", Pipe::new(document).text(strokes)) }
        }
    };
    let written =
        if progress.conclude(&document.json()) { Ok(()) } else { output::write(&text, args.output.as_deref()) };
    if let Some(path) = &args.svg {
        output::write(&Pipe::new(document).svg(), Some(path))?;
    }
    written
}

/// For whoever follows it.
fn announced(args: &HopsArgs, method: &dyn Method, params: &RawParams, address: Option<IpAddr>) -> Plan {
    let usual = method.imposes(params).budget();
    let budget = args.budget.map_or(usual, |limits| limits.over(usual));
    Plan {
        command: "hops".to_owned(),
        target: args.host.clone(),
        address,
        details: format!("{}, one flow", args.via_text()),
        most_ns: Some(narrows_units::nanos(budget.time)),
        most_octets: Some(budget.octets),
        ..Plan::default()
    }
}

fn measure(
    args: &HopsArgs,
    (method, params): (&'static dyn Method, &RawParams),
    over_second: Option<BitRate>,
    progress: &Progress,
) -> Result<RunResult, Failure> {
    let info = method.info();
    let run_params = args.run_params(method, params);
    let estimator = method.begin(&run_params).map_err(|error| Failure::usage(error.to_string()))?;
    let writer = args.record.open()?;
    let stop = Arc::clone(interrupt::flag()?);
    progress.say(format!("hops to {} by {}", args.host, info.name));
    let started_at = Some(environment::now());
    let remote = args.connect(&stop, progress)?;
    let address = remote.address();
    progress.plan(announced(args, method, params, Some(address.ip())));
    let server = args.server_there(method, address, &stop, progress)?;
    let names = (!args.no_dns).then(Names::new);
    let board = Board::new(progress.clone(), names.clone(), args.live(), !args.quiet);
    let board = Rc::new(RefCell::new(board));
    let watched = Watched::new(remote, server, Rc::clone(&board));
    let setting = Setting::new(WorldKind::Sockets).towards(Direction::Forward);
    let mut world = Recorder::maybe(watched, writer, setting);
    let usual = method.imposes(&run_params).budget();
    let budget = args.budget.map_or(usual, |limits| limits.over(usual));
    let order = Order { metric: info.metric, method: info.name, params: &run_params, budget, estimator };
    let teller = Rc::clone(&board);
    let mut tell = |latest: &narrows_probe::Latest| teller.borrow_mut().tell(latest);
    let ended = match over_second {
        Some(rate) => narrows_probe::watch(&mut Sparing::new(&mut world, rate), order, &mut tell),
        None => narrows_probe::watch(&mut world, order, &mut tell),
    };
    let (measured, mut failure) = match ended {
        Ok(measured) => (measured, None),
        Err(broken) => (broken.measured, Some(connect::failure(&broken.fault))),
    };
    if !progress.is_watched() {
        progress.finish();
    }
    if let Some(failure) = failure.take_if(|_| world.reports() == 0) {
        return Err(failure);
    }
    let (watched, writer, write_fault) = world.into_parts();
    let (remote, server) = watched.into_parts();
    let mut found = board.borrow_mut().found(&remote);
    drop(remote);
    if !args.server && failure.is_none() {
        flows::poll(args.flows, || args.connect(&stop, progress), &mut found, &stop);
    }
    if let Some(names) = names {
        found.statistics.addresses().for_each(|address| names.ask(address));
        found.names = names.settled(NAMES_WAIT);
    }
    let asked = asked(args, info.name, params, address, started_at);
    let mut document = HopsDocument::new(asked, &measured.outcome, &found, measured.cost.into());
    if let Some(mut server) = server.filter(|_| failure.is_none()) {
        document = server.add_ways(document, args.budget, &measured.cost);
    }
    Ok(RunResult { document, failure, writer, write_fault })
}

fn asked(
    args: &HopsArgs,
    method: &str,
    params: &RawParams,
    address: SocketAddr,
    started_at: Option<String>,
) -> HopsRequest {
    HopsRequest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at,
        target: Target {
            name: args.host.clone(),
            address: Some(address.ip()),
            port: Some(address.port()).filter(|port| *port > 0),
        },
        via: args.via_text(),
        method: method.to_owned(),
        params: parameters(args, params),
    }
}

fn parameters(args: &HopsArgs, params: &RawParams) -> std::collections::BTreeMap<String, String> {
    let mut all: std::collections::BTreeMap<String, String> =
        params.iter().map(|(name, value)| (format!("method.{name}"), value.to_owned())).collect();
    all.insert("flows".to_owned(), args.flows.to_string());
    all.insert("first_ttl".to_owned(), args.first_ttl.to_string());
    all
}
