//! Loads.

mod sink;

use std::time::Duration;

use narrows_probe::Event;
use narrows_probe::probes::{Load, LoadReport, Then};
use narrows_probe::timetable::Slack;
use narrows_scenario::{PathDirection, Queue, Service};
use narrows_units::{BitRate, Stamp, nanos};

use super::SimWorld;
use super::engine::{DeliveredPacket, packet};
use super::payload::{ExpectedResponse, Payload};
use crate::NEVER;
use crate::host::Departure;
use crate::path::{Link, Packet};
use sink::LoadSink;

/// A load between two of its segments.
#[derive(Debug)]
pub(super) struct RunningLoad {
    run: u32,
    /// Packets sent so far.
    sent: u32,
    /// The last burst: when its first packet was planned, and its IP octets.
    last_burst: Option<(u64, u64)>,
    /// Time for which the host did not run, and that it did not make up for.
    held_up_ns: u64,
    /// The interface, as the socket in front of it feels it.
    interface: Link,
    /// When the last two packets have left it.
    left: [u64; 2],
    sink: LoadSink,
}

/// What is later than this, beyond what is made up for, was held up: as the senders of real hosts.
const HELD_UP_NS: u64 = 500_000;
/// Longest stretch for which departures are computed ahead.
const STRIDE_NS: u64 = 1_000_000;
/// Shorter status intervals would hold less than a scheduler's tick.
const SHORTEST_STATUS: Duration = Duration::from_millis(1);

impl SimWorld {
    pub(super) fn send_load(&mut self, load: &Load) -> Event {
        if let Some(refusal) = self.size_refusal(std::iter::once(load.ip_octets)) {
            return Event::Refused(refusal);
        }
        let status_every = nanos(load.status_every.max(SHORTEST_STATUS));
        let (mut running, begin) = match self.load.take() {
            Some(running) => (running, self.engine.now()),
            None => (self.new_load(), self.begin_at_sender()),
        };
        running.sink.every = status_every;
        let end = begin.saturating_add(nanos(load.duration));
        let (before, held_up_before) = (running.sent, running.held_up_ns);
        self.offer(&mut running, load, begin, end);
        let sent = running.sent - before;
        let held_up = Duration::from_nanos(running.held_up_ns - held_up_before);
        if load.then == Then::Finish {
            self.await_last(&mut running);
        }
        let known_by = if self.sends_here() {
            self.engine.now().saturating_sub(self.control_delay(PathDirection::Reverse))
        } else {
            self.engine.now()
        };
        let statuses = running.sink.known(if load.then == Then::Finish { NEVER } else { known_by });
        if load.then == Then::Continue {
            self.load = Some(running);
        }
        Event::Load(LoadReport {
            began: Stamp::from_nanos(self.engine.reading(self.way, begin)),
            ended: Stamp::from_nanos(self.engine.reading(self.way, end)),
            sent_packets: u64::from(sent),
            sent_ip_octets: u64::from(sent) * u64::from(load.ip_octets),
            send_failures: 0,
            sender_cpu: Some(self.sender_share(load, sent)),
            held_up,
            statuses,
        })
    }

    fn new_load(&mut self) -> RunningLoad {
        RunningLoad {
            run: self.engine.new_run(),
            sent: 0,
            last_burst: None,
            held_up_ns: 0,
            interface: self.interface(),
            left: [0; 2],
            sink: LoadSink::default(),
        }
    }

    /// Sends from `begin` to `end`: bursts at the rate, each packet after the send call of the one
    /// before it (shared among the streams) and, since a socket blocks while packets wait at the
    /// interface, not before the last packet but one has left that. One packet always waits, so the
    /// interface never idles and its rate is reached exactly.
    fn offer(&mut self, running: &mut RunningLoad, load: &Load, begin: u64, end: u64) {
        let streams = u64::from(load.streams.max(1));
        let cost = self.engine.host(self.way).send_time(load.ip_octets) / streams;
        let burst_octets = u64::from(load.burst.max(1)) * u64::from(load.ip_octets);
        let mut plan = match (running.last_burst, gap_of(load.rate, running.last_burst)) {
            (Some((at, _)), Some(gap)) => at.saturating_add(gap).max(begin),
            _ => begin,
        };
        // Fractions of a nanosecond are carried, so that the rate is exact.
        let mut origin = plan;
        let mut octets = 0u64;
        let mut delivered_packet = Vec::new();
        let mut done = begin;
        while done < end {
            let stretch = end.min(done.saturating_add(STRIDE_NS));
            while plan < stretch && running.left[0] < stretch && load.rate > BitRate::ZERO {
                // As the senders of real hosts do.
                let late = self.send_burst(running, load, plan, cost).saturating_sub(nanos(Slack::PROMPT.most_debt));
                origin = origin.saturating_add(late);
                running.held_up_ns += if late > HELD_UP_NS { late } else { 0 };
                running.last_burst = Some((plan, burst_octets));
                octets += burst_octets;
                plan = load.rate.time_for(octets).map_or(NEVER, |time| origin.saturating_add(nanos(time)));
            }
            done = stretch;
            self.engine.stride(done, &mut delivered_packet);
            self.take_heard(running, &mut delivered_packet);
            let end = self.way.opposite();
            running.sink.close_until(done, |at| self.engine.reading(end, at));
        }
    }

    /// One burst, planned for `plan`. Its first packet has the host's pacing error, unless the
    /// interface holds it up. Returns by how much it was later than host and interface were free.
    fn send_burst(&mut self, running: &mut RunningLoad, load: &Load, plan: u64, cost: u64) -> u64 {
        let free = running.left[0].max(self.engine.host(self.way).free_from());
        let mut late = 0;
        for index in 0..load.burst.max(1) {
            let host = self.engine.host(self.way);
            let at = if index == 0 && plan >= running.left[0] {
                host.paced_departure(plan, cost)
            } else {
                host.departure(plan.max(running.left[0]), cost)
            };
            if index == 0 {
                late = at.stamped.saturating_sub(plan.max(free));
            }
            let leaves = running.interface.serve(at.leaves, load.ip_octets).unwrap_or(NEVER);
            running.left = [running.left[1], leaves];
            self.send_load_packet(running, at, load);
        }
        late
    }

    fn send_load_packet(&mut self, running: &mut RunningLoad, at: Departure, load: &Load) {
        let payload = Payload::Probe {
            run: running.run,
            seq: running.sent,
            sent: self.engine.reading(self.way, at.stamped),
            expected_response: ExpectedResponse::Stamp,
        };
        // Each stream is a socket, so a flow, of its own; the first one's is that of trains.
        let flow = running.sent % u32::from(load.streams.max(1));
        running.sent = running.sent.wrapping_add(1);
        let packet = Packet { flow, ..packet(load.ip_octets, payload) };
        self.engine.send(at.leaves, self.way, packet);
    }

    fn take_heard(&mut self, running: &mut RunningLoad, delivered_packet: &mut Vec<DeliveredPacket>) {
        let end = self.way.opposite();
        for delivered_packet in delivered_packet.drain(..) {
            if let Payload::Probe { run, seq, sent, .. } = delivered_packet.payload
                && run == running.run
            {
                if delivered_packet.dropped {
                    running.sink.local_drop();
                    continue;
                }
                let ip_octets = delivered_packet.ip_octets;
                let reading = |at| self.engine.reading(end, at);
                running.sink.take(delivered_packet.at, seq, ip_octets, delivered_packet.stamp - sent, reading);
            }
        }
    }

    /// Waits for what is still under way, and for the peer's last word. Silence after the load
    /// makes no status intervals.
    fn await_last(&mut self, running: &mut RunningLoad) {
        let timeout = nanos(self.timeout());
        let mut delivered_packet = Vec::new();
        let ended = self.engine.now();
        while running.sink.received < u64::from(running.sent) {
            let deadline = ended.max(running.sink.last_heard).saturating_add(timeout);
            if self.engine.now() >= deadline {
                break;
            }
            self.engine.step(deadline, &mut delivered_packet);
            self.take_heard(running, &mut delivered_packet);
        }
        let end = self.way.opposite();
        running.sink.finish(u64::from(running.sent), |at| self.engine.reading(end, at));
        if self.sends_here() {
            self.await_word_from_peer_kind();
        }
    }

    /// The sending host's interface, or the first link if that is the interface.
    fn interface(&self) -> Link {
        let host = match self.way {
            PathDirection::Forward => &self.scenario.sender,
            PathDirection::Reverse => &self.scenario.receiver,
        };
        match (host.interface_rate, self.scenario.hops(self.way).first()) {
            (None, Some(hop)) if hop.service == Service::Single => {
                Link::new(hop.rate, hop.framing, Queue::Unlimited, &hop.schedule)
            }
            (rate, _) => Link::interface(rate.unwrap_or(BitRate::from_bps(u64::MAX))),
        }
    }

    /// Share of the segment for which the busiest sending thread was in a send call.
    fn sender_share(&mut self, load: &Load, sent: u32) -> f32 {
        let cost = self.engine.host(self.way).send_time(load.ip_octets);
        let busy = f64::from(sent) / f64::from(load.streams.max(1)) * cost as f64;
        let share = busy / load.duration.as_nanos().max(1) as f64;
        #[expect(clippy::cast_possible_truncation, reason = "a share of at most 1 needs no more than an f32")]
        let share = share.min(1.0) as f32;
        share
    }
}

/// From the last burst to the next.
fn gap_of(rate: BitRate, last: Option<(u64, u64)>) -> Option<u64> {
    let (_, octets) = last?;
    rate.time_for(octets).map(nanos)
}
