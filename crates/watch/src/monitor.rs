//! All detectors of one target: observations in, what changed out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::detect::{
    Change, Detector, FactChange, LossDetector, PulseBlock, PulseMinute, Route, RouteWatch, Settled, Trigger,
};
use crate::explain::{FactKind, Interval};
use crate::signal::{Reading, Signal};
use crate::time::{WallTime, Zone};

/// Something that was observed about a target.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A value of any signal but loss.
    Reading(Signal, Reading),
    /// A minute of pulses.
    PulseMinute(PulseMinute),
    /// Ten seconds of pulses.
    PulseBlock(PulseBlock),
    /// A traced route.
    Route(Route),
    /// The path's MTU, in octets.
    Mtu(u32),
    /// Interface, source address and next hop, as one text.
    Egress(String),
    /// The target's address. The caller asks the name every five minutes and keeps the address as
    /// long as an answer has it.
    Address(IpAddr),
    /// The machine slept.
    Woke,
}

/// What an observation gave rise to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Finding {
    /// A signal changed.
    Change(Change),
    /// The route changed.
    Route(FactChange<Route>),
    /// Another fact changed.
    Fact(FactKind, FactChange<String>),
    /// Something seems to have changed: gather evidence.
    Suspicion,
}

impl Finding {
    /// When a fact changed, for the evidence of later changes.
    pub fn fact_interval(&self) -> Option<(FactKind, Interval)> {
        match self {
            Self::Route(change) => Some((FactKind::Route, Interval { low: change.at_low, high: change.at_high })),
            Self::Fact(kind, change) => Some((*kind, Interval { low: change.at_low, high: change.at_high })),
            Self::Change(_) | Self::Suspicion => None,
        }
    }
}

/// The detectors of one target. All of it survives a restart through serde.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Monitor {
    zone: Zone,
    signals: BTreeMap<Signal, Detector>,
    loss: LossDetector,
    trigger: Trigger,
    route: RouteWatch,
    facts: BTreeMap<FactKind, Settled<String>>,
}

impl Monitor {
    /// Slices come about every `cadence`, pulses' values every minute.
    pub fn new(zone: Zone, cadence: Duration) -> Self {
        let every = |signal| match signal {
            Signal::LeastRoundTrip | Signal::Queueing => Some(MINUTE),
            Signal::AvailableForward | Signal::AvailableReverse | Signal::Capacity => Some(cadence),
            Signal::Loss => None,
        };
        let detector = |signal| every(signal).map(|cadence| (signal, Detector::new(signal, cadence)));
        Self {
            zone,
            signals: Signal::ALL.into_iter().filter_map(detector).collect(),
            loss: LossDetector::default(),
            trigger: Trigger::default(),
            route: RouteWatch::default(),
            facts: BTreeMap::new(),
        }
    }

    /// Takes an observation in.
    pub fn observe(&mut self, at: WallTime, observation: Observation) -> Option<Finding> {
        match observation {
            Observation::Reading(signal, reading) => {
                let local = self.zone.local(reading.at);
                self.signals.get_mut(&signal)?.push(&reading, local).map(Finding::Change)
            }
            Observation::PulseMinute(minute) => self.loss.push(minute).map(Finding::Change),
            Observation::PulseBlock(block) => self.trigger.push(block).then_some(Finding::Suspicion),
            Observation::Route(route) => self.route.observe(at, route).map(Finding::Route),
            Observation::Mtu(octets) => self.fact(at, FactKind::Mtu, octets.to_string()),
            Observation::Egress(egress) => self.fact(at, FactKind::Egress, egress),
            Observation::Address(address) => self.fact(at, FactKind::Address, address.to_string()),
            Observation::Woke => {
                let until = at.after(HELD);
                self.signals.values_mut().for_each(|detector| detector.hold_until(until));
                self.loss.hold_until(until);
                None
            }
        }
    }

    /// What is usual of a signal at `at`, in its unit; `None` while warming up.
    pub fn usual(&self, signal: Signal, at: WallTime) -> Option<f64> {
        self.signals.get(&signal)?.usual(self.zone.local(at))
    }

    fn fact(&mut self, at: WallTime, kind: FactKind, value: String) -> Option<Finding> {
        let change = self.facts.entry(kind).or_default().observe(at, value)?;
        if matches!(kind, FactKind::Egress | FactKind::Address) {
            // Another path: its values are no change of this one's.
            self.signals.values_mut().for_each(Detector::new_baseline);
            self.trigger = Trigger::default();
        }
        Some(Finding::Fact(kind, change))
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// Values are not trusted for so long after sleep.
const HELD: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use narrows_stat::SplitMix64;

    use super::*;

    fn reading(random: &mut SplitMix64, minute: i64, level: f64) -> Observation {
        let noise: f64 = (0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0;
        let value = level + 2e6 * noise;
        let at = WallTime::from_millis(minute * 60_000);
        Observation::Reading(Signal::AvailableForward, Reading::estimate(at, value, value - 1e6, value + 1e6))
    }

    fn run(monitor: &mut Monitor, random: &mut SplitMix64, minutes: std::ops::Range<i64>, level: f64) -> Vec<Change> {
        let found =
            |minute| match monitor.observe(WallTime::from_millis(minute * 60_000), reading(random, minute, level)) {
                Some(Finding::Change(change)) => Some(change),
                _ => None,
            };
        minutes.filter_map(found).collect()
    }

    #[test]
    fn a_year_of_minutes_has_few_alarms_and_a_halved_rate_is_found_in_minutes() {
        let (mut random, mut monitor) = (SplitMix64::new(12), Monitor::new(Zone::fixed(0), MINUTE));
        let alarms = run(&mut monitor, &mut random, 0..60 * 1440, 60e6);
        assert!(alarms.len() <= 4, "{} in 60 days", alarms.len());
        let stored = postcard::to_stdvec(&monitor).unwrap();
        assert!(stored.len() < 60_000, "{} octets of state", stored.len());
        let mut monitor: Monitor = postcard::from_bytes(&stored).unwrap();
        let changes = run(&mut monitor, &mut random, 86_400..86_430, 30e6);
        assert_eq!(changes.len(), 1, "{changes:?}");
        let change = changes[0];
        let minute = |at: WallTime| at.millis() / 60_000;
        assert!(minute(change.found) <= 86_404, "found in minute {}", minute(change.found));
        assert!(minute(change.at_low) <= 86_399 && minute(change.at_high) >= 86_400, "{change:?}");
        assert!((change.before - 60e6).abs() < 2e6 && (change.after - 30e6).abs() < 3e6, "{change:?}");
        assert!(change.matters(Some(100e6)));
        assert!((monitor.usual(Signal::AvailableForward, change.found).unwrap() - 30e6).abs() < 3e6);
    }

    #[test]
    fn another_egress_is_another_path() {
        let (mut random, mut monitor) = (SplitMix64::new(12), Monitor::new(Zone::fixed(0), MINUTE));
        run(&mut monitor, &mut random, 0..1000, 60e6);
        let egress = |name: &str| Observation::Egress(name.to_owned());
        let at = WallTime::from_millis(60_000_000);
        assert_eq!(monitor.observe(at, egress("eth0")), None);
        assert_eq!(monitor.observe(at, egress("wlan0")), None);
        let found = monitor.observe(at, egress("wlan0"));
        assert!(matches!(&found, Some(Finding::Fact(FactKind::Egress, _))));
        assert!(found.is_some_and(|found| found.fact_interval().is_some()));
        assert!(run(&mut monitor, &mut random, 1001..1200, 20e6).is_empty());
    }

    #[test]
    fn values_after_sleep_do_not_count() {
        let (mut random, mut monitor) = (SplitMix64::new(12), Monitor::new(Zone::fixed(0), MINUTE));
        run(&mut monitor, &mut random, 0..1000, 60e6);
        for minute in 0..20 {
            let at = 1000 + minute * 2;
            monitor.observe(WallTime::from_millis(at * 60_000), Observation::Woke);
            assert!(run(&mut monitor, &mut random, at..at + 2, 5e6).is_empty());
        }
    }
}
