//! `narrows hops` over real routers, bridges and hosts joined by real-time links: the paths of
//! [Abut18] tables 7 and 8. Needs privileges and a machine with time to spare, so nothing here runs
//! by itself.
//!
//! Who is on the path, how many hops it has, and that the command ends in the time that it
//! announced are facts whatever the machine does. What a hop carries is judged only if the links
//! had valid timing; it is measured afresh if not, at most three times.

#![expect(clippy::print_stdout, reason = "tests in real time, that print what they measured")]

use crate::common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{ProgramResult, directory, file, narrows, text, validate};
use serde_json::Value;

/// 100, 10 and 100 Mbit/s; `{edge}` stands in the first and the third hop, `{router}` in those that
/// a router ends.
const PATH: &str = r#"
name = "abut18"
[[hop]]
rate = "100 Mbit/s"
delay = "50 us"
queue = "1000 packets"
{edge}
{router}
[[hop]]
rate = "10 Mbit/s"
delay = "50 us"
queue = "1000 packets"
{router}
[[hop]]
rate = "100 Mbit/s"
delay = "50 us"
queue = "1000 packets"
{edge}
"#;

const SWITCH: &str = r#"layer2 = [{ rate = "100 Mbit/s", queue = "1000 packets" }]"#;
/// Linux's own setting: 6 answers at once, and one per second.
const LINUX: &str = "router = { icmp_per_second = 1.0, icmp_burst = 6 }";

/// IP-layer capacities of the hops, bit/s: 1500 of 1538 octets.
const EDGE: f64 = 97.529e6;
const NARROW: f64 = 9.7529e6;
const LINKS: [&[f64]; 3] = [&[EDGE], &[NARROW], &[EDGE]];

/// Every lab spins on a processor of its own: one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn path(edge: &str, router: &str) -> String {
    PATH.replace("{edge}", edge).replace("{router}", router)
}

/// Runs the command at the sender of a lab, towards the receiver, and returns its document.
fn hops(scenario: &str, receiver: &str, flags: &str) -> (Value, ProgramResult) {
    hops_in(&["--no-calibration"], scenario, receiver, flags)
}

/// The same in a lab with these flags.
fn hops_in(lab: &[&str], scenario: &str, receiver: &str, flags: &str) -> (Value, ProgramResult) {
    let home = directory();
    let scenario = file(&home, "path.toml", scenario);
    let program = env!("CARGO_BIN_EXE_narrows");
    let script = format!("exec \"{program}\" hops \"${receiver}\" --json --quiet {flags}");
    let mut call = vec!["lab", "run", text(&scenario)];
    call.extend(lab);
    call.extend(["--", "sh", "-c", &script]);
    let ended = common::Running::start(&mut narrows(call)).end();
    let document = ended.json_line();
    validate(narrows_report::schema::HOPS, &document);
    (document, ended)
}

fn timing_valid(ended: &ProgramResult) -> bool {
    ended.stderr.contains("the links: ") && !ended.stderr.contains("timing not valid")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// What holds on any machine: three hops, each with one router and the remote host at the end.
fn check_facts(document: &Value) {
    let hops = list(document, "hops");
    assert_eq!(hops.len(), 3, "{document:#}");
    assert_eq!(document["reached"], true, "{document:#}");
    let remote = &document["target"]["address"];
    let mut met = Vec::new();
    for (hop, ttl) in hops.iter().zip(1..) {
        assert_eq!(hop["ttl"], ttl);
        let routers = list(hop, "routers");
        assert_eq!(routers.len(), 1, "{hop:#}");
        assert!(!met.contains(&&routers[0]["address"]), "{document:#}");
        met.push(&routers[0]["address"]);
        assert!(hop["probes"]["answered"].as_u64().is_some_and(|count| count > 0), "{hop:#}");
        assert!(hop["round_trip_ns"].as_u64().is_some_and(|time| time > 0), "{hop:#}");
    }
    assert_eq!(met.last(), Some(&remote), "{document:#}");
}

/// What holds where the hosts kept time: no answer came after its train was closed, and no other
/// hop than the narrow one is named.
fn check_timed_facts(document: &Value) {
    assert_eq!(document["unmatched_replies"]["foreign"], 0, "{document:#}");
    assert!(document["narrow_hop"].is_null() || document["narrow_hop"] == 2, "{document:#}");
}

/// Faults of capacities: a number that is off by more than 5 % and whose interval misses the truth,
/// a bound that the truth breaks, or no number of the narrow hop, or of more than one other.
/// `truths` are what each hop may be read as; none where that is not asked here.
fn faults(document: &Value, truths: &[&[f64]; 3]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut silent = 0;
    for (hop, truths) in list(document, "hops").iter().zip(truths) {
        if hop["verdict"] == "inconclusive" && !truths.is_empty() {
            silent += 1;
            if truths.contains(&NARROW) || silent > 1 {
                faults.push(format!("inconclusive, truth {truths:?}: {hop}"));
            }
            continue;
        }
        let number = |key: &str| hop[key].as_f64();
        let right = |&truth: &f64| match (hop["verdict"].as_str(), number("capacity")) {
            (Some("estimated"), Some(value)) => {
                let held = number("low").zip(number("high"));
                // An interval of nine tenths misses by a little once in ten hops.
                (value / truth - 1.0).abs() <= 0.05
                    || held.is_some_and(|(low, high)| (0.9 * low..=1.1 * high).contains(&truth))
            }
            (Some("lower_bound"), Some(value)) => value <= truth * 1.05,
            (Some("upper_bound"), Some(value)) => value >= truth * 0.95,
            _ => false,
        };
        if !truths.is_empty() && !truths.iter().any(right) {
            faults.push(format!("truth {truths:?}: {hop}"));
        }
    }
    faults
}

/// That a hop is inconclusive used to pass if it came with a caveat.
#[test]
fn hops_without_numbers_are_faults() {
    let said = |capacity: f64| serde_json::json!({ "verdict": "estimated", "capacity": capacity });
    let none = || serde_json::json!({ "verdict": "inconclusive", "caveats": [{ "id": "loss" }] });
    let count = |hops: [Value; 3]| faults(&serde_json::json!({ "hops": hops }), &LINKS).len();
    assert_eq!(count([said(EDGE), said(NARROW), said(EDGE)]), 0);
    assert_eq!(count([said(EDGE), said(NARROW), none()]), 0, "one beside the narrow hop may be");
    assert_eq!(count([none(), said(NARROW), none()]), 1);
    assert_eq!(count([said(EDGE), none(), said(EDGE)]), 1);
}

/// Measures until the links had valid timing, at most three times, and judges what it then says;
/// the facts are judged each time.
fn judge(what: &str, scenario: &str, truths: &[&[f64]; 3], further: impl Fn(&Value) -> Vec<String>) {
    for attempt in 1..=3 {
        let (document, ended) = hops(scenario, "NARROWS_RECEIVER", "");
        check_facts(&document);
        let reported: Vec<String> =
            list(&document, "hops").iter().map(|hop| format!("{} ({})", hop["capacity"], hop["verdict"])).collect();
        println!(
            "{what}, measurement {attempt}: {}; {} s, {} octets",
            reported.join(", "),
            document["cost"]["seconds"],
            document["cost"]["octets"]
        );
        if timing_valid(&ended) {
            check_timed_facts(&document);
            let mut faults = faults(&document, truths);
            faults.extend(further(&document));
            assert!(faults.is_empty(), "{what}: {faults:#?}");
            return;
        }
    }
    println!("\nNOT JUDGED: {what}: the links never had valid timing in three measurements");
}

fn nothing(_: &Value) -> Vec<String> {
    Vec::new()
}

#[test]
#[ignore = "judge: needs namespaces"]
fn hops_without_switches() {
    let _alone = alone();
    judge("hops, no switches", &path("", ""), &LINKS, nothing);
}

/// Numbers of the edge hops lie between what a switch in them leaves to single packets and what
/// they are, or their intervals hold one of the two (the originals read 43.3, 33.3 and 44.8 Mbit/s
/// for these). Which of the two it is, real hosts' stamps seldom tell behind the narrow link.
#[test]
#[ignore = "judge: needs namespaces"]
fn hops_with_switches() {
    let _alone = alone();
    judge("hops, switches", &path(SWITCH, ""), &[&[], &[NARROW], &[]], |document| {
        let hops = list(document, "hops");
        let outside = [0, 2].into_iter().filter(|&index| {
            let number = |key: &str| hops[index][key].as_f64();
            let between = |value: f64| (0.85 * EDGE / 2.0..=1.05 * EDGE).contains(&value);
            // An interval of nine tenths that holds one of the readings says as much as it
            // knows.
            let held = number("low").zip(number("high"));
            let holds = |reading: f64| held.is_some_and(|(low, high)| (0.9 * low..=1.1 * high).contains(&reading));
            number("capacity").is_some_and(|value| !between(value) && !holds(EDGE) && !holds(EDGE / 2.0))
        });
        outside.map(|index| format!("outside: {}", hops[index])).collect()
    });
}

/// Six answers at once and one per second: the command says beforehand how long it will take, and
/// takes no longer.
#[test]
#[ignore = "judge: needs namespaces"]
fn hops_with_linuxs_own_limit() {
    let _alone = alone();
    judge("hops, limited routers", &path("", LINUX), &LINKS, |document| {
        let predicted = document["forecast"]["time_ns"].as_f64().map(|ns| ns * 1e-9);
        let took = document["cost"]["seconds"].as_f64();
        match predicted.zip(took) {
            Some((predicted, took)) if took <= predicted * 1.05 + 1.0 => Vec::new(),
            other => vec![format!("predicted and taken: {other:?}")],
        }
    });
}

fn hops_to_a_server() -> (Value, ProgramResult) {
    hops_in(&["--no-calibration", "--serve"], &path("", ""), "NARROWS_RECEIVER", "--param probes=48")
}

/// A server at the peer is found: it tells both whole ways, and stamps packets of the probes'
/// own path.
#[test]
#[ignore = "lab: needs namespaces"]
fn a_server_there_is_used() {
    let _alone = alone();
    let (document, _) = hops_to_a_server();
    check_facts(&document);
    let remote = &document["server"];
    assert_eq!(remote["kind"], "server", "{document:#}");
    assert_eq!(remote["one_way"]["other_way"], false, "{remote:#}");
    assert!(remote["one_way"]["packets"].as_u64().is_some_and(|count| count >= 64), "{remote:#}");
    for way in ["forward", "reverse"] {
        assert_eq!(remote[way]["method"], "capacity", "{remote:#}");
    }
}

/// Its numbers for both ways hold the narrow link's rate.
#[test]
#[ignore = "judge: needs namespaces"]
fn a_server_there_tells_both_ways_rates() {
    let _alone = alone();
    let (document, ended) = hops_to_a_server();
    let remote = &document["server"];
    if !timing_valid(&ended) {
        println!("\nNOT JUDGED: what a server tells of both ways: the links did not keep time");
        return;
    }
    for way in ["forward", "reverse"] {
        assert_eq!(remote[way]["verdict"], "estimated", "{way}: {remote:#}");
        let (low, high) = (remote[way]["low"].as_f64(), remote[way]["high"].as_f64());
        let held = low.zip(high).is_some_and(|(low, high)| 0.9 * low <= NARROW && NARROW <= 1.1 * high);
        assert!(held, "{way}: {remote:#}");
    }
}

/// The other protocols and the other IP version meet the same routers.
#[test]
#[ignore = "lab: needs namespaces"]
fn every_protocol_meets_the_same_hops() {
    let _alone = alone();
    for (flags, receiver) in [
        ("--via icmp --param probes=24", "NARROWS_RECEIVER"),
        ("--tcp --port 9 --param probes=24", "NARROWS_RECEIVER"),
        ("--udp --flows 3 --param probes=24", "NARROWS_RECEIVER"),
        ("-6 --param probes=24", "NARROWS_RECEIVER_IPV6"),
        ("-6 --via icmp --param probes=24", "NARROWS_RECEIVER_IPV6"),
        ("--method pathchar -n -m 5 -c 2 --param step=200", "NARROWS_RECEIVER"),
    ] {
        let (document, _) = hops(&path("", ""), receiver, flags);
        println!("{flags}: {} hops", list(&document, "hops").len());
        check_facts(&document);
    }
}
