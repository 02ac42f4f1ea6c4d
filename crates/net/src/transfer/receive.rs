//! The receiving side: each connection is read by a thread of its own until its end.

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::clock;

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    octets: AtomicU64,
    first_ns: AtomicI64,
    last_ns: AtomicI64,
    open: AtomicUsize,
}

/// What was read so far, over all connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Payload octets.
    pub octets: u64,
    /// First and last read with data in it, monotonic nanoseconds; `None` before any data.
    pub span_ns: Option<(i64, i64)>,
    /// Connections that have not ended.
    pub open: usize,
    /// CPU time of each reading thread.
    pub cpu: Vec<Duration>,
}

/// The connections of a transfer that receives. Dropping it closes them.
#[derive(Debug)]
pub struct BulkReceiver {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    cpu_ns: Vec<Arc<AtomicU64>>,
}

/// Octets of one read (ours: the write's size, twice).
const BLOCK_OCTETS: usize = 256 << 10;

impl BulkReceiver {
    /// Without any connection yet.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                stop: AtomicBool::new(false),
                octets: AtomicU64::new(0),
                first_ns: AtomicI64::new(i64::MAX),
                last_ns: AtomicI64::new(i64::MIN),
                open: AtomicUsize::new(0),
            }),
            threads: Vec::new(),
            cpu_ns: Vec::new(),
        }
    }

    /// One more connection, which is read from now on.
    pub fn add(&mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let cpu_ns = Arc::new(AtomicU64::new(0));
        self.cpu_ns.push(Arc::clone(&cpu_ns));
        self.shared.open.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name(format!("sink-{}", self.threads.len()))
            .spawn(move || {
                shared.read_all(&stream, &cpu_ns);
                // Fails only where the connection is gone already.
                let _ = stream.shutdown(Shutdown::Both);
                shared.open.fetch_sub(1, Ordering::Relaxed);
            });
        match thread {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                self.shared.open.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// What was read so far.
    pub fn progress(&self) -> Progress {
        let (first, last) = (
            self.shared.first_ns.load(Ordering::Relaxed),
            self.shared.last_ns.load(Ordering::Relaxed),
        );
        Progress {
            octets: self.shared.octets.load(Ordering::Relaxed),
            span_ns: (first <= last).then_some((first, last)),
            open: self.shared.open.load(Ordering::Relaxed),
            cpu: self
                .cpu_ns
                .iter()
                .map(|nanos| Duration::from_nanos(nanos.load(Ordering::Relaxed)))
                .collect(),
        }
    }

    /// Waits until every connection has ended, or `deadline_ns` (monotonic) passes, or `stop` is set.
    pub fn wait(&self, deadline_ns: i64, stop: &AtomicBool) -> Progress {
        loop {
            let progress = self.progress();
            let now = clock::now_ns();
            if progress.open == 0 || now >= deadline_ns || stop.load(Ordering::Relaxed) {
                return progress;
            }
            clock::sleep_until_ns(deadline_ns.min(now + 2_000_000));
        }
    }

    /// Reads no more, and closes; what was read in all.
    pub fn stop(mut self) -> Progress {
        self.end();
        self.progress()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked reads no more either.
            let _ = thread.join();
        }
    }
}

impl Default for BulkReceiver {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for BulkReceiver {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn read_all(&self, stream: &TcpStream, cpu_ns: &AtomicU64) {
        let look = PollTimeout::from(20u8);
        let mut block = vec![0; BLOCK_OCTETS];
        let mut stream_ref = stream;
        while !self.stop.load(Ordering::Relaxed) {
            match stream_ref.read(&mut block) {
                Ok(0) => break,
                Ok(read) => {
                    let now = clock::now_ns();
                    self.first_ns.fetch_min(now, Ordering::Relaxed);
                    self.last_ns.fetch_max(now, Ordering::Relaxed);
                    self.octets.fetch_add(read as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
                    // An interrupted or failed wait is followed by another read, which says what is wrong.
                    let _ = poll(&mut fds, look);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            cpu_ns.store(
                u64::try_from(clock::thread_cpu().as_nanos()).unwrap_or(u64::MAX),
                Ordering::Relaxed,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use units::BitRate;

    use super::*;
    use crate::transfer::{BulkSender, TransferOptions, connect};

    const TIMEOUT: Duration = Duration::from_secs(2);

    #[test]
    fn what_was_acknowledged_was_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let options = TransferOptions {
            congestion: Some("reno".to_owned()),
            window_octets: Some(65_536),
            pacing: Some(BitRate::from_mbps(100)),
        };
        let (mut sender, mut receiver) = (BulkSender::new(), BulkReceiver::new());
        for _ in 0..2 {
            let stream = connect(listener.local_addr().unwrap(), &options, TIMEOUT).unwrap();
            receiver.add(listener.accept().unwrap().0).unwrap();
            sender.add(stream).unwrap();
        }
        let begun = clock::now_ns();
        clock::sleep_until_ns(begun + 100_000_000);
        let samples = sender.samples().unwrap();
        sender.finish_writing();
        let deadline = clock::now_ns() + 2_000_000_000;
        while !sender.drained() && clock::now_ns() < deadline {
            clock::sleep_until_ns(clock::now_ns() + 1_000_000);
        }
        let progress = receiver.wait(deadline, &AtomicBool::new(false));
        assert_eq!(progress.open, 0);
        // The end of the data counts as one octet, once acknowledged.
        let ends = 2;
        let acked: u64 = sender.samples().unwrap().iter().map(|sample| sample.acked_octets).sum();
        assert!(progress.octets > 100_000, "{progress:?}");
        assert!(
            (progress.octets..=progress.octets + ends).contains(&acked),
            "{acked} {progress:?}"
        );
        for (sample, (congestion, buffer)) in samples.iter().zip(sender.settings()) {
            assert!(sample.acked_octets > 0 && sample.mss_octets > 500, "{sample:?}");
            assert_eq!((congestion.as_str(), buffer), ("reno", Some(131_072)));
            assert_eq!(
                sample.pacing_rate.map(|rate| rate <= BitRate::from_mbps(100)),
                Some(true)
            );
        }
        // 100 Mbit/s per connection, a tenth more, and what the pacing lets through at once: a buffer's content, several times.
        let lasted = clock::now_ns() - begun;
        let at_once = 10 * 131_072;
        assert!(
            (i128::from(progress.octets) - at_once) * 8_000 < i128::from(lasted) * 220,
            "{progress:?} {lasted}"
        );
        assert!(!sender.broken());
    }

    #[test]
    fn a_peer_that_goes_away_is_noticed_and_a_drop_does_not_hang() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = BulkSender::new();
        sender
            .add(connect(listener.local_addr().unwrap(), &TransferOptions::default(), TIMEOUT).unwrap())
            .unwrap();
        drop(listener.accept().unwrap());
        let deadline = clock::now_ns() + 2_000_000_000;
        while !sender.broken() && clock::now_ns() < deadline {
            clock::sleep_until_ns(clock::now_ns() + 1_000_000);
        }
        assert!(sender.broken());
        // A peer that does not read.
        let mut sender = BulkSender::new();
        sender
            .add(connect(listener.local_addr().unwrap(), &TransferOptions::default(), TIMEOUT).unwrap())
            .unwrap();
        clock::sleep_until_ns(clock::now_ns() + 20_000_000);
        assert!(!sender.drained());
        let begun = clock::now_ns();
        drop(sender);
        assert!(clock::now_ns() - begun < 1_000_000_000);
    }
}
