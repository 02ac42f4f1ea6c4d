//! Trains, both ways.

use std::num::NonZeroU8;
use std::time::Duration;

use narrows_probe::probes::PacketPlan;
use narrows_wire::{DepartureRow, PlanRow, Probe, ProbeKind, Rows, ServerMessage, Table, TrainExpectation};

use super::collect::{Collector, TrainCollector};
use super::conductor::{Conductor, POLL};
use super::convert;
use super::orders::{BrokenOff, Order};
use super::session::{ServedSession, lock};
use crate::clock;
use crate::errors::ErrorQueue;
use crate::pace::{PaceOptions, Payloads, send_train, worth_stamping};
use crate::poll_interval::Expected;
use crate::socket::ProbeSocket;

/// Departure stamps come within this time of the last packet, unless a queue of this host holds it
/// up.
const SETTLE_NS: i64 = 2_000_000;

fn admit(session: &ServedSession, packets: u64, ip_octets: u64, duration: Duration) -> Result<(), BrokenOff> {
    let limits = &session.limits;
    if packets > u64::from(limits.max_train_packets) {
        return Err(BrokenOff::limit(format!("a train may have {} packets at most", limits.max_train_packets)));
    }
    if duration > limits.max_duration() {
        return Err(BrokenOff::limit(format!("a train may take {:?} at most", limits.max_duration())));
    }
    if ip_octets > limits.max_octets {
        return Err(BrokenOff::limit(format!("a train may have {} octets at most", limits.max_octets)));
    }
    if !session.admits(ip_octets) {
        return Err(BrokenOff::limit("more than the light limits allow; ask for the load slot"));
    }
    Ok(())
}

/// Receives a train.
pub(super) fn receive(conductor: &Conductor, train: &TrainExpectation) -> Result<(), BrokenOff> {
    let session = &conductor.session;
    admit(session, train.packets.into(), train.ip_octets, Duration::from_nanos(train.duration_ns))?;
    let flow = lock(&session.flows).get(&train.flow).cloned();
    let flow = flow.ok_or_else(|| BrokenOff::limit("that flow is not open"))?;
    let expected = Expected {
        packets: train.packets as usize,
        ip_octets: train.ip_octets,
        duration: Duration::from_nanos(train.duration_ns),
    };
    let poll_interval_ns = expected.poll_interval_ns(&flow.socket);
    *lock(&flow.collector) = Collector::Train(TrainCollector::new(train.id, train.packets, poll_interval_ns));
    conductor.say(ServerMessage::Armed { id: train.id });
    let sent = loop {
        match conductor.order_to_receiver(POLL) {
            Ok(Some(Order::TrainSent { packets })) => break Ok(packets),
            Ok(_) => {}
            Err(broken) => break Err(broken),
        }
    };
    let mut collector = lock(&flow.collector);
    let reported_ns = clock::now_ns();
    let quiet_ns = i64::try_from(train.quiet_ns).unwrap_or(i64::MAX);
    while let (Ok(sent), Collector::Train(train)) = (&sent, &*collector) {
        let (arrived, last_ns) = train.progress();
        let quiet_at = last_ns.max(reported_ns).saturating_add(quiet_ns);
        let left = quiet_at.saturating_sub(clock::now_ns());
        if arrived >= *sent || left <= 0 || conductor.still_connected().is_err() {
            break;
        }
        let timeout = Duration::from_nanos(left.unsigned_abs()).min(POLL);
        collector = flow
            .changed
            .wait_timeout(collector, timeout)
            .map_or_else(|poisoned| poisoned.into_inner().0, |(collector, _)| collector);
    }
    let collected = std::mem::take(&mut *collector);
    drop(collector);
    sent?;
    conductor.still_connected()?;
    if let Collector::Train(train) = collected {
        let (result, rows) = train.finish();
        conductor.say(ServerMessage::TrainResult(result));
        conductor.say_rows(rows);
    }
    Ok(())
}

/// Sends a train.
pub(super) fn send(conductor: &Conductor, id: u32, flow: u16, rows: &[PlanRow]) -> Result<(), BrokenOff> {
    let session = &conductor.session;
    let plan: Vec<PacketPlan> = rows
        .iter()
        .map(|row| PacketPlan {
            gap: Duration::from_nanos(row.gap_ns),
            ip_octets: row.ip_octets,
            hop_limit: NonZeroU8::new(row.hop_limit),
        })
        .collect();
    let octets = plan.iter().map(|packet| u64::from(packet.ip_octets)).sum();
    let duration = plan.iter().skip(1).fold(Duration::ZERO, |sum, packet| sum.saturating_add(packet.gap));
    admit(session, plan.len() as u64, octets, duration)?;
    let flow = lock(&session.flows).get(&flow).cloned();
    let flow = flow.ok_or_else(|| BrokenOff::limit("that flow is not open"))?;
    let socket = &flow.socket;
    let probe = Probe { kind: ProbeKind::Train, tag: session.tag, id, seq: 0, stamp_ns: clock::now_ns() };
    let payloads = payloads(socket, &plan, probe)?;
    let mut wake = [0; narrows_wire::PROBE_OCTETS];
    let waker = Probe { kind: ProbeKind::Wake, ..probe };
    let options = PaceOptions {
        kernel_stamps: worth_stamping(&plan),
        wake: waker.write(&mut wake).map(|()| wake.as_slice()),
        ..PaceOptions::default()
    };
    let mut queue = ErrorQueue::new();
    let sent = send_train(socket, &plan, &payloads, &options, &mut queue, &session.halted)
        .map_err(BrokenOff::host("send the train"))?;
    clock::sleep_until_ns(clock::now_ns() + SETTLE_NS);
    let departures = sent.settle(&plan, socket, &mut queue);
    conductor.still_there()?;
    conductor.say(ServerMessage::TrainLeft {
        id,
        stamps: convert::stamp_source(departures.source),
        pacing: convert::pacing(departures.pacing),
        send_failures: u32::try_from(departures.refused.len()).unwrap_or(u32::MAX),
    });
    let rows = (0u32..)
        .zip(&plan)
        .zip(&departures.stamps_ns)
        .filter(|((seq, _), _)| departures.refused.binary_search(seq).is_err())
        .map(|((seq, packet), stamp_ns)| DepartureRow { seq, ip_octets: packet.ip_octets, stamp_ns: *stamp_ns })
        .collect();
    conductor.say_rows(Rows { id, table: Table::Departures(rows) });
    Ok(())
}

/// The train's datagrams.
fn payloads(socket: &ProbeSocket, plan: &[PacketPlan], mut probe: Probe) -> Result<Payloads, BrokenOff> {
    let lengths: Option<Vec<_>> = plan.iter().map(|packet| socket.payload_octets(packet.ip_octets)).collect();
    let small = || BrokenOff::limit("a packet is too small for the probe header");
    let lengths = lengths.ok_or_else(small)?;
    if lengths.is_empty() {
        return Err(BrokenOff::limit("a train without packets"));
    }
    let mut payloads = Payloads::new(lengths, u64::from(probe.id) + 1);
    for (seq, index) in (0u32..).zip(0..plan.len()) {
        probe.seq = seq;
        probe.write(payloads.get_mut(index)).ok_or_else(small)?;
    }
    Ok(payloads)
}
