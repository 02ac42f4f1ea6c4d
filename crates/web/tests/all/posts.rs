//! What people ask for reaches the scheduler, and its answer comes back.

use narrows_watch::WallTime;
use narrows_watch::schedule::JobKind;
use narrows_web::{Accepted, Order, Refusal};

use crate::site::{Reply, Site};
use crate::year::{LAB, NOW_MS, OFFICE, now};

/// Posts while a scheduler answers once; returns what it was asked.
fn posted(path: &str, body: &str, answer: Result<Accepted, Refusal>) -> (Reply, Order) {
    let mut site = Site::start();
    let mut posts = site.posts.take().expect("nobody took it");
    let scheduler = std::thread::spawn(move || {
        let post = posts.blocking_recv().expect("an order comes");
        post.answer.send(answer).expect("somebody waits");
        post.order
    });
    let reply = site.post(path, "", body);
    (reply, scheduler.join().expect("the scheduler answered"))
}

fn accepted() -> Accepted {
    Accepted { text: "it is queued".to_owned() }
}

#[test]
fn a_run_a_silence_and_a_note_are_handed_on() {
    let (reply, order) = posted("/api/v1/runs", r#"{"target":"lab","kind":"slice"}"#, Ok(accepted()));
    assert_eq!((reply.status, reply.json()["text"].as_str()), (202, Some("it is queued")));
    assert_eq!(order, Order::Run { target: LAB, kind: JobKind::Slice });
    let (_, order) = posted("/api/v1/silences", r#"{"target":"office","minutes":60}"#, Ok(accepted()));
    let ends = WallTime::from_millis(NOW_MS + 3_600_000);
    assert_eq!(order, Order::Silence { rule: None, target: Some(OFFICE), began: now(), ends, note: None });
    let (_, order) = posted("/api/v1/notes", r#"{"text":"new router"}"#, Ok(accepted()));
    assert_eq!(order, Order::Note { target: None, at: now(), text: "new router".to_owned() });
}

#[test]
fn the_scheduler_may_refuse() {
    let refuse = Err(Refusal::Budget("the day's octets are spent".to_owned()));
    let (reply, _) = posted("/api/v1/runs", r#"{"target":"lab","kind":"test"}"#, refuse);
    reply.refused(409, "spent");
}

#[test]
fn wrong_orders_reach_nobody() {
    let site = Site::start();
    site.post("/api/v1/runs", "", r#"{"target":"nobody","kind":"slice"}"#).refused(404, "nobody");
    site.post("/api/v1/runs", "", r#"{"target":"lab","kind":"flood"}"#).refused(422, "flood");
    site.post("/api/v1/runs", "", r#"{"target":"lab","kind":"slice","now":1}"#).refused(422, "now");
    site.post("/api/v1/silences", "", r#"{"minutes":0}"#).refused(400, "minutes");
    site.post("/api/v1/notes", "", r#"{"text":"  "}"#).refused(400, "characters");
    site.post("/api/v1/notes", "", "{").refused(400, "JSON");
}
