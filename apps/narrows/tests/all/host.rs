//! `narrows host`: what it says follows its schema on any machine, with and without a remote host,
//! and what makes no sense is refused.

use crate::common;

use crate::documents::keeps;
use common::{Running, Server, client, directory, run, scenario, text, validate};
use narrows_host_profile::HostProfile;
use serde_json::Value;
use std::path::Path;

/// Every family, in the document's order.
const FAMILIES: [&str; 8] = ["pairs", "gaps", "variable_sizes", "streams", "chirps", "trains", "loads", "round_trips"];

#[track_caller]
fn families(rows: &Value) {
    let rows = rows.as_array().expect("a list");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["family"].as_str()).collect();
    assert_eq!(names, FAMILIES);
    for row in rows {
        assert!(row["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{row:#}");
    }
}

/// The whole of it, alone: seconds, and each number that needs no card and no privilege.
#[test]
fn this_host() {
    let ended = run(&["host", "--json", "--quiet", "--fix", "--capture", "--rate", "1 Gbit/s", "-I", "lo"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let document = ended.json();
    validate(narrows_report::schema::HOST, &document);
    keeps("host-1", &document);
    assert_eq!(document["schema"], narrows_report::schema::HOST_NAME);
    families(&document["families"]);
    assert_eq!((&document["rate_bps"], &document["rate_from"]), (&1_000_000_000_u64.into(), &"given".into()));
    let ceiling = document["ceiling_bps"].as_u64().expect("memory and processor are known");
    assert!(ceiling > 1_000_000 && ceiling < 100_000_000_000_000, "{ceiling}");
    assert_eq!(document["near"]["inventory"]["card"]["name"], "lo");
    // Loopback has no wire: single spacings over it are never fine.
    for row in document["families"].as_array().expect("a list") {
        let spaced = ["pairs", "gaps", "chirps"].iter().any(|name| row["family"] == *name);
        assert!(!(spaced && row["verdict"] == "ok"), "{row:#}");
    }
    let verdict = document["capture"]["verdict"].as_str().expect("a capture was asked for");
    assert!(["measured", "at_least", "at_most"].contains(&verdict), "{verdict}");
    for fix in document["fixes"].as_array().expect("fixes were asked for") {
        assert!(fix["command"] != fix["undo"], "{fix:#}");
    }
}

#[test]
fn text_is_for_people() {
    let ended = run(&["host", "--quiet"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    for word in [
        "What can be measured to a host like this one",
        "packet pairs",
        "Costs, measured on loopback",
        "No server was named",
    ] {
        assert!(ended.stdout.contains(word), "no {word:?} in {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("undo"), "nobody asked for fixes: {}", ended.stdout);
}

#[test]
fn both_ends() {
    let server = Server::start(&[]);
    let ended = Running::start(&mut client("host", server.address.port(), &["--json", "--quiet"])).end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let document = ended.json();
    validate(narrows_report::schema::HOST, &document);
    families(&document["families"]);
    families(&document["reverse_families"]);
    assert_eq!(document["target"]["port"], server.address.port());
    let remote = &document["remote"]["facts"];
    assert!(remote["send_cost_ns"].as_u64().is_some_and(|cost| cost > 0), "{remote:#}");
    assert_eq!((&document["capture"], &document["fixes"]), (&Value::Null, &Value::Null));
}

/// What the shipped profiles hold follows the schema, and they are played.
#[test]
fn a_shipped_profile_is_played() {
    for (name, ends) in [("quiet", "one"), ("quiet-both-ends", "both")] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../hosts/{name}.toml"));
        let profile = HostProfile::from_toml(&std::fs::read_to_string(&file).expect("it is shipped"));
        let document = serde_json::to_value(profile.expect("a profile")).expect("a profile is JSON");
        validate(narrows_report::schema::HOST_PROFILE, &document);
        keeps("host-profile-1", &document);
        assert_eq!(document["ends"], ends);
        plays(&file);
    }
}

#[track_caller]
fn plays(file: &Path) {
    let demo = scenario("demo.toml");
    let call = ["simulate", text(&demo), "--method", "rtt", "--json", "--hosts", text(file)];
    let ended = run(&call);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(ended.stdout, run(&call).stdout, "the same seed plays the same host");
}

/// On a busy machine a second may show too little of something.
#[test]
#[ignore = "judge: a recording needs a machine that is not busy"]
fn a_profile_is_recorded_and_played() {
    let home = directory();
    for (name, extra) in [("one", None), ("both", Some("--both-ends"))] {
        let file = home.path().join(format!("{name}.toml"));
        let mut call = vec!["host", "--record", text(&file), "--record-seconds", "1", "--json", "--quiet"];
        call.extend(extra);
        let ended = run(&call);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let document = ended.json();
        validate(narrows_report::schema::HOST_PROFILE, &document);
        assert_eq!((&document["name"], &document["ends"]), (&name.into(), &name.into()));
        assert!(document["send"]["pacing_ns"]["count"].as_u64().is_some_and(|count| count > 0), "{document:#}");
        plays(&file);
    }
}

#[test]
#[ignore = "judge: a recording needs a machine that is not busy"]
fn a_server_helps_to_record() {
    let server = Server::start(&[]);
    let home = directory();
    let file = home.path().join("from-server.toml");
    let extra = ["--record", text(&file), "--record-seconds", "2", "--quiet"];
    let ended = Running::start(&mut client("host", server.address.port(), &extra)).end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("receive.batch_packets") && ended.stdout.contains("--hosts"), "{ended:?}");
    let written = std::fs::read_to_string(&file).expect("the profile is written");
    assert!(written.contains("loopback, and from"), "{written}");
}

#[test]
fn refusals() {
    run(&["host", "no..such..host", "--json"]).refused(3, &["no..such..host"]);
    run(&["host", "-I", "nobody0"]).refused(2, &["nobody0", "no such interface"]);
    run(&["host", "-I", "../../etc"]).refused(2, &["no such interface"]);
    run(&["host", "-I", ""]).refused(2, &["no such interface"]);
    run(&["host", "--rate", "0 bit/s"]).refused(2, &["--rate"]);
    run(&["host", "--rate", "fast"]).refused(2, &["--rate"]);
    run(&["host", "--snap", "96"]).refused(2, &["--capture"]);
    run(&["host", "--capture", "--snap", "13"]).refused(2, &["--snap"]);
    run(&["host", "--record", "/nowhere/at/all.toml"]).refused(2, &["/nowhere/at/all.toml"]);
    run(&["host", "--record", "a b.toml"]).refused(2, &["names the profile"]);
    run(&["host", "--record", "x.toml", "--fix"]).refused(2, &["--fix"]);
    run(&["host", "--both-ends"]).refused(2, &["--record"]);
    run(&["host", "--record", "x.toml", "--both-ends", "127.0.0.1"]).refused(2, &["--both-ends"]);
    run(&["host", "--record", "x.toml", "--record-seconds", "0"]).refused(2, &["--record-seconds"]);
    run(&["simulate", "x.toml", "--method", "rtt", "--hosts", "y", "--record", "z"]).refused(2, &["--hosts"]);
    run(&["host", "-4"]).refused(2, &["SERVER"]);
    run(&["host", "127.0.0.1", "-I", "lo"]).refused(2, &["--interface"]);
    run(&["host", "-o", "/nowhere/at/all.json"]).refused(2, &["/nowhere/at/all.json"]);
    let home = directory();
    let key = home.path().join("no-key");
    run(&["host", "127.0.0.1", "--psk-file", text(&key)]).refused(2, &["no-key"]);
}
