//! `burst` over drawn paths: 1 Mbit/s to 10 Gbit/s, 1 to 60 ms, queues of 5 to 2000 packets counted
//! in octets or packets, others' traffic of none to 80 %, drop-tail, early drop, policers and
//! shapers. Truth is asked of the simulator ([`narrows_sim::burst_median`], no method's way).
//!
//! `cargo run --release -p narrows-sim --example burst_sweep --
//! [seed=N] [paths=N] [only=WORD] [hosts=PROFILE] [cells]`;
//! `*` marks confident misses: a value without bound over a tenth (and a packet) off, or a wrong
//! word for what drops. With `hosts` a measured profile is played at both ends, also where the
//! truth is asked: it depends on the rate at which the sender sends. `cells` prints sums for
//! `cargo xtask record` instead.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]

#[path = "common/record.rs"]
mod record;

use std::sync::Arc;
use std::time::Duration;

use narrows_host_profile::HostProfile;
use narrows_methods as methods;
use narrows_probe::{BoundKind, Budget, Diagnostic, RawParams};
use narrows_scenario::{Arrivals, Cross, EarlyDrop, Hop, PathDirection, Queue, Scenario, SizeMix, TokenBucket};
use narrows_sim::SimWorld;
use narrows_stat::SplitMix64;
use narrows_units::{BitRate, Octets};

struct Dice(SplitMix64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0.next_unit()
    }

    /// Even on the scale of decades.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.next())
    }
}

/// What is drawn of one path.
struct Drawn {
    text: String,
    policy: &'static str,
    is_loaded: bool,
    scenario: Scenario,
}

/// Nobody waits longer for a queue to drain, seconds.
const LONGEST_QUEUE: f64 = 1.0;

fn drawn(dice: &mut Dice) -> Option<Drawn> {
    let mbps = dice.between(1.0, 10_000.0);
    let rtt = dice.between(0.001, 0.06);
    let packets = dice.between(5.0, 2000.0).round();
    let counts_octets = dice.next() < 0.5;
    let share = if dice.next() < 0.3 { 0.0 } else { 0.8 * dice.next() };
    let policy = match dice.next() {
        dice if dice < 0.55 => "drop_tail",
        dice if dice < 0.7 => "early_drop",
        dice if dice < 0.85 => "policer",
        _ => "shaper",
    };
    let (ratio, depth) = (0.2 + 0.5 * dice.next(), dice.between(10.0, 400.0).round());
    let queued = packets * 1500.0 * 8.0 / (mbps * 1e6);
    // Buckets that others empty for good are no buckets but narrower links.
    let share = if matches!(policy, "policer" | "shaper") { share * ratio } else { share };
    if queued > LONGEST_QUEUE {
        return None;
    }
    let rate = BitRate::from_bps(whole(mbps * 1e6));
    let room = Octets::new(whole(packets * 1500.0));
    let queue = if counts_octets { Queue::Octets(room) } else { Queue::Packets(u32::try_from(whole(packets)).ok()?) };
    let mut hop = Hop::rate(rate).delay(Duration::from_secs_f64(rtt * 0.4)).queue(queue);
    let bucket = |queue| TokenBucket {
        rate: BitRate::from_bps(whole(mbps * 1e6 * ratio)),
        burst: Octets::new(whole(depth * 1500.0)),
        queue,
        timer: Duration::ZERO,
    };
    match policy {
        "early_drop" => {
            hop = hop.early_drop(EarlyDrop {
                from: Octets::new(whole(packets * 300.0)),
                to: Octets::new(whole(packets * 1200.0)),
                ratio: 0.1,
                weight: if dice.next() < 0.5 { 1.0 } else { 0.2 },
            });
        }
        "policer" => hop = hop.queue(Queue::Unlimited).bucket(bucket(None)),
        "shaper" => hop = hop.queue(Queue::Unlimited).bucket(bucket(Some(queue))),
        _ => {}
    }
    let first =
        Hop::rate(BitRate::from_bps(rate.bps() * 10)).delay(Duration::from_secs_f64(rtt * 0.1)).queue(Queue::Unlimited);
    let mut scenario = Scenario::new("burst").hop(first).hop(hop);
    if share > 0.01 {
        let taken = BitRate::from_bps(whole(mbps * 1e6 * share * 0.975));
        scenario = scenario.cross(Cross::on_hop(1, Arrivals::Poisson, taken, SizeMix::constant(1500)));
    }
    Some(Drawn {
        text: format!(
            "{mbps:9.2} Mbit/s {:5.1} ms {packets:4.0} packets in {:7} {share:.2} taken, {policy:10} (bucket {ratio:.2}, {depth:.0} packets)",
            rtt * 1e3,
            if counts_octets { "octets" } else { "packets" },
        ),
        policy,
        is_loaded: share > 0.01,
        scenario: scenario.validate().ok()?,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small positive figures of this file")]
fn whole(value: f64) -> u64 {
    value as u64
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let word = |name: &str| record::word(&args, name);
    let (hosts, cells) = (record::hosts(&args), args.iter().any(|arg| arg == "cells"));
    let number = |name: &str, usual: u64| word(name).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let mut dice = Dice(SplitMix64::new(number("seed", 2026)));
    let mut rows = Vec::new();
    for seed in 0..number("paths", 40) {
        let Some(path) = drawn(&mut dice) else { continue };
        if word("only").is_some_and(|only| only != path.policy) {
            continue;
        }
        let row = measured(&path, seed + 1, hosts.as_ref());
        if !cells {
            println!("{}: {}", path.text, row.text);
        }
        rows.push(row);
    }
    if cells {
        as_cells(&rows);
        return;
    }
    for (name, is_loaded) in [("idle", false), ("beside others", true)] {
        let count =
            |fits: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| row.is_loaded == is_loaded && fits(row)).count();
        println!(
            "{name}: {} paths, {} with a value, {} of them within a tenth; what drops named rightly on {}",
            count(&|_| true),
            count(&|row| row.claim == Claim::Value),
            count(&|row| row.claim == Claim::Value && row.is_near),
            count(&|row| row.naming == Naming::Right),
        );
    }
}

/// Sums of all paths, of each kind of drop, and of what is claimed.
fn as_cells(rows: &[Row]) {
    let count = |fits: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| fits(row)).count();
    record::cell("paths", rows.len());
    for policy in ["drop_tail", "early_drop", "policer", "shaper"] {
        for (name, is_loaded) in [("idle", false), ("beside others", true)] {
            let of = |row: &Row| row.policy == policy && row.is_loaded == is_loaded;
            let near = count(&|row| of(row) && row.claim == Claim::Value && row.is_near);
            let label = format!("{}, {name}: values within a tenth, of paths", policy.replace('_', " "));
            record::cell(&label, format!("{near} of {}", count(&of)));
        }
    }
    let share = |held: usize, of: usize| record::coverage(held as u64, of as u64);
    let is_value = |row: &Row| row.claim == Claim::Value;
    record::cell("values further off", count(&|row| row.claim == Claim::Value && !row.is_near));
    record::cell("coverage of values", share(count(&|row| row.claim == Claim::Value && row.covers), count(&is_value)));
    let is_bound = |row: &Row| row.claim == Claim::Bound;
    record::cell("bounds that hold", share(count(&|row| row.claim == Claim::Bound && row.covers), count(&is_bound)));
    record::cell("lower bounds", record::tightness(&rows.iter().filter_map(|row| row.lower).collect::<Vec<_>>()));
    record::cell("without an answer", count(&|row| row.claim == Claim::Nothing));
    record::cell("what drops: named rightly", count(&|row| row.naming == Naming::Right));
    record::cell("what drops: named wrongly", count(&|row| row.naming == Naming::Wrong));
}

#[derive(Default)]
struct Row {
    text: String,
    policy: &'static str,
    is_loaded: bool,
    claim: Claim,
    is_near: bool,
    /// The interval, or the bound, holds the truth to a packet.
    covers: bool,
    /// A lower bound's share of the truth.
    lower: Option<f64>,
    naming: Naming,
}

/// What is said of the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Claim {
    #[default]
    Nothing,
    Value,
    Bound,
}

/// What is said of what drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Naming {
    #[default]
    Unknown,
    Right,
    Wrong,
}

fn measured(path: &Drawn, seed: u64, hosts: Option<&Arc<HostProfile>>) -> Row {
    let scenario = record::between(path.scenario.clone(), hosts);
    let truth = narrows_sim::burst_median(&scenario, PathDirection::Forward, 1500);
    let raw: RawParams = [("detail", "true"), ("max_time", "30 s")].into_iter().collect();
    let budget = Budget { octets: 10_000_000_000, time: Duration::from_secs(600), ..Budget::default() };
    let mut world = SimWorld::new(&scenario, PathDirection::Forward, seed);
    let method = methods::find("burst").expect("it is in the registry");
    let mut method = method.begin(&raw).expect("the parameters are right");
    let Ok(measured) = narrows_probe::drive(&mut world, method.as_mut(), budget);
    let Some(estimate) = measured.outcome.estimate() else {
        return Row {
            text: format!("truth {truth:?}: {:?}", measured.outcome),
            policy: path.policy,
            is_loaded: path.is_loaded,
            ..Row::default()
        };
    };
    let policy = match reported(&estimate.diagnostics, "queue_policy") {
        Some(Diagnostic::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let (value, is_number) = (estimate.in_unit().value, estimate.verdict() == BoundKind::Estimated);
    let is_near = truth.is_some_and(|truth| value.abs_diff(truth) as f64 <= (0.1 * truth as f64).max(1500.0));
    // A bound must hold; a number must be near.
    let holds = match estimate.verdict() {
        BoundKind::Estimated => is_near,
        BoundKind::LowerBound => truth.is_none_or(|truth| value as f64 <= 1.1 * truth as f64 + 1500.0),
        BoundKind::UpperBound | BoundKind::Inconclusive => {
            truth.is_some_and(|truth| value as f64 >= 0.9 * truth as f64 - 1500.0)
        }
    };
    let is_named = policy == path.policy;
    let misnamed = !is_named && !policy.is_empty() && policy != "unknown";
    Row {
        text: format!(
            "truth {truth:?}: {:?} {value} ({:.3}), {policy}{}{} {:?}",
            estimate.verdict(),
            truth.map_or(0.0, |truth| value as f64 / truth as f64),
            if holds { "" } else { " *value" },
            if misnamed { " *word" } else { "" },
            estimate.confidence,
        ),
        policy: path.policy,
        is_loaded: path.is_loaded,
        claim: match estimate.verdict() {
            BoundKind::Estimated => Claim::Value,
            BoundKind::LowerBound | BoundKind::UpperBound => Claim::Bound,
            BoundKind::Inconclusive => Claim::Nothing,
        },
        is_near,
        covers: if is_number { in_interval(estimate, truth) } else { holds },
        lower: truth.filter(|_| estimate.verdict() == BoundKind::LowerBound).map(|truth| value as f64 / truth as f64),
        naming: if is_named {
            Naming::Right
        } else if misnamed {
            Naming::Wrong
        } else {
            Naming::Unknown
        },
    }
}

/// Bursts are whole packets: an interval may end one before the truth.
fn in_interval(estimate: &narrows_probe::Estimate, truth: Option<u64>) -> bool {
    let range = estimate.in_unit();
    truth.is_none_or(|truth| range.low <= truth + 1500 && range.high + 1500 >= truth)
}

/// One of what is told to people.
fn reported<'a>(diagnostics: &'a narrows_probe::Diagnostics, name: &str) -> Option<&'a Diagnostic> {
    let mut all = diagnostics.iter();
    all.find(|(own, _)| *own == name).map(|(_, value)| value)
}
