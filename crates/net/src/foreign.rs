//! What a connection that is not part of a load sees of it: how long it takes to open one.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock;
use crate::transfer::{TransferOptions, prepare};

/// Connections are opened this often (ours: some 10 kbit/s), and waited for so long.
const EVERY_NS: i64 = 200_000_000;
const TIMEOUT: Duration = Duration::from_secs(2);
/// Round trips that are kept: two hours of them.
const MOST: usize = 36_000;

/// One connection that was opened, and closed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// When it was begun, since the first.
    pub at: Duration,
    /// From SYN to its answer, which the far kernel gives: no program takes part. `None`: none came
    /// in time.
    pub took: Option<Duration>,
}

/// Opens connections now and then, until dropped: the `foreign` probes of the responsiveness draft
/// of the IETF's IPPM group, of which these are the first part (TCP without TLS and HTTP).
#[derive(Debug)]
pub struct Foreign {
    stop: Arc<AtomicBool>,
    opened: Arc<Mutex<Vec<Opened>>>,
    thread: Option<JoinHandle<()>>,
}

impl Foreign {
    /// Begins; `near` is the local address to open them from. Without a thread nothing is opened.
    pub fn start(peer: SocketAddr, near: Option<IpAddr>) -> Self {
        let (stop, opened) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Vec<Opened>>>::default());
        let (asked, kept) = (Arc::clone(&stop), Arc::clone(&opened));
        let options =
            TransferOptions { near: near.map(|address| SocketAddr::new(address, 0)), ..TransferOptions::default() };
        let thread =
            std::thread::Builder::new().name("foreign".to_owned()).spawn(move || probe(peer, &options, &asked, &kept));
        Self { stop, opened, thread: thread.ok() }
    }

    /// What was found; ends it.
    pub fn stop(mut self) -> Vec<Opened> {
        self.end();
        std::mem::take(&mut self.opened.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked opens nothing more either.
            let _ = thread.join();
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.end();
    }
}

fn probe(peer: SocketAddr, options: &TransferOptions, stop: &AtomicBool, kept: &Mutex<Vec<Opened>>) {
    const POLL_NS: i64 = 20_000_000;
    let since = |from: i64| Duration::from_nanos(u64::try_from(clock::now_ns() - from).unwrap_or(0));
    let began = clock::now_ns();
    let mut next = began;
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now_ns();
        if now < next {
            clock::sleep_until_ns(next.min(now + POLL_NS));
            continue;
        }
        next = next.saturating_add(EVERY_NS).max(now);
        let Ok(socket) = prepare(peer, options) else { return };
        let at = since(began);
        let asked = clock::now_ns();
        let answered = socket.connect_timeout(&peer.into(), TIMEOUT).is_ok();
        let took = answered.then(|| since(asked));
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST {
            kept.push(Opened { at, took });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn connections_are_timed_and_refusals_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        for (closed, listener) in [(false, Some(listener)), (true, None)] {
            let foreign = Foreign::start(peer, Some([127, 0, 0, 1].into()));
            clock::sleep_until_ns(clock::now_ns() + 300_000_000);
            let opened = foreign.stop();
            assert!((1..=3).contains(&opened.len()), "{opened:?}");
            for one in &opened {
                assert_eq!(one.took.is_none(), closed, "{one:?}");
            }
            assert!(opened.is_sorted_by_key(|one| one.at));
            drop(listener);
        }
    }
}
