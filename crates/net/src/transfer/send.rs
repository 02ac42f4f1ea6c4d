//! The sending side: each connection is kept full by a thread of its own.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use estimate::probe::TcpSample;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use units::BitRate;

use super::connection::{congestion, set_pacing};
use super::info::TcpInfo;
use crate::clock;
use crate::pace::Payloads;

/// Octets of one write: within the range where neither calls nor cache misses dominate (ours; iperf3 uses the same by default).
const BLOCK_OCTETS: usize = 128 << 10;
/// CPU time is noted this often.
const CPU_EVERY_NS: i64 = 5_000_000;

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    broken: AtomicBool,
    cpu_ns: AtomicU64,
}

#[derive(Debug)]
struct Connection {
    stream: Arc<TcpStream>,
    congestion: String,
    acked_before: u64,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The connections of a transfer that sends. Dropping it breaks them off.
#[derive(Debug, Default)]
pub struct BulkSender {
    connections: Vec<Connection>,
}

impl BulkSender {
    /// Without any connection yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more connection, which is kept full from now on.
    pub fn add(&mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let congestion = congestion(&stream);
        let acked_before = TcpInfo::read(&stream, &congestion)?.acked_octets();
        let stream = Arc::new(stream);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            cpu_ns: AtomicU64::new(0),
        });
        let (writer, state) = (Arc::clone(&stream), Arc::clone(&shared));
        let seed = 1 + self.connections.len() as u64;
        let thread = std::thread::Builder::new()
            .name(format!("bulk-{}", self.connections.len()))
            .spawn(move || write_all(&writer, &state, seed))?;
        self.connections.push(Connection {
            stream,
            congestion,
            acked_before,
            shared,
            thread: Some(thread),
        });
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
        self.connections
            .iter()
            .map(|connection| Ok(connection.info()?.sample(connection.acked_before)))
            .collect()
    }

    /// The congestion control that each connection really uses, and the send buffer that it really has, in octets of the kernel's
    /// own accounting.
    pub fn settings(&self) -> Vec<(String, Option<u32>)> {
        let granted = |stream: &TcpStream| socket2::SockRef::from(stream).send_buffer_size().ok();
        self.connections
            .iter()
            .map(|connection| {
                let buffer = granted(&connection.stream).and_then(|octets| u32::try_from(octets).ok());
                (connection.congestion.clone(), buffer)
            })
            .collect()
    }

    /// Limits every connection's rate; `None` lifts the limit.
    pub fn pace(&self, rate: Option<BitRate>) -> io::Result<()> {
        self.connections
            .iter()
            .try_for_each(|connection| set_pacing(&*connection.stream, rate))
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
        self.connections
            .iter()
            .any(|connection| connection.shared.broken.load(Ordering::Relaxed))
    }

    /// Writes no more, and says so to the peer behind the last octet. What is in the buffers still goes.
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
    fn info(&self) -> io::Result<TcpInfo> {
        TcpInfo::read(&*self.stream, &self.congestion)
    }
}

impl Drop for BulkSender {
    fn drop(&mut self) {
        let unfinished = self.connections.iter().any(|connection| connection.thread.is_some());
        if unfinished || !self.drained() {
            for connection in &self.connections {
                // Without this the kernel would go on for minutes to deliver what is left in the buffers.
                let _ = socket2::SockRef::from(&*connection.stream).set_linger(Some(Duration::ZERO));
            }
        }
        self.finish_writing();
    }
}

fn write_all(stream: &TcpStream, shared: &Shared, seed: u64) {
    let look = PollTimeout::from(20u8);
    let block = Payloads::new([BLOCK_OCTETS], seed);
    let (mut at, mut noted) = (0, 0);
    let note = || {
        let cpu = u64::try_from(clock::thread_cpu().as_nanos()).unwrap_or(u64::MAX);
        shared.cpu_ns.store(cpu, Ordering::Relaxed);
    };
    let mut stream_ref = stream;
    while !shared.stop.load(Ordering::Relaxed) {
        match stream_ref.write(&block.get(0)[at..]) {
            Ok(written) => at = (at + written) % BLOCK_OCTETS,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut fds = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
                // An interrupted or failed wait is followed by another write, which says what is wrong.
                let _ = poll(&mut fds, look);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                shared.broken.store(true, Ordering::Relaxed);
                break;
            }
        }
        let now = clock::now_ns();
        if now - noted > CPU_EVERY_NS {
            noted = now;
            note();
        }
    }
    note();
}
