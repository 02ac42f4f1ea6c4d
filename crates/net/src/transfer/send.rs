//! The sending side: each connection is kept full by a thread of its own.

use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_probe::probes::TcpSample;
use narrows_units::{BitRate, nanos};

use super::connection::{congestion, marked, set_pacing, wait_in_calls};
use super::info::TcpInfo;
use super::source::{MOST_BLOCK, Pace, Source};
use crate::clock;
use crate::send_budget::SendBudget;

/// Octets of one write: within the range where neither calls nor cache misses dominate (ours;
/// iperf3 uses the same by default).
const BLOCK_OCTETS: usize = 128 << 10;
/// CPU time is noted this often.
const CPU_EVERY_NS: i64 = 5_000_000;

/// How the connections of a transfer are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Writing {
    /// Octets of one write, a megabyte at most; `None`: 128 KiB.
    pub block_octets: Option<u32>,
    /// Without copying them into the kernel.
    pub zero_copy: bool,
    /// Payload rate of each connection that the program keeps, and how many blocks leave at a time.
    pub pace: Option<(BitRate, u16)>,
    /// What all connections send together, and then no more.
    pub payload_octets: Option<u64>,
}

/// How a connection really stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its congestion control.
    pub congestion: String,
    /// Its send buffer, in octets of the kernel's own accounting.
    pub send_buffer_octets: Option<u32>,
    /// DSCP, in the six upper bits.
    pub traffic_class: Option<u8>,
    /// Without Nagle's algorithm.
    pub no_delay: Option<bool>,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    broken: AtomicBool,
    /// There was nothing left to write.
    spent: AtomicBool,
    cpu_ns: AtomicU64,
}

#[derive(Debug)]
struct Connection {
    stream: Arc<TcpStream>,
    /// Known while it stands, and not asked for later: the peer may be gone by then.
    peer: IpAddr,
    congestion: String,
    acked_before: u64,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The connections of a transfer that sends. Dropping it breaks them off.
#[derive(Debug)]
pub struct BulkSender {
    connections: Vec<Connection>,
    writing: Writing,
    send_budget: Arc<SendBudget>,
}

impl Default for BulkSender {
    fn default() -> Self {
        Self::new(Writing::default())
    }
}

impl BulkSender {
    /// Without any connection yet.
    pub fn new(writing: Writing) -> Self {
        Self { connections: Vec::new(), send_budget: Arc::new(SendBudget::new(writing.payload_octets)), writing }
    }

    /// One more connection, which is kept full from now on.
    pub fn add(&mut self, stream: TcpStream) -> io::Result<()> {
        wait_in_calls(&stream)?;
        let congestion = congestion(&stream);
        let peer = stream.peer_addr()?.ip();
        let acked_before = TcpInfo::read(&stream, &congestion)?.acked_octets();
        let stream = Arc::new(stream);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            spent: AtomicBool::new(false),
            cpu_ns: AtomicU64::new(0),
        });
        let (writer, state, send_budget) = (Arc::clone(&stream), Arc::clone(&shared), Arc::clone(&self.send_budget));
        let writing = self.writing;
        let thread = std::thread::Builder::new()
            .name(format!("bulk-{}", self.connections.len()))
            .spawn(move || write_all(&writer, &state, &send_budget, writing))?;
        self.connections.push(Connection { stream, peer, congestion, acked_before, shared, thread: Some(thread) });
        Ok(())
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// What each connection's `TCP_INFO` says now, in the order in which they were added.
    pub fn samples(&self) -> io::Result<Vec<TcpSample>> {
        self.connections.iter().map(|connection| Ok(connection.info()?.sample(connection.acked_before))).collect()
    }

    /// How each connection really stands.
    pub fn settings(&self) -> Vec<Settings> {
        self.connections.iter().map(Connection::settings).collect()
    }

    /// Limits every connection's rate; `None` lifts the limit.
    pub fn pace(&self, rate: Option<BitRate>) -> io::Result<()> {
        self.connections.iter().try_for_each(|connection| set_pacing(&*connection.stream, rate))
    }

    /// CPU time of each sending thread.
    pub fn cpu(&self) -> Vec<Duration> {
        self.connections
            .iter()
            .map(|connection| Duration::from_nanos(connection.shared.cpu_ns.load(Ordering::Relaxed)))
            .collect()
    }

    /// A connection broke: the peer or the path ended it.
    pub fn broken(&self) -> bool {
        self.connections.iter().any(|connection| connection.shared.broken.load(Ordering::Relaxed))
    }

    /// All that was to be sent has been sent, and was acknowledged by the peer's kernel. Never so
    /// where there is no such limit.
    pub fn spent(&self) -> bool {
        let written = |connection: &Connection| connection.shared.spent.load(Ordering::Relaxed);
        self.writing.payload_octets.is_some() && self.connections.iter().all(written) && self.drained()
    }

    /// Writes no more, and says so to the peer behind the last octet. What is in the buffers still
    /// goes.
    pub fn finish_writing(&mut self) {
        for connection in &self.connections {
            connection.shared.stop.store(true, Ordering::Relaxed);
        }
        for connection in &mut self.connections {
            if let Some(thread) = connection.thread.take() {
                // A thread that panicked writes no more either.
                let _ = thread.join();
            }
            // Fails only where the connection is gone already.
            let _ = connection.stream.shutdown(Shutdown::Write);
        }
    }

    /// Everything written was acknowledged by the peer's kernel.
    pub fn drained(&self) -> bool {
        self.connections.iter().all(|connection| {
            connection
                .info()
                .is_ok_and(|info| info.unsent_octets() == Some(0) && info.sample(0).in_flight_segments == 0)
        })
    }
}

impl Connection {
    fn settings(&self) -> Settings {
        let socket = socket2::SockRef::from(&*self.stream);
        Settings {
            congestion: self.congestion.clone(),
            send_buffer_octets: socket.send_buffer_size().ok().and_then(|octets| u32::try_from(octets).ok()),
            traffic_class: marked(&*self.stream, self.peer),
            no_delay: socket.tcp_nodelay().ok(),
        }
    }

    fn info(&self) -> io::Result<TcpInfo> {
        TcpInfo::read(&*self.stream, &self.congestion)
    }
}

impl Drop for BulkSender {
    fn drop(&mut self) {
        let unfinished = self.connections.iter().any(|connection| connection.thread.is_some());
        if unfinished || !self.drained() {
            for connection in &self.connections {
                // Without this the kernel would go on for minutes to deliver what is left in the
                // buffers.
                let _ = socket2::SockRef::from(&*connection.stream).set_linger(Some(Duration::ZERO));
            }
        }
        self.finish_writing();
    }
}

fn write_all(stream: &TcpStream, shared: &Shared, send_budget: &SendBudget, writing: Writing) {
    let source = Source::new(writing.zero_copy);
    let asked = writing.block_octets.and_then(|octets| usize::try_from(octets).ok());
    let block = asked.unwrap_or(BLOCK_OCTETS).clamp(1, MOST_BLOCK);
    let (rate_bps, burst) = writing.pace.map_or((0, 1), |(rate, burst)| (rate.bps(), burst));
    let mut pace = Pace::new(rate_bps, burst.into());
    let (mut at, mut end, mut noted) = (0, 0, 0);
    let note = || {
        let cpu = nanos(clock::thread_cpu());
        shared.cpu_ns.store(cpu, Ordering::Relaxed);
    };
    while !shared.stop.load(Ordering::Relaxed) {
        let now = clock::now_ns();
        if now - noted > CPU_EVERY_NS {
            noted = now;
            note();
        }
        if at == end {
            if !pace.due(now) {
                continue;
            }
            (at, end) = (0, usize::try_from(send_budget.take(block as u64)).unwrap_or(0));
            if end == 0 {
                shared.spent.store(true, Ordering::Relaxed);
                break;
            }
            pace.spend(end as u64);
        }
        match source.send(stream, at, end) {
            Ok(written) => at += written,
            // Nothing could be written for as long as a call may wait.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => {
                shared.broken.store(true, Ordering::Relaxed);
                break;
            }
        }
    }
    // What was taken and not sent is nobody's.
    send_budget.give_back((end - at) as u64);
    note();
}
