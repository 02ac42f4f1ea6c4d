//! What a perfect observer would make of the same trains: one who sees exactly what is free of the
//! tight link, but only while a train of the method passes. The difference to what was free in all
//! of the estimate's time is the sampling's alone; no reading of those trains goes below it.
//!
//! `cargo run --release -p narrows-sim --example available_floor -- METHOD FIRST SEEDS FILE...`

use std::convert::Infallible;
use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::probes::Probe;
use narrows_probe::{Event, PathFacts, RawParams, World, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;
use narrows_units::{Sender, Stamp};

/// Notes when each train passed.
struct Noting {
    inner: SimWorld,
    trains: Vec<(u64, Duration)>,
}

impl World for Noting {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        self.inner.now()
    }

    fn facts(&self) -> PathFacts {
        self.inner.facts()
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Infallible> {
        let began = self.inner.true_time();
        let event = self.inner.send(probe)?;
        if let Event::Train(report) = &event
            && let (Some(first), Some(last)) = (report.arrivals.first(), report.arrivals.last())
        {
            self.trains.push((began, last.departed.since(first.departed)));
        }
        Ok(event)
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        self.inner.wait(until)
    }
}

/// What was free on the way from `from` to `to`, bit/s, if nobody probed.
fn free(scenario: &Scenario, seed: u64, from: Duration, to: Duration) -> f64 {
    let crossed = SimWorld::undisturbed(scenario, PathDirection::Forward, seed, from, to);
    let truth = scenario.truth(PathDirection::Forward).over(from, to).beside(&crossed);
    truth.available(truth.path_mtu()).map_or(0.0, narrows_units::BitRate::as_f64)
}

/// Errors of the method and of the observer, as shares of the path's capacity; the share of the
/// time that the trains saw.
fn errors(scenario: &Scenario, method: &str, seed: u64) -> Option<(f64, f64, f64)> {
    let method = methods::find(method)?;
    let mut estimator = method.begin(&RawParams::new()).ok()?;
    let mut world = Noting { inner: SimWorld::new(scenario, PathDirection::Forward, seed), trains: Vec::new() };
    let Ok(measured) = drive(&mut world, estimator.as_mut(), method.info().imposes.budget());
    let estimate = measured.outcome.estimate()?;
    let ended = Duration::from_nanos(world.inner.true_time());
    let began = ended.saturating_sub(estimate.interval?);
    let whole = free(scenario, seed, began, ended);
    let (mut sum, mut time) = (0.0, 0.0);
    for (at, length) in &world.trains {
        let from = Duration::from_nanos(*at);
        if from < began || length.is_zero() {
            continue;
        }
        sum += length.as_secs_f64() * free(scenario, seed, from, from + *length);
        time += length.as_secs_f64();
    }
    let truth = scenario.truth(PathDirection::Forward);
    let capacity = truth.capacity(truth.path_mtu()).as_f64();
    let value = f64::from(u32::try_from(estimate.in_unit().value / 1000).ok()?) * 1000.0;
    (time > 0.0).then(|| {
        ((value - whole) / capacity, (sum / time - whole) / capacity, time / ended.saturating_sub(began).as_secs_f64())
    })
}

#[expect(clippy::print_stdout, reason = "an example speaks to its user")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [method, first, count, files @ ..] = args.as_slice() else {
        println!("METHOD FIRST_SEED SEEDS SCENARIO.toml...");
        return;
    };
    let (first, count): (u64, u64) = (first.parse().unwrap_or(1), count.parse().unwrap_or(1));
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let Ok(scenario) = Scenario::from_toml(&text) else {
            println!("{file}: no scenario");
            continue;
        };
        for seed in first..first + count {
            if let Some((ours, floor, seen)) = errors(&scenario, method, seed) {
                println!("{},{seed},{ours:.5},{floor:.5},{seen:.4}", scenario.name);
            }
        }
    }
}
