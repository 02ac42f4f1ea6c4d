//! What a node does with packets that may not go on.

use std::cmp::Ordering;

use narrows_scenario::{PathDirection, Router};
use narrows_units::nanos;

use super::Output;
use crate::rng::{Purpose, Stream, round_ns};

/// The ICMP side of a router, or of the host at the end of a way.
#[derive(Debug)]
pub(crate) struct Answers {
    router: Router,
    tokens: f64,
    refilled: u64,
    rng: Stream,
}

impl Answers {
    pub(crate) fn new(router: Router, way: PathDirection, node: usize, seed: u64) -> Self {
        Self {
            router,
            tokens: router.icmp_limit.map_or(0.0, |(_, burst)| f64::from(burst)),
            refilled: 0,
            rng: Stream::new(seed, Purpose::Router(way, node)),
        }
    }

    /// When an answer leaves that no limit concerns (a TCP segment); `None` if the node never
    /// answers.
    pub(crate) fn answer_unlimited(&mut self, at: u64) -> Option<u64> {
        self.router.answers.then(|| self.made_at(at, 0))
    }

    /// It passes on what it should answer for.
    pub(crate) fn passes_on(&self) -> bool {
        self.router.oddities.forwards_expired
    }

    /// When the answer to a packet that arrived at `at` leaves; `None` if there is none. Linux's
    /// limiter: a bucket of `burst` answers, refilled at the rate.
    pub(crate) fn answer(&mut self, at: u64, ip_octets: u16) -> Option<u64> {
        if !self.router.answers {
            return None;
        }
        if let Some((per_second, burst)) = self.router.icmp_limit {
            let gained = (at - self.refilled) as f64 * 1e-9 * per_second;
            self.tokens = (self.tokens + gained).min(f64::from(burst));
            self.refilled = at;
            if self.tokens < 1.0 {
                return None;
            }
            self.tokens -= 1.0;
        }
        Some(self.made_at(at, ip_octets))
    }

    fn made_at(&mut self, at: u64, ip_octets: u16) -> u64 {
        let odd = self.router.oddities;
        let longer = odd.rerouted.filter(|(from, _)| nanos(*from) <= at);
        let copies = nanos(odd.icmp_per_octet).saturating_mul(u64::from(ip_octets));
        let at = at.saturating_add(longer.map_or(0, |(_, longer)| nanos(longer))).saturating_add(copies);
        let jitter = nanos(self.router.icmp_jitter);
        let jitter = if jitter == 0 { 0 } else { round_ns(self.rng.exponential() * jitter as f64) };
        at.saturating_add(nanos(self.router.icmp_delay)).saturating_add(jitter)
    }
}

/// An output that is due later. The heap gives the earliest first.
#[derive(Debug)]
pub(super) struct Pending<T> {
    pub(super) output: Output<T>,
    /// Order of making.
    pub(super) made: u64,
}

impl<T> Pending<T> {
    fn key(&self) -> ((u64, PathDirection, usize), u64) {
        (self.output.rank(), self.made)
    }
}

impl<T> PartialEq for Pending<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Pending<T> {}

impl<T> PartialOrd for Pending<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Pending<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}
