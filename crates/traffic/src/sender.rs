//! The sending end: announces flows to a sink, sends them, and gathers what both sides saw.
//!
//! One thread sends the packets of all UDP flows from one heap of deadlines ([`crate::schedule`] is
//! pure). A deadline is an absolute time, so that lateness of one packet is not handed on: packets
//! that are late leave at once, several in one system call (`sendmmsg`), and none is left out; the
//! long-run rate is that of the plan. How late they were is told. TCP flows have a thread of the
//! kernel's pace each, and one that starts, samples and ends them.

mod elastic;
mod link;
mod pace;
mod tally;
mod transfers;
mod udp;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_net::clock::{self, nanos};
use narrows_net::socket::ProbeSocket;

use crate::control::{Statistics, Transport};
use crate::document::{FlowReport, Report, Sent};
use crate::error::{CallerError, TrafficError};
use crate::flow::{ElasticFlow, Flow, FlowKind};
use crate::pacing::Pacing;
use elastic::{Connection, Elastic};
use link::Link;
use udp::{UdpRun, UdpSender};

/// How to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderOptions {
    /// How long; `None`: until stopped (or until the last flow's own end).
    pub duration: Option<Duration>,
    /// Length of the intervals of all series.
    pub interval: Duration,
    /// How deadlines are waited for.
    pub pacing: Pacing,
    /// Processor for the sending thread.
    pub pin_to: Option<usize>,
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self { duration: None, interval: Duration::from_secs(1), pacing: Pacing::default(), pin_to: None }
    }
}

/// Flows of one session at most: the sink's own limit.
pub const MOST_FLOWS: usize = 1024;
/// Flows of a process get their own UDP port up to this number; beyond it they share.
const MOST_SOCKETS: usize = 256;
/// Between the start of everything and the first deadline.
const LEAD_NS: i64 = 2_000_000;

/// What has been sent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// UDP packets.
    pub packets: u64,
    /// Their IP octets.
    pub ip_octets: u64,
    /// Payload that peers of TCP connections have acknowledged, as of the end of each connection's
    /// last interval.
    pub tcp_octets: u64,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    packets: AtomicU64,
    ip_octets: AtomicU64,
    tcp_octets: AtomicU64,
}

/// Traffic under way. Dropping it ends it.
#[derive(Debug)]
pub struct Sender {
    shared: Arc<Shared>,
    link: Link,
    rows: Vec<RowPlan>,
    udp: Option<JoinHandle<UdpRun>>,
    elastic: Option<JoinHandle<Vec<elastic::Outcome>>>,
    began_ns: i64,
    options: SenderOptions,
}

/// One row of the result: a UDP flow, or one TCP connection.
#[derive(Debug, Clone)]
struct RowPlan {
    name: String,
    transport: Transport,
    asked: Option<narrows_units::BitRate>,
    from_ns: u64,
    /// When it is to end by itself.
    until_ns: Option<u64>,
}

impl Sender {
    /// Announces the flows and starts them, in the calling thread's network namespace: the threads
    /// inherit that.
    pub fn start(
        sink: SocketAddr,
        flows: impl IntoIterator<Item = Flow>,
        options: SenderOptions,
    ) -> Result<Self, TrafficError> {
        let flows: Vec<Flow> = flows.into_iter().collect();
        let rows = rows(&flows, options.duration);
        if rows.is_empty() {
            return Err(CallerError::NoFlow.into());
        }
        if rows.len() > MOST_FLOWS {
            return Err(CallerError::TooManyFlows { flows: rows.len(), most: MOST_FLOWS }.into());
        }
        for flow in &flows {
            if let FlowKind::Elastic(elastic) = &flow.kind {
                elastic::offered(&elastic.control)?;
            }
        }
        let sockets = udp::sockets(sink, rows.iter().filter(|row| row.transport == Transport::Udp).count())?;
        let sizes = udp::sizes(&flows, sockets.first())?;
        let transports = rows.iter().map(|row| row.transport).collect();
        let link = Link::open(sink, nanos(options.interval), transports)?;
        let shared = Arc::new(Shared::default());
        let began_ns = clock::now_ns() + LEAD_NS;
        let mut sender = Self { shared: Arc::clone(&shared), link, rows, udp: None, elastic: None, began_ns, options };
        sender.start_udp(&flows, sockets, sizes)?;
        sender.start_elastic(&flows)?;
        Ok(sender)
    }

    fn start_udp(
        &mut self,
        flows: &[Flow],
        sockets: Vec<Arc<ProbeSocket>>,
        sizes: Option<crate::schedule::Sizes>,
    ) -> Result<(), TrafficError> {
        let Some(sizes) = sizes else { return Ok(()) };
        let mut sender = UdpSender::new(Arc::clone(&self.shared), sockets, self.began_ns, self.options);
        let udp = flows.iter().filter(|flow| !matches!(flow.kind, FlowKind::Elastic(_)));
        let rows = self.rows.iter().enumerate().filter(|(_, row)| row.transport == Transport::Udp);
        for (flow, (index, row)) in udp.zip(rows) {
            sender.add(flow, sizes, row.until_ns, self.link.cookies()[index])?;
        }
        let thread = std::thread::Builder::new()
            .name("traffic-send".to_owned())
            .spawn(move || sender.run())
            .map_err(TrafficError::host("start a thread"))?;
        self.udp = Some(thread);
        Ok(())
    }

    fn start_elastic(&mut self, flows: &[Flow]) -> Result<(), TrafficError> {
        let kinds = flows.iter().filter_map(|flow| match &flow.kind {
            FlowKind::Elastic(elastic) => Some(elastic),
            FlowKind::Model { .. } | FlowKind::Replay(_) => None,
        });
        let kinds = kinds.flat_map(|elastic| std::iter::repeat_n(elastic, usize::from(elastic.connections)));
        let rows = self.rows.iter().enumerate().filter(|(_, row)| row.transport == Transport::Tcp);
        let plans = kinds.zip(rows).map(|(elastic, (index, row))| Connection {
            flow: index,
            from_ns: row.from_ns,
            until_ns: row.until_ns,
            elastic: elastic.clone(),
        });
        let plans: Vec<Connection> = plans.collect();
        if plans.is_empty() {
            return Ok(());
        }
        let elastic = Elastic {
            shared: Arc::clone(&self.shared),
            sink: self.link.sink(),
            token: self.link.token(),
            began_ns: self.began_ns,
            interval_ns: u64::try_from(nanos(self.options.interval)).unwrap_or(1),
        };
        let thread = std::thread::Builder::new()
            .name("traffic-elastic".to_owned())
            .spawn(move || elastic.run(plans))
            .map_err(TrafficError::host("start a thread"))?;
        self.elastic = Some(thread);
        Ok(())
    }

    /// What has been sent by now.
    pub fn progress(&self) -> Progress {
        Progress {
            packets: self.shared.packets.load(Ordering::Relaxed),
            ip_octets: self.shared.ip_octets.load(Ordering::Relaxed),
            tcp_octets: self.shared.tcp_octets.load(Ordering::Relaxed),
        }
    }

    /// Nothing is left to send.
    pub fn finished(&self) -> bool {
        self.udp.as_ref().is_none_or(JoinHandle::is_finished)
            && self.elastic.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The sink has not closed the session.
    pub fn alive(&self) -> bool {
        self.link.alive()
    }

    /// Ends the traffic now, asks the sink what arrived, and tells all. If the sink is gone, the
    /// report lacks its part.
    pub fn stop(mut self) -> Report {
        let interrupted = !self.finished();
        self.shared.stop.store(true, Ordering::Relaxed);
        self.conclude(interrupted)
    }

    /// Waits until nothing is left to send, or `stop` is set, or the sink is gone; then as
    /// [`Sender::stop`].
    pub fn wait(self, stop: &AtomicBool) -> Report {
        const POLL_NS: i64 = 10_000_000;
        while !self.finished() && !stop.load(Ordering::Relaxed) && self.link.alive() {
            clock::sleep_until_ns(clock::now_ns() + POLL_NS);
        }
        self.stop()
    }

    fn conclude(&mut self, interrupted: bool) -> Report {
        // A thread that panicked leaves no account.
        let udp = self.udp.take().and_then(|thread| thread.join().ok());
        let elastic = self.elastic.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let elapsed = u64::try_from(clock::now_ns() - self.began_ns).unwrap_or(0);
        let mut sent: Vec<Sent> = vec![Sent::default(); self.rows.len()];
        let mut notes = Vec::new();
        let run = udp.unwrap_or_default();
        let udp_rows = (0..self.rows.len()).filter(|row| self.rows[*row].transport == Transport::Udp);
        for (row, tally) in udp_rows.zip(run.sent) {
            sent[row] = tally;
        }
        for outcome in elastic {
            notes.extend(outcome.complaint);
            sent[outcome.flow] = outcome.sent;
        }
        if run.behind_ns > 0 {
            let behind = narrows_units::format_duration(Duration::from_nanos(run.behind_ns));
            notes.push(format!("this host could not keep up: sending ended {behind} behind the plan"));
        }
        let counts = sent.iter().map(|sent| sent.packets).collect();
        let statistics = self.link.end(counts);
        let (received, local_drops) = match statistics {
            Ok(Statistics { flows, local_drops }) if flows.len() == self.rows.len() => {
                (flows.into_iter().map(Some).collect(), Some(local_drops))
            }
            Ok(_) => {
                notes.push("the sink told of other flows than were announced".to_owned());
                (vec![None; self.rows.len()], None)
            }
            Err(error) => {
                notes.push(format!("what arrived is not known: {error}"));
                (vec![None; self.rows.len()], None)
            }
        };
        let rows = self.rows.iter().zip(sent).zip(received);
        Report {
            sink: self.link.sink(),
            same_clock: self.link.same_clock(),
            interrupted,
            duration_ns: elapsed,
            pacing: self.options.pacing,
            sending_cpu_ns: run.cpu_ns,
            local_drops,
            flows: rows
                .map(|((row, sent), received)| {
                    FlowReport::new(row.name.clone(), row.transport, row.asked, row.from_ns, sent, received)
                })
                .collect(),
            notes,
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.udp.take() {
            // A thread that panicked sends no more either.
            let _ = thread.join();
        }
        if let Some(thread) = self.elastic.take() {
            let _ = thread.join();
        }
    }
}

fn rows(flows: &[Flow], duration: Option<Duration>) -> Vec<RowPlan> {
    let mut rows = Vec::new();
    for flow in flows {
        let (transport, count) = match &flow.kind {
            FlowKind::Elastic(ElasticFlow { connections, .. }) => (Transport::Tcp, *connections),
            FlowKind::Model { .. } | FlowKind::Replay(_) => (Transport::Udp, 1),
        };
        let row = RowPlan {
            name: flow.name.clone(),
            transport,
            asked: flow.asked(),
            from_ns: narrows_units::nanos(flow.from),
            until_ns: match (flow.until, duration) {
                (Some(until), Some(duration)) => Some(narrows_units::nanos(until.min(duration))),
                (one, other) => one.or(other).map(narrows_units::nanos),
            },
        };
        rows.extend(std::iter::repeat_n(row, usize::from(count)));
    }
    rows
}

#[cfg(test)]
mod tests;
