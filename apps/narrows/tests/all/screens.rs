//! Live screens in a real terminal emulator, and the stream of events.

use crate::common;

use std::path::Path;
use std::process::Command;

use crate::documents::keeps;
use common::{Running, Server, client, directory, run, text, until, validate};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A terminal of 100 columns and 30 rows, in which the program runs. It ends with this value.
struct Terminal {
    folder: tempfile::TempDir,
}

impl Terminal {
    fn start(arguments: &str, variables: &str) -> Self {
        let terminal = Self { folder: directory() };
        let program = env!("CARGO_BIN_EXE_narrows");
        let id = terminal.folder.path().join("id");
        let inner = format!("echo $$ > {}; exec {program} {arguments}", text(&id));
        let clean = "env -u NARROWS_TUI -u NO_COLOR -u SSH_CONNECTION -u SSH_TTY LC_ALL=C.UTF-8";
        let line = format!("{clean} {variables} sh -c '{inner}'; echo ended with $?; exec sleep 600");
        terminal.tmux(&["new-session", "-d", "-x", "100", "-y", "30", &line]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let socket = self.folder.path().join("socket");
        let common = ["-S", text(&socket), "-f", "/dev/null"];
        let output = Command::new("tmux").args(common).args(arguments).env_remove("TMUX").output();
        let output = output.expect("tmux is installed");
        assert!(output.status.success(), "tmux {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("a terminal shows text")
    }

    fn shows(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Everything that has scrolled away as well.
    fn all(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-200"])
    }

    #[track_caller]
    fn wait_for(&self, words: &[&str]) -> String {
        let mut shown = String::new();
        until(&format!("{words:?} on the screen"), || {
            shown = self.shows();
            words.iter().all(|word| shown.contains(word))
        });
        shown
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn signal(&self, signal: Signal) {
        let id = std::fs::read_to_string(self.folder.path().join("id")).expect("the program has begun");
        kill(Pid::from_raw(id.trim().parse().expect("an id")), signal).expect("it runs");
    }

    fn is_alternate(&self) -> bool {
        self.tmux(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let socket = self.folder.path().join("socket");
        // It may not have come up.
        let _ = Command::new("tmux").args(["-S", text(&socket), "kill-server"]).output();
    }
}

/// As long as it takes, and little load.
fn test_of(server: &Server) -> String {
    format!("test 127.0.0.1 -p {} --budget \"100 Mbit/s\"", server.port())
}

#[test]
#[ignore = "lab: needs tmux"]
fn a_screen_is_laid_out_anew_paused_frozen_and_ended() {
    let server = Server::start(&[]);
    let terminal = Terminal::start(&test_of(&server), "");
    terminal.wait_for(&["stage", "value", "interval", "path so far", "q end and report", "round trip     done"]);
    assert!(terminal.is_alternate());
    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    terminal.wait_for(&["this host", "log", "freeze"]);
    terminal.tmux(&["resize-window", "-x", "50", "-y", "10"]);
    until("one line", || terminal.shows().trim().lines().count() == 1);
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    terminal.wait_for(&["path so far"]);
    terminal.press("p");
    terminal.wait_for(&["paused: p goes on"]);
    terminal.press("?");
    terminal.wait_for(&["this help"]);
    terminal.press("?");
    terminal.press("f");
    terminal.wait_for(&["frozen: f goes on"]);
    terminal.press("f");
    terminal.press("p");
    until("it goes on", || !terminal.shows().contains("paused"));
    terminal.press("q");
    terminal.wait_for(&["ended with"]);
    // The screen has gone, and the report stands where it was.
    assert!(!terminal.is_alternate());
    let all = terminal.all();
    assert!(all.contains("note: interrupted: this is what was known by then"), "{all}");
    assert!(all.contains("ended with 0") || all.contains("ended with 11"), "{all}");
    assert!(!all.contains("q end and report"), "{all}");
}

#[test]
#[ignore = "lab: needs tmux"]
fn a_signal_ends_it_with_the_report_and_a_second_at_once() {
    let server = Server::start(&[]);
    let terminal = Terminal::start(&test_of(&server), "");
    terminal.wait_for(&["path so far"]);
    terminal.signal(Signal::SIGTERM);
    terminal.wait_for(&["ended with"]);
    assert!(terminal.all().contains("narrows test 127.0.0.1"), "{}", terminal.all());
    assert!(!terminal.is_alternate());

    // Paused, it has nothing to do but to listen.
    let terminal = Terminal::start(&test_of(&server), "");
    terminal.wait_for(&["path so far"]);
    terminal.press("p");
    terminal.wait_for(&["paused"]);
    server.running.signal(Signal::SIGSTOP);
    terminal.press("q");
    terminal.press("q");
    terminal.wait_for(&["ended with"]);
    assert!(!terminal.is_alternate());
    server.running.signal(Signal::SIGCONT);
}

#[test]
#[ignore = "lab: needs tmux"]
fn a_screen_can_be_refused() {
    let server = Server::start(&[]);
    for (flags, variables) in [(" --no-tui", ""), ("", "NARROWS_TUI=0"), ("", "TERM=dumb"), (" --json", "")] {
        let terminal = Terminal::start(&(test_of(&server) + " --quick" + flags), variables);
        terminal.wait_for(&["ended with"]);
        let all = terminal.all();
        assert!(!all.contains("path so far"), "{flags} {variables}: {all}");
    }
}

#[test]
#[ignore = "lab: needs tmux"]
fn transfers_and_watches_have_screens() {
    let server = Server::start(&[]);
    let port = server.port();
    let transfer = format!("throughput 127.0.0.1 -p {port} -t 60 -b 20M -P 2 --ascii");
    let terminal = Terminal::start(&transfer, "NO_COLOR=1");
    let shown = terminal.wait_for(&["a column", "SUM", "limited by", "round trip"]);
    assert!(shown.is_ascii(), "{shown}");
    terminal.press("q");
    terminal.wait_for(&["ended with"]);
    assert!(terminal.all().contains("this host sent"), "{}", terminal.all());

    let watch = format!("available 127.0.0.1 -p {port} --watch --interval \"200 ms\"");
    let terminal = Terminal::start(&watch, "");
    terminal.wait_for(&["narrows available", "window    count", "q end and summarise", "   load "]);
    terminal.press("q");
    terminal.wait_for(&["ended with", "watched for"]);
}

#[test]
fn output_to_a_pipe_has_no_escape_codes() {
    let server = Server::start(&[]);
    let ended = Running::start(&mut client("test", server.address.port(), &["--quick", "--budget", "50 Mbit/s"])).end();
    assert!(ended.stdout.starts_with("narrows test 127.0.0.1"), "{ended:?}");
    assert!(!ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'), "{ended:?}");
}

/// Each line as the schema says, and the events that they are.
#[track_caller]
fn events(stdout: &str) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let events: Vec<Value> = stdout.lines().map(read).collect();
    for event in &events {
        validate(narrows_report::schema::EVENT, event);
    }
    let names: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    let (last, others) = names.split_last().unwrap_or_else(|| panic!("no event: {stdout}"));
    assert!(matches!(*last, "end" | "error"), "{names:?}");
    assert!(!others.contains(&"end") && others.first() == Some(&"start"), "{names:?}");
    let times: Vec<u64> = events.iter().filter_map(|event| event["at_ns"].as_u64()).collect();
    assert!(times.is_sorted(), "{times:?}");
    events
}

fn count(events: &[Value], name: &str) -> usize {
    events.iter().filter(|event| event["event"] == name).count()
}

#[test]
fn a_demo_streams_its_events() {
    let ended = run(&["demo", "--simulate", "--quick", "--json-stream"]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let events = events(&ended.stdout);
    // Four stages begin and end.
    assert_eq!(count(&events, "stage"), 8);
    assert!(count(&events, "progress") > 10);
    let last = events.last().expect("there are some");
    validate(narrows_report::schema::REPORT, &last["data"]);
    assert_eq!(last["data"]["kind"], "demo");
    let ended = events.iter().find(|event| event["data"]["state"] == "ended").expect("a stage that ended");
    keeps("event-1", ended);
    // What was streamed can be followed again.
    let parsed = events.iter().filter_map(|event| narrows_report::events::parse(&event.to_string())).count();
    assert_eq!(parsed, events.len());
}

#[test]
fn measurements_stream_their_events() {
    let server = Server::start(&[]);
    let port = server.address.port();
    let one = Running::start(&mut client("capacity", port, &["--json-stream"])).end();
    let reported = events(&one.stdout);
    assert!(count(&reported, "stage") == 2 && count(&reported, "end") == 1, "{one:?}");
    let transfer = ["--json-stream", "-t", "1", "-b", "10M", "-i", "0.5"];
    let reported = events(&Running::start(&mut client("throughput", port, &transfer)).end().stdout);
    assert!(count(&reported, "interval") >= 2);
    assert!(reported.last().is_some_and(|end| end["data"]["end"].is_object()), "iperf3's shape");
    let watch = ["--watch", "--json-stream", "--interval", "200 ms", "--duration", "1 s"];
    let reported = events(&Running::start(&mut client("available", port, &watch)).end().stdout);
    assert!(count(&reported, "interval") >= 1 && reported.last().is_some_and(|end| end["data"]["kind"] == "summary"));
}

#[test]
fn a_stream_ends_with_what_went_wrong() {
    let folder = directory();
    let file = folder.path().join("events");
    for command in ["test", "capacity", "throughput"] {
        let ended = Running::start(&mut client(command, 1, &["--json-stream", "-o", text(&file)])).end();
        assert_eq!(ended.status.code(), Some(3), "{ended:?}");
        let reported = events(&read(&file));
        assert!(
            reported.last().is_some_and(|last| last["event"] == "error" && last["data"]["code"] == 3),
            "{reported:?}"
        );
    }
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).expect("the stream was written")
}
