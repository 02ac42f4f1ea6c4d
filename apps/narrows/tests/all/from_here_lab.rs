//! Paths behind a router, between namespaces: `narrows HOST` where the host runs nothing of ours,
//! and a path that is cut for a while.

#![expect(clippy::disallowed_methods, reason = "a path is cut for a time")]

use crate::common;

use std::path::PathBuf;
use std::process::Command;

use common::{Running, narrows};

/// Three namespaces of this test alone, in a row; gone when dropped.
pub(crate) struct Hosts(String);

impl Hosts {
    /// `test`: another letter for each that runs beside.
    pub(crate) fn new(test: char) -> Self {
        let hosts = Self(format!("nf{}{test}", std::process::id()));
        let [near, router, far] = ["n", "r", "f"].map(|name| hosts.name(name));
        for name in [&near, &router, &far] {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        for (one, other, net) in [(&near, &router, 1), (&router, &far, 2)] {
            let (a, b) = (format!("v{net}a"), format!("v{net}b"));
            ip(&["-n", one, "link", "add", &a, "type", "veth", "peer", "name", &b, "netns", other]);
            for (space, end, host) in [(one, &a, 1), (other, &b, 2)] {
                ip(&["-n", space, "addr", "add", &format!("10.9.{net}.{host}/24"), "dev", end]);
                ip(&["-n", space, "link", "set", end, "up"]);
            }
        }
        ip(&["-n", &near, "route", "add", "default", "via", "10.9.1.2"]);
        ip(&["-n", &far, "route", "add", "default", "via", "10.9.2.1"]);
        ip(&["netns", "exec", &router, "sysctl", "-qw", "net.ipv4.ip_forward=1"]);
        hosts
    }

    /// Drops what is larger on its way to the router, without a word: the router's side of the
    /// cable takes no more, a VLAN's tag apart. Nor does it take several packets as one.
    fn black_hole(&self, most_ip_octets: u16) {
        const VLAN_TAG: u16 = 4;
        let mtu = (most_ip_octets - VLAN_TAG).to_string();
        ip(&["-n", &self.name("r"), "link", "set", "v1b", "mtu", &mtu]);
        ip(&["-n", &self.name("n"), "link", "set", "v1a", "gso_max_segs", "1"]);
    }

    pub(crate) fn name(&self, which: &str) -> String {
        format!("{}{which}", self.0)
    }

    /// The router drops all that is for either host, without a word, until `false`.
    fn cut(&self, cut: bool) {
        for host in ["10.9.1.1/32", "10.9.2.2/32"] {
            ip(&["-n", &self.name("r"), "route", if cut { "add" } else { "del" }, "blackhole", host]);
        }
    }

    /// The program on the near host.
    pub(crate) fn run(&self, arguments: &[&str]) -> common::ProgramResult {
        self.start("n", arguments).end()
    }

    /// The program on a host.
    pub(crate) fn start(&self, host: &str, arguments: &[&str]) -> Running {
        let mut command = narrows(["no arguments of its own"]);
        let program = PathBuf::from(command.get_program());
        let environment: Vec<_> =
            command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
        command = Command::new("ip");
        command.args(["netns", "exec", &self.name(host)]).arg(program).args(arguments);
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Running::start(&mut command)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for which in ["n", "r", "f"] {
            let _ = Command::new("ip").args(["netns", "del", &self.name(which)]).status();
        }
    }
}

#[track_caller]
fn ip(arguments: &[&str]) {
    call("ip", arguments);
}

#[track_caller]
fn call(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().expect("iproute2 is installed");
    assert!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

pub(crate) const FAR: &str = "10.9.2.2";

#[test]
#[ignore = "lab: needs namespaces"]
fn what_a_far_host_answers_is_measured_from_here() {
    let hosts = Hosts::new('a');
    let ended = hosts.run(&[FAR, "--quiet"]);
    // Between namespaces no link has a rate: the capacity may be a bound, or inconclusive.
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "10.9.2.2 runs no narrows serve (TCP 8620 refused). Measured from here alone; missing: free now, UDP, TCP, each \
         direction.",
        "2 hops, by 10.9.1.2",
        "Free now not measurable without narrows serve on 10.9.2.2",
        "round trip",
        "path MTU IP 1500 B",
    ] {
        assert!(text.contains(words), "no {words:?} in {}", ended.stdout);
    }
    let limit = std::time::Duration::from_secs(40);
    assert!(ended.took < limit, "15 s of measurement: {ended:?}");
}

#[test]
#[ignore = "lab: needs namespaces"]
fn programs_get_an_error_unless_they_ask_for_one_end() {
    let hosts = Hosts::new('b');
    for flags in [&["--json"][..], &["--csv"], &["--fail-if", "rtt>1s"], &["--reverse"]] {
        hosts.run(&[&[FAR], flags].concat()).refused(3, &["nothing listens"]);
    }
    let alone = hosts.run(&[FAR, "--single-ended", "--json", "--fail-if", "rtt>10s,mtu<1500"]);
    assert_eq!(alone.status.code(), Some(0), "{alone:?}");
    let document = alone.json();
    common::validate(narrows_report::schema::REPORT, &document);
    let metrics: Vec<&str> =
        document["metrics"].as_array().expect("rows").iter().filter_map(|row| row["metric"].as_str()).collect();
    assert_eq!(metrics, ["round_trip_time", "path_mtu", "ip_capacity"]);
    assert!(document["cost"]["octets"].as_u64() <= Some(2_000_000), "{document:#}");
    assert_eq!(document["answer"][1]["rule"], "f7", "{document:#}");
    // Nobody there: the first complaint stands.
    hosts.run(&["10.9.2.9", "--single-ended"]).refused(3, &["10.9.2.9"]);
    hosts.run(&["10.9.2.9"]).refused(3, &["10.9.2.9", "answers neither ICMP echoes nor UDP"]);
}

/// The size that passes is found by whatever answers. The far kernel answers six datagrams to a
/// closed port at once, and then one a second.
#[test]
#[ignore = "lab: needs namespaces"]
fn where_full_packets_vanish_smaller_ones_measure() {
    let hosts = Hosts::new('c');
    hosts.black_hole(1400);
    for (via, most) in [("icmp", 40), ("tcp", 40), ("udp", 110)] {
        let ended = hosts.run(&["capacity", FAR, "--via", via, "--quiet"]);
        assert!(!ended.stdout.contains("no probe was answered"), "{via}: {ended:?}");
        let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("path MTU 1400 octets IP layer by pmtu"), "{via}: {ended:?}");
        assert!(ended.took < std::time::Duration::from_secs(most), "{via}: {ended:?}");
    }
}

/// Nothing passes that is as large as the least size that is tried: what was asked for in vain is
/// named.
#[test]
#[ignore = "lab: needs namespaces"]
fn where_even_small_packets_vanish_that_is_said() {
    let hosts = Hosts::new('d');
    hosts.black_hole(300);
    for (via, wanted) in [("tcp", "none came to SYNs of 576 octets"), ("udp", "answers to packets of 576 octets")] {
        let ended = hosts.run(&["capacity", FAR, "--via", via, "--quiet"]);
        let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(wanted), "{via}: {ended:?}");
    }
}

/// The control connection outlives four seconds in which nothing arrives, as in a queue that others
/// keep full; the kernel must not end it, nor the server be blamed for that.
#[test]
#[ignore = "lab: needs namespaces"]
fn a_path_that_is_cut_for_four_seconds_costs_no_result() {
    let hosts = Hosts::new('e');
    let slow = ["-n", &hosts.name("r"), "qdisc", "add", "dev", "v2a", "root"];
    call("tc", &[&slow[..], &["tbf", "rate", "2mbit", "burst", "5000", "limit", "60000"]].concat());
    let mut server = hosts.start("f", &["serve", "-v"]);
    server.wait_for("listening on");
    let client = hosts.start("n", &["capacity", FAR, "--quiet"]);
    // Until its UDP passed, four seconds without an answer are a firewall.
    server.wait_for("UDP passes");
    hosts.cut(true);
    std::thread::sleep(std::time::Duration::from_secs(4));
    hosts.cut(false);
    let ended = client.end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.took > std::time::Duration::from_secs(4), "over before the cut was: {ended:?}");
}
