//! The binary between two private hosts. Needs privileges and a machine with time to spare, so
//! nothing here runs by itself.
//!
//! What depends on the machine's time (`judge:`) is judged only if the path says that it kept it;
//! if not, it is measured again, at most five times, whatever the result was, and the count is
//! printed.

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests of a program in real time, that print how often they measured"
)]

use crate::common;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{ProgramResult, Running, directory, file, narrows, text, validate};
use narrows_scenario::{PathDirection, Scenario};
use nix::sys::signal::Signal;

const THREE_HOPS: &str = r#"
name = "three-hops"
[[hop]]
rate = "1 Gbit/s"
delay = "1 ms"
[[hop]]
rate = "100 Mbit/s"
delay = "2 ms"
[[hop]]
rate = "200 Mbit/s"
delay = "1 ms"
"#;

/// The path dies some seconds after it has begun.
const CUT: &str = r#"
name = "cut"
[[hop]]
rate = "100 Mbit/s"
delay = "2 ms"
queue = "100 packets"
schedule = [{ at = "6 s", rate = "0 bit/s" }]
"#;

/// Every lab spins on a processor of its own: one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures until the path had valid timing; `None`, reported as not judged, if it never did.
fn measured(
    what: &str,
    measure: impl Fn() -> ProgramResult,
    kept: impl Fn(&ProgramResult) -> bool,
) -> Option<ProgramResult> {
    for attempt in 1..=5 {
        let ended = measure();
        let judged = kept(&ended);
        eprintln!("{what}, measurement {attempt}: {}", if judged { "judged" } else { "did not keep time" });
        if judged {
            println!("\nJUDGED: {what}");
            return Some(ended);
        }
    }
    println!("\nNOT JUDGED: {what}: the machine never had valid timing in five measurements");
    None
}

fn path_timing_valid(ended: &ProgramResult) -> bool {
    !ended.stderr.contains("timing not valid")
}

/// What a command leaves if it does not clean up: named namespaces, and processes.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    names: Vec<String>,
    processes: Vec<String>,
}

/// Marks what this test program starts, and what that starts: other programs of tests have labs of
/// their own meanwhile.
const STARTED_BY: &str = "TEST_STARTED_BY";

fn start(command: &mut Command) -> Running {
    Running::start(command.env(STARTED_BY, std::process::id().to_string()))
}

fn is_marked(process: &str) -> bool {
    let marked = format!("{STARTED_BY}={}", std::process::id());
    let variables = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    variables.split(|octet| *octet == 0).any(|variable| variable == marked.as_bytes())
}

impl Traces {
    /// Of the program whose process had the number `id`, and of those that it started.
    fn of(id: nix::unistd::Pid) -> Self {
        let list = |path: &str| {
            let entries = std::fs::read_dir(path).into_iter().flatten();
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect::<Vec<_>>()
        };
        let names = list("/run/netns").into_iter().filter(|name| name.contains(&id.to_string())).collect();
        let own = std::fs::read_link("/proc/self/ns/net").expect("our own namespace has a name");
        let program = Path::new(env!("CARGO_BIN_EXE_narrows"));
        let processes = list("/proc")
            .into_iter()
            .filter(|name| name.chars().all(|digit| digit.is_ascii_digit()))
            .filter(|process| {
                let elsewhere = std::fs::read_link(format!("/proc/{process}/ns/net")).is_ok_and(|other| other != own);
                let parent = std::fs::read_to_string(format!("/proc/{process}/stat")).ok();
                let is_child = parent.is_some_and(|stat| {
                    let after_name = stat.rsplit(") ").next().unwrap_or_default();
                    after_name.split(' ').nth(1) == Some(id.to_string().as_str())
                });
                let is_ours = std::fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|exe| exe == program);
                is_child || (is_ours && elsewhere && is_marked(process))
            })
            .collect();
        Self { names, processes }
    }

    fn none() -> Self {
        Self { names: Vec::new(), processes: Vec::new() }
    }

    /// A killed process takes a moment to be gone.
    #[track_caller]
    fn assert_gone(id: nix::unistd::Pid) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while Self::of(id) != Self::none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(Self::of(id), Self::none());
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn demo_puts_the_truth_beside_each_estimate_and_cleans_up() {
    let _alone = alone();
    let running = start(&mut narrows(["demo", "--real", "--json", "--quick"]));
    let id = running.id();
    let ended = running.end();
    let document = ended.json();
    validate(narrows_report::schema::REPORT, &document);
    let timing_report = &document["timing"];
    assert!(timing_report["timing_valid"].is_boolean(), "{document:#}");
    Traces::assert_gone(id);
    // The control connection runs over the path, too: one that stood still for most of a second has
    // fallen silent, by its own report.
    let stood_still = timing_report["late_ns_worst"].as_u64().is_some_and(|late| late > 500_000_000);
    if ended.status.code() == Some(3) && stood_still {
        println!("\nNOT JUDGED: demo: the path held packets back for {} ns", timing_report["late_ns_worst"]);
        return;
    }
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    assert!(ended.stderr.starts_with("Demo: three hops between two kernels on this machine, about "), "{ended:?}");
    let stages = timing_report["stages"].as_array().expect("a list");
    let names: Vec<_> = stages.iter().filter_map(|stage| stage["stage"].as_str()).collect();
    assert_eq!(names, ["round_trip_time", "path_mtu", "ip_capacity", "available_ip_capacity"], "{document:#}");
    let attempts: Vec<u64> = stages.iter().filter_map(|stage| stage["attempts"].as_u64()).collect();
    assert!(attempts.iter().all(|attempts| (1..=3).contains(attempts)), "{attempts:?}");
    assert!(attempts.iter().sum::<u64>() <= 4 + 4, "{attempts:?}");
    let decided = stages[2..].iter().all(|stage| stage["valid"] == true);
    assert!(decided || ended.status.code() == Some(11), "{document:#}");
    let rows = document["metrics"].as_array().expect("a list");
    for metric in ["ip_capacity", "available_ip_capacity", "round_trip_time", "path_mtu"] {
        let row = rows.iter().find(|row| row["metric"] == metric);
        assert!(row.is_some_and(|row| row["truth"].is_u64()), "{metric}: {document:#}");
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn a_killed_demo_leaves_nothing() {
    let _alone = alone();
    for wait in [1, 4] {
        let running = start(&mut narrows(["demo", "--real", "--json"]));
        let id = running.id();
        std::thread::sleep(Duration::from_secs(wait));
        running.signal(Signal::SIGKILL);
        assert_eq!(running.end().status.code(), None);
        Traces::assert_gone(id);
    }
}

#[test]
#[ignore = "lab: needs namespaces"]
fn an_interrupted_demo_prints_what_it_knows() {
    let _alone = alone();
    let mut running = start(&mut narrows(["demo", "--real", "--json", "-v"]));
    let id = running.id();
    running.wait_for("method=\"available\"");
    let interrupted = Instant::now();
    running.signal(Signal::SIGINT);
    let ended = running.end();
    assert!(interrupted.elapsed() < Duration::from_secs(30), "{ended:?}");
    assert!(matches!(ended.status.code(), Some(0 | 11)), "{ended:?}");
    validate(narrows_report::schema::REPORT, &ended.json());
    Traces::assert_gone(id);
}

fn emulate(scenario: &Path, receiver: Option<&str>, program: &[&str]) -> ProgramResult {
    let mut call = vec!["emulate", text(scenario)];
    if let Some(receiver) = receiver {
        call.extend(["--receiver", receiver]);
    }
    call.push("--");
    call.extend(program);
    let running = start(&mut narrows(&call));
    let id = running.id();
    let ended = running.end();
    Traces::assert_gone(id);
    ended
}

/// The receiver's address, as `emulate` announces it.
const RECEIVER: &str = "10.77.3.1";

#[test]
#[ignore = "judge: needs namespaces, ping"]
fn ping_sees_the_round_trip() {
    let _alone = alone();
    let home = directory();
    let path = file(&home, "three.toml", THREE_HOPS);
    let truth = Scenario::from_toml(THREE_HOPS).expect("a scenario").truth(PathDirection::Forward).base_rtt(84, 84);
    let call = ["ping", "-c", "20", "-i", "0.02", RECEIVER];
    let Some(ended) = measured("ping", || emulate(&path, None, &call), path_timing_valid) else {
        return;
    };
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let numbers = ended.stdout.lines().find_map(|line| line.split_once("min/avg/max")).expect("a summary");
    let least: f64 =
        numbers.1.split(" = ").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok()).expect("a number");
    let truth = truth.as_secs_f64() * 1e3;
    // ping prints microseconds.
    assert!((truth - 0.001..=truth + 0.3).contains(&least), "{least} ms, truth {truth} ms");
}

#[test]
#[ignore = "lab: needs namespaces, traceroute"]
fn traceroute_meets_every_hop_of_a_lab() {
    let _alone = alone();
    let home = directory();
    let path = file(&home, "three.toml", THREE_HOPS);
    let ended = emulate(&path, None, &["traceroute", "-n", "-w", "1", RECEIVER]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let shown: Vec<&str> = ended
        .stdout
        .lines()
        .filter(|line| line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert_eq!(shown, ["10.77.1.1", "10.77.1.2", RECEIVER], "{ended:?}");
}

/// The receiver's program ends with the path, and so does whatever it started.
#[test]
#[ignore = "lab: needs namespaces"]
fn nothing_that_the_receiver_started_outlives_the_path() {
    let _alone = alone();
    let home = directory();
    let path = file(&home, "three.toml", THREE_HOPS);
    let script = file(&home, "receiver.sh", "sleep 3600 & echo $! > \"$1\"; wait\n");
    let pid = home.path().join("pid");
    let receiver = format!("sh {} {}", text(&script), text(&pid));
    let wait = format!("until [ -s {} ]; do sleep 0.02; done", text(&pid));
    let ended = emulate(&path, Some(&receiver), &["sh", "-c", &wait]);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let pid = std::fs::read_to_string(&pid).expect("the receiver wrote it");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

/// A TUN interface has neither a link address nor link headers.
#[test]
#[ignore = "lab: needs namespaces"]
fn an_interface_without_link_headers_is_listened_to() {
    let _alone = alone();
    let home = directory();
    let path = file(&home, "three.toml", THREE_HOPS);
    let narrows = env!("CARGO_BIN_EXE_narrows");
    // Connections come until it has listened long enough, however late it began.
    let script = format!(
        "{narrows} passive -i path0 -d 1 --json & \
         while kill -0 $! 2> /dev/null; do {narrows} rtt {RECEIVER} --via tcp:9 --quiet > /dev/null; done"
    );
    let ended = emulate(&path, None, &["sh", "-c", &script]);
    let row = ended.json_line();
    assert!(row["counts"]["tcp"].as_u64() > Some(0), "{row:#}");
    assert_eq!(row["counts"]["other_link"], 0, "{row:#}");
}

/// The receiving host runs nothing but its kernel, and a reflector in one case: round trips from
/// one end.
#[test]
#[ignore = "judge: needs namespaces"]
fn round_trips_need_no_server() {
    let _alone = alone();
    let home = directory();
    let path = file(&home, "three.toml", THREE_HOPS);
    let scenario = Scenario::from_toml(THREE_HOPS).expect("a scenario");
    let truth = scenario.truth(PathDirection::Forward);
    let narrows = env!("CARGO_BIN_EXE_narrows");
    let serve = format!("{narrows} serve --stamp");
    for (via, remote, back, receiver) in [
        ("icmp", 64, 64, None),
        ("udp", 64, 92, None),
        ("tcp:9", 64, 40, None),
        ("stamp", 72, 72, Some(serve.as_str())),
    ] {
        let script = format!("sleep 1; {narrows} rtt {RECEIVER} --via {via} --quiet --json");
        let measure = || emulate(&path, receiver, &["sh", "-c", &script]);
        let Some(ended) = measured(&format!("rtt via {via}"), measure, path_timing_valid) else {
            continue;
        };
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let row = ended.json_line();
        let value = row["value"].as_u64().expect("a number") as f64 * 1e-9;
        let base = truth.base_rtt(remote, back).as_secs_f64();
        assert!((base..base + 500e-6).contains(&value), "{via}: {value} for {base}");
    }
}

/// A reflector's stamps tell the forward direction from the reverse direction, which is narrower
/// and lossy here.
#[test]
#[ignore = "judge: needs namespaces"]
fn a_reflector_shows_the_way_there() {
    const ASYMMETRIC: &str = r#"
name = "asymmetric"
[[hop]]
rate = "100 Mbit/s"
delay = "2 ms"
[[hop]]
rate = "40 Mbit/s"
delay = "1 ms"
[[reverse]]
rate = "15 Mbit/s"
delay = "2 ms"
[[reverse]]
rate = "100 Mbit/s"
delay = "1 ms"
"#;
    let _alone = alone();
    let home = directory();
    let path = file(&home, "asymmetric.toml", ASYMMETRIC);
    let truth =
        Scenario::from_toml(ASYMMETRIC).expect("a scenario").truth(PathDirection::Forward).capacity(1500).as_f64();
    let narrows = env!("CARGO_BIN_EXE_narrows");
    let script = format!("sleep 1; {narrows} capacity {RECEIVER} --via stamp --quiet --json");
    let measure = || emulate(&path, Some(&format!("{narrows} serve --stamp")), &["sh", "-c", &script]);
    let Some(ended) = measured("capacity via stamp", measure, path_timing_valid) else {
        return;
    };
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let row = ended.json_line();
    let value = row["value"].as_u64().expect("a number") as f64;
    assert!((value / truth - 1.0).abs() < 0.03, "{value} for {truth}: {row:#}");
    assert_eq!(row["direction"], "forward");
}

#[test]
#[ignore = "judge: needs namespaces, iperf3"]
fn iperf3_sees_the_rate() {
    let _alone = alone();
    let home = directory();
    let path = file(&home, "three.toml", THREE_HOPS);
    let script = format!("sleep 0.5; exec iperf3 -c {RECEIVER} -u -b 140M -l 1472 -t 3 -f k");
    let Some(ended) =
        measured("iperf3", || emulate(&path, Some("iperf3 -s -1"), &["sh", "-c", &script]), path_timing_valid)
    else {
        return;
    };
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    // The server's own report, which may stand there too, picks its unit itself.
    let mut lines = ended.stdout.lines();
    let line = lines.find(|line| line.ends_with("receiver") && line.contains("Kbits/sec")).expect("a summary");
    let words: Vec<&str> = line.split_whitespace().collect();
    let unit = words.iter().position(|&word| word == "Kbits/sec").expect("a rate");
    let payload_kbps: f64 = words[unit - 1].parse().expect("a number");
    let capacity = Scenario::from_toml(THREE_HOPS).expect("a scenario").truth(PathDirection::Forward).capacity(1500);
    let ratio = payload_kbps * 1e3 / (capacity.as_f64() * 1_472.0 / 1_500.0);
    // Its own clocking of three seconds is good for a percent or two.
    assert!((0.97..=1.02).contains(&ratio), "{ratio}: {ended:?}");
}

#[test]
#[ignore = "lab: needs namespaces"]
fn emulate_ends_as_its_program_does() {
    let _alone = alone();
    let home = directory();
    let path = file(&home, "three.toml", THREE_HOPS);
    assert_eq!(emulate(&path, Some("sleep 100"), &["sh", "-c", "exit 7"]).status.code(), Some(7));
    let ended = emulate(&path, Some("sleep 100"), &["/nonexistent/program"]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("/nonexistent/program"), "{ended:?}");
    let ended = emulate(&path, Some("/nonexistent/receiver"), &["true"]);
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("/nonexistent/receiver"), "{ended:?}");
}

#[test]
#[ignore = "lab: needs namespaces"]
fn a_path_that_is_cut_in_the_middle() {
    let _alone = alone();
    let home = directory();
    let path = file(&home, "cut.toml", CUT);
    let program = env!("CARGO_BIN_EXE_narrows");
    let address = RECEIVER;
    let script = format!("sleep 1; exec {program} test {address} --json");
    let began = Instant::now();
    let ended = emulate(&path, Some(&format!("{program} serve")), &["sh", "-c", &script]);
    assert!(began.elapsed() < Duration::from_secs(50), "{ended:?}");
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let document = ended.json();
    validate(narrows_report::schema::REPORT, &document);
    assert_eq!(document["error"]["code"], 3, "{document:#}");
    let complaint = document["error"]["text"].as_str().expect("a text");
    assert!(ended.stderr.contains(complaint), "{ended:?}");
    let rows = document["metrics"].as_array().expect("a list");
    assert!(rows.iter().any(|row| row["metric"] == "round_trip_time" && row["value"].is_u64()), "{document:#}");
}

const TWO_ROWS: &str = r#"
name = "two-rows"
about = "ours and another program over one path"
worlds = ["lab"]
keep = "lab"
runs = { lab = 1 }

[[scenario]]
file = "one.toml"

[[method]]
name = "rtt"

[[external_tool]]
name = "iperf3-udp"
params = { seconds = 2 }

[[external_tool]]
file = "absent.toml"
"#;

const ABSENT: &str = r#"
name = "absent"
about = "a program that nobody has"
metric = "ip_capacity"
layer = "ip"
program = { needs = ["no-such-program"] }
client = { command = ["no-such-program"], timeout = "1 s" }
read = { pattern = "(?P<value>.)" }
"#;

/// Ours and another program's rows, from plan to JSON, and one that is not installed.
#[test]
#[ignore = "lab: needs namespaces, iperf3"]
fn a_plan_is_evaluated_in_the_lab() {
    let _alone = alone();
    let directory = directory();
    let one = "name = \"one\"\n[[hop]]\nrate = \"50 Mbit/s\"\ndelay = \"2 ms\"\nqueue = \"100 packets\"\n";
    file(&directory, "one.toml", one);
    file(&directory, "absent.toml", ABSENT);
    let plan = file(&directory, "plan.toml", TWO_ROWS);
    let runs = directory.path().join("runs");
    let arguments = ["evaluate", text(&plan), "--world", "lab", "--json", "--quiet", "--runs-dir", text(&runs)];
    let ended = start(&mut narrows(arguments)).end();
    let document = ended.json();
    let row = |method: &str| {
        let rows = document["rows"].as_array().unwrap();
        rows.iter().find(|row| row["method"] == method).unwrap().clone()
    };
    assert_eq!(row("absent")["status"], "not_installed", "{document}");
    for method in ["rtt", "iperf3-udp"] {
        let row = row(method);
        assert_eq!(row["status"], "measured", "{row}");
        assert!(row["judged_runs"].is_u64(), "{row}");
    }
    assert!(row("iperf3-udp")["peak_rate_bps"].is_null());
    // Run again: nothing is left to do.
    let again = start(&mut narrows(arguments)).end();
    assert_eq!(again.json()["rows"], document["rows"]);
    assert!(again.took < Duration::from_secs(50), "{:?}", again.took);
}
