use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A row of a report.
fn row(metric: &str, (low, value, high): (u64, u64, u64)) -> Value {
    json!({"metric": metric, "direction": "forward", "layer": "ip", "verdict": "estimated",
           "low": low, "value": value, "high": high})
}

fn with(mut row: Value, key: &str, value: &str) -> Value {
    row[key] = value.into();
    row
}

fn diff(before: Vec<Value>, after: Vec<Value>) -> DiffDocument {
    let (before, after) = (json!({"metrics": Value::Array(before)}), json!({"metrics": Value::Array(after)}));
    DiffDocument::new("1".to_owned(), ("a.json", &before), ("b.json", &after), 0.05)
}

const AVAILABLE: &str = "available_ip_capacity";

#[test]
fn changes_beyond_doubt_and_threshold_count() {
    let before = || vec![row(AVAILABLE, (55_000_000, 68_300_000, 80_000_000))];
    for (after, change, text) in [
        ((38, 41, 44), Change::Worse, "available  68.3 -> 41.0 Mbit/s  -40 %  worse\n"),
        ((90, 95, 99), Change::Better, "available  68.3 -> 95.0 Mbit/s  +39 %  better\n"),
        // The intervals meet.
        ((40, 50, 55), Change::Unchanged, "unchanged: available\n"),
    ] {
        let (low, value, high) = after;
        let diff = diff(before(), vec![row(AVAILABLE, (low * 1_000_000, value * 1_000_000, high * 1_000_000))]);
        assert_eq!((diff.verdict, diff.text().as_str()), (change, text));
    }
    // Disjoint, but four percent.
    let small = diff(vec![row(AVAILABLE, (100, 100, 100))], vec![row(AVAILABLE, (96, 96, 96))]);
    assert_eq!(small.verdict, Change::Unchanged);
    // Less of it is better.
    let slower = diff(vec![row("round_trip_time", (10, 10, 10))], vec![row("round_trip_time", (20, 20, 20))]);
    assert_eq!(slower.verdict, Change::Worse);
    // Neither.
    let window = diff(vec![row("tcp_window_octets", (1, 1, 1))], vec![row("tcp_window_octets", (2, 2, 2))]);
    assert_eq!(window.verdict, Change::Changed);
}

#[test]
fn bounds_are_open_on_one_side() {
    let bound = |value| with(row(AVAILABLE, (value, value, value)), "verdict", "lower_bound");
    let estimate = || row(AVAILABLE, (38, 41, 44));
    assert_eq!(diff(vec![bound(60)], vec![estimate()]).verdict, Change::Worse);
    assert_eq!(diff(vec![bound(30)], vec![estimate()]).verdict, Change::Unchanged);
    assert_eq!(diff(vec![estimate()], vec![bound(60)]).verdict, Change::Better);
}

#[test]
fn layers_and_directions_are_not_mixed() {
    let before = || vec![row(AVAILABLE, (38, 41, 44))];
    let udp = diff(before(), vec![with(row(AVAILABLE, (90, 95, 99)), "layer", "udp_payload")]);
    assert_eq!(udp.verdict, Change::NotComparable);
    assert!(udp.text().ends_with("not comparable: of two layers\n"), "{}", udp.text());
    let back = diff(before(), vec![with(row(AVAILABLE, (90, 95, 99)), "direction", "reverse")]);
    assert_eq!(back.verdict, Change::NotComparable);
    assert!(back.text().contains("available (reverse)  not comparable: of two directions"), "{}", back.text());
    // Even where something else grew worse: the runs were not the same.
    let both = diff(
        [before(), vec![row("round_trip_time", (10, 10, 10))]].concat(),
        vec![with(row(AVAILABLE, (38, 41, 44)), "direction", "reverse"), row("round_trip_time", (20, 20, 20))],
    );
    assert_eq!(both.verdict, Change::NotComparable);
}

#[test]
fn what_one_document_lacks_is_unknown() {
    let some = diff(
        vec![row("ip_capacity", (97, 97, 97)), row(AVAILABLE, (38, 41, 44))],
        vec![row("ip_capacity", (97, 97, 97))],
    );
    assert_eq!(some.text(), "unchanged: capacity\nunknown: available\n");
    assert_eq!(some.verdict, Change::Unknown);
    let mut nothing = row(AVAILABLE, (0, 0, 0));
    for key in ["value", "low", "high"] {
        nothing[key] = Value::Null;
    }
    let inconclusive = with(nothing, "verdict", "inconclusive");
    assert_eq!(diff(vec![row(AVAILABLE, (38, 41, 44))], vec![inconclusive]).verdict, Change::Unknown);
    let none = diff(vec![row("ip_capacity", (97, 97, 97))], vec![row("path_mtu", (1500, 1500, 1500))]);
    assert_eq!(none.verdict, Change::NotComparable);
    assert!(none.text().contains("no metric in common"), "{}", none.text());
}

proptest! {
    /// Compared the other way round, worse is better; the same document never differs from itself.
    #[test]
    fn worse_one_way_is_better_the_other(
        a in 1_000u64..1_000_000, b in 1_000u64..1_000_000, spread in 0u64..1_000,
        metric in prop::sample::select(vec![AVAILABLE, "round_trip_time", "path_mtu"]),
    ) {
        let result = |value: u64| vec![row(metric, (value - spread, value, value + spread))];
        let there = diff(result(a), result(b)).verdict;
        let back = diff(result(b), result(a)).verdict;
        match there {
            Change::Worse => prop_assert!(matches!(back, Change::Better | Change::Unchanged)),
            Change::Better => prop_assert!(matches!(back, Change::Worse | Change::Unchanged)),
            _ => prop_assert!(back != Change::NotComparable),
        }
        prop_assert_eq!(diff(result(a), result(a)).verdict, Change::Unchanged);
    }
}
