//! Streams as a hub orders them, between kernels: paths that wait in one queue, and one that does
//! not.

use narrows_fleet::sharing::rfc8382::{Groups, Summary, group};
use narrows_fleet::sharing::{DELAY_SERIES, NOISE_NS, STREAM, delay_summary};
use serde_json::Value;

use crate::common::Running;
use crate::fleet_faults::bridge::{Bridge, address};

/// Servers; the first one has the queue.
const SERVERS: [usize; 2] = [3, 4];
/// Who sends towards whom: two streams meet the traffic to the first server.
const PATHS: [(usize, usize); 3] = [(0, 3), (1, 3), (2, 4)];
/// Who fills the queue.
const CROSS: usize = 5;

/// What an agent sums up of the forward direction.
fn forward(document: &Value) -> Summary {
    let evidence = document["evidence"].as_object().expect("a run has some");
    let series = evidence[DELAY_SERIES[0]].as_array().expect("a series was asked for");
    assert_eq!(series.len(), 920);
    let summary = delay_summary(evidence).expect("the spacing stands beside the series");
    summary.forward.expect("it is long enough")
}

#[test]
#[ignore = "judge: needs namespaces, root, tc"]
fn paths_that_wait_in_one_queue_are_told_from_one_that_does_not() {
    let fleet = Bridge::new(6);
    let mut servers: Vec<Running> = SERVERS.iter().map(|host| fleet.start(*host, &["serve"])).collect();
    for server in &mut servers {
        server.wait_for("listening");
    }
    // The last hop towards each host is a token bucket of 100 Mbit/s with a queue of 50 ms.
    let cross = fleet.start(CROSS, &["throughput", &address(SERVERS[0]), "-P", "4", "-t", "30", "--json"]);
    let start = |(from, to): (usize, usize)| {
        let (server, words): (String, Vec<&str>) = (address(to), STREAM.split(' ').collect());
        fleet.start(from, &[&words[..1], &[&server, "--json"], &words[1..]].concat())
    };
    let streams = PATHS.map(start);
    let summaries = streams.map(|stream| {
        let ended = stream.end();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        forward(&ended.json())
    });
    println!("{summaries:#?}");
    assert_eq!(group(&summaries, NOISE_NS), Groups { sharing: vec![vec![0, 1]], free: vec![2] });
    drop(cross);
}
