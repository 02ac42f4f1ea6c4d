//! The estimators' world over a simulated path.
//!
//! Time passes only while probes are carried out or waited for; it is accounted as on a real path:
//! a peer is told to begin, and tells what it saw, over an idle control channel (base delay of a
//! 100-octet packet each way), and packets that do not come are waited for ([`SimWorld::timeout`]).
//!
//! Stamps are those of the scenario's host models: departures when the send call is made, before
//! the host's interface; arrivals when the receive call returns ([`narrows_scenario::Host`]). What
//! passes the host's own queues is not modelled, save a socket buffer that overflows and a socket
//! that blocks at its interface under a load.

mod capture;
mod connections;
mod engine;
mod face;
mod load;
mod payload;
mod segments;
mod train;
mod transfer;

use std::convert::Infallible;
use std::time::Duration;

use narrows_host_profile::Quantiles;
use narrows_probe::{Answering, Event, HostFacts, PathFacts, Probe, Refusal, StampSource, World};
use narrows_scenario::{Counted, Crossed, Host, PathDirection, Scenario};
use narrows_units::{BitRate, Sender, Stamp, nanos};

use crate::host::{time, usual_receive_call, usual_send_call};
use engine::Engine;
use load::RunningLoad;
use transfer::RunningTransfer;

/// One direction of a simulated path, as estimators see it. The estimator runs on the scenario's
/// sender host in both directions.
///
/// TCP transfers are carried out by simulated endpoints that do as Linux does, with Reno or CUBIC;
/// elastic cross traffic is made of the same.
///
/// While somebody listens ([`Probe::Capture`]) a transfer passes, as the scenario describes it
/// ([`narrows_scenario::Passing`]); open-loop cross traffic has no connections that a passive
/// method could follow, and elastic cross traffic no acknowledgements on the path.
#[derive(Debug)]
pub struct SimWorld {
    scenario: Scenario,
    way: PathDirection,
    engine: Engine,
    facts: PathFacts,
    /// A load whose last segment said that it continues.
    load: Option<RunningLoad>,
    /// A transfer whose last segment said that it continues.
    transfer: Option<RunningTransfer>,
    /// Cross traffic is counted since then.
    counts_from: Option<u64>,
}

/// IP octets of a control message.
const CONTROL_OCTETS: u16 = 100;
/// Smallest probe: IPv4 and UDP header.
const MIN_PROBE_OCTETS: u16 = 28;

impl SimWorld {
    /// A fresh world: cross traffic has run for the scenario's warm-up.
    pub fn new(scenario: &Scenario, way: PathDirection, seed: u64) -> Self {
        let mut engine = Engine::new(scenario, seed);
        engine.idle_until(nanos(scenario.warm_up));
        Self {
            facts: path_facts(scenario, way),
            scenario: scenario.clone(),
            way,
            engine,
            load: None,
            transfer: None,
            counts_from: None,
        }
    }

    /// What crosses each hop of a way from one time of the scenario to another in the same world if
    /// nobody probes it: the same packets of open-loop traffic, and the elastic traffic as it goes
    /// when nothing makes it yield.
    pub fn undisturbed(
        scenario: &Scenario,
        way: PathDirection,
        seed: u64,
        from: Duration,
        to: Duration,
    ) -> Vec<Crossed> {
        let whole = Engine::undisturbed(scenario, way, seed, (nanos(from), nanos(to)), nanos(to.saturating_sub(from)));
        whole.into_iter().map(|intervals| intervals.into_iter().next().unwrap_or_default()).collect()
    }

    /// The same by intervals of `every`. Intervals that are missing at the end of a hop's list were
    /// empty.
    pub fn undisturbed_by(
        scenario: &Scenario,
        way: PathDirection,
        seed: u64,
        (from, to): (Duration, Duration),
        every: Duration,
    ) -> Vec<Vec<Crossed>> {
        Engine::undisturbed(scenario, way, seed, (nanos(from), nanos(to)), nanos(every))
    }

    /// Counts, from now on, the cross traffic on each hop of this world's direction: probes and
    /// transfers of methods are not in it.
    pub fn count_cross_traffic(&mut self) {
        self.engine.count(&self.scenario, self.way);
        self.counts_from = Some(self.engine.now());
    }

    /// What was counted by now; `None` if nothing is counted.
    pub fn counted(&self) -> Option<Counted> {
        let from = Duration::from_nanos(self.counts_from?);
        Some(Counted::new(from, self.engine.path().crossed(self.way)))
    }

    /// The time since the scenario's begin, in nanoseconds.
    pub fn true_time(&self) -> u64 {
        self.engine.now()
    }

    /// How long the world waits for packets that do not come: a round trip and 300 ms (ours; one
    /// and a half times the least retransmission timeout of Linux) from the last departure or the
    /// last arrival, whichever is later.
    pub fn timeout(&self) -> Duration {
        self.facts.rtt + Duration::from_millis(300)
    }

    /// One-way delay of a control message.
    fn control_delay(&self, way: PathDirection) -> u64 {
        nanos(self.scenario.truth(way).base_delay(CONTROL_OCTETS))
    }

    /// The estimator's host sends the probes.
    fn sends_here(&self) -> bool {
        self.way == PathDirection::Forward
    }

    fn size_refusal(&self, ip_octets: impl Iterator<Item = u16> + Clone) -> Option<Refusal> {
        let max_ip_octets = self.scenario.hops(self.way).first().map_or(0, |hop| hop.mtu);
        if ip_octets.clone().any(|octets| octets > max_ip_octets) {
            Some(Refusal::TooLarge { max_ip_octets })
        } else if ip_octets.min().is_some_and(|octets| octets < MIN_PROBE_OCTETS) {
            Some(Refusal::TooSmall { min_ip_octets: MIN_PROBE_OCTETS })
        } else {
            None
        }
    }
}

impl World for SimWorld {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        Stamp::from_nanos(self.engine.reading(PathDirection::Forward, self.engine.now()))
    }

    fn facts(&self) -> PathFacts {
        self.facts.clone()
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Infallible> {
        if !matches!(probe, Probe::Load(_)) {
            self.load = None;
        }
        if !matches!(probe, Probe::Transfer(_)) {
            self.end_transfer();
        }
        Ok(match probe {
            Probe::Train(train) => self.send_train(&train),
            Probe::Load(load) => self.send_load(&load),
            Probe::Transfer(transfer) => self.send_transfer(&transfer),
            Probe::Capture(capture) => self.listen(&capture),
        })
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        self.load = None;
        self.end_transfer();
        let at = self.engine.time_of_reading(PathDirection::Forward, until.nanos());
        self.engine.idle_until(at);
        Ok(())
    }
}

fn path_facts(scenario: &Scenario, way: PathDirection) -> PathFacts {
    let (sender, receiver) = match way {
        PathDirection::Forward => (&scenario.sender, &scenario.receiver),
        PathDirection::Reverse => (&scenario.receiver, &scenario.sender),
    };
    let truth = scenario.truth(way);
    let path_mtu = truth.path_mtu();
    let calls = |host: &Host| {
        usual_send_call(host, CONTROL_OCTETS) + usual_receive_call(host, CONTROL_OCTETS) + host.interrupt_cost
    };
    let costs = calls(sender) + calls(receiver);
    PathFacts {
        path_mtu,
        ipv6: false,
        rtt: truth.base_rtt(CONTROL_OCTETS, CONTROL_OCTETS) + costs,
        sender: host_facts(sender, path_mtu),
        receiver: host_facts(receiver, path_mtu),
        rate_cap: None,
        octet_budget: None,
        answering: Answering::Server,
        answer_limit: None,
    }
}

/// What a host would find out about itself.
fn host_facts(host: &Host, path_mtu: u16) -> HostFacts {
    let (send_cost, receive_cost) = (usual_send_call(host, path_mtu), usual_receive_call(host, path_mtu));
    HostFacts {
        send_cost,
        receive_cost,
        clock_resolution: host.clock.granularity,
        // Rounded readings of a steady clock spread evenly over one tick: their 99th percentile is
        // half a tick from the median.
        stamp_error: Duration::from_nanos(nanos(host.clock.granularity) / 2).max(stamp_noise(host)),
        stamp_source: StampSource::Simulated,
        min_gap: match host.profile {
            // As real hosts have it.
            Some(_) => (2 * send_cost.max(receive_cost)).max(SMALLEST_GAP),
            None => send_cost.max(host.pacing_jitter),
        },
        max_send_rate: BitRate::over(u64::from(path_mtu), send_cost),
        interface_rate: host.interface_rate,
        virtual_interface: host.profile.as_ref().is_some_and(|profile| profile.virtual_interface),
    }
}

/// The smallest gap that a spinning program of a real host keeps.
const SMALLEST_GAP: Duration = Duration::from_micros(2);

/// As a host that plays a profile would measure it: from a program's stamp of a departure to the
/// stamp of the arrival, 99th percentile less median.
fn stamp_noise(host: &Host) -> Duration {
    let noise = |quantiles: &Quantiles| quantiles.value(0.99).saturating_sub(quantiles.median());
    let profile = host.profile.as_ref();
    let ns = profile.map(|profile| noise(&profile.send.stamp_ns).saturating_add(noise(&profile.receive.stamp_ns)));
    time(ns.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use narrows_scenario::{Arrivals, Cross, Hop, SizeMix};

    use super::*;

    /// Poisson traffic of 50 Mbit/s on the second of two hops: 4167 packets a second, of which ten
    /// seconds hold 41 667 with a standard deviation of 204; the first hop carries none, and what
    /// is counted in two halves is what is counted in one.
    #[test]
    fn counts_what_crosses_undisturbed() {
        let hop = || Hop::rate(BitRate::from_mbps(100)).delay(Duration::from_millis(3));
        let traffic = Cross::on_hop(1, Arrivals::Poisson, BitRate::from_mbps(50), SizeMix::constant(1500));
        let scenario = Scenario::new("two hops").hop(hop()).hop(hop()).cross(traffic);
        let scenario = scenario.validate().unwrap();
        let second = Duration::from_secs(1);
        let count = |from: u32, to: u32| {
            let crossed = SimWorld::undisturbed(&scenario, PathDirection::Forward, 7, from * second, to * second);
            assert_eq!(crossed[0].packets(), 0);
            crossed[1].packets()
        };
        let whole = count(2, 12);
        assert!((40_850..42_480).contains(&whole), "{whole}");
        assert_eq!(count(2, 7) + count(7, 12), whole);
        let span = (2 * second, 12 * second);
        let tenths = SimWorld::undisturbed_by(&scenario, PathDirection::Forward, 7, span, second / 10);
        assert_eq!(tenths[1].iter().map(Crossed::packets).sum::<u64>(), whole);
        assert_eq!(tenths[1][..50].iter().map(Crossed::packets).sum::<u64>(), count(2, 7));
    }
}
