//! What is known of one target.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use narrows_net::host::Egress;
use narrows_store::records;
use narrows_units::{BitRate, Direction};
use narrows_watch::detect::{Change, Route, Telling};
use narrows_watch::explain::{Cause, FactEvidence, HopQueueing, Interval, RoundTrips};
use narrows_watch::schedule::{Job, TargetSettings};
use narrows_watch::{BootTime, ClockStep, Monitor, Reading, Signal, WallTime};

use super::jobs::Work;
use super::settings::{Family, Target};

/// One target.
pub(super) struct Subject {
    pub(super) target: Target,
    pub(super) monitor: Monitor,
    /// What its name has, as far as it is of the family.
    pub(super) addresses: Vec<IpAddr>,
    /// The one that is followed.
    pub(super) address: Option<IpAddr>,
    pub(super) egress: Option<Egress>,
    pub(super) capacity: Option<BitRate>,
    /// Octets of the token bucket that was found with the capacity.
    pub(super) bucket: Option<u64>,
    /// The newest value of each signal.
    pub(super) readings: BTreeMap<Signal, Reading>,
    /// When the newest ones of each signal were measured that say something, oldest first.
    measured: BTreeMap<Signal, VecDeque<WallTime>>,
    pub(super) changes: VecDeque<Change>,
    pub(super) facts: VecDeque<FactEvidence>,
    pub(super) route: Route,
    pub(super) traced_at: Option<WallTime>,
    pub(super) path: Option<records::PathSeen>,
    /// Of pulses; those beside our own jobs are left out.
    pub(super) pulses: RoundTrips,
    /// Of traces, by hop.
    hops: Vec<RoundTrips>,
    pub(super) incident: Option<Incident>,
    pub(super) silent: bool,
    pub(super) server_gone: bool,
    /// The other family is tried after so much silence.
    pub(super) silence_limit: Duration,
    slices: u32,
}

/// Changes that belong together.
pub(super) struct Incident {
    pub(super) record: records::Incident,
    /// As it was told last.
    pub(super) cause: Cause,
    pub(super) first: Change,
    pub(super) newest: Change,
    /// Its cause was asked for last.
    pub(super) asked_at: BootTime,
}

impl Subject {
    pub(super) fn new(target: Target, monitor: Monitor) -> Self {
        Self {
            target,
            monitor,
            addresses: Vec::new(),
            address: None,
            egress: None,
            capacity: None,
            bucket: None,
            readings: BTreeMap::new(),
            measured: BTreeMap::new(),
            changes: VecDeque::new(),
            facts: VecDeque::new(),
            route: Route::new(),
            traced_at: None,
            path: None,
            pulses: RoundTrips::default(),
            hops: Vec::new(),
            incident: None,
            silent: false,
            server_gone: false,
            silence_limit: SILENCE_LIMIT,
            slices: 0,
        }
    }

    /// What it shares with others: `link dsl`, `link eth0 via 10.0.0.1`. Loopback is no link.
    pub(super) fn link(&self) -> String {
        if !self.target.budget.link.is_empty() {
            return self.target.budget.link.clone();
        }
        let Some(egress) = self.egress.as_ref().filter(|egress| egress.is_a_link()) else { return String::new() };
        match egress.next_hop {
            Some(hop) => format!("{} via {hop}", egress.interface),
            None => egress.interface.clone(),
        }
    }

    /// It has available rates, too few to say which is usual.
    pub(super) fn is_learning(&self) -> bool {
        let signal = Signal::AvailableForward;
        self.readings.contains_key(&signal) && self.monitor.learning(signal).is_some()
    }

    /// Its address, if its link has this name.
    pub(super) fn address_on(&self, link: &str) -> Option<IpAddr> {
        self.address.filter(|_| !link.is_empty() && self.target.budget.link == link)
    }

    /// As the schedule needs them.
    pub(super) fn settings(&self) -> TargetSettings {
        let host = self.address.map_or_else(String::new, |address| address.to_string());
        TargetSettings { link: self.link(), host, ..self.target.budget.clone() }
    }

    /// The address to follow, of those that its name has now: the old one while it is there.
    pub(super) fn preferred(&self) -> Option<IpAddr> {
        let kept = self.address.filter(|address| self.addresses.contains(address));
        let same = |address: &&IpAddr| self.address.is_none_or(|old| old.is_ipv6() == address.is_ipv6());
        // Answers come in any order; the least is the same twice.
        let other = || self.addresses.iter().filter(same).min().or_else(|| self.addresses.first()).copied();
        kept.or_else(|| if self.address.is_none() { self.addresses.first().copied() } else { other() })
    }

    /// An address of the other family, once this one has been silent for long enough.
    pub(super) fn other_family(&mut self, silent: Duration) -> Option<IpAddr> {
        if silent.is_zero() {
            self.silence_limit = SILENCE_LIMIT;
        }
        if silent < self.silence_limit || self.target.family != Family::Auto {
            return None;
        }
        let now = self.address?;
        let other = self.addresses.iter().copied().find(|address| address.is_ipv6() != now.is_ipv6())?;
        // Where both are silent, turns become rare.
        self.silence_limit *= 2;
        Some(other)
    }

    /// What a measuring thread has to know.
    pub(super) fn work(&mut self, job: Job) -> Option<Work> {
        let reverse = self.target.reverse && self.slices % 2 == 1;
        if job.kind == narrows_watch::schedule::JobKind::Slice {
            self.slices = self.slices.wrapping_add(1);
        }
        Some(Work {
            job,
            target: self.target.clone(),
            address: self.address?,
            link_peers: Vec::from_iter(self.address),
            capacity: self.capacity,
            bucket: self.bucket,
            direction: if reverse { Direction::Reverse } else { Direction::Forward },
            server_gone: self.server_gone,
        })
    }

    /// The clock was set. What is remembered here is compared with what comes, so it goes by the
    /// new clock; what is on disk stays as it was told.
    pub(super) fn clock_stepped(&mut self, step: ClockStep) {
        self.monitor.clock_stepped(step);
        let incident = self.incident.iter_mut().flat_map(|one| [&mut one.first, &mut one.newest]);
        for change in self.changes.iter_mut().chain(incident) {
            step.shift([&mut change.at_low, &mut change.at, &mut change.at_high, &mut change.found]);
        }
        let facts = self.facts.iter_mut().flat_map(|fact| [&mut fact.at.low, &mut fact.at.high]);
        let readings = self.readings.values_mut().map(|reading| &mut reading.at);
        let measured = self.measured.values_mut().flatten();
        step.shift(facts.chain(readings).chain(measured).chain(&mut self.traced_at));
        self.hops.iter_mut().chain([&mut self.pulses]).for_each(|trips| trips.clock_stepped(step));
    }

    /// A value of any signal.
    pub(super) fn reading(&mut self, signal: Signal, reading: Reading) {
        self.readings.insert(signal, reading);
        if reading.usable() {
            let times = self.measured.entry(signal).or_default();
            times.push_back(reading.at);
            times.drain(..times.len().saturating_sub(MEASURED));
        }
    }

    /// Whether so many values of a signal, at most [`MEASURED`], were measured after a time.
    pub(super) fn measured_since(&self, signal: Signal, at: WallTime, count: usize) -> bool {
        let times = self.measured.get(&signal);
        times.is_some_and(|times| times.iter().filter(|time| **time > at).count() >= count)
    }

    /// Round trips to each hop of a trace, nearest first.
    pub(super) fn traced(&mut self, sent: Interval, round_trips: &[Vec<u64>]) {
        let hops = self.hops.len().max(round_trips.len());
        self.hops.resize_with(hops, RoundTrips::default);
        for (hop, times) in self.hops.iter_mut().zip(round_trips) {
            hop.take(sent, times.iter().map(|time| Duration::from_nanos(*time)));
        }
    }

    /// Another route: nothing is known of its hops.
    pub(super) fn forget_hops(&mut self) {
        self.hops.clear();
    }

    /// Whether probes to each hop that answers wait since a change for most of what pulses wait.
    pub(super) fn queueing_since(&self, change: Interval) -> Vec<HopQueueing> {
        let added = self.pulses.added_since(change);
        let is_here = |trips: &RoundTrips| trips.queue_is_here_since(change, added.as_ref()?);
        let rose = |(hop, trips): (u8, &RoundTrips)| HopQueueing { hop, rose: is_here(trips) };
        (1..=u8::MAX).zip(&self.hops).filter(|(_, trips)| !trips.is_empty()).map(rose).collect()
    }

    pub(super) fn changed(&mut self, change: Change) {
        self.changes.push_back(change);
        if self.changes.len() > REMEMBERED {
            self.changes.pop_front();
        }
    }

    /// Changes that nobody is told of one by one are one change that goes on.
    pub(super) fn fact(&mut self, fact: FactEvidence, telling: Telling) {
        let same = self.facts.iter_mut().rev().find(|known| known.kind == fact.kind);
        if let Some(known) = same.filter(|_| telling == Telling::Later) {
            (known.after, known.at.high) = (fact.after, fact.at.high);
            return;
        }
        self.facts.push_back(fact);
        if self.facts.len() > REMEMBERED {
            self.facts.pop_front();
        }
    }
}

/// The same routers and ends are the same path, whatever the round trips.
pub(super) fn is_another(known: &records::PathSeen, seen: &records::PathSeen) -> bool {
    let times = |path: &records::PathSeen| records::PathSeen {
        at: WallTime::default(),
        hop_round_trips_ns: Vec::new(),
        ..path.clone()
    };
    times(known) != times(seen)
}

/// No change is found with fewer values behind it.
pub(super) const MEASURED: usize = 4;
const REMEMBERED: usize = 16;
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use narrows_watch::Zone;

    use super::*;
    use crate::commands::watch::settings;

    fn subject() -> Subject {
        let mut all = settings::read(None, &["far.example".to_owned()]).unwrap();
        Subject::new(all.targets.remove(0), Monitor::new(Zone::fixed(0), Duration::from_secs(60)))
    }

    #[test]
    fn an_address_stays_while_its_name_has_it() {
        let (a, b, c): (IpAddr, IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), [10, 0, 0, 3].into());
        let mut subject = subject();
        subject.addresses = vec![b, a];
        assert_eq!(subject.preferred(), Some(b), "the resolver's first");
        subject.address = Some(b);
        subject.addresses = vec![a, b];
        assert_eq!(subject.preferred(), Some(b));
        for answer in [vec![c, a], vec![a, c]] {
            subject.addresses = answer;
            assert_eq!(subject.preferred(), Some(a), "whatever the order");
        }
    }

    #[test]
    fn a_silent_family_gives_way_and_turns_become_rare() {
        let mut subject = subject();
        let (four, six): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), "2001:db8::1".parse().unwrap());
        (subject.addresses, subject.address) = (vec![four, six], Some(four));
        let after = |subject: &mut Subject, seconds| subject.other_family(Duration::from_secs(seconds));
        assert_eq!(after(&mut subject, 20), None);
        assert_eq!(after(&mut subject, 30), Some(six));
        assert_eq!(after(&mut subject, 40), None);
        assert_eq!(after(&mut subject, 0), None);
        assert_eq!(after(&mut subject, 30), Some(six), "an answer makes it as patient as before");
    }
}
