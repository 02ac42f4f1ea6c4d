//! TCP flows: begun, sampled and ended by one thread; the kernel sets their pace.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use narrows_net::clock;
use narrows_net::transfer::{BulkSender, TransferOptions, Writing, connect};

use super::Shared;
use super::transfers::Transfers;
use crate::control::{Data, Request};
use crate::document::{Sent, SentInterval, TcpSent};
use crate::error::TrafficError;
use crate::flow::{Carries, ElasticFlow};

/// A connection to be.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    /// Its row.
    pub(super) flow: usize,
    pub(super) from_ns: u64,
    pub(super) until_ns: Option<u64>,
    pub(super) elastic: ElasticFlow,
}

impl Connection {
    /// How its program writes.
    fn writing(&self) -> Writing {
        match self.elastic.carries {
            Carries::Endless | Carries::Transfers { .. } => Writing::default(),
            Carries::Once(octets) => Writing { payload_octets: Some(octets), ..Writing::default() },
            Carries::Chunks { rate, chunk } => {
                // A chunk is as many blocks as it needs, all at once.
                let octets = rate.octets_in(chunk).max(1);
                let blocks = u16::try_from(octets.div_ceil(MOST_BLOCK_OCTETS)).unwrap_or(u16::MAX);
                let block = u32::try_from(octets.div_ceil(u64::from(blocks))).unwrap_or(u32::MAX);
                Writing { block_octets: Some(block), pace: Some((rate, blocks)), ..Writing::default() }
            }
        }
    }
}

/// What a connection did.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) flow: usize,
    pub(super) sent: Sent,
    pub(super) complaint: Option<String>,
}

/// What all connections of a run have in common.
#[derive(Debug)]
pub(super) struct Elastic {
    pub(super) shared: Arc<Shared>,
    pub(super) sink: SocketAddr,
    pub(super) token: u64,
    pub(super) began_ns: i64,
    pub(super) interval_ns: u64,
}

/// A connection under way.
struct Row {
    plan: Connection,
    bulk: Option<BulkSender>,
    began_ns: u64,
    /// It writes no more, and what is on its way has until then (monotonic).
    draining_until: Option<i64>,
    ended: bool,
    next_sample_ns: u64,
    acked_before: u64,
    retransmitted_before: u64,
    outcome: Outcome,
}

/// Octets of one write at most.
const MOST_BLOCK_OCTETS: u64 = 1 << 20;
/// The list of what this host's kernel lets anyone use.
const OFFERED: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// How long an end may take until everything written is acknowledged.
const DRAIN_NS: i64 = 2_000_000_000;
const CONNECT: Duration = Duration::from_secs(5);
/// Intervals of one connection at most; a sample is a system call.
const INTERVALS: usize = 20_000;

/// Refuses a congestion control that this host does not have.
pub(super) fn offered(wanted: &str) -> Result<(), TrafficError> {
    let offered = std::fs::read_to_string(OFFERED).map_err(TrafficError::host("list its congestion controls"))?;
    if offered.split_whitespace().any(|name| name == wanted) {
        return Ok(());
    }
    Err(TrafficError::Congestion { wanted: wanted.to_owned(), offered: offered.trim().to_owned() })
}

impl Elastic {
    pub(super) fn run(self, plans: Vec<Connection>) -> Vec<Outcome> {
        const POLL_NS: i64 = 5_000_000;
        let run = Arc::new(self);
        let (mut rows, mut transfers) = (Vec::new(), Vec::new());
        for plan in plans {
            match Transfers::new(&plan) {
                Some(short) => transfers.push(short),
                None => rows.push(Row::new(plan)),
            }
        }
        while rows.iter().any(|row: &Row| !row.ended) || transfers.iter().any(|short| !short.ended()) {
            let now = run.since();
            let stop = run.shared.stop.load(Ordering::Relaxed);
            for short in &mut transfers {
                short.advance(&run, now, stop);
            }
            for row in rows.iter_mut().filter(|row| !row.ended) {
                if let Some(give_up) = row.draining_until {
                    row.drain(give_up);
                } else if stop || row.spent() || row.plan.until_ns.is_some_and(|until| until <= now) {
                    row.end(now, &run);
                } else if row.bulk.is_none() && row.plan.from_ns <= now {
                    row.begin(&run, now);
                } else if row.bulk.is_some() && row.next_sample_ns <= now {
                    row.sample(now, &run);
                }
            }
            clock::sleep_until_ns(clock::now_ns() + POLL_NS);
        }
        let short = transfers.into_iter().map(Transfers::outcome);
        rows.into_iter().map(|row| row.outcome).chain(short).collect()
    }

    pub(super) fn since(&self) -> u64 {
        u64::try_from(clock::now_ns() - self.began_ns).unwrap_or(0)
    }

    pub(super) fn open(&self, plan: &Connection) -> std::io::Result<BulkSender> {
        let options = TransferOptions {
            congestion: Some(plan.elastic.control.clone()),
            window_octets: plan.elastic.window_octets,
            pacing: plan.elastic.pacing,
            ..TransferOptions::default()
        };
        let mut stream = connect(self.sink, &options, CONNECT)?;
        let flow = u32::try_from(plan.flow).unwrap_or(u32::MAX);
        let mut line = serde_json::to_vec(&Request::Data(Data { token: self.token, flow }))?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let mut bulk = BulkSender::new(plan.writing());
        bulk.add(stream)?;
        Ok(bulk)
    }
}

impl Row {
    fn new(plan: Connection) -> Self {
        let flow = plan.flow;
        Self {
            plan,
            bulk: None,
            began_ns: 0,
            draining_until: None,
            ended: false,
            next_sample_ns: 0,
            acked_before: 0,
            retransmitted_before: 0,
            outcome: Outcome { flow, sent: Sent::default(), complaint: None },
        }
    }

    fn begin(&mut self, run: &Elastic, now: u64) {
        match run.open(&self.plan) {
            Ok(bulk) => {
                let settings = bulk.settings().into_iter().next();
                let congestion = settings.map_or_else(String::new, |settings| settings.congestion);
                if congestion != self.plan.elastic.control {
                    let wanted = self.plan.elastic.control.clone();
                    let why = format!("the kernel uses {congestion} instead of {wanted}");
                    self.complain(&why);
                }
                self.outcome.sent.tcp = Some(TcpSent { congestion, ..TcpSent::default() });
                self.outcome.sent.interval_ns = run.interval_ns;
                self.bulk = Some(bulk);
                self.began_ns = now;
                self.next_sample_ns = now + run.interval_ns;
            }
            Err(error) => {
                self.complain(&format!("cannot connect: {error}"));
                self.ended = true;
            }
        }
    }

    /// All that it was to carry has arrived.
    fn spent(&self) -> bool {
        self.bulk.as_ref().is_some_and(BulkSender::spent)
    }

    fn complain(&mut self, why: &str) {
        let flow = self.plan.flow;
        self.outcome.complaint.get_or_insert(format!("flow {flow}: {why}"));
    }

    /// Closes an interval.
    fn sample(&mut self, now: u64, run: &Elastic) {
        self.next_sample_ns += run.interval_ns.max(1);
        if self.bulk.as_ref().is_some_and(BulkSender::broken) {
            self.complain("the connection broke");
        }
        let Some(bulk) = &self.bulk else { return };
        let Some(sample) = bulk.samples().ok().and_then(|samples| samples.into_iter().next()) else {
            return;
        };
        let sent = &mut self.outcome.sent;
        let retransmitted = u64::from(sample.retransmitted_segments);
        if sent.intervals.len() < INTERVALS {
            sent.intervals.push(SentInterval {
                from_ns: sent.span_ns,
                packets: 0,
                octets: sample.acked_octets.saturating_sub(self.acked_before),
                cwnd_segments: Some(sample.cwnd_segments),
                rtt_ns: u64::try_from(sample.rtt.as_nanos()).ok(),
                retransmitted_segments: Some(retransmitted.saturating_sub(self.retransmitted_before)),
            });
            (self.acked_before, self.retransmitted_before) = (sample.acked_octets, retransmitted);
        }
        let more = sample.acked_octets.saturating_sub(sent.octets);
        run.shared.tcp_octets.fetch_add(more, Ordering::Relaxed);
        sent.octets = sample.acked_octets;
        sent.span_ns = now.saturating_sub(self.began_ns);
        sent.planned_span_ns = sent.span_ns;
        if let Some(tcp) = &mut sent.tcp {
            tcp.mss_octets = sample.mss_octets;
            tcp.retransmitted_segments = retransmitted;
            tcp.min_rtt_ns = sample.min_rtt.and_then(|rtt| u64::try_from(rtt.as_nanos()).ok());
        }
    }

    /// Writes no more; what is on its way gets a while.
    fn end(&mut self, now: u64, run: &Elastic) {
        if self.bulk.is_none() {
            self.ended = true;
            return;
        }
        self.sample(now, run);
        if let Some(bulk) = &mut self.bulk {
            bulk.finish_writing();
        }
        self.draining_until = Some(clock::now_ns() + DRAIN_NS);
    }

    fn drain(&mut self, give_up_ns: i64) {
        let open = self.bulk.as_ref().is_some_and(|bulk| !bulk.drained() && !bulk.broken());
        if !open || clock::now_ns() >= give_up_ns {
            self.bulk = None;
            self.ended = true;
        }
    }
}
