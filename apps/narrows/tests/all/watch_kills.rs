//! `kill -9` of `narrows watch` at any moment. The file is whole, one run is lost at most, no octet
//! is booked twice or forgotten, and every value that was printed is in the store, once.

#![expect(clippy::disallowed_methods, reason = "a program under test runs in real time")]
#![expect(clippy::print_stdout, reason = "says what the kills met")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use narrows_stat::SplitMix64;
use narrows_store::records::{Run, RunOutcome, Span};
use narrows_store::{Options, Store};
use narrows_watch::schedule::{TargetId, Why};
use narrows_watch::{Signal, WallTime};
use nix::sys::signal::Signal as UnixSignal;
use serde_json::Value;

use crate::common::{Running, Server, directory, file, narrows, text};

/// A life for routes; one for a slice, which comes 10 to 20 s after a start; one for a minute of
/// pulses, which is told within 10 s of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Short,
    Slice,
    Minute,
}

/// What all lives so far left.
#[derive(Debug, Default)]
struct Left {
    /// Signal, time in ms, value: as printed.
    printed: BTreeMap<(Signal, i64), f64>,
    /// By local day and share: what the store says was spent, and what ended runs sent.
    spent: BTreeMap<(i64, &'static str), (u64, u64)>,
    /// The highest capacity that was measured, in bit/s: loopback has more than is assumed.
    capacity_bps: f64,
    lost: usize,
    /// Runs of which nobody knows what they sent, and kills after which more was booked than sent.
    unknown: usize,
    unsettled: usize,
}

#[test]
#[ignore = "soak: takes two minutes"]
fn ten_kills() {
    kills(10, 8, |kill| match kill {
        4 => Life::Slice,
        9 => Life::Minute,
        _ => Life::Short,
    });
}

#[test]
#[ignore = "soak: takes more than an hour"]
fn a_thousand_kills() {
    let left = kills(asked(), 9, |kill| match kill % 100 {
        99 => Life::Minute,
        number if number % 10 == 4 => Life::Slice,
        _ => Life::Short,
    });
    assert!(left.lost > 0, "no kill met a run");
}

/// A thousand, unless somebody asks for fewer.
fn asked() -> u32 {
    std::env::var("NARROWS_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000)
}

fn kills(count: u32, seed: u64, life: impl Fn(u32) -> Life) -> Left {
    let server = Server::start(&[]);
    let home = directory();
    let target = format!(
        "[budget]\ntest = \"off\"\n[[target]]\nname = \"office\"\nhost = \"127.0.0.1\"\nport = {}\n",
        server.port()
    );
    let settings = file(&home, "watch.toml", &target);
    let store = home.path().join("watch.db");
    let (mut random, mut left) = (SplitMix64::new(seed), Left::default());
    for kill in 0..count {
        let (from_s, until_s) = match life(kill) {
            Life::Short => (0.05, 4.0),
            Life::Slice => (9.0, 25.0),
            Life::Minute => (72.0, 80.0),
        };
        // As many between 0.1 and 0.2 s, in which routes and capacities begin, as between 1 and 2
        // s.
        let seconds = from_s * f64::powf(until_s / from_s, random.next_unit());
        let arguments = ["watch", "--config", text(&settings), "--store", text(&store), "--json"];
        let running = Running::start(narrows(arguments).args(["--listen", "none"]).env("TZ", "UTC"));
        std::thread::sleep(Duration::from_secs_f64(seconds));
        running.signal(UnixSignal::SIGKILL);
        let ended = running.end();
        assert!(!ended.stderr.contains("panicked"), "kill {kill} after {seconds} s: {ended:?}");
        take(&mut left, &ended.stdout, kill);
        look(&mut left, &store, kill);
    }
    println!("{count} kills: {} values, {} runs lost, {:?}", left.printed.len(), left.lost, left.spent);
    assert!(!left.printed.is_empty(), "nothing was printed");
    assert!(left.spent.values().any(|(_, sent)| *sent > 0), "nothing was measured");
    // A kill may come between a booking and its run.
    let Left { unsettled, unknown, .. } = left;
    assert!(unsettled <= unknown + 1, "{unsettled} bookings stayed, {unknown} runs were lost");
    left
}

/// Takes in what was printed. A line without its end was not.
fn take(left: &mut Left, stdout: &str, kill: u32) {
    for line in stdout.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("kill {kill}: {error}: {line}"));
        let (Some("value"), Some(value)) = (line["kind"].as_str(), line["value"].as_f64()) else { continue };
        let signal = Signal::ALL.into_iter().find(|signal| line["signal"] == signal.name()).expect("a known signal");
        let at_ms = line["at_ms"].as_i64().expect("a time");
        assert!(left.printed.insert((signal, at_ms), value).is_none(), "kill {kill}: printed twice: {line}");
    }
}

/// Looks at what the killed process left, in a copy: the next one finds it as it was.
fn look(left: &mut Left, store: &Path, kill: u32) {
    let folder = directory();
    let copy = folder.path().join("watch.db");
    if !store.exists() {
        return assert!(left.printed.is_empty(), "kill {kill}: printed, and no store");
    }
    for suffix in ["", "-wal"] {
        let name = |path: &Path| format!("{}{suffix}", path.display());
        if Path::new(&name(store)).exists() {
            std::fs::copy(name(store), name(&copy)).expect("a copy");
        }
    }
    let now = WallTime::from_millis(narrows_net::clock::wall_ns() / 1_000_000);
    let opened = Store::open(&copy, Options::new(now)).unwrap_or_else(|error| panic!("kill {kill}: {error}"));
    assert!(opened.opened().salvage.is_none(), "kill {kill}: damaged: {:?}", opened.opened());
    let reader = opened.reader();
    reader.check().unwrap_or_else(|error| panic!("kill {kill}: {error}"));
    let newly_lost = opened.opened().lost_runs;
    assert!(newly_lost <= 1, "kill {kill}: {newly_lost} runs lost");
    left.lost += newly_lost;
    let all = Span { since: WallTime::from_millis(0), until: now.after(Duration::from_secs(60)) };
    let Some(target) = reader.all_targets().expect("readable").into_iter().next().map(|target| target.id) else {
        return assert!(left.printed.is_empty(), "kill {kill}: printed, and no target");
    };
    for (&(signal, at_ms), value) in &left.printed {
        let span = Span { since: WallTime::from_millis(at_ms), until: WallTime::from_millis(at_ms + 1) };
        let points = reader.series_every(target, signal, span, Duration::from_millis(1)).expect("readable");
        let same = |point: &narrows_store::records::Point| {
            point.count == 1 && point.value.is_some_and(|stored| (stored - value).abs() <= 0.5)
        };
        assert!(points.len() == 1 && same(&points[0]), "kill {kill}: {signal} of {at_ms}: {value}, stored: {points:?}");
    }
    let capacities = reader.series_every(target, Signal::Capacity, all, Duration::from_millis(1)).expect("readable");
    left.capacity_bps = capacities.iter().filter_map(|point| point.value).fold(left.capacity_bps, f64::max);
    let runs = reader.runs(Some(target), all, usize::MAX).expect("readable");
    budget(left, &opened, &runs, (target, now), kill);
}

/// What a day spent never shrinks. Beyond what ended runs sent it holds what lost ones were booked
/// with, and a kill adds no more than one booking to that.
fn budget(left: &mut Left, store: &Store, runs: &[Run], (target, now): (TargetId, WallTime), kill: u32) {
    let ids: BTreeSet<uuid::Uuid> = runs.iter().map(|run| run.id).collect();
    assert_eq!(ids.len(), runs.len(), "kill {kill}: a run twice");
    let day = now.millis().div_euclid(86_400_000);
    let spent = store.writer().spent_on(day).expect("readable");
    for why in Why::ALL {
        let booked: u64 =
            spent.iter().filter(|row| row.target == target && row.kind == why.name()).map(|row| row.octets).sum();
        let of_today = |run: &&Run| run.why == why && run.began.millis().div_euclid(86_400_000) == day;
        let ended = runs.iter().filter(of_today).filter(|run| run.outcome != RunOutcome::Lost);
        let of_runs: u64 = ended.filter_map(|run| run.octets).sum();
        let before = left.spent.insert((day, why.name()), (booked, of_runs)).unwrap_or_default();
        assert!(booked >= before.0, "kill {kill}: {why:?}: {booked} octets spent, {before:?} before");
        assert!(booked >= of_runs, "kill {kill}: {why:?}: {of_runs} octets sent, {booked} booked");
        let lost = |(booked, sent): (u64, u64)| booked - sent;
        let more = lost((booked, of_runs)).checked_sub(lost(before));
        let most = booking(left.capacity_bps);
        assert!(
            more.is_some_and(|more| more <= most),
            "kill {kill}: {why:?}: {before:?}, {booked} {of_runs}, {most} at most"
        );
        left.unsettled += usize::from(more != Some(0));
    }
    left.unknown = runs.iter().filter(|run| run.octets.is_none()).count();
}

/// No job is booked with more: the minute of a path of 100 Mbit/s at 1 %; or a slice, of half as
/// much again as slices usually take, which grows with the fourth root of the capacity.
fn booking(capacity_bps: f64) -> u64 {
    let slice = 1.5 * 1.3e6 * (capacity_bps / 1e8).sqrt().sqrt();
    narrows_units::rounded(slice).max(7_500_000)
}
