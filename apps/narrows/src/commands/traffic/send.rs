//! `narrows traffic send HOST`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_traffic::{DEFAULT_PORT, Pacing, Report, Sender, SenderOptions};
use narrows_units::BitRate;

use super::failure;
use super::flows::FlowArgs;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::{interrupt, output};

/// Send traffic to a host that runs `narrows traffic sink`, and print what left and what arrived.
///
/// Rates and sizes are those of IP packets; a late packet is caught up, never left out. With the
/// seed and the `cross` table of a scenario the packets are the simulator's.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct SendArgs {
    /// Host that runs `narrows traffic sink`
    host: String,
    /// Its port
    #[arg(long, short, default_value_t = DEFAULT_PORT, env = "NARROWS_TRAFFIC_PORT",
        value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Only IPv4
    #[arg(short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// Only IPv6
    #[arg(short = '6')]
    ipv6: bool,
    #[command(flatten)]
    flows: FlowArgs,
    /// How long, such as "10 s"; 0: until interrupted. 10 s by default, or as long as a capture
    #[arg(long, short, value_name = "TIME", value_parser = narrows_units::parse_duration_or_seconds)]
    time: Option<Duration>,
    /// Length of the intervals of all series
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = narrows_units::parse_duration_or_seconds)]
    interval: Duration,
    /// How to wait for the time of a packet
    #[arg(long, value_enum, default_value_t = PacingName::Spin)]
    pacing: PacingName,
    /// Processor for the sending thread
    #[arg(long)]
    cpu: Option<usize>,
    /// Print one JSON object
    #[arg(long, short = 'J', conflicts_with = "csv")]
    json: bool,
    /// Print the series as a table
    #[arg(long)]
    csv: bool,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// No progress
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum PacingName {
    /// Sleep, then spin: within microseconds, for much of a processor
    Spin,
    /// Sleep: some 100 µs late, in small bursts
    Sleep,
}

pub(super) fn run(args: &SendArgs) -> Result<Exit, Failure> {
    const USUAL: Duration = Duration::from_secs(10);
    if args.interval < Duration::from_millis(1) {
        return Err(Failure::usage("--interval must be at least 1 ms"));
    }
    output::check(args.output.as_ref())?;
    let asked = args.flows.read()?;
    let duration = match args.time {
        Some(Duration::ZERO) => None,
        Some(time) => Some(time),
        None => (!asked.ends).then_some(USUAL),
    };
    let sink = resolve(args)?;
    let stop = interrupt::flag()?;
    let options = SenderOptions {
        duration,
        interval: args.interval,
        pacing: match args.pacing {
            PacingName::Spin => Pacing::Spin,
            PacingName::Sleep => Pacing::Sleep,
        },
        pin_to: args.cpu,
    };
    let progress = Progress::new(args.quiet);
    let sender = Sender::start(sink, asked.flows, options).map_err(|error| failure(&error))?;
    watch(&sender, &progress, stop);
    let mut report = sender.wait(stop);
    progress.finish();
    report.notes.splice(0..0, asked.notes);
    output::write(&shown(args, &report), args.output.as_deref())?;
    if report.nothing_arrived() {
        return Err(Failure {
            exit: Exit::Unreachable,
            who: "path",
            text: format!("nothing of what was sent arrived at {sink}: a firewall?"),
        });
    }
    let known = report.flows.iter().any(|flow| flow.received.is_some());
    Ok(if known { Exit::Valid } else { Exit::Unreachable })
}

fn shown(args: &SendArgs, report: &Report) -> String {
    if args.json {
        report.json() + "\n"
    } else if args.csv {
        report.csv()
    } else {
        report.text()
    }
}

/// Shows the rate of the last second until it is over.
fn watch(sender: &Sender, progress: &Progress, stop: &std::sync::atomic::AtomicBool) {
    const POLLS: u64 = 20;
    const POLL: Duration = Duration::from_millis(50);
    let (mut polls, mut before) = (0, sender.progress());
    while !sender.finished() && sender.alive() && !stop.load(Ordering::Relaxed) {
        interrupt::nap(POLL);
        polls += 1;
        if polls % POLLS == 0 {
            let now = sender.progress();
            let octets = now.ip_octets - before.ip_octets;
            let second = POLL * u32::try_from(POLLS).unwrap_or(1);
            if let Some(rate) = BitRate::over(octets, second).filter(|_| octets > 0) {
                progress.say(format!("sending UDP at {rate}, {} packets so far", now.packets));
            }
            before = now;
        }
    }
}

fn resolve(args: &SendArgs) -> Result<SocketAddr, Failure> {
    let unknown = |why: String| Failure { exit: Exit::Unreachable, who: "caller", text: why };
    let addresses = (args.host.as_str(), args.port)
        .to_socket_addrs()
        .map_err(|error| unknown(format!("no address for {:?}: {error}", args.host)))?;
    addresses
        .into_iter()
        .find(|address| !(args.ipv4 && address.is_ipv6() || args.ipv6 && address.is_ipv4()))
        .ok_or_else(|| unknown(format!("{:?} has no address of that IP version", args.host)))
}
