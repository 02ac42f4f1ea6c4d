//! A drop-tail queue and the link behind it, by the recursion of Lindley.

use std::collections::VecDeque;

use narrows_scenario::{Queue, RateChange};
use narrows_units::{BitRate, Framing, nanos};

use crate::NEVER;

/// A FIFO stage: a packet that arrives at `a` begins to be sent at
/// `max(a, departure of the packet before)` and leaves when its octets on the wire have taken their
/// time.
#[derive(Debug)]
pub(crate) struct Link {
    framing: Framing,
    queue: Queue,
    rate_bps: u64,
    /// Later rates, the next one last.
    changes: Vec<RateChange>,
    /// No look at the schedule is needed before this time.
    next_change: u64,
    /// When the link is idle again: whole nanoseconds …
    free: u64,
    /// … and this many `1 / rate_bps` of one.
    part: u64,
    /// Departures of packets that are still there, with their IP octets; unused if the queue is
    /// unlimited.
    held: VecDeque<(u64, u16)>,
    held_octets: u64,
    memo: Box<[Serialisation; MEMO]>,
}

/// Time that packets of one size occupy the link.
#[derive(Debug, Clone, Copy)]
struct Serialisation {
    ip_octets: u16,
    whole: u64,
    part: u64,
}

const MEMO: usize = 64;
/// Above 10^18 bit/s every packet takes the nanosecond that it is rounded up to, and sums of
/// fractions would overflow.
const FASTEST_BPS: u64 = 1_000_000_000_000_000_000;

const NOTHING: Serialisation = Serialisation { ip_octets: 0, whole: 0, part: 0 };

impl Link {
    pub(crate) fn new(rate: BitRate, framing: Framing, queue: Queue, schedule: &[RateChange]) -> Self {
        let mut changes = schedule.to_vec();
        changes.sort_by_key(|change| std::cmp::Reverse(change.at));
        let next_change = changes.last().map_or(NEVER, |change| nanos(change.at));
        Self {
            framing,
            queue,
            rate_bps: rate.bps().min(FASTEST_BPS),
            changes,
            next_change,
            free: 0,
            part: 0,
            held: VecDeque::new(),
            held_octets: 0,
            memo: Box::new([NOTHING; MEMO]),
        }
    }

    /// A host's interface: Ethernet, and the host waits for it.
    pub(crate) fn interface(rate: BitRate) -> Self {
        Self::new(rate, Framing::ETHERNET, Queue::Unlimited, &[])
    }

    /// Takes a packet that arrives at `at`, which is no earlier than the last one's arrival.
    /// Returns when its last bit has left, [`NEVER`] if the link has stopped for good; `None` if
    /// the queue is full.
    #[inline]
    pub(crate) fn serve(&mut self, at: u64, ip_octets: u16) -> Option<u64> {
        if !self.has_room(at, ip_octets) {
            return None;
        }
        let idle_from = self.idle_from();
        let idle = at >= idle_from;
        let begin = at.max(idle_from);
        self.free = if idle { at } else { self.free };
        self.part = if idle { 0 } else { self.part };
        if begin >= self.next_change {
            self.follow_schedule(begin);
        }
        let departure = if self.free == NEVER {
            NEVER
        } else {
            let time = self.serialisation(ip_octets);
            let part = self.part + time.part;
            let carry = part >= self.rate_bps;
            self.part = part - if carry { self.rate_bps } else { 0 };
            self.free = self.free.saturating_add(time.whole + u64::from(carry));
            self.free.saturating_add(u64::from(self.part > 0))
        };
        if self.queue != Queue::Unlimited {
            self.held.push_back((departure, ip_octets));
            self.held_octets += u64::from(ip_octets);
        }
        Some(departure)
    }

    /// IP octets that a packet that arrives at `at` finds, the one being sent included; zero if the
    /// queue is unlimited.
    pub(super) fn waiting(&mut self, at: u64) -> u64 {
        self.let_go(at);
        self.held_octets
    }

    /// Time for which a packet of this length occupies the link, whole nanoseconds.
    pub(super) fn time_of(&mut self, ip_octets: u16) -> u64 {
        if self.rate_bps == 0 { NEVER } else { self.serialisation(ip_octets).whole }
    }

    /// When all that it has taken has left.
    #[inline]
    pub(super) fn idle_from(&self) -> u64 {
        self.free.saturating_add(u64::from(self.part > 0))
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.held.capacity()
    }

    #[inline]
    fn has_room(&mut self, at: u64, ip_octets: u16) -> bool {
        if self.queue == Queue::Unlimited {
            return true;
        }
        self.let_go(at);
        match self.queue {
            Queue::Octets(limit) => self.held_octets + u64::from(ip_octets) <= limit.count(),
            Queue::Packets(limit) => self.held.len() < limit as usize,
            Queue::Unlimited => true,
        }
    }

    /// Forgets what has left.
    #[inline]
    fn let_go(&mut self, at: u64) {
        while let Some(&(departure, octets)) = self.held.front() {
            if departure > at {
                break;
            }
            self.held.pop_front();
            self.held_octets -= u64::from(octets);
        }
    }

    #[inline]
    fn serialisation(&mut self, ip_octets: u16) -> Serialisation {
        let place = &mut self.memo[usize::from(ip_octets) % MEMO];
        if place.ip_octets != ip_octets || ip_octets == 0 {
            let bit_nanos = u64::from(self.framing.wire_octets(u32::from(ip_octets))) * 8_000_000_000;
            *place = Serialisation { ip_octets, whole: bit_nanos / self.rate_bps, part: bit_nanos % self.rate_bps };
        }
        *place
    }

    /// Brings the rate to what it is when the next packet would begin, and moves that begin to the
    /// end of a stop.
    #[cold]
    fn follow_schedule(&mut self, mut begin: u64) {
        while let Some(change) = self.changes.last().copied() {
            let at = nanos(change.at);
            if at > begin {
                if self.rate_bps > 0 {
                    break;
                }
                (begin, self.free, self.part) = (at, at, 0);
            }
            self.changes.pop();
            let rate = change.rate.bps().min(FASTEST_BPS);
            if let Some(part) = (u128::from(self.part) * u128::from(rate)).checked_div(u128::from(self.rate_bps)) {
                self.part = u64::try_from(part).unwrap_or(0);
            }
            self.rate_bps = rate;
            self.memo.fill(NOTHING);
        }
        if self.rate_bps == 0 {
            (self.free, self.part) = (NEVER, 0);
        }
        self.next_change = self.changes.last().map_or(NEVER, |change| nanos(change.at));
    }
}
