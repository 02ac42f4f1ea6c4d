//! What seconds of simulated slices, capacities and hops hold, from 2 Mbit/s to 10 Gbit/s.

use std::convert::Infallible;
use std::time::Duration;

use narrows_probe::{Budget, Estimate, Event, Measured, PathFacts, Probe, RawParams, World, drive};
use narrows_scenario::{Arrivals, Cross, Hop, PathDirection, Scenario, SizeMix};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Metric, Sender, Stamp};
use narrows_watch::schedule::{Job, JobEnd, JobKind, Outcome, Planner, TargetId, TargetSettings};
use narrows_watch::{BootTime, Moment, WallTime, Zone};

use super::{LIGHT_OCTETS, Sparing, methods, slice_params};

/// A simulated path that notes when each train began and ended, in seconds, and its octets.
struct Noted {
    world: SimWorld,
    trains: Vec<(f64, f64, f64)>,
}

impl World for Noted {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        self.world.now()
    }

    fn facts(&self) -> PathFacts {
        self.world.facts()
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Infallible> {
        if let Probe::Train(train) = &probe {
            let began = self.world.now().nanos() as f64 / 1e9;
            let lasted = train.duration().as_secs_f64().max(1e-6);
            self.trains.push((began, began + lasted, train.ip_octets() as f64));
        }
        self.world.send(probe)
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        self.world.wait(until)
    }
}

impl Noted {
    /// The most octets of any time of that length.
    fn most_over(&self, seconds: f64) -> f64 {
        let within = |from: f64| -> f64 {
            let part = |&(began, ended, octets): &(f64, f64, f64)| {
                let met = (ended.min(from + seconds) - began.max(from)).max(0.0);
                octets * met / (ended - began)
            };
            self.trains.iter().map(part).sum()
        };
        // The worst time begins with a train, or ends with one.
        let ends = self.trains.iter().flat_map(|(began, ended, _)| [*began, ended - seconds]);
        ends.map(within).fold(0.0, f64::max)
    }

    fn longest_train(&self) -> f64 {
        self.trains.iter().map(|(.., octets)| *octets).fold(0.0, f64::max)
    }
}

/// The first job of a kind that the schedule hands out for such a path; hops, if somebody asks.
fn job(kind: JobKind, capacity: BitRate) -> Job {
    let mut planner = Planner::new(Zone::fixed(0), 1, 2);
    let target = TargetId::new(1);
    planner.set_target(
        target,
        TargetSettings { first_capacity: capacity, ..TargetSettings::default() },
        BootTime::default(),
    );
    if kind == JobKind::Hops {
        planner.request(target, kind, Moment::default()).unwrap();
    }
    for second in 0..3600_u32 {
        let now = Moment {
            boot: BootTime::from_millis(u64::from(second) * 1000),
            wall: WallTime::from_millis(i64::from(second) * 1000),
        };
        for job in planner.due(now) {
            if job.kind == kind {
                return job;
            }
            planner.ended(job.id, now.boot, JobEnd { octets: None, outcome: Outcome::Done });
        }
    }
    panic!("no {kind:?} in an hour");
}

/// A path of three hops, of which the second is narrow and two fifths of it taken.
fn path(capacity: BitRate) -> Scenario {
    let hop = |rate| Hop::rate(rate).delay(Duration::from_millis(4));
    let cross = Cross::on_hop(1, Arrivals::Poisson, capacity.scaled(0.4).unwrap(), SizeMix::imix());
    let wide = capacity.scaled(4.0).unwrap();
    let scenario = Scenario::new("path").hop(hop(wide)).hop(hop(capacity)).hop(hop(wide)).cross(cross);
    scenario.validate().unwrap()
}

/// A job over such a path.
fn carried_out(
    kind: JobKind,
    capacity: BitRate,
    seed: u64,
    over_second: impl Fn(&Job) -> BitRate,
) -> (Noted, Measured) {
    let job = job(kind, capacity);
    let scenario = path(capacity);
    let octets = job.octets.count();
    let light = octets.min(LIGHT_OCTETS);
    let (method, params, octets) = match kind {
        JobKind::Slice => {
            let params = slice_params(light, Some(capacity), None, 1500);
            (methods::named("slope", Metric::AvailableIpCapacity), params, light)
        }
        JobKind::Capacity => (methods::named(methods::DEFAULT, Metric::IpCapacity), RawParams::new(), light),
        _ => (methods::find("hops"), RawParams::new(), octets),
    };
    let method = method.unwrap();
    let mut estimator = method.begin(&params).unwrap();
    let usual = method.imposes(&params).budget();
    let budget = Budget { octets: octets.min(usual.octets), time: job.time.min(usual.time), ..usual };
    let mut noted = Noted { world: SimWorld::new(&scenario, PathDirection::Forward, seed), trains: Vec::new() };
    let Ok(measured) = drive(&mut Sparing::new(&mut noted, over_second(&job)), estimator.as_mut(), budget);
    (noted, measured)
}

/// As if nobody spared the path.
fn unspared(job: &Job) -> BitRate {
    job.over_second.scaled(1e3).unwrap()
}

/// Ten times the share of a minute, whatever the link and whatever is measured. Unspared, slow
/// links had up to three times that. At 2 Mbit/s one train may be more, which then is alone.
#[test]
fn no_second_of_a_job_has_more_than_ten_shares() {
    let mut highest = 0.0_f64;
    for mbps in [2, 3, 5, 10, 20, 50, 100, 1000, 10_000] {
        let capacity = BitRate::from_mbps(mbps);
        let share = capacity.octets_in(SECOND) as f64 / 10.0;
        for kind in [JobKind::Slice, JobKind::Capacity, JobKind::Hops] {
            for seed in 1..=if mbps > 1000 { 1 } else { 4 } {
                let (noted, _) = carried_out(kind, capacity, seed, |job| job.over_second);
                let train = noted.longest_train();
                assert!(
                    train <= if mbps > 2 { share } else { 1.25 * share },
                    "{mbps} Mbit/s, {kind:?}: {train} octets"
                );
                // Octets are whole, and times are not.
                let second = noted.most_over(1.0);
                assert!(second <= share.max(train) + 1.0, "{mbps} Mbit/s, {kind:?}, seed {seed}: {second} octets");
                // What was more than a share is made up for.
                let ten = noted.most_over(10.0);
                assert!(ten <= 10.0 * share + 1.0, "{mbps} Mbit/s, {kind:?}, seed {seed}: {ten} octets in ten seconds");
                highest = highest.max(carried_out(kind, capacity, seed, unspared).0.most_over(1.0) / share);
            }
        }
    }
    assert!(highest > 2.5, "jobs spare these paths by themselves: {highest}");
}

/// What waits measures as well: the truth is in the intervals of as many slices, capacities and
/// hops.
#[test]
fn jobs_that_wait_on_slow_links_are_as_good() {
    for (mbps, seeds) in [(5, 20), (10, 20), (20, 10)] {
        let capacity = BitRate::from_mbps(mbps);
        let path = path(capacity);
        let truth = path.truth(PathDirection::Forward);
        let count = |kind: JobKind, truth: BitRate, over_second: fn(&Job) -> BitRate| {
            let holds = |seed: &u64| {
                let (_, measured) = carried_out(kind, capacity, *seed, over_second);
                let rate = measured.outcome.estimate().and_then(Estimate::rate);
                rate.is_some_and(|rate| (rate.low..=rate.high).contains(&truth))
            };
            (1..=seeds).filter(holds).count()
        };
        let of = |kind, truth| [count(kind, truth, |job| job.over_second), count(kind, truth, unspared)];
        let (free, all) = (truth.available(1500).unwrap(), truth.capacity(1500));
        let all = [of(JobKind::Slice, free), of(JobKind::Capacity, all), of(JobKind::Hops, all)];
        assert!(all.iter().all(|[spared, unspared]| spared + 2 >= *unspared), "{mbps} Mbit/s: {all:?}");
    }
}

const SECOND: Duration = Duration::from_secs(1);
