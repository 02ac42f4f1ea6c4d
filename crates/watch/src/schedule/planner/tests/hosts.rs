//! Two hosts that meet at one server.

use super::*;
use crate::schedule::{NightTest, Turn};

/// When jobs that load a path began, in milliseconds of the true time, on a host whose clock is
/// wrong by so much.
fn loads(seed: u64, turn: Option<Turn>, clock_ms: i64) -> (World, Vec<u64>) {
    let mut world = World::new(seed, &[100_000]);
    let target = TargetId::new(0);
    world.now.wall = WallTime::from_millis(START + clock_ms);
    let settings =
        TargetSettings { night: "02:00-05:00".parse().ok(), test: NightTest::Light, turn, ..TargetSettings::default() };
    world.planner.set_target(target, settings, world.now.boot);
    let (mut hours, mut began, mut known) = (0, Vec::new(), BTreeSet::new());
    world.run(day(3), |world| {
        began.extend(
            world
                .running
                .iter()
                .filter(|(_, job)| job.kind.loads() && known.insert(job.id))
                .map(|(_, job)| world.planner.running[&job.id].began.millis()),
        );
        if world.now.boot.millis() / 3_600_000 > hours {
            hours += 1;
            match (hours + seed) % 7 {
                0 => world.planner.woke(world.now.boot),
                3 => world.planner.observe(target, world.now.boot, PathEvent::Trigger),
                5 => world.restart(hours),
                _ => {}
            }
        }
    });
    (world, began)
}

impl World {
    /// Another process goes on with what the old one kept. Its jobs are lost.
    fn restart(&mut self, seed: u64) {
        let target = TargetId::new(0);
        let plan = self.planner.plan(target).cloned().unwrap();
        let last_job = self.planner.last_job;
        self.planner = Planner::new(Zone::fixed(3600), seed, 2);
        self.planner.last_job = last_job;
        self.planner.restore(target, plan, self.now.boot);
        self.running.clear();
    }
}

/// The least time from what one host begins to what the other does.
fn least_ms(one: &[u64], other: &[u64]) -> u64 {
    one.iter().flat_map(|begins| other.iter().map(|others| begins.abs_diff(*others))).min().unwrap()
}

/// Three days with nights, incidents, sleep and new processes; the clocks differ by a second.
#[test]
fn hosts_that_take_turns_never_begin_at_the_same_time() {
    let turn = |place| Turn::new(place, 2);
    for clocks in [[0, 1000], [500, -500], [0, 0]] {
        let (world, first) = loads(21, turn(1), clocks[0]);
        let (_, second) = loads(22, turn(2), clocks[1]);
        let least = least_ms(&first, &second);
        assert!(least >= 8000, "{least} ms");
        // Neither waits for good, and forecasts are as good as without turns.
        let forecast = world.planner.forecast(TargetId::new(0)).unwrap();
        let slices = 3.0 * 86_400.0 / forecast.cadence_time.as_secs_f64();
        for begun in [&first, &second] {
            assert!((0.9..1.15).contains(&(begun.len() as f64 / slices)), "{} of {slices}", begun.len());
        }
        let days = world.days(TargetId::new(0), START, false);
        let whole: Vec<u64> = days.values().copied().skip(1).take(days.len() - 2).collect();
        let ratio = forecast.total().count() as f64 / (whole.iter().sum::<u64>() as f64 / whole.len() as f64);
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }
    let (first, second) = (loads(21, None, 0).1, loads(22, None, 1000).1);
    assert!(least_ms(&first, &second) < 1000, "without turns they do meet");
}
