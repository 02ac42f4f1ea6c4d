use std::time::Duration;

use narrows_units::Stamp;
use uuid::Uuid;

use super::*;

const fn at(millis: i64) -> Stamp<Boot> {
    Stamp::from_nanos(millis * 1_000_000)
}

fn holder(agent: &str, run: u128) -> Holder {
    Holder { agent: agent.parse().unwrap(), run: Uuid::from_u128(run) }
}

fn key(link: u64) -> Key {
    Key::Link(link, 0)
}

/// Agent `a`, connected for so long that it may take.
fn connected() -> Lessee {
    let mut lessee = Lessee::new("a".parse().unwrap(), 1);
    assert!(lessee.handle(Event::Connected { server: "one".to_owned() }, at(-15_000)).is_empty());
    lessee
}

fn want(run: u128, links: &[u64], start_by: i64) -> Want {
    let keys = links.iter().map(|link| key(*link)).collect();
    Want { run: Uuid::from_u128(run), keys, start_by: at(start_by), after_new_bus: Duration::ZERO }
}

fn of(holder: Option<Holder>) -> KeyState {
    holder.map_or(KeyState::Free, KeyState::Held)
}

fn read(request: RequestId, revision: u64, holder: Option<Holder>) -> Event {
    Event::Read { request, revision, state: of(holder) }
}

fn asks(request: RequestId, link: u64) -> Action {
    Action::Read { request, key: key(link) }
}

fn writes(request: RequestId, link: u64, expected: u64, run: Option<u128>) -> Action {
    Action::Write { request, key: key(link), expected, holder: run.map(|run| holder("a", run)) }
}

/// Run 1 sends on links 1 and 2, whose writes were sent at 10 and 20 ms.
fn sending() -> Lessee {
    let mut lessee = connected();
    assert_eq!(lessee.take(want(1, &[2, 1], 9_000), at(0)), Some(vec![asks(1, 1), asks(2, 2)]));
    assert_eq!(lessee.handle(read(2, 0, None), at(9)), []);
    assert_eq!(lessee.handle(read(1, 6, None), at(10)), [writes(3, 1, 6, Some(1))]);
    assert_eq!(lessee.handle(Event::Accepted { request: 3, revision: 7 }, at(20)), [writes(4, 2, 0, Some(1))]);
    assert!(!lessee.may_send(at(29)));
    assert_eq!(lessee.handle(Event::Accepted { request: 4, revision: 8 }, at(30)), [Action::Start]);
    lessee
}

#[test]
fn a_run_sends_until_its_first_lease_ends() {
    let mut lessee = sending();
    assert_eq!(
        (lessee.revision(&key(1)), lessee.revision(&key(2)), lessee.revision(&key(3))),
        (Some(7), Some(8), None)
    );
    // Sent at 10 ms, valid for 10 s, without the guard.
    assert_eq!(lessee.send_until(), Some(at(9_960)));
    assert!(lessee.may_send(at(9_959)) && !lessee.may_send(at(9_960)));
    lessee.handle(Event::Disconnected, at(100));
    assert_eq!(lessee.due(), Some(at(9_960)));
    assert_eq!(lessee.handle(Event::Tick, at(9_960)), [Action::Stop(Stopped::Expired)]);
    assert!(lessee.is_idle() && !lessee.may_send(at(9_961)));
}

#[test]
fn renewals_move_the_end_from_when_they_were_sent() {
    let mut lessee = sending();
    assert_eq!(lessee.due(), Some(at(3_010)));
    assert_eq!(lessee.handle(Event::Tick, at(3_025)), [writes(5, 1, 7, Some(1)), writes(6, 2, 8, Some(1))]);
    lessee.handle(Event::Accepted { request: 5, revision: 9 }, at(4_000));
    assert_eq!(lessee.send_until(), Some(at(9_970)));
    lessee.handle(Event::Accepted { request: 6, revision: 10 }, at(4_000));
    assert_eq!(lessee.send_until(), Some(at(12_975)));
    assert_eq!(lessee.handle(Event::Finished, at(5_000)), [writes(7, 1, 9, None), writes(8, 2, 10, None)]);
    assert!(lessee.is_idle());
}

#[test]
fn a_refused_renewal_stops_the_run_and_frees_its_other_keys() {
    let mut lessee = sending();
    lessee.handle(Event::Tick, at(3_100));
    let stopped = [Action::Stop(Stopped::Overwritten(key(1))), writes(7, 2, 8, None)];
    assert_eq!(lessee.handle(Event::Refused { request: 5 }, at(3_200)), stopped);
    let mut lessee = sending();
    let event = Event::Republished { key: key(2), revision: 11, state: of(Some(holder("b", 4))) };
    assert_eq!(lessee.handle(event, at(3_000))[0], Action::Stop(Stopped::Overwritten(key(2))));
    // What was republished before the run had the key comes late.
    let mut lessee = sending();
    let event = Event::Republished { key: key(2), revision: 5, state: of(Some(holder("b", 4))) };
    assert_eq!(lessee.handle(event, at(3_000)), []);
}

#[test]
fn a_renewal_without_an_answer_is_read_back() {
    let mut lessee = sending();
    lessee.handle(Event::Tick, at(3_025));
    lessee.handle(Event::Accepted { request: 6, revision: 10 }, at(3_040));
    assert_eq!(lessee.handle(Event::Tick, at(5_025)), [asks(7, 1)]);
    // The bus has the old value still: the renewal is sent again, and proves the later time only if
    // it is accepted itself.
    assert_eq!(lessee.handle(read(7, 7, Some(holder("a", 1))), at(5_040)), [writes(8, 1, 7, Some(1))]);
    assert_eq!(lessee.send_until(), Some(at(9_960)));
    let due = lessee.handle(Event::Tick, at(7_040));
    assert_eq!(due, [asks(9, 1), writes(10, 2, 10, Some(1))]);
    // One of both was carried out: perhaps the first.
    lessee.handle(read(9, 12, Some(holder("a", 1))), at(7_050));
    lessee.handle(Event::Accepted { request: 10, revision: 13 }, at(7_050));
    assert_eq!(lessee.send_until(), Some(at(12_975)));
}

#[test]
fn a_holder_is_overwritten_after_its_revision_stood_for_15_s() {
    let mut lessee = connected();
    lessee.take(want(1, &[1], 40_000), at(0));
    let actions = lessee.handle(read(1, 5, Some(holder("b", 9))), at(10));
    let obstacle = Obstacle { key: key(1), holder: Some(holder("b", 9)) };
    let [Action::BackedOff { obstacle: found, until }] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(*found, obstacle);
    assert!((at(1_010)..=at(4_010)).contains(until));
    assert_eq!(lessee.handle(Event::Tick, *until), [asks(2, 1)]);
    assert!(matches!(lessee.handle(read(2, 5, Some(holder("b", 9))), at(15_009))[..], [Action::BackedOff { .. }]));
    // Its wait is longer, and it does not wait longer than it must.
    let again = at(15_010);
    assert_eq!(lessee.due(), Some(again));
    lessee.handle(Event::Tick, again);
    assert_eq!(lessee.handle(read(3, 5, Some(holder("b", 9))), again), [writes(4, 1, 5, Some(1))]);
    assert_eq!(lessee.handle(Event::Accepted { request: 4, revision: 6 }, again), [Action::Start]);
}

#[test]
fn keys_of_a_holder_that_is_gone_stand_at_the_same_time() {
    let mut lessee = connected();
    lessee.take(want(1, &[1, 2, 3], 60_000), at(0));
    let gone = || Some(holder("b", 9));
    // The first answer ends the try; the others still say what stands.
    lessee.handle(read(1, 5, gone()), at(10));
    assert_eq!(lessee.handle(read(2, 6, gone()), at(11)), []);
    assert_eq!(lessee.handle(read(3, 7, gone()), at(12)), []);
    assert!(lessee.due().unwrap() < at(15_005));
    assert_eq!(lessee.handle(Event::Tick, at(15_005)), [asks(4, 1), asks(5, 2), asks(6, 3)]);
    assert_eq!(lessee.handle(read(4, 5, gone()), at(15_012)), []);
    assert_eq!(lessee.handle(read(5, 6, gone()), at(15_012)), []);
    assert_eq!(lessee.handle(read(6, 7, gone()), at(15_012)), [writes(7, 1, 5, Some(1))]);
    // One that was renewed meanwhile did not stand.
    let mut lessee = connected();
    lessee.take(want(1, &[1, 2], 60_000), at(0));
    lessee.handle(read(1, 5, gone()), at(10));
    assert_eq!(lessee.handle(read(2, 6, gone()), at(11)), []);
    lessee.handle(Event::Tick, at(15_005));
    assert_eq!(lessee.handle(read(3, 5, gone()), at(15_012)), []);
    assert!(matches!(lessee.handle(read(4, 8, gone()), at(15_012))[..], [Action::BackedOff { .. }]));
}

#[test]
fn whoever_was_too_slow_for_a_key_that_stood_waits_like_others() {
    let mut lessee = connected();
    let shown = Event::Republished { key: key(1), revision: 5, state: of(Some(holder("b", 9))) };
    lessee.handle(shown, at(0));
    lessee.take(want(1, &[1], 60_000), at(20_000));
    assert_eq!(lessee.handle(read(1, 5, Some(holder("b", 9))), at(20_000)), [writes(2, 1, 5, Some(1))]);
    lessee.handle(Event::Refused { request: 2 }, at(20_010));
    assert!((at(21_010)..=at(24_010)).contains(&lessee.due().unwrap()));
}

#[test]
fn a_key_that_is_given_back_is_tried_within_a_second() {
    for (obstacle, soon) in [(1, true), (2, false)] {
        let mut lessee = connected();
        lessee.take(want(1, &[1, 2], 60_000), at(0));
        for link in [1, 2] {
            let shown = Event::Republished { key: key(link), revision: 4 + link, state: of(Some(holder("b", 9))) };
            lessee.handle(shown, at(0));
        }
        // Two tries, of which the second waits for 2 s at least.
        lessee.handle(read(1, 5, Some(holder("b", 9))), at(0));
        let again = lessee.due().unwrap();
        lessee.handle(Event::Tick, again);
        lessee.handle(read(3, 5, Some(holder("b", 9))), again);
        let wait = lessee.due().unwrap().since(again);
        assert!((2_000..=8_000).contains(&wait.as_millis()), "{wait:?}");
        let free = Event::Republished { key: key(obstacle), revision: 9, state: KeyState::Free };
        assert_eq!(lessee.handle(free, again), []);
        assert_eq!(lessee.due().unwrap().since(again) <= Duration::from_secs(1), soon);
    }
}

#[test]
fn a_renewed_holder_keeps_its_key_until_the_run_is_skipped() {
    let mut lessee = connected();
    lessee.take(want(1, &[1], 40_000), at(0));
    let (mut now, mut revision, mut request) = (at(0), 5, 1);
    loop {
        revision += 1;
        let event = Event::Republished { key: key(1), revision, state: of(Some(holder("b", 9))) };
        assert_eq!(lessee.handle(event, now), []);
        lessee.handle(read(request, revision, Some(holder("b", 9))), now);
        now = lessee.due().unwrap();
        match &lessee.handle(Event::Tick, now)[..] {
            [Action::Read { request: next, .. }] => request = *next,
            [Action::Skipped { obstacle }] => {
                assert_eq!(obstacle.as_ref().map(|found| &found.key), Some(&key(1)));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(now, at(40_000));
    // Waits of 1 to 4 s, doubled: four to seven tries in 40 s.
    assert!((4..=7).contains(&request), "{request}");
}

#[test]
fn another_server_ends_the_run_and_nothing_is_taken_for_15_s() {
    let mut lessee = sending();
    lessee.handle(Event::Disconnected, at(100));
    let other = || Event::Connected { server: "two".to_owned() };
    // Not even null is written: its revisions may belong to others now.
    assert_eq!(lessee.handle(other(), at(1_000)), [Action::Stop(Stopped::BusRestarted)]);
    lessee.handle(Event::Republished { key: key(1), revision: 3, state: of(Some(holder("b", 9))) }, at(1_500));
    assert_eq!(lessee.take(want(2, &[1], 60_000), at(2_000)), Some(Vec::new()));
    assert_eq!(lessee.due(), Some(at(16_000)));
    assert_eq!(lessee.handle(Event::Tick, at(16_000)), [asks(5, 1)]);
    // Seen at 1.5 s: it stood until 16.5 s.
    assert!(matches!(lessee.handle(read(5, 3, Some(holder("b", 9))), at(16_499))[..], [Action::BackedOff { .. }]));
    // A third server: what was seen on the second says nothing.
    lessee.handle(Event::Connected { server: "three".to_owned() }, at(17_000));
    lessee.handle(Event::Tick, at(32_000));
    assert!(matches!(lessee.handle(read(6, 3, Some(holder("b", 9))), at(32_001))[..], [Action::BackedOff { .. }]));
}

#[test]
fn an_order_waits_for_a_new_bus() {
    let patient = |run| Want { after_new_bus: Duration::from_secs(5), ..want(run, &[1], 8_000) };
    // The bus is new already, or becomes so while the run waits.
    for connects in [0, 7_999] {
        let mut lessee = connected();
        let connect = Event::Connected { server: "two".to_owned() };
        if connects == 0 {
            lessee.handle(connect.clone(), at(0));
        }
        lessee.handle(Event::Disconnected, at(1));
        assert_eq!(lessee.take(patient(1), at(2)), Some(Vec::new()));
        if connects > 0 {
            lessee.handle(connect, at(connects));
        } else {
            lessee.handle(connect, at(3));
        }
        let again = at(connects + 15_000);
        assert_eq!((lessee.due(), lessee.handle(Event::Tick, at(8_000))), (Some(again), Vec::new()));
        assert_eq!(lessee.handle(Event::Tick, again), [asks(1, 1)]);
        let late = lessee.handle(Event::Tick, again + Duration::from_secs(5));
        assert_eq!(late, [Action::Skipped { obstacle: None }]);
    }
    // One of the timetable has its span, and the next run has its own.
    let mut lessee = connected();
    lessee.handle(Event::Connected { server: "two".to_owned() }, at(0));
    lessee.take(want(1, &[1], 8_000), at(1));
    assert_eq!(lessee.handle(Event::Tick, at(8_000)), [Action::Skipped { obstacle: None }]);
}

#[test]
fn the_same_server_goes_on() {
    let mut lessee = sending();
    lessee.handle(Event::Tick, at(3_025));
    lessee.handle(Event::Disconnected, at(3_030));
    assert_eq!(lessee.handle(Event::Tick, at(6_000)), []);
    let actions = lessee.handle(Event::Connected { server: "one".to_owned() }, at(6_100));
    assert_eq!(actions, [asks(7, 1), asks(8, 2)]);
    assert_eq!(lessee.handle(read(7, 9, Some(holder("a", 1))), at(6_200)), [writes(9, 1, 9, Some(1))]);
    // Answers of before come too late.
    assert_eq!(lessee.handle(Event::Refused { request: 6 }, at(6_200)), []);
    assert_eq!(lessee.handle(read(8, 10, Some(holder("a", 1))), at(6_200)), [writes(10, 2, 10, Some(1))]);
    assert_eq!(lessee.send_until(), Some(at(12_975)));
}

#[test]
fn one_run_at_a_time_and_its_own_value_is_no_obstacle() {
    let mut lessee = connected();
    lessee.take(want(1, &[1], 40_000), at(0));
    assert_eq!(lessee.take(want(2, &[2], 40_000), at(0)), None);
    assert_eq!(lessee.handle(read(1, 5, Some(holder("a", 1))), at(10)), [writes(2, 1, 5, Some(1))]);
    lessee.handle(Event::Refused { request: 2 }, at(20));
    assert_eq!(lessee.send_until(), None);
    assert_eq!(lessee.handle(Event::Finished, at(30)), []);
    assert!(lessee.take(want(2, &[2], 40_000), at(40)).is_some());
}

#[test]
fn the_feed_shows_who_has_a_key_until_it_is_free_or_its_holder_gone() {
    let mut lessee = connected();
    let mut show = |revision, who: Option<Holder>, now| {
        lessee.handle(Event::Republished { key: key(1), revision, state: of(who) }, at(now));
        let shown = |now| lessee.shown(&key(1), at(now)).map(|(found, revision)| (found.run.as_u128(), revision));
        (shown(now), shown(now + 14_999), shown(now + 15_000))
    };
    let both = |run, revision| (Some((run, revision)), Some((run, revision)), None);
    assert_eq!(show(5, Some(holder("b", 9)), 0), both(9, 5));
    // The revision before comes late.
    assert_eq!(show(4, Some(holder("c", 8)), 0), both(9, 5));
    assert_eq!(show(6, Some(holder("b", 9)), 3_000), both(9, 6));
    assert_eq!(show(7, None, 4_000), (None, None, None));
}

#[test]
fn what_nobody_proved_is_no_holder_and_is_overwritten_only_after_it_stood() {
    let forged = |request, revision| Event::Read { request, revision, state: KeyState::Unproven };
    let mut lessee = connected();
    let seen = Event::Republished { key: key(1), revision: 5, state: KeyState::Unproven };
    assert_eq!(lessee.handle(seen, at(0)), []);
    assert_eq!(lessee.shown(&key(1), at(1)), None);
    lessee.take(want(1, &[1], 40_000), at(14_000));
    let actions = lessee.handle(forged(1, 5), at(14_999));
    let [Action::BackedOff { obstacle, until }] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(*obstacle, Obstacle { key: key(1), holder: None });
    lessee.handle(Event::Tick, *until);
    assert_eq!(lessee.handle(forged(2, 5), *until), [writes(3, 1, 5, Some(1))]);
    assert_eq!(lessee.handle(Event::Accepted { request: 3, revision: 6 }, *until), [Action::Start]);
    // Over a lease it ends the run.
    let over = Event::Republished { key: key(1), revision: 7, state: KeyState::Unproven };
    assert_eq!(lessee.handle(over, *until)[0], Action::Stop(Stopped::Overwritten(key(1))));
}

#[test]
fn the_times_fit_each_other() {
    let ratio = TAKEN_OVER_AFTER.as_secs_f64() / VALID_FOR.as_secs_f64();
    assert!(ratio > 1.19 / 0.81, "clocks that differ by 19 %");
    assert!(RENEW_EVERY * 3 < VALID_FOR && ANSWER_WITHIN < RENEW_EVERY);
    assert!(GUARD > Duration::from_millis(10));
}
