//! Quick mode against 20 s over simulated paths of one link, drawn at random: 1 Mbit/s to 1 Gbit/s
//! and 1 to 200 ms (each as likely in every octave), random loss of none, 0.01 or 0.1 %, queues of
//! a quarter to four bandwidth-delay products, Reno, CUBIC and BBR. Each test is the method's own
//! run; one that quick mode does not end early runs its 20 s.
//!
//! `cargo run --release -p narrows-sim --example quick_sweep --
//! [composite|seed003] [rows] [any] [seed=N] [paths=N] [hosts=PROFILE] [cells]`
//!
//! With `any`, loss is anything from none to 0.1 %, and on half of the paths Poisson traffic takes
//! up to six tenths of the link.
//!
//! With `hosts` a measured profile is played at both ends. `cells` prints sums for
//! `cargo xtask record` instead.
//!
//! With `figure7` instead: both rules over the paths of `plans/seed003-figure7.toml`, Reno, as rows
//! of a table.

#[path = "common/record.rs"]
#[expect(dead_code, reason = "shared by three examples; this one has no bounds")]
mod record;

use std::sync::Arc;
use std::time::Duration;

use narrows_host_profile::HostProfile;
use narrows_methods as methods;
use narrows_probe::{Diagnostic, Diagnostics, Measured, RawParams, drive};
use narrows_scenario::{Arrivals, Cross, Hop, Loss, PathDirection, Queue, Scenario, SizeMix};
use narrows_sim::SimWorld;
use narrows_stat::SplitMix64;
use narrows_units::{BitRate, Octets};

const LOSSES: [f64; 3] = [0.0, 1e-4, 1e-3];
const CONTROLS: [&str; 3] = ["reno", "cubic", "bbr"];
/// Shallower queues than this hold no burst.
const LEAST_QUEUE: u64 = 24_000;

/// A path and a congestion control.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    bps: f64,
    rtt: f64,
    loss: f64,
    queue: f64,
    control: &'static str,
    /// Share of the link that others take.
    others: f64,
    seed: u64,
}

/// What came of it.
struct Row {
    drawn: Drawn,
    /// Quick over 20 s, over 20 s without their begin, and what quick mode says of 20 s over them;
    /// `None`: it ran on.
    ratios: Option<[f64; 3]>,
    held: String,
    /// What quick mode says that the difference may be, as a share.
    risk: f64,
    saved: (f64, f64),
}

struct Dice(SplitMix64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0.next_unit()
    }

    fn one_of<T: Copy>(&mut self, all: [T; 3]) -> T {
        match self.next() {
            dice if dice < 1.0 / 3.0 => all[0],
            dice if dice < 2.0 / 3.0 => all[1],
            _ => all[2],
        }
    }
}

impl Drawn {
    fn new(seed: u64, place: u64) -> Self {
        let mut dice = Dice(SplitMix64::new(seed.wrapping_mul(1_000_003).wrapping_add(place.wrapping_mul(7919))));
        Self {
            bps: 1e6 * 1000f64.powf(dice.next()),
            rtt: 1e-3 * 200f64.powf(dice.next()),
            loss: dice.one_of(LOSSES),
            queue: 0.25 * 16f64.powf(dice.next()),
            control: dice.one_of(CONTROLS),
            others: 0.0,
            seed: seed.wrapping_add(place),
        }
    }

    /// The same path with any loss, and half of them with others on it.
    fn any(self, place: u64) -> Self {
        let mut dice = Dice(SplitMix64::new(self.seed.wrapping_mul(7_368_787).wrapping_add(place)));
        let (loss, is_shared, share) = (1e-3 * dice.next(), dice.next() < 0.5, 0.05 + 0.55 * dice.next());
        Self { loss, others: if is_shared { share } else { 0.0 }, ..self }
    }

    fn scenario(&self) -> Option<Scenario> {
        let mut hop = Hop::rate(whole(self.bps))
            .delay(Duration::from_secs_f64(self.rtt / 2.0))
            .queue(Queue::Octets(Octets::new(whole(self.bps * self.rtt / 8.0 * self.queue).bps().max(LEAST_QUEUE))));
        if self.loss > 0.0 {
            hop = hop.loss(Loss::Random { ratio: self.loss });
        }
        let mut scenario = Scenario::new("one hop").hop(hop);
        if self.others > 0.0 {
            let taken = whole(self.bps * self.others);
            scenario = scenario.cross(Cross::on_hop(0, Arrivals::Poisson, taken, SizeMix::constant(1500)));
        }
        scenario.receiver.tcp_receive_octets = 256 << 20;
        scenario.validate().ok()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate of at most 1 Gbit/s")]
fn whole(value: f64) -> BitRate {
    BitRate::from_bps(value as u64)
}

#[expect(clippy::print_stdout, reason = "an example speaks to its user")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, usual: u64| record::word(&args, name).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let hosts = record::hosts(&args);
    let has = |word: &str| args.iter().any(|arg| arg == word);
    let rule = if has("seed003") { "seed003" } else { "composite" };
    let (seed, paths) = (number("seed", 41), number("paths", 150));
    if has("figure7") {
        for row in figure7() {
            println!("{row}");
        }
        return;
    }
    let mut rows = Vec::new();
    for place in 0..paths {
        let drawn = Drawn::new(seed, place);
        let drawn = if has("any") { drawn.any(place) } else { drawn };
        let Some(row) = compare(drawn, rule, hosts.as_ref()) else {
            continue;
        };
        if has("rows") {
            println!("{}", label(&row));
        }
        rows.push(row);
    }
    if has("cells") {
        as_cells(&rows, has("any"));
        return;
    }
    let of = |pick: &dyn Fn(&Row) -> bool| summary(&rows.iter().filter(|row| pick(row)).collect::<Vec<_>>());
    for loss in LOSSES.iter().filter(|_| !has("any")) {
        println!("loss {loss:<7} {}", of(&|row| row.drawn.loss.total_cmp(loss).is_eq()));
    }
    for control in CONTROLS {
        println!("{control:12} {}", of(&|row| row.drawn.control == control));
    }
    if has("any") {
        println!("alone        {}", of(&|row| row.drawn.others <= 0.0));
        println!("beside       {}", of(&|row| row.drawn.others > 0.0));
    }
    println!("all          {}", of(&|_| true));
}

fn label(row: &Row) -> String {
    let drawn = row.drawn;
    let ratios =
        row.ratios.map_or_else(|| "ran on".to_owned(), |[all, late, said]| format!("{all:.3} {late:.3} {said:.3}"));
    format!(
        "{:8.3} Mbit/s {:6.2} ms loss {:<6.5} queue {:.2} others {:.2} {:5} {ratios} saved {:.3} {:.3} {}",
        drawn.bps / 1e6,
        drawn.rtt * 1e3,
        drawn.loss,
        drawn.queue,
        drawn.others,
        drawn.control,
        row.saved.0,
        row.saved.1,
        row.held,
    )
}

/// Sums of all paths and of each control: those that ended early, and what is near the 20 s.
fn as_cells(rows: &[Row], beside: bool) {
    let kinds = [("all", ""), ("Reno", "reno"), ("CUBIC", "cubic"), ("BBR", "bbr")];
    for (name, control) in kinds {
        let picked: Vec<&Row> = rows.iter().filter(|row| control.is_empty() || row.drawn.control == control).collect();
        near_cells(name, &picked);
    }
    if beside {
        near_cells("beside others", &rows.iter().filter(|row| row.drawn.others > 0.0).collect::<Vec<_>>());
    }
    let median = |of: fn(&Row) -> f64| narrows_stat::median(&rows.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0);
    record::cell("median saved of all, time", format!("{:.0} %", 100.0 * median(|row| row.saved.0)));
    record::cell("median saved of all, octets", format!("{:.0} %", 100.0 * median(|row| row.saved.1)));
    let risks: Vec<bool> =
        rows.iter().filter_map(|row| Some((row.ratios?[0] - 1.0).abs() <= row.risk + 0.02)).collect();
    let within = risks.iter().filter(|within| **within).count();
    record::cell("difference within `risk` and two points", record::coverage(within as u64, risks.len() as u64));
}

fn near_cells(name: &str, rows: &[&Row]) {
    let share = |good: usize| format!("{:.1} %", 100.0 * good as f64 / rows.len().max(1) as f64);
    let near = |bound: f64, which: usize| {
        let good = |row: &&&Row| row.ratios.is_none_or(|ratios| (ratios[which] - 1.0).abs() <= bound);
        share(rows.iter().filter(good).count())
    };
    let ended = rows.iter().filter(|row| row.ratios.is_some()).count();
    record::cell(&format!("{name}: ended early, of paths"), format!("{ended} of {}", rows.len()));
    record::cell(&format!("{name}: within 5 %, 10 %"), format!("{}, {}", near(0.05, 0), near(0.10, 0)));
    if name == "all" {
        record::cell("the same, 20 s without their begin", format!("{}, {}", near(0.05, 1), near(0.10, 1)));
        record::cell("the same, `over_20_s_bps`", format!("{}, {}", near(0.05, 2), near(0.10, 2)));
    }
}

fn summary(rows: &[&Row]) -> String {
    let share = |good: usize| good as f64 / rows.len().max(1) as f64;
    let within = |bound: f64, which: usize| {
        let good = |row: &&&Row| row.ratios.is_none_or(|ratios| (ratios[which] - 1.0).abs() <= bound);
        share(rows.iter().filter(good).count())
    };
    let ended: Vec<&&Row> = rows.iter().filter(|row| row.ratios.is_some()).collect();
    let median = |of: fn(&Row) -> f64, of_all: bool| {
        let values: Vec<f64> =
            if of_all { rows.iter().map(|row| of(row)).collect() } else { ended.iter().map(|row| of(row)).collect() };
        narrows_stat::median(&values).unwrap_or(0.0)
    };
    format!(
        "{:4} paths, {:4} ended early; within 5 %: {:.3}, 10 %: {:.3}; of 20 s without their begin {:.3} {:.3}; as predicted {:.3} {:.3}; \
         median saved time {:.3} octets {:.3}, of all time {:.3} octets {:.3}",
        rows.len(),
        ended.len(),
        within(0.05, 0),
        within(0.10, 0),
        within(0.05, 1),
        within(0.10, 1),
        within(0.05, 2),
        within(0.10, 2),
        median(|row| row.saved.0, false),
        median(|row| row.saved.1, false),
        median(|row| row.saved.0, true),
        median(|row| row.saved.1, true),
    )
}

fn number(evidence: &Diagnostics, name: &str) -> Option<f64> {
    reported(evidence, name).and_then(Diagnostic::as_f64)
}

fn compare(drawn: Drawn, rule: &str, hosts: Option<&Arc<HostProfile>>) -> Option<Row> {
    let scenario = record::between(drawn.scenario()?, hosts);
    let common = [("duration", "20 s"), ("congestion", drawn.control)];
    let tcp = |more: &[(&str, &str)]| {
        let params: Vec<_> = common.iter().chain(more).copied().collect();
        tcp(&scenario, &params, drawn.seed)
    };
    let quick = tcp(&[("rule", rule)]);
    let value = quick.outcome.estimate()?;
    let mut row = Row { drawn, ratios: None, held: String::new(), risk: 0.0, saved: (0.0, 0.0) };
    if reported(&value.diagnostics, "risk_share").is_none() {
        return Some(row);
    }
    let full = tcp(&[("mode", "full"), ("omit", "0 s")]);
    let long = full.outcome.estimate()?;
    let Some(Diagnostic::Series(slots)) = reported(&long.diagnostics, "slot_bps") else {
        return None;
    };
    // Full length leaves out a second and 20 round trips: slots of a tenth of a second.
    let omitted = (0..slots.len()).find(|slot| *slot as f64 >= 10.0f64.max(200.0 * drawn.rtt))?;
    let late = narrows_stat::mean(&slots[omitted..])?;
    let (bps, truth) = (value.in_unit().value as f64, long.in_unit().value.max(1) as f64);
    let said = number(&value.diagnostics, "over_20_s_bps").unwrap_or(0.0);
    row.ratios = Some([bps / truth, bps / late.max(1.0), said / truth]);
    row.risk = number(&value.diagnostics, "risk_share").unwrap_or(0.0);
    row.held = format!("{:?} risk {:.3}", reported(&value.diagnostics, "held_by"), row.risk);
    row.saved =
        (1.0 - quick.cost.time.as_secs_f64() / 20.0, 1.0 - quick.cost.octets as f64 / full.cost.octets.max(1) as f64);
    Some(row)
}

/// Rates and round trips that the paper's text names, queues of 100 ms, a tenth taken by Poisson
/// traffic.
fn figure7() -> Vec<String> {
    let paths = [1.5, 10.0, 45.0, 100.0, 155.0, 400.0].map(|mbps| [10, 70, 140].map(|rtt| (mbps, rtt)));
    let rows = paths.as_flattened().iter().map(|&(mbps, rtt_ms)| {
        let rate = whole(mbps * 1e6);
        let first = Hop::rate(BitRate::from_gbps(1)).delay(Duration::from_micros(50));
        let link = Hop::rate(rate)
            .delay(Duration::from_millis(rtt_ms) / 2)
            .queue(Queue::Octets(Octets::new(rate.octets_in(Duration::from_millis(100)))));
        let others = Cross::on_hop(1, Arrivals::Poisson, whole(mbps * 0.97531e5), SizeMix::constant(1500));
        let mut scenario = Scenario::new("figure 7").hop(first).hop(link).cross(others);
        scenario.receiver.tcp_receive_octets = 16_000_000;
        let scenario = scenario.validate().ok()?;
        let reno = [("congestion", "reno"), ("duration", "20 s")];
        let all = |more: &[(&str, &str)]| {
            let params: Vec<_> = reno.iter().chain(more).copied().collect();
            tcp(&scenario, &params, 77)
        };
        let full = all(&[("mode", "full"), ("omit", "0 s")]);
        let truth = full.outcome.estimate()?.in_unit().value as f64;
        let row = ["seed003", "composite"].map(|rule| {
            let quick = all(&[("rule", rule)]);
            let value = quick.outcome.estimate().map_or(0.0, |estimate| estimate.in_unit().value as f64);
            let octets = 1.0 - quick.cost.octets as f64 / full.cost.octets.max(1) as f64;
            let time = 1.0 - quick.cost.time.as_secs_f64() / full.cost.time.as_secs_f64().max(1e-9);
            format!("{:.3} | {:.0} %, {:.0} %", value / truth, 100.0 * time, 100.0 * octets)
        });
        Some(format!("| {mbps} | {rtt_ms} | {:.1} | {} | {} |", truth / 1e6, row[0], row[1]))
    });
    rows.flatten().collect()
}

fn tcp(scenario: &Scenario, params: &[(&str, &str)], seed: u64) -> Measured {
    let raw: RawParams = params.iter().copied().collect();
    let method = methods::find("tcp").expect("the registry lists it");
    let mut estimator = method.begin(&raw).expect("good parameters");
    let mut world = SimWorld::new(scenario, PathDirection::Forward, seed);
    let Ok(measured) = drive(&mut world, estimator.as_mut(), method.imposes(&raw).budget());
    measured
}

/// One of what is told to people.
fn reported<'a>(diagnostics: &'a Diagnostics, name: &str) -> Option<&'a Diagnostic> {
    let mut all = diagnostics.iter();
    all.find(|(own, _)| *own == name).map(|(_, value)| value)
}
