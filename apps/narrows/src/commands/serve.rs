//! `narrows serve`: the server that clients measure to.

mod iperf3;
mod ndt7;
mod stamp;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_net::iperf3::Iperf3Server;
use narrows_net::reflect::Reflector;
use narrows_net::serve::{Running, ServeError, ServeOptions};
use narrows_units::{BitRate, Octets, nanos};

use self::ndt7::Ndt7Server;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output, service};

/// Answer `narrows test` and the other measuring commands of other hosts.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// TCP and UDP port
    #[arg(long, short, default_value_t = narrows_wire::DEFAULT_PORT, env = "NARROWS_PORT")]
    port: u16,
    /// Address to listen on; may be repeated; all addresses by default
    #[arg(long, short = 'B', value_name = "ADDRESS")]
    bind: Vec<IpAddr>,
    /// File with a key that clients must prove
    #[arg(long, value_name = "FILE", env = "NARROWS_PSK_FILE")]
    psk_file: Option<PathBuf>,
    /// File with the keys of a fleet, which its agent writes: clients prove theirs by name, and
    /// only the run that leased this host may load it; read again when it changes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["psk_file", "allow_load", "iperf3", "ndt7"])]
    fleet_keys: Option<PathBuf>,
    #[command(flatten)]
    stamp: stamp::StampArgs,
    #[command(flatten)]
    iperf3: iperf3::Iperf3Args,
    #[command(flatten)]
    ndt7: ndt7::Ndt7Args,
    /// Allow UDP loads to clients from anywhere without a key
    #[arg(long)]
    allow_load: bool,
    /// Highest rate of a UDP load
    #[arg(long, value_name = "RATE")]
    max_rate: Option<BitRate>,
    /// Longest load or transfer, such as "30 s"
    #[arg(long, value_name = "TIME", value_parser = narrows_units::parse_duration_or_seconds)]
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
    let reflector = args.stamp.start(&options)?;
    let iperf3 = args.iperf3.start(args, &options)?;
    let ndt7 = args.ndt7.start(args, &options)?;
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
    for address in ndt7.iter().flat_map(Ndt7Server::addresses) {
        output::complain(&format!("answering ndt7 on {address}, TCP"));
    }
    service::is_ready();
    while !stop.load(Ordering::Relaxed) {
        interrupt::nap(Duration::from_millis(50));
    }
    service::is_stopping();
    drop((iperf3, ndt7));
    server.stop().map_err(|error| failure(&error))?;
    Ok(Exit::Valid)
}

fn options(args: &ServeArgs) -> Result<ServeOptions, Failure> {
    let mut options = ServeOptions::new(facts(None)?);
    options.port = args.port;
    if !args.bind.is_empty() {
        options.listen.clone_from(&args.bind);
    }
    match (args.fleet_keys.as_deref(), args.psk_file.as_deref()) {
        (Some(path), _) => options.fleet_keys = Some(crate::key::fleet(path)?),
        (None, Some(path)) => options.psk = Some(crate::key::read(path)?),
        (None, None) => options.psk = service::key()?,
    }
    options.allow_load = args.allow_load;
    let limits = &mut options.limits;
    if let Some(rate) = args.max_rate {
        limits.session.max_load_rate_bps = rate.bps();
    }
    if let Some(time) = args.max_duration {
        limits.session.max_duration_ns = nanos(time);
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

/// A server for one demonstration, in the calling thread's network namespace, at a port of the
/// system's choice.
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
fn facts(address: Option<IpAddr>) -> Result<narrows_wire::HostFacts, Failure> {
    let interface = address.and_then(narrows_net::host::Interface::with_address);
    let facts = narrows_net::host::measure(interface.as_ref())
        .map_err(|error| Failure::host(format!("cannot measure what this host can do: {error}")))?;
    Ok(narrows_net::serve::host_facts(&facts))
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
    Failure { exit, who, text: error.to_string() }
}

/// Why a port of another protocol cannot be served; `doing`: `answer … on port N`.
fn no_port(error: &std::io::Error, doing: &str) -> Failure {
    let denied = error.kind() == std::io::ErrorKind::PermissionDenied;
    let hint = if denied { "; ports below 1024 need CAP_NET_BIND_SERVICE" } else { "" };
    Failure {
        exit: if denied { Exit::Privilege } else { Exit::Failure },
        who: "host",
        text: format!("cannot {doing}: {error}{hint}"),
    }
}
