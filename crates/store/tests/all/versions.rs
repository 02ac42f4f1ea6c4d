//! Files of other versions and of other programs.

use narrows_store::records::RunOutcome;
use narrows_store::{Error, Options, Reader, Store};
use narrows_watch::Signal;

use crate::common::{DAY, Folder, MONDAY, at, event, span};

/// A store as the program wrote it when version 1 was the last one. It is never made again.
const VERSION_1: &str = include_str!("../fixtures/version-1.sql");

#[test]
fn a_store_of_version_1_is_read() {
    let folder = Folder::new();
    folder.sql().execute_batch(VERSION_1).unwrap();
    let store = folder.open();
    let reader = store.reader();
    let [office] = &reader.targets().unwrap()[..] else { panic!("one target") };
    assert_eq!((&*office.name, &*office.host), ("office", "far.example"));
    let points = reader.series(office.id, Signal::AvailableForward, span(0, DAY), 100).unwrap();
    assert_eq!(points.iter().map(|point| point.value).collect::<Vec<_>>(), [Some(61e6), Some(22e6)]);
    let least = reader.series(office.id, Signal::LeastRoundTrip, span(0, DAY), 100).unwrap();
    assert_eq!(least[0].value, Some(2e7));
    let [one] = &reader.events(Some(office.id), span(0, DAY), 9).unwrap()[..] else { panic!("one event") };
    assert_eq!(*one, narrows_store::records::Event { id: one.id, ..event(Some(office.id), 100, "slow") });
    let [run] = &reader.runs(None, span(0, DAY), 9).unwrap()[..] else { panic!("one run") };
    assert_eq!(run.reason, None, "version 1 did not keep it");
    assert_eq!(reader.run(run.id).unwrap().document.unwrap()["schema"], "narrows.report/1");
    reader.check().unwrap();
}

/// As the program wrote it when version 2 was the last one.
const VERSION_2: &str = include_str!("../fixtures/version-2.sql");

#[test]
fn a_store_of_version_2_is_read() {
    let folder = Folder::new();
    folder.sql().execute_batch(VERSION_2).unwrap();
    let store = folder.open();
    let reader = store.reader();
    let [run] = &reader.runs(None, span(0, DAY), 9).unwrap()[..] else { panic!("one run") };
    assert_eq!((run.outcome, run.reason.as_deref()), (RunOutcome::ServerBusy, Some("no slot within 5 s")));
    let [incident] = &reader.incidents(None, span(0, DAY), 9).unwrap()[..] else { panic!("one incident") };
    assert_eq!(incident.hops, Some((2, 3)));
    assert_eq!(store.writer().waiting(at(DAY)).unwrap(), []);
    reader.check().unwrap();
}

/// Whoever only reads brings nothing up to date, and says who does.
#[test]
fn an_older_store_is_not_read_before_it_is_brought_up_to_date() {
    let folder = Folder::new();
    folder.sql().execute_batch(VERSION_1).unwrap();
    let refused = Reader::open(&folder.path()).err();
    assert!(matches!(refused, Some(Error::Older { found: 1, .. })), "{refused:?}");
    drop(folder.open());
    Reader::open(&folder.path()).unwrap();
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let folder = Folder::new();
    drop(folder.open());
    folder.sql().pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(folder.path()).unwrap();
    for refused in [Store::open(&folder.path(), Options::new(at(0))).err(), Reader::open(&folder.path()).err()] {
        assert!(matches!(refused, Some(Error::Newer { found: 99, .. })), "{refused:?}");
    }
    assert!(std::fs::read(folder.path()).unwrap() == before, "not one octet is changed");
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let folder = Folder::new();
    std::fs::write(
        folder.path(),
        "my notes, which are longer than any header of a file of SQLite's, by some words\n".repeat(9),
    )
    .unwrap();
    let refused = Store::open(&folder.path(), Options::new(at(0))).err();
    assert!(matches!(refused, Some(Error::Foreign(_))), "{refused:?}");
    assert!(Reader::open(&folder.path()).is_err());
    assert!(std::fs::read_to_string(folder.path()).unwrap().starts_with("my notes"));
    let other = Folder::new();
    other.sql().execute_batch("create table cookies (a)").unwrap();
    let refused = Store::open(&other.path(), Options::new(at(0))).err();
    assert!(matches!(refused, Some(Error::Foreign(_))), "{refused:?}");
}

#[test]
fn a_second_writer_is_refused_while_the_first_writes() {
    let folder = Folder::new();
    let first = folder.open();
    let refused = Store::open(&folder.path(), Options::new(at(0))).err();
    assert!(matches!(refused, Some(Error::InUse(_))), "{refused:?}");
    drop(first);
    folder.open();
}

#[test]
fn a_closed_store_was_closed_in_order() {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.writer();
    drop(store);
    assert!(matches!(writer.flush(), Err(Error::Closed)));
    let store = folder.open();
    assert_eq!(store.opened(), &narrows_store::Opened::default());
    assert_eq!(MONDAY % DAY, 0);
}
