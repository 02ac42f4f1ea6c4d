//! Roll-ups: what they hold, that they repeat, and that pages see no seam.

use narrows_store::records::{Basis, Point};
use narrows_store::{Options, Store};
use narrows_watch::Signal;
use narrows_watch::schedule::TargetId;

use crate::common::{DAY, Folder, HOUR, MINUTE, at, pulses, sample, span};

/// Two hours of pulses and samples.
fn filled(store: &Store) -> TargetId {
    let writer = store.writer();
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    for minute in 0..120 {
        writer.pulses(target, pulses(minute * MINUTE, u32::from(minute % 10 == 0) * 6));
        let value = 1e6 * minute as f64;
        writer.sample(target, Signal::AvailableForward, Basis::Server, sample(minute * MINUTE + 1_234, value));
    }
    writer.flush().unwrap();
    target
}

fn maintain(store: &Store, millis: i64) {
    store.writer().maintain(at(millis)).recv().unwrap();
}

fn rows(folder: &Folder) -> Vec<(i64, i64, i64, i64, f64)> {
    let connection = folder.sql();
    let mut read =
        connection.prepare("select series, tier, at, n + lost, mean from rollup order by series, tier, at").unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
    read.query_map([], row).unwrap().map(Result::unwrap).collect()
}

#[test]
fn minutes_and_hours_hold_all_that_went_in_and_repeat() {
    let folder = Folder::new();
    let store = folder.open();
    filled(&store);
    maintain(&store, 2 * HOUR + MINUTE);
    let first = rows(&folder);
    let count = |tier| first.iter().filter(|row| row.1 == tier).count();
    assert_eq!((count(60), count(3_600)), (120, 4));
    let hours: Vec<_> = first.iter().filter(|row| row.1 == 3_600).map(|row| row.3).collect();
    assert!(hours.iter().all(|&values| values == 60 || values == 3_600), "{hours:?}");
    let mean = first.iter().find(|row| row.1 == 3_600 && row.3 == 60).unwrap().4;
    assert!((mean - 29.5e6).abs() < 1.0, "{mean}");
    // Again, as after a crash between a roll-up and its watermark.
    folder.sql().execute("delete from state where key like 'rolled%'", []).unwrap();
    maintain(&store, 2 * HOUR + 2 * MINUTE);
    assert!(rows(&folder) == first);
}

#[test]
fn a_late_row_is_rolled_up_as_well_and_deleted_rows_stay_rolled_up() {
    let folder = Folder::new();
    let store = folder.open();
    let target = filled(&store);
    maintain(&store, 3 * HOUR);
    let values = |folder: &Folder| rows(folder).iter().filter(|row| row.1 == 3_600).map(|row| row.3).sum::<i64>();
    let before = values(&folder);
    store.writer().sample(target, Signal::AvailableForward, Basis::Server, sample(HOUR / 2, 1e6));
    maintain(&store, 3 * HOUR + MINUTE);
    assert_eq!(values(&folder), before + 1);
    // What retention deletes is no reason to forget what was rolled up.
    folder.sql().execute("delete from sample where at % 2 = 0", []).unwrap();
    folder.sql().execute("delete from state where key like 'rolled%'", []).unwrap();
    maintain(&store, 3 * HOUR + 2 * MINUTE);
    assert_eq!(values(&folder), before + 1);
}

/// Each question is answered alike whether roll-ups are there or not.
#[test]
fn points_do_not_depend_on_roll_ups() {
    let folder = Folder::new();
    let store = folder.open();
    let target = filled(&store);
    let reader = store.reader();
    let series = |signal, since, until, points| -> Vec<Point> {
        reader.series(target, signal, span(since, until), points).unwrap()
    };
    let ask = || {
        let mut all = Vec::new();
        for signal in [Signal::AvailableForward, Signal::LeastRoundTrip, Signal::Queueing, Signal::Loss] {
            all.push(series(signal, 0, 2 * HOUR, 1_000));
            all.push(series(signal, 30 * MINUTE, 2 * HOUR, 1_000));
            all.push(series(signal, 0, 2 * HOUR, 24));
            all.push(series(signal, 0, 2 * HOUR, 2));
        }
        all
    };
    let heat = || reader.heatmap(target, span(0, 2 * HOUR), 2).unwrap();
    let (before, map) = (ask(), heat());
    maintain(&store, 90 * MINUTE);
    let close = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs().max(1.0),
        (one, other) => one == other,
    };
    for (then, now) in before.iter().zip(&ask()) {
        assert_eq!(then.len(), now.len());
        for (then, now) in then.iter().zip(now) {
            assert_eq!((then.at, then.count, then.claim), (now.at, now.count, now.claim));
            assert!(close(then.value, now.value) && close(then.low, now.low), "{then:?} {now:?}");
            assert!(close(then.min, now.min) && close(then.max, now.max), "{then:?} {now:?}");
        }
    }
    assert_eq!(heat(), map);
    assert_eq!(map.counts.iter().flatten().sum::<u32>(), 120 * 60 - 12 * 6);
}

/// Hours stand for what is no longer kept by the minute.
#[test]
fn old_hours_and_new_minutes_make_one_line() {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.writer();
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    for hour in 0..100 * 24 {
        writer.sample(target, Signal::Capacity, Basis::Server, sample(hour * HOUR + 60_000, 1e8));
    }
    maintain(&store, 100 * DAY);
    maintain(&store, 100 * DAY);
    let kept: i64 = folder.sql().query_row("select count(*) from sample", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 90 * 24);
    let points = store.reader().series(target, Signal::Capacity, span(0, 100 * DAY), 10_000).unwrap();
    assert_eq!(points.len(), 2_400);
    assert!(points.windows(2).all(|two| two[0].at < two[1].at));
    assert_eq!((points[0].at, points[240].at), (at(0), at(240 * HOUR + 60_000)));
    let days = store.reader().series(target, Signal::Capacity, span(0, 100 * DAY), 100).unwrap();
    assert!(days.len() == 100 && days.iter().all(|day| day.count == 24 && day.value == Some(1e8)), "{days:?}");
    drop(store);
    Store::open(&folder.path(), Options::new(at(0))).unwrap();
}
