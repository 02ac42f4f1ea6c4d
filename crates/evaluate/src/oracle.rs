//! What an observer would say who knows the cross traffic of every link exactly, but only while
//! the trains of a run pass.
//!
//! The observer needs no estimator, so the error that is left is that of sampling. What is free is
//! the least over the links of capacity minus cross traffic, as end-to-end trains find it. Trains
//! count by their octets, which is what a run pays. By their time, packets that are far apart would
//! count for all that passes between them, which no packet sees.

use std::convert::Infallible;
use std::time::Duration;

use narrows_probe::{Event, Order, PathFacts, Probe, Reason, World};
use narrows_scenario::{Arrivals, Cross, Crossed, PathDirection, Scenario, Source};
use narrows_sim::SimWorld;
use narrows_units::{Sender, Stamp};

use crate::simulated::Span;
use crate::truth::path_mtu;

/// Cross traffic is counted in intervals of this length: short beside a train, which is at least
/// 1 ms long, and long beside a packet.
const EVERY: Duration = Duration::from_micros(100);

/// A train that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// From the first to the last departure, in the scenario's time.
    pub span: Span,
    /// IP octets of the packets that left.
    pub octets: u64,
}

/// A world that notes when each train passes, for methods that send from here.
pub struct Timed {
    inner: SimWorld,
    trains: Vec<Passed>,
}

impl Timed {
    /// Around a world in which nothing was sent.
    pub fn new(inner: SimWorld) -> Self {
        Self { inner, trains: Vec::new() }
    }

    /// The time since the scenario's begin, in nanoseconds.
    pub fn true_time(&self) -> u64 {
        self.inner.true_time()
    }

    /// The trains so far.
    pub fn trains(&self) -> &[Passed] {
        &self.trains
    }
}

impl World for Timed {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        self.inner.now()
    }

    fn facts(&self) -> PathFacts {
        self.inner.facts()
    }

    fn begins(&mut self, order: &Order<'_>) {
        self.inner.begins(order);
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Infallible> {
        let (began, reading) = (Duration::from_nanos(self.inner.true_time()), self.inner.now());
        let event = self.inner.send(probe)?;
        if let Event::Train(report) = &event
            && let (Some(first), Some(last)) = (report.arrivals.first(), report.arrivals.last())
        {
            let at = |stamp: Stamp<Sender>| began + stamp.since(reading);
            let octets = report.arrivals.iter().map(|row| u64::from(row.ip_octets)).sum();
            self.trains.push(Passed { span: (at(first.departed), at(last.departed)), octets });
        }
        Ok(event)
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        self.inner.wait(until)
    }

    fn concluded(&mut self, measured: &narrows_probe::Measured, stopped: Option<&Reason>) {
        self.inner.concluded(measured, stopped);
    }
}

/// What the observer says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// The mean of what was free while trains passed, bit/s at the IP layer.
    pub available_bps: f64,
    /// The same where trains count by their time.
    pub by_time_bps: f64,
    /// For how long they passed, seconds.
    pub seconds: f64,
}

/// What was free while those of `trains` passed that began within `span`, if nobody had probed.
/// `None` if none did.
pub fn observed(scenario: &Scenario, seed: u64, trains: &[Passed], span: Span) -> Option<Observed> {
    let way = PathDirection::Forward;
    let within = |train: &Passed| (span.0..=span.1).contains(&train.span.0);
    let trains: Vec<Passed> = trains.iter().copied().filter(within).collect();
    let last = trains.iter().map(|train| train.span.1).max()?;
    let delay: Duration = scenario.hops(way).iter().map(|hop| hop.delay).sum();
    let counted = SimWorld::undisturbed_by(scenario, way, seed, (span.0, last + delay + EVERY), EVERY);
    free_while(scenario, &counted, span.0, &trains)
}

/// The same of what was counted on each hop since `origin`, in intervals of [`EVERY`].
fn free_while(scenario: &Scenario, counted: &[Vec<Crossed>], origin: Duration, trains: &[Passed]) -> Option<Observed> {
    let (mut by_octets, mut octets, mut by_time, mut seconds) = (0.0, 0.0, 0.0, 0.0);
    for Passed { span: (from, to), octets: sent } in trains {
        let intervals = intervals(to.saturating_sub(*from)).max(1);
        let mut before = Duration::ZERO;
        let mut crossed = Vec::new();
        for (hop, counted) in scenario.hops(PathDirection::Forward).iter().zip(counted) {
            let first = (*from + before).saturating_sub(origin).as_nanos() / EVERY.as_nanos();
            let mut here = Crossed::default();
            let first = usize::try_from(first).unwrap_or(usize::MAX);
            counted.iter().skip(first).take(intervals as usize).for_each(|interval| here.merge(interval));
            crossed.push(here);
            before += hop.delay;
        }
        let length = EVERY * intervals;
        let truth = scenario.truth(PathDirection::Forward).over(*from, *from + length).beside(&crossed);
        let free = truth.available(path_mtu(scenario))?.as_f64();
        by_octets += free * *sent as f64;
        octets += *sent as f64;
        by_time += free * length.as_secs_f64();
        seconds += length.as_secs_f64();
    }
    let known = octets > 0.0 && seconds > 0.0;
    known.then(|| Observed { available_bps: by_octets / octets, by_time_bps: by_time / seconds, seconds })
}

/// How many intervals cover this time.
fn intervals(time: Duration) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(EVERY.as_nanos())).unwrap_or(u32::MAX)
}

/// The variance per second of the bits that cross the tight link, bit²/s, where all of them come at
/// random: packets of `L` bits at the rate `X` have `X E[L²]/E[L]`. `None` beside other traffic, or
/// beside none.
pub fn poisson_variance(scenario: &Scenario) -> Option<f64> {
    let way = PathDirection::Forward;
    let tight = scenario.truth(way).tight_hop(path_mtu(scenario))?;
    let variance = |cross: &Cross| match &cross.source {
        Source::Open { arrivals: Arrivals::Poisson, rate, sizes, .. } => {
            let bits = |size: u16| 8.0 * f64::from(size);
            let squares: f64 = sizes.shares().map(|(size, share)| share * bits(size).powi(2)).sum();
            Some(rate.as_f64() * squares / (8.0 * sizes.mean_ip_octets()))
        }
        Source::Open { .. } | Source::Elastic(_) => None,
    };
    let crossing = scenario.cross.iter().filter(|cross| cross.crosses(way, tight));
    let each: Option<Vec<f64>> = crossing.map(variance).collect();
    each.filter(|each| !each.is_empty()).map(|each| each.iter().sum())
}

#[cfg(test)]
mod tests {
    use narrows_scenario::{Hop, SizeMix};
    use narrows_units::BitRate;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn two_hops() -> Scenario {
        let hop = || Hop::rate(BitRate::from_mbps(100)).delay(2 * MS);
        let traffic = |rate| Cross::on_hop(1, Arrivals::Poisson, BitRate::from_mbps(rate), SizeMix::constant(1500));
        Scenario::new("two hops").hop(hop()).hop(hop()).cross(traffic(20)).cross(traffic(10)).validate().unwrap()
    }

    /// By hand: a packet of 1500 octets takes 123.04 us of a link of 100 Mbit/s, which carries
    /// 97.529 Mbit/s of IP. A train of 1 ms that leaves at 4 ms meets four packets on the first hop
    /// and, 2 ms later, six on the second: 26.176 % are left. A train of 3 ms meets none. The mean
    /// by time is (0.26176 + 3)/4 of 97.529 Mbit/s. By octets, of which the first has nine in ten,
    /// it is (9 x 0.26176 + 1)/10. Packets at other times do not count.
    #[test]
    fn trains_count_by_their_octets_on_the_fullest_link() {
        let mut counted = vec![vec![Crossed::default(); 200], vec![Crossed::default(); 200]];
        for (hop, tenth, packets) in [(0, 0, 9), (0, 43, 4), (0, 50, 9), (1, 40, 9), (1, 60, 2), (1, 69, 4), (1, 70, 9)]
        {
            (0..packets).for_each(|_| counted[hop][tenth].add(1500));
        }
        let origin = 100 * MS;
        let passed = |from, to, octets| Passed { span: (origin + from * MS, origin + to * MS), octets };
        let trains = [passed(4, 5, 13_500), passed(8, 11, 1500)];
        let seen = free_while(&two_hops(), &counted, origin, &trains).unwrap();
        assert!((seen.seconds - 0.004).abs() < 1e-12);
        let left = 1.0 - 6.0 * 0.123_04;
        assert!((seen.by_time_bps - 97_529_258.8 * (left + 3.0) / 4.0).abs() < 10.0, "{seen:?}");
        assert!((seen.available_bps - 97_529_258.8 * (9.0 * left + 1.0) / 10.0).abs() < 10.0, "{seen:?}");
        assert_eq!(free_while(&two_hops(), &counted, origin, &[]), None);
    }

    /// One train that lasts as long as the run sees what the truth of the run says.
    #[test]
    fn a_train_that_never_ends_sees_the_truth() {
        let (scenario, span) = (two_hops(), (2000 * MS, 4000 * MS));
        let seen = observed(&scenario, 7, &[Passed { span, octets: 1500 }], span).unwrap();
        let crossed = SimWorld::undisturbed(&scenario, PathDirection::Forward, 7, span.0 + 2 * MS, span.1 + 2 * MS);
        let truth = scenario.truth(PathDirection::Forward).over(span.0, span.1).beside(&crossed);
        let truth = truth.available(1500).unwrap().as_f64();
        assert!((seen.available_bps - truth).abs() < 10.0, "{seen:?} {truth}");
        assert_eq!(observed(&scenario, 7, &[Passed { span, octets: 1500 }], (3000 * MS, 4000 * MS)), None);
    }

    /// 30 Mbit/s in packets of 12 000 bits; of two sizes, half of the packets each, 4000 and 12 000
    /// bits: 30e6 x 80e6/8000.
    #[test]
    fn variance_of_packets_at_random() {
        assert_eq!(poisson_variance(&two_hops()), Some(30e6 * 12_000.0));
        let mix = SizeMix::weighted(vec![(500, 0.5), (1500, 0.5)]).unwrap();
        let with = |arrivals| {
            let hop = Hop::rate(BitRate::from_mbps(100));
            let cross = Cross::on_hop(0, arrivals, BitRate::from_mbps(30), mix.clone());
            poisson_variance(&Scenario::new("mixed").hop(hop).cross(cross).validate().unwrap())
        };
        assert!((with(Arrivals::Poisson).unwrap() - 3e11).abs() < 1.0);
        assert_eq!(with(Arrivals::Cbr), None);
        let idle = Scenario::new("idle").hop(Hop::rate(BitRate::from_mbps(100))).validate().unwrap();
        assert_eq!(poisson_variance(&idle), None);
    }

    /// Five packets 1 ms apart, twice, with a pause of 50 ms; the scenario warms up for some time.
    #[test]
    fn trains_pass_from_the_first_departure_to_the_last() {
        use narrows_probe::probes::{Train, TrainId};
        let mut world = Timed::new(SimWorld::new(&two_hops(), PathDirection::Forward, 7));
        let began = Duration::from_nanos(world.true_time());
        let train = Train::uniform(TrainId(0), 5, 1500, MS);
        let Ok(_) = world.send(Probe::Train(train.clone()));
        let Ok(()) = world.wait(Stamp::from_nanos(world.now().nanos() + 50_000_000));
        let later = Duration::from_nanos(world.true_time());
        assert!(later >= began + 54 * MS);
        let Ok(_) = world.send(Probe::Train(train));
        let passed = |from| Passed { span: (from, from + 4 * MS), octets: 7500 };
        assert_eq!(world.trains(), [passed(began), passed(later)]);
    }
}
