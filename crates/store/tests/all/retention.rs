//! What is deleted by age, and what when space is short.

use narrows_store::records::RunOutcome;
use narrows_store::{Options, Retention, Store};

use crate::common::{DAY, Folder, HOUR, MINUTE, at, event, pulses, run};

fn counts(folder: &Folder) -> [i64; 5] {
    let connection = folder.sql();
    ["pulse", "rollup where tier = 60", "rollup where tier = 3600", "document", "event"]
        .map(|of| connection.query_row(&format!("select count(*) from {of}"), [], |row| row.get(0)).unwrap())
}

/// Pulses once an hour, a document and an event a day.
fn filled(store: &Store, days: i64) {
    let writer = store.writer();
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    for hour in 0..24 * days {
        writer.pulses(target, pulses(hour * HOUR, 0));
    }
    for day in 0..days {
        let mut one = run(u128::try_from(day).unwrap() + 1, target, day * DAY);
        one.outcome = RunOutcome::Done;
        one.document = Some(serde_json::json!({"schema": "narrows.report/1", "text": "x".repeat(1_000)}));
        writer.run_ended(&one).unwrap();
        writer.event(&mut event(Some(target), day * DAY, "one a day")).unwrap();
    }
}

fn maintain(store: &Store, millis: i64) {
    store.writer().maintain(at(millis)).recv().unwrap();
}

#[test]
fn rows_go_at_their_age_and_not_before_they_are_rolled_up() {
    let folder = Folder::new();
    let options = Options {
        retention: Retention { pulse_days: 2, minute_days: 4, document_days: 6, hour_days: 8, max_size: None },
        ..Options::new(at(0))
    };
    let store = Store::open(&folder.path(), options).unwrap();
    filled(&store, 10);
    maintain(&store, 10 * DAY);
    assert_eq!(counts(&folder), [2 * 24, 4 * 24, 8 * 24, 6, 10]);
    maintain(&store, 10 * DAY + MINUTE);
    assert_eq!(counts(&folder), [2 * 24, 4 * 24, 8 * 24, 6, 10]);
}

#[test]
fn a_store_that_is_too_large_gives_up_pulses_then_minutes_then_documents() {
    let sizes = [8_000_u64, 1];
    let left = sizes.map(|less| {
        let folder = Folder::new();
        let store = folder.open();
        filled(&store, 6);
        maintain(&store, 6 * DAY);
        let most = store.reader().size().unwrap().saturating_sub(less);
        drop(store);
        let most = if less == 1 { 1 } else { most };
        let retention = Retention { max_size: Some(most), ..Retention::default() };
        let store = Store::open(&folder.path(), Options { retention, ..Options::new(at(0)) }).unwrap();
        maintain(&store, 6 * DAY);
        counts(&folder)
    });
    let [some, most] = left;
    assert!(some[0] < 6 * 24 && some[1..] == [6 * 24, 6 * 24, 6, 6], "{some:?}");
    assert_eq!(most, [0, 0, 6 * 24, 0, 6], "hours and events stay whatever happens");
}

#[test]
fn a_disk_that_is_nearly_full_gets_room_and_a_large_one_is_not_nearly_full() {
    for (free, total, is_short) in [(1_000, 1_000_000, true), (255_000_000, 2_000_000_000, false)] {
        let folder = Folder::new();
        let (near, far): (narrows_store::FreeSpace, narrows_store::FreeSpace) =
            (|_| Some((1_000, 1_000_000)), |_| Some((255_000_000, 2_000_000_000)));
        let answers = [near, far];
        let free_space = answers[usize::from(!is_short)];
        assert_eq!(free_space(&folder.path()), Some((free, total)));
        let store = Store::open(&folder.path(), Options { free_space, ..Options::new(at(0)) }).unwrap();
        filled(&store, 2);
        maintain(&store, 2 * DAY);
        assert_eq!(counts(&folder)[0] == 0, is_short);
    }
}

/// Deleting gives the space back, without VACUUM.
#[test]
fn the_file_shrinks() {
    let folder = Folder::new();
    let store = folder.open();
    filled(&store, 20);
    maintain(&store, 20 * DAY);
    let pages = || folder.sql().query_row("pragma page_count", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = pages();
    folder.sql().execute_batch("delete from pulse; delete from document").unwrap();
    maintain(&store, 20 * DAY);
    assert!(pages() < before, "{} of {before}", pages());
}
