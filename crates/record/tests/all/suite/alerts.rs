//! States of alerts, silences, notices on their way.

use narrows_fleet::alert::Silence;
use narrows_record::{Error, NewNotice};

use super::World;
use crate::common::{DAY, HOUR, NOON, name};

fn notice(channel: &str, at_ms: i64) -> NewNotice {
    NewNotice { channel: channel.to_owned(), body: format!("{{\"at\":{at_ms}}}"), made_ms: at_ms }
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(key, doc)| ((*key).to_owned(), (*doc).to_owned())).collect()
}

pub(super) async fn states(world: &World) {
    let state = |key: &str, doc: Option<&str>| (key.to_owned(), doc.map(ToOwned::to_owned));
    assert_eq!(world.a.alert_states().await.unwrap(), []);
    let first = [state("b", Some("1")), state("a", Some("{\"ä\":2}")), state("c", None)];
    world.a.keep_alerts(&first, &[]).await.unwrap();
    assert_eq!(world.b.alert_states().await.unwrap(), pairs(&[("a", "{\"ä\":2}"), ("b", "1")]));
    world.b.keep_alerts(&[state("b", Some("3")), state("a", None)], &[notice("chat", NOON)]).await.unwrap();
    assert_eq!(world.a.alert_states().await.unwrap(), pairs(&[("b", "3")]));
    assert_eq!(world.a.notices_due(NOON).await.unwrap().len(), 1);
}

pub(super) async fn notices(world: &World) {
    world.a.keep_alerts(&[], &[notice("chat", NOON), notice("ops", NOON + 5)]).await.unwrap();
    assert_eq!(world.b.notices_due(NOON - 1).await.unwrap(), []);
    let due = world.b.notices_due(NOON + 5).await.unwrap();
    let of = |at: usize| (due[at].channel.as_str(), due[at].body.as_str(), due[at].made_ms, due[at].tries);
    let (first, second) = (("chat", format!("{{\"at\":{NOON}}}")), ("ops", format!("{{\"at\":{}}}", NOON + 5)));
    assert_eq!(of(0), (first.0, first.1.as_str(), NOON, 0));
    assert_eq!(of(1), (second.0, second.1.as_str(), NOON + 5, 0));
    world.b.notice_retry(due[0].id, NOON + HOUR).await.unwrap();
    world.b.notice_done(due[1].id).await.unwrap();
    assert_eq!(world.a.notices_due(NOON + 5).await.unwrap(), []);
    let later = world.a.notices_due(NOON + HOUR).await.unwrap();
    assert_eq!(later.iter().map(|one| (one.id, one.tries)).collect::<Vec<_>>(), [(due[0].id, 1)]);
    // Numbers are not used again: what is told apart by them stays so.
    world.a.notice_done(due[0].id).await.unwrap();
    world.a.keep_alerts(&[], &[notice("chat", NOON)]).await.unwrap();
    assert!(world.a.notices_due(NOON).await.unwrap()[0].id > due[1].id);
    // One that nobody took for a month is nobody's.
    world.a.retain(NOON + 40 * DAY).await.unwrap();
    assert_eq!(world.a.notices_due(NOON + 40 * DAY).await.unwrap(), []);
}

pub(super) async fn silences(world: &World) {
    let wanted = Silence {
        id: 0,
        rule: Some("low".to_owned()),
        source: None,
        target: Some(name("b")),
        link: None,
        begins_ms: NOON,
        ends_ms: NOON + DAY,
        who: "web 192.0.2.1".to_owned(),
        reason: "work on the ü-link".to_owned(),
    };
    let id = world.a.add_silence(&wanted).await.unwrap();
    let other = Silence { rule: None, source: Some(name("a")), link: Some("7f".to_owned()), ..wanted.clone() };
    let second = world.b.add_silence(&other).await.unwrap();
    assert!(second > id);
    let all = [Silence { id, ..wanted.clone() }, Silence { id: second, ..other.clone() }];
    assert_eq!(world.b.silences(NOON).await.unwrap(), all);
    world.b.end_silence(id, NOON + HOUR).await.unwrap();
    assert_eq!(world.a.silences(NOON + HOUR).await.unwrap(), all[1..]);
    for gone in [id, 99] {
        assert_eq!(world.a.end_silence(gone, NOON + HOUR).await, Err(Error::NotFound));
    }
    world.a.retain(NOON + 40 * DAY).await.unwrap();
    assert_eq!(world.a.silences(0).await.unwrap(), []);
}
