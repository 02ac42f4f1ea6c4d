//! A token bucket.

use std::collections::VecDeque;

use narrows_scenario::{Queue, TokenBucket};
use narrows_units::nanos;

use super::DropCause;
use crate::NEVER;
use crate::rng::Stream;

/// A token bucket, as the time at which it will be full again (the generic cell rate algorithm's
/// virtual scheduling, ITU-T I.371). A packet of time `T` (its IP octets over the token rate) may
/// pass at `s` if `max(full, s) + T − s` is at most the time of the whole depth. Times are exact:
/// whole nanoseconds and a fraction over the token rate.
#[derive(Debug)]
pub(super) struct Bucket {
    rate_bps: u64,
    depth: Exact,
    full: Exact,
    last: u64,
    queue: Option<Queue>,
    /// Most that the timer is late by, ns, and what draws it: half of that or more.
    timer: u64,
    rng: Stream,
    held: VecDeque<(u64, u16)>,
    held_octets: u64,
}

/// Nanoseconds, and this many `1 / rate` of one.
type Exact = (u64, u64);

impl Bucket {
    pub(super) fn new(bucket: &TokenBucket, rng: Stream) -> Self {
        let rate_bps = bucket.rate.bps();
        let bit_nanos = u128::from(bucket.burst.count()) * 8_000_000_000;
        let whole = u64::try_from(bit_nanos / u128::from(rate_bps)).unwrap_or(NEVER);
        let part = u64::try_from(bit_nanos % u128::from(rate_bps)).unwrap_or(0);
        Self {
            rate_bps,
            depth: (whole, part),
            full: (0, 0),
            last: 0,
            queue: bucket.queue,
            timer: nanos(bucket.timer),
            rng,
            held: VecDeque::new(),
            held_octets: 0,
        }
    }

    /// Takes a packet that arrives at `at`, which is no earlier than the last one's arrival.
    /// Returns when it may go on.
    pub(super) fn pass(&mut self, at: u64, ip_octets: u16) -> Result<u64, DropCause> {
        let bit_nanos = u64::from(ip_octets) * 8_000_000_000;
        let time = (bit_nanos / self.rate_bps, bit_nanos % self.rate_bps);
        let spent = self.add(self.full, time);
        let enough = round_up_difference(spent, self.depth);
        let first = at.max(self.last);
        let mut release = first.max(enough);
        if self.timer > 0 && release > first {
            release = release.saturating_add(self.timer / 2 + self.rng.below(self.timer / 2 + 1));
        }
        if release > at {
            self.wait(at, release, ip_octets)?;
        }
        self.last = release;
        self.full = if (release, 0) > self.full { self.add((release, 0), time) } else { spent };
        Ok(release)
    }

    fn wait(&mut self, at: u64, release: u64, ip_octets: u16) -> Result<(), DropCause> {
        let queue = self.queue.ok_or(DropCause::Policer)?;
        while let Some(&(gone, octets)) = self.held.front() {
            if gone > at {
                break;
            }
            self.held.pop_front();
            self.held_octets -= u64::from(octets);
        }
        let room = match queue {
            Queue::Octets(limit) => self.held_octets + u64::from(ip_octets) <= limit.count(),
            Queue::Packets(limit) => self.held.len() < limit as usize,
            Queue::Unlimited => return Ok(()),
        };
        if !room {
            return Err(DropCause::Shaper);
        }
        self.held.push_back((release, ip_octets));
        self.held_octets += u64::from(ip_octets);
        Ok(())
    }

    fn add(&self, a: Exact, b: Exact) -> Exact {
        let part = u128::from(a.1) + u128::from(b.1);
        let carry = part >= u128::from(self.rate_bps);
        let part = if carry { part - u128::from(self.rate_bps) } else { part };
        let whole = a.0.saturating_add(b.0).saturating_add(u64::from(carry));
        (whole, u64::try_from(part).unwrap_or(0))
    }
}

/// `a − b` in whole nanoseconds, rounded up; zero if negative.
fn round_up_difference(a: Exact, b: Exact) -> u64 {
    if a <= b {
        return 0;
    }
    // A smaller fraction of `a` means a borrow from the whole part, which rounding up gives back.
    (a.0 - b.0) + u64::from(a.1 > b.1)
}
