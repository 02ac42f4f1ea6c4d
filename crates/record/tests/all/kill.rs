//! `kill -9`: what was acknowledged is there, once.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use narrows_record::sqlite::Record;
use narrows_record::{Record as _, RunFilter};

use crate::common::{EVER, NOON, agents, available, name};

const CHILD: &str = "NARROWS_RECORD_CHILD";

/// Ingests as a hub does, and says what was acknowledged, until it is killed.
async fn child(path: &Path) {
    let record = Record::open(path).unwrap();
    if record.agents().await.unwrap().is_empty() {
        agents(&record, &["a"]).await;
    }
    // The last process may have done more than it said.
    let first = record.agents().await.unwrap()[0].stored.ranges.first().map_or(1, |range| range.1);
    let mut out = std::io::stdout();
    for batch in 0.. {
        let numbers = first + batch * 20..first + (batch + 1) * 20;
        let runs: Vec<_> = numbers.clone().map(|seq| available("a", seq, "b", NOON, 1e6)).collect();
        record.ingest(&runs, NOON).await.unwrap();
        writeln!(out, "stored {}", numbers.end - 1).unwrap();
        out.flush().unwrap();
    }
}

fn killed_after(test: &str, path: &Path, lines: usize) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = 0;
    let mut words = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    for line in words.by_ref().filter_map(|line| line.strip_prefix("stored ").map(str::to_owned)).take(lines) {
        said = line.parse().unwrap();
    }
    child.kill().unwrap();
    // After the kill comes what was already in the pipe.
    for line in words {
        said = line.strip_prefix("stored ").map_or(said, |number| number.parse().unwrap());
    }
    child.wait().unwrap();
    said
}

async fn check(path: &Path, said: u64) {
    let record = Record::open(path).unwrap();
    let agents = record.agents().await.unwrap();
    let [(1, beyond)] = agents[0].stored.ranges[..] else { panic!("{:?}", agents[0].stored) };
    assert!(beyond > said, "{said} of {beyond}");
    let filter = RunFilter { agent: None, target: None, kind: None, range: EVER, limit: usize::MAX };
    let mut numbers: Vec<u64> = record.runs(&filter).await.unwrap().iter().map(|run| run.seq).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..beyond).collect::<Vec<_>>());
    record.roll_up().await.unwrap();
    let metric = narrows_units::Metric::AvailableIpCapacity;
    let hours = record.series(&name("a"), &name("b"), metric, EVER, 1).await.unwrap();
    assert_eq!(hours.iter().map(|hour| hour.count).sum::<u64>(), beyond - 1);
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn what_was_acknowledged_survives() {
    run(kills("kill::what_was_acknowledged_survives", 3));
}

#[test]
#[ignore = "soak: a hundred kills take a minute"]
fn a_hundred_kills() {
    run(kills("kill::a_hundred_kills", 100));
}

async fn kills(test: &str, kills: usize) {
    if let Some(path) = std::env::var_os(CHILD) {
        child(path.as_ref()).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    let mut said = 0;
    for kill in 0..kills {
        said = killed_after(test, &path, 1 + 2 * kill % 5);
        assert!(said > 0);
        check(&path, said).await;
    }
    println!("{kills} kills: {said} results acknowledged, none lost, none twice");
}
