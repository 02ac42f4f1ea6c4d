//! The path that a run takes place on: the scenario as a lab, with the cross traffic that real
//! hosts must carry.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use narrows_evaluate::RunFault;
use narrows_evaluate::external_tool::{Host, Hosts};
use narrows_lab::{HopDescription, Lab, LabError, LabOptions, Node, TimingReport};
use narrows_scenario::{Counted, Link, PathDirection, Scenario};
use narrows_units::{BitRate, Framing, Layer};

use super::broke;
use super::cross::CrossTraffic;

/// A path between two hosts, in use.
pub(super) struct HostPair {
    lab: Lab,
    cross: CrossTraffic,
    clock: PathClock,
}

/// Reads the path's own time, by which its schedules and its cross traffic go. Copies read the same
/// clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathClock {
    /// It showed `showed` at this time.
    read: Instant,
    showed: Duration,
}

impl PathClock {
    /// Since the scenario's begin.
    pub(super) fn now(self) -> Duration {
        self.showed + self.read.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "the path's time goes by the real clock")]
    fn of(lab: &Lab) -> Self {
        Self { read: Instant::now(), showed: lab.path_time() }
    }
}

impl HostPair {
    /// Brings up the scenario's path with this seed, and the cross traffic that real hosts carry;
    /// returns when that is warm.
    pub(super) fn make(scenario: &Scenario, seed: u64) -> Result<Self, RunFault> {
        let options = LabOptions {
            seed: Some(seed),
            // The truth is known from `as_built`.
            uncalibrated: true,
            ..LabOptions::default()
        };
        let lab = Lab::up(scenario, options).map_err(|error| fault(&error))?;
        let clock = PathClock::of(&lab);
        let cross = CrossTraffic::start(&lab, seed, clock)?;
        Ok(Self { lab, cross, clock })
    }

    /// The host at one end.
    pub(super) fn node(&self, end: Host) -> &Node {
        match end {
            Host::Sender => self.lab.sender(),
            Host::Receiver => self.lab.receiver(),
        }
    }

    /// Its address.
    pub(super) fn address(&self, end: Host) -> Result<std::net::IpAddr, RunFault> {
        let addresses = self.node(end).addresses();
        addresses.map(|addresses| addresses.ipv4.into()).ok_or_else(|| broke("a host has no address"))
    }

    /// The path's clock.
    pub(super) fn clock(&self) -> PathClock {
        self.clock
    }

    /// The cross traffic that hosts carried over the way from sender to receiver by now, if they
    /// carry all of it.
    pub(super) fn counted(&self) -> Option<Counted> {
        self.cross.counted(self.lab.scenario(), PathDirection::Forward)
    }

    /// Begins a new account of how the path keeps time: what came before is not the run's.
    pub(super) fn begin(&self) -> Result<(), RunFault> {
        self.lab.take_timing_report().map(|_| ()).map_err(|error| fault(&error))
    }

    /// Ends cross traffic and path, and says why what was measured since [`HostPair::begin`] does
    /// not count, if so.
    pub(super) fn end(self) -> Result<Option<String>, RunFault> {
        let timing_report = self.lab.take_timing_report().map_err(|error| fault(&error))?;
        let complaint = self.cross.stop();
        self.lab.down().map_err(|error| fault(&error))?;
        Ok((!timing_report.timing_valid()).then(|| reported(&timing_report)).or(complaint))
    }
}

/// The scenario as this machine plays it: hops that the kernel plays have the rate that a
/// saturating run finds, not the one that was asked of them.
pub(super) fn as_built(scenario: &Scenario) -> Result<Scenario, RunFault> {
    let exact = |way| scenario.hops(way).iter().all(|hop| hop.link == Link::RealTime);
    if exact(PathDirection::Forward) && exact(PathDirection::Reverse) {
        return Ok(scenario.clone());
    }
    let lab = Lab::up(scenario, LabOptions::default()).map_err(|error| fault(&error))?;
    let hops = lab.description().hops;
    lab.down().map_err(|error| fault(&error))?;
    Ok(with_calibrated(scenario, &hops))
}

fn with_calibrated(scenario: &Scenario, described: &[HopDescription]) -> Scenario {
    let mut built = scenario.clone();
    for found in described {
        let hops = if found.direction == "forward" { &mut built.forward } else { &mut built.reverse };
        let (Some(hop), Some(bps)) = (hops.get_mut(found.index), found.calibrated_capacity_bps) else {
            continue;
        };
        let nominal = wire_rate(hop.framing, BitRate::from_bps(bps), found.ip_octets);
        hop.rate = nominal.unwrap_or(hop.rate);
    }
    built
}

/// The nominal rate of a link that carries this much at the IP layer.
fn wire_rate(framing: Framing, rate: BitRate, ip_octets: u16) -> Option<BitRate> {
    framing.convert(rate, Layer::Ip, Layer::Wire, u32::from(ip_octets), false)
}

/// What a lab's error means to the row: whether it is of use to try again.
pub(super) fn fault(error: &LabError) -> RunFault {
    match error {
        LabError::Kernel { .. } | LabError::PlayerDied => broke(error),
        error => RunFault::NotOffered { why: error.to_string() },
    }
}

/// A path's report of a run in which it kept no time, on one line.
fn reported(timing_report: &TimingReport) -> String {
    timing_report.to_string().replace('\n', "; ")
}

/// The hosts for programs that are not ours.
pub(super) struct Ends<'a>(pub(super) &'a HostPair);

impl Hosts for Ends<'_> {
    fn spawn_thread(&self, host: Host, work: Box<dyn FnOnce() + Send>) -> Result<JoinHandle<()>, String> {
        self.0.node(host).spawn_thread(work).map_err(|error| error.to_string())
    }
}
