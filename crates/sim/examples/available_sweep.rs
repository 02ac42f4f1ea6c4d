//! One method for available bandwidth over scenario files and seeds, beside what was really free in
//! each estimate's own time: a row of comma-separated values per run.
//!
//! `cargo run --release -p narrows-sim --example available_sweep --
//! [method=]METHOD FIRST_SEED SEEDS SCENARIO.toml... [evidence=NAME]...`

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::{Outcome, RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;

/// One run: the row.
fn row(scenario: &Scenario, method: &str, seed: u64, evidence: &[&str], params: &RawParams) -> String {
    let Some(method) = methods::find(method) else {
        return format!("no method {method}");
    };
    let Ok(mut estimator) = method.begin(params) else {
        return "bad parameters".to_owned();
    };
    let mut world = SimWorld::new(scenario, PathDirection::Forward, seed);
    let began = Duration::from_nanos(world.true_time());
    let Ok(measured) = drive(&mut world, estimator.as_mut(), method.info().imposes.budget());
    let ended = Duration::from_nanos(world.true_time());
    let head = format!("{},{seed}", scenario.name);
    let cost = format!("{},{:.3}", measured.cost.octets, ended.saturating_sub(began).as_secs_f64());
    let estimate = match &measured.outcome {
        Outcome::Estimated(estimate) => estimate,
        Outcome::Inconclusive { reason, .. } => {
            return format!("{head},,,,,inconclusive,,{cost},{}", reason.to_string().replace(',', ";"));
        }
    };
    let own = estimate.interval.map_or(began, |interval| ended.saturating_sub(interval).max(began));
    let own = own.min(ended.saturating_sub(Duration::from_millis(1)));
    let crossed = SimWorld::undisturbed(scenario, PathDirection::Forward, seed, own, ended);
    let truth = scenario.truth(PathDirection::Forward).over(own, ended).beside(&crossed);
    let mtu = truth.path_mtu();
    let free = truth.available(mtu).map_or(0, narrows_units::BitRate::bps);
    let caveats: Vec<&str> = estimate.caveats.iter().map(narrows_probe::Caveat::id).collect();
    let more: Vec<String> =
        evidence.iter().map(|name| format!("{name}={}", value(reported(&estimate.diagnostics, name)))).collect();
    format!(
        "{head},{free},{},{},{},{:?},{:?},{cost},{},{},{}",
        estimate.in_unit().value,
        estimate.in_unit().low,
        estimate.in_unit().high,
        estimate.verdict(),
        estimate.confidence,
        caveats.join(" "),
        truth.capacity(mtu).bps(),
        more.join(",")
    )
}

fn value(value: Option<&narrows_probe::Diagnostic>) -> String {
    value.map_or_else(String::new, |value| {
        value.as_f64().map_or_else(|| format!("{value:?}").replace(',', ";"), |number| number.to_string())
    })
}

#[expect(clippy::print_stdout, reason = "an example speaks to its user")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let evidence: Vec<&str> = args.iter().filter_map(|arg| arg.strip_prefix("evidence=")).collect();
    let params: RawParams =
        args.iter().filter_map(|arg| arg.strip_prefix("param=")).filter_map(|arg| arg.split_once('=')).collect();
    let plain: Vec<&String> =
        args.iter().filter(|arg| !arg.starts_with("evidence=") && !arg.starts_with("param=")).collect();
    let [method, first, count, files @ ..] = plain.as_slice() else {
        println!("METHOD FIRST_SEED SEEDS SCENARIO.toml... [evidence=NAME]... [param=NAME=VALUE]...");
        return;
    };
    let (first, count): (u64, u64) = (first.parse().unwrap_or(1), count.parse().unwrap_or(1));
    let mut jobs = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        match Scenario::from_toml(&text) {
            Ok(scenario) => jobs.extend((first..first + count).map(|seed| (scenario.clone(), seed))),
            Err(error) => println!("{file}: {error}"),
        }
    }
    let (next, out) = (AtomicUsize::new(0), Mutex::new(()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((scenario, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let line = row(scenario, method, *seed, &evidence, &params);
                    let _held = out.lock();
                    println!("{line}");
                }
            });
        }
    });
}

/// One of what is told to people.
fn reported<'a>(diagnostics: &'a narrows_probe::Diagnostics, name: &str) -> Option<&'a narrows_probe::Diagnostic> {
    let mut all = diagnostics.iter();
    all.find(|(own, _)| *own == name).map(|(_, value)| value)
}
