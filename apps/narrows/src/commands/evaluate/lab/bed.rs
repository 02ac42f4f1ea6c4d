//! The path that a run takes place on.

use std::sync::Arc;
use std::time::Duration;

use evaluate::RunFault;
use evaluate::rival::Host;
use lab::{Honesty, LabError, LabHost, RealTimePath, Side, StartOptions};
use scenario::Scenario;

use super::broke;

/// A path with two hosts, and what it says of itself.
pub(super) trait Bed {
    /// The host at one end.
    fn host(&self, end: Host) -> &LabHost;

    /// The time on the path's own clock: what its schedules and cross traffic go by.
    fn path_time(&self) -> PathClock;

    /// How well it kept to its plan since it was last asked.
    fn take_honesty(&self) -> Result<Honesty, RunFault>;

    /// Octets of each packet in the hosts' interface counters that are not IP.
    fn link_header_octets(&self) -> u64;

    /// Ends it, and removes everything.
    fn stop(self: Box<Self>) -> Result<(), RunFault>;
}

/// Reads the path's own time. Clones read the same clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathClock {
    started: std::time::Instant,
    at_start: Duration,
}

impl PathClock {
    /// Since the scenario's begin.
    pub(super) fn now(self) -> Duration {
        self.at_start + self.started.elapsed()
    }
}

/// Brings up the scenario's path with this seed.
pub(super) fn make(scenario: &Scenario, seed: u64) -> Result<Box<dyn Bed>, RunFault> {
    let options = StartOptions {
        seed: Some(seed),
        ..StartOptions::default()
    };
    let path = RealTimePath::start(scenario, options).map_err(|error| fault(&error))?;
    Ok(Box::new(Virtual {
        path,
        warm_up: scenario.warm_up,
    }))
}

/// Two hosts whose devices the scenario's whole path joins; its routers are virtual.
struct Virtual {
    path: RealTimePath,
    warm_up: Duration,
}

impl Bed for Virtual {
    fn host(&self, end: Host) -> &LabHost {
        self.path.host(match end {
            Host::Sender => Side::Sender,
            Host::Receiver => Side::Receiver,
        })
    }

    fn path_time(&self) -> PathClock {
        PathClock {
            started: self.path.started(),
            at_start: self.warm_up,
        }
    }

    fn take_honesty(&self) -> Result<Honesty, RunFault> {
        self.path.take_honesty().map_err(|error| fault(&error))
    }

    fn link_header_octets(&self) -> u64 {
        // TUN devices carry IP packets.
        0
    }

    fn stop(self: Box<Self>) -> Result<(), RunFault> {
        self.path.stop().map(|_| ()).map_err(|error| fault(&error))
    }
}

/// What a lab's error means to the row: whether it is of use to try again.
pub(super) fn fault(error: &LabError) -> RunFault {
    match error {
        LabError::Unavailable(_) | LabError::TooManyHops { .. } | LabError::Elastic => {
            RunFault::NotOffered { why: error.to_string() }
        }
        error => broke(error),
    }
}

/// The hosts for programs that are not ours.
pub(super) struct Ends {
    pub(super) sender: LabHost,
    pub(super) receiver: LabHost,
}

impl evaluate::rival::Hosts for Ends {
    fn spawn_thread(&self, host: Host, work: Box<dyn FnOnce() + Send>) -> Result<std::thread::JoinHandle<()>, String> {
        let host = match host {
            Host::Sender => &self.sender,
            Host::Receiver => &self.receiver,
        };
        host.spawn_thread(work).map_err(|error| error.to_string())
    }
}

impl Ends {
    pub(super) fn of(bed: &dyn Bed) -> Arc<Self> {
        Arc::new(Self {
            sender: bed.host(Host::Sender).clone(),
            receiver: bed.host(Host::Receiver).clone(),
        })
    }
}
