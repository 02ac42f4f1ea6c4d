//! `narrows available HOST [--watch]`: what other traffic leaves of the path, once or for as long
//! as it is wanted.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_probe::Entry;
use narrows_probe::progress::{Feed, LONGEST_PAUSE, Observed, Plan, Progress as Told};
use narrows_probe::{Budget, Event, Latest, Measured, Method, Order, PathFacts, Probe, RawParams, Reason, World};
use narrows_report::{MetricRow, Watch};
use narrows_trace::{Recorder, Setting, WorldKind};
use narrows_units::{BitRate, Metric, Sender, Stamp};

use super::measure::{self, MeasureArgs};
use crate::connect;
use crate::exit::{Exit, Failure};
use crate::link::LinkLock;
use crate::progress::{Progress, Wanted};
use crate::remote::Remote;
use crate::screen::ScreenArgs;
use crate::{interrupt, output};

/// `narrows available`.
#[derive(Debug, clap::Args)]
pub(crate) struct AvailableArgs {
    #[command(flatten)]
    measure: MeasureArgs,
    /// Keep tracking until Ctrl-C or --duration: a line per interval (with --json: one JSON object
    /// per line), and a summary with percentiles at the end
    #[arg(long)]
    watch: bool,
    /// Time from line to line [default: 1 s]
    #[arg(long, requires = "watch", value_parser = narrows_units::parse_duration_or_seconds)]
    interval: Option<Duration>,
    /// Mean load that tracking may impose, percent of the path's rate, such as 0.5 [default: 1]
    #[arg(long, requires = "watch", value_name = "PERCENT", value_parser = percent)]
    load_budget: Option<f64>,
    /// Available rate that is expected, such as "60 Mbit/s": tracking begins there
    #[arg(long, requires = "watch", value_name = "RATE")]
    start_rate: Option<BitRate>,
    /// End after this number of trains
    #[arg(long, requires = "watch", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    trains: Option<u32>,
    #[command(flatten)]
    screen: ScreenArgs,
    /// End after this time, such as "10 min"
    #[arg(long, requires = "watch", value_parser = narrows_units::parse_duration_or_seconds)]
    duration: Option<Duration>,
}

/// Methods that tell what they make of what they have, the automatic choice first.
const TRACKING: [&str; 2] = ["track", "bart"];
/// What "until Ctrl-C" comes to.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// As a share of one.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim();
    let value: f64 = number.parse().map_err(|_| format!("\"{text}\" is no number of percent"))?;
    if (0.01..=50.0).contains(&value) {
        Ok(value / 100.0)
    } else {
        Err(format!("{text}: write a percentage from 0.01 to 50"))
    }
}

pub(crate) fn run(args: &AvailableArgs) -> Result<Exit, Failure> {
    if args.watch { watch(args) } else { measure::run(&args.measure, Metric::AvailableIpCapacity) }
}

/// Method and parameters, as flags have them.
fn chosen(args: &AvailableArgs) -> Result<(&'static dyn Method, RawParams), Failure> {
    let name = args.measure.method().unwrap_or(TRACKING[0]);
    if !TRACKING.contains(&name) {
        let known = TRACKING.join(", ");
        return Err(Failure::usage(format!("{name} does not track; --watch takes: {known}")));
    }
    let method = measure::choose(&args.measure, Some(name), Metric::AvailableIpCapacity)?;
    let mut params: RawParams = super::simulate::split(args.measure.params())?.into_iter().collect();
    let duration = args.duration.unwrap_or(LONGEST);
    params.set("duration", format!("{} ns", duration.as_nanos()));
    if let Some(load) = args.load_budget {
        params.set("load", load.to_string());
    }
    let more = [
        ("start-rate", "--start-rate", args.start_rate.map(|rate| format!("{} bit/s", rate.bps()))),
        ("trains", "--trains", args.trains.map(|trains| trains.to_string())),
    ];
    for (parameter, flag, value) in more {
        let Some(value) = value else { continue };
        if method.info().parameter(parameter).is_none() {
            return Err(Failure::usage(format!("{flag}: {name} does not take it")));
        }
        params.set(parameter, value);
    }
    let interval = args.interval();
    if !(Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&interval) {
        return Err(Failure::usage("--interval: from 100 ms to 1 h"));
    }
    method.begin(&params).map_err(|error| Failure::usage(error.to_string()))?;
    Ok((method, params))
}

impl AvailableArgs {
    /// For whoever follows it.
    fn announced(&self, method: &dyn Method, params: &RawParams, address: Option<IpAddr>) -> Plan {
        Plan {
            stages: Vec::new(),
            about_ns: None,
            most_ns: self.duration.map(narrows_units::nanos),
            ..self.measure.announced(method, params, address)
        }
    }

    fn interval(&self) -> Duration {
        self.interval.unwrap_or(Duration::from_secs(1))
    }
}

fn watch(args: &AvailableArgs) -> Result<Exit, Failure> {
    args.measure.files.refuse("--watch")?;
    let (method, params) = chosen(args)?;
    args.measure.fail_if.check(&[Metric::AvailableIpCapacity], &[])?;
    let estimator = method.begin(&params).map_err(|error| Failure::usage(error.to_string()))?;
    let stop = Arc::clone(interrupt::flag()?);
    let mut lines = Lines::open(args, Arc::clone(&stop))?;
    let writer = args.measure.record.open()?;
    let screen = args.screen.wanted(args.measure.plain());
    let wanted = Wanted { quiet: true, ..args.measure.progress(screen) };
    let progress = Progress::start(wanted, args.announced(method, &params, None))?;
    lines.shown_elsewhere = progress.is_watched();
    let _link = LinkLock::by_hand(args.measure.host(), &progress).map_err(|failure| progress.failed(failure))?;
    let connected = measure::remote(&args.measure, &stop, &progress);
    let (remote, direction) = connected.map_err(|failure| progress.failed(failure))?;
    progress.plan(args.announced(method, &params, Some(remote.address().ip())));
    let board = Rc::new(RefCell::new(Board {
        watch: Watch::new(args.interval(), remote.now()),
        lines,
        now: remote.now(),
        progress: progress.clone(),
        packets: 0,
    }));
    let ticking = Ticking { inner: remote, board: Rc::clone(&board), stop };
    let mut world = Recorder::maybe(ticking, writer, Setting::new(WorldKind::Sockets).towards(direction));
    let usual = Budget { steps: u32::MAX, ..method.imposes(&params).budget() };
    let budget = args.measure.budget.map_or(usual, |limits| limits.over(usual));
    let (metric, name) = (method.info().metric, method.info().name);
    let order = Order { metric, method: name, params: &params, budget, estimator };
    let clock = Rc::clone(&board);
    let mut tell = |latest: &Latest| clock.borrow_mut().tell(latest);
    let (measured, mut failure) = match narrows_probe::watch(&mut world, order, &mut tell) {
        Ok(measured) => (measured, None),
        Err(broken) => (broken.measured, Some(connect::failure(&broken.fault))),
    };
    progress.finish();
    if let Some(failure) = failure.take_if(|_| world.reports() == 0) {
        return Err(progress.failed(failure));
    }
    let (ticking, writer, write_fault) = world.into_parts();
    let row = MetricRow::new(&Entry {
        metric,
        direction: ticking.inner.direction(method.info(), &measured.outcome, direction),
        method: name,
        outcome: ticking.inner.reported(method.info(), measured.outcome),
        cost: measured.cost,
    });
    let judged = row.clone();
    let any = board.borrow_mut().end(ticking.inner.now(), row);
    args.measure.record.close(writer, write_fault)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let exit = if any { Exit::Valid } else { Exit::Inconclusive };
    Ok(args.measure.fail_if.exit(&judged, exit))
}

/// What has been told, and where it goes.
struct Board {
    watch: Watch,
    lines: Lines,
    /// After the last probe or wait.
    now: Stamp<Sender>,
    progress: Progress,
    /// Sent in the interval that is open.
    packets: u64,
}

impl Board {
    fn tell(&mut self, latest: &Latest) {
        self.watch.tell(self.now, latest);
    }

    fn tick(&mut self, now: Stamp<Sender>) {
        self.now = now;
        if let Some(row) = self.watch.tick(now) {
            self.progress.tell(now, Told::Watch(row.point(std::mem::take(&mut self.packets))));
            let text = if self.lines.json { row.json() } else { row.text() };
            self.lines.live(&text);
        }
    }

    /// Prints the summary, and says whether anything was known.
    fn end(&mut self, now: Stamp<Sender>, row: MetricRow) -> bool {
        self.tick(now);
        let summary = self.watch.summary(now, row);
        let any = summary.result.value.is_some() || summary.windows.iter().any(|row| row.windows > 0);
        self.lines.shown_elsewhere = false;
        if self.progress.conclude(&summary.json()) {
            return any;
        }
        let text = if self.lines.json { summary.json() } else { summary.text() };
        self.lines.last(&text);
        any
    }
}

/// Where lines go: standard output, where on a terminal each takes the place of the one before, or
/// a file.
struct Lines {
    file: Option<File>,
    json: bool,
    rewrite: bool,
    stop: Arc<AtomicBool>,
    /// A screen or a stream shows the intervals.
    shown_elsewhere: bool,
}

impl Lines {
    fn open(args: &AvailableArgs, stop: Arc<AtomicBool>) -> Result<Self, Failure> {
        let path = args.measure.output();
        output::check(path)?;
        let refuse = |error: io::Error| Failure::usage(format!("-o: {error}"));
        // A stream writes it by itself.
        let path = path.filter(|_| !args.measure.streams());
        let file = path.map(File::create).transpose().map_err(refuse)?;
        let json = args.measure.json();
        Ok(Self {
            rewrite: !json && file.is_none() && io::stdout().is_terminal(),
            file,
            json,
            stop,
            shown_elsewhere: false,
        })
    }

    fn live(&mut self, text: &str) {
        if self.shown_elsewhere && self.file.is_none() {
            return;
        }
        if self.rewrite {
            self.put(&format!("\r{text}\x1b[K"));
        } else {
            self.put(&format!("{text}\n"));
        }
    }

    fn last(&mut self, text: &str) {
        let begin = if self.rewrite { "\n" } else { "" };
        self.put(&format!("{begin}{text}\n"));
    }

    /// Nobody reads any more, or nothing more can be written: the watch ends.
    fn put(&mut self, text: &str) {
        let written = if let Some(file) = &mut self.file {
            file.write_all(text.as_bytes())
        } else {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        };
        if let Err(error) = written {
            if error.kind() != io::ErrorKind::BrokenPipe && !self.stop.load(Ordering::Relaxed) {
                output::complain(&format!("cannot write: {error}; the watch ends"));
            }
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// A world that counts octets and prints intervals on time, also while the method waits.
struct Ticking {
    inner: Remote,
    board: Rc<RefCell<Board>>,
    stop: Arc<AtomicBool>,
}

impl Ticking {
    /// Nothing is sent for as long as the user wants.
    fn pause(&mut self) -> Result<(), narrows_net::Error> {
        let paused = |board: &RefCell<Board>| board.borrow().progress.paused();
        let began = self.now();
        while paused(&self.board) && !self.stop_requested() && self.now().since(began) < LONGEST_PAUSE {
            self.wait(self.now() + Duration::from_millis(200))?;
        }
        Ok(())
    }
}

impl World for Ticking {
    type Fault = narrows_net::Error;

    fn now(&self) -> Stamp<Sender> {
        self.inner.now()
    }

    fn facts(&self) -> PathFacts {
        self.inner.facts()
    }

    fn begins(&mut self, order: &Order<'_>) {
        self.inner.begins(order);
    }

    fn send(&mut self, probe: Probe) -> Result<Event, narrows_net::Error> {
        self.pause()?;
        let (octets, packets) = match &probe {
            Probe::Train(train) => (train.ip_octets(), train.packets.len()),
            _ => (0, 0),
        };
        let progress = self.board.borrow().progress.clone();
        let event = Observed::new(&mut self.inner, &progress).send(probe);
        let mut board = self.board.borrow_mut();
        board.tick(self.inner.now());
        if event.as_ref().is_ok_and(|event| !matches!(event, Event::Refused(_))) {
            board.watch.spend(octets);
            board.packets += narrows_units::to_u64(packets);
        }
        event
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), narrows_net::Error> {
        loop {
            let next = self.board.borrow().watch.next();
            self.inner.wait(next.min(until))?;
            self.board.borrow_mut().tick(self.inner.now());
            if next >= until || self.stop_requested() {
                return Ok(());
            }
        }
    }

    fn concluded(&mut self, measured: &Measured, stopped: Option<&Reason>) {
        self.inner.concluded(measured, stopped);
    }

    fn rest(&mut self) -> Result<(), narrows_net::Error> {
        self.inner.rest()
    }

    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.inner.stop_requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_shares() {
        assert_eq!(percent("1"), Ok(0.01));
        assert_eq!(percent("0.5 %"), Ok(0.005));
        for wrong in ["0", "51", "-1", "much", "", "NaN"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
