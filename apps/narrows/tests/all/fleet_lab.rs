//! A fleet as a new user starts it: a hub and three agents in four namespaces on a bridge, with
//! nothing but the program.

#![expect(clippy::disallowed_methods, reason = "a fleet in real time, with its deadline")]

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{TIMEOUT, directory, text, until};
use crate::documents::keeps;
use crate::fleet_faults::bridge::{Bridge, address};
use crate::fleet_faults::fleet::answered;

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
    asked("six cells", || answered(&status()) == Some(6));
    keeps("fleet-status-1", &status());
    println!("6 of 6 cells {:.1} s after the third join", joined.elapsed().as_secs_f64());
    let links = || fleet.run(0, &["fleet", "bottlenecks", "--json", "--state", text(&hub_state)]);
    asked("values of all paths, by link", || links()["measured_pairs"] == 6);

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
