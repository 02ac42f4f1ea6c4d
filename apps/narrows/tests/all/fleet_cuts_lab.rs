//! A fleet whose parts are cut off from each other, slow, or have clocks that are set: loading
//! stops or goes on as it should, and what was sent is stored once.

#![expect(clippy::disallowed_methods, reason = "processes in real time, with their deadlines")]

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::fleet_faults::fleet::{AGENTS, BUS, Fleet, HUB, Part, RECORD, loads, within};
use crate::fleet_faults::{busy, ready, same, settle};

const MINUTE: Duration = Duration::from_secs(60);
/// A lease of 10 s, and the time of our own look.
const STOPS_WITHIN: Duration = Duration::from_millis(10_300);

/// Orders a load of a minute, and waits until it is under way.
fn loading(fleet: &Fleet, seconds: u32) -> Part {
    let order = fleet.order(0, 1, &format!("throughput -t {seconds}"));
    within("the load begins", Duration::from_secs(90), || !loads(fleet.home.path()).is_empty());
    std::thread::sleep(Duration::from_secs(4));
    order
}

fn stops(fleet: &Fleet) -> Duration {
    let took = within("the load ends", MINUTE, || loads(fleet.home.path()).is_empty());
    assert!(took < STOPS_WITHIN, "{took:?}");
    took
}

/// It loads all the time.
fn goes_on(fleet: &Fleet, time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        assert!(!loads(fleet.home.path()).is_empty(), "it stopped after {:?}", began.elapsed());
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn waiting(fleet: &Fleet) -> u64 {
    (0..fleet.agents.len()).map(|agent| fleet.own(agent)["spool_runs"].as_u64().unwrap_or(0)).sum()
}

#[test]
#[ignore = "soak: needs namespaces, root, tc"]
fn a_fleet_that_is_cut_from_its_hub_stops_loading_and_loses_nothing() {
    let mut fleet = Fleet::apart(2, false);
    ready(&fleet, 2);
    // Light runs go on, and find something to keep.
    fleet.apply(&busy(1));
    let order = loading(&fleet, 60);
    let net = fleet.net.as_ref().expect("it has hosts");
    net.plug(HUB, "down");
    let took = stops(&fleet);
    println!("loading ended {:.1} s after the hub was cut off", took.as_secs_f64());
    within("results wait", 2 * MINUTE, || waiting(&fleet) > 1);
    assert!(loads(fleet.home.path()).is_empty(), "nobody loads without a lease");
    let faults = fleet.own(0)["faults"].to_string();
    assert!(faults.contains("bus"), "{faults}");
    drop(order);
    let net = fleet.net.as_ref().expect("it has hosts");
    net.plug(HUB, "up");
    within("the hub hears of both", 2 * MINUTE, || fleet.status().is_some());
    fleet.apply("");
    let took = settle(&mut fleet);
    println!("all spools empty {:.0} s after it was back", took.as_secs_f64());
    assert_eq!((0..2).map(|agent| fleet.own(agent)["spool_lost"].as_u64()).collect::<Vec<_>>(), [Some(0); 2]);
    // Loads again, by itself.
    fleet.carry_out(0, 1, "throughput -t 2");
}

#[test]
#[ignore = "soak: needs namespaces, root, tc, nats-server, postgres"]
fn each_part_is_cut_off_or_slow_and_nothing_is_lost() {
    let mut fleet = Fleet::apart(2, true);
    ready(&fleet, 2);
    fleet.apply(&busy(2));
    let plug = |fleet: &Fleet, host, state| fleet.net.as_ref().expect("it has hosts").plug(host, state);
    let drains = |fleet: &Fleet, what: &str| {
        let took = within(what, 4 * MINUTE, || waiting(fleet) == 0);
        println!("{what}: {:.0} s", took.as_secs_f64());
    };
    // Leases are on NATS: neither the hub nor the record is needed for a load.
    for (what, host) in [("the record was cut off", RECORD), ("the hub was cut off", HUB)] {
        let order = loading(&fleet, 45);
        plug(&fleet, host, "down");
        goes_on(&fleet, Duration::from_secs(20));
        within("results wait", 2 * MINUTE, || waiting(&fleet) > 0);
        plug(&fleet, host, "up");
        within("the load ends", MINUTE, || loads(fleet.home.path()).is_empty());
        drop(order);
        drains(&fleet, &format!("{what}; all stored afterwards"));
    }
    let order = loading(&fleet, 45);
    fleet.hub.signal(Signal::SIGSTOP);
    goes_on(&fleet, Duration::from_secs(20));
    within("results wait", 2 * MINUTE, || waiting(&fleet) > 0);
    fleet.hub.signal(Signal::SIGCONT);
    drop(order);
    drains(&fleet, "the hub was stopped; all stored afterwards");
    // A hub behind a modem.
    let net = fleet.net.as_ref().expect("it has hosts");
    net.shape(HUB, "256kbit");
    let order = loading(&fleet, 30);
    goes_on(&fleet, Duration::from_secs(15));
    drop(order);
    drains(&fleet, "the hub is slow; all stored");
    fleet.net.as_ref().expect("it has hosts").shape(HUB, "100mbit");
    // The bus is another matter.
    for (what, host) in [("the source was cut off", AGENTS), ("the bus was cut off", BUS)] {
        let order = loading(&fleet, 60);
        plug(&fleet, host, "down");
        println!("{what}: loading ended after {:.1} s", stops(&fleet).as_secs_f64());
        if host == BUS {
            within("results wait", 2 * MINUTE, || waiting(&fleet) > 0);
        }
        plug(&fleet, host, "up");
        drop(order);
        drains(&fleet, &format!("{what}; all stored afterwards"));
    }
    fleet.apply("");
    settle(&mut fleet);
    println!("{} results sent and stored, each once", same(&mut fleet));
}

#[test]
#[ignore = "soak: needs faketime"]
fn clocks_that_are_set_by_an_hour_move_no_lease() {
    const HOUR: i64 = 3_600;
    let fleet = Fleet::with_clocks(2);
    ready(&fleet, 2);
    for (name, seconds) in [("h0", HOUR), ("h0", -HOUR), ("h1", HOUR), ("hub", HOUR)] {
        let lost = fleet.own(0)["leases_lost"].clone();
        let order = loading(&fleet, 25);
        fleet.set_clock(name, seconds);
        goes_on(&fleet, Duration::from_secs(15));
        within("the load ends", MINUTE, || loads(fleet.home.path()).is_empty());
        assert_eq!(fleet.own(0)["leases_lost"], lost, "{name} by {seconds} s");
        println!("{name} at {seconds:+} s: the load went on, {} results wait", waiting(&fleet));
        drop(order);
        // Back before the next one. A kernel whose clock was set says that nobody disciplines it,
        // so that the agent goes by the hub's time; it knows nothing of this clock.
        fleet.set_clock(name, 0);
        std::thread::sleep(Duration::from_secs(2));
    }
    within("all are stored", 3 * MINUTE, || waiting(&fleet) == 0);
    let lost: Vec<_> = (0..2).map(|agent| fleet.own(agent)["spool_lost"].clone()).collect();
    assert_eq!(lost, [0, 0]);
}

#[test]
#[ignore = "soak: needs faketime"]
fn a_clock_that_is_an_hour_off_is_told_within_a_minute_and_orders_are_carried_out() {
    const HOUR: i64 = 3_600;
    let fleet = Fleet::with_clocks(2);
    ready(&fleet, 2);
    // What stands below the agent; the hub answers a question a second.
    let said = || {
        std::thread::sleep(Duration::from_secs(1));
        let status = fleet.ask(&["fleet", "status"]);
        assert_eq!(status.status.code(), Some(0), "{status:?}");
        let after = status.stdout.lines().skip_while(|line| !line.starts_with("h0 ")).skip(1);
        after.take_while(|line| line.starts_with(' ')).map(ToOwned::to_owned).collect::<Vec<_>>().join("\n")
    };
    for (seconds, words) in [(HOUR, "clock: 1 h ahead of the hub's"), (-HOUR, "clock: 1 h behind the hub's")] {
        fleet.set_clock("h0", seconds);
        let mut last = String::new();
        let took = within(words, MINUTE, || {
            last = said();
            last.contains(words)
        });
        println!("{seconds:+} s: told after {:.0} s", took.as_secs_f64());
        assert!(took < MINUTE, "{took:?}");
        assert!(last.contains("timedatectl"), "it says what to do: {last}");
        let row = &fleet.status().expect("the hub answers")["agents"][0];
        let ahead_ms = row["clock_ahead_ms"].as_i64().expect("it has compared them");
        assert!(ahead_ms.abs_diff(seconds * 1_000) < 1_000, "{ahead_ms}");
        fleet.carry_out(0, 1, "rtt");
        fleet.carry_out(1, 0, "rtt");
        fleet.carry_out(0, 1, "throughput -t 2");
    }
    fleet.set_clock("h0", 0);
    within("it is right again", MINUTE, || !said().contains("clock: "));
}
