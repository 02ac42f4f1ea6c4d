//! The command line itself: what needs no command, and how values are written.

use crate::common;

use std::net::TcpListener;

use common::run;

/// Nothing listens there.
fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").port().to_string()
}

#[test]
fn a_bare_call_says_how_to_begin() {
    let ended = run(&[]);
    ended.refused(2, &["narrows demo", "narrows HOST", "narrows serve", "narrows hops HOST", "narrows --help"]);
    assert_eq!(ended.stderr.lines().count(), 5, "{ended:?}");
}

#[test]
fn a_host_needs_no_command() {
    let port = closed_port();
    for host in ["127.0.0.1", "localhost"] {
        run(&[host, "-4", "--port", &port, "--json"]).refused(3, &["nothing listens", &port]);
    }
}

#[test]
fn a_near_miss_is_no_host() {
    run(&["tset"]).refused(2, &["unrecognized subcommand", "'test'"]);
    // An empty label is no name: the resolver refuses without asking anybody.
    run(&["no/such/host"]).refused(2, &["neither a command", "nor a host"]);
}

#[test]
fn a_bare_number_is_seconds_and_units_stay() {
    // Read before anything is asked of the host: what can be read ends at the host's name.
    for flags in [["tcp", "--time", "20"], ["tcp", "--time", "20 s"], ["throughput", "-t", "300ms"]] {
        run(&[&flags[..], &["no..such..host"]].concat()).refused(3, &["no..such..host"]);
    }
    for flags in [["--interval", "2"], ["--interval", "500ms"], ["--duration", "30"]] {
        run(&["available", "no..such..host", "--watch", flags[0], flags[1]]).refused(3, &["no..such..host"]);
    }
    run(&["tcp", "no..such..host", "--time", "20 weeks"]).refused(2, &["weeks"]);
}

#[test]
fn rates_take_a_prefix_alone() {
    for rate in ["50M", "50 Mbit/s", "0.05G", "50000000"] {
        run(&["burst", "no..such..host", "--available", rate]).refused(3, &["no..such..host"]);
    }
    run(&["burst", "no..such..host", "--available", "50 parsecs"]).refused(2, &["parsecs"]);
}
