use narrows_fleet::message::{Exit, Origin};
use serde_json::json;
use uuid::Uuid;

use super::*;

fn path(source: &str, target: &str) -> Ordered {
    Ordered { source: source.parse().unwrap(), target: target.parse().unwrap() }
}

fn stream(source: &str, target: &str, from_target: bool) -> Stream<Name> {
    let Ordered { source, target } = path(source, target);
    Stream { source, target, from_target }
}

/// The delays of a queue that is kept long, as an agent sums them up.
fn waits(skewness: f64, variability_ns: f64) -> serde_json::Value {
    json!({"skewness": skewness, "variability_ns": variability_ns, "oscillation": 0.3, "loss": 0.0})
}

fn run(forward: &serde_json::Value, reverse: &serde_json::Value, end_ms: i64) -> Run {
    Run {
        schema: Run::SCHEMA.to_owned(),
        id: Uuid::now_v7(),
        agent: "a".parse().unwrap(),
        seq: 1,
        target: "b".parse().unwrap(),
        kind: "rtt".to_owned(),
        origin: Origin::Order(Uuid::nil()),
        began_ms: end_ms - 20_000,
        length_ms: 20_000,
        exit: Exit::Done,
        reason: None,
        octets: 117_760,
        route_before: Vec::new(),
        route_after: Vec::new(),
        flags: Vec::new(),
        values: Vec::new(),
        evidence: Some(json!({"evidence": {DELAY_SUMMARY: {"forward": forward, "reverse": reverse}}})),
    }
}

#[test]
fn a_set_is_looked_at_while_two_of_its_paths_are_wanted() {
    let sets = [
        vec![path("a", "c"), path("b", "c")],
        vec![path("a", "d"), path("b", "d"), path("e", "d")],
        vec![path("f", "d")],
    ];
    let ends = |streams: &[Stream<Name>]| -> Vec<String> {
        streams.iter().map(|one| format!("{}{}", one.source, one.target)).collect()
    };
    let found = |had: &[Ordered]| -> Vec<Vec<String>> {
        wanted(&sets, |path| !had.contains(path)).iter().map(|streams| ends(streams)).collect()
    };
    assert_eq!(found(&[]), [vec!["ac", "bc"], vec!["ad", "bd", "ed"]]);
    // One path of the first set had its day.
    assert_eq!(found(&[path("b", "c")]), [["ad", "bd", "ed"]]);
    assert_eq!(found(&[path("b", "c"), path("a", "d")]), [["bd", "ed"]]);
    assert_eq!(found(&[path("b", "c"), path("a", "d"), path("e", "d")]), Vec::<Vec<String>>::new());
    let many: Vec<Ordered> = (0..20).map(|at| path(&format!("s{at}"), "t")).collect();
    assert_eq!(wanted(&[many], |_| true)[0].len(), MOST_PATHS);
}

#[test]
fn the_direction_of_the_path_counts_whoever_sends() {
    let (queue, idle) = (waits(-0.3, 4e6), waits(0.6, 20e3));
    let (a, b) = (stream("a", "c", false), stream("b", "c", true));
    let (from_a, from_c) = (run(&queue, &idle, 0), run(&idle, &queue, 0));
    let row = judged([(&a, Some(&from_a)), (&b, Some(&from_c))].into_iter()).unwrap();
    assert_eq!(
        (row.state, row.groups, row.why),
        (GroupingState::Together, vec![vec![path("a", "c"), path("b", "c")]], None)
    );
    let row = judged([(&a, Some(&from_c)), (&stream("b", "c", false), Some(&from_c))].into_iter()).unwrap();
    assert_eq!((row.state, row.no_queue.len()), (GroupingState::NoQueue, 2));
}

#[test]
fn queues_of_their_own_are_apart_and_what_hosts_do_is_no_queue() {
    let streams = [stream("a", "c", false), stream("b", "c", false), stream("e", "c", false)];
    let of = |summaries: [serde_json::Value; 3]| {
        let runs = summaries.map(|one| run(&one, &json!(null), 0));
        judged(streams.iter().zip(runs.iter().map(Some))).unwrap()
    };
    let row = of([waits(-0.3, 4e6), waits(-0.3, 2e6), waits(-0.3, 90e3)]);
    assert_eq!(row.state, GroupingState::Apart);
    assert_eq!(row.groups, [[path("a", "c")], [path("b", "c")]]);
    assert_eq!(row.no_queue, [path("e", "c")]);
    let row = of([waits(-0.3, 4e6), waits(-0.3, 2e6), waits(-0.35, 3.9e6)]);
    assert_eq!((row.state, row.groups.len()), (GroupingState::Together, 2));
}

#[test]
fn streams_of_another_time_or_beside_a_load_are_left_out() {
    let streams = [stream("a", "c", false), stream("b", "c", false), stream("e", "c", false)];
    let queue = || waits(-0.3, 4e6);
    let mut runs = [0, APART_MS, 9_000].map(|end_ms| run(&queue(), &json!(null), end_ms));
    let said = |runs: &[Run; 3]| judged(streams.iter().zip(runs.iter().map(Some)));
    let row = said(&runs).unwrap();
    assert_eq!(row.state, GroupingState::Together);
    assert_eq!(row.why.as_deref(), Some("e to c: it ran at another time"));
    runs[0].flags.push(Flag::OwnLoad);
    let why = said(&runs).unwrap_err();
    assert_eq!(why, "a to c: a load of the fleet crossed it; e to c: it ran at another time");
    runs[2].began_ms -= 8_000;
    assert_eq!(said(&runs).unwrap().groups, [[path("b", "c"), path("e", "c")]]);
    // An older agent, a peer that refused, a run that was lost.
    runs[1].evidence = None;
    runs[1].reason = Some("the peer does not answer".to_owned());
    runs[2].evidence = Some(json!({"evidence": {"median_ns": 5}}));
    let why = judged(streams.iter().zip([None, Some(&runs[1]), Some(&runs[2])])).unwrap_err();
    assert_eq!(why, "a to c: its run was lost; b to c: the peer does not answer; e to c: it has too few delays");
}
