//! Octets flipped in every kind of page: the program starts, says so, and saves the rest.

use std::collections::BTreeMap;

use narrows_store::records::{Basis, PathSeen, RunOutcome};
use narrows_store::{Options, Store};
use narrows_watch::Signal;

use crate::common::{DAY, Folder, HOUR, MINUTE, at, event, pulses, run, sample, span};

const PAGE: usize = 4_096;

/// The file of a program that was killed, with rows in all tables, pages below others and pages
/// that continue others.
fn file() -> Vec<u8> {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.writer();
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    for minute in 0..300 {
        writer.pulses(target, pulses(minute * MINUTE, 0));
        writer.sample(target, Signal::AvailableForward, Basis::Server, sample(minute * MINUTE, 1e7));
    }
    for number in 0..20 {
        let mut one = run(u128::try_from(number).unwrap() + 1, target, number * HOUR);
        one.outcome = RunOutcome::Done;
        // Random enough that it does not deflate to nothing.
        let words: Vec<String> = (0..1_000).map(|at| format!("{:x}", at * at * (number + 7) % 65_521)).collect();
        let text = words.join(" ");
        one.document = Some(serde_json::json!({ "text": text }));
        writer.run_ended(&one).unwrap();
        writer.event(&mut event(Some(target), number * HOUR, &"word ".repeat(60))).unwrap();
    }
    let hops = vec![vec!["10.0.0.1".to_owned()]];
    let path = PathSeen {
        at: at(0),
        address: None,
        source: None,
        interface: None,
        next_hop: None,
        mtu: None,
        hops,
        hop_round_trips_ns: vec![],
    };
    writer.path(target, path);
    writer.maintain(at(DAY)).recv().unwrap();
    folder.sql().execute_batch("delete from pulse where minute % 4 = 0; pragma wal_checkpoint(truncate)").unwrap();
    std::fs::read(folder.path()).unwrap()
}

/// The pages by their kind: what the first octet says of those that have rows.
fn kinds(file: &[u8]) -> BTreeMap<&'static str, Vec<usize>> {
    let mut kinds: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (number, page) in file.chunks(PAGE).enumerate() {
        let kind = match (number, page[0]) {
            (0, _) => "schema",
            (1, _) => "map of pointers",
            (_, 2) => "index interior",
            (_, 5) => "table interior",
            (_, 10) => "index leaf",
            (_, 13) => "table leaf",
            _ => "continued or free",
        };
        kinds.entry(kind).or_default().push(number);
    }
    kinds
}

/// Opens the file with octets of one page flipped. Returns how many rows were saved, if any had
/// to be.
fn opened(file: &[u8], page: usize, from: usize, octets: usize) -> Option<u64> {
    let folder = Folder::new();
    let mut damaged = file.to_vec();
    for octet in &mut damaged[page * PAGE + from..][..octets] {
        *octet ^= 0xa5;
    }
    std::fs::write(folder.path(), &damaged).unwrap();
    // It was ours: the lock lies beside it.
    std::fs::write(folder.0.path().join("watch.db.lock"), "").unwrap();
    let store =
        Store::open(&folder.path(), Options::new(at(DAY))).unwrap_or_else(|error| panic!("page {page}: {error}"));
    let reader = store.reader();
    reader.check().unwrap_or_else(|error| panic!("page {page}: {error}"));
    let salvage = store.opened().salvage.clone()?;
    assert!(std::fs::read(&salvage.renamed).unwrap().len() >= file.len(), "the old file is kept");
    let [found] = &reader.events(None, span(DAY, DAY + 1), 9).unwrap()[..] else { panic!("one event") };
    assert_eq!(found.kind, "store");
    assert!(found.text.contains("rows saved"), "{}", found.text);
    // It goes on.
    let writer = store.writer();
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    writer.sample(target, Signal::AvailableForward, Basis::Server, sample(2 * DAY, 1e7));
    writer.flush().unwrap();
    Some(salvage.rows)
}

#[test]
fn a_damaged_file_is_salvaged() {
    let file = file();
    let kinds = kinds(&file);
    assert!(kinds.len() == 7, "{kinds:?}");
    let whole = rows(&file);
    let mut salvaged = 0;
    for (kind, pages) in kinds {
        let page = pages[pages.len() / 2];
        let Some(rows) = opened(&file, page, 0, 200) else { continue };
        salvaged += 1;
        if kind != "schema" {
            assert!(rows >= whole / 2, "{kind}, page {page}: {rows} of {whole}");
        }
    }
    assert!(salvaged >= 6, "{salvaged}");
    assert_eq!(opened(&file, 0, 0, 0), None, "a sound file is not touched");
}

#[test]
#[ignore = "soak: every page of a file, header and middle"]
fn every_page_may_be_damaged() {
    let file = file();
    for page in 0..file.len() / PAGE {
        for (from, octets) in [(0, 8), (100, 100), (0, PAGE), (2_000, 40)] {
            opened(&file, page, from, octets);
        }
    }
}

fn rows(file: &[u8]) -> u64 {
    let folder = Folder::new();
    std::fs::write(folder.path(), file).unwrap();
    let connection = folder.sql();
    let tables = ["pulse", "sample", "rollup", "run", "document", "event", "state", "target", "series", "path"];
    let count = |table: &str| -> i64 {
        connection.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap()
    };
    u64::try_from(tables.into_iter().map(count).sum::<i64>()).unwrap()
}
