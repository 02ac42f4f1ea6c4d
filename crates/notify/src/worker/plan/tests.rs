use super::*;
use crate::body::tests::example;

fn at(seconds: i64) -> WallTime {
    WallTime::from_millis(1_795_547_100_000 + seconds * 1000)
}

fn entry(id: i64, channel: &str, rule: &str, made: i64) -> Entry {
    let body = NoticeBody { rule: rule.to_owned(), ..example() };
    let body = serde_json::to_string(&body).unwrap();
    Entry { id, channel: channel.to_owned(), body, made: at(made), due: at(made), tries: 0 }
}

fn ids(ready: &[Delivery]) -> Vec<i64> {
    ready.iter().filter_map(|delivery| delivery.entry).map(|(id, ..)| id).collect()
}

fn away() -> SendError {
    SendError::Unreachable("nobody".to_owned())
}

fn refused() -> SendError {
    SendError::Refused("no".to_owned())
}

#[test]
fn each_channel_sends_one_at_a_time_the_oldest_first() {
    let mut plan = Plan::default();
    let due = [entry(3, "b", "x", 2), entry(2, "a", "y", 1), entry(1, "a", "x", 0)];
    let first = plan.ready(due.to_vec(), at(2));
    assert_eq!(ids(&first), [1, 3]);
    assert!(plan.ready(due.to_vec(), at(2)).is_empty(), "both are busy");
    assert!(!plan.tried(&first[0], None, at(3)));
    assert_eq!(plan.unsettled(), [(1, Outcome::Done(at(3)))]);
    // What is delivered is not sent again, even while the outbox does not know.
    assert_eq!(ids(&plan.ready(due.to_vec(), at(3))), [2]);
}

#[test]
fn a_peer_that_is_away_holds_its_channel_alone() {
    let mut plan = Plan::default();
    let due = vec![entry(1, "a", "x", 0), entry(2, "a", "y", 0), entry(3, "b", "x", 0)];
    let first = plan.ready(due.clone(), at(0));
    plan.tried(&first[0], Some(&away()), at(1));
    plan.tried(&first[1], None, at(1));
    assert_eq!(plan.unsettled(), [(1, Outcome::Retry(at(6))), (3, Outcome::Done(at(1)))]);
    plan.settled(1);
    plan.settled(3);
    assert!(plan.ready(due[1..2].to_vec(), at(5)).is_empty());
    assert_eq!(plan.wait(at(5)), Duration::from_secs(1));
    assert_eq!(ids(&plan.ready(due[..2].to_vec(), at(6))), [1], "the oldest first");
}

/// A notice that nobody takes holds later ones about the same alert, and no others.
#[test]
fn a_refused_notice_holds_those_about_its_alert() {
    let mut plan = Plan::default();
    let (poison, same, other) = (entry(1, "a", "x", 0), entry(2, "a", "x", 1), entry(3, "a", "y", 2));
    let first = plan.ready(vec![poison], at(2));
    plan.tried(&first[0], Some(&refused()), at(2));
    plan.settled(1);
    assert_eq!(ids(&plan.ready(vec![same, other], at(3))), [3]);
}

#[test]
fn waits_grow_and_a_peer_may_ask_for_more() {
    let mut plan = Plan::default();
    let third = Entry { tries: 2, ..entry(1, "a", "x", 0) };
    let busy = |seconds| SendError::Busy { text: "later".to_owned(), retry_after: Some(Duration::from_secs(seconds)) };
    for (error, wait) in [(away(), 20), (busy(3), 20), (busy(100), 100)] {
        let ready = plan.ready(vec![third.clone()], at(1000));
        plan.tried(&ready[0], Some(&error), at(1000));
        assert_eq!(plan.unsettled(), [(1, Outcome::Retry(at(1000 + wait)))]);
        plan = Plan::default();
    }
}

#[test]
fn after_a_day_a_notice_is_given_up() {
    let mut plan = Plan::default();
    let ready = plan.ready(vec![entry(1, "a", "x", 0)], at(86_399));
    assert!(!plan.tried(&ready[0], Some(&away()), at(86_399)));
    plan.settled(1);
    let ready = plan.ready(vec![entry(1, "a", "x", 0)], at(86_499));
    assert!(plan.tried(&ready[0], Some(&away()), at(86_500)));
    let [(1, Outcome::GivenUp(of))] = &plan.unsettled()[..] else { panic!("{:?}", plan.unsettled()) };
    assert_eq!((&*of.channel, of.made, of.at), ("a", at(0), at(86_500)));
    let said = of.to_string();
    assert!(said.starts_with("channel a: the notice about office") && said.contains("after 24 h"), "{said}");
}

#[test]
fn what_the_outbox_does_not_take_is_tried_once() {
    let mut plan = Plan::default();
    let other = plan.ready(vec![entry(1, "a", "x", 0)], at(0));
    plan.unsaved("a".to_owned(), example());
    assert!(plan.ready(Vec::new(), at(0)).is_empty(), "the channel is busy");
    plan.tried(&other[0], None, at(1));
    let ready = plan.ready(Vec::new(), at(1));
    assert_eq!(ready, [Delivery { channel: "a".to_owned(), body: example(), entry: None }]);
    plan.tried(&ready[0], Some(&away()), at(2));
    assert!(plan.ready(Vec::new(), at(600)).is_empty());
}

#[test]
fn what_is_no_notice_is_thrown_away() {
    let mut plan = Plan::default();
    let broken = Entry { body: "{".to_owned(), ..entry(1, "a", "x", 0) };
    assert!(plan.ready(vec![broken], at(0)).is_empty());
    assert_eq!(plan.unsettled(), [(1, Outcome::Done(at(0)))]);
}

#[test]
fn what_fires_is_repeated_each_minute_until_it_is_resolved() {
    let mut plan = Plan::default();
    plan.noted("am", example(), true, at(0));
    plan.noted("chat", example(), false, at(0));
    assert!(plan.ready(Vec::new(), at(59)).is_empty());
    assert_eq!(plan.wait(at(59)), Duration::from_secs(1));
    let ready = plan.ready(Vec::new(), at(60));
    assert_eq!(ready, [Delivery { channel: "am".to_owned(), body: example(), entry: None }]);
    // It failed: nothing is written, the next minute tries again.
    assert!(!plan.tried(&ready[0], Some(&away()), at(61)));
    assert!(plan.unsettled().is_empty() && plan.ready(Vec::new(), at(119)).is_empty());
    let ready = plan.ready(Vec::new(), at(120));
    assert_eq!(ready.len(), 1);
    plan.tried(&ready[0], None, at(120));
    plan.noted("am", NoticeBody { state: NoticeKind::Resolved, ..example() }, true, at(130));
    assert!(plan.ready(Vec::new(), at(1000)).is_empty());
}

/// The clock is set back by an hour: neither a retry nor a repeat waits for an hour more.
#[test]
fn a_clock_that_is_set_back_holds_nothing_back() {
    let mut plan = Plan::default();
    let due = vec![entry(1, "a", "x", 0)];
    let first = plan.ready(due.clone(), at(3600));
    plan.tried(&first[0], Some(&away()), at(3600));
    plan.settled(1);
    plan.noted("am", NoticeBody { state: NoticeKind::Firing, ..example() }, true, at(3600));
    assert!(plan.ready(due.clone(), at(3601)).is_empty());
    let again = plan.ready(due, at(1));
    assert_eq!((ids(&again), again.len()), (vec![1], 2), "{again:?}");
}
