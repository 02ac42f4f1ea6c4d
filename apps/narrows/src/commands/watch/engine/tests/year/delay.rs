//! How long an alert takes after what is free of 100 Mbit/s has halved, at any moment of a cadence.

use super::machine::USUAL_BPS;
use super::*;

/// `docs/design/watch.md` asks for medians of three minutes where a queue shows, of six else.
#[test]
fn an_alert_follows_a_halved_rate_within_minutes() {
    for (queue_us, most_s) in [(5_000, 180.0), (0, 360.0)] {
        let delays = delays(queue_us);
        let median = narrows_stat::median(&delays).unwrap();
        let longest = delays.iter().copied().fold(0.0, f64::max);
        println!("queue of {queue_us} us: {} alerts, median {median} s, longest {longest} s", delays.len());
        assert!(median <= most_s, "queue of {queue_us} us: {delays:?}");
    }
}

/// In seconds, of incidents that last half an hour, each after two quiet hours or a little more.
fn delays(queue_us: u64) -> Vec<f64> {
    let mut machine = Machine::new(settings(), berlin(), 0, 7);
    let wait = |machine: &mut Machine, seconds: u64| (0..seconds * 1000 / TICK_MS).for_each(|_| machine.tick());
    wait(&mut machine, 86_400);
    let mut delays = Vec::new();
    for incident in 0..INCIDENTS {
        wait(&mut machine, 7200 + incident * 35);
        let (began, before) = (machine.elapsed_ms(), machine.diary(|diary| diary.notices.len()));
        machine.set_path(USUAL_BPS / 2.0, queue_us);
        wait(&mut machine, 1800);
        machine.set_path(USUAL_BPS, 0);
        let notices = machine.diary(|diary| diary.notices[before..].to_vec());
        let [(at, text)] = &notices[..] else { panic!("one alert: {notices:?}") };
        assert_eq!(text, "low firing");
        delays.push((at - began) as f64 / 1000.0);
    }
    delays
}

const INCIDENTS: u64 = 24;
