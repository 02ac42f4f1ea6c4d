//! The real-time path: two hosts, their devices, and the thread between them.

use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use narrows_scenario::{Host, PathDirection, Scenario, Source};
use narrows_sim::Path;
use narrows_units::nanos;

use crate::device::{Device, dropped_by_kernel};
use crate::error::LabError;
use crate::host::LabHost;
use crate::namespace::{Namespace, PathNumber, clean_leftovers};
use crate::placement::Placement;
use crate::plan::{AddressPlan, Side};
use crate::player::{Player, Routers, Track};
use crate::playing::{Begin, Playing, RealClock, now};
use crate::timing_report::TimingReport;

/// How a path is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StartOptions {
    /// Seed of everything random; `None`: the scenario's own.
    pub seed: Option<u64>,
    /// Processor that the playing thread keeps to, and that programs started through [`LabHost`]
    /// keep off; `None`, or one that this process may not use: the last one it may. With a single
    /// processor nothing is kept anywhere, and nothing will be exact.
    pub cpu: Option<usize>,
    /// Whether the hosts get names under `/run/netns`, for `ip netns exec` and for people. Needs
    /// root of the machine; anonymous namespaces leave nothing behind however the process ends,
    /// named ones until the next start.
    pub named: bool,
}

/// A scenario being played against the real clock, between two hosts with kernels of their own.
/// Dropping it ends the path and removes everything.
///
/// Played are hops, queues, hidden devices, buckets, losses, jitter, reordering, schedules,
/// open-loop cross traffic, routers and the rates of the hosts' interfaces. Path time begins at the
/// scenario's `warm_up`, so that queues are in their steady state and schedules count from the
/// scenario's begin. What the scenario says about its hosts' clocks, costs, stalls and coalescing
/// is *not* played ([`not_played`] lists it): these hosts are real. Routers do not fragment: an
/// IPv4 packet that is too big is answered as if it said "don't fragment".
#[derive(Debug)]
pub struct RealTimePath {
    hosts: [LabHost; 2],
    plan: AddressPlan,
    started: Instant,
    begin: Mutex<Begin>,
    playing: Playing<Device, Routers>,
}

/// What of this scenario a lab does not play, in words for the user: its hosts are real, and so are
/// their clocks, costs and buffers.
pub fn not_played(scenario: &Scenario) -> Vec<String> {
    let mut left_out = Vec::new();
    for (side, host) in [(Side::Sender, &scenario.sender), (Side::Receiver, &scenario.receiver)] {
        let ideal = Host::default();
        let parts = [
            ("clock", host.clock == ideal.clock),
            ("cost of sending", host.send_cost == ideal.send_cost),
            ("cost of receiving", host.receive_cost == ideal.receive_cost),
            ("cost of copying", host.copy_rate == ideal.copy_rate),
            ("cost of interrupts", host.interrupt_cost == ideal.interrupt_cost),
            ("pacing jitter", host.pacing_jitter == ideal.pacing_jitter),
            ("stalls", host.stalls == ideal.stalls),
            ("coalescing", host.coalescing == ideal.coalescing),
            ("kernel's answers", host.answers == ideal.answers),
            ("TCP receive buffer", host.tcp_receive_octets == ideal.tcp_receive_octets),
            ("TCP programs and send buffer", host.tcp == ideal.tcp),
        ];
        let named = parts.iter().filter(|(_, same)| !same).map(|(part, _)| format!("{} of the {}", part, side.name()));
        left_out.extend(named);
    }
    left_out
}

impl RealTimePath {
    /// Builds the hosts, their devices and the path, plays the warm-up and starts the clock.
    pub fn start(scenario: &Scenario, options: StartOptions) -> Result<Self, LabError> {
        if scenario.cross.iter().any(|cross| matches!(cross.source, Source::Elastic(_))) {
            return Err(LabError::Elastic);
        }
        let plan = AddressPlan::of(scenario)?;
        let plan = if kernel_has_ipv6() { plan } else { plan.without_ipv6() };
        crate::privilege::available()?;
        for name in clean_leftovers() {
            tracing::info!(name, "removed a namespace that a dead process left");
        }
        let placement = Placement::choose(options.cpu);
        let number = PathNumber::next();
        let host = |side: Side| -> Result<LabHost, LabError> {
            let mtu = scenario.hops(side.way()).first().map_or(1500, |hop| hop.mtu);
            let name = options.named.then(|| number.name(side));
            let namespace = Namespace::create(side.name(), name)?;
            Ok(LabHost::new(side, plan.host(side), mtu, namespace, placement.as_ref()))
        };
        let hosts = [host(Side::Sender)?, host(Side::Receiver)?];
        let devices = [Device::create(&hosts[0])?, Device::create(&hosts[1])?];
        let (tell, reported) = mpsc::sync_channel(1);
        let playing = {
            let (scenario, plan) = (scenario.clone(), plan.clone());
            Playing::start(placement.as_ref(), None, move || {
                let (player, started) = prepare(&scenario, plan, devices, options.seed);
                // The receiver lives until this thread plays.
                let _ = tell.send(started);
                player
            })?
        };
        Ok(Self {
            hosts,
            plan,
            started: reported.recv().map_err(|_| LabError::PlayerDied)?,
            begin: Mutex::new(Begin { at: now(), kernel_drops: [0, 0] }),
            playing,
        })
    }

    /// One of the two hosts.
    pub fn host(&self, side: Side) -> &LabHost {
        &self.hosts[side.index()]
    }

    /// Who has which address.
    pub fn addresses(&self) -> &AddressPlan {
        &self.plan
    }

    /// When the path's clock stood at the scenario's `warm_up`. What crossed the path so long after
    /// it met the cross traffic that a [`Path`] of the same scenario and seed has at `warm_up` plus
    /// that time.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// How the run went so far: since the start, or since the last
    /// [`RealTimePath::take_timing_report`].
    pub fn timing_report(&self) -> Result<TimingReport, LabError> {
        self.report(false)
    }

    /// The same, and begins a new report: for several measurements over one path, each with its
    /// own.
    pub fn take_timing_report(&self) -> Result<TimingReport, LabError> {
        self.report(true)
    }

    /// Ends the path and says how the run went, since where [`RealTimePath::timing_report`] counts
    /// from.
    pub fn stop(mut self) -> Result<TimingReport, LabError> {
        // The counters of the devices go with the devices, and those with the player.
        let player = self.playing.end().ok_or(LabError::PlayerDied)?;
        let kernel_drops = self.kernel_drops()?;
        let begin = self.begin.get_mut().unwrap_or_else(PoisonError::into_inner);
        let track = player.tracks.first().ok_or(LabError::PlayerDied)?;
        Ok(begin.judge(&track.tally, kernel_drops))
    }

    fn report(&self, afresh: bool) -> Result<TimingReport, LabError> {
        let mut begin = self.begin.lock().unwrap_or_else(PoisonError::into_inner);
        let report = self.playing.report(0, afresh)?;
        let kernel_drops = self.kernel_drops()?;
        let timing_report = begin.judge(&report.tally, kernel_drops);
        if afresh {
            *begin = Begin { at: now(), kernel_drops };
        }
        Ok(timing_report)
    }

    fn kernel_drops(&self) -> Result<[u64; 2], LabError> {
        Ok([dropped_by_kernel(&self.hosts[0])?, dropped_by_kernel(&self.hosts[1])?])
    }
}

/// The path behind its warm-up, ready to play, and when its clock began to run.
fn prepare(
    scenario: &Scenario,
    plan: AddressPlan,
    devices: [Device; 2],
    seed: Option<u64>,
) -> (Player<Device, Routers, RealClock>, Instant) {
    let mut path = Path::new(scenario, seed.unwrap_or(scenario.seed));
    let warm_up = nanos(scenario.warm_up);
    // Nothing but cross traffic is on the path, and cross traffic has no outputs.
    path.advance(warm_up, &mut Vec::new());
    let both = [PathDirection::Forward, PathDirection::Reverse];
    let limits = both.map(|way| scenario.hops(way).iter().map(|hop| hop.router.icmp_max_octets).collect());
    let hops = both.iter().flat_map(|&way| scenario.hops(way));
    let mtu = hops.map(|hop| hop.mtu).max().unwrap_or(1500);
    // An ICMP answer may be up to 1280 octets long on a path whose hosts send smaller packets.
    let buffer_octets = usize::from(mtu).max(1_500);
    let clock = RealClock::starting_at(path.now());
    let started = clock.started();
    let track = Track::new(path, devices, Routers::new(plan, limits));
    (Player::new(vec![track], Vec::new(), buffer_octets, clock), started)
}

/// A kernel that was started without IPv6 has no such file; namespaces of their own do not depend
/// on anything else.
pub(crate) fn kernel_has_ipv6() -> bool {
    std::path::Path::new("/proc/self/net/if_inet6").exists()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narrows_scenario::Hop;
    use narrows_units::BitRate;

    use super::*;

    #[test]
    fn what_is_not_played_is_said() {
        let scenario = Scenario::new("lies").hop(Hop::rate(BitRate::from_mbps(1)));
        assert_eq!(not_played(&scenario), Vec::<String>::new());
        let mut slow = Host {
            send_cost: Duration::from_micros(2),
            // Played by the path.
            interface_rate: Some(BitRate::from_gbps(1)),
            ..Host::default()
        };
        slow.clock.skew_ppm = 5.0;
        assert_eq!(not_played(&scenario.sender(slow)), ["clock of the sender", "cost of sending of the sender"]);
    }
}
