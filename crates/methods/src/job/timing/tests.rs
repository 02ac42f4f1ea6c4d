use std::cell::{Cell, RefCell};
use std::convert::Infallible;

use narrows_probe::progress::{Feed, Progress};
use narrows_probe::{Budget, Event, PathFacts, Probe, Refusal, World};
use narrows_units::{Sender, Stamp};

use super::*;
use crate::job::{JobOptions, JobReport, Profile, main_job, timed_job};

const GOOD: StageTime = StageTime { valid: true, late_ns_p99: 20_000 };
const LATE: StageTime = StageTime { valid: false, late_ns_p99: 3_000_000 };
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_stage_runs_three_times_at_most_and_never_after_valid_timing() {
    let mut repeats = Repeats::new();
    assert!(!repeats.again(1, GOOD, SECOND, 0));
    assert_eq!([1, 2, 3].map(|attempts| repeats.again(attempts, LATE, SECOND, 0)), [true, true, false]);
    assert!(!repeats.again(2, GOOD, SECOND, 0));
}

#[test]
fn repeats_of_all_stages_are_four() {
    let mut repeats = Repeats::new();
    assert_eq!(
        [1, 1, 1, 2, 1].map(|attempts| repeats.again(attempts, LATE, SECOND, 0)),
        [true, true, true, true, false]
    );
}

#[test]
fn repeats_of_all_stages_take_twenty_seconds() {
    let mut repeats = Repeats::new();
    assert!(!repeats.again(1, LATE, 21 * SECOND, 0));
    assert!(repeats.again(1, LATE, 12 * SECOND, 0));
    // It would end after 24 s; a short one still fits.
    assert!(!repeats.again(2, LATE, 12 * SECOND, 0));
    assert!(repeats.again(1, LATE, 8 * SECOND, 0));
    assert!(!repeats.again(1, LATE, Duration::from_nanos(1), 0));
}

/// Answers nothing, so that every method is inconclusive; the user may ask for an end.
struct Silent {
    now: Stamp<Sender>,
    stopped: bool,
}

impl World for Silent {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        self.now
    }

    fn facts(&self) -> PathFacts {
        PathFacts::ideal(1500, Duration::from_millis(10))
    }

    fn send(&mut self, _: Probe) -> Result<Event, Infallible> {
        Ok(Event::Refused(Refusal::NotOffered))
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        self.now = self.now.max(until);
        Ok(())
    }

    fn stop_requested(&self) -> bool {
        self.stopped
    }
}

/// Says of each run what is written here; of later ones that they were in time.
struct Script {
    times: Vec<StageTime>,
    run: Cell<usize>,
    begun: Cell<usize>,
}

impl Script {
    fn new(times: &[StageTime]) -> Self {
        Self { times: times.to_vec(), run: Cell::new(0), begun: Cell::new(0) }
    }
}

impl Timekeeper for Script {
    fn stage_begins(&self) {
        self.begun.set(self.begun.get() + 1);
    }

    fn stage_ended(&self) -> Option<StageTime> {
        let run = self.run.replace(self.run.get() + 1);
        Some(self.times.get(run).copied().unwrap_or(GOOD))
    }
}

/// Keeps the repeats that it is told of.
#[derive(Default)]
struct Listener(RefCell<Vec<(Metric, u32)>>);

impl Feed for Listener {
    fn tell(&self, _: Stamp<Sender>, progress: Progress) {
        if let Progress::Repeated(repeated) = progress {
            self.0.borrow_mut().push((repeated.metric, repeated.attempts));
        }
    }
}

fn options() -> JobOptions {
    JobOptions { profile: Profile::Quick, budget: Budget::default(), direction: Direction::Forward }
}

fn quick(times: &[StageTime], stopped: bool) -> (JobReport<Infallible>, Vec<(Metric, u32)>, Script) {
    let (script, listener) = (Script::new(times), Listener::default());
    let mut world = Silent { now: Stamp::from_nanos(0), stopped };
    let report = timed_job(&mut world, &options(), &listener, &script);
    (report, listener.0.into_inner(), script)
}

fn attempts(report: &JobReport<Infallible>) -> Vec<(Metric, u32, bool)> {
    report.stages.iter().map(|stage| (stage.metric, stage.attempts, stage.time.valid)).collect()
}

#[test]
fn inconclusive_stages_with_valid_timing_stand() {
    let (report, repeats, script) = quick(&[], false);
    assert!(report.entries.iter().all(|entry| entry.outcome.estimate().is_none()));
    assert_eq!((repeats.len(), script.begun.get(), script.run.get()), (0, 4, 4));
    assert!(report.stages.iter().all(|stage| (stage.attempts, stage.time) == (1, GOOD)));
}

#[test]
fn stages_with_invalid_timing_run_again_and_say_so() {
    use Metric::{AvailableIpCapacity as Available, IpCapacity as Capacity, PathMtu, RoundTripTime as Rtt};
    let (report, repeats, script) = quick(&[GOOD, GOOD, LATE, GOOD, LATE, LATE, LATE], false);
    assert_eq!(attempts(&report), [(Rtt, 1, true), (PathMtu, 1, true), (Capacity, 2, true), (Available, 3, false)]);
    assert_eq!(report.stages[3].time, LATE);
    assert_eq!(repeats, [(Capacity, 1), (Available, 1), (Available, 2)]);
    assert_eq!(script.begun.get(), 7);
    // Of each metric there is one answer, that of its last run.
    for metric in [Rtt, PathMtu, Capacity, Available] {
        assert_eq!(report.entries.iter().filter(|entry| entry.metric == metric).count(), 1, "{metric:?}");
    }
}

/// Early stages leave a repeat for each of the two metrics that decide.
#[test]
fn what_the_path_is_known_by_has_repeats_of_its_own() {
    use Metric::{AvailableIpCapacity as Available, IpCapacity as Capacity, PathMtu, RoundTripTime as Rtt};
    let (report, _, _) = quick(&[LATE; 8], false);
    assert_eq!(attempts(&report), [(Rtt, 3, false), (PathMtu, 1, false), (Capacity, 2, false), (Available, 2, false)]);
    let (report, _, _) = quick(&[GOOD, GOOD, LATE, LATE, LATE, LATE, LATE], false);
    assert_eq!(attempts(&report)[2..], [(Capacity, 3, false), (Available, 3, true)]);
}

#[test]
fn whoever_asks_for_an_end_gets_no_repeat() {
    let (report, repeats, _) = quick(&[LATE; 4], true);
    assert_eq!(repeats, []);
    assert!(report.stages.iter().all(|stage| stage.attempts == 1 && !stage.time.valid));
}

#[test]
fn where_nobody_keeps_the_time_nothing_is_said_of_it() {
    let mut world = Silent { now: Stamp::from_nanos(0), stopped: false };
    assert_eq!(main_job(&mut world, &options(), &()).stages, []);
}
