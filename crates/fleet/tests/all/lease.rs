//! Agents, a bus and their clocks, simulated with faults; two checkers look for what must not be.

mod bus;
mod random;
mod register;
mod sweep;
mod world;

use std::thread;
use std::time::Duration;

use narrows_fleet::lease::Timing;

use world::{Faults, Hub, Pace, Report, World};

/// Overwrites a holder that may still send.
const HASTY: Timing = Timing { valid_for: Duration::from_secs(10), taken_over_after: Duration::from_secs(3) };

const MINUTE: u64 = 60_000_000;

/// Ten minutes of contention for each seed.
fn run(seeds: std::ops::Range<u64>, timing: Timing, faults: Faults) -> Report {
    let mut report = Report::default();
    for seed in seeds {
        let mut world = World::new(seed, timing, faults, Pace::Steady);
        world.run_until(10 * MINUTE);
        report.add(&world.finish());
    }
    report
}

#[test]
fn no_two_runs_send_on_a_key() {
    let report = run(0..60, Timing::default(), Faults::ALL);
    println!("{report:?}");
    assert_eq!((report.overlaps, report.contradictions), (0, 0), "{report:?}");
    // Else nothing was tried.
    assert!((1_500..6_000).contains(&report.started), "{report:?}");
    for (what, count) in [
        ("expired", report.expired),
        ("overwritten", report.overwritten),
        ("bus restarted", report.bus_restarted),
        ("skipped", report.skipped),
        ("taken over", report.taken_over),
    ] {
        assert!(count >= 20, "{what}: {report:?}");
    }
}

#[test]
fn both_checkers_find_a_lease_that_is_taken_too_soon() {
    let report = run(0..6, HASTY, Faults::ALL);
    println!("{report:?}");
    assert!(report.overlaps >= 5, "{report:?}");
    assert!(report.contradictions >= 3, "{report:?}");
}

#[test]
fn the_sweep_finds_a_bus_that_hides_its_restart() {
    let report = run(0..30, Timing::default(), Faults { hidden_restarts: true, ..Faults::ALL });
    println!("{report:?}");
    assert!(report.overlaps >= 1, "{report:?}");
}

#[test]
fn a_hub_that_frees_keys_of_holders_that_are_gone_lets_no_two_runs_send() {
    let report = run(0..60, Timing::default(), Faults::HUB);
    println!("{report:?}");
    assert_eq!((report.overlaps, report.contradictions), (0, 0), "{report:?}");
    // Else nothing was tried, or nothing goes on.
    assert!(report.left >= 500 && report.started >= 1_500 && report.overwritten >= 20, "{report:?}");
}

#[test]
fn forged_leases_cost_time_and_never_let_two_runs_send() {
    let report = run(0..30, Timing::default(), Faults::FORGER);
    println!("{report:?}");
    assert_eq!((report.overlaps, report.contradictions), (0, 0), "{report:?}");
    // Else nothing was tried, or nothing goes on.
    assert!(report.forged >= 1_000 && report.freed >= 200, "{report:?}");
    assert!(report.started >= 500 && report.overwritten >= 100, "{report:?}");
}

#[test]
fn the_sweep_finds_a_hub_that_frees_too_soon() {
    for forger in [false, true] {
        let report = run(0..30, Timing::default(), Faults { forger, hub: Hub::InHaste, ..Faults::ALL });
        println!("{report:?}");
        assert!(report.overlaps >= 1 && report.contradictions >= 1, "{report:?}");
    }
}

#[test]
fn without_faults_nothing_stops() {
    let report = run(0..6, Timing::default(), Faults::NONE);
    println!("{report:?}");
    assert_eq!((report.overlaps, report.contradictions), (0, 0), "{report:?}");
    assert_eq!((report.expired, report.overwritten, report.bus_restarted), (0, 0, 0), "{report:?}");
    assert!(report.started > report.skipped && report.skipped > 0, "{report:?}");
}

/// Agents contend for ten minutes of every week: what happens in between is nothing.
#[test]
#[ignore = "soak: 10 000 years of agents"]
fn ten_thousand_years() {
    let worlds = 10_000 / u64::from(5 * world::AGENTS) + 1;
    let five_years = |seed: u64| {
        // Every other world has a hub that frees keys of holders that are gone.
        let faults = if seed.is_multiple_of(2) { Faults::ALL } else { Faults::HUB };
        let mut world = World::new(1_000_000 + seed, Timing::default(), faults, Pace::TenMinutesAWeek);
        world.run_until(5 * 365 * 24 * 60 * MINUTE);
        world.finish()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut report = Report::default();
    thread::scope(|scope| {
        let every = |first: u64| (first..worlds).step_by(threads).map(five_years).collect::<Vec<_>>();
        let spawned: Vec<_> = (0..).take(threads).map(|first| scope.spawn(move || every(first))).collect();
        for thread in spawned {
            for world in thread.join().expect("a world's panic is shown above") {
                report.add(&world);
            }
        }
    });
    println!("{} years of agents: {report:?}", worlds * u64::from(5 * world::AGENTS));
    assert_eq!((report.overlaps, report.contradictions), (0, 0), "{report:?}");
    // Else nothing was tried.
    assert!((2_000_000..5_000_000).contains(&report.started), "{report:?}");
    // A tenth of what `a_hub_that_frees_keys_of_holders_that_are_gone_lets_no_two_runs_send` asks.
    assert!(report.left >= 36_000, "{report:?}");
}
