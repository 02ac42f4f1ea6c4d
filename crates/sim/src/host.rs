//! The hosts at the ends: what their clocks show, when their packets really leave, and when they
//! notice what arrives.

mod intake;
mod kernel;
mod played;

use std::time::Duration;

use narrows_host_profile::Ends;
use narrows_scenario::{ClockModel, Host, PathDirection};
use narrows_units::nanos;

pub(crate) use intake::Intake;
pub(crate) use kernel::Kernel;
use played::{PlayedProfile, PlayedStalls};

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
    played: Option<PlayedProfile>,
    /// When the program is free to send again.
    free: u64,
}

/// When a packet leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Departure {
    /// The program's stamp, just before the send call.
    pub(crate) stamped: u64,
    /// When the packet leaves the host.
    pub(crate) leaves: u64,
    /// When the send call is over.
    pub(crate) returned: u64,
}

impl HostState {
    /// The host at the beginning of this way.
    pub(crate) fn new(host: &Host, way: PathDirection, seed: u64) -> Self {
        Self::with(host, way, seed, true)
    }

    /// That host's kernel alone: no program makes calls or wakes.
    pub(crate) fn without_program(host: &Host, way: PathDirection, seed: u64) -> Self {
        let mut state = Self::with(host, way, seed, false);
        let none = Duration::ZERO;
        state.costs = Host { send_cost: none, receive_cost: none, copy_rate: None, ..state.costs };
        state
    }

    fn with(host: &Host, way: PathDirection, seed: u64, has_program: bool) -> Self {
        let mut clock = host.clock.clone();
        if let Some(profile) = &host.profile {
            let [low, high] = profile.clock.frequency_error_ppm;
            clock.skew_ppm += low + (high - low) * Stream::new(seed, Purpose::Frequency(way)).unit();
        }
        let costs = match &host.profile {
            Some(_) => Host { send_cost: usual_send_call(host, 0), copy_rate: None, ..host.clone() },
            None => host.clone(),
        };
        Self {
            clock,
            costs,
            interrupt_cost: nanos(host.interrupt_cost),
            pacing_jitter: nanos(host.pacing_jitter),
            rng: Stream::new(seed, Purpose::Departures(way)),
            stalls: Stalls::of(host, way, seed),
            played: host.profile.as_ref().map(|profile| PlayedProfile::new(profile, way, seed, has_program)),
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
    pub(crate) fn paced_departure(&mut self, planned: u64, cost: u64) -> Departure {
        let late = match &mut self.played {
            Some(played) => played.lateness(),
            None if self.pacing_jitter == 0 => 0,
            None => self.rng.below(self.pacing_jitter + 1),
        };
        self.departure(planned.saturating_add(late), cost)
    }

    /// From when on the host has nothing else to send.
    pub(crate) fn free_from(&self) -> u64 {
        self.free
    }

    /// When a packet leaves that is to leave as soon as possible from `earliest` on. A host that
    /// plays a profile draws the call's cost; `cost` says what share of the usual one it is.
    pub(crate) fn departure(&mut self, earliest: u64, cost: u64) -> Departure {
        let stamped = self.running(earliest.max(self.free));
        let usual = self.send_time(0);
        let (cost, leaves) = match &mut self.played {
            Some(played) => {
                let call = played.send_call();
                (if cost < usual { call * cost / usual } else { call }, played.leaves(stamped))
            }
            None => (cost, stamped),
        };
        let departure = Departure { stamped, leaves, returned: stamped.saturating_add(cost) };
        self.free = departure.returned.max(leaves);
        departure
    }

    /// A late packet moves the rest of its train, as the programs of real hosts have it.
    pub(crate) fn moves_schedules(&self) -> bool {
        self.played.is_some()
    }

    /// A packet that no method asked for has left this host, or reached it, so that it does not
    /// rest.
    pub(crate) fn wake_up(&mut self, departed: Option<u64>, arrived: Option<u64>) {
        if let Some(played) = &mut self.played {
            played.wake_up(departed, arrived);
        }
    }

    /// The first time from `at` on at which the host runs.
    pub(crate) fn running(&mut self, at: u64) -> u64 {
        self.stalls.as_mut().map_or(at, |stalls| stalls.running(at))
    }

    /// The first time from `at` on at which its kernel runs. Stalls of some measured machines take
    /// programs alone.
    pub(crate) fn kernel_running(&mut self, at: u64) -> u64 {
        if self.played.as_ref().is_some_and(PlayedProfile::stamps_wait) { self.running(at) } else { at }
    }

    /// When a program that sleeps until `at` goes on, on a host that plays a profile.
    pub(crate) fn program_running(&mut self, at: u64) -> u64 {
        if self.played.is_some() { self.running(at) } else { at }
    }
}

/// What a send call usually takes.
pub(crate) fn usual_send_call(host: &Host, ip_octets: u16) -> Duration {
    let measured = host.profile.as_ref().map(|profile| time(profile.send.call_ns.median()));
    measured.unwrap_or_else(|| host.send_time(ip_octets))
}

/// What a receive call usually takes.
pub(crate) fn usual_receive_call(host: &Host, ip_octets: u16) -> Duration {
    let measured = host.profile.as_ref().map(|profile| time(profile.receive.call_ns.median()));
    measured.unwrap_or_else(|| host.receive_time(ip_octets))
}

pub(crate) fn time(ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(ns).unwrap_or(0))
}

/// Stalls so far. All are kept: departures are planned ahead of arrivals on the same host, and
/// stalls are few.
#[derive(Debug)]
struct Stalls {
    source: StallSource,
    rng: Stream,
    known_until: u64,
    list: Vec<(u64, u64)>,
}

/// Where they come from.
#[derive(Debug)]
enum StallSource {
    /// Gaps and lengths are exponential with these means.
    Exponential {
        every: f64,
        lasting: f64,
    },
    Profile(PlayedStalls),
}

impl Stalls {
    fn of(host: &Host, way: PathDirection, seed: u64) -> Option<Self> {
        let (source, rng) = match (&host.profile, host.stalls) {
            (Some(profile), _) => {
                // Both ends of one machine draw the same stalls, and each feels its own.
                let shared = profile.ends == Ends::Both;
                let purpose = if shared { Purpose::SharedStalls } else { Purpose::Stalls(way) };
                let mut rng = Stream::new(seed, purpose);
                (StallSource::Profile(PlayedStalls::begin(profile, way, &mut rng)?), rng)
            }
            (None, Some(stalls)) => {
                let (every, lasting) = (nanos(stalls.every) as f64, nanos(stalls.lasting) as f64);
                (StallSource::Exponential { every, lasting }, Stream::new(seed, Purpose::Stalls(way)))
            }
            (None, None) => return None,
        };
        Some(Self { source, rng, known_until: 0, list: Vec::new() })
    }

    fn running(&mut self, at: u64) -> u64 {
        while self.known_until <= at {
            self.extend();
        }
        let after = self.list.partition_point(|&(begin, _)| begin <= at);
        let last = after.checked_sub(1).and_then(|index| self.list.get(index));
        last.map_or(at, |&(_, end)| at.max(end))
    }

    fn extend(&mut self) {
        match &mut self.source {
            StallSource::Exponential { every, lasting } => {
                let begin = self.known_until.saturating_add(round_ns(self.rng.exponential() * *every).max(1));
                let end = begin.saturating_add(round_ns(self.rng.exponential() * *lasting));
                self.list.push((begin, end));
                self.known_until = end;
            }
            StallSource::Profile(played) => self.known_until = played.extend(&mut self.list, &mut self.rng),
        }
    }
}

#[cfg(test)]
mod recorded_again;
#[cfg(test)]
mod tests;
