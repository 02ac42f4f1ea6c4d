//! Alerts of the configuration: who is told of what.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use narrows_fleet::alert::Silence;
use narrows_fleet::message::Order;
use narrows_hub::Channels;
use narrows_notify::{Deliver, NoticeBody, SendError};
use narrows_units::Metric;
use narrows_watch::WallTime;
use narrows_watch::alert::NoticeKind::{Firing, Resolved};

use crate::results::{FAR, NEAR, four, over_the_core};
use crate::world::{BEGIN, MINUTE, World, soon};

const AVAILABLE: Metric = Metric::AvailableIpCapacity;
const NEVER: Duration = Duration::from_secs(60);

/// A channel `chat` that hands each notice to the test.
struct Chat(Sender<NoticeBody>);

impl Deliver for Chat {
    fn send(&self, channel: &str, body: &NoticeBody, _: WallTime) -> Result<String, SendError> {
        assert_eq!(channel, "chat");
        self.0.send(body.clone()).map_err(|error| SendError::Program(error.to_string()))?;
        Ok("read".to_owned())
    }

    fn repeats(&self, _: &str) -> bool {
        false
    }

    fn stop(&self) {}
}

fn chat() -> (Channels, Receiver<NoticeBody>) {
    let (sender, notice) = channel();
    (Channels { names: BTreeSet::from(["chat".to_owned()]), deliver: Arc::new(Chat(sender)) }, notice)
}

const CONFIG: &str = r#"
[groups]
near = ["a", "b"]
far = ["c", "d"]
[[alert]]
name = "core-low"
when = "available < 50 Mbit/s"
of = "near to far"
notify = ["chat"]
"#;

/// The bodies that wait in the record.
async fn waiting(world: &World) -> Vec<NoticeBody> {
    let all = world.record.notices_due(i64::MAX).await.unwrap();
    all.iter().map(|one| serde_json::from_str(&one.body).unwrap()).collect()
}

#[tokio::test]
async fn paths_behind_a_link_are_told_once_and_a_restart_tells_nothing_twice() {
    let (channels, _notices) = chat();
    let mut world = World::with(channels).await;
    let mut agents = four(&world).await;
    world.apply(CONFIG).await;
    over_the_core(&world, &mut agents, 100.0, AVAILABLE, BEGIN).await;
    world.pass(MINUTE);
    over_the_core(&world, &mut agents, 20.0, AVAILABLE, BEGIN + MINUTE).await;
    assert_eq!(waiting(&world).await, [], "one value is not two");
    // The state is half way when the hub ends.
    world.restart().await;
    world.hub.plan().await.unwrap();
    world.pass(MINUTE);
    over_the_core(&world, &mut agents, 20.0, AVAILABLE, BEGIN + 2 * MINUTE).await;
    let [notice] = &waiting(&world).await[..] else { panic!("{:?}", waiting(&world).await) };
    assert_eq!((notice.rule.as_str(), notice.state), ("core-low", Firing));
    assert_eq!(
        (notice.target.as_str(), notice.cause.as_deref()),
        (&*format!("{NEAR} to {FAR}"), Some(&*format!("link {NEAR} to {FAR}")))
    );
    assert!(notice.text.ends_with("Holds back a to c and 2 more."), "{}", notice.text);
    let value = notice.value.as_ref().unwrap();
    assert!((value.value - 20e6).abs() < 1e6 && value.low < value.high, "{value:?}");
    assert!(notice.page.as_ref().is_some_and(|page| page.starts_with("https://10.0.0.1:8622/bottlenecks#")));
    assert_eq!(world.hub.alert_texts().iter().filter(|text| text.contains("Holds back a to c and 2 more")).count(), 1);
    // Another start: people know.
    world.restart().await;
    world.hub.plan().await.unwrap();
    world.hub.locate().await.unwrap();
    assert_eq!(waiting(&world).await.len(), 1);
    for minute in 3..6 {
        world.pass(MINUTE);
        over_the_core(&world, &mut agents, 100.0, AVAILABLE, BEGIN + minute * MINUTE).await;
    }
    let all = waiting(&world).await;
    assert_eq!(all.iter().map(|one| one.state).collect::<Vec<_>>(), [Firing, Resolved]);
    assert_eq!(all[1].lasted_ms, Some(2 * 60_000));
}

#[tokio::test]
async fn a_notice_that_waits_is_delivered_by_the_next_hub() {
    let (channels, notice) = chat();
    let mut world = World::with(channels).await;
    let mut agents = four(&world).await;
    world.apply(CONFIG).await;
    for minute in 0..2 {
        over_the_core(&world, &mut agents, 20.0, AVAILABLE, BEGIN + minute * MINUTE).await;
        world.pass(MINUTE);
    }
    assert_eq!(waiting(&world).await.len(), 1);
    // It ended before it told anybody.
    world.restart().await;
    world.hub.begin_telling().unwrap();
    let notice = tokio::task::spawn_blocking(move || notice.recv_timeout(NEVER).unwrap()).await.unwrap();
    assert_eq!((notice.rule.as_str(), notice.state), ("core-low", Firing));
    let hub = Arc::clone(&world.hub);
    tokio::task::spawn_blocking(move || hub.end_telling()).await.unwrap();
    assert_eq!(waiting(&world).await, []);
}

#[tokio::test]
async fn a_value_that_would_alert_is_looked_at_again() {
    let (channels, _notices) = chat();
    let world = World::with(channels).await;
    let mut agents = four(&world).await;
    world.apply(CONFIG).await;
    let mut orders = agents[0].subscribe("order").await;
    over_the_core(&world, &mut agents, 20.0, AVAILABLE, BEGIN).await;
    let mut given: Vec<Order> = Vec::new();
    for _ in 0..2 {
        given.push(agents[0].open(&soon(orders.next()).await.unwrap().payload).unwrap());
    }
    let paths: Vec<_> =
        given.iter().map(|order| (order.target.as_str(), order.command.join(" "), order.at_ms)).collect();
    let at = BEGIN + MINUTE;
    assert_eq!(paths, [("c", "available".to_owned(), at), ("d", "available".to_owned(), at)]);
    // Once is enough while it is open: a to c, a to d and b to d.
    world.hub.locate().await.unwrap();
    let given = world.record.audits(None, 99).await.unwrap();
    assert_eq!(given.iter().filter(|entry| entry.what == "order.given").count(), 3);
}

#[tokio::test]
async fn a_silence_is_over_when_somebody_ends_it() {
    let (channels, _notices) = chat();
    let world = World::with(channels).await;
    let mut agents = four(&world).await;
    world.apply(CONFIG).await;
    let wanted = Silence {
        id: 0,
        rule: Some("core-low".to_owned()),
        source: None,
        target: None,
        link: None,
        begins_ms: BEGIN,
        ends_ms: BEGIN + 60 * MINUTE,
        who: "test".to_owned(),
        reason: "work".to_owned(),
    };
    let silence = world.hub.silence(wanted.clone()).await.unwrap();
    for minute in 0..2 {
        over_the_core(&world, &mut agents, 20.0, AVAILABLE, BEGIN + minute * MINUTE).await;
        world.pass(MINUTE);
    }
    assert_eq!(waiting(&world).await, []);
    world.hub.end_silence(silence.id, "test").await.unwrap();
    assert_eq!(waiting(&world).await.len(), 1);
    assert!(world.hub.end_silence(silence.id, "test").await.is_err(), "it is over");
    let past = Silence { ends_ms: BEGIN, ..wanted };
    assert!(world.hub.silence(past).await.is_err());
    let audit = world.record.audits(None, 99).await.unwrap();
    let made = audit.iter().find(|entry| entry.what == "silence.made").unwrap();
    assert_eq!(made.text, "alert core-low until 2026-11-23T01:00:00Z: work");
}

#[tokio::test]
async fn a_plan_says_what_an_alert_changes_and_refuses_channels_that_are_not_there() {
    let world = World::new().await;
    let _agents = four(&world).await;
    let wrong = world.hub.dry_run(CONFIG).await.unwrap_err().to_string();
    assert_eq!(wrong, "alert \"core-low\": notify: the hub's own file has no [channel.chat]");
    let alone = CONFIG.replace("notify = [\"chat\"]\n", "");
    let changes = world.hub.apply(&alone, "test").await.unwrap().changes;
    assert!(
        changes.len() == 1 && changes[0].starts_with("alert core-low: new: when = available < 50 Mbit/s"),
        "{changes:?}"
    );
    let (changes, _) = world.hub.dry_run(&alone.replace("< 50", "< 30")).await.unwrap();
    assert_eq!(changes, ["alert core-low: when: available < 50 Mbit/s -> available < 30 Mbit/s"]);
    let (changes, _) = world.hub.dry_run("").await.unwrap();
    assert_eq!(changes, ["alert core-low: gone"]);
}
