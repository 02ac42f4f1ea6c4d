//! The scenario as a whole.

use std::sync::Arc;
use std::time::Duration;

use narrows_host_profile::{Ends, HostProfile};

use crate::cross::{Cross, Passing};
use crate::error::ScenarioError;
use crate::expect::Expectation;
use crate::hop::{Burst, Hop, Jitter, Link, Loss, Queue, Router};
use crate::host::Host;
use crate::service::Service;
use crate::way::PathDirection;

/// A path, its hosts, its traffic, and what methods are expected to say of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Short, for file names and rows of tables.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Seed of everything random in it.
    pub seed: u64,
    /// Hops from sender to receiver.
    pub forward: Vec<Hop>,
    /// Hops from receiver to sender.
    pub reverse: Vec<Hop>,
    /// Traffic on them.
    pub cross: Vec<Cross>,
    /// The sending host.
    pub sender: Host,
    /// The receiving host.
    pub receiver: Host,
    /// The transfer that passes while somebody listens.
    pub passing: Passing,
    /// How long cross traffic runs before the first probe, so that queues are in their steady
    /// state.
    pub warm_up: Duration,
    /// Whether the kernels of a lab may leave work to the devices that they play themselves:
    /// segments sent as one, checksums not computed. Real-time links never have any, and the
    /// simulator has no such thing.
    pub offloads: bool,
    /// What methods are expected to say.
    pub expect: Vec<Expectation>,
}

impl Scenario {
    /// An empty path between ideal hosts. Hops given by [`Scenario::hop`] go both ways until
    /// [`Scenario::reverse_hop`] names others for the reverse direction.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            about: String::new(),
            seed: 1,
            forward: Vec::new(),
            reverse: Vec::new(),
            cross: Vec::new(),
            sender: Host::default(),
            receiver: Host::default(),
            passing: Passing::default(),
            warm_up: Duration::from_secs(1),
            offloads: false,
            expect: Vec::new(),
        }
    }

    /// With this seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// With one more hop from sender to receiver.
    #[must_use]
    pub fn hop(mut self, hop: Hop) -> Self {
        self.forward.push(hop);
        self
    }

    /// With one more hop from receiver to sender. Without any, [`Scenario::validate`] mirrors the
    /// forward hops.
    #[must_use]
    pub fn reverse_hop(mut self, hop: Hop) -> Self {
        self.reverse.push(hop);
        self
    }

    /// With more traffic.
    #[must_use]
    pub fn cross(mut self, cross: Cross) -> Self {
        self.cross.push(cross);
        self
    }

    /// With another sending host.
    #[must_use]
    pub fn sender(mut self, host: Host) -> Self {
        self.sender = host;
        self
    }

    /// With another receiving host.
    #[must_use]
    pub fn receiver(mut self, host: Host) -> Self {
        self.receiver = host;
        self
    }

    /// With this measured host at both ends. Clocks, interfaces, TCP and answers stay.
    #[must_use]
    pub fn hosts(mut self, profile: &Arc<HostProfile>) -> Self {
        self.sender = self.sender.playing(Arc::clone(profile));
        self.receiver = self.receiver.playing(Arc::clone(profile));
        self
    }

    /// Completes and checks the scenario: mirrors the reverse direction where none was given,
    /// orders schedules, and refuses what no path can be.
    pub fn validate(mut self) -> Result<Self, ScenarioError> {
        if self.forward.is_empty() {
            return Err(ScenarioError::NoHop);
        }
        if self.reverse.is_empty() {
            self.reverse = mirrored(&self.forward);
        }
        for (way, hops) in [("hop", &mut self.forward), ("reverse hop", &mut self.reverse)] {
            for (index, hop) in hops.iter_mut().enumerate() {
                hop.schedule.sort_by_key(|change| change.at);
                check_hop(&format!("{way} {index}"), hop)?;
            }
        }
        for (index, cross) in self.cross.iter().enumerate() {
            self.check_cross(&format!("cross {index}"), cross)?;
        }
        for (place, host) in [("sender", &self.sender), ("receiver", &self.receiver)] {
            check_host(place, host)?;
        }
        self.check_shared_machine()?;
        Ok(self)
    }

    /// The hops of one way, in order.
    pub fn hops(&self, way: PathDirection) -> &[Hop] {
        match way {
            PathDirection::Forward => &self.forward,
            PathDirection::Reverse => &self.reverse,
        }
    }

    /// Both ends of one machine stall together, so both hosts play it or none.
    fn check_shared_machine(&self) -> Result<(), ScenarioError> {
        let shared = |host: &Host| host.profile.as_ref().is_some_and(|profile| profile.ends == Ends::Both);
        let any = shared(&self.sender) || shared(&self.receiver);
        if any && self.sender.profile != self.receiver.profile {
            let why = "is of both ends on one machine; write hosts = \"…\" before the first table instead";
            let place = if shared(&self.sender) { "sender: profile" } else { "receiver: profile" };
            return Err(ScenarioError::invalid(place, why));
        }
        Ok(())
    }

    fn check_cross(&self, place: &str, cross: &Cross) -> Result<(), ScenarioError> {
        let hops = self.hops(cross.way).len();
        if cross.last_hop < cross.first_hop {
            return Err(ScenarioError::Loop { place: place.to_owned(), first: cross.first_hop, last: cross.last_hop });
        }
        if cross.last_hop >= hops {
            let why = format!("there is no hop {}; the way has hops 0 to {}", cross.last_hop, hops - 1);
            return Err(ScenarioError::invalid(place, why));
        }
        cross.validate(place)
    }
}

/// The reverse direction over the same links: same rates, channels, delays and kinds of link in
/// reverse order, default queues, no loss, no bucket, no schedule, no aggregation, no slots.
fn mirrored(forward: &[Hop]) -> Vec<Hop> {
    let count = forward.len();
    (0..count)
        .rev()
        .map(|index| {
            let hop = &forward[index];
            let mut back = Hop::rate(hop.rate)
                .named(hop.name.clone())
                .framing(hop.framing)
                .delay(hop.delay)
                .mtu(hop.mtu)
                .link(hop.link);
            if let Service::Channels(_) = hop.service {
                back.service = hop.service;
            }
            // The router at the end of the reverse direction's hop is the one in front of the
            // forward hop.
            if index > 0 {
                back.router = forward[index - 1].router;
            }
            back.layer2 = hop.layer2.iter().rev().copied().collect();
            back
        })
        .collect()
}

fn check_hop(place: &str, hop: &Hop) -> Result<(), ScenarioError> {
    let invalid = |field: &str, why: &str| Err(ScenarioError::invalid(format!("{place}: {field}"), why));
    if hop.rate.bps() == 0 || hop.layer2.iter().any(|device| device.rate.bps() == 0) {
        return invalid("rate", "must be above zero");
    }
    if hop.mtu < 68 {
        return invalid("mtu", "must be at least 68 octets (RFC 791)");
    }
    if hop.queue == Queue::Packets(0) {
        return invalid("queue", "must hold at least the packet being sent");
    }
    if matches!(hop.queue, Queue::Octets(octets) if octets.count() < u64::from(hop.mtu)) {
        return invalid("queue", "must hold at least one packet of the MTU");
    }
    if let Some(bucket) = hop.bucket
        && (bucket.rate.bps() == 0 || bucket.burst.count() < u64::from(hop.mtu))
    {
        return invalid("bucket", "needs a rate above zero and a burst of at least one packet of the MTU");
    }
    if let Some(bucket) = hop.bucket.filter(|bucket| bucket.timer > Duration::ZERO) {
        let meanwhile = bucket.rate.as_f64() * bucket.timer.as_secs_f64() / 8.0;
        if (bucket.burst.count() as f64) < f64::from(hop.mtu) + meanwhile {
            return invalid("bucket", "needs a burst of one packet of the MTU and what its timer may be late by");
        }
    }
    if let Some(early) = hop.early_drop {
        let share = |value: f64| value.is_finite() && value > 0.0 && value <= 1.0;
        if early.from >= early.to || !share(early.ratio) || !share(early.weight) {
            return invalid("early_drop", "needs from below to, and ratio and weight above 0 and at most 1");
        }
        if hop.queue == Queue::Unlimited || hop.service != Service::Single || hop.link != Link::RealTime {
            return invalid(
                "early_drop",
                "belongs to queues with an end, in front of real-time links that send one packet after the other",
            );
        }
    }
    if let Link::Tbf(burst) | Link::Htb(burst) = hop.link {
        let packet = hop.framing.wire_octets(u32::from(hop.mtu));
        if matches!(burst, Burst::Octets(octets) if octets.count() < u64::from(packet)) {
            return invalid("burst", "must hold at least one packet of the MTU with its framing");
        }
        if burst != Burst::OnePacket && hop.bucket.is_some() {
            return invalid("burst", "a hop with a shaper has the shaper's burst; write one of the two");
        }
    }
    check_service(&invalid, hop)?;
    let unit = |value: f64| value.is_finite() && (0.0..=1.0).contains(&value);
    match hop.loss {
        Loss::Random { ratio } if !unit(ratio) => return invalid("loss", "ratio must be between 0 and 1"),
        Loss::Bursty { ratio, mean_burst } if !unit(ratio) || !mean_burst.is_finite() || mean_burst < 1.0 => {
            return invalid("loss", "ratio must be between 0 and 1, mean_burst at least 1");
        }
        Loss::None | Loss::Random { .. } | Loss::Bursty { .. } => {}
    }
    if hop.reorder.is_some_and(|reorder| !unit(reorder.ratio)) {
        return invalid("reorder", "ratio must be between 0 and 1");
    }
    if matches!(hop.jitter, Jitter::Uniform(width) | Jitter::Exponential(width) if width > Duration::from_secs(10)) {
        return invalid("jitter", "must be at most 10 s");
    }
    if !sound(&hop.router) {
        return invalid("router", ICMP_LIMIT);
    }
    Ok(())
}

/// What is not one packet after the other has a constant rate, and nothing behind it in its hop
/// that needs the packets in order.
fn check_service<F>(invalid: &F, hop: &Hop) -> Result<(), ScenarioError>
where
    F: Fn(&str, &str) -> Result<(), ScenarioError>,
{
    if hop.service == Service::Single {
        return Ok(());
    }
    if let Some((field, why)) = hop.service.trouble() {
        return invalid(field, why);
    }
    if !hop.schedule.is_empty() {
        return invalid("schedule", "belongs to links that send one packet after the other");
    }
    if matches!(hop.service, Service::Channels(_)) && !hop.layer2.is_empty() {
        return invalid("layer2", "cannot stand behind channels; write another hop");
    }
    if matches!(hop.service, Service::Aggregation(aggregation)
        if aggregation.octets.count() < u64::from(hop.framing.wire_octets(u32::from(hop.mtu))))
    {
        return invalid("aggregation", "octets must hold at least one packet of the MTU with its framing");
    }
    if hop.link != Link::RealTime {
        return invalid("link", "only real-time links play channels, aggregation and slots");
    }
    Ok(())
}

fn check_host(place: &str, host: &Host) -> Result<(), ScenarioError> {
    let invalid = |field: &str, why: &str| Err(ScenarioError::invalid(format!("{place}: {field}"), why));
    if host.clock.granularity.is_zero() {
        return invalid("clock granularity", "must be at least 1 ns");
    }
    if !host.clock.skew_ppm.is_finite() || host.clock.skew_ppm.abs() > 100_000.0 {
        return invalid("clock skew_ppm", "must be within 100000");
    }
    if host.coalescing.is_some_and(|coalescing| coalescing.frames == 0) {
        return invalid("coalescing", "frames must be at least 1");
    }
    if host.profile.is_some() {
        let times = [host.send_cost, host.receive_cost, host.pacing_jitter];
        if times.iter().any(|time| !time.is_zero()) || host.stalls.is_some() || host.coalescing.is_some() {
            let why = "has calls, pacing, stalls and coalescing; leave out send_cost, receive_cost, pacing_jitter, \
                       stalls and coalescing beside it";
            return invalid("profile", why);
        }
    }
    if host.stalls.is_some_and(|stalls| stalls.every.is_zero()) {
        return invalid("stalls", "every must be above zero");
    }
    for (field, rate) in [("interface_rate", host.interface_rate), ("copy_rate", host.copy_rate)] {
        if rate.is_some_and(|rate| rate.bps() == 0) {
            return invalid(field, "must be above zero");
        }
    }
    if !sound(&host.answers) {
        return invalid("answers", ICMP_LIMIT);
    }
    Ok(())
}

const ICMP_LIMIT: &str = "an ICMP limit needs a rate above zero and a burst of at least 1";

/// The limit of an answering node lets something through.
fn sound(answers: &Router) -> bool {
    answers.icmp_limit.is_none_or(|(rate, burst)| rate.is_finite() && rate > 0.0 && burst > 0)
}
