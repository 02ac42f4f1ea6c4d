//! What goes in comes out.

use narrows_store::records::{AlertState, Basis, Figure, Incident, PathSeen, RunOutcome, Sample};
use narrows_store::{Error, Import, import, sqlite_version};
use narrows_watch::alert::Silence;
use narrows_watch::schedule::TargetId;
use narrows_watch::{Claim, Signal};
use uuid::Uuid;

use crate::common::{DAY, Folder, HOUR, MINUTE, at, event, pulses, run, sample, span};

/// Before 3.51.3 two connections can damage a file in WAL mode (sqlite.org/wal.html#walresetbug).
#[test]
fn the_sqlite_that_is_built_in_does_not_damage_files() {
    let version: Vec<u32> = sqlite_version().split('.').map(|part| part.parse().unwrap()).collect();
    assert!(version >= vec![3, 51, 3], "{version:?}");
}

#[test]
fn targets_are_known_by_their_names() {
    let folder = Folder::new();
    let store = folder.open();
    let (writer, reader) = (store.writer(), store.reader());
    let office = writer.target("office", "far.example", None, at(0)).unwrap();
    let lab = writer.target("lab", "lab.example", Some(9000), at(1)).unwrap();
    assert_eq!(writer.target("office", "new.example", Some(1), at(2)).unwrap(), office);
    writer.retire(lab, at(3));
    writer.flush().unwrap();
    let [one] = &reader.targets().unwrap()[..] else { panic!("one is followed") };
    assert_eq!((&*one.host, one.port, one.added), ("new.example", Some(1), at(0)));
    assert_eq!(reader.all_targets().unwrap().len(), 2);
    assert_eq!(writer.target("lab", "lab.example", Some(9000), at(4)).unwrap(), lab);
    assert_eq!(reader.targets().unwrap().len(), 2);
}

#[test]
fn a_run_is_kept_from_its_beginning_on() {
    let folder = Folder::new();
    let store = folder.open();
    let (writer, reader) = (store.writer(), store.reader());
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    let mut one = run(7, target, 10);
    writer.run_began(&one).unwrap();
    assert_eq!(reader.run(one.id).unwrap(), one);
    one.ended = Some(at(20));
    one.outcome = RunOutcome::ServerBusy;
    one.reason = Some("no slot within 5 s".to_owned());
    writer.run_ended(&one).unwrap();
    assert_eq!(reader.run(one.id).unwrap(), one);
    (one.outcome, one.reason) = (RunOutcome::Done, None);
    one.octets = Some(250_000);
    one.document = Some(serde_json::json!({"schema": "narrows.report/1", "metrics": []}));
    writer.run_ended(&one).unwrap();
    assert_eq!(reader.run(one.id).unwrap(), one);
    one.document = None;
    assert_eq!(reader.runs(Some(target), span(0, 100), 9).unwrap(), [one]);
    assert_eq!(reader.runs(Some(TargetId::new(99)), span(0, 100), 9).unwrap(), []);
    assert!(matches!(reader.run(Uuid::from_u128(8)), Err(Error::NotFound)));
}

#[test]
fn events_are_numbered_and_come_newest_first() {
    let folder = Folder::new();
    let store = folder.open();
    let (writer, reader) = (store.writer(), store.reader());
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    let mut all = [event(Some(target), 100, "one"), event(None, 200, "two"), event(Some(target), 300, "three")];
    for (number, one) in (1..).zip(&mut all) {
        writer.event(one).unwrap();
        assert_eq!(one.id, number);
    }
    let [one, two, three] = all;
    assert_eq!(reader.events(None, span(0, 300), 9).unwrap(), [two, one.clone()]);
    assert_eq!(reader.events(Some(target), span(0, 301), 9).unwrap(), [three.clone(), one]);
    assert_eq!(reader.events(None, span(0, 301), 1).unwrap(), std::slice::from_ref(&three));
    drop(store);
    let mut four = event(None, 400, "four");
    folder.open().writer().event(&mut four).unwrap();
    assert_eq!(four.id, three.id + 1);
}

#[test]
fn incidents_alerts_and_silences_are_as_they_were_last() {
    let folder = Folder::new();
    let store = folder.open();
    let (writer, reader) = (store.writer(), store.reader());
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    let text = "slow".to_owned();
    let mut incident =
        Incident { id: Uuid::from_u128(1), target, began: at(5), ended: None, cause: None, hops: None, text };
    writer.incident(&incident).unwrap();
    incident.ended = Some(at(9));
    incident.cause = Some("queue at one of hops 4 to 5".to_owned());
    incident.hops = Some((4, 5));
    writer.incident(&incident).unwrap();
    assert_eq!(reader.incidents(None, span(0, 10), 9).unwrap(), [incident]);
    let alert = |state: &str| AlertState {
        rule: "low".to_owned(),
        target,
        state: state.to_owned(),
        since: at(6),
        detail: None,
    };
    writer.alert(&alert("pending")).unwrap();
    writer.alert(&alert("firing")).unwrap();
    assert_eq!(reader.alerts().unwrap(), [alert("firing")]);
    let silence = Silence { rule: None, target: Some(target), begins: at(0), ends: at(HOUR) };
    let id = writer.silence(&silence, Some("maintenance")).unwrap();
    assert_eq!(reader.silences(at(HOUR - 1)).unwrap()[0].silence, silence);
    writer.end_silence(id, at(MINUTE)).unwrap();
    assert_eq!(writer.silences(at(MINUTE)).unwrap(), []);
}

#[test]
fn a_path_is_stored_when_it_changes() {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.writer();
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    let seen = |millis, hop: &str| PathSeen {
        at: at(millis),
        address: Some("192.0.2.7".to_owned()),
        source: None,
        interface: Some("eth0".to_owned()),
        next_hop: None,
        mtu: Some(1500),
        hops: vec![vec![hop.to_owned()], vec![]],
        hop_round_trips_ns: vec![Some(1_000_000), None],
    };
    for (millis, hop) in [(0, "10.0.0.1"), (10, "10.0.0.1"), (20, "10.0.0.2"), (30, "10.0.0.1")] {
        writer.path(target, seen(millis, hop));
    }
    writer.flush().unwrap();
    let paths = |since, until| store.reader().paths(target, span(since, until)).unwrap();
    let all = [seen(30, "10.0.0.1"), seen(20, "10.0.0.2"), seen(0, "10.0.0.1")];
    assert_eq!(paths(0, 100), all);
    assert_eq!(paths(25, 26), all[1..2], "what was so before");
    assert_eq!(paths(-10, 0), []);
}

#[test]
fn spending_states_and_notices_outlive_the_program() {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.writer();
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    writer.spent(target, 20_780, "slice", 300_000);
    writer.spent(target, 20_780, "slice", 250_000);
    writer.spent(target, 20_781, "night", 7);
    writer.set_state("detect.office", vec![1, 2, 3]);
    let first = writer.push("ops", "{}", at(0)).unwrap();
    let second = writer.push("ops", "{\"n\":2}", at(1)).unwrap();
    writer.retry(first, at(MINUTE)).unwrap();
    drop((store, writer));
    let store = folder.open();
    let writer = store.writer();
    let [spent] = &writer.spent_on(20_780).unwrap()[..] else { panic!("one kind") };
    assert_eq!((spent.target, &*spent.kind, spent.octets), (target, "slice", 250_000));
    assert_eq!(writer.state("detect.office").unwrap(), Some(vec![1, 2, 3]));
    assert_eq!(writer.state("detect.lab").unwrap(), None);
    let due = |millis| writer.due(at(millis)).unwrap().iter().map(|one| (one.id, one.tries)).collect::<Vec<_>>();
    assert_eq!(due(10), [(second, 0)]);
    assert_eq!(due(MINUTE), [(second, 0), (first, 1)]);
    assert_eq!(due(MINUTE - 3_600_000), [(second, 0), (first, 1)], "the clock was set back");
    writer.done(second, at(MINUTE)).unwrap();
    assert_eq!(due(DAY), [(first, 1)]);
    assert_eq!(writer.waiting(at(1)).unwrap().len(), 1);
    writer.give_up(first, at(DAY)).unwrap();
    assert_eq!((due(DAY), writer.waiting(at(1)).unwrap()), (Vec::new(), Vec::new()));
    let marks = "select group_concat(id || ':' || undelivered, ' ') from outbox where done is not null order by id";
    let rows: String = folder.sql().query_row(marks, [], |row| row.get(0)).unwrap();
    assert_eq!(rows, format!("{first}:1 {second}:0"), "what was delivered looks otherwise");
    assert_eq!(writer.push("ops", "{}", at(2)).unwrap(), second + 1);
}

#[test]
fn values_come_back_as_points() {
    let folder = Folder::new();
    let store = folder.open();
    let (writer, reader) = (store.writer(), store.reader());
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    let signal = Signal::AvailableForward;
    for minute in 0..10 {
        writer.sample(target, signal, Basis::Server, sample(minute * MINUTE, 1e6 * minute as f64));
    }
    let void = Sample { value: None, claim: Claim::Inconclusive, ..sample(10 * MINUTE, 0.0) };
    writer.sample(target, signal, Basis::Single, void);
    // The clock was set back: both rows are kept.
    writer.sample(target, signal, Basis::Server, sample(9 * MINUTE, 5e6));
    writer.flush().unwrap();
    let all = reader.series(target, signal, span(0, HOUR), 100).unwrap();
    assert_eq!(all.len(), 12);
    assert_eq!((all[10].at, all[10].value, all[10].low), (at(9 * MINUTE + 1), Some(5e6), Some(4.5e6)));
    assert_eq!((all[11].value, all[11].count, all[11].claim), (None, 0, Claim::Inconclusive));
    let few = reader.series(target, signal, span(0, 10 * MINUTE), 2).unwrap();
    assert_eq!(few.iter().map(|point| (point.at, point.count)).collect::<Vec<_>>(), [(at(0), 5), (at(5 * MINUTE), 6)]);
    assert_eq!((few[0].value, few[0].min, few[0].max), (Some(2e6), Some(0.0), Some(4e6)));
    let newest = reader.newest(target).unwrap();
    assert_eq!(
        newest.into_iter().map(|(signal, point)| (signal, point.value)).collect::<Vec<_>>(),
        [(signal, Some(5e6))]
    );
}

/// While the server is away its capacity is measured from this end alone.
#[test]
fn a_point_says_from_where_it_was_measured() {
    let folder = Folder::new();
    let store = folder.open();
    let (writer, reader) = (store.writer(), store.reader());
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    for minute in 0..6 {
        let basis = if (2..4).contains(&minute) { Basis::Single } else { Basis::Server };
        writer.sample(target, Signal::Capacity, basis, sample(minute * MINUTE, 1e8));
    }
    writer.pulses(target, pulses(0, 0));
    writer.flush().unwrap();
    let of = |signal, points| {
        let found = reader.series(target, signal, span(0, 6 * MINUTE), points).unwrap();
        found.into_iter().map(|point| point.basis).collect::<Vec<_>>()
    };
    let (server, single) = (Some(Basis::Server), Some(Basis::Single));
    assert_eq!(of(Signal::Capacity, 100), [server, server, single, single, server, server]);
    assert_eq!(of(Signal::Capacity, 3), [server, single, server]);
    assert_eq!(of(Signal::Capacity, 2), [None, None], "means of either kind");
    assert_eq!(of(Signal::LeastRoundTrip, 100), [single]);
    assert_eq!(reader.newest(target).unwrap()[&Signal::Capacity].basis, server);
    let then = reader.at(target, Signal::Capacity, at(3 * MINUTE)).unwrap();
    assert_eq!(then.and_then(|point| point.basis), single);
    // Hours say it as well.
    writer.maintain(at(2 * HOUR)).recv().unwrap();
    let hours = reader.series_every(target, Signal::Capacity, span(0, HOUR), std::time::Duration::from_secs(3600));
    assert_eq!(hours.unwrap().iter().map(|point| point.basis).collect::<Vec<_>>(), [None]);
}

/// A fault of the clock cannot make a question return more than it asked for.
#[test]
fn a_series_never_has_more_points_than_asked_for() {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.writer();
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    for number in 0..1_000 {
        writer.sample(target, Signal::Capacity, Basis::Server, sample(number * 7_919, 1e8));
        writer.sample(target, Signal::Capacity, Basis::Single, sample(number * 7_919 + 3, 1e8));
    }
    writer.flush().unwrap();
    for (until, most) in [(1, 1), (7_919_000, 1), (7_919_000, 7), (7_919_001, 999), (10 * DAY, 13), (7_919_000, 2_000)]
    {
        let points = store.reader().series(target, Signal::Capacity, span(0, until), most).unwrap();
        assert!(!points.is_empty() && points.len() <= most, "{} of {most}", points.len());
    }
}

#[test]
fn pulses_give_round_trips_loss_and_a_heat_map() {
    let folder = Folder::new();
    let store = folder.open();
    let (writer, reader) = (store.writer(), store.reader());
    let target = writer.target("office", "far.example", None, at(0)).unwrap();
    for minute in 0..4 {
        writer.pulses(target, pulses(minute * MINUTE, if minute == 3 { 60 } else { 0 }));
    }
    writer.flush().unwrap();
    assert_eq!(reader.pulses(target, span(MINUTE, 2 * MINUTE)).unwrap(), [pulses(MINUTE, 0)]);
    let series = |signal| reader.series(target, signal, span(0, 4 * MINUTE), 100).unwrap();
    let values = |signal| series(signal).iter().map(|point| point.value).collect::<Vec<_>>();
    assert_eq!(values(Signal::LeastRoundTrip), [Some(2e7), Some(2e7), Some(2e7), None]);
    // The 57th of sixty: 5.6 ms above the least.
    assert_eq!(values(Signal::Queueing), [Some(5.6e6), Some(5.6e6), Some(5.6e6), None]);
    assert_eq!(values(Signal::Loss), [Some(0.0), Some(0.0), Some(0.0), Some(1e6)]);
    let map = reader.heatmap(target, span(0, 4 * MINUTE), 2).unwrap();
    assert_eq!((map.times, map.lost), (vec![at(0), at(2 * MINUTE)], vec![0.0, 0.5]));
    assert_eq!(map.counts.iter().map(|column| column.iter().sum::<u32>()).collect::<Vec<_>>(), [120, 60]);
    // Columns lie where the minutes were, whenever somebody looks.
    let map = reader.heatmap(target, span(MINUTE + 35_000, 4 * MINUTE - 20_000), 100).unwrap();
    assert_eq!(map.times, [at(MINUTE), at(2 * MINUTE), at(3 * MINUTE)]);
    assert_eq!(reader.heatmap(target, span(MINUTE - 1, 3 * MINUTE + 1), 3).unwrap().times, [at(0), at(2 * MINUTE)]);
    assert!(map.upper_ns[0] > 20_000_000 && *map.upper_ns.last().unwrap() > 25_900_000, "{:?}", map.upper_ns);
    assert_eq!(reader.newest(target).unwrap()[&Signal::LeastRoundTrip].at, at(2 * MINUTE));
}

#[test]
fn a_document_that_is_imported_twice_is_there_once() {
    let folder = Folder::new();
    let store = folder.open();
    let figure = Figure {
        metric: "tcp".to_owned(),
        direction: "forward".to_owned(),
        unit: "bit/s".to_owned(),
        value: Some(9e7),
        low: None,
        high: None,
        claim: Claim::Estimate,
    };
    let one = Import {
        text: "{\"a\":1}".to_owned(),
        document: serde_json::json!({"a": 1}),
        target: "far.example".to_owned(),
        began: at(-1_000 * DAY),
        octets: Some(5),
        figures: vec![figure.clone()],
        samples: vec![(Signal::Capacity, sample(-1_000 * DAY, 1e8))],
    };
    let other = Import { text: "{\"a\":2}".to_owned(), began: at(0), ..one.clone() };
    assert_eq!(import(&folder.path(), std::slice::from_ref(&one)).unwrap(), 1);
    assert_eq!(import(&folder.path(), &[one.clone(), other]).unwrap(), 1);
    let reader = store.reader();
    let [target] = &reader.all_targets().unwrap()[..] else { panic!("one target") };
    assert_eq!(reader.targets().unwrap(), [], "nobody follows it");
    let found = reader.runs(None, span(-2_000 * DAY, DAY), 9).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(reader.run(found[1].id).unwrap().document, Some(one.document));
    let figures = reader.figures(target.id, "tcp", span(-2_000 * DAY, 0)).unwrap();
    assert_eq!(figures, [(at(-1_000 * DAY), figure)]);
}

#[test]
fn a_backup_is_a_store() {
    let folder = Folder::new();
    let store = folder.open();
    let writer = store.writer();
    writer.target("office", "far.example", None, at(0)).unwrap();
    let to = folder.0.path().join("copy.db");
    store.reader().backup(&to).unwrap();
    store.reader().check().unwrap();
    writer.target("lab", "lab.example", None, at(0)).unwrap();
    let names = |reader: &narrows_store::Reader| reader.targets().unwrap().len();
    assert_eq!((names(&store.reader()), names(&narrows_store::Reader::open(&to).unwrap())), (2, 1));
}
