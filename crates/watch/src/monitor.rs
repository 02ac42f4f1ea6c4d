//! All detectors of one target: observations in, what changed out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::detect::{
    Change, Detector, FactChange, Flaps, Learning, LossDetector, PulseBlock, PulseMinute, Route, RouteWatch, Settled,
    Telling, Trigger,
};
use crate::explain::{FactKind, Interval};
use crate::signal::{Reading, Signal};
use crate::time::{ClockStep, WallTime, Zone};

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
    Route(FactChange<Route>, Telling),
    /// Another fact changed.
    Fact(FactKind, FactChange<String>, Telling),
    /// Something seems to have changed: gather evidence.
    Suspicion,
}

impl Finding {
    /// When a fact changed, for the evidence of later changes.
    pub fn fact_interval(&self) -> Option<(FactKind, Interval)> {
        match self {
            Self::Route(change, _) => Some((FactKind::Route, Interval { low: change.at_low, high: change.at_high })),
            Self::Fact(kind, change, _) => Some((*kind, Interval { low: change.at_low, high: change.at_high })),
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
    route: (RouteWatch, Flaps<Route>),
    facts: BTreeMap<FactKind, (Settled<String>, Flaps<String>)>,
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
            route: <(RouteWatch, Flaps<Route>)>::default(),
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
            Observation::Route(route) => {
                let change = self.route.0.observe(at, route)?;
                let telling = self.route.1.changed(at, &change);
                Some(Finding::Route(change, telling))
            }
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

    /// What came of facts that changed again and again, once they are calm. To be asked every now
    /// and then.
    pub fn calm(&mut self, now: WallTime) -> Vec<Finding> {
        let route = self.route.1.calm(now).map(|(change, telling)| Finding::Route(change, telling));
        let calm: Vec<(FactKind, (FactChange<String>, Telling))> =
            self.facts.iter_mut().filter_map(|(kind, (_, flaps))| Some((*kind, flaps.calm(now)?))).collect();
        let mut findings = Vec::from_iter(route);
        for (kind, (change, telling)) in calm {
            if kind == FactKind::Egress && change.before != change.after {
                self.new_baseline();
            }
            findings.push(Finding::Fact(kind, change, telling));
        }
        findings
    }

    /// The clock was set: no value is older than those before for that, and nothing took an hour
    /// longer.
    pub fn clock_stepped(&mut self, step: ClockStep) {
        self.signals.values_mut().for_each(|detector| detector.clock_stepped(step));
        self.loss.clock_stepped(step);
        self.route.0.clock_stepped(step);
        self.route.1.clock_stepped(step);
        for (fact, flaps) in self.facts.values_mut() {
            fact.clock_stepped(step);
            flaps.clock_stepped(step);
        }
    }

    /// What is usual of a signal at `at`, in its unit; `None` while warming up.
    pub fn usual(&self, signal: Signal, at: WallTime) -> Option<f64> {
        self.signals.get(&signal)?.usual(self.zone.local(at))
    }

    /// How far it is from knowing what is usual of a signal; `None` once it does, and for loss,
    /// which is compared with none.
    pub fn learning(&self, signal: Signal) -> Option<Learning> {
        self.signals.get(&signal)?.learning()
    }

    fn fact(&mut self, at: WallTime, kind: FactKind, value: String) -> Option<Finding> {
        let (fact, flaps) = self.facts.entry(kind).or_default();
        let change = fact.observe(at, value)?;
        let telling = flaps.changed(at, &change);
        // Between two ways out that take turns, values of both are one series: learned anew at each
        // turn, it would never be known. Another address is asked by other packets.
        if kind == FactKind::Address || (kind == FactKind::Egress && telling != Telling::Later) {
            self.new_baseline();
        }
        Some(Finding::Fact(kind, change, telling))
    }

    /// Another path: its values are no change of this one's.
    fn new_baseline(&mut self) {
        self.signals.values_mut().for_each(Detector::new_baseline);
        self.trigger = Trigger::default();
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// Values are not trusted for so long after sleep.
const HELD: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests;
