//! The remote host of one measurement: one that runs the server, or one that runs nothing of ours
//! and answers by itself.

use narrows_net::client::SocketWorld;
use narrows_net::single_ended::SingleEndedWorld;
use narrows_net::via::Via;
use narrows_probe::{
    Answering, Caveat, Deployment, Estimate, Event, Finding, Measured, MethodInfo, Outcome, PathFacts, Probe, Reason,
    RemoteClock, World,
};
use narrows_units::{Delta, Direction, Metric, Sender, Stamp, Unit};

/// A world over real sockets.
#[derive(Debug)]
pub(crate) enum Remote {
    /// It runs the server.
    Server(Box<SocketWorld>),
    /// It does not.
    SingleEnded(Box<SingleEndedWorld>),
}

impl World for Remote {
    type Fault = narrows_net::Error;

    fn now(&self) -> Stamp<Sender> {
        match self {
            Self::Server(world) => world.now(),
            Self::SingleEnded(world) => world.now(),
        }
    }

    fn facts(&self) -> PathFacts {
        match self {
            Self::Server(world) => world.facts(),
            Self::SingleEnded(world) => world.facts(),
        }
    }

    fn send(&mut self, probe: Probe) -> Result<Event, narrows_net::Error> {
        match self {
            Self::Server(world) => world.send(probe),
            Self::SingleEnded(world) => world.send(probe),
        }
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), narrows_net::Error> {
        match self {
            Self::Server(world) => world.wait(until),
            Self::SingleEnded(world) => world.wait(until),
        }
    }

    fn concluded(&mut self, measured: &Measured, stopped: Option<&Reason>) {
        match self {
            Self::Server(world) => world.concluded(measured, stopped),
            Self::SingleEnded(world) => world.concluded(measured, stopped),
        }
    }

    fn rest(&mut self) -> Result<(), narrows_net::Error> {
        match self {
            Self::Server(world) => world.rest(),
            Self::SingleEnded(world) => world.rest(),
        }
    }

    fn stop_requested(&self) -> bool {
        match self {
            Self::Server(world) => world.stop_requested(),
            Self::SingleEnded(world) => world.stop_requested(),
        }
    }
}

impl Remote {
    /// The remote host's address; the port is zero where there is none.
    pub(crate) fn address(&self) -> std::net::SocketAddr {
        match self {
            Self::Server(world) => world.peer(),
            Self::SingleEnded(world) => world.peer(),
        }
    }

    /// The direction that a result of this method is about, where `asked` is what was asked for:
    /// both at once, where echoes come back as they went and the method does not tell them apart.
    pub(crate) fn direction(&self, method: &MethodInfo, outcome: &Outcome, asked: Direction) -> Direction {
        match self {
            Self::SingleEnded(world) if both_ways(method, outcome, world.via()) => Direction::RoundTrip,
            Self::Server(_) | Self::SingleEnded(_) => asked,
        }
    }

    /// The outcome, with what a measurement from one end alone has to say of itself.
    pub(crate) fn reported(&self, method: &MethodInfo, outcome: Outcome) -> Outcome {
        let Self::SingleEnded(world) = self else { return outcome };
        let mut caveats = Vec::new();
        if let Some(limit) = world.answer_limit() {
            caveats.push(Caveat::AnswersLimited { burst: limit.burst(), every: limit.every() });
        }
        let rate = method.metric.unit() == Unit::BitPerSecond;
        if both_ways(method, &outcome, world.via()) {
            caveats.push(Caveat::AsymmetricLimit);
        } else if rate
            && !outcome.caveats().contains(&Caveat::AsymmetricLimit)
            && let Some(reply_ip_octets) = world.largest_reply()
        {
            caveats.push(Caveat::ReverseInfluence { reply_ip_octets });
        }
        match outcome {
            Outcome::Estimated(estimate) => {
                let estimate = caveats.into_iter().fold(*estimate, Estimate::caveat);
                let estimate = estimate.with("answered_via", world.via().name());
                with_clocks(with_losses(estimate, world), world).into()
            }
            Outcome::Inconclusive { reason, caveats: mut seen, details, mut diagnostics } => {
                caveats.retain(|caveat| !seen.contains(caveat));
                seen.append(&mut caveats);
                diagnostics.insert("answered_via", world.via().name());
                Outcome::Inconclusive { reason, caveats: seen, details, diagnostics }
            }
        }
    }
}

/// A reflector that counts tells which way lost packets.
fn with_losses(mut estimate: Estimate, world: &SingleEndedWorld) -> Estimate {
    let Some(split) = world.losses() else { return estimate };
    if let Finding::RoundTrip(found) = &mut estimate.details.finding
        && let Some(directions) = &mut found.directions
    {
        directions.lost = Some((split.forward, split.reverse));
    }
    estimate.with("forward_lost", split.forward).with("reverse_lost", split.reverse)
}

/// A reflector's stamps are those of its wall clock: its offset is told against this host's. Where
/// both clocks are disciplined from outside, what they may be off by bounds one-way delays as well
/// as the round trip does, and may do so better.
fn with_clocks(mut estimate: Estimate, world: &SingleEndedWorld) -> Estimate {
    let (Some(clock), Finding::RoundTrip(found)) = (world.remote_clock(), &mut estimate.details.finding) else {
        return estimate;
    };
    let Some(directions) = &mut found.directions else { return estimate };
    let offset = directions.clock_offset_ns - Delta::from_nanos(clock.wall_ahead_ns);
    directions.clock_offset_ns = offset;
    directions.remote_clock = Some(RemoteClock {
        synchronised: clock.synchronised,
        error_ns: clock.error.into(),
        near_error_ns: clock.near_error.map(Delta::from),
    });
    let bound = directions.clock_error_bound_ns;
    if let Some(near) = clock.near_error {
        let both = Delta::from(near) + Delta::from(clock.error);
        // Clocks further apart than round trip and their own words allow are not what somebody says
        // of them.
        let true_words = offset.max(-offset) <= both + bound;
        if clock.synchronised && true_words && both < bound {
            directions.clock_error_bound_ns = both;
            // These hold the clocks' offset.
            for (delays, shift) in [(&mut directions.forward, offset), (&mut directions.reverse, -offset)] {
                for delay in delays.iter_mut().flat_map(|delays| &mut delays.one_way_ns) {
                    *delay = *delay + shift;
                }
            }
        }
    }
    directions.tell(&mut estimate.diagnostics);
    estimate
}

/// The result is that of the two directions together: the narrower of them, where a rate is
/// measured by echoes of one size.
fn both_ways(method: &MethodInfo, outcome: &Outcome, via: Via) -> bool {
    let echoes = match via.answering() {
        // Its own stamps are a receiver's, for methods that use them.
        Answering::Reflector => method.class.deployment == Deployment::Sender && !outcome.details().stamped_by_remote,
        Answering::Echo => true,
        Answering::Server | Answering::ClosedPort | Answering::TcpSyn => false,
    };
    // Right on asymmetric paths: by the sizes of its echoes, or by a receiver, which there is none
    // of here.
    let one_way = method.class.works_on_asymmetric && method.class.deployment == Deployment::Sender;
    echoes && method.metric != Metric::RoundTripTime && !one_way
}
