//! `narrows`: what can this path carry, and what is holding me back?
//!
//! One binary. `Command` below lists the subcommands; each has its flags and its function `run` in
//! a file of its own under `commands/`. To add one, add a variant, its arm in `run`, and such a
//! file. Files beside `commands/` have what several subcommands share: budgets, settings, screens,
//! recordings, [`exit`] codes. Results go to standard output, progress and complaints to standard
//! error.

mod budget;
mod call;
mod commands;
mod complete;
mod config;
mod connect;
mod environment;
mod exit;
mod fail_if;
mod feed;
mod files;
mod interrupt;
mod key;
mod leased;
mod link;
mod moment;
mod output;
mod painting;
mod program;
mod progress;
mod record;
mod remote;
mod screen;
mod service;
mod sparing;
mod state;
mod status;
mod stream;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use narrows_units::Metric;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::commands::measure::{self, MeasureArgs};
use crate::exit::{Exit, Failure};

const AFTER_HELP: &str = "\
Times are seconds, or have a unit: 20, 1.5s, 20ms, 2min. Rates have a prefix, or a unit: 50M, 50Mbit/s.

Exit codes:
  0    measured and valid
  1    failed on the way
  2    the command line makes no sense
  3    the server is unreachable or silent
  4    the server refuses: key, busy, limit
  5    a privilege is missing
  6    the server speaks another protocol or version
  10   measured, and a limit is crossed: --fail-if, diff
  11   measured, without a conclusion
  130  interrupted twice (143: asked twice to terminate); once prints what is known so far";

#[derive(Debug, Parser)]
#[command(name = "narrows", version, about, max_term_width = 110)]
#[command(propagate_version = true, arg_required_else_help = true, after_help = AFTER_HELP)]
#[command(
    override_usage = "narrows [OPTIONS] <COMMAND>\n       narrows [OPTIONS] <HOST>     short for: narrows test HOST"
)]
struct Cli {
    /// Log to standard error what goes on (`-vv`: in detail; `NARROWS_LOG`: directives for tracing)
    #[arg(long, short, global = true, action = clap::ArgAction::Count, display_order = 900)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Test(commands::test::TestArgs),
    Serve(commands::serve::ServeArgs),
    Demo(commands::demo::DemoArgs),
    /// Measure the narrow link's rate to a host that runs `narrows serve`, or by --via to any
    Capacity(MeasureArgs),
    /// Measure what cross traffic leaves of the path
    Available(commands::available::AvailableArgs),
    Hops(commands::hops::HopsArgs),
    /// Measure the round-trip time
    Rtt(MeasureArgs),
    Burst(commands::burst::BurstArgs),
    Streams(commands::streams::StreamsArgs),
    /// Measure the highest UDP rate with little loss
    Udp(MeasureArgs),
    /// Measure the rate of one TCP connection
    Tcp(measure::TcpArgs),
    Throughput(Box<commands::throughput::ThroughputArgs>),
    Host(commands::host::HostArgs),
    Emulate(commands::emulate::EmulateArgs),
    Lab(commands::lab::LabArgs),
    Simulate(commands::simulate::SimulateArgs),
    Evaluate(commands::evaluate::EvaluateArgs),
    Replay(commands::replay::ReplayArgs),
    Diff(commands::diff::DiffArgs),
    Traffic(commands::traffic::TrafficArgs),
    Passive(commands::passive::PassiveArgs),
    #[cfg(feature = "fleet")]
    Agent(commands::agent::AgentArgs),
    #[cfg(feature = "watch")]
    Alerts(commands::alerts::AlertsArgs),
    #[cfg(feature = "watch")]
    History(commands::history::HistoryArgs),
    #[cfg(feature = "watch")]
    Watch(commands::watch::WatchArgs),
    #[cfg(feature = "fleet")]
    Hub(Box<commands::hub::HubArgs>),
    #[cfg(feature = "fleet")]
    Fleet(commands::fleet::FleetArgs),
    /// List the methods, or print one method's manual
    Methods(commands::methods::MethodsArgs),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    Config(commands::config::ConfigArgs),
    /// Print the manual page (roff): narrows man | man -l -
    Man(commands::manual::ManArgs),
}

impl Command {
    /// Whether it is a part of a fleet, under a service manager as a rule.
    const fn runs_for_months(&self) -> bool {
        match self {
            #[cfg(feature = "fleet")]
            Self::Agent(_) | Self::Hub(_) => true,
            _ => false,
        }
    }
}

fn main() -> ExitCode {
    complete::answer(Cli::command);
    let words: Vec<_> = std::env::args_os().collect();
    if words.len() < 2 {
        output::hint(call::FIRST_STEPS);
        return Exit::Usage.into();
    }
    match parsed(words).and_then(|cli| leased::obey().and_then(|()| run(&cli.command))) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::complain(&failure.text);
            failure.exit.into()
        }
    }
}

/// The command line over what files and environment set; a wrong one ends the program here.
fn parsed(words: Vec<OsString>) -> Result<Cli, Failure> {
    let words = call::completed(words, &Cli::command(), call::resolves)?;
    let command = config::configured(&words, Cli::command(), &config::paths())?;
    let cli = Cli::from_arg_matches(&command.get_matches_from(words)).unwrap_or_else(|error| error.exit());
    log(cli.verbose, cli.command.runs_for_months());
    Ok(cli)
}

/// Logs go to standard error: standard output is the result's alone.
/// What runs for months says what went wrong without being asked: nobody starts it again to see.
fn log(verbose: u8, for_months: bool) {
    let level = match verbose {
        0 => LevelFilter::ERROR,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    // Of our own crates alone: libraries warn of what we handle.
    let ours = (verbose == 0 && for_months).then_some(("narrows", LevelFilter::WARN));
    let wanted = std::env::var("NARROWS_LOG").ok();
    let wanted = wanted.and_then(|text| text.parse::<Targets>().ok());
    let to_stderr = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    tracing_subscriber::registry()
        .with(to_stderr)
        .with(wanted.unwrap_or_else(|| Targets::new().with_default(level).with_targets(ours)))
        .init();
}

fn run(command: &Command) -> Result<Exit, Failure> {
    // A user namespace can only be entered while this is the only thread.
    let builds = match command {
        Command::Demo(_) | Command::Emulate(_) => true,
        Command::Evaluate(args) => args.builds(),
        Command::Lab(args) => args.builds(),
        _ => false,
    };
    if builds && let Err(why) = narrows_lab::enter_user_namespace_if_needed() {
        // The command asks again, and falls back or refuses with the same reason.
        tracing::debug!(%why, "no user namespace");
    }
    match command {
        Command::Test(args) => commands::test::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Demo(args) => commands::demo::run(args),
        Command::Capacity(args) => measure::run(args, Metric::IpCapacity),
        Command::Available(args) => commands::available::run(args),
        Command::Hops(args) => commands::hops::run(args),
        Command::Rtt(args) => measure::run(args, Metric::RoundTripTime),
        Command::Burst(args) => commands::burst::run(args),
        Command::Streams(args) => commands::streams::run(args),
        Command::Udp(args) => measure::run(args, Metric::UdpAchievable),
        Command::Tcp(args) => measure::tcp(args),
        Command::Throughput(args) => commands::throughput::run(args),
        Command::Host(args) => commands::host::run(args),
        Command::Emulate(args) => commands::emulate::run(args),
        Command::Lab(args) => commands::lab::run(args),
        Command::Simulate(args) => commands::simulate::run(args),
        Command::Evaluate(args) => commands::evaluate::run(args),
        Command::Replay(args) => commands::replay::run(args),
        Command::Diff(args) => commands::diff::run(args),
        Command::Traffic(args) => commands::traffic::run(args),
        Command::Passive(args) => commands::passive::run(args),
        #[cfg(feature = "fleet")]
        Command::Agent(args) => commands::agent::run(args),
        #[cfg(feature = "watch")]
        Command::Alerts(args) => commands::alerts::run(args),
        #[cfg(feature = "watch")]
        Command::History(args) => commands::history::run(args),
        #[cfg(feature = "watch")]
        Command::Watch(args) => commands::watch::run(args),
        #[cfg(feature = "fleet")]
        Command::Hub(args) => commands::hub::run(args),
        #[cfg(feature = "fleet")]
        Command::Fleet(args) => commands::fleet::run(args),
        Command::Methods(args) => commands::methods::run(args),
        Command::Completions { shell } => commands::manual::completions(*shell),
        Command::Config(args) => commands::config::run(args, &Cli::command()),
        Command::Man(args) => commands::manual::man(args, Cli::command()),
    }
}
