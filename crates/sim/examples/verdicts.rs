//! What is told to have limited a transfer, over paths that no threshold was set by: rates, round
//! trips, queues and seeds are drawn.
//!
//! `cargo run --release -p narrows-sim --example verdicts --
//! [PATHS [SEED]] [short | wide | hosts]`;
//! `short`: tests of 1.4 to 2.2 s; `wide`: 1 Mbit/s to 10 Gbit/s, 1 to 200 ms, Reno, CUBIC and BBR,
//! one to four connections; `hosts`: a column for each profile of `hosts/` instead of what was
//! said.
//! `UPDATE_VERDICTS=1` writes the matrix into `docs/results/verdicts.md`, `ONLY_LIMIT="shaper"`
//! tries one limit, `SHOW_LIMITS=1` tells each transfer.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]
#![expect(clippy::disallowed_methods, reason = "the page says how long it took")]

#[path = "../tests/all/limits/induced.rs"]
mod induced;

use std::fmt::Write as _;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use narrows_host_profile::HostProfile;
use narrows_stat::SplitMix64;

use induced::beside::BESIDE;
use induced::{Base, Control, FURTHER, INDUCED, Induced, counted, matrix, page};

/// A share, 0..1.
fn share(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 40) as f64 / f64::from(1u32 << 24)
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let paths = arguments.next().unwrap_or(50);
    let seed = arguments.next().unwrap_or(2026);
    let asked = |word: &str| std::env::args().any(|argument| argument == word);
    let mut random = SplitMix64::new(seed);
    let bases: Vec<Base> = (0..paths)
        .map(|path| match (asked("wide"), asked("short")) {
            (true, _) => drawn(path, seed, &mut random),
            (_, true) => short(path, seed, &mut random),
            _ => moderate(path, seed, &mut random),
        })
        .collect();
    let all = if asked("wide") { [&INDUCED[..], &FURTHER].concat() } else { [&INDUCED[..], &BESIDE].concat() };
    let began = Instant::now();
    if asked("hosts") {
        let text = on_hosts(&all, &bases);
        println!("\n{text}");
        page("hosts", &format!("{}\n\n{text}", provenance(&format!("{paths} {seed} hosts"), began.elapsed())));
        return;
    }
    let (text, misses) = matrix(&all, &bases, &mut |line| println!("{line}"));
    println!("\n{text}");
    for line in &misses {
        println!("{line}");
    }
    let mark = if asked("wide") {
        "wide"
    } else if asked("short") {
        "short"
    } else {
        "unseen"
    };
    let kind = if mark == "unseen" { String::new() } else { format!(" {mark}") };
    page(mark, &format!("{}\n\n{text}", provenance(&format!("{paths} {seed}{kind}"), began.elapsed())));
}

/// Rows: induced; columns: between which hosts. Cells: right, unclear, wrong.
fn on_hosts(all: &[Induced], bases: &[Base]) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hosts");
    let files = std::fs::read_dir(folder).expect("hosts/").filter_map(|entry| Some(entry.ok()?.path()));
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a profile can be read");
        Arc::new(HostProfile::from_toml(&text).expect("a profile"))
    };
    let mut profiles: Vec<Arc<HostProfile>> = files.map(read).collect();
    profiles.sort_by(|one, other| one.name.cmp(&other.name));
    let columns: Vec<Option<Arc<HostProfile>>> = std::iter::once(None).chain(profiles.into_iter().map(Some)).collect();
    let names = columns.iter().map(|hosts| hosts.as_ref().map_or("ideal", |hosts| hosts.name.as_str()));
    let mut text = format!("| induced | {} |\n|---|", names.collect::<Vec<_>>().join(" | "));
    text.push_str(&"--:|".repeat(columns.len()));
    text.push('\n');
    for limit in all {
        let _ = write!(text, "| {} |", limit.0);
        for hosts in &columns {
            let counted = counted(limit, bases, hosts.as_ref(), &mut |_| ());
            let cell = format!("{}, {}, {}", counted.right, counted.unclear, counted.wrong());
            println!("{} between {}: {cell}", limit.0, hosts.as_ref().map_or("ideal", |hosts| hosts.name.as_str()));
            for miss in counted.misses.iter().filter(|miss| miss.starts_with("WRONG")) {
                println!("{miss}");
            }
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    text
}

/// By which command, of which commit, for how long and where the matrix was made.
fn provenance(arguments: &str, took: Duration) -> String {
    let git = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let commit =
        git.map_or_else(|_| "unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().into());
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!(
        "`UPDATE_VERDICTS=1 cargo run --release -p narrows-sim --example verdicts -- {arguments}`, commit {commit}, {:.0} s, {cores} cores, Linux {}:",
        took.as_secs_f64(),
        kernel.trim()
    )
}

/// Even on the scale of decades.
fn between(random: &mut SplitMix64, low: f64, high: f64) -> f64 {
    low * (high / low).powf(share(random))
}

/// 10 to 250 Mbit/s, 8 to 120 ms, queues of 0.5 to 3 products, Reno and CUBIC in turn.
fn moderate(path: u64, seed: u64, random: &mut SplitMix64) -> Base {
    Base {
        mbps: between(random, 10.0, 250.0),
        rtt_ms: between(random, 8.0, 120.0),
        queue: between(random, 0.5, 3.0),
        control: if path.is_multiple_of(2) { Control::Reno } else { Control::Cubic },
        streams: 1,
        length: 12.0,
        seed: seed.wrapping_add(path),
    }
}

/// The same, from 5 Mbit/s and from 2 ms on, for tests as short as quick mode makes them.
fn short(path: u64, seed: u64, random: &mut SplitMix64) -> Base {
    let mut base = moderate(path, seed, random);
    base.mbps = between(random, 5.0, 250.0);
    base.rtt_ms = between(random, 2.0, 60.0);
    Base { length: between(random, 1.4, 2.2), ..base }
}

/// Segments that a test may carry: what keeps a run to seconds.
const MOST_SEGMENTS: f64 = 1.5e6;

/// 1 Mbit/s to 10 Gbit/s, 1 to 200 ms (at least thirty round trips in the test), queues of 0.5 to 3
/// products, the three controls in turn, one, two or four connections.
fn drawn(path: u64, seed: u64, random: &mut SplitMix64) -> Base {
    let mbps = between(random, 1.0, 10_000.0);
    let length = (MOST_SEGMENTS * 1500.0 * 8.0 / (mbps * 1e6)).clamp(2.0, 12.0);
    Base {
        mbps,
        length,
        rtt_ms: between(random, 1.0, 200.0).min(length * 1e3 / 30.0),
        queue: between(random, 0.5, 3.0),
        control: [Control::Reno, Control::Cubic, Control::Bbr][usize::try_from(path % 3).unwrap_or(0)],
        streams: if share(random) < 0.5 { 1 } else { [2, 4][usize::from(share(random) < 0.5)] },
        seed: seed.wrapping_add(path),
    }
}
