//! One record into another: whatever is asked, both give the same answers.

use std::collections::BTreeMap;
use std::path::Path;

use narrows_fleet::alert::Silence;
use narrows_fleet::message::{Direction, Exit, Run};
use narrows_record::{
    AgentState, ArrivalFilter, Error, KeptGrouping, KeptProof, NewNotice, OrderState, Record, RunFilter, backup,
    broken_at, move_to, open,
};
use narrows_units::Metric;

use crate::common::{DAY, EVER, HOUR, NOON, agents, available, given, hops, name, reservation, token, value};

/// A record that has something of everything.
pub(crate) async fn fill(record: &dyn Record) {
    agents(record, &["a", "b", "c"]).await;
    record.set_state(&name("c"), AgentState::Left).await.unwrap();
    record.add_token(&token(1, 3)).await.unwrap();
    let one = |seq: u64| {
        let (agent, target) = if seq.is_multiple_of(3) { ("a", "b") } else { ("b", "a") };
        let at = NOON - 3 * DAY + i64::try_from(seq).unwrap() * HOUR / 7;
        let mut run = available(agent, seq, target, at, 0.1 + f64::from(u32::try_from(seq).unwrap()));
        run.values.push(value(Metric::RoundTripTime, Direction::Reverse, 1e7));
        run.route_before = hops(&[u8::from(seq > 300), 0, 7]);
        run.evidence = seq.is_multiple_of(2).then(|| serde_json::json!({"seq": seq, "zero": "\0"}));
        if seq.is_multiple_of(11) {
            run.exit = Exit::Void;
            run.reason = Some("the route \u{1f6a7} changed".to_owned());
        }
        run
    };
    // More than two pages of runs, some hours that are not summed up, and one impossible time.
    let runs: Vec<Run> = (1..=1_200).map(one).collect();
    record.ingest(&runs[..1_100], NOON).await.unwrap();
    record.roll_up().await.unwrap();
    record.ingest(&runs[1_100..], NOON).await.unwrap();
    record.ingest(&[available("c", 1, "a", NOON + 5 * DAY, 1e6)], NOON).await.unwrap();
    record.reserve(&[reservation("host.a", 0, 10, 1), reservation("link.7.0", 5, 10, 1)]).await.unwrap();
    record.set_setting("fleet.toml", "[sites.ams]\nhosts = [\"ä-*\"]\n").await.unwrap();
    record.refuse("result.a.rtt", &[0, 255, 7], "no JSON", NOON).await.unwrap();
    let notice = NewNotice { channel: "chat".to_owned(), body: "{}".to_owned(), made_ms: NOON };
    record.keep_alerts(&[("low a b".to_owned(), Some("{}".to_owned()))], &[notice]).await.unwrap();
    record.add_silence(&silence()).await.unwrap();
    // Numbers of two digits, too: as text they come before those of one.
    for serial in 1..=12 {
        assert_eq!(record.next_serial().await, Ok(serial));
        record.audit("hub", "plan.applied", &format!("plan {serial}"), NOON).await.unwrap();
    }
    for number in [2, 3] {
        record.give(&given(number), &[], ("web", "a to b: rtt"), NOON).await.unwrap();
    }
    let proof = KeptProof {
        bottleneck: "0a".to_owned(),
        running: true,
        keys: vec!["host.a".parse().unwrap()],
        at_ms: NOON,
        doc: "{}".to_owned(),
    };
    record.begin_proof(&proof).await.unwrap();
    let grouping = KeptGrouping { paths: "0b".to_owned(), running: false, at_ms: NOON, doc: "{}".to_owned() };
    record.begin_grouping(&grouping).await.unwrap();
    let done = OrderState { state: "done".to_owned(), run: Some(given(9).id), said: None };
    record.set_order(given(3).id, &name("a"), &done).await.unwrap();
}

fn silence() -> Silence {
    Silence {
        id: 1,
        rule: None,
        source: Some(name("a")),
        target: None,
        link: None,
        begins_ms: NOON,
        ends_ms: NOON + DAY,
        who: "web".to_owned(),
        reason: String::new(),
    }
}

/// Both give the same answers.
async fn same(a: &dyn Record, b: &dyn Record) {
    assert_eq!(a.agents().await, b.agents().await);
    let filter = RunFilter { agent: None, target: None, kind: None, range: EVER, limit: usize::MAX };
    let runs = a.runs(&filter).await.unwrap();
    assert_eq!((runs.len(), &runs), (1_201, &b.runs(&filter).await.unwrap()));
    for run in runs.iter().step_by(29).chain(&runs[..1]) {
        assert_eq!(a.run(run.id).await, b.run(run.id).await);
    }
    let site_of = BTreeMap::from([(name("a"), name("ams")), (name("b"), name("fra"))]);
    for metric in [Metric::AvailableIpCapacity, Metric::RoundTripTime] {
        let newest = a.latest(metric, 0).await.unwrap();
        assert_eq!((newest.len(), &newest), (2, &b.latest(metric, 0).await.unwrap()));
        assert_eq!(a.sites(&[metric], 0, &site_of).await, b.sites(&[metric], 0, &site_of).await);
        for points in [50, 10_000] {
            let series = a.series(&name("a"), &name("b"), metric, EVER, points).await.unwrap();
            assert!(!series.is_empty());
            assert_eq!(series, b.series(&name("a"), &name("b"), metric, EVER, points).await.unwrap());
        }
    }
    let arrived = ArrivalFilter { agent: None, target: None, kind: None, after: 0, limit: usize::MAX };
    let arrived = (a.runs_after(&arrived).await.unwrap(), b.runs_after(&arrived).await.unwrap());
    assert_eq!((arrived.0.runs.len(), &arrived.0), (1_201, &arrived.1));
    assert_eq!(a.routes(0).await, b.routes(0).await);
    assert_eq!(a.outcomes("available", 0).await, b.outcomes("available", 0).await);
    assert_eq!(b.outcomes("available", 0).await.map(|all| all.len()), Ok(2));
    assert_eq!(a.succeeded("available").await, b.succeeded("available").await);
    assert_eq!(a.reservations(0).await, b.reservations(0).await);
    assert_eq!(a.orders(9).await, b.orders(9).await);
    assert_eq!(b.orders(9).await.map(|all| all.len()), Ok(2));
    assert_eq!(a.proofs().await, b.proofs().await);
    assert_eq!(b.proofs().await.map(|all| all.len()), Ok(1));
    assert_eq!(a.groupings().await, b.groupings().await);
    assert_eq!(b.groupings().await.map(|all| all.len()), Ok(1));
    assert_eq!(a.setting("fleet.toml").await, b.setting("fleet.toml").await);
    assert_eq!(a.alert_states().await, b.alert_states().await);
    assert_eq!(b.alert_states().await.map(|all| all.len()), Ok(1));
    let waiting = b.notices_due(NOON).await.unwrap();
    assert_eq!((waiting.len(), &waiting), (1, &a.notices_due(NOON).await.unwrap()));
    assert_eq!((a.silences(0).await, b.silences(0).await), (Ok(vec![silence()]), Ok(vec![silence()])));
    let audit = b.audits(None, 99).await.unwrap();
    assert_eq!((a.audits(None, 99).await.unwrap(), broken_at(&audit)), (audit, None));
}

/// The new one goes on where the old one ended.
async fn goes_on(record: &dyn Record) {
    assert_eq!(record.next_serial().await, Ok(13));
    assert_eq!(record.audit("hub", "moved", "", NOON).await.unwrap().number, 15);
    let again = available("c", 1, "a", NOON + 5 * DAY, 1e6);
    let new = Run { route_before: hops(&[9]), ..available("c", 2, "d", NOON, 1e6) };
    let done = record.ingest(&[again, new], NOON).await.unwrap();
    assert_eq!((done.new, done.known, &done.stored[&name("c")].ranges), (1, 1, &vec![(1, 3)]));
    assert!(record.roll_up().await.unwrap() > 0);
    record.refuse("x", &[], "x", NOON).await.unwrap();
    assert_eq!(record.add_silence(&silence()).await, Ok(2));
    assert!(matches!(record.reserve(&[reservation("host.a", 9, 11, 2)]).await, Err(Error::Reserved(_))));
    assert_eq!(record.retain(NOON).await, Ok(0));
}

/// A record into another one and from there into a file, all of which are the same.
pub(crate) async fn there_and_back(folder: &Path, to: &str) {
    let file = |name: &str| format!("sqlite:{}", folder.join(name).display());
    let first = open(&file("first.db")).await.unwrap();
    fill(&*first).await;
    let there = move_to(&file("first.db"), to, NOON).await.unwrap();
    assert_eq!(there.runs, 1_201);
    let second = open(to).await.unwrap();
    same(&*first, &*second).await;
    let back = move_to(to, &file("third.db"), NOON).await.unwrap();
    assert_eq!(back, there);
    let third = open(&file("third.db")).await.unwrap();
    same(&*first, &*third).await;
    println!("{} rows went there and back", there.rows);
    let again = move_to(&file("first.db"), to, NOON).await;
    assert!(matches!(&again, Err(Error::Foreign(why)) if why.contains("not empty")), "{again:?}");
    goes_on(&*second).await;
    goes_on(&*third).await;
}

#[tokio::test]
async fn a_file_into_a_file() {
    let folder = tempfile::tempdir().unwrap();
    there_and_back(folder.path(), &format!("sqlite:{}", folder.path().join("second.db").display())).await;
}

#[tokio::test]
async fn a_move_that_was_not_finished_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    agents(&*open(&file("first.db")).await.unwrap(), &["a"]).await;
    // The source loses a table meanwhile.
    let broken = rusqlite::Connection::open(folder.path().join("first.db")).unwrap();
    broken.execute_batch("drop table refused").unwrap();
    assert!(move_to(&file("first.db"), &file("second.db"), NOON).await.is_err());
    let half = open(&file("second.db")).await.err();
    assert!(matches!(&half, Some(Error::Foreign(why)) if why.contains("not finished")), "{half:?}");
}

/// As beside a hub that runs: what it has kept is in the copy, what it is about to keep is not.
#[tokio::test]
async fn a_file_is_copied_while_somebody_writes_to_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = |name: &str| format!("sqlite:{}", path(name).display());
    let first = open(&file("first.db")).await.unwrap();
    fill(&*first).await;
    let mut writes = rusqlite::Connection::open(path("first.db")).unwrap();
    let half = writes.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    half.execute("insert into setting (name, text) values ('half', 'x')", []).unwrap();
    let copied = backup(&path("first.db"), &path("second.db")).await.unwrap();
    half.commit().unwrap();
    assert_eq!(copied.runs, 1_201);
    let mode = std::fs::metadata(path("second.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = open(&file("second.db")).await.unwrap();
    same(&*first, &*second).await;
    assert_eq!((first.setting("half").await, second.setting("half").await), (Ok("x".to_owned()), Ok(String::new())));
    goes_on(&*second).await;
    // Neither a file that is there nor one that is not is touched.
    assert!(backup(&path("first.db"), &path("second.db")).await.is_err());
    assert!(backup(&path("none.db"), &path("third.db")).await.is_err());
    assert!(!path("none.db").exists() && !path("third.db").exists());
}
