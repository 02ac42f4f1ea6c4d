//! Simulated months and years of the schedule.

use narrows_stat::SplitMix64;

use super::*;
use crate::schedule::settings::PULSE_OCTETS_PER_DAY;
use crate::schedule::{NotQueued, Outcome};

/// Began, ended, octets, whether the share per minute counts, what for.
type Sent = (BootTime, BootTime, u64, bool, Why);

/// A world in which jobs end after a while, having sent what they like within their budget.
struct World {
    planner: Planner,
    now: Moment,
    random: SplitMix64,
    running: Vec<(BootTime, Job)>,
    sent: BTreeMap<TargetId, Vec<Sent>>,
}

const CAPACITIES_KBPS: [u64; 8] = [2000, 5000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 10_000_000];

impl World {
    fn new(seed: u64, capacities_kbps: &[u64]) -> Self {
        let zone = Zone::fixed(3600);
        let mut planner = Planner::new(zone, seed, 2);
        let now = Moment { boot: BootTime::from_millis(0), wall: WallTime::from_millis(1_795_392_000_000) };
        for (number, kbps) in (0..).zip(capacities_kbps) {
            let settings = TargetSettings {
                first_capacity: BitRate::from_bps(kbps * 1000),
                night: "02:00-05:00".parse().ok(),
                quiet: if number == 4 { vec!["Mon-Fri 09:00-12:00".parse().unwrap()] } else { Vec::new() },
                link: if number < 2 { "dsl".to_owned() } else { String::new() },
                ..TargetSettings::default()
            };
            planner.set_target(TargetId::new(number), settings, now.boot);
        }
        Self { planner, now, random: SplitMix64::new(seed), running: Vec::new(), sent: BTreeMap::new() }
    }

    /// Runs until `end`; `each` may disturb the world at every step.
    fn run(&mut self, end: BootTime, mut each: impl FnMut(&mut Self)) {
        while self.now.boot < end {
            each(self);
            self.end_jobs();
            for job in self.planner.due(self.now) {
                let seconds = 1.0 + 4.0 * self.random.next_unit();
                self.running.push((self.now.boot.after(Duration::from_secs_f64(seconds)), job));
            }
            let next = self.planner.next(self.now.boot);
            let next =
                self.running.iter().map(|(ends, _)| *ends).fold(next, BootTime::min).max(self.now.boot.after(MS));
            let step = next.since(self.now.boot);
            self.now = Moment { boot: next, wall: self.now.wall.after(step) };
        }
    }

    fn set_clock(&mut self, to: WallTime) {
        self.planner.clock_stepped(ClockStep { from: self.now.wall, to });
        self.now.wall = to;
    }

    fn end_jobs(&mut self) {
        let now = self.now.boot;
        let (ended, running) = std::mem::take(&mut self.running).into_iter().partition(|(ends, _)| *ends <= now);
        self.running = running;
        let ended: Vec<(BootTime, Job)> = ended;
        for (_, job) in ended {
            // Jobs take less than first assumed, and vary; the budget stops some.
            let capacity = self.planner.targets[&job.target].capacity;
            let usual = job.kind.first_forecast(capacity).count() as f64;
            let takes = narrows_units::rounded(usual * (0.5 + 0.8 * self.random.next_unit()));
            self.end(&job, takes.min(job.octets.count()), Outcome::Done);
        }
    }

    fn end(&mut self, job: &Job, octets: u64, outcome: Outcome) {
        let began = self.planner.running.get(&job.id).map_or(self.now.boot, |running| running.began);
        let counts = job.kind != JobKind::Test;
        self.sent.entry(job.target).or_default().push((began, self.now.boot, octets, counts, job.why));
        self.planner.ended(job.id, self.now.boot, JobEnd { octets: Some(Octets::new(octets)), outcome });
    }

    /// The most in any 60 s, as if each job had sent all of its octets at the worst instant.
    fn worst_minute(&self, target: TargetId) -> u64 {
        let jobs: Vec<_> = self.sent[&target].iter().filter(|job| job.3).collect();
        let mut worst = 0;
        for (index, last) in jobs.iter().enumerate() {
            let touches = |ended: BootTime| ended.after(Duration::from_secs(60)) > last.0;
            // Jobs stand in the order of their ends; the next few may have begun before.
            let earlier = jobs[..index].iter().rev().take_while(|job| touches(job.1));
            // The last one of a window to begin is `last`.
            let others = earlier.chain(jobs[index + 1..].iter().take(6)).filter(|job| job.0 <= last.0);
            worst = worst.max(last.2 + others.map(|job| job.2).sum::<u64>());
        }
        worst + PULSE_OCTETS_PER_DAY / 1440
    }

    fn days(&self, target: TargetId, start: i64, evidence: bool) -> BTreeMap<i64, u64> {
        let mut days = BTreeMap::new();
        for (began, _, octets, _, why) in &self.sent[&target] {
            if evidence || *why != Why::Evidence {
                let wall = WallTime::from_millis(start).after(Duration::from_millis(began.millis()));
                *days.entry(Zone::fixed(3600).local(wall).day).or_insert(PULSE_OCTETS_PER_DAY) += octets;
            }
        }
        days
    }
}

const MS: Duration = Duration::from_millis(1);
const START: i64 = 1_795_392_000_000;

const fn day(number: u64) -> BootTime {
    BootTime::from_millis(number * 86_400_000)
}

#[test]
fn a_month_of_eight_paths_stays_within_share_day_and_forecast() {
    let mut world = World::new(3, &CAPACITIES_KBPS);
    let mut triggered = 0;
    world.run(day(30), |world| {
        // An incident about every eight hours, at one target after the other.
        if world.now.boot.millis() / 28_800_000 > triggered {
            triggered += 1;
            let target = TargetId::new(u32::try_from(triggered % 8).unwrap());
            world.planner.observe(target, world.now.boot, PathEvent::Trigger);
        }
    });
    for (number, kbps) in (0..).zip(CAPACITIES_KBPS) {
        let (target, capacity) = (TargetId::new(number), BitRate::from_bps(kbps * 1000));
        let minute = capacity.octets_in(Duration::from_secs(60)) / 100;
        let worst = world.worst_minute(target);
        assert!(worst <= minute, "{capacity}: {worst} octets in a minute, {minute} allowed");
        let forecast = world.planner.forecast(target).unwrap();
        let all = world.days(target, START, true);
        let most = all.values().max().copied().unwrap();
        assert!(most <= forecast.limit.count(), "{capacity}: {most} in a day, {} allowed", forecast.limit);
        let plain = world.days(target, START, false);
        // The first and the last local day are not whole.
        let whole: Vec<u64> = plain.values().copied().skip(1).take(plain.len() - 2).collect();
        let mean = whole.iter().sum::<u64>() as f64 / whole.len() as f64;
        let ratio = forecast.total().count() as f64 / mean;
        assert!((0.9..1.1).contains(&ratio), "{capacity}: forecast is {ratio:.3} of {mean:.0}");
    }
}

#[test]
fn a_year_of_a_path_runs_in_seconds() {
    let mut world = World::new(4, &[100_000]);
    world.run(day(365), |_| {});
    let days = world.days(TargetId::new(0), START, true);
    assert!(days.len() >= 365);
    let limit = world.planner.forecast(TargetId::new(0)).unwrap().limit.count();
    assert!(days.values().all(|octets| *octets <= limit));
}

#[test]
fn restarts_sleep_and_clock_steps_never_spend_twice() {
    let mut world = World::new(5, &[2000, 100_000]);
    let mut steps = 0_u64;
    world.run(day(4), |world| {
        steps += 1;
        if steps.is_multiple_of(500) {
            // kill -9 in the middle of jobs: what they sent is as bad as it can be.
            for (_, job) in std::mem::take(&mut world.running) {
                let began = world.planner.running[&job.id].began;
                let lost = (began, world.now.boot, job.octets.count(), job.kind != JobKind::Test, job.why);
                world.sent.entry(job.target).or_default().push(lost);
            }
            let mut planner = Planner::new(Zone::fixed(3600), steps, 2);
            for number in 0..2 {
                let target = TargetId::new(number);
                let stored = postcard::to_stdvec(world.planner.plan(target).unwrap()).unwrap();
                assert!(stored.len() < 2000, "{} octets", stored.len());
                planner.restore(target, postcard::from_bytes(&stored).unwrap(), world.now.boot);
            }
            world.planner = planner;
        } else if steps.is_multiple_of(303) {
            // The clock steps over a midnight, and back later.
            let by = if steps.is_multiple_of(2) { 86_400_000 } else { -86_400_000 };
            let to = WallTime::from_millis(world.now.wall.millis() + by);
            world.set_clock(to);
        } else if steps.is_multiple_of(701) {
            world.planner.woke(world.now.boot);
        }
    });
    for number in 0..2 {
        let target = TargetId::new(number);
        let limit = world.planner.forecast(target).unwrap().limit.count();
        let days = world.days(target, START, true);
        assert!(days.values().all(|octets| *octets <= limit), "{days:?}, {limit}");
        let capacity = BitRate::from_bps([2_000_000, 100_000_000][number as usize]);
        assert!(world.worst_minute(target) <= capacity.octets_in(Duration::from_secs(60)) / 100);
    }
}

/// An hour back in the night shows its hours twice; an hour forwards, and a day there and back,
/// show another night's.
#[test]
fn a_night_is_worked_once_whatever_the_clock_does() {
    for steps_h in [vec![-1], vec![1], vec![1, -1], vec![-1, 1], vec![24, -24]] {
        let mut world = World::new(11, &[100_000]);
        // 04:30 of the second night; each further step five minutes later.
        let mut steps = steps_h.iter().enumerate().map(|(number, hours)| {
            let minutes = 24 * 60 + 4 * 60 + 30 + 5 * u64::try_from(number).unwrap();
            (BootTime::from_millis(minutes * 60_000), *hours)
        });
        let mut next = steps.next();
        world.run(day(3), |world| {
            if let Some((at, hours)) = next.filter(|(at, _)| *at <= world.now.boot) {
                assert!(world.now.boot.since(at) < Duration::from_secs(120));
                world.set_clock(WallTime::from_millis(world.now.wall.millis() + hours * 3_600_000));
                next = steps.next();
            }
        });
        let all = &world.sent[&TargetId::new(0)];
        let tests = all.iter().filter(|(.., why)| *why == Why::Night).count();
        // Three nights begin within three days; the day ahead has one of its own.
        let nights = if steps_h.contains(&24) { 3..=4 } else { 3..=3 };
        assert!(nights.contains(&tests), "{steps_h:?}: {tests}");
    }
}

#[test]
fn quiet_hours_have_routes_alone() {
    let mut world = World::new(7, &CAPACITIES_KBPS);
    world.run(day(7), |_| {});
    let quiet = "Mon-Fri 09:00-12:00".parse::<crate::schedule::WeeklyHours>().unwrap();
    for (began, .., why) in &world.sent[&TargetId::new(4)] {
        let wall = WallTime::from_millis(START).after(Duration::from_millis(began.millis()));
        assert!(*why == Why::Base || !quiet.covers(Zone::fixed(3600).local(wall)));
    }
}

#[test]
fn a_refusing_server_is_left_alone_and_routes_go_on() {
    let mut world = World::new(8, &[100_000]);
    let mut asked = 0;
    world.run(BootTime::from_millis(3 * 3_600_000), |world| {
        for (_, job) in std::mem::take(&mut world.running) {
            let refused = job.kind.needs_server();
            asked += u32::from(refused);
            world.end(&job, 100, if refused { Outcome::Refused } else { Outcome::Done });
        }
    });
    // After 1, 2, 4 .. 60 min.
    assert!((6..=9).contains(&asked), "{asked}");
    assert!(world.sent[&TargetId::new(0)].len() > 36);
}

#[test]
fn a_server_that_dies_is_gone_within_90_s_and_asked_again_after_1_to_15_minutes() {
    let target = TargetId::new(0);
    // A slice a minute, and one in half an hour.
    for kbps in [100_000, 10_000_000] {
        let mut world = World::new(9, &[kbps]);
        let (mut failed, back) = (Vec::new(), BootTime::from_millis(4_000_000));
        world.run(BootTime::from_millis(6_000_000), |world| {
            let now = world.now.boot;
            let is_over = |(ends, job): &(BootTime, Job)| *ends <= now && job.kind.needs_server();
            let (over, running): (Vec<_>, Vec<_>) = std::mem::take(&mut world.running).into_iter().partition(is_over);
            world.running = running;
            for (_, job) in over {
                if now > back {
                    // Without an answer, but with the server.
                    world.end(&job, 0, Outcome::Inconclusive);
                } else {
                    world.end(&job, 0, Outcome::ServerGone);
                    failed.push(now);
                }
                assert_eq!(world.planner.server_gone(target), now <= back && failed.len() >= 3);
            }
        });
        assert!(!world.planner.server_gone(target) && failed.len() >= 9, "{failed:?}");
        let gaps: Vec<u64> = failed.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect();
        assert!(gaps[0] + gaps[1] <= 90, "{gaps:?}");
        for (gap, minutes) in gaps[2..].iter().zip([1, 2, 4, 8, 15, 15]) {
            assert!((60 * minutes..60 * minutes + 10).contains(gap), "{gaps:?}");
        }
    }
}

#[test]
fn a_capacity_without_an_answer_is_asked_for_again() {
    let mut world = World::new(10, &[100_000]);
    let mut asked = Vec::new();
    world.run(BootTime::from_millis(3 * 3_600_000), |world| {
        let is_capacity = |(_, job): &(BootTime, Job)| job.kind == JobKind::Capacity;
        let (capacities, running): (Vec<_>, Vec<_>) =
            std::mem::take(&mut world.running).into_iter().partition(is_capacity);
        world.running = running;
        for (_, job) in capacities {
            asked.push(world.now.boot);
            let (octets, outcome) = match asked.len() {
                1 => (0, Outcome::ServerGone),
                2 => (0, Outcome::LinkBusy),
                6 => (100, Outcome::Done),
                _ => (100, Outcome::Void),
            };
            world.end(&job, octets, outcome);
        }
    });
    // The answer ends it.
    assert_eq!(asked.len(), 6);
    for (pair, minutes) in asked.windows(2).zip([1, 2, 4, 8, 16]) {
        let gap = pair[1].since(pair[0]).as_secs();
        assert!((60 * minutes..60 * minutes + 10).contains(&gap), "{gap} s instead of {minutes} min");
    }
}

#[test]
fn a_first_slice_without_a_value_is_repeated_soon_and_not_for_ever() {
    let mut world = World::new(11, &[100_000]);
    let mut asked = Vec::new();
    world.run(BootTime::from_millis(600_000), |world| {
        let is_slice = |(_, job): &(BootTime, Job)| job.kind == JobKind::Slice;
        let (slices, running): (Vec<_>, Vec<_>) = std::mem::take(&mut world.running).into_iter().partition(is_slice);
        world.running = running;
        for (_, job) in slices {
            asked.push(world.now.boot);
            world.end(&job, 100_000, Outcome::Inconclusive);
        }
    });
    let gaps: Vec<u64> = asked.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect();
    // A route before a slice takes up to 5 s here.
    assert!(gaps.len() > 13 && gaps[..4].iter().all(|gap| *gap <= 15 + 5), "{gaps:?}");
    assert!(gaps[4..11].iter().all(|gap| (16..=24 + 5).contains(gap)), "{gaps:?}");
    assert!(gaps[12..].iter().all(|gap| *gap >= 54), "{gaps:?}");
}

/// Twelve values at 100 Mbit/s within four minutes, so that a change soon after the start has some
/// before it. Elsewhere the budget has less room.
#[test]
fn the_first_slices_come_soon_where_the_budget_has_room() {
    for (kbps, least, most) in
        [(10_000, 600, 800), (100_000, 180, 300), (1_000_000, 200, 300), (10_000_000, 3000, 3600)]
    {
        let mut world = World::new(11, &[kbps]);
        world.run(BootTime::from_millis(7_200_000 * kbps.max(1_000_000) / 1_000_000), |_| {});
        let target = TargetId::new(0);
        let is_slice = |(.., counts, why): &&Sent| *counts && *why == Why::Cadence;
        let times: Vec<u64> =
            world.sent[&target].iter().filter(is_slice).map(|(began, ..)| began.millis() / 1000).collect();
        // The capacity is one of them.
        assert!((least..=most).contains(&times[12]), "{kbps}: {times:?}");
        assert!(world.worst_minute(target) <= BitRate::from_bps(kbps * 1000).octets_in(Duration::from_secs(60)) / 100);
    }
}

#[test]
fn what_people_ask_for_begins_at_once_or_is_refused_with_the_reason() {
    let target = TargetId::new(0);
    let mut world = World::new(11, &[100_000]);
    assert_eq!(world.planner.request(TargetId::new(9), JobKind::Hops, world.now), Err(NotQueued::Unknown));
    let octets = world.planner.request(target, JobKind::Hops, world.now).unwrap();
    assert_eq!(world.planner.request(target, JobKind::Hops, world.now), Ok(octets), "it is queued once");
    let asked = |jobs: &[Job]| jobs.iter().filter(|job| job.why == Why::Asked).count();
    let end = |planner: &mut Planner, job: Job, at| {
        planner.ended(job.id, at, JobEnd { octets: None, outcome: Outcome::Done });
    };
    for route in world.planner.due(world.now) {
        end(&mut world.planner, route, world.now.boot);
    }
    let first = world.planner.due(world.now);
    assert!(asked(&first) == 1 && first.iter().all(|job| job.octets <= octets || job.why != Why::Asked));
    assert_eq!(asked(&world.planner.due(world.now)), 0);
    // Until the share for evidence is spent.
    let mut begun = first;
    let refusal = (0..1000).find_map(|_| {
        begun.drain(..).for_each(|job| end(&mut world.planner, job, world.now.boot));
        begun = world.planner.due(world.now);
        let minute = Duration::from_secs(61);
        world.now = Moment { boot: world.now.boot.after(minute), wall: world.now.wall.after(minute) };
        world.planner.request(target, JobKind::Hops, world.now).err()
    });
    let Some(NotQueued::Day { needed, left }) = refusal else { panic!("{refusal:?}") };
    assert!(needed > left, "{needed}, {left}");
    let spent = [Why::Evidence, Why::Asked].map(|why| world.planner.spent(target, world.now.wall, why).count());
    assert!(spent[1] > 300_000_000 && spent.iter().sum::<u64>() <= 500_000_000, "{spent:?}");
}

#[test]
fn what_was_promised_and_finds_the_day_spent_begins_on_the_next_day() {
    let target = TargetId::new(0);
    let day = |now: Moment| Zone::fixed(3600).local(now.wall).day;
    // Until each of two jobs fits the day, and both do not; some worlds leap over that.
    let until_one_fits = |mut world: World| loop {
        let octets = [JobKind::Hops, JobKind::Capacity].map(|kind| world.planner.request(target, kind, world.now));
        let [Ok(hops), Ok(capacity)] = octets else { return None };
        let left = world.planner.targets[&target].left(day(world.now), Why::Asked).count();
        if hops.count() + capacity.count() > left {
            return Some(world);
        }
        world.run(world.now.boot.after(Duration::from_secs(61)), |_| {});
    };
    let mut world = (13..40).find_map(|seed| until_one_fits(World::new(seed, &[100_000]))).unwrap();
    let promised = world.now;
    let begun: Vec<Job> = world.planner.due(promised).into_iter().filter(|job| job.why == Why::Asked).collect();
    let [first] = &begun[..] else { panic!("one fits: {begun:?}") };
    let spent = JobEnd { octets: Some(first.octets), outcome: Outcome::Done };
    world.planner.ended(first.id, promised.boot, spent);
    let mut second = None;
    world.run(promised.boot.after(Duration::from_secs(2 * 86_400)), |world| {
        if world.running.iter().any(|(_, job)| job.why == Why::Asked) {
            second.get_or_insert(day(world.now));
        }
    });
    assert_eq!(second, Some(day(promised) + 1));
}

#[test]
fn requests_wait_for_no_quiet_hours_and_no_server_that_is_gone() {
    // Target 4 is quiet at nine; it is Monday, a little after midnight.
    let mut world = World::new(12, &CAPACITIES_KBPS);
    let nine = Duration::from_secs(9 * 3600 + 1800);
    let local = Zone::fixed(3600).local(world.now.wall);
    let until_nine = nine.saturating_sub(Duration::from_secs(local.second.into()));
    let quiet = Moment { boot: world.now.boot.after(until_nine), wall: world.now.wall.after(until_nine) };
    let target = TargetId::new(4);
    assert_eq!(world.planner.request(target, JobKind::Capacity, quiet), Err(NotQueued::Quiet));
    assert!(world.planner.request(target, JobKind::Route, quiet).is_ok());
    world.planner.targets.get_mut(&target).unwrap().backoff.refused(world.now.boot);
    let minute = world.now.boot.after(Duration::from_secs(60));
    assert_eq!(world.planner.request(target, JobKind::Slice, world.now), Err(NotQueued::Server(minute)));
    assert!(world.planner.request(target, JobKind::Capacity, world.now).is_ok());
    world.planner.ask_server(target, world.now.boot);
    assert!(world.planner.request(target, JobKind::Slice, world.now).is_ok());
}

#[test]
fn a_request_that_needs_the_whole_minute_is_not_overtaken_for_ever() {
    let (mut world, target) = (World::new(13, &[2000]), TargetId::new(0));
    world.run(BootTime::from_millis(600_000), |_| {});
    world.planner.request(target, JobKind::Hops, world.now).unwrap();
    world.run(BootTime::from_millis(900_000), |_| {});
    let asked = world.sent[&target].iter().find(|(.., why)| *why == Why::Asked).map(|(began, ..)| began.millis());
    assert!(asked.is_some_and(|began| began < 780_000), "{asked:?}");
    assert!(world.worst_minute(target) <= BitRate::from_mbps(2).octets_in(Duration::from_secs(60)) / 100);
}

#[test]
fn a_busy_server_costs_a_slice_and_nothing_more() {
    let mut world = World::new(14, &[100_000]);
    let mut asked = Vec::new();
    world.run(BootTime::from_millis(3_600_000), |world| {
        let is_slice = |(_, job): &(BootTime, Job)| job.kind == JobKind::Slice;
        let (slices, running): (Vec<_>, Vec<_>) = std::mem::take(&mut world.running).into_iter().partition(is_slice);
        world.running = running;
        for (_, job) in slices {
            asked.push(world.now.boot);
            world.end(&job, 0, Outcome::ServerBusy);
        }
    });
    assert!(!world.planner.server_gone(TargetId::new(0)));
    // A start has twelve of them, busy server or not.
    let mut gaps = asked.windows(2).skip(12).map(|pair| pair[1].since(pair[0]).as_secs());
    assert!(asked.len() > 40 && gaps.all(|gap| (89..=110).contains(&gap)), "{asked:?}");
}

#[test]
fn another_assumed_capacity_counts_until_one_is_measured() {
    let (mut world, target) = (World::new(15, &[100_000]), TargetId::new(0));
    let assume = |world: &mut World, mbps| {
        let first_capacity = BitRate::from_mbps(mbps);
        world.planner.set_target(
            target,
            TargetSettings { first_capacity, ..TargetSettings::default() },
            world.now.boot,
        );
        (world.planner.targets[&target].capacity, world.planner.capacity(target))
    };
    assert_eq!(assume(&mut world, 5), (BitRate::from_mbps(5), None));
    world.planner.observe(target, world.now.boot, PathEvent::Capacity(BitRate::from_mbps(40)));
    assert_eq!(assume(&mut world, 7), (BitRate::from_mbps(40), Some(BitRate::from_mbps(40))));
    world.planner.observe(target, world.now.boot, PathEvent::Moved);
    assert_eq!(world.planner.targets[&target].capacity, BitRate::from_mbps(7), "the new path may be narrower");
    assert_eq!(assume(&mut world, 7), (BitRate::from_mbps(7), None));
}

mod hosts;
mod turns;
