//! The machine contract: every JSON document is alone on standard output, follows the schema that
//! ships, and has every key that readers rely on.

use crate::common;

use crate::documents::keeps;
use common::{Running, Server, client, free_port, narrows, run, scenario, text, validate};
use serde_json::Value;

/// Asserts that an object has these keys.
#[track_caller]
fn has(object: &Value, keys: &[&str]) {
    for key in keys {
        assert!(object.get(key).is_some(), "no {key} in {object:#}");
    }
}

#[track_caller]
fn rows<'a>(document: &'a Value, name: &str) -> &'a Vec<Value> {
    let rows = document[name].as_array().unwrap_or_else(|| panic!("{name} is no list in {document:#}"));
    assert!(!rows.is_empty(), "{name} is empty in {document:#}");
    rows
}

/// An interval holds its value, and what is inconclusive claims nothing and says why.
#[track_caller]
fn is_coherent(row: &Value, names: [&str; 3]) {
    let [value, low, high] = names.map(|name| row[name].as_u64());
    if row["verdict"] == "inconclusive" {
        assert_eq!((value, low, high), (None, None, None), "{row:#}");
        assert!(row["reason"]["text"].is_string(), "{row:#}");
    } else {
        assert!(low.is_some() && low <= value && value <= high, "{row:#}");
    }
}

fn simulate(arguments: &[&str]) -> String {
    let demo = scenario("demo.toml");
    let mut call = vec!["simulate", text(&demo), "--json"];
    call.extend_from_slice(arguments);
    let ended = run(&call);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    ended.stdout
}

#[test]
fn simulate_is_as_promised() {
    let document: Value =
        serde_json::from_str(&simulate(&["--method", "fac2", "--runs", "3", "--seed", "7"])).expect("one JSON object");
    validate(narrows_report::schema::SIMULATION, &document);
    has(&document, &["schema", "scenario", "method", "seed", "runs", "summary"]);
    assert_eq!(document["schema"], narrows_report::schema::SIMULATION_NAME);
    assert_eq!((&document["scenario"], &document["method"]), (&"demo".into(), &"fac2".into()));
    assert_eq!(document["seed"], 7);
    let runs = rows(&document, "runs");
    let seeds: Vec<u64> = runs.iter().filter_map(|row| row["seed"].as_u64()).collect();
    assert_eq!(seeds, [7, 8, 9]);
    for row in runs {
        has(
            row,
            &["truth_bps", "value_bps", "low_bps", "high_bps", "verdict", "octets", "packets", "seconds", "caveats"],
        );
        is_coherent(row, ["value_bps", "low_bps", "high_bps"]);
        assert!(row["octets"].as_u64() > row["packets"].as_u64(), "{row:#}");
    }
    has(
        &document["summary"],
        &[
            "runs",
            "truth_bps",
            "median_value_bps",
            "median_error_ratio",
            "mean_error_ratio",
            "error_spread_ratio",
            "p90_abs_error_ratio",
            "p95_abs_error_ratio",
            "inconclusive_ratio",
            "wrong_confident_ratio",
            "coverage_ratio",
            "median_octets",
            "median_packets",
            "median_seconds",
            "peak_rate_bps",
        ],
    );
    assert_eq!(document["summary"]["runs"], 3);
}

#[test]
fn the_same_seed_gives_the_same_octets() {
    for method in ["fac2", "rtt"] {
        let call = |jobs| simulate(&["--method", method, "--runs", "4", "--seed", "3", "--jobs", jobs]);
        let one = call("1");
        assert_eq!(one, call("2"), "{method}");
        assert_eq!(one, call("1"), "{method}");
        let other = simulate(&["--method", method, "--runs", "4", "--seed", "4", "--jobs", "2"]);
        assert_ne!(one, other, "{method}");
    }
}

#[track_caller]
fn is_a_report(document: &Value) {
    validate(narrows_report::schema::REPORT, document);
    has(document, &["schema", "metrics", "host", "advice", "cost", "error"]);
    assert_eq!(document["schema"], narrows_report::schema::REPORT_NAME);
    for row in rows(document, "metrics") {
        has(
            row,
            &[
                "metric",
                "value",
                "low",
                "high",
                "unit",
                "layer",
                "direction",
                "method",
                "octets",
                "seconds",
                "limited_by",
                "verdict",
                "caveats",
                "samples",
                "evidence",
            ],
        );
        has_samples(row);
        is_coherent(row, ["value", "low", "high"]);
    }
    for advice in document["advice"].as_array().expect("a list") {
        has(advice, &["id", "severity", "text", "evidence", "command"]);
    }
    has(&document["cost"], &["octets", "seconds", "peak_bps"]);
    assert!(document["error"].is_null(), "{document:#}");
}

#[test]
fn demo_in_the_simulator_is_as_promised() {
    let ended = run(&["demo", "--simulate", "--json", "--quick"]);
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    let document = ended.json();
    is_a_report(&document);
    keeps("report-1", &document);
    assert_eq!(document["kind"], "demo");
    // The scenario's rates, as it was written: the truth stands beside each estimate.
    let truth = |metric: &str| {
        let rows = rows(&document, "metrics");
        let row = rows.iter().find(|row| row["metric"] == metric);
        row.and_then(|row| row["truth"].as_f64())
    };
    let capacity = truth("ip_capacity").expect("the scenario knows its capacity");
    // 100 Mbit/s on the wire less at most the largest Ethernet overhead of a full packet, 38 of
    // 1538 octets.
    assert!((97e6..=100e6).contains(&capacity), "{capacity}");
    let available = truth("available_ip_capacity").expect("the scenario knows what is available");
    // 200 Mbit/s less 130 Mbit/s of cross traffic, counted at the IP layer or on the wire.
    assert!((60e6..=70e6).contains(&available), "{available}");
    let again = run(&["demo", "--simulate", "--json", "--quick"]).json();
    assert_eq!(again["metrics"], document["metrics"]);
}

#[test]
fn test_over_loopback_is_as_promised() {
    let server = Server::start(&[]);
    for extra in [&["--quick"][..], &["--quick", "--reverse"]] {
        let mut call = client("test", server.address.port(), &["--json", "--budget", "30 MB, 4 s"]);
        let ended = Running::start(call.args(extra)).end();
        assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
        assert!(ended.stderr.is_empty(), "{ended:?}");
        let document = ended.json();
        is_a_report(&document);
        assert_eq!(document["kind"], "test");
        let way = if extra.len() > 1 { "reverse" } else { "forward" };
        for row in rows(&document, "metrics") {
            assert_eq!(row["direction"], way, "{row:#}");
            assert!(row.get("truth").is_none(), "{row:#}");
        }
        let spent = document["cost"]["octets"].as_u64().expect("a number");
        assert!((1..=30_000_000).contains(&spent), "{spent}");
        let seconds = document["cost"]["seconds"].as_f64().expect("a number");
        assert!(seconds <= 6.0, "{seconds} s of 4 s");
    }
}

/// A server is found without being named, and used; where there is none, or nobody should look,
/// nothing is said of one.
#[test]
fn hops_finds_a_server_there() {
    let server = Server::start(&[]);
    let port = server.address.port().to_string();
    let flags = ["--json", "--quiet", "-n", "--server-port", &port, "--param", "probes=24"];
    let hops = |more: &[&str]| {
        let ended = Running::start(narrows(["hops", "127.0.0.1"]).args(flags).args(more)).end();
        assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
        let document = ended.json();
        validate(narrows_report::schema::HOPS, &document);
        document
    };
    let found = hops(&[]);
    keeps("hops-1", &found);
    let remote = &found["server"];
    assert_eq!(remote["kind"], "server", "{found:#}");
    assert!(remote["one_way"]["packets"].as_u64().is_some_and(|count| count >= 64), "{remote:#}");
    for way in ["forward", "reverse"] {
        assert_eq!(remote[way]["method"], "capacity", "{remote:#}");
    }
    let unasked = hops(&["--no-server"]);
    assert!(unasked["server"].is_null(), "{unasked:#}");
    drop(server);
    let nobody = hops(&[]);
    assert!(nobody["server"].is_null(), "{nobody:#}");
    assert_eq!(nobody["params"], unasked["params"]);
}

/// What a result rests on: every packet has one fate.
#[track_caller]
fn has_samples(row: &Value) {
    let count = |name: &str| row["samples"][name].as_u64().unwrap_or_else(|| panic!("{name}: {row:#}"));
    let fates = count("answered") + count("lost") + count("dropped_by_host");
    if count("captures") == 0 && count("loads") == 0 {
        assert_eq!(count("sent"), fates, "{row:#}");
    }
    assert!(row["samples"]["kept"].is_object() && row["samples"]["rejected"].is_object());
}

#[test]
fn one_metric_is_a_row_of_the_report() {
    let server = Server::start(&[]);
    for (command, metric) in [("capacity", "ip_capacity"), ("available", "available_ip_capacity")] {
        let mut call = client(command, server.address.port(), &["--json", "--budget", "10 MB, 2 s"]);
        let ended = Running::start(&mut call).end();
        assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
        let row = ended.json();
        assert_eq!(row["metric"], metric);
        assert!(row["samples"]["sent"].as_u64() > Some(0), "{row:#}");
        is_a_row(&row);
    }
}

/// What these two print beside the row has a schema of its own.
#[test]
fn bursts_and_streams_follow_their_schemas() {
    let server = Server::start(&[]);
    for (command, budget, schema, name) in [
        ("burst", "10 MB, 2 s", narrows_report::schema::BURST, narrows_report::schema::BURST_NAME),
        ("streams", "300 MB, 3 s", narrows_report::schema::STREAMS, narrows_report::schema::STREAMS_NAME),
    ] {
        let mut call = client(command, server.address.port(), &["--json", "--budget", budget]);
        let ended = Running::start(&mut call).end();
        assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
        let document = ended.json();
        validate(schema, &document);
        if command == "burst" {
            keeps("burst-1", &document);
        } else {
            keeps("streams-1", &document);
        }
        assert_eq!(document["schema"], name);
        has(&document, &["metric", "value", "verdict", "samples", "curve"]);
    }
}

/// Without any server: the loopback's own kernel answers.
#[test]
fn a_host_that_runs_nothing_is_measured_by_what_it_answers() {
    let ended = run(&["rtt", "127.0.0.1", "--via", "udp", "--quiet", "--json"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let row = ended.json();
    is_a_row(&row);
    assert_eq!((&row["metric"], &row["method"]), (&"round_trip_time".into(), &"rtt".into()));
    assert_eq!(row["evidence"]["answered_via"], "udp");
    let kept = row["samples"]["kept"]["round_trips"].as_u64();
    assert!(kept >= Some(6), "{row:#}");
    let value = row["value"].as_u64().expect("loopback answers");
    assert!((500..50_000_000).contains(&value), "{value} ns");
}

#[test]
fn methods_that_need_a_server_say_so_and_who_does_not() {
    for (call, words) in [
        (&["tcp", "127.0.0.1", "--via", "icmp"][..], ["tcp_achievable_single", "narrows serve"]),
        (
            &["capacity", "127.0.0.1", "--via", "icmp", "--method", "pathrate"],
            ["pathrate cannot", "--via stamp: capacity, hops, answers, pathrate"],
        ),
        (&["capacity", "127.0.0.1", "--via", "carrier-pigeon"], ["carrier-pigeon", "stamp[:PORT]"]),
        (&["capacity", "127.0.0.1", "--via", "udp:0"], ["udp:0", "1 to 65535"]),
        (&["capacity", "127.0.0.1", "--via", "icmp", "--reverse"], ["--reverse", "--via"]),
    ] {
        let ended = run(call);
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
        for word in words {
            assert!(ended.stderr.contains(word), "{word}: {ended:?}");
        }
    }
    // Where nothing answers as a server does, the other ways are named.
    let port = free_port().to_string();
    let ended = run(&["capacity", "127.0.0.1", "--port", &port]);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stderr.contains("--via icmp, udp, tcp or stamp"), "{ended:?}");
}

#[test]
fn a_reflector_stands_in_for_a_receiver() {
    let port = free_port().to_string();
    let _server = Server::start(&["--stamp", &port]);
    let via = format!("stamp:{port}");
    let ended = run(&["capacity", "127.0.0.1", "--via", &via, "--quiet", "--json", "--budget", "3 MB, 4 s"]);
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    let row = ended.json();
    is_a_row(&row);
    assert_eq!((&row["direction"], &row["method"]), (&"forward".into(), &"capacity".into()));
    assert_eq!(row["evidence"]["answered_via"], "stamp");
    assert!(row["samples"]["answered"].as_u64() > Some(0), "{row:#}");
}

/// Available bandwidth by a reflector's stamps is that of the forward direction; by errors of
/// closed ports it is not to be had.
#[test]
fn available_bandwidth_from_one_end() {
    let port = free_port().to_string();
    let _server = Server::start(&["--stamp", &port]);
    let via = format!("stamp:{port}");
    for method in ["fac2", "pathload"] {
        let call = ["available", "127.0.0.1", "--via", &via, "--method", method];
        let call = [&call[..], &["--quiet", "--json", "--budget", "60 MB, 5 s"]].concat();
        let ended = run(&call);
        assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
        let row = ended.json();
        is_a_row(&row);
        assert_eq!((&row["direction"], &row["method"]), (&"forward".into(), &method.into()));
        assert_eq!(row["evidence"]["answered_via"], "stamp");
        assert!(row["samples"]["answered"].as_u64() > Some(0), "{row:#}");
    }
    let ended = run(&["available", "127.0.0.1", "--via", "udp"]);
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--via icmp: ") && ended.stderr.contains("fac2"), "{ended:?}");
}

#[track_caller]
fn is_a_row(row: &Value) {
    has_samples(row);
    let mut schema: Value =
        serde_json::from_str(narrows_report::schema::REPORT).expect("the schema that ships is JSON");
    let definitions = schema["$defs"].take();
    let mut alone = definitions["row"].clone();
    alone["$defs"] = definitions;
    validate(&alone.to_string(), row);
    is_coherent(row, ["value", "low", "high"]);
}

#[test]
fn csv_has_one_line_per_metric() {
    let ended = run(&["demo", "--simulate", "--quick", "--csv"]);
    let mut lines = ended.stdout.lines();
    let head = lines.next().expect("a header");
    assert!(head.starts_with("metric,value,low,high,unit,layer,"), "{head}");
    let json = run(&["demo", "--simulate", "--quick", "--json"]).json();
    let names: Vec<&str> = lines.map(|line| line.split(',').next().unwrap_or_default()).collect();
    let expected: Vec<&str> = rows(&json, "metrics").iter().filter_map(|row| row["metric"].as_str()).collect();
    assert_eq!(names, expected);
}
