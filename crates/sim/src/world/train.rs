//! Trains.

use std::time::Duration;

use narrows_probe::probes::{
    Arrival, Fate, HopReply, HopReplyKind, PacingCheck, PacketPlan, PeerKind, Train, TrainReport,
};
use narrows_probe::{Event, Refusal, StampSource};
use narrows_scenario::PathDirection;
use narrows_units::{Stamp, nanos};

use super::SimWorld;
use super::engine::{DeliveredPacket, FULL_HOP_LIMIT};
use super::payload::{ExpectedResponse, Payload};
use crate::host::Departure;
use crate::path::Packet;

/// Smallest SYN: IPv4 and TCP header without options.
const MIN_SYN_OCTETS: u16 = 40;

impl SimWorld {
    pub(super) fn send_train(&mut self, train: &Train) -> Event {
        if let Some(refusal) = self.train_refusal(train) {
            return Event::Refused(refusal);
        }
        let run = self.engine.new_run();
        let begin = self.begin_at_sender();
        self.wake_hosts(train.peer_kind, begin);
        let departures = self.departures(&train.packets, begin);
        let by_kernel = worth_stamping(&train.packets);
        let stamps: Vec<u64> = departures.iter().map(|at| if by_kernel { at.leaves } else { at.stamped }).collect();
        let mut watch = Watch::new(run, train, &stamps, |at| self.engine.reading(self.way, at));
        for (row, plan) in watch.rows.iter().zip(&train.packets) {
            let payload = Payload::Probe {
                run,
                seq: row.seq,
                sent: row.departed.nanos(),
                expected_response: match train.peer_kind {
                    PeerKind::Receiver => ExpectedResponse::Stamp,
                    PeerKind::Echo => ExpectedResponse::Echo(plan.ip_octets),
                    PeerKind::EchoSized(octets) => ExpectedResponse::Echo(octets),
                    PeerKind::ClosedPort => ExpectedResponse::PortUnreachable,
                    PeerKind::TcpSyn => ExpectedResponse::Segment,
                },
            };
            let packet = Packet {
                ip_octets: plan.ip_octets,
                hop_limit: plan.hop_limit.map_or(FULL_HOP_LIMIT, Into::into),
                flow: 0,
                payload,
            };
            self.engine.send(departures[row.seq as usize].leaves, self.way, packet);
        }
        let last = departures.last().map_or(begin, |departure| departure.leaves);
        self.await_rows(&mut watch, last, answers_nothing(train, self.facts.path_mtu));
        let heard_here = self.sends_here() == (train.peer_kind != PeerKind::Receiver);
        if !heard_here {
            self.await_word_from_peer_kind();
        }
        let host = self.engine.host(self.way);
        let costs: Vec<u64> = train.packets.iter().map(|plan| host.send_time(plan.ip_octets)).collect();
        Event::Train(TrainReport {
            id: train.id,
            arrivals: watch.rows,
            reordered: watch.reordered,
            duplicates: 0,
            local_drops: watch.local_drops,
            departed_by: StampSource::Simulated,
            arrived_by: StampSource::Simulated,
            pacing: pacing_check(&train.packets, &stamps, &costs),
        })
    }

    /// Why a train's packets cannot be sent.
    fn train_refusal(&self, train: &Train) -> Option<Refusal> {
        let echo = match train.peer_kind {
            PeerKind::EchoSized(octets) => Some(octets),
            PeerKind::Receiver | PeerKind::Echo | PeerKind::ClosedPort | PeerKind::TcpSyn => None,
        };
        let sizes = train.packets.iter().map(|packet| packet.ip_octets);
        if train.peer_kind == PeerKind::TcpSyn && sizes.clone().any(|octets| octets < MIN_SYN_OCTETS) {
            return Some(Refusal::TooSmall { min_ip_octets: MIN_SYN_OCTETS });
        }
        self.size_refusal(sizes.chain(echo))
    }

    /// When the sending host can begin: now, or when the remote host has been told.
    pub(super) fn begin_at_sender(&self) -> u64 {
        let reported = if self.sends_here() { 0 } else { self.control_delay(PathDirection::Forward) };
        self.engine.now() + reported
    }

    /// Lets the time pass that the peer's report takes.
    pub(super) fn await_word_from_peer_kind(&mut self) {
        let reported = self.engine.now() + self.control_delay(PathDirection::Reverse);
        self.engine.idle_until(reported);
    }

    /// A host that rested is woken by a packet in front of each train to a cooperating peer, which
    /// nobody counts.
    fn wake_hosts(&mut self, peer_kind: PeerKind, begin: u64) {
        if matches!(peer_kind, PeerKind::ClosedPort | PeerKind::TcpSyn) {
            return;
        }
        let arrives = begin + self.control_delay(self.way);
        self.engine.host(self.way).wake_up(Some(begin), None);
        self.engine.host(self.way.opposite()).wake_up(None, Some(arrives));
    }

    /// When the packets leave. The plan is kept in absolute time: a late packet does not delay
    /// those after it, unless they are due before it has left. A host that plays a profile moves
    /// the rest of its plan by what a packet is late, if that is more than half a gap (at least 5
    /// µs), as the programs of real hosts do.
    fn departures(&mut self, plans: &[PacketPlan], begin: u64) -> Vec<Departure> {
        const LATE_AT_LEAST: u64 = 5000;
        let host = self.engine.host(self.way);
        let mut planned = begin;
        let mut departures = Vec::with_capacity(plans.len());
        for (index, plan) in plans.iter().enumerate() {
            let gap = if index == 0 { 0 } else { nanos(plan.gap) };
            planned = planned.saturating_add(gap);
            let cost = host.send_time(plan.ip_octets);
            let departure =
                if index > 0 && gap == 0 { host.departure(planned, cost) } else { host.paced_departure(planned, cost) };
            let late = departure.stamped.saturating_sub(planned);
            if host.moves_schedules() && gap == 0 {
                planned = departure.returned;
            } else if host.moves_schedules() && late > (gap / 2).max(LATE_AT_LEAST) {
                planned = departure.stamped;
            }
            departures.push(departure);
        }
        departures
    }

    fn await_rows(&mut self, watch: &mut Watch, last_departure: u64, nothing_answered: bool) {
        let mut delivered_packet = Vec::new();
        if nothing_answered {
            self.engine.stride(last_departure, &mut delivered_packet);
        }
        let timeout = nanos(self.timeout());
        loop {
            for packet in delivered_packet.drain(..) {
                watch.take(&packet);
            }
            let deadline = last_departure.max(watch.last_heard).saturating_add(timeout);
            if watch.missing == 0 || self.engine.now() >= deadline {
                return;
            }
            self.engine.step(deadline, &mut delivered_packet);
        }
    }
}

/// Whether real hosts would have their kernel stamp departures, which a dense train would pay for:
/// gaps of at least 10 µs, and at most 16 packets back to back.
fn worth_stamping(plans: &[PacketPlan]) -> bool {
    const SMALLEST_GAP: Duration = Duration::from_micros(10);
    const LONGEST_RUN: usize = 16;
    let rest = plans.get(1..).unwrap_or_default();
    let spaced = rest.iter().all(|packet| packet.gap.is_zero() || packet.gap >= SMALLEST_GAP);
    spaced && rest.split(|packet| !packet.gap.is_zero()).all(|run| run.len() < LONGEST_RUN)
}

/// No packet of the train makes a router or a host answer while it is being sent.
fn answers_nothing(train: &Train, path_mtu: u16) -> bool {
    train.peer_kind == PeerKind::Receiver
        && train.packets.iter().all(|packet| packet.hop_limit.is_none() && packet.ip_octets <= path_mtu)
}

/// The rows of a train while it is under way.
struct Watch {
    run: u32,
    rows: Vec<Arrival>,
    missing: usize,
    reordered: u32,
    local_drops: u32,
    latest: Option<u32>,
    last_heard: u64,
}

impl Watch {
    fn new(run: u32, train: &Train, departures: &[u64], reading: impl Fn(u64) -> i64) -> Self {
        let rows = (0..).zip(train.packets.iter().zip(departures));
        let rows: Vec<Arrival> = rows
            .map(|(seq, (plan, &at))| Arrival {
                seq,
                departed: Stamp::from_nanos(reading(at)),
                ip_octets: plan.ip_octets,
                fate: Fate::Lost,
            })
            .collect();
        Self { run, missing: rows.len(), rows, reordered: 0, local_drops: 0, latest: None, last_heard: 0 }
    }

    fn take(&mut self, delivered_packet: &DeliveredPacket) {
        let (run, seq, fate) = match delivered_packet.payload {
            Payload::Probe { run, seq, .. } => (run, seq, Fate::Received(Stamp::from_nanos(delivered_packet.stamp))),
            Payload::Echo { run, seq, turned } => {
                let returned = Stamp::from_nanos(delivered_packet.stamp);
                let turned = Some(Stamp::from_nanos(turned));
                (run, seq, Fate::Echoed { returned, turned })
            }
            Payload::Answer { run, seq, from, reply_ip_octets, kind } => {
                let returned = Stamp::from_nanos(delivered_packet.stamp);
                let reply = HopReply { from, returned, reply_ip_octets, kind };
                (run, seq, Fate::Answered(reply))
            }
            Payload::Tcp(_) => return,
        };
        let Some(row) = self.rows.get_mut(seq as usize).filter(|_| run == self.run) else {
            return;
        };
        if delivered_packet.dropped {
            self.local_drops += 1;
            return;
        }
        row.fate = fate;
        self.missing -= 1;
        self.last_heard = delivered_packet.at;
        // Routers answer at different distances; only packets that went all the way can overtake.
        if went_all_the_way(fate) {
            self.reordered += u32::from(self.latest.is_some_and(|latest| seq < latest));
            self.latest = self.latest.max(Some(seq));
        }
    }
}

fn went_all_the_way(fate: Fate) -> bool {
    match fate {
        Fate::Received(_) | Fate::Echoed { .. } => true,
        Fate::Answered(reply) => matches!(reply.kind, HopReplyKind::PortUnreachable | HopReplyKind::TcpAnswer),
        Fate::Lost => false,
    }
}

/// Judges the true departures by the limits of [`PacingCheck`]. Where the plan says "back to back"
/// the time of the send call before is what could be expected.
fn pacing_check(plans: &[PacketPlan], departures: &[u64], costs: &[u64]) -> PacingCheck {
    const TENTH_AT_LEAST: u64 = 1000;
    const HALF_AT_LEAST: u64 = 5000;
    let gaps = plans.iter().skip(1).zip(costs).zip(departures.windows(2)).map(|((plan, &cost), pair)| {
        let planned = if plan.gap.is_zero() { cost } else { nanos(plan.gap) };
        (planned, pair[1] - pair[0])
    });
    let (mut count, mut off, mut worst) = (0u64, 0u64, 0u64);
    let (mut planned_sum, mut actual_sum) = (0u64, 0u64);
    let mut remote_off = false;
    for (planned, actual) in gaps {
        let deviation = planned.abs_diff(actual);
        count += 1;
        off += u64::from(deviation > (planned / 10).max(TENTH_AT_LEAST));
        remote_off |= deviation > (planned / 2).max(HALF_AT_LEAST);
        worst = worst.max(deviation);
        planned_sum += planned;
        actual_sum += actual;
    }
    let mean_off = planned_sum.abs_diff(actual_sum) * 50 > planned_sum;
    if mean_off || off * 20 > count || remote_off {
        let worst = Duration::from_nanos(worst);
        PacingCheck::Broken { worst }
    } else {
        PacingCheck::Kept
    }
}
