//! `narrows test HOST`: the main job.

mod from_here;

use std::path::PathBuf;

use narrows_methods::job::{JobOptions, JobReport, Profile, main_job, stages};
use narrows_net::client::SocketWorld;
use narrows_probe::progress::Plan as Announced;
use narrows_probe::{Budget, Cost};
use narrows_report::redaction::Redaction;
use narrows_report::{Document, Environments, Note, Problem, ReportFile, Target};
use narrows_trace::{Recorder, Setting, WorldKind};
use narrows_units::{BitRate, Direction, Metric};

use crate::budget::BudgetLimits;
use crate::connect::{ConnectArgs, Peer};
use crate::environment::Before;
use crate::exit::{Exit, Failure};
use crate::fail_if::FailIfArgs;
use crate::files::FileArgs;
use crate::link::LinkLock;
use crate::output::{self, Format};
use crate::progress::{Progress, StreamTo, Wanted};
use crate::record::{FileWriter, RecordArgs};
use crate::screen::ScreenArgs;
use crate::{environment, interrupt};

/// Measure the path to a host that runs `narrows serve`: what it can carry, and what holds it back.
///
/// `narrows HOST` is short for `narrows test HOST`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that the user sees")]
pub(crate) struct TestArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Capacity and available bandwidth only: seconds, and no load on the path
    #[arg(long, conflicts_with = "thorough")]
    quick: bool,
    /// Full-length transfers, and a second method for what matters most
    #[arg(long)]
    thorough: bool,
    /// Measure the reverse direction: from the server to this host
    #[arg(long, short = 'R', conflicts_with = "bidir")]
    reverse: bool,
    /// Measure both directions, one after the other
    #[arg(long)]
    bidir: bool,
    /// Measure from here alone, by what the host's kernel answers: round trip, path MTU, route,
    /// capacity. Text output does so by itself where no server answers
    #[arg(long, conflicts_with_all = ["reverse", "bidir", "netest", "thorough", "file", "psk_file"])]
    single_ended: bool,
    /// How each result was found, and every doubt, under its line
    #[arg(long)]
    full: bool,
    /// Both directions, in the sections and with the labels that netest had
    #[arg(long, conflicts_with_all = ["quick", "reverse", "full"])]
    netest: bool,
    /// Octets, time and peak rate that the test may cost, such as "20 MB, 30 s, 50 Mbit/s"
    #[arg(long, value_parser = crate::budget::parse)]
    budget: Option<BudgetLimits>,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    fail_if: FailIfArgs,
    #[command(flatten)]
    screen: ScreenArgs,
    #[command(flatten)]
    record: RecordArgs,
    /// Settings of this command from a TOML file of their own; flags outweigh them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// How results are printed.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that the user sees")]
pub(crate) struct PrintArgs {
    /// Print one JSON object
    #[arg(long, short = 'J', conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    /// Print one JSON object per event while it measures, the result in the last one
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    json_stream: bool,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    files: FileArgs,
    /// No progress
    #[arg(long)]
    pub(crate) quiet: bool,
}

impl PrintArgs {
    /// Says now, before anything is measured, that a file cannot be written.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        output::check(self.output.as_ref())?;
        self.files.check()
    }

    /// The document without names, if that is asked for.
    pub(crate) fn redacted(&self, document: Document) -> Document {
        if self.files.redact() { document.redacted() } else { document }
    }

    pub(crate) fn format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv,
            _ => Format::Text,
        }
    }

    /// Where the progress goes.
    pub(crate) fn progress(&self, screen: ScreenArgs) -> Wanted<'_> {
        let plain = self.quiet || self.json_stream || self.format() != Format::Text;
        Wanted {
            quiet: self.quiet,
            stream: self.json_stream.then_some(StreamTo(self.output.as_deref())),
            screen: screen.wanted(plain),
        }
    }

    /// Writes a document where and as asked.
    pub(super) fn write_as(
        &self,
        document: &Document,
        as_text: fn(&Document) -> String,
        progress: &Progress,
    ) -> Result<(), Failure> {
        if progress.conclude(&document.json()) {
            return Ok(());
        }
        let text = match self.format() {
            Format::Text => as_text(document),
            Format::Json => document.json() + "\n",
            Format::Csv => document.csv(),
        };
        output::write(&text, self.output.as_deref())
    }

    /// Writes the files that go beside it; `redaction` hides what the command line names.
    pub(crate) fn write_files(&self, document: &Document, redaction: &Redaction) -> Result<(), Failure> {
        self.files.write(|| redaction.clone(), |command| ReportFile::of(document, command))
    }
}

/// What the main job may have a row of.
pub(super) const MEASURED: [Metric; 13] = [
    Metric::RoundTripTime,
    Metric::PathMtu,
    Metric::IpCapacity,
    Metric::PeakRate,
    Metric::CommittedBurstOctets,
    Metric::AvailableIpCapacity,
    Metric::CrossTraffic,
    Metric::MaximumBurstOctets,
    Metric::UdpAchievable,
    Metric::TcpAchievableSingle,
    Metric::TcpAchievableParallel,
    Metric::TcpStreamsToFill,
    Metric::TcpWindowOctets,
];

/// What flags ask for.
struct Plan {
    profile: Profile,
    directions: Vec<Direction>,
    budget: Budget,
}

impl Plan {
    fn new(args: &TestArgs) -> Self {
        let profile = match (args.quick, args.thorough) {
            (true, _) => Profile::Quick,
            (_, true) => Profile::Thorough,
            _ => Profile::Standard,
        };
        let directions = match (args.bidir || args.netest, args.reverse) {
            (true, _) => vec![Direction::Forward, Direction::Reverse],
            (_, true) => vec![Direction::Reverse],
            _ => vec![Direction::Forward],
        };
        let limits = args.budget.unwrap_or_default();
        let ways = u32::try_from(directions.len()).unwrap_or(1);
        Self { profile, directions, budget: limits.over(whole_job(profile, ways)) }
    }
}

impl Plan {
    /// For whoever follows it.
    fn announced(&self, target: &str, address: Option<std::net::IpAddr>) -> Announced {
        let of = |&direction| stages(&JobOptions { profile: self.profile, budget: self.budget, direction });
        let stages: Vec<_> = self.directions.iter().flat_map(of).collect();
        let directions: Vec<String> =
            self.directions.iter().map(|direction| format!("{direction:?}").to_lowercase()).collect();
        let profile = match self.profile {
            Profile::Quick => ", quick",
            Profile::Standard => "",
            Profile::Thorough => ", thorough",
        };
        Announced {
            command: "test".to_owned(),
            target: target.to_owned(),
            address,
            details: directions.join(" and ") + profile,
            about_ns: Some(stages.iter().map(|stage| stage.time_ns).sum()),
            stages,
            most_ns: Some(narrows_units::nanos(self.budget.time)),
            most_octets: Some(self.budget.octets),
        }
    }
}

/// Bounds of the whole job over so many ways where the user sets none: ours, several times what it
/// needs on a path of 1 Gbit/s.
fn whole_job(profile: Profile, ways: u32) -> Budget {
    let (octets, seconds) = match profile {
        Profile::Quick => (200_000_000, 30),
        Profile::Standard => (4_000_000_000, 120),
        Profile::Thorough => (40_000_000_000, 600),
    };
    Budget {
        octets: u64::from(ways).saturating_mul(octets),
        time: std::time::Duration::from_secs(seconds).saturating_mul(ways),
        ..Budget::default()
    }
}

pub(crate) fn run(args: &TestArgs) -> Result<Exit, Failure> {
    let plan = Plan::new(args);
    args.fail_if.check(&MEASURED, &[])?;
    args.print.check()?;
    let peer = args.connect.peer()?;
    let _link = LinkLock::by_hand(&peer.name, &Progress::new(args.print.quiet))?;
    if args.single_ended {
        return from_here::asked(args, &plan, &peer);
    }
    let stop = interrupt::flag()?;
    let begun = environment::now();
    let writer = args.record.open()?;
    let progress = Progress::start(args.print.progress(args.screen), plan.announced(&peer.name, None))?;
    let (mut jobs, failure) = measure(&plan, &peer, stop, &progress, writer);
    let Some(address) = jobs.address else {
        let failure = failure.unwrap_or_else(|| Failure::host("nothing was measured"));
        return from_here::instead(args, &plan, &peer, failure, &progress);
    };
    let target = Target { name: peer.name.clone(), address: Some(address.ip()), port: Some(address.port()) };
    // Nothing is measured any more.
    environment::add_costs(&mut jobs.environments, sustained(&jobs.reports), args.netest);
    let mut document =
        Document::new("test", env!("CARGO_PKG_VERSION").to_owned(), target, &jobs.reports, &jobs.environments);
    document.started_at = Some(begun);
    document.params = parameters(&plan, &peer);
    note_interruption(&mut document, stop);
    let fault = failure.as_ref().map(problem);
    let exit = ended(&document, fault.as_ref());
    document.error = fault;
    document.conclude();
    let redaction = document.redaction();
    let document = args.print.redacted(document);
    let as_text = match (args.full, args.netest) {
        (true, _) => Document::long_text,
        (_, true) => Document::netest_text,
        _ => Document::text,
    };
    args.print.write_as(&document, as_text, &progress)?;
    args.print.write_files(&document, &redaction)?;
    args.record.close(jobs.writer.take(), jobs.write_fault.take())?;
    if let Some(problem) = &document.error {
        output::complain(&problem.text);
        return Ok(Exit::from_code(problem.code));
    }
    Ok(args.fail_if.exit(&document, exit))
}

/// What `narrows test` would find with this budget, its rows, and what broke on the way; nothing is
/// printed, and the link is the caller's already.
#[cfg(feature = "watch")]
pub(crate) fn of_peer(
    peer: &Peer,
    limits: Budget,
    stop: &std::sync::Arc<std::sync::atomic::AtomicBool>,
    progress: &Progress,
) -> (Document, Vec<narrows_probe::Entry>, Option<Failure>) {
    let whole = whole_job(Profile::Standard, 1);
    let budget = Budget { octets: limits.octets.min(whole.octets), time: limits.time.min(whole.time), ..whole };
    let plan = Plan { profile: Profile::Standard, directions: vec![Direction::Forward], budget };
    let begun = environment::now();
    let (jobs, failure) = measure(&plan, peer, stop, progress, None);
    let target = Target {
        name: peer.name.clone(),
        address: jobs.address.map(|at| at.ip()),
        port: jobs.address.map(|at| at.port()),
    };
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let mut document = Document::new("test", version, target, &jobs.reports, &jobs.environments);
    document.started_at = Some(begun);
    document.params = parameters(&plan, peer);
    document.error = failure.as_ref().map(problem);
    document.conclude();
    let entries = jobs.reports.into_iter().flat_map(|report| report.entries).collect();
    (document, entries, failure)
}

fn note_interruption(document: &mut Document, stop: &std::sync::atomic::AtomicBool) {
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        document.notes.push(Note { id: "interrupted", text: "interrupted: this is what was known by then".to_owned() });
    }
}

fn problem(failure: &Failure) -> Problem {
    Problem { code: failure.exit.code(), who: failure.who, text: failure.text.clone() }
}

fn ended(document: &Document, fault: Option<&Problem>) -> Exit {
    match fault {
        Some(problem) => Exit::from_code(problem.code),
        None if document.is_inconclusive() => Exit::Inconclusive,
        None => Exit::Valid,
    }
}

/// What was measured, and with whom.
struct Jobs {
    reports: Vec<JobReport<narrows_net::Error>>,
    address: Option<std::net::SocketAddr>,
    writer: Option<FileWriter>,
    write_fault: Option<narrows_trace::WriteError>,
    /// Both hosts over each of them.
    environments: Vec<Environments>,
}

/// The highest rate of payload that any job saw.
fn sustained(reports: &[JobReport<narrows_net::Error>]) -> Option<BitRate> {
    let sustained = |metric| matches!(metric, Metric::TcpAchievableSingle | Metric::UdpAchievable);
    let entries = reports.iter().flat_map(|report| &report.entries);
    entries
        .filter(|entry| sustained(entry.metric))
        .filter_map(|entry| Some(entry.outcome.estimate()?.rate()?.value))
        .max()
}

/// What is left of the whole budget, for one of the ways that are still to go: the first must not
/// leave the last without any.
fn share(whole: Budget, spent: Cost, to_go: u32) -> Budget {
    Budget {
        octets: whole.octets.saturating_sub(spent.octets) / u64::from(to_go.max(1)),
        time: whole.time.saturating_sub(spent.time) / to_go.max(1),
        ..whole
    }
}

/// One job per direction; stops at the first that breaks.
fn measure(
    plan: &Plan,
    peer: &Peer,
    stop: &std::sync::Arc<std::sync::atomic::AtomicBool>,
    progress: &Progress,
    writer: Option<FileWriter>,
) -> (Jobs, Option<Failure>) {
    let mut jobs = Jobs { reports: Vec::new(), address: None, writer, write_fault: None, environments: Vec::new() };
    let mut failure = None;
    let mut spent = Cost::default();
    let ways = u32::try_from(plan.directions.len()).unwrap_or(1);
    for (&direction, to_go) in plan.directions.iter().zip((1..=ways).rev()) {
        progress.say(format!("connecting to {}", peer.name));
        let connected = peer.connect(direction, stop, progress);
        let mut world: SocketWorld = match connected {
            Ok(world) => world,
            Err(error) => {
                failure = Some(error);
                break;
            }
        };
        jobs.address = Some(world.peer());
        progress.plan(plan.announced(&peer.name, Some(world.peer().ip())));
        let before = Before::job(&mut world);
        let budget = share(plan.budget, spent, to_go);
        let options = JobOptions { profile: plan.profile, budget, direction };
        let setting = Setting::new(WorldKind::Sockets).towards(direction);
        let mut world = Recorder::maybe(world, jobs.writer.take(), setting);
        let mut report = main_job(&mut world, &options, progress);
        let (mut world, writer, fault) = world.into_parts();
        let intact = report.fault.is_none().then_some(&mut world);
        jobs.environments.push(before.after(intact));
        jobs.writer = writer;
        jobs.write_fault = jobs.write_fault.or(fault);
        spent = spent.then(report.cost);
        failure = report.fault.take().map(|fault| crate::connect::failure(&fault));
        jobs.reports.push(report);
        if failure.is_some() {
            break;
        }
    }
    progress.finish();
    (jobs, failure)
}

fn parameters(plan: &Plan, peer: &Peer) -> std::collections::BTreeMap<String, String> {
    let directions: Vec<String> =
        plan.directions.iter().map(|direction| format!("{direction:?}").to_lowercase()).collect();
    let peak = plan.budget.peak.map_or_else(|| "none".to_owned(), |peak| peak.to_string());
    [
        ("profile", format!("{:?}", plan.profile).to_lowercase()),
        ("directions", directions.join(",")),
        ("budget_octets", plan.budget.octets.to_string()),
        ("budget_seconds", plan.budget.time.as_secs_f64().to_string()),
        ("budget_peak", peak),
        ("port", peer.port.to_string()),
        ("key", if peer.has_key() { "given" } else { "none" }.to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_way_has_its_share_of_the_budget() {
        let whole = Budget { octets: 4_000, time: Duration::from_secs(120), ..Budget::default() };
        let spent = |octets, seconds| Cost { octets, time: Duration::from_secs(seconds), ..Cost::default() };
        let first = share(whole, Cost::default(), 2);
        assert_eq!((first.octets, first.time), (2_000, Duration::from_secs(60)));
        // What the first left over, the second has.
        let second = share(whole, spent(500, 20), 1);
        assert_eq!((second.octets, second.time), (3_500, Duration::from_secs(100)));
        assert_eq!(share(whole, spent(5_000, 500), 1).octets, 0);
    }
}
