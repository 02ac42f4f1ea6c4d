//! What arrived of a UDP stream. Times are arguments.
//!
//! Jitter is that of RFC 3550 §6.4.1. Departs from stock iperf3, which counts a datagram that comes
//! twice as one that was lost less, and one that is out of order as found again whether or not it
//! was missed: here each number counts once.

use std::time::Duration;

use super::datagram::{Counters, DatagramHead};

/// Counters since the stream began.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ArrivalCounts {
    /// Datagrams that arrived for the first time.
    pub distinct: u64,
    /// Their payload octets, and those of duplicates.
    pub octets: u64,
    /// Highest number: datagrams sent as far as this side knows.
    pub highest: u64,
    /// Those that arrived behind a later one.
    pub out_of_order: u64,
    /// Those that arrived again, or too late to say.
    pub duplicates: u64,
    /// Jitter, seconds.
    pub jitter_seconds: f64,
}

impl ArrivalCounts {
    /// Datagrams that are missing.
    pub fn lost(&self) -> u64 {
        self.highest.saturating_sub(self.distinct)
    }
}

/// How far behind the newest a datagram may be and still be told from a duplicate.
const WINDOW: u64 = 65_536;

/// The account of one stream.
#[derive(Debug, Clone)]
pub struct Arrivals {
    counters: Counters,
    counts: ArrivalCounts,
    /// Whether each of the last [`WINDOW`] numbers arrived, by number modulo that.
    seen: Vec<u64>,
    transit_ns: Option<i128>,
}

impl Arrivals {
    /// Of a stream whose numbers have this width.
    pub fn new(counters: Counters) -> Self {
        Self {
            counters,
            counts: ArrivalCounts::default(),
            seen: vec![0; usize::try_from(WINDOW / 64).unwrap_or(0)],
            transit_ns: None,
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> ArrivalCounts {
        self.counts
    }

    /// A datagram came, `payload_octets` long, at `received` by this side's clock. `false` if it is
    /// none of the stream's.
    pub fn datagram(&mut self, octets: &[u8], payload_octets: u64, received: Duration) -> bool {
        let Some(head) = DatagramHead::parse(octets, self.counters) else {
            return false;
        };
        let number = self.unwrapped(head.number);
        // Numbers begin at 1. One that is far ahead of all is an attack on the loss count, or a
        // wrong width of counters.
        if number == 0 || number > self.counts.highest.saturating_add(1 << 31) {
            return false;
        }
        self.counts.octets = self.counts.octets.saturating_add(payload_octets);
        self.place(number);
        self.jitter(head.sent, received);
        true
    }

    /// The number next to the highest one that has these low bits.
    fn unwrapped(&self, number: u64) -> u64 {
        const TURN: u64 = 1 << 32;
        if self.counters == Counters::Bits64 || self.counts.highest < TURN / 2 {
            return number;
        }
        let base = self.counts.highest - self.counts.highest % TURN + number;
        if base > self.counts.highest.saturating_add(TURN / 2) {
            base.saturating_sub(TURN)
        } else if base.saturating_add(TURN / 2) < self.counts.highest {
            base.saturating_add(TURN)
        } else {
            base
        }
    }

    fn place(&mut self, number: u64) {
        let bit = |number: u64| {
            let place = number % WINDOW;
            (usize::try_from(place / 64).unwrap_or(0), 1u64 << (place % 64))
        };
        let (word, mask) = bit(number);
        let counts = &mut self.counts;
        if number > counts.highest {
            if number - counts.highest >= WINDOW {
                self.seen.fill(0);
            } else {
                for skipped in counts.highest + 1..number {
                    let (word, mask) = bit(skipped);
                    self.seen[word] &= !mask;
                }
            }
            self.seen[word] |= mask;
            counts.highest = number;
            counts.distinct += 1;
        } else if counts.highest - number >= WINDOW || self.seen[word] & mask != 0 {
            counts.duplicates += 1;
        } else {
            self.seen[word] |= mask;
            counts.distinct += 1;
            counts.out_of_order += 1;
        }
    }

    fn jitter(&mut self, sent: Duration, received: Duration) {
        let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        let transit = nanos(received) - nanos(sent);
        if let Some(before) = self.transit_ns.replace(transit) {
            let change = (transit - before).unsigned_abs() as f64 / 1e9;
            self.counts.jitter_seconds += (change - self.counts.jitter_seconds) / 16.0;
        }
    }
}
