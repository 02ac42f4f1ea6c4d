//! A fleet as a new user starts it: a hub and three agents in four namespaces on a bridge, with
//! nothing but the program.

#![expect(clippy::disallowed_methods, reason = "a fleet in real time, with its deadline")]

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Running, TIMEOUT, directory, narrows, text, until};
use crate::documents::keeps;

/// A hub, three agents, and between them a bridge; gone when dropped.
struct Bridge {
    hosts: Vec<String>,
    bridge: String,
}

fn ip(arguments: &str) {
    let ended = Command::new("ip").args(arguments.split_whitespace()).output().expect("there is `ip`");
    assert!(ended.status.success(), "ip {arguments}: {ended:?}");
}

fn tc(namespace: &str, arguments: &str) {
    let ended = Command::new("tc").args(["-n", namespace]).args(arguments.split(' ')).output().expect("there is `tc`");
    assert!(ended.status.success(), "tc {arguments}: {ended:?}");
}

impl Bridge {
    fn new(hosts: usize) -> Self {
        let name = |role: &str| format!("nwf{role}-{}", std::process::id());
        let fleet = Self { hosts: (0..hosts).map(|host| name(&host.to_string())).collect(), bridge: name("b") };
        for name in fleet.all() {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        ip(&format!("-n {} link add bridge0 type bridge", fleet.bridge));
        ip(&format!("-n {} link set bridge0 up", fleet.bridge));
        for (number, name) in fleet.hosts.iter().enumerate() {
            ip(&format!("-n {} link add port{number} type veth peer name eth0 netns {name}", fleet.bridge));
            ip(&format!("-n {} link set port{number} master bridge0 up", fleet.bridge));
            // What a host of a small site has: light runs on a path without a rate see the hosts.
            let shaped = format!("qdisc add dev port{number} root tbf rate 100mbit burst 15kb latency 50ms");
            tc(&fleet.bridge, &shaped);
            ip(&format!("-n {name} addr add {}/24 dev eth0", address(number)));
            ip(&format!("-n {name} link set eth0 up"));
        }
        fleet
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.hosts.iter().chain([&self.bridge])
    }

    /// The program within a host.
    fn within(&self, host: usize, arguments: &[&str]) -> Command {
        let program = narrows(arguments);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.hosts[host]]).arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    fn start(&self, host: usize, arguments: &[&str]) -> Running {
        Running::start(&mut self.within(host, arguments))
    }

    fn run(&self, host: usize, arguments: &[&str]) -> Value {
        let ended = self.start(host, arguments).end();
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {ended:?}");
        serde_json::from_str(&ended.stdout).unwrap_or(Value::Null)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        for name in self.all() {
            // Best effort: a namespace that is left behind holds nothing but itself.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn address(host: usize) -> String {
    format!("10.98.0.{}", host + 1)
}

/// Its output goes into a file, which is read while it runs.
struct Hub(Child);

impl Drop for Hub {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks the hub until it says so: a few times a second, because it refuses more than twenty.
#[track_caller]
fn asked(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !happened() {
        assert!(Instant::now() < deadline, "{what}: it never came");
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// The first line that the hub prints.
fn announced(output: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(output).ok()?;
    serde_json::from_str(text.lines().next()?).ok()
}

#[test]
#[ignore = "lab: needs namespaces, root, tc"]
fn three_agents_fill_the_matrix_with_nothing_but_the_program() {
    let (fleet, home) = (Bridge::new(4), directory());
    let path = |name: &str| home.path().join(name);
    let (hub_state, output) = (path("hub"), path("hub.json"));
    let mut hub = fleet.within(0, &["hub", "--listen", &format!("{}:8622", address(0)), "--json"]);
    hub.args(["--state", text(&hub_state)]).stdin(std::process::Stdio::null());
    hub.stdout(std::fs::File::create(&output).expect("a temporary directory can be written"));
    let _hub = Hub(hub.spawn().expect("the hub starts"));
    until("the hub's first line", || announced(&output).is_some());
    let announced = announced(&output).expect("it was there");
    let (url, join) = (announced["url"].as_str().expect("a URL"), announced["join"].as_str().expect("a token"));

    let homes: Vec<_> = (1..4).map(|host| path(&format!("agent{host}"))).collect();
    let mut agents = Vec::new();
    for (host, state) in (1..).zip(&homes) {
        let name = format!("h{host}");
        fleet.run(host, &["agent", "join", url, join, "--name", &name, "--state", text(state)]);
        agents.push(fleet.start(host, &["agent", "run", "--state", text(state)]));
    }
    let joined = Instant::now();
    let status = || fleet.run(0, &["fleet", "status", "--json", "--state", text(&hub_state)]);
    let with_value = || status()["matrix"]["with_value"].as_u64();
    asked("six cells", || with_value() == Some(6));
    keeps("fleet-status-1", &status());
    println!("6 of 6 cells {:.1} s after the third join", joined.elapsed().as_secs_f64());

    for (host, state) in (1..).zip(&homes) {
        let own = fleet.run(host, &["agent", "status", "--json", "--state", text(state)]);
        let faults = &own["status"]["faults"];
        assert!(own["runs"] == true && faults.is_null(), "{own}");
    }
    for agent in agents {
        agent.signal(nix::sys::signal::Signal::SIGTERM);
        let ended = agent.end();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
    // It leaves, and the hub hears of it.
    fleet.run(1, &["agent", "leave", "--state", text(&homes[0])]);
    let left = |status: Value| {
        let agents = status["agents"].as_array().cloned().unwrap_or_default();
        agents.iter().any(|agent| agent["name"] == "h1" && agent["state"] == "left")
    };
    asked("the hub hears of it", || left(status()));
    let ended = fleet.start(1, &["agent", "status", "--state", text(&homes[0])]).end();
    ended.refused(2, &["has not joined a fleet"]);
}
