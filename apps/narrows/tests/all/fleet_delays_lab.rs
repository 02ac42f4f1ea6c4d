//! Paths that wait in one queue, between kernels: by streams as a hub orders them, and by a fleet
//! that suspects a link and orders them itself.

use std::time::Duration;

use narrows_fleet::sharing::rfc8382::{Groups, Summary, group};
use narrows_fleet::sharing::{DELAY_SERIES, NOISE_NS, STREAM, delay_summary};
use serde_json::Value;

use crate::common::Running;
use crate::fleet_faults::bridge::{Bridge, address};
use crate::fleet_faults::fleet::{AGENTS, BUS, Fleet, RECORD, waited};
use crate::fleet_faults::{QUIET, ready};

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

/// Two paths have one value, and more than one link may be why; delays say which of them wait in
/// one queue. That is the queue towards the third agent, behind a router, which a host fills that
/// has no other part.
#[test]
#[ignore = "judge: needs namespaces, root, tc"]
fn a_fleet_that_suspects_a_link_groups_its_paths_by_their_delays() {
    let fleet = Fleet::apart(3, false);
    let net = fleet.net.as_ref().expect("each part is apart");
    for source in [0, 1] {
        net.route_through(BUS, (AGENTS + source, AGENTS + 2));
    }
    ready(&fleet, 3);
    // No timetable, whose loads keep streams away and whose values may locate the link.
    fleet.apply(QUIET);
    for source in [0, 1] {
        fleet.carry_out(source, 2, "available");
    }
    let mut server = net.start(AGENTS + 2, &["serve", "--port", "8700", "--max-duration", "300"]);
    server.wait_for("listening");
    let there = address(AGENTS + 2);
    // BBR would leave the queue empty for most of the time.
    let fill = ["throughput", &there, "--port", "8700", "-P", "4", "-C", "cubic", "-t", "300", "--json"];
    let cross = net.start(RECORD, &fill);
    // Of the hub: a look within 30 s, a lead of 45 s, streams of 18 s.
    let mut said = String::new();
    let has_ended = || {
        let audit = fleet.audit();
        said = audit.into_iter().find(|(what, _)| what == "grouping.ended").map(|(_, text)| text).unwrap_or_default();
        !said.is_empty()
    };
    let after = waited(Duration::from_secs(280), has_ended).unwrap_or_else(|| {
        let seen = ["bottlenecks", "plan", "audit"].map(|path| format!("{:#}", fleet.get(path)));
        panic!("no grouping ended: {}", seen.join("\n"))
    });
    println!("{said}, {:.0} s after the last value", after.as_secs_f64());
    // Whichever link it suspects, a path waits if it leads to the third agent.
    let (paths, verdict) = said.split_once(": ").expect("paths, and what they are");
    let expected = match paths.split(", ").filter(|path| path.ends_with(" to h2")).count() {
        0 => "no_queue",
        1 => "apart",
        _ => "together",
    };
    assert_eq!(verdict, expected, "{paths}");
    drop(cross);
}
