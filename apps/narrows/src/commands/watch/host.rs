//! This host while it measures: was it too busy, and what did it send and receive itself?

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::time::Duration;

use narrows_diagnose::advice::HostEnvironment;
use narrows_net::host::CounterReading;
use narrows_units::{BitRate, rounded};
use narrows_watch::explain::{HostState, Interval, OwnTraffic};
use narrows_watch::{BootTime, ClockStep, Moment, WallTime};

/// Readings once a minute, of the last half hour.
#[derive(Debug, Default)]
pub(super) struct Host {
    last: Option<(BootTime, CounterReading)>,
    minutes: VecDeque<Minute>,
    bursts: VecDeque<(WallTime, u64)>,
    /// Measurements that ended, and whether this host's timing spoiled them.
    timings: VecDeque<(WallTime, bool)>,
}

#[derive(Debug, Clone)]
struct Minute {
    at: WallTime,
    state: HostState,
    /// Octets of each interface so far, both ways.
    octets: BTreeMap<String, u64>,
}

impl Host {
    /// One that is never read.
    #[cfg(test)]
    pub(super) fn unread() -> Self {
        Self { last: Some((BootTime::from_millis(u64::MAX), CounterReading::now(None))), ..Self::default() }
    }

    /// One that is never read, and busy in the last of ten minutes.
    #[cfg(test)]
    pub(super) fn made_busy() -> Self {
        let minute = |number: i64| Minute {
            at: WallTime::from_millis(number * 60_000),
            state: HostState { steal: Some(if number == 9 { 0.5 } else { 0.0 }), ..HostState::default() },
            octets: BTreeMap::new(),
        };
        Self { minutes: (0..10).map(minute).collect(), ..Self::unread() }
    }

    /// Reads this host, if the last reading is old enough.
    pub(super) fn look(&mut self, now: Moment) {
        if self.last.as_ref().is_some_and(|(at, _)| now.boot.since(*at) < EVERY) {
            return;
        }
        let counters = CounterReading::now(None);
        let before = self.last.replace((now.boot, counters.clone()));
        let mut grown = HostEnvironment::default();
        if let Some((_, before)) = before {
            before.until(&counters, &mut grown);
        }
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let state = HostState {
            steal: grown.steal_ratio,
            pressure: pressure(&read("/proc/pressure/cpu")),
            softirq_drops: grown.counted.backlog_drops,
            invalid_timing: self.invalid_timing(now.wall.before(LATELY)),
        };
        self.minutes.push_back(Minute { at: now.wall, state, octets: octets(&read("/proc/thread-self/net/dev")) });
        if self.minutes.len() > REMEMBERED {
            self.minutes.pop_front();
        }
    }

    /// A job of ours sent this much, which is not the host's own traffic.
    pub(super) fn measured(&mut self, at: WallTime, octets: u64) {
        self.bursts.push_back((at, octets));
        if self.bursts.len() > 10 * REMEMBERED {
            self.bursts.pop_front();
        }
    }

    /// A measurement ended, whose timing this host kept or spoiled.
    pub(super) fn timed(&mut self, at: WallTime, is_invalid: bool) {
        self.timings.push_back((at, is_invalid));
        if self.timings.len() > 10 * REMEMBERED {
            self.timings.pop_front();
        }
    }

    /// The clock was set.
    pub(super) fn clock_stepped(&mut self, step: ClockStep) {
        let minutes = self.minutes.iter_mut().map(|minute| &mut minute.at);
        let bursts = self.bursts.iter_mut().map(|(at, _)| at);
        let timings = self.timings.iter_mut().map(|(at, _)| at);
        step.shift(minutes.chain(bursts).chain(timings));
    }

    /// Values that are measured now are this host's, not the path's.
    pub(super) fn is_busy(&self) -> bool {
        let Some(last) = self.minutes.back() else { return false };
        self.worst(&[last], last.state.invalid_timing).is_busy()
    }

    /// A virtual machine may lose a share of its time always. What is so every minute is in all
    /// values alike, and no reason to leave any out.
    fn is_unusual(&self, share: f64, of: fn(&HostState) -> Option<f64>) -> bool {
        let all: Vec<f64> = self.minutes.iter().filter_map(|minute| of(&minute.state)).collect();
        narrows_stat::median(&all).is_none_or(|usual| share > UNUSUAL * usual)
    }

    /// The share of the last minute in which it, or tasks of it, waited for a processor.
    pub(super) fn busy(&self) -> Option<f64> {
        let HostState { steal, pressure, .. } = self.minutes.back()?.state;
        steal.into_iter().chain(pressure).reduce(f64::max)
    }

    /// How it did around a change: the worst of each, as far as that is unusual.
    pub(super) fn state(&self, around: Interval) -> HostState {
        let near = |minute: &&Minute| minute.at.after(EVERY) >= around.low && around.high.after(2 * EVERY) >= minute.at;
        let near: Vec<&Minute> = self.minutes.iter().filter(near).collect();
        self.worst(&near, self.invalid_timing(around.low.before(EVERY)))
    }

    /// The worst of some minutes, as far as that is unusual.
    fn worst(&self, minutes: &[&Minute], invalid_timing: Option<f64>) -> HostState {
        let most = |of: fn(&HostState) -> Option<f64>| {
            let worst = minutes.iter().filter_map(|minute| of(&minute.state)).reduce(f64::max);
            worst.map(|share| if self.is_unusual(share, of) { share } else { 0.0 })
        };
        HostState {
            steal: most(|state| state.steal),
            pressure: most(|state| state.pressure),
            softirq_drops: most(|state| state.softirq_drops.map(|drops| drops as f64)).map(rounded),
            invalid_timing,
        }
    }

    /// The share of the measurements since then that this host's timing spoiled, as far as it is
    /// unusual. Hosts stand still now and then: one is no share.
    fn invalid_timing(&self, since: WallTime) -> Option<f64> {
        let share = |is_wanted: &dyn Fn(WallTime) -> bool| {
            let (mut all, mut invalid) = (0, 0);
            for (_, is_invalid) in self.timings.iter().filter(|(at, _)| is_wanted(*at)) {
                (all, invalid) = (all + 1, invalid + u32::from(*is_invalid));
            }
            (all > 0).then(|| if invalid > 1 { f64::from(invalid) / f64::from(all) } else { 0.0 })
        };
        let usual = share(&|at| at < since).unwrap_or(0.0);
        share(&|at| at >= since).map(|share| if share > UNUSUAL * usual { share } else { 0.0 })
    }

    /// What it sent and received over an interface before a change and since, our jobs left out.
    pub(super) fn own_traffic(&self, interface: &str, change: Interval) -> Option<OwnTraffic> {
        let split = self.minutes.iter().position(|minute| minute.at > change.low)?;
        let (before, after) = (self.minutes.iter().take(split), self.minutes.iter().skip(split));
        Some(OwnTraffic { before: self.rate(interface, before)?, after: self.rate(interface, after)? })
    }

    fn rate<'a>(&self, interface: &str, minutes: impl Iterator<Item = &'a Minute>) -> Option<BitRate> {
        let known: Vec<(WallTime, u64)> =
            minutes.filter_map(|minute| Some((minute.at, *minute.octets.get(interface)?))).collect();
        let ((from, first), (until, last)) = (known.first()?, known.last()?);
        let seconds = until.since(*from).as_secs_f64();
        let ours: u64 = self.bursts.iter().filter(|(at, _)| at > from && at <= until).map(|(_, octets)| octets).sum();
        let octets = last.checked_sub(*first)?.saturating_sub(ours);
        (seconds >= 30.0).then(|| BitRate::from_bps(rounded(octets as f64 * 8.0 / seconds)))
    }
}

/// `some avg60=1.23`: the share of the last minute in which a task waited for a processor.
fn pressure(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some"))?;
    let percent: f64 = line.split_whitespace().find_map(|word| word.strip_prefix("avg60="))?.parse().ok()?;
    Some(percent / 100.0)
}

/// Octets that each interface received and sent.
fn octets(text: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        let counts: Vec<u64> = counts.split_whitespace().map_while(|word| word.parse().ok()).collect();
        Some((name.trim().to_owned(), counts.first()? + counts.get(8)?))
    };
    text.lines().filter_map(row).collect()
}

const EVERY: Duration = Duration::from_secs(60);
const REMEMBERED: usize = 30;
/// Measurements of this time say how timing is now: a target has two or more in it, as a rule.
const LATELY: Duration = Duration::from_secs(300);
/// So many times what this host usually has is not usual (ours: minutes of one load differ less).
const UNUSUAL: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        let text = "some avg10=0.00 avg60=12.50 avg300=1.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(pressure(text), Some(0.125));
        assert_eq!(pressure(""), None);
        let text = "Inter-|   Receive\n face |bytes\n  eth0: 100 1 0 0 0 0 0 0 50 2 0 0 0 0 0 0\n";
        assert_eq!(octets(text).get("eth0"), Some(&150));
    }

    #[test]
    fn time_that_is_always_stolen_is_no_busy_host() {
        let minute = |number: i64, steal: f64| Minute {
            at: WallTime::from_millis(number * 60_000),
            state: HostState { steal: Some(steal), ..HostState::default() },
            octets: BTreeMap::new(),
        };
        let mut host = Host::default();
        host.minutes.extend((0..9).map(|number| minute(number, 0.08)));
        let last = Interval { low: WallTime::from_millis(9 * 60_000), high: WallTime::from_millis(9 * 60_000) };
        assert!(!host.is_busy());
        assert_eq!(host.state(last).steal, Some(0.0));
        host.minutes.push_back(minute(9, 0.3));
        assert!(host.is_busy());
        assert_eq!(host.state(last).steal, Some(0.3));
    }

    #[test]
    fn each_sign_of_a_busy_host_counts_where_it_is_unusual() {
        let at = |number: i64| WallTime::from_millis(number * 60_000);
        let calm =
            HostState { steal: Some(0.0), pressure: Some(0.05), softirq_drops: Some(0), invalid_timing: Some(0.0) };
        let last = Interval { low: at(9), high: at(9) };
        for (busy, usual) in [
            (HostState { steal: Some(0.2), ..calm }, HostState { steal: Some(0.15), ..calm }),
            (HostState { pressure: Some(0.6), ..calm }, HostState { pressure: Some(0.4), ..calm }),
            (HostState { softirq_drops: Some(9), ..calm }, HostState { softirq_drops: Some(7), ..calm }),
            (HostState { invalid_timing: Some(0.5), ..calm }, HostState { invalid_timing: Some(0.0), ..calm }),
        ] {
            let with = |before: HostState, now: HostState| {
                let mut host = Host::default();
                let minute = |number| Minute { at: at(number), state: before, octets: BTreeMap::new() };
                host.minutes.extend((0..9).map(minute));
                host.minutes.push_back(Minute { state: now, ..minute(9) });
                host
            };
            assert!(with(calm, busy).is_busy(), "{busy:?}");
            assert!(!with(calm, calm).is_busy() && !with(usual, usual).is_busy(), "{usual:?}");
            if busy.invalid_timing == calm.invalid_timing {
                assert!(!with(usual, busy).is_busy(), "{busy:?} after {usual:?}");
                assert!(with(calm, busy).state(last).is_busy() && !with(usual, busy).state(last).is_busy());
            }
        }
    }

    /// What is measured says how well this host kept time: four slices, then five of which two were
    /// spoiled.
    #[test]
    fn measurements_say_how_this_host_kept_time() {
        let at = |second: i64| WallTime::from_millis(second * 1000);
        let around = Interval { low: at(1000), high: at(1100) };
        let measured = |before: &[bool], since: &[bool]| {
            let mut host = Host::default();
            (0..).zip(before).for_each(|(step, invalid)| host.timed(at(500 + step * 60), *invalid));
            (0..).zip(since).for_each(|(step, invalid)| host.timed(at(1000 + step * 60), *invalid));
            host
        };
        let spoiled = measured(&[false; 4], &[true, false, true, false, false]);
        assert_eq!(spoiled.state(around).invalid_timing, Some(0.4));
        assert!(spoiled.state(around).is_busy());
        // One is chance, and what is always so is usual.
        for (before, since) in [
            (&[false; 4][..], &[true, false, false, false][..]),
            (&[true, false, true, false], &[true, false, true, false]),
        ] {
            assert_eq!(measured(before, since).state(around).invalid_timing, Some(0.0));
        }
        assert_eq!(measured(&[false; 4], &[]).state(around).invalid_timing, None, "nothing was measured");
        // The next minute of this host says so of values that are measured then.
        let mut host = spoiled;
        host.look(Moment { boot: BootTime::from_millis(0), wall: at(1250) });
        assert_eq!(host.minutes.back().unwrap().state.invalid_timing, Some(0.4));
        assert!(host.is_busy());
    }

    #[test]
    fn own_traffic_is_what_jobs_did_not_send() {
        let at = |minute: i64| WallTime::from_millis(minute * 60_000);
        let mut host = Host::default();
        for minute in 0..10_u64 {
            // 1 Mbit/s, and 9 Mbit/s more from minute 5 on, of which 1 Mbit/s is ours.
            let octets = minute * 7_500_000 + minute.saturating_sub(5) * 67_500_000;
            let at = at(i64::try_from(minute).unwrap());
            let octets = BTreeMap::from([("eth0".to_owned(), octets)]);
            host.minutes.push_back(Minute { at, state: HostState::default(), octets });
            if minute > 5 {
                host.measured(at, 7_500_000);
            }
        }
        assert_eq!(host.busy(), None);
        host.minutes.back_mut().unwrap().state =
            HostState { steal: Some(0.01), pressure: Some(0.2), ..HostState::default() };
        assert_eq!(host.busy(), Some(0.2));
        let own = host.own_traffic("eth0", Interval { low: at(4), high: at(5) }).unwrap();
        assert_eq!((own.before, own.after), (BitRate::from_mbps(1), BitRate::from_mbps(9)));
        assert_eq!(host.own_traffic("wlan0", Interval { low: at(4), high: at(5) }), None);
    }
}
