//! Commands of a fleet beside a hub that runs: what they refuse, and what they tell the caller.

use std::path::PathBuf;

use nix::sys::signal::Signal;

use crate::common::{ProgramResult, Running, directory, free_port, narrows, run, text, until};

/// A hub on loopback.
struct Hub {
    running: Running,
    state: PathBuf,
    url: String,
}

impl Hub {
    fn start(state: PathBuf, port: u16) -> Self {
        let listen = format!("127.0.0.1:{port}");
        let words = ["hub", "--listen", &listen, "--bus-size", "200 MB", "--json", "--state", text(&state)];
        let hub = Self { running: Running::start(&mut narrows(words)), url: format!("https://{listen}"), state };
        until("the hub answers", || hub.ask(&["fleet", "status", "--json"]).status.code() == Some(0));
        hub
    }

    /// A command for the hub, with its state directory.
    fn ask(&self, words: &[&str]) -> ProgramResult {
        run(&[words, &["--state", text(&self.state)]].concat())
    }

    /// A token by which one host joins.
    fn token(&self) -> String {
        let line = self.ask(&["hub", "token"]);
        assert_eq!(line.status.code(), Some(0), "{line:?}");
        line.stdout.trim().rsplit(' ').next().expect("it ends with the token").to_owned()
    }

    fn end(self) {
        self.running.signal(Signal::SIGTERM);
        let ended = self.running.end();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
}

#[test]
fn a_host_that_joins_again_is_told_whether_it_still_belongs() {
    let (home, port) = (directory(), free_port());
    let path = |name: &str| home.path().join(name);
    let (hub, agent) = (Hub::start(path("hub"), port), path("agent"));
    let url = hub.url.clone();
    let join = |token: &str| run(&["agent", "join", &url, token, "--name", "a", "--state", text(&agent)]);
    let token = hub.token();
    assert_eq!(join(&token).status.code(), Some(0));
    // Another host comes too late.
    let late = run(&["agent", "join", &url, &token, "--name", "b", "--state", text(&path("b"))]);
    late.refused(4, &["the hub refuses: this token is not valid"]);
    let again = join(&token);
    assert!(again.status.code() == Some(0) && again.stderr.contains("belongs to the fleet"), "{again:?}");
    // What is no member any more needs a token that is good for one.
    assert_eq!(hub.ask(&["hub", "revoke", "a"]).status.code(), Some(0));
    join(&token).refused(4, &["a is no member any more"]);
    let anew = join(&hub.token());
    assert!(anew.status.code() == Some(0) && anew.stdout.contains("a-2 joined the fleet"), "{anew:?}");
    hub.end();
    let away = join(&token);
    assert!(away.status.code() == Some(0) && away.stderr.contains("does not answer"), "{away:?}");
    // The same address, another hub.
    let rebuilt = Hub::start(path("rebuilt"), port);
    join(&rebuilt.token()).refused(2, &["another key", "narrows agent leave"]);
    join(&token).refused(4, &["another hub answers at this address"]);
    rebuilt.end();
}

#[test]
fn a_fleet_without_values_names_no_link() {
    let home = directory();
    let hub = Hub::start(home.path().join("hub"), free_port());
    let shown = hub.ask(&["fleet", "bottlenecks"]);
    let line = "available: 0 paths measured; a located link holds back 0, 0 have several candidates\n";
    assert_eq!((shown.status.code(), shown.stdout.as_str()), (Some(0), line), "{shown:?}");
    let json = hub.ask(&["fleet", "bottlenecks", "--metric", "capacity", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&json.stdout).expect("one JSON object");
    assert_eq!((&found["metric"], &found["measured_pairs"]), (&"capacity".into(), &0.into()), "{found}");
    hub.ask(&["fleet", "bottlenecks", "--metric", "rtt"]).refused(2, &["links have a `capacity`"]);
    hub.ask(&["fleet", "bottlenecks", "--prove", "nothing"]).refused(2, &["nothing"]);
    hub.end();
}

#[test]
fn a_record_that_a_hub_writes_to_is_copied_and_not_moved() {
    let (home, port) = (directory(), free_port());
    let path = |name: &str| home.path().join(name);
    let hub = Hub::start(path("hub"), port);
    let (moved, copy) = (format!("sqlite:{}", path("moved.db").display()), path("copy.db"));
    hub.ask(&["hub", "move", "--store", &moved]).refused(2, &["a hub works in", "stop it first"]);
    hub.ask(&["hub", "run", "--listen", "127.0.0.1:0"]).refused(2, &["a hub works in"]);
    let copied = hub.ask(&["hub", "backup", text(&copy)]);
    assert!(copied.status.code() == Some(0) && copied.stdout.starts_with("copied "), "{copied:?}");
    let state = hub.state.clone();
    hub.end();
    let sound = run(&["hub", "check", "--state", text(&state), "--store", &format!("sqlite:{}", copy.display())]);
    assert_eq!(sound.status.code(), Some(0), "{sound:?}");
    let ended = run(&["hub", "move", "--store", &moved, "--state", text(&state)]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}
