//! `narrows throughput` against `narrows serve --iperf3` and `narrows serve`, on loopback.

mod common;

use common::iperf3::Iperf3;
use common::{Server, run};
use serde_json::Value;

fn measure(port: &str, arguments: &[&str]) -> Value {
    let mut call = vec![
        "throughput",
        "127.0.0.1",
        "-p",
        port,
        "-t",
        "0.3",
        "-i",
        "0.1",
        "--json",
    ];
    call.extend_from_slice(arguments);
    let ended = run(&call);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    ended.json()
}

#[track_caller]
fn octets(document: &Value, sum: &str) -> u64 {
    let octets = document["end"][sum]["bytes"].as_u64();
    octets.unwrap_or_else(|| panic!("no {sum} in {document:#}"))
}

#[test]
fn json_has_the_shape_that_readers_of_iperf3_know() {
    let server = Iperf3::start(&[]);
    let document = measure(
        &server.port(),
        &["--iperf3", "--bidir", "-P", "2", "--get-server-output"],
    );
    let start = &document["start"];
    assert_eq!(start["connected"].as_array().map(Vec::len), Some(4), "{document:#}");
    assert_eq!(start["test_start"]["protocol"], "TCP");
    assert_eq!(start["test_start"]["num_streams"], 2);
    assert_eq!(start["cookie"].as_str().map(str::len), Some(36));
    let intervals = document["intervals"].as_array().expect("a list");
    assert!(intervals.len() >= 2, "{document:#}");
    for interval in intervals {
        assert_eq!(interval["streams"].as_array().map(Vec::len), Some(4));
        assert!(interval["sum"]["bytes"].is_u64() && interval["sum_bidir_reverse"]["bytes"].is_u64());
        assert!(interval["narrows"].get("limited_by").is_some(), "{interval:#}");
        let sender = &interval["streams"][0];
        assert!(sender["rtt"].is_u64() && sender["snd_cwnd"].is_u64() && sender["retransmits"].is_u64());
    }
    let parts: u64 = intervals
        .iter()
        .filter_map(|interval| interval["sum"]["bytes"].as_u64())
        .sum();
    // The last interval ends with the decision to stop; a write may still be under way.
    assert!(parts <= octets(&document, "sum_sent") && parts > 0);
    assert_eq!(octets(&document, "sum_sent"), octets(&document, "sum_received"));
    assert_eq!(
        octets(&document, "sum_sent_bidir_reverse"),
        octets(&document, "sum_received_bidir_reverse")
    );
    for key in ["limited_by", "evidence", "quick", "spacing"] {
        assert!(document["narrows"].get(key).is_some(), "{document:#}");
    }
    assert!(document["narrows"]["limited_by"].is_string(), "{document:#}");
    let said = document["server_output_text"].as_str().expect("it was asked for");
    assert!(said.contains(&octets(&document, "sum_received").to_string()), "{said}");
}

#[test]
fn udp_keeps_its_rate_and_tells_its_spacing() {
    let server = Iperf3::start(&[]);
    let document = measure(
        &server.port(),
        &["--iperf3", "-u", "-b", "4M", "-l", "500", "--dscp", "ef"],
    );
    assert_eq!(document["start"]["test_start"]["tos"], 184);
    let sent = &document["end"]["sum_sent"];
    let (packets, lost) = (
        sent["packets"].as_u64(),
        document["end"]["sum"]["lost_packets"].as_u64(),
    );
    assert_eq!(
        packets.map(|packets| packets * 500),
        Some(octets(&document, "sum_sent"))
    );
    let arrived = packets.unwrap_or(0) - lost.expect("it is counted");
    assert_eq!(octets(&document, "sum_received"), arrived * 500);
    let spacing = &document["narrows"]["spacing"][0];
    assert_eq!(
        (&spacing["planned_ns"], &spacing["packets_at_once"]),
        (&1_000_000.into(), &1.into())
    );
    assert!(
        spacing["gap_ns_p50"].as_u64() <= spacing["gap_ns_max"].as_u64(),
        "{spacing:#}"
    );
    // Never more than was asked for, but for what a stalled host makes up.
    let bps = sent["bits_per_second"].as_f64().expect("a number");
    assert!(bps > 100_000.0 && bps < 5_000_000.0, "{bps}");
}

#[test]
fn the_own_server_is_measured_too() {
    let server = Server::start(&[]);
    let document = measure(&server.port(), &["-P", "2"]);
    assert!(
        octets(&document, "sum_sent") > 0 && document["narrows"]["limited_by"].is_string(),
        "{document:#}"
    );
    let document = measure(&server.port(), &["-u", "-b", "2M", "-R"]);
    assert!(octets(&document, "sum_received") > 0, "{document:#}");
    run(&["throughput", "127.0.0.1", "-p", &server.port(), "--bidir", "-Z"]).refused(2, &["--bidir, -Z", "--iperf3"]);
}

#[test]
fn what_cannot_be_is_said_so() {
    let server = Iperf3::start(&["--max-rate", "5M"]);
    let port = server.port();
    let call = |more: &[&str]| {
        let mut all = vec!["throughput", "127.0.0.1", "--iperf3", "-p", port.as_str(), "-t", "0.2"];
        all.extend_from_slice(more);
        run(&all)
    };
    call(&["-u", "-b", "6M"]).refused(4, &["refuses", "iperf3 error 27"]);
    call(&["-C", "nosuchcontrol"]).refused(1, &["congestion control"]);
    call(&["-P", "129"]).refused(2, &["128"]);
    call(&["-l", "2M"]).refused(2, &["1048576"]);
    call(&["-u", "-l", "70000"]).refused(2, &["65507"]);
    call(&["-R", "--bidir"]).refused(2, &["--bidir"]);
    call(&["--dscp", "64"]).refused(2, &["DSCP"]);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let nobody = gone.local_addr().expect("it is bound").port().to_string();
    drop(gone);
    run(&["throughput", "127.0.0.1", "--iperf3", "-p", &nobody]).refused(3, &["iperf3 -s"]);
    let ended = run(&["throughput", "127.0.0.1", "--iperf3", "-p", &nobody, "-J"]);
    assert_eq!(ended.status.code(), Some(3));
    assert!(ended.json()["error"].is_string(), "{ended:?}");
}
