//! Short TCP transfers: each has a connection and a thread of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_net::clock;
use narrows_sim::TransferStream;

use super::elastic::{Connection, Elastic, Outcome};
use crate::document::{Sent, TcpSent};
use crate::flow::{Carries, ElasticFlow};

/// The transfers of one flow.
pub(super) struct Transfers {
    plan: Connection,
    stream: TransferStream,
    running: Vec<JoinHandle<io::Result<u64>>>,
    outcome: Outcome,
    /// No more begin.
    over: bool,
}

/// Transfers of one flow at a time; further ones wait (ours: each takes two threads).
const MOST_AT_ONCE: usize = 128;

impl Transfers {
    /// `None` if the connection carries something else.
    pub(super) fn new(plan: &Connection) -> Option<Self> {
        let Carries::Transfers { cross, seed, index } = &plan.elastic.carries else { return None };
        let mut cross = cross.as_ref().clone();
        cross.from = Duration::from_nanos(plan.from_ns);
        let tcp = TcpSent { congestion: plan.elastic.control.clone(), ..TcpSent::default() };
        Some(Self {
            stream: TransferStream::new(&cross, *seed, *index)?,
            running: Vec::new(),
            outcome: Outcome { flow: plan.flow, sent: Sent { tcp: Some(tcp), ..Sent::default() }, complaint: None },
            over: false,
            plan: plan.clone(),
        })
    }

    /// Begins what is due, and takes account of what has ended.
    pub(super) fn advance(&mut self, run: &Arc<Elastic>, now: u64, stop: bool) {
        self.over |= stop || self.plan.until_ns.is_some_and(|until| until <= now);
        while !self.over && self.stream.peek_ns() <= now && self.running.len() < MOST_AT_ONCE {
            self.begin(run);
        }
        let (ended, running) = self.running.drain(..).partition(JoinHandle::is_finished);
        self.running = running;
        for transfer in ended {
            self.account(run, transfer);
        }
        if !self.over {
            self.outcome.sent.span_ns = now.saturating_sub(self.plan.from_ns);
            self.outcome.sent.planned_span_ns = self.outcome.sent.span_ns;
        }
    }

    /// None is under way, and none begins any more.
    pub(super) fn ended(&self) -> bool {
        self.over && self.running.is_empty()
    }

    pub(super) fn outcome(self) -> Outcome {
        self.outcome
    }

    fn begin(&mut self, run: &Arc<Elastic>) {
        let transfer = self.stream.next_transfer();
        let elastic = ElasticFlow { carries: Carries::Once(transfer.payload_octets), ..self.plan.elastic.clone() };
        let plan = Connection { elastic, ..self.plan.clone() };
        let work = {
            let run = Arc::clone(run);
            move || carry(&run, &plan)
        };
        match std::thread::Builder::new().name("traffic-short".to_owned()).spawn(work) {
            Ok(thread) => self.running.push(thread),
            Err(error) => self.complain(&error),
        }
    }

    fn account(&mut self, run: &Elastic, transfer: JoinHandle<io::Result<u64>>) {
        // A thread that panicked has carried nothing that is known.
        match transfer.join().unwrap_or(Ok(0)) {
            Ok(octets) => {
                self.outcome.sent.octets += octets;
                run.shared.tcp_octets.fetch_add(octets, Ordering::Relaxed);
            }
            Err(error) => self.complain(&error),
        }
    }

    fn complain(&mut self, error: &io::Error) {
        let flow = self.plan.flow;
        self.outcome.complaint.get_or_insert(format!("flow {flow}: a short transfer: {error}"));
    }
}

/// Opens a connection and sends all of it, unless the run ends before; what was acknowledged.
fn carry(run: &Elastic, plan: &Connection) -> io::Result<u64> {
    const POLL_NS: i64 = 2_000_000;
    let mut bulk = run.open(plan)?;
    let due = |now: u64| plan.until_ns.is_some_and(|until| until <= now);
    while !bulk.spent() && !bulk.broken() && !run.shared.stop.load(Ordering::Relaxed) && !due(run.since()) {
        clock::sleep_until_ns(clock::now_ns() + POLL_NS);
    }
    let acked = bulk.samples()?.iter().map(|sample| sample.acked_octets).sum();
    bulk.finish_writing();
    Ok(acked)
}
