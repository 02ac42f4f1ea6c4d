//! `narrows hub run`.

use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_hub::{Channels, Server, Settings};
use narrows_units::Octets;
use nix::sys::stat::{Mode, umask};
use serde_json::json;

use super::place::PlaceArgs;
use super::store::{failure, open, runtime};
use crate::commands::alerts;
use crate::commands::watch::clocks::local_zone;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output, service};

/// How the hub runs.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Address to listen on, with or without port; 8622 is the usual port
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8622", value_parser = listen, env = "NARROWS_HUB_LISTEN")]
    listen: SocketAddr,
    /// Name under which agents and browsers reach the hub, instead of its address; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// `embedded`, or `nats://host:4222` for more than 50 hosts; may be repeated for the servers of
    /// one cluster
    #[arg(long, value_name = "URL", default_value = "embedded")]
    bus: Vec<String>,
    /// Results that the bus keeps for at most a week, while the record does not take them; the same
    /// as before for a bus that was used before
    #[arg(long, value_name = "OCTETS", default_value = "20 GB")]
    bus_size: Octets,
    /// File with a [channel.NAME] for each way to tell people of alerts; by default
    /// /etc/narrows/hub.toml, if that is there
    #[arg(long, value_name = "FILE")]
    channels: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
    /// Print one JSON object in one line: url, join, token
    #[arg(long, short = 'J')]
    json: bool,
}

pub(super) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let stop = interrupt::flag()?;
    let nats: Vec<String> = args.bus.iter().filter(|bus| *bus != "embedded").cloned().collect();
    if !nats.iter().all(|bus| bus.starts_with("nats://") || bus.starts_with("tls://")) {
        return Err(Failure::usage("--bus: write embedded, nats://HOST:PORT or tls://HOST:PORT"));
    }
    // What the databases make is for their owner alone, too.
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    let state = args.place.state();
    std::fs::create_dir_all(&state).map_err(|error| Failure::host(format!("{}: {error}", state.display())))?;
    let _lock = args.place.lock()?;
    let tenant = tenant();
    let (listen, hosts, bus_octets) = (args.listen, args.hosts.clone(), args.bus_size.count());
    let (channels, zone) = (channels(args.channels.as_deref())?, local_zone());
    let settings = Settings { listen, hosts, state, nats, bus_octets, tenant, channels, zone };
    runtime()?.block_on(async {
        let record = open(&args.place.store()).await?;
        let server = Server::bind(&settings, record).await.map_err(|error| failure(&error))?;
        greet(args, &server).await?;
        service::is_ready();
        let stopped = async {
            while !stop.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let ended = server.run(stopped).await.map_err(|error| failure(&error));
        service::is_stopping();
        ended.map(|()| Exit::Valid)
    })
}

/// Whose fleet a hub is.
pub(super) fn tenant() -> narrows_fleet::keys::Name {
    "default".parse().expect("a name")
}

/// Says where the hub is. The line by which hosts join is for programs that ask, for people who
/// look, and for a hub that has no agent yet: it does not belong into the log of every start.
async fn greet(args: &RunArgs, server: &Server) -> Result<(), Failure> {
    let url = server.url();
    let empty = server.hub().is_empty();
    let text = if args.json || empty || std::io::stdout().is_terminal() {
        let token = server.hub().token(FIRST_USES, "hub").await.map_err(|error| failure(&error))?;
        if args.json {
            json!({ "url": url, "join": token.to_string(), "token": server.view_token() }).to_string() + "\n"
        } else {
            format!("{url}\nhosts join within a day by:\n  narrows agent join {url} {token}\n")
        }
    } else {
        format!("{url}\n`narrows hub token` prints a line by which hosts join\n")
    };
    output::write(&text, None)
}

/// The channels of the file, if one is named or the usual one is there.
fn channels(file: Option<&Path>) -> Result<Channels, Failure> {
    let usual = || Some(Path::new(CHANNELS)).filter(|path| path.exists());
    let Some(path) = file.or_else(usual) else { return Ok(Channels::default()) };
    let channels = alerts::channels(path)?;
    let deliver = Arc::new(alerts::notifier(&channels, path)?);
    Ok(Channels { names: channels.into_keys().collect(), deliver })
}

/// An address, with the usual port if it names none.
fn listen(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, PORT));
    text.parse().ok().or_else(alone).ok_or_else(|| format!("\"{text}\" is no address such as 0.0.0.0:{PORT}"))
}

const PORT: u16 = 8622;
const CHANNELS: &str = "/etc/narrows/hub.toml";
/// What the embedded bus is made for.
const FIRST_USES: u32 = 50;
