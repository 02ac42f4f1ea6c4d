//! The figures of the store and of the pages of `narrows watch`, as rows of a table:
//! `watch_bench FOLDER ROWS`. Prints them; judges nothing. `cargo xtask bench watch` runs it.

#[path = "../../tests/all/cdp.rs"]
#[expect(dead_code, reason = "tests use all of it")]
mod cdp;
mod clients;
mod fill;
mod pages;
mod served;

use std::path::Path;
use std::time::{Duration, Instant};

use narrows_store::Reader;
use narrows_store::records::Span;
use narrows_watch::WallTime;
use narrows_watch::schedule::TargetId;

use fill::{DAY, SIGNALS, TARGETS, now};
use served::Served;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", file] => served::serve(Path::new(file)),
        [folder, rows] => all(Path::new(folder), rows.parse()?),
        _ => Err("watch_bench FOLDER ROWS".into()),
    }
}

fn all(folder: &Path, rows: u64) -> Result<(), Failure> {
    let file = folder.join("watch.db");
    say("what", "goal", "measured");
    say("-", "-", "-");
    fill::fill(&file, rows)?;
    ask(&file)?;
    let mut server = Served::start(&file)?;
    say("memory of store and pages, at rest", "", &server.memory()?);
    pages::click_to_chart(&server)?;
    clients::many_requests(&server)?;
    clients::slow_readers(&mut server)?;
    say("memory of store and pages, most", "below 60 MB", &server.most_memory()?);
    Ok(())
}

/// Questions to the store, each with a target and a signal of its turn.
fn ask(file: &Path) -> Result<(), Failure> {
    let reader = Reader::open(file)?;
    let since = |days: i64| Span { since: WallTime::from_millis(now().millis() - days * DAY), until: now() };
    let target = |n: usize| TargetId::new(1 + u32::try_from(n).unwrap_or_default() % TARGETS);
    let timed = |what: &str, goal: &str, question: &mut dyn FnMut(usize) -> Result<usize, narrows_store::Error>| {
        let mut times = Vec::new();
        for n in 0..240 {
            let began = clock();
            let found = question(n)?;
            // The first of them warm the file up.
            times.extend((n >= 40).then(|| began.elapsed()));
            assert!(found > 0, "{what}: nothing was found");
        }
        say(what, goal, &percentiles(&mut times));
        Ok::<_, narrows_store::Error>(())
    };
    timed("a year of a series, 900 points", "p95 below 50 ms", &mut |n| {
        Ok(reader.series(target(n), SIGNALS[n / 20 % SIGNALS.len()], since(365), 900)?.len())
    })?;
    timed("a day of a series, 900 points", "", &mut |n| {
        Ok(reader.series(target(n), SIGNALS[n / 20 % SIGNALS.len()], since(1), 900)?.len())
    })?;
    timed("a year of round trips by size, 200 columns", "", &mut |n| {
        Ok(reader.heatmap(target(n), since(365), 200)?.times.len())
    })?;
    timed("the newest 100 events", "p95 below 20 ms", &mut |_| Ok(reader.events(None, since(365), 100)?.len()))?;
    timed("events of one target in a year", "p95 below 20 ms", &mut |n| {
        Ok(reader.events(Some(target(n)), since(365), 2000)?.len())
    })?;
    Ok(())
}

/// "median 3.1 ms, p95 4.0 ms" of some times.
fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let of = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied();
    let text =
        |time: Option<Duration>| time.map_or_else(String::new, |time| format!("{:.1} ms", time.as_secs_f64() * 1e3));
    format!("median {}, p95 {}", text(of(50)), text(of(95)))
}

#[expect(clippy::disallowed_methods, reason = "this measures time")]
fn clock() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the rate of an address is bounded, and sockets take time to fill")]
fn nap(time: Duration) {
    std::thread::sleep(time);
}

#[expect(clippy::print_stdout, reason = "that is what it is for")]
fn say(what: &str, goal: &str, measured: &str) {
    println!("| {what} | {goal} | {measured} |");
}
