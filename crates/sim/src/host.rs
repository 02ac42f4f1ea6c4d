//! The hosts at the ends: what their clocks show, when their packets really leave, and when they
//! notice what arrives.

mod intake;
mod kernel;

use narrows_scenario::{ClockModel, Host, PathDirection};
use narrows_units::nanos;

pub(crate) use intake::Intake;
pub(crate) use kernel::Kernel;

use crate::NEVER;
use crate::rng::{Purpose, Stream, round_ns};

/// What a clock shows at `at` nanoseconds: the formula of [`ClockModel`].
fn clock_reading(clock: &ClockModel, at: u64) -> i64 {
    let true_ns = i128::from(at);
    let steps = clock.steps.iter().filter(|step| nanos(step.at) <= at);
    let stepped: i128 = steps.map(|step| i128::from(step.by.nanos())).sum();
    let drift = i128::from(floor_ns(at as f64 * clock.skew_ppm * 1e-6));
    let granularity = i128::from(nanos(clock.granularity).max(1));
    let shown = true_ns + i128::from(clock.offset.nanos()) + drift + stepped;
    let shown = shown.div_euclid(granularity) * granularity;
    i64::try_from(shown).unwrap_or(if shown < 0 { i64::MIN } else { i64::MAX })
}

/// The first time from `from` on at which the clock shows at least `reading` (up to one tick of its
/// granularity later).
fn time_of_reading(clock: &ClockModel, reading: i64, from: u64) -> u64 {
    let mut at = from;
    loop {
        let missing = reading.saturating_sub(clock_reading(clock, at));
        let Ok(missing @ 1..) = u64::try_from(missing) else {
            return at;
        };
        let step = missing as f64 / (1.0 + clock.skew_ppm.max(0.0) * 1e-6);
        let next = at.saturating_add(round_ns(step).max(1));
        // A clock that is about to be set must not be jumped over.
        let set = clock.steps.iter().map(|step| nanos(step.at)).filter(|&set| set > at).min();
        at = set.map_or(next, |set| next.min(set));
        if at == NEVER {
            return at;
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "float casts saturate, as they should here")]
fn floor_ns(ns: f64) -> i64 {
    ns.floor() as i64
}

/// One host while the path runs.
#[derive(Debug)]
pub(crate) struct HostState {
    clock: ClockModel,
    costs: Host,
    pub(crate) interrupt_cost: u64,
    pacing_jitter: u64,
    rng: Stream,
    stalls: Option<Stalls>,
    /// When the program is free to send again.
    free: u64,
}

impl HostState {
    /// The host at the beginning of this way.
    pub(crate) fn new(host: &Host, way: PathDirection, seed: u64) -> Self {
        Self {
            clock: host.clock.clone(),
            costs: host.clone(),
            interrupt_cost: nanos(host.interrupt_cost),
            pacing_jitter: nanos(host.pacing_jitter),
            rng: Stream::new(seed, Purpose::Departures(way)),
            stalls: host.stalls.map(|stalls| Stalls {
                every: nanos(stalls.every) as f64,
                lasting: nanos(stalls.lasting) as f64,
                rng: Stream::new(seed, Purpose::Stalls(way)),
                known_until: 0,
                list: Vec::new(),
            }),
            free: 0,
        }
    }

    /// What the send call of a packet takes.
    pub(crate) fn send_time(&self, ip_octets: u16) -> u64 {
        nanos(self.costs.send_time(ip_octets))
    }

    /// What the receive call of a packet takes.
    pub(crate) fn receive_time(&self, ip_octets: u16) -> u64 {
        nanos(self.costs.receive_time(ip_octets))
    }

    pub(crate) fn reading(&self, at: u64) -> i64 {
        clock_reading(&self.clock, at)
    }

    pub(crate) fn time_of_reading(&self, reading: i64, from: u64) -> u64 {
        time_of_reading(&self.clock, reading, from)
    }

    /// When a packet planned for `planned` leaves: late by the pacing jitter, after the call before
    /// it (which takes `cost`), and not during a stall.
    pub(crate) fn paced_departure(&mut self, planned: u64, cost: u64) -> u64 {
        let late = if self.pacing_jitter == 0 { 0 } else { self.rng.below(self.pacing_jitter + 1) };
        self.departure(planned.saturating_add(late), cost)
    }

    /// When a packet leaves that is to leave as soon as possible from `earliest` on.
    pub(crate) fn departure(&mut self, earliest: u64, cost: u64) -> u64 {
        let at = self.running(earliest.max(self.free));
        self.free = at.saturating_add(cost);
        at
    }

    /// The first time from `at` on at which the host runs.
    pub(crate) fn running(&mut self, at: u64) -> u64 {
        self.stalls.as_mut().map_or(at, |stalls| stalls.running(at))
    }
}

/// Stalls so far. All are kept: departures are planned ahead of arrivals on the same host, and
/// stalls are few.
#[derive(Debug)]
struct Stalls {
    every: f64,
    lasting: f64,
    rng: Stream,
    known_until: u64,
    list: Vec<(u64, u64)>,
}

impl Stalls {
    fn running(&mut self, at: u64) -> u64 {
        while self.known_until <= at {
            let begin = self.known_until.saturating_add(round_ns(self.rng.exponential() * self.every).max(1));
            let end = begin.saturating_add(round_ns(self.rng.exponential() * self.lasting));
            self.list.push((begin, end));
            self.known_until = end;
        }
        let after = self.list.partition_point(|&(begin, _)| begin <= at);
        let last = after.checked_sub(1).and_then(|index| self.list.get(index));
        last.map_or(at, |&(_, end)| at.max(end))
    }
}

#[cfg(test)]
mod tests;
