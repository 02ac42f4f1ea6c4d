//! Where the octets of a connection come from, and when they may be written.

use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::clock;
use crate::pace::Payloads;
use crate::sys::send::send_file;

/// Octets of one write at most, as iperf3's protocol has it and ours too.
pub(crate) const MOST_BLOCK: usize = 1 << 20;
/// A thread looks at its stop flag at least this often.
const POLL_NS: i64 = 20_000_000;
/// A paced stream that fell behind makes up for this much (ours: an outage longer than that is the
/// path's, not the schedule's).
const MOST_DEBT_NS: i64 = 1_000_000_000;

/// What every connection sends: random, so that nothing on the way can make it smaller; one copy
/// for all.
fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Payloads> = OnceLock::new();
    PATTERN.get_or_init(|| Payloads::new([MOST_BLOCK], 0x1ef3)).get(0)
}

/// Where the octets of a block come from.
pub(crate) enum Source {
    Memory,
    /// The same octets in the page cache, from where the kernel sends them without a copy.
    Pages(File),
}

impl Source {
    pub(crate) fn new(zero_copy: bool) -> Self {
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

    /// Sends the octets from `at` to `end` of a block, as many as go.
    pub(crate) fn send(&self, mut stream: &TcpStream, at: usize, end: usize) -> io::Result<usize> {
        match self {
            Self::Memory => stream.write(&pattern()[at..end]),
            Self::Pages(file) => send_file(stream.as_fd(), file.as_fd(), at, end - at),
        }
    }
}

/// When blocks may be written, where there is a rate: the mean rate since the begin is kept.
pub(crate) struct Pace {
    rate_bps: u64,
    /// Blocks at a time, and those of the burst under way.
    burst: u32,
    written: u32,
    base_ns: i64,
    sent_bits: u128,
}

impl Pace {
    /// Payload bit/s (0: as fast as it goes), and how many blocks leave at a time.
    pub(crate) fn new(rate_bps: u64, burst: u32) -> Self {
        Self { rate_bps, burst: burst.max(1), written: 0, base_ns: clock::now_ns(), sent_bits: 0 }
    }

    /// When the next block may be written; `None`: at once.
    fn next_ns(&self) -> Option<i64> {
        if self.written > 0 {
            return None;
        }
        let offset = (self.sent_bits * 1_000_000_000).checked_div(u128::from(self.rate_bps))?;
        Some(self.base_ns.saturating_add(i64::try_from(offset).unwrap_or(i64::MAX)))
    }

    /// Whether a block may be written; if not, waits until one may or it is time to look around.
    pub(crate) fn due(&mut self, now: i64) -> bool {
        let Some(target) = self.next_ns() else { return true };
        if now < target {
            clock::sleep_until_ns(target.min(now + POLL_NS));
            return false;
        }
        if now - target > MOST_DEBT_NS {
            self.base_ns += now - target - MOST_DEBT_NS;
        }
        true
    }

    /// A block of so many octets is written.
    pub(crate) fn spend(&mut self, octets: u64) {
        self.sent_bits += u128::from(octets) * 8;
        self.written = (self.written + 1) % self.burst;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_keep_the_rate() {
        let mut pace = Pace::new(8_000_000, 3);
        let base = pace.base_ns;
        for block in 0..9 {
            // A thousand octets take a millisecond; three leave at a time.
            let expected = (block % 3 == 0).then_some(base + block * 1_000_000);
            assert_eq!(pace.next_ns(), expected, "{block}");
            pace.spend(1_000);
        }
        let mut endless = Pace::new(0, 1);
        endless.spend(u64::MAX);
        assert_eq!(endless.next_ns(), None);
    }
}
