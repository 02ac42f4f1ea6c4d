//! `narrows lab`: labs that stay, and what becomes of them. Needs privileges, so what builds a lab
//! does not run by itself.

#![expect(clippy::disallowed_methods, reason = "tests of programs in real time, with their deadlines")]

use crate::common;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{ProgramResult, directory, file, narrows, run, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::real_time::bench::in_time;

/// A real-time hop through a switch, and one that the kernel shapes.
const TWO_HOPS: &str = r#"
name = "two-hops"
[[hop]]
rate = "100 Mbit/s"
delay = "2 ms"
layer2 = [{ rate = "200 Mbit/s" }]
[[hop]]
rate = "20 Mbit/s"
link = "tbf"
burst = "15 kB"
"#;

/// A TCP connection across both hops: only real hosts can carry it.
const WITH_TCP: &str = r#"
name = "with-tcp"
[[hop]]
rate = "50 Mbit/s"
delay = "2 ms"
[[hop]]
rate = "20 Mbit/s"
queue = "50 packets"
[[cross]]
first_hop = 0
last_hop = 1
elastic = "cubic"
"#;

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lab that ends with the test, however that ends.
struct Up(&'static str);

impl Up {
    fn start(id: &'static str, scenario: &str) -> (Self, serde_json::Value) {
        let home = directory();
        let path = file(&home, "scenario.toml", scenario);
        let up = Self(id);
        let ended = run(&["lab", "up", text(&path), "--id", id, "--no-calibration", "--json"]);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        (up, ended.json())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        run(&["lab", "down", self.0]);
    }
}

fn exec(id: &str, node: &str, program: &[&str]) -> ProgramResult {
    let mut call = vec!["lab", "exec", id, node, "--"];
    call.extend(program);
    run(&call)
}

/// Names of namespaces and files that a lab of this name has.
fn traces(id: &str) -> Vec<String> {
    let list = |directory: &str, begin: String| {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.starts_with(&begin)).collect::<Vec<_>>()
    };
    let mut found = list("/run/netns", format!("narrows-lab-{id}-"));
    found.extend(list("/run/narrows", format!("{id}.")));
    found
}

/// One that waits for its parent to notice is dead.
fn is_alive(process: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
#[ignore = "lab: needs namespaces, tc"]
fn a_lab_stays_until_it_is_taken_down() {
    let _alone = alone();
    let (_up, document) = Up::start("cli_stays", TWO_HOPS);
    assert_eq!(document["schema"], 1);
    assert_eq!(document["id"], "cli_stays");
    let nodes = document["nodes"].as_array().expect("a list");
    let names: Vec<&str> = nodes.iter().filter_map(|node| node["name"].as_str()).collect();
    assert_eq!(names, ["sender", "router1", "receiver", "switch1"]);
    assert_eq!(nodes[2]["ipv4"], "10.77.3.1");
    assert_eq!(document["hops"][0]["exact"], true);
    assert_eq!(document["hops"][1]["kind"], "tbf");
    // 1500 of 1538 octets of 20 Mbit/s.
    assert_eq!(document["truth"]["forward"]["capacity_bps"], 19_505_852);
    assert_eq!(document["truth"]["forward"]["calibrated"], false);

    let inside = exec("cli_stays", "receiver", &["ip", "-br", "address"]);
    assert_eq!(inside.status.code(), Some(0), "{inside:?}");
    assert!(inside.stdout.contains("10.77.3.1/32"), "{inside:?}");
    assert_eq!(exec("cli_stays", "router1", &["sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(exec("cli_stays", "router1", &["/no/such/program"]).status.code(), Some(127));
    let routes = exec("cli_stays", "sender", &["ip", "route", "get", "10.77.3.1"]);
    assert!(routes.stdout.contains("via 10.77.1.1 dev path0"), "{routes:?}");

    // Two seconds after the start the holder says how its links do.
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        let status = run(&["lab", "status", "cli_stays", "--json"]).json();
        if !status["labs"][0]["links"].as_array().expect("a list").is_empty() || Instant::now() > deadline {
            break status;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let lab = &status["labs"][0];
    assert_eq!((&lab["id"], &lab["alive"], &lab["ready"]), (&"cli_stays".into(), &true.into(), &true.into()));
    assert_eq!(lab["links"].as_array().map(Vec::len), Some(2), "{status:#}");
    assert!(lab["timing_valid"].is_boolean() && lab["uptime_ns"].as_u64().is_some_and(|uptime| uptime > 0));

    let home = directory();
    let again = file(&home, "scenario.toml", WITH_TCP);
    run(&["lab", "up", text(&again), "--id", "cli_stays"]).refused(2, &["there is a lab cli_stays already"]);

    let process = document["process"].as_u64().expect("a number");
    assert!(is_alive(process));
    let down = run(&["lab", "down", "cli_stays"]);
    assert_eq!((down.status.code(), down.stdout.as_str()), (Some(0), "lab cli_stays is down\n"), "{down:?}");
    assert!(!is_alive(process));
    assert_eq!(traces("cli_stays"), Vec::<String>::new());
    run(&["lab", "exec", "cli_stays", "sender", "--", "true"]).refused(2, &["there is no lab cli_stays"]);
}

#[test]
#[ignore = "lab: needs namespaces, tc"]
fn what_a_killed_holder_leaves_is_removed() {
    let _alone = alone();
    let (_up, document) = Up::start("cli_killed", TWO_HOPS);
    let process = document["process"].as_u64().expect("a number");
    let number = i32::try_from(process).expect("a process");
    kill(Pid::from_raw(number), Signal::SIGKILL).expect("it lives");
    let deadline = Instant::now() + Duration::from_secs(5);
    while is_alive(process) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(traces("cli_killed").len(), 6, "four namespaces, state and log");
    let down = run(&["lab", "down", "cli_killed"]);
    assert_eq!(down.status.code(), Some(0), "{down:?}");
    assert!(down.stderr.contains("cli_killed"), "{down:?}");
    assert_eq!(traces("cli_killed"), Vec::<String>::new());
    run(&["lab", "down", "cli_killed"]).refused(2, &["there is no lab cli_killed"]);
}

#[test]
#[ignore = "lab: needs namespaces"]
fn programs_run_in_labs_of_their_own() {
    let _alone = alone();
    let home = directory();
    let path = file(&home, "scenario.toml", WITH_TCP);
    let shell = "echo $NARROWS_SENDER $NARROWS_RECEIVER; ip -br address show path0; exit 5";
    let call = ["lab", "run", text(&path), "--id", "cli_run", "--node", "receiver", "--", "sh", "-c", shell];
    let ended = run(&call);
    assert_eq!(ended.status.code(), Some(5), "{ended:?}");
    assert!(ended.stdout.starts_with("10.77.0.1 10.77.3.1\n"), "{ended:?}");
    assert!(ended.stdout.contains("10.77.3.1/32"), "{ended:?}");
    assert!(ended.stderr.contains("the links: "), "{ended:?}");
    assert_eq!(traces("cli_run"), Vec::<String>::new());
    let nobody = run(&["lab", "run", text(&path), "--id", "cli_run", "--node", "nobody", "--", "true"]);
    nobody.refused(2, &["no node nobody", "sender, router1, receiver, cross-1-source, cross-1-sink"]);
    assert_eq!(traces("cli_run"), Vec::<String>::new());
}

/// Packets above 1400 octets vanish without a word: the command finds that, and measures with those
/// that pass.
#[test]
#[ignore = "lab: needs namespaces"]
fn a_path_that_drops_full_packets_is_measured_with_smaller_ones() {
    let _alone = alone();
    let program = env!("CARGO_BIN_EXE_narrows");
    let path = crate::pasted::root().join("plans/answers/mtu-black-hole.toml");
    // Exit 3: nobody listens there yet.
    let script =
        format!("for i in $(seq 200); do {program} capacity 10.77.3.1 --quiet; [ $? = 3 ] || break; sleep 0.05; done");
    let ended = run(&["emulate", text(&path), "--receiver", &format!("{program} serve"), "--", "sh", "-c", &script]);
    assert!(!ended.stdout.contains("no probe was answered"), "{ended:?}");
    assert!(ended.stdout.contains("path MTU") && ended.stdout.contains("1400 octets"), "{ended:?}");
}

/// Octets and time, ns, by the counters of a node's one device, read in one call inside it; the
/// counters of what it received are field 0, of what it sent field 8.
fn counted(id: &str, node: &str, field: usize) -> (u64, u64) {
    let read = exec(id, node, &["sh", "-c", "date +%s%N; cat /proc/net/dev"]).stdout;
    let mut lines = read.lines();
    let at = lines.next().and_then(|line| line.parse().ok()).expect("a time");
    let device = lines.find_map(|line| line.trim().strip_prefix("path0:")).expect("the device is in the table");
    (device.split_whitespace().nth(field).and_then(|octets| octets.parse().ok()).expect("a number"), at)
}

/// The connection is there, and data flows over both hops to its sink. How fast is the judge's.
#[test]
#[ignore = "lab: needs namespaces"]
fn elastic_traffic_is_carried_by_hosts() {
    let _alone = alone();
    let (_up, document) = Up::start("cli_tcp", WITH_TCP);
    assert_eq!(document["real_flows"][0]["source"], "cross-1-source");
    let deadline = Instant::now() + Duration::from_secs(60);
    // Beyond what one window carries before the first acknowledgement: ten segments.
    while counted("cli_tcp", "cross-1-sink", 0).0 < 200_000 {
        assert!(Instant::now() < deadline, "{:?}", counted("cli_tcp", "cross-1-source", 8));
        std::thread::sleep(Duration::from_millis(50));
    }
    // The source sent all of that, and has the acknowledgements for it.
    assert!(counted("cli_tcp", "cross-1-source", 8).0 >= 200_000);
    assert!(counted("cli_tcp", "cross-1-source", 0).0 > 0);
}

/// CUBIC cuts its window to seven tenths. The queue of 50 packets holds more than three tenths of
/// what fills it and 4 ms of 20 Mbit/s together, so the second hop is never idle, and the sink
/// receives what that hop carries.
#[test]
#[ignore = "judge: needs namespaces"]
fn elastic_traffic_fills_the_link_that_it_queues_for() {
    const CASE: &str = "elastic traffic over two hops";
    let _alone = alone();
    let found = in_time(CASE, || {
        let (_up, document) = Up::start("cli_fills", WITH_TCP);
        // The first slow start overflows the queue, which takes a second to mend.
        std::thread::sleep(Duration::from_secs(3));
        let (missed, before) = (lapses("cli_fills"), counted("cli_fills", "cross-1-sink", 0));
        std::thread::sleep(Duration::from_secs(4));
        let after = counted("cli_fills", "cross-1-sink", 0);
        // The holder looks every two seconds how its links did.
        std::thread::sleep(Duration::from_millis(2500));
        // A device counts Ethernet headers, the capacity packets of 1500 octets.
        let capacity = document["truth"]["forward"]["capacity_bps"].as_f64().expect("a rate") * 1514.0 / 1500.0;
        let rate = (after.0 - before.0) as f64 * 8.0 / ((after.1 - before.1) as f64 / 1e9);
        let kept = lapses("cli_fills") == missed;
        println!("{CASE}: {rate:.0} of {capacity:.0} bit/s, in time: {kept}");
        ((rate, capacity), if kept { Ok(()) } else { Err("the links kept no time".to_owned()) })
    });
    let Some((rate, capacity)) = found else { return };
    // A hundredth: for so long a link that keeps time may stand still.
    assert!((0.99..=1.01).contains(&(rate / capacity)), "{rate} of {capacity} bit/s");
}

/// How often links of a lab were found not to have had valid timing.
fn lapses(id: &str) -> u64 {
    let status = run(&["lab", "status", id, "--json"]).json();
    let links = status["labs"][0]["links"].as_array().expect("a list").clone();
    links.iter().filter_map(|link| link["lapses"].as_u64()).sum()
}

#[test]
#[ignore = "lab: needs namespaces"]
fn shapers_need_their_program() {
    let _alone = alone();
    let home = directory();
    let path = file(&home, "scenario.toml", TWO_HOPS);
    let mut call = narrows(["lab", "run", text(&path), "--id", "cli_tc", "--", "true"]);
    call.env("PATH", text(home.path()));
    let ended = common::Running::start(&mut call).end();
    ended.refused(1, &["the program tc cannot be run", "iproute2"]);
    assert_eq!(traces("cli_tc"), Vec::<String>::new());
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let home = directory();
    let path = file(&home, "scenario.toml", TWO_HOPS);
    run(&["lab", "up", text(&path), "--id", "a-b"]).refused(2, &["\"a-b\" cannot name a lab"]);
    run(&["lab", "up", "/no/such/file"]).refused(2, &["/no/such/file"]);
    run(&["lab", "exec", "no_such", "sender", "--", "true"]).refused(2, &["there is no lab no_such"]);
    run(&["lab", "exec", "no_such", "sender"]).refused(2, &["PROGRAM"]);
    run(&["lab", "down", "no_such"]).refused(2, &["there is no lab no_such"]);
    run(&["lab", "status", "no_such"]).refused(2, &["there is no lab no_such"]);
}

/// Not the holder but what runs inside keeps the namespaces; it is found and ended, also if it does
/// not want to, and nothing else is.
#[test]
#[ignore = "lab: needs namespaces"]
fn programs_in_a_lab_whose_holder_was_killed_are_ended() {
    let _alone = alone();
    let (_up, document) = Up::start("cli_orphans", WITH_TCP);
    let holder = document["process"].as_u64().expect("a number");
    let start = |program: &[&str]| {
        let mut call = vec!["lab", "exec", "cli_orphans", "router1", "--"];
        call.extend(program);
        narrows(&call).spawn().expect("it starts")
    };
    let mut willing = start(&["sleep", "600"]);
    let mut stubborn = start(&["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]);
    let mut outside = std::process::Command::new("sleep").arg("600").spawn().expect("it starts");
    // Until both are inside.
    let deadline = Instant::now() + Duration::from_secs(20);
    let programs = || run(&["lab", "status", "cli_orphans", "--json"]).json()["labs"][0]["programs"].as_u64();
    while programs() < Some(2) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    kill(Pid::from_raw(i32::try_from(holder).expect("a process")), Signal::SIGKILL).expect("it can be killed");
    while is_alive(holder) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Others leave it alone.
    let status = run(&["lab", "status", "cli_orphans", "--json"]).json();
    assert_eq!(status["labs"][0]["alive"], false, "{status:#}");
    assert!(is_alive(willing.id().into()) && is_alive(stubborn.id().into()));
    let down = run(&["lab", "down", "cli_orphans"]);
    assert_eq!(down.status.code(), Some(0), "{down:?}");
    let ended = [willing.wait(), stubborn.wait()].map(|status| status.is_ok_and(|status| !status.success()));
    assert_eq!(ended, [true, true]);
    assert_eq!(traces("cli_orphans"), Vec::<String>::new());
    assert!(is_alive(outside.id().into()), "it has nothing to do with the lab");
    outside.kill().expect("it can be killed");
    outside.wait().expect("it ended");
}
