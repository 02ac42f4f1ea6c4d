//! Confident wrong numbers per hop: paths drawn from seeds, one run of the default each, and every
//! hop that is claimed wrongly.
//!
//! `cargo run --release -p narrows-sim --example hops_sweep --
//! FIRST COUNT [KIND] [METHOD] [KEY=VALUE…]`;
//! KIND is one of those in `draw.rs`, `wide` if it is left out. `toml SEED [KIND]` prints one path.
//! `cells kind=KIND paths=COUNT [hosts=PROFILE]` prints sums for `cargo xtask record`, with a
//! measured profile at both ends.

mod draw;
#[path = "../common/record.rs"]
mod record;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use narrows_host_profile::HostProfile;
use narrows_methods as methods;
use narrows_probe::outcome::{HopCapacity, HopFinding, PathHops, Predicted};
use narrows_probe::{BoundKind, Caveat, Measured, RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;

/// A number is wrong if it is off by more, and its interval does not hold the truth; a bound if it
/// is on the wrong side by more.
const NUMBER: f64 = 0.05;
const BOUND: f64 = 0.02;

/// What a claim is, beside the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Judged {
    /// A number within 5 %, its interval around the truth within 1 %.
    Right,
    /// A number within 5 %, its interval beside the truth.
    Narrow,
    /// A number further off, and its interval says so.
    Wide,
    /// A number further off, and its interval does not say so.
    Wrong,
    /// A bound on the right side.
    Bound,
    /// A bound on the wrong side.
    WrongBound,
    /// Nothing is claimed.
    Nothing,
    /// Something is claimed of what is no hop.
    Beyond,
}

fn judge(hop: &HopFinding, truth: Option<f64>) -> Judged {
    let Some(claim) = hop.capacity else {
        return Judged::Nothing;
    };
    let Some(truth) = truth else { return Judged::Beyond };
    if claim.rate.verdict != BoundKind::Estimated {
        let wrong = claim.rate.value.as_f64() > truth * (1.0 + BOUND);
        return if wrong { Judged::WrongBound } else { Judged::Bound };
    }
    let near = (claim.rate.value.as_f64() / truth - 1.0).abs() <= NUMBER;
    let holds = claim.rate.low.as_f64() <= truth * 1.01 && claim.rate.high.as_f64() >= truth * 0.99;
    match (near, holds) {
        (true, true) => Judged::Right,
        (true, false) => Judged::Narrow,
        (false, true) => Judged::Wide,
        (false, false) => Judged::Wrong,
    }
}

/// It says itself that it may be something else.
fn warned(hop: &HopFinding) -> bool {
    let warns = |caveat: &Caveat| {
        matches!(
            caveat,
            Caveat::UncheckedRouter
                | Caveat::StagesAmbiguous
                | Caveat::AsymmetricLimit
                | Caveat::RouteChanged
                | Caveat::RoutingLoop { .. }
        )
    };
    hop.caveats.iter().any(warns)
}

#[derive(Default)]
struct Sums {
    paths: u32,
    failed: u32,
    late: u32,
    seconds: Vec<f64>,
    octets: Vec<f64>,
    counts: BTreeMap<(Judged, bool), u32>,
    /// Hops that may be several links.
    doubtful: u32,
    predicted: BTreeMap<(&'static str, &'static str), u32>,
    /// Half of the interval over the value, of numbers.
    widths: Vec<f64>,
    /// Of hops whose value takes both ways to be alike: its error, and that of what the forward
    /// direction alone says (the middle of the interval).
    assumed: Vec<f64>,
    forward: Vec<f64>,
    /// Errors of values of hops behind the narrow link.
    behind: Vec<f64>,
    /// Lower bounds, as shares of the truth.
    lower: Vec<f64>,
}

/// What all paths are measured with.
struct Asked<'a> {
    kind: &'a str,
    method: &'a str,
    params: RawParams,
    hosts: Option<Arc<HostProfile>>,
}

/// What the forward direction alone says of a hop: intervals are so many ns either side of it.
fn forward(claim: &HopCapacity) -> f64 {
    2.0 / (1.0 / claim.rate.low.as_f64() + 1.0 / claim.rate.high.as_f64())
}

fn measure(scenario: &Scenario, seed: u64, method: &str, params: &RawParams) -> Option<Measured> {
    let method = methods::find(method)?;
    let mut estimator = method.begin(params).ok()?;
    let mut world = SimWorld::new(scenario, PathDirection::Forward, seed);
    let Ok(measured) = drive(&mut world, estimator.as_mut(), method.imposes(params).budget());
    Some(measured)
}

/// One path, added to the sums; what is wrong is told.
fn path(seed: u64, asked: &Asked<'_>, sums: &Mutex<Sums>) -> String {
    let text = draw::path(seed, asked.kind);
    let scenario = match Scenario::from_toml(&text) {
        Ok(scenario) => record::between(scenario, asked.hosts.as_ref()),
        Err(error) => return format!("{seed}: {error}\n"),
    };
    let truth = scenario.truth(PathDirection::Forward).over(Duration::ZERO, Duration::from_secs(1));
    let Some(measured) = measure(&scenario, seed, asked.method, &asked.params) else {
        return format!("{seed}: no method\n");
    };
    let found = PathHops::of(&measured.outcome);
    let Ok(mut sums) = sums.lock() else {
        return String::new();
    };
    sums.paths += 1;
    sums.seconds.push(measured.cost.time.as_secs_f64());
    sums.octets.push(measured.cost.octets as f64);
    let Some(found) = found else {
        sums.failed += 1;
        return format!("{seed}: {:?}\n", measured.outcome);
    };
    let in_time = found
        .forecast
        .is_none_or(|forecast| measured.cost.time <= forecast.time && measured.cost.octets <= forecast.octets);
    sums.late += u32::from(!in_time);
    let mut said = String::new();
    if !in_time {
        let _ = writeln!(said, "{seed}: late {:?} {:?}", measured.cost, found.forecast);
    }
    let rates = (0..found.hops.len()).filter_map(|hop| Some((hop, truth.hop_capacity(hop, 1500)?)));
    let narrow = rates.min_by_key(|(_, rate)| *rate).map_or(0, |(hop, _)| hop);
    for hop in &found.hops {
        let rate = truth.hop_capacity(usize::from(hop.ttl) - 1, 1500);
        let judged = judge(hop, rate.map(narrows_units::BitRate::as_f64));
        *sums.counts.entry((judged, warned(hop))).or_default() += 1;
        if let (Some(claim), Some(rate)) = (hop.capacity, rate)
            && claim.rate.verdict == BoundKind::LowerBound
        {
            sums.lower.push(claim.rate.value.as_f64() / rate.as_f64());
        }
        if let Some(claim) = hop.capacity.filter(|claim| claim.rate.verdict == BoundKind::Estimated) {
            sums.widths.push((claim.rate.high.as_f64() - claim.rate.low.as_f64()) / 2.0 / claim.rate.value.as_f64());
            let off = |value: f64| rate.map_or(f64::NAN, |rate| (value / rate.as_f64() - 1.0).abs());
            if hop.caveats.contains(&Caveat::SymmetryAssumed) && !hop.caveats.contains(&Caveat::StagesAmbiguous) {
                sums.assumed.push(off(claim.rate.value.as_f64()));
                sums.forward.push(off(forward(&claim)));
            }
            if usize::from(hop.ttl) > narrow + 1 {
                sums.behind.push(off(claim.rate.value.as_f64()));
            }
        }
        sums.doubtful += u32::from(hop.caveats.contains(&Caveat::StagesAmbiguous));
        let reported = match hop.capacity.map(|claim| claim.rate.verdict) {
            Some(BoundKind::Estimated) => "value",
            Some(_) => "bound",
            None => "nothing",
        };
        let predicted = hop.predicted.map_or("unsaid", Predicted::name);
        *sums.predicted.entry((predicted, reported)).or_default() += 1;
        if matches!(judged, Judged::Wrong | Judged::WrongBound | Judged::Beyond | Judged::Narrow) {
            said += &line(seed, judged, hop, rate);
        }
    }
    said
}

fn line(seed: u64, judged: Judged, hop: &HopFinding, rate: Option<narrows_units::BitRate>) -> String {
    let truth = rate.map_or(f64::NAN, narrows_units::BitRate::as_f64);
    let claim = hop.capacity.map_or(String::new(), |claim| {
        let ratio = |rate: narrows_units::BitRate| rate.as_f64() / truth;
        format!("{:.3} [{:.3} {:.3}]", ratio(claim.rate.value), ratio(claim.rate.low), ratio(claim.rate.high))
    });
    let devices: Vec<String> = hop.hidden_devices.iter().map(|device| device.nominal.to_string()).collect();
    format!(
        "{seed} hop {} {judged:?}{} {:.2} Mb/s: {claim} after {:?} {devices:?} {:?} {}/{} busy {:.2?} {:?}\n",
        hop.ttl,
        if warned(hop) { " (warned)" } else { "" },
        truth / 1e6,
        hop.after,
        hop.predicted,
        hop.answers,
        hop.probes,
        hop.busy_ratio,
        hop.caveats
    )
}

/// Claims of all hops, and what they cost.
fn as_cells(sums: &mut Sums) {
    let count = |fits: &dyn Fn(Judged, bool) -> bool| -> u32 {
        sums.counts.iter().filter(|((judged, warned), _)| fits(*judged, *warned)).map(|(_, count)| count).sum()
    };
    let hops = count(&|_, _| true);
    record::cell("paths, without an answer", format!("{}, {}", sums.paths, sums.failed));
    record::cell("hops", hops);
    let share = |count: u32| format!("{count} ({:.1} %)", 100.0 * f64::from(count) / f64::from(hops.max(1)));
    for (name, of) in [
        ("right", Judged::Right),
        ("narrow", Judged::Narrow),
        ("wide", Judged::Wide),
        ("bounds that hold", Judged::Bound),
    ] {
        record::cell(name, share(count(&|judged, _| judged == of)));
    }
    record::cell("nothing claimed", share(count(&|judged, _| judged == Judged::Nothing)));
    for (name, of) in [("wrong", Judged::Wrong), ("wrong bounds", Judged::WrongBound)] {
        let warned = count(&|judged, warned| judged == of && warned);
        record::cell(&format!("{name}, of these warned"), format!("{}, {warned}", count(&|judged, _| judged == of)));
    }
    let held = count(&|judged, _| matches!(judged, Judged::Right | Judged::Wide));
    let values = held + count(&|judged, _| matches!(judged, Judged::Narrow | Judged::Wrong));
    record::cell("coverage of values", record::coverage(u64::from(held), u64::from(values)));
    record::cell("lower bounds", record::tightness(&sums.lower));
    let [seconds, octets] = [&mut sums.seconds, &mut sums.octets].map(|values| quantile(values, 0.5));
    record::cell("median cost", format!("{seconds:.1} s, {:.2} MB", octets / 1e6));
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let index = (last * share).round() as usize;
    values.get(index).copied().unwrap_or(f64::NAN)
}

#[expect(clippy::print_stdout, reason = "an example that prints what it was asked for")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (settings, words): (Vec<&String>, Vec<&String>) = args.iter().partition(|word| word.contains('='));
    let params: RawParams = settings.iter().filter_map(|word| word.split_once('=')).collect();
    let word = |index: usize| words.get(index).map(|word| word.as_str());
    let number = |index: usize| word(index).and_then(|word| word.parse().ok());
    if word(0) == Some("toml") {
        println!("{}", draw::path(number(1).unwrap_or(1), word(2).unwrap_or("wide")));
        return;
    }
    let cells = args.iter().any(|arg| arg == "cells");
    let asked = if cells {
        let kind = record::word(&args, "kind").unwrap_or("wide");
        Asked { kind, method: "hops", params: RawParams::default(), hosts: record::hosts(&args) }
    } else {
        Asked { kind: word(2).unwrap_or("wide"), method: word(3).unwrap_or("hops"), params, hosts: None }
    };
    let paths = record::word(&args, "paths").and_then(|text| text.parse().ok());
    let (first, count): (u64, u64) =
        if cells { (1, paths.unwrap_or(20)) } else { (number(0).unwrap_or(1), number(1).unwrap_or(20)) };
    let sums = Mutex::new(Sums::default());
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    let said = path(seed, &asked, &sums);
                    if !cells {
                        print!("{said}");
                    }
                }
            });
        }
    });
    let Ok(mut sums) = sums.into_inner() else { return };
    if cells {
        as_cells(&mut sums);
        return;
    }
    let hops: u32 = sums.counts.values().sum();
    println!("{} paths, {hops} hops, {} without an answer, {} late", sums.paths, sums.failed, sums.late);
    for ((judged, warned), count) in &sums.counts {
        let share = 100.0 * f64::from(*count) / f64::from(hops.max(1));
        println!("  {judged:?}{}: {count} ({share:.2} %)", if *warned { ", warned" } else { "" });
    }
    println!("  {:?}, stages ambiguous at {}", sums.predicted, sums.doubtful);
    let mut all = [
        ("s", std::mem::take(&mut sums.seconds)),
        ("octets", std::mem::take(&mut sums.octets)),
        ("half width", std::mem::take(&mut sums.widths)),
        ("error behind the narrow link", std::mem::take(&mut sums.behind)),
        ("error with symmetry assumed", std::mem::take(&mut sums.assumed)),
        ("error of the same without", std::mem::take(&mut sums.forward)),
    ];
    for (name, values) in &mut all {
        let count = values.len();
        println!(
            "  {name} ({count}): median {:.4}, 95 % {:.4}, most {:.4}",
            quantile(values, 0.5),
            quantile(values, 0.95),
            quantile(values, 1.0)
        );
    }
}
