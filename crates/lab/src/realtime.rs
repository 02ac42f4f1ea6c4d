//! The real-time path: two hosts, their devices, and the thread between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use nix::sched::sched_yield;
use scenario::{Scenario, Source, Way};
use sim::Path;

use crate::device::{Device, dropped_by_kernel};
use crate::error::LabError;
use crate::honesty::Honesty;
use crate::host::LabHost;
use crate::namespace::{LabId, Namespace, clean_leftovers};
use crate::placement::Placement;
use crate::plan::{AddressPlan, Side};
use crate::player::Player;
use crate::tally::Tally;

/// How a path is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StartOptions {
    /// Seed of everything random; `None`: the scenario's own.
    pub seed: Option<u64>,
    /// Processor that the playing thread keeps to, and that programs started through [`LabHost`] keep off; `None`, or one that this
    /// process may not use: the last one it may. With a single processor nothing is kept anywhere, and nothing will be exact.
    pub cpu: Option<usize>,
    /// Whether the hosts get names under `/run/netns`, for `ip netns exec` and for people. Needs root of the machine; anonymous
    /// namespaces leave nothing behind however the process ends, named ones until the next start.
    pub named: bool,
}

/// A scenario being played against the real clock, between two hosts with kernels of their own. Dropping it ends the path and
/// removes everything.
///
/// Played are hops, queues, hidden devices, buckets, losses, jitter, reordering, schedules, open-loop cross traffic, routers and the
/// rates of the hosts' interfaces. Path time begins at the scenario's `warm_up`, so that queues are in their steady state and
/// schedules count from the scenario's begin. What the scenario says about its hosts' clocks, costs, stalls and coalescing is *not*
/// played: these hosts are real. Routers do not fragment: an IPv4 packet that is too big is answered as if it said "don't fragment".
#[derive(Debug)]
pub struct RealTimePath {
    hosts: [LabHost; 2],
    plan: AddressPlan,
    control: Arc<Control>,
    reports: Mutex<Receiver<Tally>>,
    thread: Option<JoinHandle<Player>>,
    started: Instant,
}

/// What the playing thread is told.
#[derive(Debug, Default)]
struct Control {
    stop: AtomicBool,
    report: AtomicBool,
}

impl RealTimePath {
    /// Builds the hosts, their devices and the path, plays the warm-up and starts the clock.
    pub fn start(scenario: &Scenario, options: StartOptions) -> Result<Self, LabError> {
        if scenario
            .cross
            .iter()
            .any(|cross| matches!(cross.source, Source::Elastic(_)))
        {
            return Err(LabError::Elastic);
        }
        let plan = AddressPlan::of(scenario)?;
        crate::privilege::available()?;
        if options.named {
            for name in clean_leftovers() {
                tracing::info!(name, "removed a namespace that a dead process left");
            }
        }
        let placement = Placement::choose(options.cpu);
        let lab = LabId::next();
        let host = |side: Side| -> Result<LabHost, LabError> {
            let mtu = scenario.hops(side.way()).first().map_or(1500, |hop| hop.mtu);
            let namespace = Namespace::create(lab, side, options.named)?;
            Ok(LabHost::new(side, plan.host(side), mtu, namespace, placement.as_ref()))
        };
        let hosts = [host(Side::Sender)?, host(Side::Receiver)?];
        let devices = [Device::create(&hosts[0])?, Device::create(&hosts[1])?];
        let control = Arc::new(Control::default());
        let (tell, reports) = mpsc::sync_channel(1);
        let (ready, is_ready) = mpsc::sync_channel(0);
        let thread = {
            let (scenario, plan, control) = (scenario.clone(), plan.clone(), Arc::clone(&control));
            thread::Builder::new()
                .name("narrows-path".to_owned())
                .spawn(move || {
                    if let Some(placement) = placement {
                        placement.keep_path_here();
                    }
                    let player = prepare(&scenario, plan, devices, options.seed);
                    // The receiver waits below.
                    let _ = ready.send(());
                    play(player, &control, &tell, placement.is_some())
                })
                .map_err(|source| LabError::kernel("starting the thread that plays the path", source))?
        };
        let mut path = Self {
            hosts,
            plan,
            control,
            reports: Mutex::new(reports),
            thread: Some(thread),
            started: now(),
        };
        is_ready.recv().map_err(|_| LabError::PlayerDied)?;
        path.started = now();
        Ok(path)
    }

    /// One of the two hosts.
    pub fn host(&self, side: Side) -> &LabHost {
        &self.hosts[side.index()]
    }

    /// Who has which address.
    pub fn addresses(&self) -> &AddressPlan {
        &self.plan
    }

    /// How the run went so far.
    pub fn honesty(&self) -> Result<Honesty, LabError> {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        self.control.report.store(true, Ordering::Release);
        let tally = reports.recv().map_err(|_| LabError::PlayerDied)?;
        self.judge(&tally)
    }

    /// Ends the path and says how the run went.
    pub fn stop(mut self) -> Result<Honesty, LabError> {
        // The counters of the devices go with the devices, and those with the player.
        let player = self.end().ok_or(LabError::PlayerDied)?;
        self.judge(player.tally())
    }

    fn judge(&self, tally: &Tally) -> Result<Honesty, LabError> {
        let kernel_drops = [dropped_by_kernel(&self.hosts[0])?, dropped_by_kernel(&self.hosts[1])?];
        Ok(tally.honesty(self.started.elapsed(), kernel_drops))
    }

    /// Stops the thread; `None` if it had died, or was stopped before.
    fn end(&mut self) -> Option<Player> {
        self.control.stop.store(true, Ordering::Release);
        self.thread.take()?.join().ok()
    }
}

impl Drop for RealTimePath {
    fn drop(&mut self) {
        self.end();
    }
}

/// The path behind its warm-up, ready to play.
fn prepare(scenario: &Scenario, plan: AddressPlan, devices: [Device; 2], seed: Option<u64>) -> Player {
    let mut path = Path::new(scenario, seed.unwrap_or(scenario.seed));
    let warm_up = u64::try_from(scenario.warm_up.as_nanos()).unwrap_or(u64::MAX);
    // Nothing but cross traffic is on the path, and cross traffic has no outputs.
    path.advance(warm_up, &mut Vec::new());
    let both = [Way::Forward, Way::Reverse];
    let limits = both.map(|way| {
        scenario
            .hops(way)
            .iter()
            .map(|hop| hop.router.icmp_max_octets)
            .collect()
    });
    let hops = both.iter().flat_map(|&way| scenario.hops(way));
    let mtu = hops.map(|hop| hop.mtu).max().unwrap_or(1500);
    Player::new(path, plan, devices, mtu, limits)
}

fn play(mut player: Player, control: &Control, reports: &SyncSender<Tally>, alone: bool) -> Player {
    while !control.stop.load(Ordering::Acquire) {
        let busy = player.turn();
        if !busy && !alone {
            // Hosts and path share one processor: let the hosts run.
            let _ = sched_yield();
        }
        if control.report.swap(false, Ordering::AcqRel) {
            // Full or closed: nobody waits for this one.
            let _ = reports.try_send(player.tally().clone());
        }
    }
    player
}

#[expect(clippy::disallowed_methods, reason = "the lab is a world: it may read the clock")]
fn now() -> Instant {
    Instant::now()
}
