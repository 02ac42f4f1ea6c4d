//! Results to be kept, and the names in them.

use std::collections::BTreeMap;

use narrows_fleet::keys::Name;
use narrows_fleet::message::{Claim, Direction, Exit, Hop, Origin, Run, Value};
use narrows_record::{GivenOrder, NewAgent, OrderState, Range, Record, Reservation, Token};
use narrows_units::Metric;
use uuid::Uuid;

/// Monday, 23 November 2026, 12:00 UTC, in ms.
pub(crate) const NOON: i64 = 1_795_435_200_000;
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// All times that the tests have.
pub(crate) const EVER: Range = Range { since_ms: 0, until_ms: NOON + 1_000 * DAY };

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A run without values; its id comes from its time, its agent and its number.
pub(crate) fn run(agent: &str, seq: u64, target: &str, at_ms: i64) -> Run {
    let random = agent.bytes().fold(u128::from(seq), |all, octet| (all << 8) ^ u128::from(octet));
    let bits = (u128::try_from(at_ms).unwrap() << 80) | (7 << 76) | (2 << 62) | (random & ((1 << 62) - 1));
    Run {
        schema: Run::SCHEMA.to_owned(),
        id: Uuid::from_u128(bits),
        agent: name(agent),
        seq,
        target: name(target),
        kind: "available".to_owned(),
        origin: Origin::Mesh,
        began_ms: at_ms,
        length_ms: 4_000,
        exit: Exit::Done,
        reason: None,
        octets: 1_500_000,
        route_before: Vec::new(),
        route_after: Vec::new(),
        flags: Vec::new(),
        values: Vec::new(),
        evidence: None,
    }
}

pub(crate) fn value(metric: Metric, direction: Direction, value: f64) -> Value {
    let claim = Claim::Estimate;
    Value { metric, direction, unit: metric.unit(), claim, value, low: value * 0.9, high: value * 1.1 }
}

/// The same with one value of available bandwidth.
pub(crate) fn available(agent: &str, seq: u64, target: &str, at_ms: i64, bps: f64) -> Run {
    let values = vec![value(Metric::AvailableIpCapacity, Direction::Forward, bps)];
    Run { values, ..run(agent, seq, target, at_ms) }
}

/// Routers by their last octet; 0 is one that does not answer.
pub(crate) fn hops(last: &[u8]) -> Vec<Hop> {
    last.iter().map(|last| Hop { address: (*last > 0).then(|| [192, 0, 2, *last].into()) }).collect()
}

pub(crate) fn token(number: u8, uses: u32) -> Token {
    Token { hash: [number; 32], made_ms: NOON, not_after_ms: NOON + DAY, uses }
}

pub(crate) fn new_agent(agent: &str, public_key: &str) -> NewAgent {
    NewAgent {
        name: name(agent),
        public_key: public_key.to_owned(),
        labels: BTreeMap::from([("role".to_owned(), "edge".to_owned())]),
        address: "192.0.2.1:8621".to_owned(),
    }
}

/// Agents of these names, with keys of the same.
pub(crate) async fn agents(record: &dyn Record, names: &[&str]) {
    record.add_token(&token(255, u32::try_from(names.len()).unwrap())).await.unwrap();
    for agent in names {
        record.join(&[255; 32], &new_agent(agent, agent), NOON).await.unwrap();
    }
}

/// A span of a key, so many ms after noon.
pub(crate) fn reservation(key: &str, begin: i64, end: i64, run: u128) -> Reservation {
    Reservation {
        key: key.parse().unwrap(),
        begin_ms: NOON + begin,
        end_ms: NOON + end,
        run: Uuid::from_u128(run),
        agent: name("a"),
        serial: 3,
        octets: 1_000_000,
        by_hand: run.is_multiple_of(2),
    }
}

/// An order of a that waits.
pub(crate) fn given(number: u128) -> GivenOrder {
    GivenOrder {
        id: Uuid::from_u128(number),
        agent: name("a"),
        doc: format!("{{\"message\":\"{number}\"}}"),
        note: number.is_multiple_of(2).then(|| "no route is known".to_owned()),
        not_after_ms: NOON + 100,
        state: OrderState { state: "waits".to_owned(), run: None, said: None },
    }
}
