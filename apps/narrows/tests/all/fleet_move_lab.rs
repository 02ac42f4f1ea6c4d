//! The bus of a small fleet moves from the hub to NATS, and nobody joins again.

use crate::common::{TIMEOUT, free_port, run, text};
use crate::fleet_faults::fleet::{BUS, Fleet, RECORD, answered, nats, within};
use crate::fleet_faults::postgres::Cluster;

/// As a new user would: the fleet outgrows the hub's own bus and record.
#[test]
#[ignore = "lab: needs namespaces, root, tc, nats-server, postgres"]
fn a_fleet_moves_to_nats_and_postgresql_and_nobody_joins_again() {
    let mut fleet = Fleet::apart(3, false);
    let cells = |fleet: &Fleet| fleet.status().as_ref().and_then(answered);
    let full = within("six cells", TIMEOUT, || cells(&fleet) == Some(6));
    println!("6 of 6 cells {:.1} s after the third join", full.as_secs_f64());
    // The hub refuses whoever asks more than twenty times a second.
    let joined = |fleet: &Fleet| -> Vec<u64> {
        let mut found = Vec::new();
        within("the agents are named", TIMEOUT, || {
            let status = fleet.status().unwrap_or_default();
            let agents = status["agents"].as_array().cloned().unwrap_or_default();
            found = agents.iter().filter_map(|agent| agent["joined_ms"].as_u64()).collect();
            !found.is_empty()
        });
        found
    };
    let before = joined(&fleet);
    assert_eq!(before.len(), 3);
    let (port, place) = (free_port(), fleet.place(BUS));
    let (server, record) = (nats(fleet.home.path(), port, &place), Cluster::new(fleet.place(RECORD)));
    let (bus, store) = (format!("nats://{}:{port}", place.address), record.url());
    fleet.hub.end();
    let moved = fleet.ask(&["hub", "move", "--bus", &bus, "--store", &store]);
    assert_eq!(moved.status.code(), Some(0), "{moved:?}");
    println!("{}", moved.stdout.trim());
    (fleet.nats, fleet.postgres) = (Some(server), Some(record));
    fleet.replace_hub(Some(&bus), Some(&store));
    within("all go by the new bus", TIMEOUT, || {
        (0..3).all(|agent| {
            let file =
                std::fs::read_to_string(fleet.path(&format!("h{agent}")).join("joined.json")).unwrap_or_default();
            file.contains(&bus) && fleet.own(agent)["spool_runs"] == 0
        })
    });
    within("all are there", TIMEOUT, || fleet.online() == 3);
    assert_eq!(joined(&fleet), before, "who joined when");
    within("what was measured is there", TIMEOUT, || cells(&fleet) == Some(6));
    let stored = |fleet: &Fleet| -> u64 {
        let count = fleet.postgres.as_ref().expect("it is there").sql("fleet", "select count(*) from run");
        count.trim().parse().expect("a count")
    };
    let copied = stored(&fleet);
    fleet.carry_out(0, 2, "throughput -t 2");
    within("what is measured now is stored there", TIMEOUT, || stored(&fleet) > copied);
    println!("{copied} runs copied, {} in the new record", stored(&fleet));
}

#[test]
#[ignore = "lab: needs nats-server"]
fn agents_follow_the_bus_and_nobody_joins_again() {
    let mut fleet = Fleet::embedded(2);
    within("both are there", TIMEOUT, || fleet.online() == 2);
    // One of them is not there when the bus moves, nor when the hub comes back.
    fleet.agents[1].end();
    let port = free_port();
    let server = nats(fleet.home.path(), port, &fleet.place(0));
    let bus = format!("nats://127.0.0.1:{port}");
    let state = fleet.path("hub");
    fleet.hub.end();
    let moved = run(&["hub", "move", "--bus", &bus, "--state", text(&state)]);
    assert_eq!(moved.status.code(), Some(0), "{moved:?}");
    assert!(moved.stdout.contains("2 agents"), "{moved:?}");
    fleet.replace_hub(Some(&bus), None);
    fleet.nats = Some(server);
    let on_nats = |fleet: &Fleet, agent: usize| {
        let file = std::fs::read_to_string(fleet.path(&format!("h{agent}")).join("joined.json")).unwrap_or_default();
        file.contains(&bus)
    };
    let first = within("the first one follows", TIMEOUT, || on_nats(&fleet, 0));
    fleet.agents[1].start();
    let second = within("so does the one that was away", TIMEOUT, || on_nats(&fleet, 1));
    println!("on the new bus after {:.1} s and {:.1} s", first.as_secs_f64(), second.as_secs_f64());
    // Orders, plans and results go by the new bus.
    within("both are there again", TIMEOUT, || fleet.online() == 2);
    let spools = |fleet: &Fleet| (0..2).all(|agent| fleet.own(agent)["spool_runs"] == 0);
    within("their spools are empty", TIMEOUT, || spools(&fleet));
    let listens = |agent: usize| std::net::TcpStream::connect(format!("127.0.0.1:{}", fleet.port(agent))).is_ok();
    within("both serve", TIMEOUT, || listens(0) && listens(1));
    for pair in [["h0", "h1"], ["h1", "h0"]] {
        let ended = run(&["fleet", "run", pair[0], pair[1], "--state", text(&state), "--", "rtt"]);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
    let faults: Vec<_> = (0..2).map(|agent| fleet.own(agent)["faults"].clone()).collect();
    assert!(faults.iter().all(serde_json::Value::is_null), "{faults:?}");
    // It cannot be moved from where it is not.
    fleet.hub.end();
    std::fs::remove_file(state.join("bus.db")).expect("the bus of before");
    run(&["hub", "move", "--bus", &bus, "--state", text(&state)]).refused(2, &["not in the hub"]);
    fleet.hub.start();
}
