//! TCP streams: one thread writes as much as the plan allows, or reads until the end.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::stream::{SendPlan, Shared};
use crate::clock;
use crate::pace::Payloads;
use crate::sys::send::send_file;

/// A thread looks at its stop flag at least this often.
const LOOK_NS: i64 = 20_000_000;
/// CPU time is noted this often.
const CPU_EVERY_NS: i64 = 5_000_000;
/// Octets of one write at most, as the protocol has it.
const MOST_BLOCK: usize = 1 << 20;
/// Octets of one read at most.
const MOST_READ: usize = 128 << 10;
/// A paced stream that fell behind makes up for this much (ours: an outage longer than that is the path's, not the schedule's).
const MOST_DEBT_NS: i64 = 1_000_000_000;

/// What comes longer than this after the end is not waited for, however much it is.
pub(super) const LAST_CALL_NS: i64 = 100_000_000;

/// What every connection sends: random, so that nothing on the way can make it smaller; one copy for all.
fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Payloads> = OnceLock::new();
    PATTERN.get_or_init(|| Payloads::new([MOST_BLOCK], 0x1ef3)).get(0)
}

/// Where the octets of a block come from.
enum Source {
    Memory,
    /// The same octets in the page cache, from where the kernel sends them without a copy.
    Pages(File),
}

impl Source {
    fn new(zero_copy: bool) -> Self {
        let pages = || -> io::Result<File> {
            let mut file = File::from(memfd_create("narrows-pattern", MFdFlags::MFD_CLOEXEC)?);
            file.write_all(pattern())?;
            Ok(file)
        };
        // A host without such files sends from memory.
        if zero_copy && let Ok(file) = pages() {
            return Self::Pages(file);
        }
        Self::Memory
    }

    fn send(&self, mut stream: &TcpStream, at: usize, end: usize) -> io::Result<usize> {
        match self {
            Self::Memory => stream.write(&pattern()[at..end]),
            Self::Pages(file) => send_file(stream.as_fd(), file.as_fd(), at, end - at),
        }
    }
}

/// Writes until it is told to stop, or has sent all that there is to send.
pub(super) fn send(stream: &TcpStream, shared: &Shared, plan: &SendPlan) {
    let source = Source::new(plan.zero_copy);
    let block = plan.block.clamp(1, MOST_BLOCK);
    let mut pace = Pace::new(plan.rate_bps);
    let (mut at, mut end, mut noted) = (0, 0, 0);
    loop {
        let now = clock::now_ns();
        if shared.stopped() || now >= plan.until_ns {
            break;
        }
        if now - noted > CPU_EVERY_NS {
            noted = now;
            shared.note_cpu();
        }
        if at == end {
            if !pace.due(now) {
                continue;
            }
            (at, end) = (0, usize::try_from(plan.purse.take(block as u64)).unwrap_or(0));
            if end == 0 {
                break;
            }
            pace.spend(end as u64);
        }
        match source.send(stream, at, end) {
            Ok(0) => {
                shared.broken.store(true, Ordering::Relaxed);
                break;
            }
            Ok(written) => {
                at += written;
                shared.octets.fetch_add(written as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(stream, PollFlags::POLLOUT),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                shared.broken.store(true, Ordering::Relaxed);
                break;
            }
        }
    }
    // What was taken and not sent is nobody's.
    plan.purse.give_back((end - at) as u64);
    shared.note_cpu();
}

/// Reads until the peer's end, or until it is told to stop and nothing more waits.
pub(super) fn receive(stream: &TcpStream, shared: &Shared, block: usize) {
    let mut room = vec![0; block.clamp(4_096, MOST_READ)];
    let (mut noted, mut last_call) = (0, None);
    let mut reader = stream;
    loop {
        if shared.stopped() && clock::now_ns() > *last_call.get_or_insert_with(|| clock::now_ns() + LAST_CALL_NS) {
            break;
        }
        match reader.read(&mut room) {
            Ok(0) => break,
            Ok(read) => {
                let now = clock::now_ns();
                shared.octets.fetch_add(read as u64, Ordering::Relaxed);
                shared.last_ns.store(now, Ordering::Relaxed);
                if now - noted > CPU_EVERY_NS {
                    noted = now;
                    shared.note_cpu();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if shared.stopped() {
                    break;
                }
                wait(stream, PollFlags::POLLIN);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                shared.broken.store(true, Ordering::Relaxed);
                break;
            }
        }
    }
    shared.ended.store(true, Ordering::Relaxed);
    shared.note_cpu();
}

/// An interrupted or failed wait is followed by another call on the socket, which says what is wrong.
fn wait(stream: &TcpStream, wanted: PollFlags) {
    let mut fds = [PollFd::new(stream.as_fd(), wanted)];
    let _ = poll(&mut fds, PollTimeout::from(20u8));
}

/// When blocks may be written, where there is a rate: the mean rate since the begin is kept.
struct Pace {
    rate_bps: u64,
    base_ns: i64,
    sent_bits: u128,
}

impl Pace {
    fn new(rate_bps: u64) -> Self {
        Self {
            rate_bps,
            base_ns: clock::now_ns(),
            sent_bits: 0,
        }
    }

    /// Whether a block may be written; if not, waits until one may or it is time to look around.
    fn due(&mut self, now: i64) -> bool {
        let offset = (self.sent_bits * 1_000_000_000).checked_div(u128::from(self.rate_bps));
        let Some(offset) = offset else { return true };
        let target = self.base_ns.saturating_add(i64::try_from(offset).unwrap_or(i64::MAX));
        if now < target {
            clock::sleep_until_ns(target.min(now + LOOK_NS));
            return false;
        }
        if now - target > MOST_DEBT_NS {
            self.base_ns += now - target - MOST_DEBT_NS;
        }
        true
    }

    fn spend(&mut self, octets: u64) {
        self.sent_bits += u128::from(octets) * 8;
    }
}
