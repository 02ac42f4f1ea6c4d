//! Bounds on what a method may impose, and the account of what it did.

mod peak;
mod samples;

use std::collections::VecDeque;
use std::time::Duration;

use narrows_units::{BitRate, Sender, Stamp};
use serde::{Deserialize, Serialize};

use self::peak::Peak;
pub use self::samples::Samples;
use crate::contract::{Event, Step};
use crate::outcome::Reason;
use crate::probes::{Load, Probe, Transfer};

/// What a run may cost. Every bound holds for the run as a whole; none is ever exceeded by a step
/// that could be foreseen to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Steps of the state machine: the guard against a method that never ends.
    pub steps: u32,
    /// IP octets sent.
    pub octets: u64,
    /// Time from the first step to the last.
    pub time: Duration,
    /// IP-layer rate over any 100 ms; `None` leaves it to the method.
    pub peak: Option<BitRate>,
}

impl Default for Budget {
    /// Ours: a minute, a gigabyte, a million steps; enough for every method at 10 Gbit/s, and an
    /// end for each.
    fn default() -> Self {
        Self { steps: 1_000_000, octets: 1_000_000_000, time: Duration::from_secs(60), peak: None }
    }
}

/// What a run did cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Packets sent (of transfers: estimated from octets and segment size).
    pub packets: u64,
    /// IP octets sent.
    pub octets: u64,
    /// From the first step to the last.
    pub time: Duration,
    /// Highest IP-layer rate imposed over any 100 ms, bit/s, as foreseen from the steps: what
    /// [`Budget::peak`] bounds.
    pub peak_bps: u64,
    /// Highest IP-layer rate really imposed over 10 ms, bit/s, from the departures that the reports
    /// tell: trains in any window of 10 ms, loads over their segment, transfers between their
    /// samples.
    #[serde(default)]
    pub peak_10ms_bps: u64,
    /// What the answer rests on.
    #[serde(default)]
    pub samples: Samples,
}

impl Cost {
    /// One run after the other: sums, and the larger peak.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            packets: self.packets + next.packets,
            octets: self.octets + next.octets,
            time: self.time + next.time,
            peak_bps: self.peak_bps.max(next.peak_bps),
            peak_10ms_bps: self.peak_10ms_bps.max(next.peak_10ms_bps),
            samples: self.samples.then(next.samples),
        }
    }
}

/// Keeps the account while a run goes on.
#[derive(Debug)]
pub struct Meter {
    budget: Budget,
    began: Stamp<Sender>,
    steps: u32,
    cost: Cost,
    /// Packets and octets of the last step.
    last: (u64, u64),
    /// Time, duration and octets of what was sent in the last 100 ms.
    recent: VecDeque<(Stamp<Sender>, u64)>,
    imposed: Peak,
}

/// The window over which a peak rate is taken.
const PEAK_WINDOW: Duration = Duration::from_millis(100);

impl Meter {
    /// Nothing is spent yet.
    pub fn new(budget: Budget, began: Stamp<Sender>) -> Self {
        Self {
            budget,
            began,
            steps: 0,
            cost: Cost::default(),
            last: (0, 0),
            recent: VecDeque::new(),
            imposed: Peak::default(),
        }
    }

    /// What was spent by `now`.
    pub fn cost(&self, now: Stamp<Sender>) -> Cost {
        Cost { time: now.since(self.began), peak_10ms_bps: self.imposed.bps(), ..self.cost }
    }

    /// Accounts for a step that is about to be taken, or says which bound forbids it.
    pub fn admit(&mut self, now: Stamp<Sender>, step: &Step) -> Result<(), Reason> {
        let (packets, octets, lasts) = foreseen(step);
        self.steps += 1;
        if self.steps > self.budget.steps {
            return Err(Reason::StepsSpent);
        }
        if self.cost.octets.saturating_add(octets) > self.budget.octets {
            return Err(Reason::OctetsSpent);
        }
        let ends = match step {
            Step::Wait { until } => *until,
            Step::Send(_) | Step::Done(_) => now + lasts,
        };
        if ends.since(self.began) > self.budget.time {
            return Err(Reason::TimeSpent);
        }
        let peak = self.peak_with(now, octets, lasts);
        if self.budget.peak.is_some_and(|cap| peak > cap) {
            return Err(Reason::PeakRateExceeded);
        }
        self.record(now, packets, octets, lasts, peak);
        self.last = (packets, octets);
        Ok(())
    }

    /// Accounts for what only the answer tells: octets of transfers, and probes that were refused
    /// and so never sent.
    pub fn settle(&mut self, event: &Event) {
        self.imposed.settle(event);
        self.cost.samples.take(event);
        if matches!(event, Event::Refused(_)) {
            self.cost.packets -= self.last.0;
            self.cost.octets -= self.last.1;
            if self.last.1 > 0 && self.recent.back().is_some_and(|(_, octets)| *octets == self.last.1) {
                self.recent.pop_back();
            }
        }
        let Event::Transfer(report) = event else { return };
        for stream in &report.streams {
            let (Some(first), Some(last)) = (stream.samples.first(), stream.samples.last()) else {
                continue;
            };
            let sent = match (first.sent_octets, last.sent_octets) {
                (Some(from), Some(to)) => to.saturating_sub(from),
                _ => last.acked_octets.saturating_sub(first.acked_octets),
            };
            let segments = sent.div_ceil(u64::from(last.mss_octets.max(1)));
            let octets = sent + segments * 52;
            let lasts = report.ended.since(report.began);
            let peak = self.peak_with(report.began, octets, lasts);
            self.record(report.began, segments, octets, lasts, peak);
        }
    }

    fn peak_with(&self, now: Stamp<Sender>, octets: u64, lasts: Duration) -> BitRate {
        let recent: u64 =
            self.recent.iter().filter(|(at, _)| now.since(*at) < PEAK_WINDOW).map(|(_, octets)| octets).sum();
        let alone = BitRate::over(octets, lasts.max(PEAK_WINDOW));
        let together = if lasts < PEAK_WINDOW { BitRate::over(octets + recent, PEAK_WINDOW) } else { alone };
        together.unwrap_or(BitRate::ZERO)
    }

    fn record(&mut self, now: Stamp<Sender>, packets: u64, octets: u64, lasts: Duration, peak: BitRate) {
        self.cost.packets += packets;
        self.cost.octets += octets;
        self.cost.peak_bps = self.cost.peak_bps.max(peak.bps());
        while self.recent.front().is_some_and(|(at, _)| now.since(*at) >= PEAK_WINDOW) {
            self.recent.pop_front();
        }
        if octets > 0 && lasts < PEAK_WINDOW {
            self.recent.push_back((now, octets));
        }
    }
}

/// How long a step lasts, as far as it can be foreseen.
pub fn lasts(step: &Step) -> Duration {
    foreseen(step).2
}

/// Packets, IP octets and duration of a step, as far as they can be foreseen.
fn foreseen(step: &Step) -> (u64, u64, Duration) {
    match step {
        Step::Send(Probe::Train(train)) => {
            (u64::try_from(train.packets.len()).unwrap_or(u64::MAX), train.ip_octets(), train.duration())
        }
        Step::Send(Probe::Load(load)) => {
            // "As fast as the host can" is unforeseeable; its rate is bounded by the method from
            // `PathFacts`.
            let octets = load.rate.octets_in(load.duration);
            (octets / u64::from(load.ip_octets.max(1)), octets, load.duration)
        }
        Step::Send(Probe::Transfer(transfer)) => (0, 0, transfer.duration),
        Step::Send(Probe::Capture(capture)) => (0, 0, capture.duration),
        Step::Wait { .. } | Step::Done(_) => (0, 0, Duration::ZERO),
    }
}

/// Brings a probe under a user's peak rate where that needs no other measurement: transfers are
/// paced, loads offered less. The reports say what was really sent.
pub fn restrain(probe: Probe, cap: Option<BitRate>) -> Probe {
    let Some(cap) = cap else { return probe };
    match probe {
        Probe::Transfer(transfer) => {
            let share = BitRate::from_bps(cap.bps() / u64::from(transfer.streams.max(1)));
            Probe::Transfer(Transfer { pacing: Some(transfer.pacing.map_or(share, |own| own.min(share))), ..transfer })
        }
        Probe::Load(load) => Probe::Load(Load { rate: load.rate.min(cap), ..load }),
        Probe::Train(_) | Probe::Capture(_) => probe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::{Train, TrainId};

    fn at(ms: i64) -> Stamp<Sender> {
        Stamp::from_nanos(ms * 1_000_000)
    }

    fn train(count: usize) -> Step {
        Step::Send(Probe::Train(Train::uniform(TrainId(0), count, 1500, Duration::ZERO)))
    }

    #[test]
    fn the_octets_bound_forbids_the_step_that_would_exceed_it() {
        let budget = Budget { octets: 4500, ..Budget::default() };
        let mut meter = Meter::new(budget, at(0));
        assert_eq!(meter.admit(at(0), &train(2)), Ok(()));
        assert_eq!(meter.admit(at(1), &train(2)), Err(Reason::OctetsSpent));
        assert_eq!(meter.admit(at(1), &train(1)), Ok(()));
        assert_eq!(meter.cost(at(7)).octets, 4500);
        assert_eq!(meter.cost(at(7)).time, Duration::from_millis(7));
    }

    #[test]
    fn the_peak_is_taken_over_a_tenth_of_a_second() {
        let mut meter = Meter::new(Budget::default(), at(0));
        // 100 packets of 12 000 bit in 100 ms are 12 Mbit/s, however they are cut.
        for k in 0..10 {
            assert_eq!(meter.admit(at(k * 9), &train(10)), Ok(()));
        }
        assert_eq!(meter.cost(at(100)).peak_bps, 12_000_000);
        assert_eq!(meter.admit(at(500), &train(10)), Ok(()));
        assert_eq!(meter.cost(at(600)).peak_bps, 12_000_000);
    }

    #[test]
    fn what_is_refused_costs_nothing() {
        let mut meter = Meter::new(Budget::default(), at(0));
        assert_eq!(meter.admit(at(0), &train(2)), Ok(()));
        assert_eq!(meter.admit(at(1), &train(5)), Ok(()));
        meter.settle(&Event::Refused(crate::Refusal::NotOffered));
        let cost = meter.cost(at(2));
        assert_eq!((cost.packets, cost.octets), (2, 3000));
    }

    #[test]
    fn waiting_past_the_time_is_refused() {
        let mut meter = Meter::new(Budget::default(), at(0));
        assert_eq!(meter.admit(at(0), &Step::Wait { until: at(59_000) }), Ok(()));
        assert_eq!(meter.admit(at(0), &Step::Wait { until: at(60_001) }), Err(Reason::TimeSpent));
    }
}
