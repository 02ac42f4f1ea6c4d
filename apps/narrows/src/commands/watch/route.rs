//! Traces a route: three probes per hop, all of one flow.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use narrows_net::via::Via;
use narrows_probe::probes::{Arrival, Fate, HopReplyKind, PacketPlan, Probe, Train, TrainId};
use narrows_probe::{Event, World};
use narrows_store::records::PathSeen;
use narrows_units::{Sender, Stamp};
use narrows_watch::WallTime;
use narrows_watch::detect::Route;

use crate::connect::{self, Peer};
use crate::exit::Failure;

/// What a trace met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::commands) struct Traced {
    /// The routers of each hop, nearest first, and the host itself at the end if it was reached.
    pub(in crate::commands) route: Route,
    /// Round trips to each hop, in ns.
    pub(super) round_trips_ns: Vec<Vec<u64>>,
    pub(in crate::commands) reached: bool,
    /// What fits, as far as the kernel knows.
    pub(super) mtu: u32,
    /// IP octets sent.
    pub(super) octets: u64,
}

/// By the first way that the host at `address` can be asked. After `time` no more hops are asked.
pub(in crate::commands) fn trace(
    peer: &Peer,
    address: IpAddr,
    time: Duration,
    stop: &Arc<AtomicBool>,
) -> Result<Traced, Failure> {
    let (mut fault, mut until) = (None, None);
    for via in [Via::Icmp, Via::Udp { port: Via::UDP_PORT }] {
        match peer.connect_per_hop(via, stop) {
            Ok(mut world) => {
                let until = *until.get_or_insert_with(|| world.now() + time);
                let traced = walk(&mut world, address, until).map_err(|error| connect::failure(&error))?;
                if traced.reached || via != Via::Icmp || world.now() >= until {
                    return Ok(traced);
                }
                // A host that answers no echoes may still say that a port is closed.
            }
            Err(failure) => fault = Some(failure),
        }
    }
    Err(fault.unwrap_or_else(|| Failure::host("no way to trace a route")))
}

fn walk(
    world: &mut impl World<Fault = narrows_net::Error>,
    address: IpAddr,
    until: Stamp<Sender>,
) -> Result<Traced, narrows_net::Error> {
    let mut traced = Traced::default();
    let peer_kind = world.facts().answering.peer_kind();
    for first in (1..=MOST).step_by(AT_ONCE.into()) {
        let limits = (first..first + AT_ONCE).flat_map(|limit| [limit; PROBES]).filter_map(NonZeroU8::new);
        let packets: Vec<PacketPlan> =
            limits.map(|limit| PacketPlan { gap: GAP, ip_octets: IP_OCTETS, hop_limit: Some(limit) }).collect();
        traced.octets += u64::from(IP_OCTETS) * packets.len() as u64;
        let train = Train { id: TrainId(0), packets, peer_kind };
        let Event::Train(report) = world.send(Probe::Train(train))? else { break };
        for hop in report.arrivals.chunks(PROBES) {
            traced.meet(hop, address);
            if traced.reached {
                break;
            }
        }
        if traced.reached || world.stop_requested() || traced.is_lost() || world.now() >= until {
            break;
        }
    }
    traced.mtu = world.facts().path_mtu.into();
    traced.trim();
    Ok(traced)
}

impl Traced {
    /// What three probes say of a hop of the way to `address`.
    fn meet(&mut self, hop: &[Arrival], address: IpAddr) {
        let (mut routers, mut times) = (BTreeSet::new(), Vec::new());
        for probe in hop {
            match probe.fate {
                Fate::Answered(reply) => {
                    routers.insert(reply.from);
                    times.extend(u64::try_from(reply.returned.since(probe.departed).as_nanos()).ok());
                    self.reached |= reply.kind != HopReplyKind::TimeExceeded;
                }
                Fate::Echoed { returned, .. } => {
                    routers.insert(address);
                    times.extend(u64::try_from(returned.since(probe.departed).as_nanos()).ok());
                    self.reached = true;
                }
                Fate::Received(_) => self.reached = true,
                Fate::Lost => {}
            }
        }
        self.route.push(routers);
        self.round_trips_ns.push(times);
    }

    /// So many silent hops in a row that nobody is behind them.
    fn is_lost(&self) -> bool {
        self.route.len() >= SILENT && self.route.iter().rev().take(SILENT).all(BTreeSet::is_empty)
    }

    /// Silent hops at the end are no hops.
    fn trim(&mut self) {
        while !self.reached && self.route.last().is_some_and(BTreeSet::is_empty) {
            self.route.pop();
            self.round_trips_ns.pop();
        }
    }

    /// As it is kept.
    pub(super) fn seen(&self, at: WallTime, address: IpAddr, egress: Option<&narrows_net::host::Egress>) -> PathSeen {
        PathSeen {
            at,
            address: Some(address.to_string()),
            source: egress.map(|egress| egress.source.to_string()),
            interface: egress.map(|egress| egress.interface.clone()),
            next_hop: egress.and_then(|egress| egress.next_hop).map(|hop| hop.to_string()),
            mtu: Some(self.mtu),
            hops: self.route.iter().map(|hop| hop.iter().map(ToString::to_string).collect()).collect(),
            hop_round_trips_ns: self.round_trips_ns.iter().map(|times| times.iter().min().copied()).collect(),
        }
    }
}

/// A route in one line, for people.
pub(super) fn text(route: &Route) -> String {
    let hops: Vec<String> = route
        .iter()
        .map(|hop| match hop.len() {
            0 => "?".to_owned(),
            _ => hop.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"),
        })
        .collect();
    hops.join(" ")
}

const PROBES: usize = 3;
const AT_ONCE: u8 = 5;
const MOST: u8 = 30;
const SILENT: usize = 5;
const GAP: Duration = Duration::from_millis(15);
const IP_OCTETS: u16 = 64;

#[cfg(test)]
mod tests {
    use narrows_probe::probes::{HopReply, PacingCheck, TrainReport};
    use narrows_probe::{PathFacts, StampSource};

    use super::*;

    fn probe(router: Option<u8>, kind: HopReplyKind, ms: i64) -> Arrival {
        let reply = |last: u8| HopReply {
            from: IpAddr::from([10, 0, 0, last]),
            returned: Stamp::from_nanos(ms * 1_000_000),
            reply_ip_octets: 56,
            kind,
        };
        let fate = router.map_or(Fate::Lost, |last| Fate::Answered(reply(last)));
        Arrival { seq: 0, departed: Stamp::from_nanos(0), ip_octets: 64, fate }
    }

    #[test]
    fn hops_have_routers_and_round_trips() {
        let mut traced = Traced::default();
        let host = IpAddr::from([10, 0, 0, 9]);
        let router = |last, ms| probe(Some(last), HopReplyKind::TimeExceeded, ms);
        traced.meet(&[router(1, 2), router(1, 3), router(2, 4)], host);
        traced.meet(&[probe(None, HopReplyKind::TimeExceeded, 0)], host);
        let mut echoing = traced.clone();
        traced.meet(&[probe(Some(9), HopReplyKind::PortUnreachable, 8)], host);
        let fate = Fate::Echoed { returned: Stamp::from_nanos(8_000_000), turned: None };
        echoing.meet(&[Arrival { fate, ..probe(None, HopReplyKind::TimeExceeded, 0) }], host);
        assert_eq!(echoing, traced, "an echo comes from the host itself");
        assert!(traced.reached);
        assert_eq!(text(&traced.route), "10.0.0.1|10.0.0.2 ? 10.0.0.9");
        let seen = traced.seen(WallTime::default(), [10, 0, 0, 9].into(), None);
        assert_eq!(seen.hop_round_trips_ns, [Some(2_000_000), None, Some(8_000_000)]);
    }

    #[test]
    fn silent_hops_at_the_end_are_none() {
        let mut traced = Traced::default();
        let host = IpAddr::from([10, 0, 0, 9]);
        traced.meet(&[probe(Some(1), HopReplyKind::TimeExceeded, 2)], host);
        for _ in 0..SILENT {
            traced.meet(&[probe(None, HopReplyKind::TimeExceeded, 0)], host);
        }
        assert!(traced.is_lost());
        traced.trim();
        assert_eq!(traced.route.len(), 1);
    }

    /// Routers without an end, each of which takes its time.
    struct Slow(Stamp<Sender>);

    impl World for Slow {
        type Fault = narrows_net::Error;

        fn now(&self) -> Stamp<Sender> {
            self.0
        }

        fn facts(&self) -> PathFacts {
            PathFacts::ideal(1500, Duration::from_secs(10))
        }

        fn send(&mut self, asked: Probe) -> Result<Event, Self::Fault> {
            let Probe::Train(train) = asked else { panic!("{asked:?}") };
            self.0 = self.0 + Duration::from_secs(10);
            let answer =
                |packet: &PacketPlan| probe(packet.hop_limit.map(NonZeroU8::get), HopReplyKind::TimeExceeded, 9000);
            Ok(Event::Train(TrainReport {
                id: train.id,
                arrivals: train.packets.iter().map(answer).collect(),
                reordered: 0,
                duplicates: 0,
                local_drops: 0,
                departed_by: StampSource::Simulated,
                arrived_by: StampSource::Simulated,
                pacing: PacingCheck::Kept,
            }))
        }

        fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Self::Fault> {
            self.0 = until;
            Ok(())
        }
    }

    #[test]
    fn when_its_time_is_over_a_trace_asks_no_further_hops() {
        let hops = |seconds: i64| {
            let mut world = Slow(Stamp::from_nanos(0));
            let until = Stamp::from_nanos(seconds * 1_000_000_000);
            walk(&mut world, [10, 0, 0, 99].into(), until).unwrap().route.len()
        };
        assert_eq!([hops(5), hops(25), hops(1000)], [5, 15, 30]);
    }
}
