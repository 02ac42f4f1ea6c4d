//! The thread that sends the packets of all UDP flows.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use narrows_net::clock::{self, nanos};
use narrows_net::pace::Payloads;
use narrows_net::socket::{ProbeSocket, SocketOptions};
use narrows_net::thread_scheduling::ThreadScheduling;
use narrows_sim::ArrivalStream;

use super::pace::wait_until;
use super::tally::Tally;
use super::{MOST_FLOWS, MOST_SOCKETS, SenderOptions, Shared};
use crate::document::Sent;
use crate::error::{CallerError, TrafficError};
use crate::flow::{Flow, FlowKind};
use crate::packet::{HEADER_OCTETS, Header};
use crate::schedule::{Due, Packets, Schedule, Sizes};

/// Packets of one system call at most.
const BATCH: usize = 32;
/// Intervals of all flows together.
const INTERVALS: usize = 200_000;

/// What the thread did.
#[derive(Debug, Default)]
pub(super) struct UdpRun {
    /// One per UDP flow.
    pub(super) sent: Vec<Sent>,
    /// How far behind the plan it abandoned; 0 if it did not.
    pub(super) behind_ns: u64,
    pub(super) cpu_ns: u64,
}

/// A UDP flow under way.
struct Row {
    cookie: u32,
    socket: usize,
    /// The next packet's number.
    number: u64,
    from_ns: u64,
    until_ns: Option<u64>,
    tally: Tally,
}

pub(super) struct UdpSender {
    shared: Arc<Shared>,
    sockets: Vec<Arc<ProbeSocket>>,
    began_ns: i64,
    options: SenderOptions,
    schedule: Schedule,
    rows: Vec<Row>,
    most_octets: u16,
}

/// A socket per flow, up to a limit, connected to the sink.
pub(super) fn sockets(sink: SocketAddr, flows: usize) -> Result<Vec<Arc<ProbeSocket>>, TrafficError> {
    let options = SocketOptions { receive_buffer_octets: 64 << 10, ..SocketOptions::default() };
    (0..flows.min(MOST_SOCKETS))
        .map(|_| match ProbeSocket::connected(sink, &options) {
            Ok(socket) => Ok(Arc::new(socket)),
            Err(source) if net_unreachable(&source) => Err(TrafficError::Unreachable { peer: sink, source }),
            Err(source) => Err(TrafficError::host("open a UDP socket")(source)),
        })
        .collect()
}

fn net_unreachable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable)
}

/// The packet sizes that can be sent, after a look at all models; `None` without UDP flows.
pub(super) fn sizes(flows: &[Flow], socket: Option<&Arc<ProbeSocket>>) -> Result<Option<Sizes>, TrafficError> {
    let Some(socket) = socket else { return Ok(None) };
    let header = u16::try_from(HEADER_OCTETS).unwrap_or(u16::MAX);
    let sizes = Sizes { least: socket.header_octets() + header, most: socket.path_mtu().unwrap_or(u16::MAX) };
    for flow in flows {
        let FlowKind::Model { cross, .. } = &flow.kind else {
            continue;
        };
        let narrows_scenario::Source::Open { sizes: mix, .. } = &cross.source else {
            continue;
        };
        let (low, high) = mix.extremes();
        if low < sizes.least {
            return Err(CallerError::TooShort {
                flow: flow.name.clone(),
                ip_octets: low,
                version: if socket.ipv6() { "IPv6" } else { "IPv4" },
                least: sizes.least,
            }
            .into());
        }
        if high > sizes.most {
            return Err(CallerError::TooLong { flow: flow.name.clone(), ip_octets: high, mtu: sizes.most }.into());
        }
    }
    Ok(Some(sizes))
}

impl UdpSender {
    pub(super) fn new(
        shared: Arc<Shared>,
        sockets: Vec<Arc<ProbeSocket>>,
        began_ns: i64,
        options: SenderOptions,
    ) -> Self {
        Self { shared, sockets, began_ns, options, schedule: Schedule::default(), rows: Vec::new(), most_octets: 0 }
    }

    /// One more flow.
    pub(super) fn add(
        &mut self,
        flow: &Flow,
        sizes: Sizes,
        until_ns: Option<u64>,
        cookie: u32,
    ) -> Result<(), TrafficError> {
        let from_ns = narrows_units::nanos(flow.from);
        let (packets, largest) = match &flow.kind {
            FlowKind::Model { cross, seed, index } => {
                let stream = ArrivalStream::new(cross, *seed, *index).ok_or(CallerError::NoFlow)?;
                let narrows_scenario::Source::Open { sizes, .. } = &cross.source else {
                    return Err(CallerError::NoFlow.into());
                };
                (Packets::Model(Box::new(stream)), sizes.extremes().1)
            }
            FlowKind::Replay(replay) => {
                let stream = Box::new(replay.packets()?);
                (Packets::Replay { stream, from_ns }, replay.contents().sizes.1)
            }
            FlowKind::Elastic(_) => return Err(CallerError::NoFlow.into()),
        };
        // Of a row of flows with one socket each, or of many that share.
        let socket = self.rows.len() % self.sockets.len().max(1);
        self.most_octets = self.most_octets.max(largest.clamp(sizes.least, sizes.most));
        self.schedule.add(packets, sizes, until_ns.unwrap_or(u64::MAX));
        let interval_ns = u64::try_from(nanos(self.options.interval)).unwrap_or(1);
        self.rows.push(Row {
            cookie,
            socket,
            number: 0,
            from_ns,
            until_ns,
            tally: Tally::new(interval_ns, INTERVALS / MOST_FLOWS.min(self.sockets.len().max(1))),
        });
        Ok(())
    }

    /// Sends until everything is sent, or until told to stop.
    pub(super) fn run(mut self) -> UdpRun {
        let _care = ThreadScheduling { pin_to: self.options.pin_to, priority: None }.take();
        let shared = Arc::clone(&self.shared);
        let mut payloads = Payloads::new((0..BATCH).map(|_| usize::from(self.most_octets)), 1);
        let mut batch = Vec::with_capacity(BATCH);
        let mut behind_ns = 0;
        while let Some((at, flow)) = self.schedule.peek() {
            let target = self.began_ns.saturating_add(i64::try_from(at).unwrap_or(i64::MAX));
            if !wait_until(target, self.options.pacing, &shared.stop) {
                break;
            }
            let late = clock::now_ns() - target;
            if late > self.timeout_ns() {
                behind_ns = late.unsigned_abs();
                break;
            }
            self.take_due(flow, &mut batch);
            self.send(&batch, &mut payloads);
        }
        let elapsed = u64::try_from(clock::now_ns() - self.began_ns).unwrap_or(0);
        let schedule = &self.schedule;
        let stopped = behind_ns > 0 || schedule.unfinished() > 0;
        let sent = self.rows.iter().enumerate().map(|(flow, row)| {
            // A flow that was not cut short was open until its planned end.
            let end = match row.until_ns {
                Some(until) if stopped => until.min(elapsed),
                Some(until) => until,
                None => elapsed,
            };
            row.tally.reported(end.saturating_sub(row.from_ns), schedule.fitted(flow))
        });
        UdpRun { sent: sent.collect(), behind_ns, cpu_ns: u64::try_from(clock::thread_cpu().as_nanos()).unwrap_or(0) }
    }

    /// Late packets are caught up. But a host that cannot send so fast at all must end some time: a
    /// quarter of the run and two seconds late (ours).
    fn timeout_ns(&self) -> i64 {
        const LEAST_NS: i64 = 2_000_000_000;
        let duration = self.options.duration.map_or(i64::MAX / 2, nanos);
        LEAST_NS.saturating_add(duration / 4)
    }

    /// Takes what is due by now of the flows with this flow's socket, in order, up to a full batch.
    fn take_due(&mut self, flow: usize, batch: &mut Vec<Due>) {
        batch.clear();
        let socket = self.rows[flow].socket;
        let now = u64::try_from(clock::now_ns() - self.began_ns).unwrap_or(0);
        while batch.len() < BATCH
            && self.schedule.peek().is_some_and(|(at, next)| at <= now && self.rows[next].socket == socket)
        {
            let Some(due) = self.schedule.pop() else { return };
            let row = &mut self.rows[due.flow];
            row.tally.planned(due.at_ns.saturating_sub(row.from_ns), due.ip_octets);
            batch.push(due);
        }
    }

    fn send(&mut self, batch: &[Due], payloads: &mut Payloads) {
        let mut at = 0;
        while at < batch.len() {
            let now = clock::now_ns();
            let rest = &batch[at..];
            let Some(socket) = rest.first().map(|due| Arc::clone(&self.sockets[self.rows[due.flow].socket])) else {
                return;
            };
            let mut lengths = [0; BATCH];
            for (k, due) in rest.iter().enumerate() {
                let row = &mut self.rows[due.flow];
                Header::new(row.cookie, row.number, now).write(payloads.get_mut(k));
                row.number += 1;
                lengths[k] = socket.payload_octets(due.ip_octets).unwrap_or(HEADER_OCTETS);
            }
            let mut slices: [&[u8]; BATCH] = [&[]; BATCH];
            for (k, slice) in slices.iter_mut().enumerate().take(rest.len()) {
                *slice = &payloads.get(k)[..lengths[k]];
            }
            let result = socket.send_batch(&slices[..rest.len()]);
            let sent = *result.as_ref().unwrap_or(&0);
            for due in &rest[sent..] {
                self.rows[due.flow].number -= 1;
            }
            self.enter(&rest[..sent], now);
            at += sent;
            match result {
                Err(error) if is_full(&error) && !self.shared.stop.load(Ordering::Relaxed) => {
                    // The wait may end early, or fail; the next try says how it is.
                    let _ = socket.wait_to_send(clock::now_ns() + 1_000_000);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // This packet will not go; the next one may.
                Err(_) => {
                    self.rows[rest[0].flow].tally.refused();
                    at += 1;
                }
                Ok(_) => {}
            }
        }
    }

    fn enter(&mut self, sent: &[Due], now: i64) {
        let since = u64::try_from(now - self.began_ns).unwrap_or(0);
        let mut octets = 0;
        for due in sent {
            let row = &mut self.rows[due.flow];
            let late = i64::try_from(since).unwrap_or(i64::MAX) - i64::try_from(due.at_ns).unwrap_or(i64::MAX);
            row.tally.left(since.saturating_sub(row.from_ns), late, due.ip_octets);
            octets += u64::from(due.ip_octets);
        }
        self.shared.packets.fetch_add(sent.len() as u64, Ordering::Relaxed);
        self.shared.ip_octets.fetch_add(octets, Ordering::Relaxed);
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
