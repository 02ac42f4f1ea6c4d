//! `narrows host [SERVER]`: what the hosts can do.

mod profile;
mod remote;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use narrows_diagnose::host::{CaptureModel, Coalescing, Costs, Inventory, Pacer, fixes};
use narrows_net::host::{Interface, Steal};
use narrows_probe::HostFacts;
use narrows_report::host::{CaptureRow, HostDocument, HostFindings, RemoteFindings};
use narrows_report::{Note, Problem, Target};
use narrows_units::BitRate;

use crate::connect::{Peer, Version};
use crate::exit::{Exit, Failure};
use crate::key::KeyArgs;
use crate::progress::Progress;
use crate::{environment, interrupt, output};

/// Show what this host can measure, and up to which rate: clocks, calls, memory, pacing, stamps,
/// card, and a verdict per family of methods. With a SERVER that runs `narrows serve`, for both
/// hosts.
///
/// Takes about three seconds (with --record as long as that says), most of it on loopback; a server
/// is sent six trains of 120 packets. Changes nothing.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that the user sees")]
pub(crate) struct HostArgs {
    /// Host that runs `narrows serve`
    #[arg(add = crate::complete::hosts())]
    server: Option<String>,
    /// Its port [default: 8620]
    #[arg(long, short, env = "NARROWS_PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Only IPv4
    #[arg(short = '4', conflicts_with = "ipv6", requires = "server")]
    ipv4: bool,
    /// Only IPv6
    #[arg(short = '6', requires = "server")]
    ipv6: bool,
    #[command(flatten)]
    key: KeyArgs,
    /// The path's rate, to judge by it [default: the slower link, if known]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<BitRate>,
    /// Interface towards the path [default: the one that leads to the server, or out of this host]
    #[arg(long, short = 'I', value_name = "NAME", conflicts_with = "server", add = crate::complete::interfaces())]
    interface: Option<String>,
    /// Print commands that would make this host measure better, each with the command that undoes
    /// it; nothing is run
    #[arg(long)]
    fix: bool,
    /// Estimate what a capture takes without loss; measured on loopback with `CAP_NET_RAW`
    #[arg(long)]
    capture: bool,
    /// Octets of each frame that the capture keeps
    #[arg(long, value_name = "OCTETS", default_value = "96", requires = "capture",
          value_parser = clap::value_parser!(u32).range(14..=65_000))]
    snap: u32,
    /// Print one JSON object
    #[arg(long, short = 'J', short_alias = 'j')]
    json: bool,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// No progress
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    recording: profile::RecordingArgs,
}

fn rate(text: &str) -> Result<BitRate, String> {
    let rate: BitRate = text.parse().map_err(|error: narrows_units::ParseQuantityError| error.to_string())?;
    if rate.bps() == 0 {
        return Err("the rate must be above zero".to_owned());
    }
    Ok(rate)
}

/// IP octets of packets on an interface whose MTU nobody tells.
const USUAL_MTU: u16 = 1500;
/// The longest that an Ethernet path has; loopback's 65 536 would flatter every method.
const MOST_MTU: u16 = 9000;

pub(crate) fn run(args: &HostArgs) -> Result<Exit, Failure> {
    output::check(args.output.as_ref())?;
    let progress = Progress::new(args.quiet);
    let stop = Arc::clone(interrupt::flag()?);
    if let Some(file) = &args.recording.record {
        return profile::run(args, file, &stop, &progress);
    }
    let started_at = Some(environment::now());
    // The remote host first: what is wrong with the call is told before anything is measured.
    let remote = args.peer()?.map(|peer| remote::ask(&peer, &stop, &progress)).transpose()?;
    let interface = args.interface(remote.as_ref())?;
    progress.say("this host".to_owned());
    let here = here(interface.as_ref(), remote.as_ref())?;
    let captured = args.capture.then(|| {
        progress.say("a capture".to_owned());
        narrows_net::host::capture(usize::try_from(args.snap).unwrap_or(usize::MAX))
    });
    progress.finish();
    let mtu = here.inventory.card.as_ref().and_then(|card| card.mtu);
    let mtu = mtu.map_or(USUAL_MTU, |mtu| u16::try_from(mtu).unwrap_or(u16::MAX));
    let mut document = HostDocument::new(HostFindings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at,
        target: remote.as_ref().map(|remote| args.target(remote)),
        rate: args.rate,
        ip_octets: remote.as_ref().map_or(mtu, |remote| remote.path_mtu).min(MOST_MTU),
        inventory: here.inventory,
        costs: here.costs,
        near: here.facts,
        remote: remote.as_ref().map(|remote| RemoteFindings {
            facts: remote.facts.clone(),
            coalescing: remote.seen_there,
            settings: remote.settings.clone(),
        }),
        steal_ratio: here.steal_ratio,
    });
    document.capture = captured.map(|captured| capture_row(&document, args.snap, captured));
    if args.fix {
        let rate = document.rate_bps.map(BitRate::from_bps);
        document.fixes = Some(fixes(&document.near.inventory, rate));
    }
    if remote.is_none() {
        document.notes.push(Note {
            id: "no_remote_host",
            text: "No server was named: the other host is assumed to be like this one.".to_owned(),
        });
    }
    let failure = remote.and_then(|remote| remote.failure);
    document.error = failure.as_ref().map(|failure| Problem {
        code: failure.exit.code(),
        who: failure.who,
        text: failure.text.clone(),
    });
    let text = if args.json { document.json() + "\n" } else { document.text() };
    output::write(&text, args.output.as_deref())?;
    failure.map_or(Ok(Exit::Valid), Err)
}

/// What was found on this host.
struct Here {
    inventory: Inventory,
    costs: Costs,
    facts: HostFacts,
    steal_ratio: Option<f64>,
}

fn here(interface: Option<&Interface>, remote: Option<&remote::PeerKind>) -> Result<Here, Failure> {
    let before = Steal::read();
    let mut inventory = narrows_net::host::inventory(interface.cloned());
    let qdisc = inventory.card.as_ref().and_then(|card| card.qdisc.clone());
    let mut costs = narrows_net::host::costs(qdisc.as_deref());
    if let (Some(remote), Some("fq" | "etf")) = (remote, qdisc.as_deref()) {
        departures(&mut costs, remote.address);
    }
    let facts = match remote {
        Some(remote) => remote.near.clone(),
        None => narrows_net::host::measure(interface)
            .map_err(|error| Failure::host(format!("cannot measure what this host can do: {error}")))?,
    };
    if let (Some(card), Some(remote)) = (&mut inventory.card, remote) {
        card.seen_coalescing = remote.seen_here;
    }
    let steal = before.zip(Steal::read());
    Ok(Here {
        inventory,
        costs,
        facts,
        steal_ratio: steal.and_then(|(before, after)| before.share_until(&after)).map(f64::from),
    })
}

/// Where the interface's discipline keeps departure times, packets over it show how well.
fn departures(costs: &mut Costs, peer: std::net::SocketAddr) {
    let row = costs.pacing.iter_mut().find(|row| row.pacer == Pacer::DepartureTimes);
    let Some(row) = row else { return };
    match narrows_net::host::departure_times(peer) {
        Ok(measured) => *row = measured,
        Err(error) => {
            row.unknown = Some(format!(
                "the queueing discipline accepts departure times; how exactly it keeps them is unknown: {error}"
            ));
        }
    }
}

impl HostArgs {
    fn peer(&self) -> Result<Option<Peer>, Failure> {
        let Some(name) = &self.server else { return Ok(None) };
        let version = match (self.ipv4, self.ipv6) {
            (true, _) => Version::V4,
            (_, true) => Version::V6,
            _ => Version::Any,
        };
        let peer = Peer::of_version(name.clone(), self.port.unwrap_or(narrows_wire::DEFAULT_PORT), version);
        Ok(Some(peer.with_key(self.key.read()?)))
    }

    fn target(&self, remote: &remote::PeerKind) -> Target {
        Target {
            name: self.server.clone().unwrap_or_default(),
            address: Some(remote.address.ip()),
            port: Some(remote.address.port()),
        }
    }

    /// The interface that was named, leads to the server, or leads out of this host; `None` where
    /// none does.
    fn interface(&self, remote: Option<&remote::PeerKind>) -> Result<Option<Interface>, Failure> {
        if let Some(name) = &self.interface {
            let found = Interface::named(name);
            return found
                .map(Some)
                .ok_or_else(|| Failure::usage(format!("-I {name}: this host has no such interface")));
        }
        if let Some(remote) = remote {
            return Ok(Interface::towards(remote.address));
        }
        // Addresses for documentation (RFC 5737, RFC 3849): the routing table is asked, nothing is
        // sent.
        let outside = ["192.0.2.1:9", "[2001:db8::1]:9"];
        Ok(outside.iter().filter_map(|address| address.parse().ok()).find_map(Interface::towards))
    }
}

/// What was measured, beside what memory allows.
fn capture_row(
    document: &HostDocument,
    snap_octets: u32,
    captured: std::io::Result<narrows_diagnose::host::CaptureMeasured>,
) -> CaptureRow {
    let ip_octets = u32::from(USUAL_MTU);
    let memory = document.near.costs.memory_octets_per_second();
    let model = memory.and_then(|memory| CaptureModel::RING.highest(memory, ip_octets, snap_octets, 1.0));
    let (measured, unknown) = match captured {
        Ok(measured) => (Some(measured), None),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            (None, Some("a ring of frames needs CAP_NET_RAW".to_owned()))
        }
        Err(error) => (None, Some(format!("a ring of frames cannot be opened here: {error}"))),
    };
    let taken = measured.and_then(|measured| measured.rate_bps);
    let verdict = match (&measured, taken, &model) {
        (Some(measured), Some(_), _) if measured.as_fast_as_sent => "at_least",
        (_, Some(_), _) => "measured",
        (_, None, Some(_)) => "at_most",
        (_, None, None) => "unknown",
    };
    CaptureRow {
        snap_octets,
        ip_octets,
        rate_bps: taken.or(model.map(|model| model.rate_bps)),
        packets_per_second: measured
            .and_then(|measured| measured.packets_per_second)
            .or(model.map(|model| model.packets_per_second)),
        verdict,
        measured,
        unknown,
        model,
        buffer_octets: document.near.inventory.processor.cache_octets.map(CaptureModel::buffer_octets),
    }
}

/// Time between packets of trains that are as close as they leave: what the path makes of it is the
/// expectation.
fn mean_gap(trains_ns: &[Vec<i64>]) -> Duration {
    let (mut span, mut gaps) = (0i64, 0i64);
    for stamps in trains_ns {
        if let (Some(first), Some(last)) = (stamps.first(), stamps.last()) {
            span = span.saturating_add(last.saturating_sub(*first));
            gaps = gaps.saturating_add(i64::try_from(stamps.len()).unwrap_or(i64::MAX).saturating_sub(1));
        }
    }
    let mean = span.checked_div(gaps).and_then(|mean| u64::try_from(mean).ok());
    Duration::from_nanos(mean.unwrap_or(0))
}

/// How the packets of these trains reached the program that stamped them.
fn batches(trains_ns: &[Vec<i64>]) -> Option<Coalescing> {
    Coalescing::of(trains_ns, mean_gap(trains_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_gap_is_of_all_trains() {
        assert_eq!(mean_gap(&[vec![0, 100, 200], vec![1_000, 1_400]]), Duration::from_nanos(200));
        assert_eq!(mean_gap(&[]), Duration::ZERO);
        assert_eq!(mean_gap(&[vec![7]]), Duration::ZERO);
        assert_eq!(mean_gap(&[vec![9, 3]]), Duration::ZERO);
        assert_eq!(batches(&[vec![1, 2, 3]]), None);
    }

    #[test]
    fn a_rate_of_nothing_is_refused() {
        assert_eq!(rate("1 Gbit/s"), Ok(BitRate::from_gbps(1)));
        assert!(rate("0 bit/s").is_err() && rate("fast").is_err());
    }
}
