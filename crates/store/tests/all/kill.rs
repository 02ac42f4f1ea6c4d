//! `kill -9`: what was acknowledged is there, one run is lost, no budget is spent twice.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use narrows_store::records::{Basis, RunOutcome};
use narrows_store::{Options, Store};
use narrows_watch::Signal;
use uuid::Uuid;

use crate::common::{DAY, Folder, MINUTE, MONDAY, at, event, pulses, run, sample, span};

const CHILD: &str = "NARROWS_STORE_CHILD";
/// What is spent counts for a day that the child's own upkeep does not delete.
const TODAY: i64 = MONDAY / DAY;

/// Works as `narrows watch` does, and says what is on disk, until it is killed.
fn child(path: &std::path::Path) -> ! {
    let store = Store::open(path, Options::new(at(0))).unwrap();
    let writer = store.writer();
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    let first = i64::try_from(store.reader().runs(None, span(0, 9_000 * DAY), usize::MAX).unwrap().len()).unwrap();
    let mut out = std::io::stdout();
    for number in first.. {
        let now = number * MINUTE;
        writer.pulses(target, pulses(now, 0));
        writer.sample(target, Signal::AvailableForward, Basis::Server, sample(now, 1e7));
        writer.spent(target, TODAY, "slice", u64::try_from(number + 1).unwrap() * 1_000);
        let mut one = run(u128::try_from(number).unwrap() + 1, target, now);
        writer.run_began(&one).unwrap();
        writeln!(out, "began {number}").unwrap();
        writer.event(&mut event(Some(target), now, "one")).unwrap();
        writeln!(out, "event {number}").unwrap();
        one.outcome = RunOutcome::Done;
        one.ended = Some(at(now + 1));
        one.document = Some(serde_json::json!({"text": "x".repeat(2_000)}));
        writer.run_ended(&one).unwrap();
        writeln!(out, "ended {number}").unwrap();
        if number % 10 == 9 {
            writer.maintain(at(now));
        }
        out.flush().unwrap();
    }
    unreachable!("the child is killed");
}

/// What the child said before it was killed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    began: i64,
    events: i64,
    ended: i64,
}

/// Starts the child, kills it after so many of its lines, and returns what it had said.
fn killed_after(test: &str, folder: &Folder, lines: usize, wait: impl FnOnce()) -> Said {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(CHILD, folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = Said::default();
    let mut words = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut wait = Some(wait);
    for number in 0.. {
        if number == lines {
            if let Some(wait) = wait.take() {
                wait();
            }
            child.kill().unwrap();
        }
        // After the kill comes what was already in the pipe.
        let Some(Ok(line)) = words.next() else { break };
        let value = |word: &str| line.split_once(word).map(|(_, rest)| rest.trim().parse::<i64>().unwrap() + 1);
        said.began = value("began ").unwrap_or(said.began);
        said.events = value("event ").unwrap_or(said.events);
        said.ended = value("ended ").unwrap_or(said.ended);
    }
    child.wait().unwrap();
    said
}

/// The next start finds all that was said, and one lost run for each kill at most.
fn check(folder: &Folder, said: &Said, kills: usize) {
    let store = folder.open();
    let reader = store.reader();
    // Who said nothing may have been killed before it opened the store.
    assert!(store.opened().unclean || *said == Said::default(), "{said:?}: {:?}", store.opened());
    assert!(store.opened().lost_runs <= 1, "{said:?}: {:?}", store.opened());
    assert_eq!(store.opened().salvage, None, "{said:?}");
    reader.check().unwrap();
    let runs = reader.runs(None, span(0, 9_000 * DAY), usize::MAX).unwrap();
    assert!(runs.iter().all(|run| run.outcome != RunOutcome::Running));
    assert!(runs.iter().filter(|run| run.outcome == RunOutcome::Lost).count() <= kills, "{said:?}");
    let number = |said: i64| Uuid::from_u128(u128::try_from(said).unwrap());
    if said.began > 0 {
        reader.run(number(said.began)).unwrap();
    }
    if said.ended > 0 {
        assert_eq!(reader.run(number(said.ended)).unwrap().outcome, RunOutcome::Done, "{said:?}");
    }
    let minute = |said: i64| span((said - 1) * MINUTE, said * MINUTE);
    assert_eq!(reader.events(None, minute(said.events), 9).unwrap().len(), usize::from(said.events > 0), "{said:?}");
    let spent: u64 = store.writer().spent_on(TODAY).unwrap().iter().map(|one| one.octets).sum();
    assert!(spent >= u64::try_from(said.began).unwrap() * 1_000, "{said:?}: {spent}");
}

#[test]
fn a_killed_writer_loses_one_run_at_most() {
    if let Some(path) = std::env::var_os(CHILD) {
        child(path.as_ref());
    }
    let folder = Folder::new();
    for (kills, lines) in (1..).zip([3, 4, 12, 32]) {
        let said = killed_after("kill::a_killed_writer_loses_one_run_at_most", &folder, lines, || {});
        assert!(said.began > 0, "{said:?}");
        check(&folder, &said, kills);
    }
}

#[test]
#[ignore = "soak: a thousand kills take minutes"]
#[expect(clippy::disallowed_methods, reason = "a kill comes at any time, so it must not wait for a line of the child")]
fn a_thousand_kills() {
    if let Some(path) = std::env::var_os(CHILD) {
        child(path.as_ref());
    }
    let folder = Folder::new();
    // Any sequence does (Knuth's multiplier); it is printed with the kill that failed.
    let mut random = 1_u64;
    for kills in 1..=1_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let wait = std::time::Duration::from_micros((random >> 33) % 30_000);
        let lines = usize::try_from((random >> 40) % 20).unwrap();
        let said = killed_after("kill::a_thousand_kills", &folder, lines, || std::thread::sleep(wait));
        check(&folder, &said, kills);
    }
}
