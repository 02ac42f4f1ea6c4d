//! The flags of `narrows hops`, and what they choose.

use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_methods as methods;
use narrows_net::via::Via;
use narrows_probe::{Answering, Method, RawParams, Scope};
use narrows_report::hops::Strokes;
use narrows_units::Direction;

use super::server::Server;
use crate::budget::BudgetLimits;
use crate::commands::methods::unknown;
use crate::connect::{Peer, Version};
use crate::exit::Failure;
use crate::fail_if::FailIfArgs;
use crate::files::FileArgs;
use crate::key::KeyArgs;
use crate::progress::{Progress, StreamTo, Wanted};
use crate::record::RecordArgs;
use crate::remote::Remote;
use crate::screen::ScreenArgs;

/// Measure each hop of the path to any host: who is there, what its link can carry, where the path
/// is narrow and where it is tight.
///
/// Nothing is needed on the target or on the routers. If the target runs `narrows serve`, its
/// timestamps measure the last hop, and trains measure both whole directions. UDP needs no
/// privilege; --via tcp needs `CAP_NET_RAW`, and --via icmp that or a group within
/// `net.ipv4.ping_group_range`. Letters are those of mtr where mtr has them.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that the user sees")]
pub(crate) struct HopsArgs {
    /// Host at the end of the path
    #[arg(add = crate::complete::hosts())]
    pub(super) host: String,
    /// Only IPv4
    #[arg(short = '4', conflicts_with = "ipv6")]
    pub(super) ipv4: bool,
    /// Only IPv6
    #[arg(short = '6')]
    pub(super) ipv6: bool,
    /// Method per hop; see `narrows methods` [default: hops]
    #[arg(long, add = crate::complete::methods())]
    pub(super) method: Option<String>,
    /// Parameter of the method, NAME=VALUE; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub(super) params: Vec<String>,
    /// What to probe with: `udp[:PORT]` (a closed port), `icmp` (echo) or `tcp[:PORT]` (SYNs; needs
    /// `CAP_NET_RAW`) [default: udp]
    #[arg(long, value_name = "HOW", value_parser = via, conflicts_with_all = ["udp", "tcp", "server"])]
    pub(super) via: Option<Via>,
    /// Probe with UDP: --via udp
    #[arg(long, short, conflicts_with_all = ["tcp", "server"])]
    pub(super) udp: bool,
    /// Probe with TCP SYNs: --via tcp
    #[arg(long, short = 'T', conflicts_with = "server")]
    pub(super) tcp: bool,
    /// Port that UDP or TCP probes go to; with --server, the server's
    #[arg(long, short = 'P', value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "via")]
    pub(super) port: Option<u16>,
    /// All packets go to the `narrows serve` there, which answers for the last hop
    #[arg(long)]
    pub(super) server: bool,
    /// Do not look whether the target runs `narrows serve`
    #[arg(long, conflicts_with = "server")]
    pub(super) no_server: bool,
    /// Port at which to look for that [default: 8620]
    #[arg(long, value_name = "PORT", env = "NARROWS_PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) server_port: Option<u16>,
    #[command(flatten)]
    key: KeyArgs,
    /// First hop to show; the ones before it are measured all the same, since each hop is a
    /// difference to the one before
    #[arg(long, short = 'f', value_name = "N", default_value = "1")]
    pub(super) first_ttl: NonZeroU8,
    /// Last hop to measure
    #[arg(long, short, value_name = "N")]
    pub(super) max_ttl: Option<NonZeroU8>,
    /// Repeats of each probe, if the method has a parameter for it
    #[arg(long = "report-cycles", short = 'c', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) cycles: Option<u32>,
    /// Time between probes, if the method has a parameter for it
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub(super) interval: Option<Duration>,
    /// Show also the routers that this number of flows meet; only the first flow is measured
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) flows: u16,
    /// Addresses only: look up no names
    #[arg(long, short = 'n')]
    pub(super) no_dns: bool,
    /// Octets, time and peak rate that it may cost, such as "2 MB, 30 s, 50 Mbit/s"
    #[arg(long, value_parser = crate::budget::parse)]
    pub(super) budget: Option<BudgetLimits>,
    /// Print one JSON object
    #[arg(long, short = 'J', short_alias = 'j', conflicts_with = "format")]
    pub(super) json: bool,
    /// Print one JSON object per event while it measures, the result in the last one
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub(super) json_stream: bool,
    /// How to print: text, json, or mtr (the JSON of mtr's report)
    #[arg(long, value_name = "FORM", value_enum)]
    pub(super) format: Option<Form>,
    /// The table at the end alone: nothing while it works, no drawing
    #[arg(long, short)]
    pub(super) report: bool,
    /// The same with names in full length
    #[arg(long = "report-wide", short = 'w')]
    pub(super) wide: bool,
    /// Draw the path as a pipe into this SVG file
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(super) screen: ScreenArgs,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) fail_if: FailIfArgs,
    #[command(flatten)]
    pub(super) files: FileArgs,
    #[command(flatten)]
    pub(super) record: RecordArgs,
    /// No progress
    #[arg(long)]
    pub(super) quiet: bool,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// For people.
    Text,
    /// The machine contract.
    Json,
    /// mtr's.
    Mtr,
}

/// The automatic choice.
const DEFAULT: &str = "hops";

/// Without STAMP, whose reflectors say nothing of routers that the others do not.
fn via(text: &str) -> Result<Via, String> {
    match text.parse::<Via>() {
        Ok(Via::Stamp { .. }) => Err("hops takes udp[:PORT], icmp or tcp[:PORT]".to_owned()),
        Ok(via) => Ok(via),
        Err(_) => Err(format!("{text:?} is none of udp[:PORT], icmp, tcp[:PORT] (ports 1 to 65535)")),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = narrows_units::parse_duration_or_seconds(text).map_err(|error| error.to_string())?;
    if time > Duration::from_secs(60) {
        return Err(format!("{text}: at most a minute"));
    }
    Ok(time)
}

impl HopsArgs {
    pub(super) fn chosen_via(&self) -> Via {
        match (self.via, self.tcp) {
            (Some(via), _) => via,
            (None, true) => Via::Tcp { port: self.port.unwrap_or(Via::TCP_PORT) },
            (None, false) => Via::Udp { port: self.port.unwrap_or(Via::UDP_PORT) },
        }
    }

    /// What answers for the peer.
    pub(super) fn answering(&self) -> Answering {
        if self.server { Answering::Server } else { self.chosen_via().answering() }
    }

    pub(super) fn via_text(&self) -> String {
        if self.server { "the server there".to_owned() } else { self.chosen_via().to_string() }
    }

    pub(super) fn form(&self) -> Form {
        if self.json { Form::Json } else { self.format.unwrap_or(Form::Text) }
    }

    /// A picture for the eyes of one who waits.
    pub(super) fn live(&self) -> bool {
        !(self.quiet || self.report || self.wide)
    }

    /// Where the progress goes.
    pub(super) fn progress(&self) -> Wanted<'_> {
        let plain = !self.live() || self.json_stream || self.form() != Form::Text;
        Wanted {
            quiet: !self.live(),
            stream: self.json_stream.then_some(StreamTo(self.output.as_deref())),
            screen: self.screen.wanted(plain),
        }
    }

    pub(super) fn strokes(&self) -> Strokes {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        if self.screen.ascii || dumb { Strokes::Ascii } else { Strokes::Unicode }
    }

    pub(super) fn version(&self) -> Version {
        match (self.ipv4, self.ipv6) {
            (true, _) => Version::V4,
            (_, true) => Version::V6,
            _ => Version::Any,
        }
    }

    /// The method, and its parameters as flags have them.
    pub(super) fn chosen(&self) -> Result<(&'static dyn Method, RawParams), Failure> {
        let name = self.method.as_deref().unwrap_or(DEFAULT);
        let method = methods::find(name).ok_or_else(|| unknown(name))?;
        let info = method.info();
        if info.class.scope != Scope::PerHop {
            let known: Vec<&str> = per_hop().map(|method| method.info().name).collect();
            let known = known.join(", ");
            return Err(Failure::usage(format!("{name} measures no hops; these do: {known}")));
        }
        if !method.answered_by().contains(&self.answering()) {
            let why = format!("{name} cannot work with what answers by {}", self.via_text());
            return Err(Failure::usage(why));
        }
        let mut params: RawParams = crate::commands::simulate::split(&self.params)?.into_iter().collect();
        let flags = [
            ("-m/--max-ttl", &["hops", "max_ttl"][..], self.max_ttl.map(|hops| hops.to_string())),
            ("-c/--report-cycles", &["repeats", "probes"], self.cycles.map(|cycles| cycles.to_string())),
            ("-i/--interval", &["gap", "pace"], self.interval.map(|time| format!("{} ns", time.as_nanos()))),
        ];
        for (flag, names, value) in flags {
            let Some(value) = value else { continue };
            let has = |name: &&&str| info.parameter(name).is_some();
            let own = names.iter().find(has);
            let own = own.ok_or_else(|| Failure::usage(format!("{flag}: {name} does not let one choose that")))?;
            params.set(*own, value);
        }
        // Bad parameters are told before anything is connected.
        method.begin(&params).map_err(|error| Failure::usage(error.to_string()))?;
        Ok((method, params))
    }

    pub(super) fn connect(&self, stop: &Arc<AtomicBool>, progress: &Progress) -> Result<Remote, Failure> {
        let peer = Peer::of_version(self.host.clone(), self.port_of_server(), self.version());
        if self.server {
            let peer = peer.with_key(self.key.read()?);
            let world = peer.connect(Direction::Forward, stop, progress)?;
            return Ok(Remote::Server(Box::new(world)));
        }
        let world = peer.connect_per_hop(self.chosen_via(), stop)?;
        Ok(Remote::SingleEnded(Box::new(world)))
    }

    /// Where `narrows serve` listens there: `--port` is its port only where all packets go to it.
    pub(super) fn port_of_server(&self) -> u16 {
        let own = self.port.filter(|_| self.server);
        own.or(self.server_port).unwrap_or(narrows_wire::DEFAULT_PORT)
    }

    /// A server that may be at the end of this path, for the method that can use it.
    pub(super) fn server_there(
        &self,
        method: &dyn Method,
        remote: SocketAddr,
        stop: &Arc<AtomicBool>,
        progress: &Progress,
    ) -> Result<Option<Server>, Failure> {
        if self.no_server || !takes_stamps(method) {
            return Ok(None);
        }
        let name = match remote {
            SocketAddr::V6(remote) if remote.scope_id() != 0 => format!("{}%{}", remote.ip(), remote.scope_id()),
            _ => remote.ip().to_string(),
        };
        let peer = Peer::of_version(name, self.port_of_server(), self.version()).with_key(self.key.read()?);
        Ok(Some(Server::new(peer, self.server, stop, progress)))
    }

    /// What the method runs with: the caller's, and that the peer's stamps may tell the last
    /// hop.
    pub(super) fn run_params(&self, method: &dyn Method, params: &RawParams) -> RawParams {
        let mut params = params.clone();
        let said = params.iter().any(|(name, _)| name == LAST_HOP);
        if !self.no_server && !said && takes_stamps(method) {
            params.set(LAST_HOP, "stamps");
        }
        params
    }
}

/// The parameter of methods that can tell the last hop by the peer's stamps.
const LAST_HOP: &str = "last_hop";

fn takes_stamps(method: &dyn Method) -> bool {
    method.info().parameter(LAST_HOP).is_some()
}

/// Methods that measure hops.
fn per_hop() -> impl Iterator<Item = &'static dyn Method> {
    methods::METHODS.iter().copied().filter(|method| method.info().class.scope == Scope::PerHop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_end_at_a_minute() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["-1", "61", "2 h"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn reflectors_are_no_way_to_routers() {
        assert_eq!(via("icmp"), Ok(Via::Icmp));
        assert!(via("stamp").is_err() && via("udp:0").is_err());
    }
}
