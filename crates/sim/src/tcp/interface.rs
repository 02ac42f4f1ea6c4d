//! How much of a connection may wait in the sending host (Linux "TCP small queues").

use std::collections::VecDeque;

use narrows_units::{BitRate, Framing, nanos};

use crate::NEVER;

/// What a connection has in the host's interface. A connection may have a millisecond of it there,
/// or two segments, so that the host's own queue does not swell as a router's would. (Linux:
/// `pacing_rate >> 10`, at least two buffers.)
#[derive(Debug)]
pub(super) struct Backlog {
    rate: BitRate,
    /// When this connection's segments leave, if nothing else is there.
    leaving: VecDeque<u64>,
}

const MOST_NS: u64 = 1_000_000;
const LEAST_SEGMENTS: usize = 2;

impl Backlog {
    pub(super) fn new(rate: BitRate) -> Self {
        Self { rate, leaving: VecDeque::new() }
    }

    pub(super) fn push(&mut self, now: u64, ip_octets: u16) {
        let time =
            self.rate.time_for(u64::from(Framing::ETHERNET.wire_octets(u32::from(ip_octets)))).map_or(NEVER, nanos);
        let begin = self.leaving.back().map_or(now, |last| now.max(*last));
        self.leaving.push_back(begin.saturating_add(time));
    }

    pub(super) fn has_room(&mut self, now: u64) -> bool {
        while self.leaving.front().is_some_and(|at| *at <= now) {
            self.leaving.pop_front();
        }
        now >= self.open_at()
    }

    /// When the next segment may come.
    pub(super) fn open_at(&self) -> u64 {
        let too_many = self.leaving.len().checked_sub(LEAST_SEGMENTS);
        let by_count = too_many.and_then(|place| self.leaving.get(place)).copied().unwrap_or(0);
        let by_time = self.leaving.back().map_or(0, |last| last.saturating_sub(MOST_NS));
        by_count.min(by_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment of 1500 octets takes 12.304 µs at 1 Gbit/s and 1230.4 µs at 10 Mbit/s.
    #[test]
    fn a_millisecond_or_two_segments() {
        let admitted = |mbps: u64| {
            let mut backlog = Backlog::new(BitRate::from_mbps(mbps));
            let mut count = 0;
            while backlog.has_room(0) {
                backlog.push(0, 1500);
                count += 1;
            }
            (count, backlog.open_at())
        };
        assert_eq!(admitted(1000), (82, 82 * 12_304 - MOST_NS));
        assert_eq!(admitted(10), (2, 1_230_400));
    }
}
