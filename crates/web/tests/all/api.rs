//! What every route answers about a year.

use narrows_watch::detect::Learning;
use serde_json::{Value, json};

use crate::site::Site;
use crate::year::{LAB, NOW_MS};

fn list<'a>(of: &'a Value, key: &str) -> &'a Vec<Value> {
    of[key].as_array().unwrap_or_else(|| panic!("{key}: {of}"))
}

#[test]
fn targets_have_newest_values_with_units_and_what_is_wrong() {
    let site = Site::start();
    let of = site.json("/api/v1/targets");
    assert_eq!(of["schema"], "narrows.targets/1");
    assert_eq!(of["faults"]["start"], "the schedule has not begun");
    let targets = list(&of, "targets");
    let names: Vec<_> = targets.iter().map(|target| target["name"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["office", "lab", "far"]);
    let (office, lab) = (&targets[0], &targets[1]);
    assert_eq!(office["newest"]["available"]["unit"], "bit/s");
    assert_eq!(office["newest"]["available"]["value"], 23_400_000);
    assert_eq!(office["newest"]["least_round_trip"]["unit"], "ns");
    // Each holds as long as three of its kind take.
    let stale = |signal: &str| office["newest"][signal]["stale_after_ms"].as_u64().unwrap();
    assert_eq!((stale("available"), stale("least_round_trip")), (5_400_000, 180_000));
    assert_eq!(stale("capacity"), 21 * 86_400_000);
    assert!(office["incident"]["cause"].as_str().is_some_and(|cause| cause.contains("hops 4 to 5")));
    assert_eq!((&office["incident"]["first_hop"], &office["incident"]["last_hop"]), (&json!(4), &json!(5)));
    assert_eq!(office["alerts"][0]["state"], "firing");
    assert_eq!(lab["newest"]["available"]["claim"], "at_least");
    assert!(lab["newest"]["available"]["high"].is_null());
    assert!(lab["incident"].is_null() && list(lab, "alerts").is_empty());
}

#[test]
fn a_young_target_says_how_much_of_what_is_usual_it_knows() {
    let site = Site::start();
    let learning = || site.json("/api/v1/targets")["targets"][1]["learning"].clone();
    assert!(learning().is_null());
    site.live.learning(LAB, Some(Learning { values: 7, of: 60 }));
    assert_eq!(learning(), json!({ "values": 7, "of": 60 }));
    site.live.learning(LAB, None);
    assert!(learning().is_null());
}

#[test]
fn a_series_of_any_span_has_at_most_2000_points() {
    let site = Site::start();
    for (since, step_ms) in [("1h", 60_000), ("24h", 60_000), ("1y", 15_780_000)] {
        let of = site.json(&format!("/api/v1/series?target=office&signal=available&since={since}"));
        let points = list(&of, "points");
        assert!(!points.is_empty() && points.len() <= 2000, "{since}: {}", points.len());
        let times: Vec<i64> = points.iter().filter_map(|point| point["at_ms"].as_i64()).collect();
        assert!(times.is_sorted() && times[1] - times[0] == step_ms, "{since}: {}", times[1] - times[0]);
    }
    let few = site.json("/api/v1/series?target=1&signal=loss&since=7d&points=10");
    assert_eq!((few["target"].as_str(), few["unit"].as_str()), (Some("office"), Some("ppm")));
    assert!(list(&few, "points").len() <= 10);
    let bases = |signal: &str| {
        let of = site.json(&format!("/api/v1/series?target=office&signal={signal}&since=24h&points=24"));
        let mut bases: Vec<_> = list(&of, "points").iter().map(|point| point["basis"].clone()).collect();
        bases.dedup();
        bases
    };
    assert_eq!((bases("available"), bases("loss")), (vec![json!("server")], vec![json!("single")]));
    assert_eq!(bases("capacity"), ["server", "single", "server"]);
}

#[test]
fn spans_are_ms_or_rfc_3339_or_ages() {
    let site = Site::start();
    let ask = |since: &str| site.json(&format!("/api/v1/series?target=office&signal=capacity&since={since}"));
    let by_age = ask("2h");
    assert_eq!(by_age["since_ms"], NOW_MS - 7_200_000);
    assert_eq!(by_age["until_ms"], NOW_MS);
    assert_eq!(ask(&(NOW_MS - 7_200_000).to_string()), by_age);
    assert_eq!(ask("2026-11-24T18:24:00Z"), by_age);
}

#[test]
fn what_cannot_be_answered_says_why() {
    let site = Site::start();
    site.get("/api/v1/series?signal=available").refused(400, "`target` is missing");
    site.get("/api/v1/series?target=office").refused(400, "`signal` is missing");
    site.get("/api/v1/series?target=office&signal=speed").refused(400, "least_round_trip");
    site.get("/api/v1/series?target=nobody&signal=loss").refused(404, "no target is called \"nobody\"");
    site.get("/api/v1/series?target=office&signal=loss&points=2001").refused(400, "between 1 and 2000");
    site.get("/api/v1/series?target=office&signal=loss&since=yesterday").refused(400, "`since`");
    site.get("/api/v1/series?target=office&signal=loss&since=1h&until=2h").refused(400, "not before");
    site.get("/api/v1/runs/7").refused(404, "UUID");
    site.get("/api/v1/runs/00000000-0000-0000-0000-000000000001").refused(404, "no such thing");
    site.get("/nowhere").refused(404, "no such page");
    site.send(&format!("DELETE /api/v1/runs HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", site.address))
        .refused(405, "method");
}

#[test]
fn a_heat_map_has_a_count_for_each_class_and_column() {
    let of = Site::start().json("/api/v1/heatmap?target=office&since=24h&columns=48");
    let (times, classes, counts) = (list(&of, "times_ms"), list(&of, "upper_ns"), list(&of, "counts"));
    assert_eq!((times.len(), counts.len(), list(&of, "lost_ppm").len()), (48, 48, 48));
    assert!(counts.iter().all(|column| column.as_array().is_some_and(|column| column.len() == classes.len())));
}

#[test]
fn runs_are_listed_without_and_read_with_their_document() {
    let site = Site::start();
    let of = site.json("/api/v1/runs?target=office&since=24h&limit=5");
    let runs = list(&of, "runs");
    assert_eq!(runs.len(), 5);
    assert!(runs.iter().all(|run| run.get("document").is_none() && run["target"] == "office"));
    let one = site.json(&format!("/api/v1/runs/{}", runs[1]["id"].as_str().expect("a number")));
    assert_eq!(one["began_ms"], runs[1]["began_ms"]);
    assert_eq!(one["document"]["schema"], "narrows.report/1");
}

#[test]
fn events_incidents_paths_and_alerts_are_newest_first() {
    let site = Site::start();
    let events = site.json("/api/v1/events?since=1y");
    let times: Vec<i64> = list(&events, "events").iter().filter_map(|event| event["at_ms"].as_i64()).collect();
    assert!(times.len() == 5 && times.is_sorted_by(|one, next| one >= next), "{times:?}");
    let first = &events["events"][0];
    assert_eq!(
        first["at_high_ms"].as_i64().zip(first["at_low_ms"].as_i64()).map(|(high, low)| high - low),
        Some(80_000)
    );
    assert_eq!(list(&site.json("/api/v1/events?since=1y&target=far"), "events").len(), 1);
    assert_eq!(list(&site.json("/api/v1/incidents?since=1y"), "incidents").len(), 2);
    let paths = site.json("/api/v1/paths?target=office&since=1y");
    assert_eq!(list(&paths, "paths").len(), 3);
    assert_eq!(list(&paths["paths"][0], "hops").len(), 8);
    assert_eq!(paths["paths"][0]["hops"][2]["addresses"][1], "203.0.113.18");
    assert_eq!(list(&site.json("/api/v1/alerts"), "alerts").len(), 2);
}

#[test]
fn two_times_are_compared_by_the_middle_halves_of_their_values() {
    let site = Site::start();
    let of = site.json("/api/v1/compare?target=office&a_since=25h&a_until=24h&b_since=30m");
    let signals = list(&of, "signals");
    let verdict = |name: &str| signals.iter().find(|row| row["signal"] == name).map(|row| row["verdict"].clone());
    assert_eq!(verdict("available"), Some("lower".into()));
    assert_eq!(verdict("queueing"), Some("higher".into()));
    assert_eq!(verdict("loss"), Some("unclear".into()));
    assert_eq!(of["same_path"], true);
    let year = site.json("/api/v1/compare?target=office&a_since=60d&a_until=59d&b_since=1d");
    assert_eq!(year["same_path"], false);
}
