//! Tokens, and who joins by them.

use narrows_fleet::message::{Status, Stored};
use narrows_record::{AgentState, Error, NewAgent};

use super::World;
use crate::common::{DAY, NOON, name, new_agent, token};

fn status(agent: &str) -> Status {
    Status {
        schema: Status::SCHEMA.to_owned(),
        agent: name(agent),
        at_ms: NOON,
        version: "0.1.0".to_owned(),
        kinds: vec!["rtt".to_owned()],
        plan_serial: 7,
        order_serial: 0,
        clock_synchronised: true,
        clock_error_ms: 3,
        clock_ahead_ms: None,
        spool_runs: 1,
        spool_octets: 2_000,
        spool_lost: 0,
        leases_lost: 0,
        running: None,
        order: None,
        orders: Vec::new(),
        declined: Vec::new(),
        faults: vec!["its disk is full\0".to_owned()],
        leaving: false,
    }
}

pub(super) async fn join(world: &World) {
    world.a.add_token(&token(1, 9)).await.unwrap();
    let first = world.a.join(&[1; 32], &new_agent("ams-1", "K1"), NOON).await.unwrap();
    assert_eq!((first.name.as_str(), first.state, first.heard_ms), ("ams-1", AgentState::Member, None));
    assert_eq!((first.joined_ms, &first.stored), (NOON, &Stored::default()));
    let second = world.b.join(&[1; 32], &new_agent("ams-1", "K2"), NOON).await.unwrap();
    assert_eq!(second.name.as_str(), "ams-1-2");
    // The same key is the same agent, with what is new.
    let moved = NewAgent { address: "192.0.2.2:8621".to_owned(), ..new_agent("other", "K1") };
    let again = world.b.join(&[1; 32], &moved, NOON + 5).await.unwrap();
    assert_eq!((again.name.as_str(), &*again.address, again.joined_ms), ("ams-1", "192.0.2.2:8621", NOON));
    world.a.set_state(&name("ams-1"), AgentState::Revoked).await.unwrap();
    // Who was thrown out and has a token is somebody else: the name stays with the old results.
    let other = world.a.join(&[1; 32], &new_agent("ams-1", "K1"), NOON).await.unwrap();
    assert_eq!(other.name.as_str(), "ams-1-3");
    let said = status("ams-1-2");
    world.a.heard(&said, NOON + 9).await.unwrap();
    let all = world.b.agents().await.unwrap();
    let shown: Vec<_> = all.iter().map(|one| (one.name.as_str(), one.state, one.heard_ms)).collect();
    let (member, revoked) = (AgentState::Member, AgentState::Revoked);
    assert_eq!(shown, [("ams-1", revoked, None), ("ams-1-2", member, Some(NOON + 9)), ("ams-1-3", member, None)]);
    assert_eq!(all[1].status, Some(said));
    assert_eq!(all[1].labels, new_agent("x", "x").labels);
    assert_eq!(world.a.set_state(&name("nobody"), member).await, Err(Error::NotFound));
    assert_eq!(world.a.heard(&status("nobody"), NOON).await, Err(Error::NotFound));
}

pub(super) async fn tokens(world: &World) {
    world.a.add_token(&token(1, 2)).await.unwrap();
    let join = |hash: u8, key: &'static str, at| {
        let hash = [hash; 32];
        async move { world.a.join(&hash, &new_agent("a", key), at).await.map(|agent| agent.name.to_string()) }
    };
    assert_eq!(join(2, "K1", NOON).await, Err(Error::Token));
    assert_eq!(join(1, "K1", NOON + DAY).await, Err(Error::Token));
    assert_eq!(join(1, "K1", NOON).await, Ok("a".to_owned()));
    assert_eq!(join(1, "K2", NOON).await, Ok("a-2".to_owned()));
    assert_eq!(join(1, "K1", NOON).await, Err(Error::Token));
    assert_eq!(world.a.agents().await.unwrap().len(), 2);
}

pub(super) async fn race(world: &World) {
    for round in 0..10 {
        world.a.add_token(&token(round, 1)).await.unwrap();
        let agents = ["a", "b"].map(|one| new_agent("racer", &format!("{one}{round}")));
        let hash = [round; 32];
        let both = tokio::join!(world.a.join(&hash, &agents[0], NOON), world.b.join(&hash, &agents[1], NOON));
        match both {
            (Ok(_), Err(lost)) | (Err(lost), Ok(_)) => assert_eq!(lost, Error::Token),
            both => panic!("round {round}: {both:?}"),
        }
    }
    assert_eq!(world.a.agents().await.unwrap().len(), 10);
}
