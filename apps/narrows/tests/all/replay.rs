//! `--record` and `narrows replay`: what was measured can be had again, and nothing else.

use std::path::Path;

use crate::common;

use common::{ProgramResult, directory, run, scenario, text, validate};
use serde_json::Value;

/// Runs a method over a scenario in the simulator, recorded.
fn record(name: &str, method: &str, file: &str) -> ProgramResult {
    let path = scenario(name);
    let ended = run(&["simulate", text(&path), "--method", method, "--json", "--record", file]);
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    ended
}

fn replayed(arguments: &[&str]) -> (Option<i32>, Value) {
    let ended = run(&[&["replay", "--json"], arguments].concat());
    let document = ended.json();
    validate(narrows_report::schema::REPLAY, &document);
    (ended.status.code(), document)
}

#[test]
fn a_run_comes_again_with_its_truth() {
    let folder = directory();
    for (name, method) in [
        ("rtt-waiting-path.toml", "rtt"),
        ("pathload-poisson-load.toml", "pathload"),
        ("udp-half-loaded.toml", "udp"),
        ("tcp-half-loaded.toml", "tcp"),
        ("bulk-dead-path.toml", "burst"),
    ] {
        let path = folder.path().join(method);
        let simulated = record(name, method, text(&path)).json();
        let (code, document) = replayed(&[text(&path)]);
        let ran = &document["runs"][0];
        assert_eq!((ran["how"].as_str(), &ran["same"]), (Some("replayed"), &true.into()), "{document:#}");
        assert_eq!(ran["result"], ran["recorded"]);
        let (was, is) = (&simulated["runs"][0], &ran["result"]);
        assert_eq!(was["value_bps"], is["value"], "{method}");
        assert_eq!(was["verdict"], is["verdict"], "{method}");
        assert_eq!(was["octets"], is["octets"], "{method}");
        let missing = Value::Null;
        if method != "burst" {
            assert_eq!(was["truth_bps"], *is.get("truth").unwrap_or(&missing), "{method}");
        }
        assert_eq!(code, Some(if is["value"].is_null() { 11 } else { 0 }));
    }
}

#[test]
fn rows_are_read_by_another_method_or_refused() {
    let folder = directory();
    let path = folder.path().join("streams");
    record("pathload-poisson-load.toml", "pathload", text(&path));
    let (code, document) = replayed(&[text(&path), "--method", "fac2"]);
    let ran = &document["runs"][0];
    assert_eq!((code, ran["how"].as_str(), &ran["same"]), (Some(0), Some("analysed"), &Value::Null));
    assert!(ran["differs"].as_str().expect("why").starts_with("at step 1 the recording holds train"), "{ran:#}");
    assert_eq!(ran["result"]["metric"], "available_ip_capacity");
    assert!(ran["rows"]["trains"].as_u64() > Some(20));

    let (code, document) = replayed(&[text(&path), "--param", "fraction=0.7"]);
    let ran = &document["runs"][0];
    assert_eq!((code, &ran["same"]), (Some(0), &Value::Null), "{ran:#}");
    assert_eq!(ran["params"]["fraction"], "0.7");

    let (code, document) = replayed(&[text(&path), "--method", "tcp"]);
    let ran = &document["runs"][0];
    assert_eq!((code, ran["how"].as_str(), &ran["result"]), (Some(2), Some("refused"), &Value::Null));
    let why = ran["differs"].as_str().expect("why");
    assert!(why.starts_with("tcp needs transfers over one connection; there is"), "{why}");
}

#[test]
fn a_job_is_one_run_per_method() {
    let folder = directory();
    let path = folder.path().join("job");
    let ended = run(&["demo", "--simulate", "--quick", "--json", "--record", text(&path)]);
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    let (_, document) = replayed(&[text(&path)]);
    let runs = document["runs"].as_array().expect("a list");
    let methods: Vec<&str> = runs.iter().filter_map(|run| run["recorded_method"].as_str()).collect();
    assert_eq!(methods[..4], ["rtt", "pmtu", "capacity", "slope"], "{methods:?}");
    assert!(runs.iter().all(|run| run["same"] == true && run["complete"] == true), "{document:#}");
    assert!(runs.iter().all(|run| run["world"] == "simulator" && run["scenario"].is_string()));
    let (_, third) = replayed(&[text(&path), "--run", "3"]);
    assert_eq!(third["runs"], Value::from(vec![runs[2].clone()]));
}

#[test]
fn raw_rows() {
    let folder = directory();
    let path = folder.path().join("rows");
    record("pathrate-constant-load.toml", "capacity", text(&path));
    let csv = run(&["replay", text(&path), "--dump", "csv"]);
    assert_eq!(csv.status.code(), Some(0), "{csv:?}");
    let mut lines = csv.stdout.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let cell = |line: &str, name: &str| {
        let at = head.iter().position(|column| *column == name).expect("a column");
        line.split(',').nth(at).expect("as many cells").to_owned()
    };
    let json = run(&["replay", text(&path), "--dump", "json"]);
    let rows: Vec<Value> =
        json.stdout.lines().map(|line| serde_json::from_str(line).expect("an object per line")).collect();
    let lines: Vec<&str> = lines.collect();
    assert_eq!(rows.len(), lines.len());
    let packets: Vec<_> = rows.iter().zip(&lines).filter(|(row, _)| row["kind"] == "packet").collect();
    assert!(packets.len() > 50);
    for (row, line) in packets {
        for column in ["run", "step", "seq", "ip_octets", "departed_ns", "received_ns"] {
            let value = row.get(column).map(ToString::to_string).unwrap_or_default();
            assert_eq!(cell(line, column), value, "{row}");
        }
        assert_eq!(cell(line, "fate"), row["fate"].as_str().expect("a word"));
    }
}

#[test]
fn a_cut_file_is_read_up_to_the_cut() {
    let folder = directory();
    let path = folder.path().join("whole");
    record("pathload-poisson-load.toml", "pathload", text(&path));
    let whole = std::fs::read(&path).expect("it was written");
    let cut = folder.path().join("cut");
    std::fs::write(&cut, &whole[..whole.len() * 2 / 3]).expect("a temporary file");
    let ended = run(&["replay", "--json", text(&cut)]);
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    assert!(ended.stderr.contains("the file ends in the middle"), "{ended:?}");
    let document = ended.json();
    validate(narrows_report::schema::REPLAY, &document);
    assert!(document["damage"].is_string());
    let ran = &document["runs"][0];
    assert_eq!((&ran["complete"], &ran["same"]), (&false.into(), &Value::Null));
    assert!(ran["exchanges"].as_u64() > Some(3), "{ran:#}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = directory();
    let path = folder.path().join("good");
    record("rtt-waiting-path.toml", "rtt", text(&path));
    let good = text(&path);
    let scenario = scenario("rtt-waiting-path.toml");
    let scenario = text(&scenario);
    for (arguments, words) in [
        (&["replay", scenario][..], &["is no recording"][..]),
        (&["replay", "/nowhere/at/all"], &["/nowhere/at/all"]),
        (&["replay", good, "--run", "2"], &["there is no run 2"]),
        (&["replay", good, "--method", "nonsense"], &["no method"]),
        (&["replay", good, "--param", "nonsense=1"], &["nonsense"]),
        (&["simulate", scenario, "-m", "rtt", "--runs", "2", "--record", "/tmp/never"], &["one run"]),
        (&["simulate", scenario, "-m", "rtt", "--record", "/nowhere/at/all"], &["--record /nowhere/at/all"]),
    ] {
        run(arguments).refused(2, words);
    }
}

/// Recorded between kernels, behind `tc tbf rate 100mbit burst 20kb` beside four greedy transfers
/// of iperf3. The bucket's timer moves single pairs by up to 6 %, and packets of the transfers
/// stretch trains. What probes asked then is asked again, so the values are those of today.
#[test]
fn a_kernels_bucket_beside_transfers_is_read_rightly() {
    // 100 Mbit/s of frames of 1514 octets.
    let truth = 100e6 * 1500.0 / 1514.0;
    for name in ["tbf-100-beside-transfers-pairs", "tbf-100-beside-transfers-trains"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recordings/{name}.rec"));
        let (_, document) = replayed(&[text(&path)]);
        let ran = &document["runs"][0];
        assert_eq!(ran["how"], "replayed", "{name}: {ran:#}");
        let value = |key: &str| ran["result"][key].as_f64().expect("a number");
        assert!((value("value") / truth - 1.0).abs() < 0.01, "{name}: {ran:#}");
        assert!(value("low") < truth && truth < value("high"), "{name}: {ran:#}");
    }
}
