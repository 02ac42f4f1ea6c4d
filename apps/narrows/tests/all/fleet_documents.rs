//! What agents and hub of a fleet say to each other: agents may be older than their hub, so these
//! documents are kept like all others.

use narrows_fleet::message::{
    BusAddress, Claim, Directed, Direction, Exit, Flag, Hop, HubTime, Order, Origin, Peer, Plan, PlannedRun, Run,
    ServerKey, Status, Stored, Value,
};
use narrows_units::{Metric, Unit};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::documents::{keeps, stored};

fn name<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("a name")
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(ToOwned::to_owned).collect()
}

const ID: Uuid = Uuid::from_u128(0x019a_b3c4_0000_7000_8000_0000_0000_0001);
const AT_MS: i64 = 1_795_464_000_000;

fn run() -> Run {
    let value = Value {
        metric: Metric::AvailableIpCapacity,
        direction: Direction::Forward,
        unit: Unit::BitPerSecond,
        claim: Claim::Estimate,
        value: 67.5e6,
        low: 64e6,
        high: 71e6,
    };
    let hops = vec![Hop { address: "192.0.2.1".parse().ok() }, Hop { address: None }];
    Run {
        schema: Run::SCHEMA.to_owned(),
        id: ID,
        agent: name("ams-1"),
        seq: 7,
        target: name("fra-1"),
        kind: "available".to_owned(),
        origin: Origin::Order(ID),
        began_ms: AT_MS,
        length_ms: 2_500,
        exit: Exit::Done,
        reason: Some("the path changed its rate".to_owned()),
        octets: 3_400_000,
        route_before: hops.clone(),
        route_after: hops,
        flags: vec![Flag::OwnLoad],
        values: vec![value],
        evidence: Some(serde_json::json!({ "schema": "narrows.report/1" })),
    }
}

fn plan() -> Plan {
    let key = ServerKey { week: 2_968, secret: "07".repeat(32) };
    let peer = |host: &str, keys| Peer {
        name: name(host),
        address: format!("{host}.example:8620"),
        place: Some(u32::from(host != "ams-1")),
        site: Some(name("ams")),
        keys,
    };
    let run = PlannedRun {
        id: ID,
        at_ms: AT_MS,
        length_ms: 15_000,
        target: name("fra-1"),
        command: words("throughput -t 10"),
        keys: vec![name("host.ams-1"), name("host.fra-1")],
        octets: 125_000_000,
    };
    Plan {
        schema: Plan::SCHEMA.to_owned(),
        tenant: name("default"),
        agent: name("ams-1"),
        serial: 3,
        made_ms: AT_MS,
        not_after_ms: AT_MS + 86_400_000,
        lease_generation: 1,
        certificate: "0a".repeat(64),
        bus: Some(BusAddress::Nats { servers: vec!["nats://bus.example:4222".to_owned()], jwt: None, authority: None }),
        seed: 42,
        mesh_began_ms: AT_MS,
        place: 0,
        mesh_hosts: Some(2),
        peers: vec![peer("ams-1", Vec::new()), peer("fra-1", vec![key.clone()])],
        mesh: vec![words("rtt"), words("available")],
        directed: vec![Directed { target: name("fra-1"), command: words("capacity"), every_ms: Some(86_400_000) }],
        begin_ms: AT_MS,
        length_ms: 86_400_000,
        runs: vec![run],
        server_keys: vec![key],
        denied: vec![name("lon-9")],
        stored: Stored { ranges: vec![(1, 7)] },
    }
}

#[test]
fn messages_of_a_fleet_are_kept() {
    let order = Order {
        schema: Order::SCHEMA.to_owned(),
        tenant: name("default"),
        agent: name("ams-1"),
        id: ID,
        serial: 4,
        target: name("fra-1"),
        peer: plan().peers.pop(),
        command: words("throughput -t 10"),
        keys: vec![name("host.ams-1")],
        beside: Some(name("fra-1")),
        at_ms: AT_MS,
        not_after_ms: AT_MS + 60_000,
        length_ms: 15_000,
        octets: 125_000_000,
    };
    let status = Status {
        schema: Status::SCHEMA.to_owned(),
        agent: name("ams-1"),
        at_ms: AT_MS,
        version: "0.1.0".to_owned(),
        kinds: words("rtt available"),
        plan_serial: 3,
        order_serial: 4,
        clock_synchronised: true,
        clock_error_ms: 2,
        clock_ahead_ms: None,
        spool_runs: 1,
        spool_octets: 2_100,
        spool_lost: 0,
        leases_lost: 0,
        running: Some(ID),
        order: Some(ID),
        orders: vec![(ID, "begun".to_owned())],
        declined: vec!["the owner of this host allows no runs towards lon-1".to_owned()],
        faults: vec!["plan 2 was refused: it is another agent's".to_owned()],
        leaving: false,
    };
    keeps("run-1", &json(&run()));
    keeps("plan-1", &json(&plan()));
    keeps("order-1", &json(&order));
    keeps("status-1", &json(&status));
    let time = HubTime {
        schema: HubTime::SCHEMA.to_owned(),
        tenant: name("default"),
        agent: name("ams-1"),
        asked_ms: AT_MS,
        hub_ms: AT_MS + 20,
    };
    keeps("time-1", &json(&time));
}

fn json<T: Serialize>(message: &T) -> serde_json::Value {
    serde_json::to_value(message).expect("messages have JSON")
}

/// Agents and hubs of today read what those of then wrote.
#[test]
fn messages_of_older_fleets_are_read() {
    fn reads<T: DeserializeOwned>(kind: &str) {
        serde_json::from_value::<T>(stored(kind)).unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
    reads::<Run>("run-1");
    reads::<Plan>("plan-1");
    reads::<Order>("order-1");
    reads::<Status>("status-1");
}
