//! The receiving side: each connection is read by a thread of its own until its end.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_units::nanos;
use nix::sys::socket::{MsgFlags, recv};

use super::connection::{LOTS_FROM_OCTETS, read_in_lots, wait_in_calls};
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
    block: usize,
    threads: Vec<JoinHandle<()>>,
    cpu_ns: Vec<Arc<AtomicU64>>,
}

/// Octets of one read (ours: the write's size, which a processor's cache next to its core holds),
/// and at least.
const BLOCK_OCTETS: usize = 128 << 10;
const LEAST_BLOCK: usize = 4 << 10;
/// CPU time is noted this often.
const CPU_EVERY_NS: i64 = 5_000_000;

impl BulkReceiver {
    /// Without any connection yet.
    pub fn new() -> Self {
        Self::reading(None)
    }

    /// Likewise; reads blocks of so many octets, if that is neither very little nor more than it
    /// reads by itself.
    pub fn reading(block_octets: Option<u32>) -> Self {
        let asked = block_octets.and_then(|octets| usize::try_from(octets).ok());
        Self {
            block: asked.map_or(BLOCK_OCTETS, |octets| octets.clamp(LEAST_BLOCK, BLOCK_OCTETS)),
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
        wait_in_calls(&stream)?;
        let cpu_ns = Arc::new(AtomicU64::new(0));
        self.cpu_ns.push(Arc::clone(&cpu_ns));
        self.shared.open.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        let block = self.block;
        let thread = std::thread::Builder::new().name(format!("sink-{}", self.threads.len())).spawn(move || {
            shared.read_all(&stream, block, &cpu_ns);
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
        let (first, last) = (self.shared.first_ns.load(Ordering::Relaxed), self.shared.last_ns.load(Ordering::Relaxed));
        Progress {
            octets: self.shared.octets.load(Ordering::Relaxed),
            span_ns: (first <= last).then_some((first, last)),
            open: self.shared.open.load(Ordering::Relaxed),
            cpu: self.cpu_ns.iter().map(|nanos| Duration::from_nanos(nanos.load(Ordering::Relaxed))).collect(),
        }
    }

    /// Waits until every connection has ended, or `deadline_ns` (monotonic) passes, or `stop` is
    /// set.
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
    fn read_all(&self, stream: &TcpStream, block: usize, cpu_ns: &AtomicU64) {
        let mut block = vec![0; block];
        let (mut noted, mut own, mut lots) = (0, 0, false);
        let note = || {
            let cpu = nanos(clock::thread_cpu());
            cpu_ns.store(cpu, Ordering::Relaxed);
        };
        while !self.stop.load(Ordering::Relaxed) {
            match take(stream, &mut block) {
                Ok(0) => break,
                Ok(read) => {
                    let now = clock::now_ns();
                    self.first_ns.fetch_min(now, Ordering::Relaxed);
                    self.last_ns.fetch_max(now, Ordering::Relaxed);
                    self.octets.fetch_add(read as u64, Ordering::Relaxed);
                    own += read as u64;
                    if !lots && own >= LOTS_FROM_OCTETS {
                        lots = true;
                        read_in_lots(stream);
                    }
                    if now - noted > CPU_EVERY_NS {
                        noted = now;
                        note();
                    }
                }
                // Nothing came for as long as a call may wait.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => break,
            }
        }
        note();
    }
}

/// Takes what waits, at most a block, out of the connection. Nobody looks at the octets, so the
/// kernel drops them instead of copying them (`MSG_TRUNC`, tcp(7)): what is measured is the path,
/// and not the copying.
fn take(stream: &TcpStream, block: &mut [u8]) -> io::Result<usize> {
    Ok(recv(stream.as_raw_fd(), block, MsgFlags::MSG_TRUNC)?)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use narrows_units::BitRate;

    use super::*;
    use crate::transfer::{BulkSender, Settings, TransferOptions, Writing, connect};

    const TIMEOUT: Duration = Duration::from_secs(2);

    #[test]
    fn what_was_acknowledged_was_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let options = TransferOptions {
            congestion: Some("reno".to_owned()),
            window_octets: Some(65_536),
            pacing: Some(BitRate::from_mbps(100)),
            no_delay: true,
            traffic_class: 0xb8,
            ..TransferOptions::default()
        };
        let (mut sender, mut receiver) = (BulkSender::default(), BulkReceiver::new());
        for _ in 0..2 {
            let stream = connect(listener.local_addr().unwrap(), &options, TIMEOUT).unwrap();
            receiver.add(listener.accept().unwrap().0).unwrap();
            sender.add(stream).unwrap();
        }
        let begun = clock::now_ns();
        clock::sleep_until_ns(begun + 100_000_000);
        let samples = sender.samples().unwrap();
        sender.finish_writing();
        let deadline = clock::now_ns() + 30_000_000_000;
        while !sender.drained() && clock::now_ns() < deadline {
            clock::sleep_until_ns(clock::now_ns() + 1_000_000);
        }
        let progress = receiver.wait(deadline, &AtomicBool::new(false));
        assert_eq!(progress.open, 0);
        // The end of the data counts as one octet, once acknowledged.
        let ends = 2;
        let acked: u64 = sender.samples().unwrap().iter().map(|sample| sample.acked_octets).sum();
        assert!(progress.octets > 100_000, "{progress:?}");
        assert!((progress.octets..=progress.octets + ends).contains(&acked), "{acked} {progress:?}");
        for (sample, settings) in samples.iter().zip(sender.settings()) {
            assert!(sample.acked_octets > 0 && sample.mss_octets > 500, "{sample:?}");
            assert_eq!(
                settings,
                Settings {
                    congestion: "reno".to_owned(),
                    send_buffer_octets: Some(131_072),
                    traffic_class: Some(0xb8),
                    no_delay: Some(true),
                }
            );
            assert_eq!(sample.pacing_rate.map(|rate| rate <= BitRate::from_mbps(100)), Some(true));
        }
        // 100 Mbit/s per connection, a tenth more, and what the pacing lets through at once: a
        // buffer's content, several times.
        let lasted = clock::now_ns() - begun;
        let at_once = 10 * 131_072;
        assert!((i128::from(progress.octets) - at_once) * 8_000 < i128::from(lasted) * 220, "{progress:?} {lasted}");
        assert!(!sender.broken());
    }

    #[test]
    fn a_peer_that_goes_away_is_noticed_and_a_drop_does_not_hang() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = BulkSender::default();
        sender.add(connect(listener.local_addr().unwrap(), &TransferOptions::default(), TIMEOUT).unwrap()).unwrap();
        drop(listener.accept().unwrap());
        let deadline = clock::now_ns() + 30_000_000_000;
        while !sender.broken() && clock::now_ns() < deadline {
            clock::sleep_until_ns(clock::now_ns() + 1_000_000);
        }
        assert!(sender.broken());
        // A peer that does not read.
        let mut sender = BulkSender::default();
        sender.add(connect(listener.local_addr().unwrap(), &TransferOptions::default(), TIMEOUT).unwrap()).unwrap();
        clock::sleep_until_ns(clock::now_ns() + 20_000_000);
        assert!(!sender.drained());
        let begun = clock::now_ns();
        drop(sender);
        assert!(clock::now_ns() - begun < 30_000_000_000);
    }

    #[test]
    fn no_more_is_sent_than_there_is_to_send() {
        const OCTETS: u64 = 1_000_001;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for (zero_copy, block, pace) in [
            (false, None, None),
            (true, Some(1 << 20), None),
            // A block of 10 kB each millisecond, ten at a time: a tenth of a second for each of two
            // connections.
            (false, Some(10_000), Some((BitRate::from_mbps(80), 10))),
        ] {
            let writing = Writing { block_octets: block, zero_copy, pace, payload_octets: Some(OCTETS) };
            let options = TransferOptions {
                mss_octets: Some(1_000),
                near: Some("127.0.0.1:0".parse().unwrap()),
                ..TransferOptions::default()
            };
            let (mut sender, mut receiver) = (BulkSender::new(writing), BulkReceiver::reading(block));
            let begun = clock::now_ns();
            for _ in 0..2 {
                let stream = connect(listener.local_addr().unwrap(), &options, TIMEOUT).unwrap();
                receiver.add(listener.accept().unwrap().0).unwrap();
                sender.add(stream).unwrap();
            }
            let deadline = begun + 3_000_000_000;
            while !sender.spent() && clock::now_ns() < deadline {
                clock::sleep_until_ns(clock::now_ns() + 1_000_000);
            }
            assert!(sender.spent(), "{writing:?}");
            let lasted = clock::now_ns() - begun;
            for sample in sender.samples().unwrap() {
                assert!(sample.mss_octets <= 1_000, "{sample:?}");
            }
            sender.finish_writing();
            let progress = receiver.wait(deadline, &AtomicBool::new(false));
            assert_eq!((progress.octets, progress.open), (OCTETS, 0), "{writing:?}");
            // A burst less than the rate would take.
            assert!(pace.is_none() || lasted > 39_000_000, "{lasted}");
        }
    }
}
