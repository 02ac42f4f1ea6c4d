//! What the remote host says of itself, and how packets reach either program.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_diagnose::host::Coalescing;
use narrows_net::client::SocketWorld;
use narrows_probe::probes::{Train, TrainId};
use narrows_probe::{Event, HostFacts, Probe, StampSource, World};
use narrows_report::HostEnvironment;
use narrows_units::Direction;

use crate::connect::{self, Peer};
use crate::exit::Failure;
use crate::progress::Progress;

/// The remote host.
pub(super) struct PeerKind {
    pub(super) address: SocketAddr,
    /// This host, towards it.
    pub(super) near: HostFacts,
    pub(super) facts: HostFacts,
    /// How it says that it is set up; `None` if it does not tell.
    pub(super) settings: Option<HostEnvironment>,
    pub(super) path_mtu: u16,
    /// How our packets reach its program.
    pub(super) seen_there: Option<Coalescing>,
    /// How its packets reach ours.
    pub(super) seen_here: Option<Coalescing>,
    /// What went wrong after the facts were known.
    pub(super) failure: Option<Failure>,
}

/// Three trains each way: the least that tells batches from queues.
const TRAINS: u32 = 3;
const PACKETS: usize = 120;
/// Six trains are a megabyte then, which any server takes without a slot for loads.
const MOST_OCTETS: u16 = 1500;

/// Asks, sends trains there, and has trains sent here. Only what goes wrong before the facts are
/// known is an error.
pub(super) fn ask(peer: &Peer, stop: &Arc<AtomicBool>, progress: &Progress) -> Result<PeerKind, Failure> {
    progress.say(format!("{} and the forward direction", peer.name));
    let mut world = peer.connect(Direction::Forward, stop, progress)?;
    let settings = world.ask_remote_host();
    let (near, facts) = world.hosts();
    let mut remote = PeerKind {
        address: world.peer(),
        near: near.clone(),
        facts: facts.clone(),
        settings: None,
        path_mtu: world.facts().path_mtu,
        seen_there: None,
        seen_here: None,
        failure: None,
    };
    match settings {
        Ok(settings) => remote.settings = settings,
        Err(error) => remote.failure = Some(connect::failure(&error)),
    }
    if remote.failure.is_some() {
        return Ok(remote);
    }
    match trains(&mut world, stop) {
        Ok(seen) => remote.seen_there = seen,
        Err(failure) => remote.failure = Some(failure),
    }
    drop(world);
    if remote.failure.is_none() && !stop.load(Ordering::Relaxed) {
        progress.say(format!("the reverse direction, from {}", peer.name));
        let seen = peer.connect(Direction::Reverse, stop, progress).and_then(|mut world| trains(&mut world, stop));
        match seen {
            Ok(seen) => remote.seen_here = seen,
            Err(failure) => remote.failure = Some(failure),
        }
    }
    Ok(remote)
}

/// Receive stamps of back-to-back trains. `None` if packets were lost, the user stopped, or stamps
/// are the program's own: those come in batches wherever the program is slower than the path.
fn trains(world: &mut SocketWorld, stop: &AtomicBool) -> Result<Option<Coalescing>, Failure> {
    let octets = world.facts().path_mtu.min(MOST_OCTETS);
    let mut all = Vec::new();
    for id in 0..TRAINS {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let train = Train::uniform(TrainId(id + 1), PACKETS, octets, Duration::ZERO);
        let event = world.send(Probe::Train(train)).map_err(|error| connect::failure(&error))?;
        let Event::Train(report) = event else { return Ok(None) };
        if report.arrived_by == StampSource::User {
            return Ok(None);
        }
        all.push(report.received().map(|(_, at)| at.nanos()).collect());
    }
    Ok(super::batches(&all))
}
