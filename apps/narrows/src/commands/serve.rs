//! `narrows serve`: the far end.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use net::iperf3::{Iperf3Limits, Iperf3Options, Iperf3Server};
use net::reflect::{Reflector, ReflectorOptions};
use net::serve::{Running, ServeError, ServeOptions};
use units::{BitRate, Octets};

use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

/// Be the far end: answer `narrows test` and its kin from other hosts.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// TCP and UDP port
    #[arg(long, short, default_value_t = wire::DEFAULT_PORT, env = "NARROWS_PORT")]
    port: u16,
    /// Address to listen on; may be repeated; all addresses by default
    #[arg(long, short = 'B', value_name = "ADDRESS")]
    bind: Vec<IpAddr>,
    /// File with a key that clients must prove
    #[arg(long, value_name = "FILE", env = "NARROWS_PSK_FILE")]
    psk_file: Option<PathBuf>,
    /// Also be an RFC 8762 STAMP reflector, at this UDP port; authenticated where there is a key
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "862",
          value_parser = clap::value_parser!(u16).range(1..))]
    stamp: Option<u16>,
    /// STAMP packets per second that one address gets back over time [default: 1000]
    #[arg(long, value_name = "N", requires = "stamp", value_parser = clap::value_parser!(u32).range(1..))]
    stamp_per_source: Option<u32>,
    /// STAMP packets that one address gets back at once, before that limit [default: 4000]
    #[arg(long, value_name = "N", requires = "stamp", value_parser = clap::value_parser!(u32).range(1..))]
    stamp_burst: Option<u32>,
    /// STAMP packets per second for all addresses together [default: 10000]
    #[arg(long, value_name = "N", requires = "stamp", value_parser = clap::value_parser!(u32).range(1..))]
    stamp_total: Option<u32>,
    /// Do not count STAMP packets per session (the stateless mode of RFC 8762)
    #[arg(long, requires = "stamp")]
    stamp_stateless: bool,
    /// Also answer stock iperf3 clients, several at once, at this TCP and UDP port; held to the limits below
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "5201")]
    iperf3: Option<u16>,
    /// Allow UDP loads to clients from anywhere without a key
    #[arg(long)]
    allow_load: bool,
    /// Highest rate of a UDP load
    #[arg(long, value_name = "RATE")]
    max_rate: Option<BitRate>,
    /// Longest load or transfer, such as "30 s"
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    max_duration: Option<Duration>,
    /// Octets of one load or transfer, such as "2 GB"
    #[arg(long, value_name = "OCTETS")]
    max_octets: Option<Octets>,
    /// Sessions at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    max_sessions: Option<u16>,
    /// Sessions that may wait for a slot
    #[arg(long, value_name = "N")]
    max_queue: Option<u16>,
}

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let options = options(args)?;
    let stop = interrupt::flag()?;
    let reflector = args.stamp.map(|port| reflector(args, &options, port)).transpose()?;
    let iperf3 = args.iperf3.map(|port| iperf3(args, &options, port)).transpose()?;
    let server = Running::start(options).map_err(|error| failure(&error))?;
    for address in server.addresses() {
        output::complain(&format!("listening on {address}, TCP and UDP"));
    }
    for address in reflector.iter().flat_map(Reflector::addresses) {
        output::complain(&format!("reflecting STAMP on {address}, UDP"));
    }
    for address in iperf3.iter().flat_map(Iperf3Server::addresses) {
        output::complain(&format!("answering iperf3 on {address}, TCP and UDP"));
    }
    while !stop.load(Ordering::Relaxed) {
        interrupt::nap(Duration::from_millis(50));
    }
    drop(iperf3);
    server.stop().map_err(|error| failure(&error))?;
    Ok(Exit::Valid)
}

/// Where the server listens, at a port of its own, with the limits of a session. The protocol knows nothing of our keys: whoever must
/// prove one is better served without it.
fn iperf3(args: &ServeArgs, options: &ServeOptions, port: u16) -> Result<Iperf3Server, Failure> {
    let mut wanted = Iperf3Options {
        listen: options.listen.clone(),
        port,
        allow_load: args.allow_load,
        limits: Iperf3Limits {
            rate: args.max_rate,
            octets: args.max_octets.map(Octets::count),
            ..Iperf3Limits::default()
        },
        on_end: Arc::new(|summary| output::complain(&summary.to_string())),
    };
    let limits = &mut wanted.limits;
    limits.duration = args.max_duration.unwrap_or(limits.duration);
    if let Some(sessions) = args.max_sessions {
        limits.sessions = usize::from(sessions);
    }
    Iperf3Server::start(wanted).map_err(|error| Failure {
        exit: Exit::Failure,
        who: "host",
        text: format!("cannot answer iperf3 on port {port}: {error}"),
    })
}

/// Where the server listens, with its key, at a port of its own.
fn reflector(args: &ServeArgs, options: &ServeOptions, port: u16) -> Result<Reflector, Failure> {
    let mut wanted = ReflectorOptions::new(options.listen.clone(), port);
    wanted.key.clone_from(&options.psk);
    wanted.per_source = args.stamp_per_source.unwrap_or(wanted.per_source);
    wanted.burst = args.stamp_burst.unwrap_or(wanted.burst);
    wanted.total = args.stamp_total.unwrap_or(wanted.total);
    wanted.stateful = !args.stamp_stateless;
    Reflector::start(&wanted).map_err(|error| {
        let denied = error.kind() == std::io::ErrorKind::PermissionDenied;
        let hint = if denied {
            "; ports below 1024 need CAP_NET_BIND_SERVICE"
        } else {
            ""
        };
        Failure {
            exit: if denied { Exit::Privilege } else { Exit::Failure },
            who: "host",
            text: format!("cannot reflect STAMP on UDP port {port}: {error}{hint}"),
        }
    })
}

fn options(args: &ServeArgs) -> Result<ServeOptions, Failure> {
    let mut options = ServeOptions::new(facts(None)?);
    options.port = args.port;
    if !args.bind.is_empty() {
        options.listen.clone_from(&args.bind);
    }
    options.psk = args.psk_file.as_deref().map(crate::key::read).transpose()?;
    options.allow_load = args.allow_load;
    let limits = &mut options.limits;
    if let Some(rate) = args.max_rate {
        limits.session.max_load_rate_bps = rate.bps();
    }
    if let Some(time) = args.max_duration {
        limits.session.max_duration_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    }
    if let Some(octets) = args.max_octets {
        limits.session.max_octets = octets.count();
    }
    if let Some(sessions) = args.max_sessions {
        limits.sessions = usize::from(sessions);
        limits.sessions_per_address = limits.sessions_per_address.min(limits.sessions);
    }
    if let Some(queue) = args.max_queue {
        limits.queue = usize::from(queue);
    }
    Ok(options)
}

/// A server for one demonstration, in the calling thread's network namespace, at a port of the system's choice.
pub(crate) fn start_private(address: IpAddr) -> Result<Running, Failure> {
    start_at(address, 0)
}

/// A server in the calling thread's network namespace, at one address and this port.
pub(crate) fn start_at(address: IpAddr, port: u16) -> Result<Running, Failure> {
    let mut options = ServeOptions::new(facts(Some(address))?);
    options.listen = vec![address];
    options.port = port;
    Running::start(options).map_err(|error| failure(&error))
}

/// This host's capabilities, as every client is told them.
fn facts(address: Option<IpAddr>) -> Result<wire::HostFacts, Failure> {
    let interface = address.and_then(net::host::Interface::with_address);
    let facts = net::host::measure(interface.as_ref())
        .map_err(|error| Failure::host(format!("cannot measure what this host can do: {error}")))?;
    Ok(net::serve::host_facts(&facts))
}

fn failure(error: &ServeError) -> Failure {
    let (exit, who) = match error {
        ServeError::NoAddress => (Exit::Usage, "caller"),
        ServeError::Listen { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            (Exit::Privilege, "host")
        }
        ServeError::Listen { .. } => (Exit::Failure, "caller"),
        _ => (Exit::Failure, "host"),
    };
    Failure {
        exit,
        who,
        text: error.to_string(),
    }
}
