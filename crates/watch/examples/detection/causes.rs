//! Simulated incidents with a known cause, seen through imperfect evidence: how often the rules
//! name the right cause, none, or a wrong one.

use narrows_stat::SplitMix64;
use narrows_units::{BitRate, Octets};
use narrows_watch::detect::{Change, Side};
use narrows_watch::explain::{
    Cause, Evidence, FactEvidence, FactKind, HopQueueing, HostState, Interval, Neighbours, OwnTraffic, PathSignals,
    SignalChange, SignalState, Unchanged, explain,
};
use narrows_watch::{Signal, WallTime};

const CAUSES: [&str; 8] = [
    "host_busy",
    "own_traffic",
    "shared_segment",
    "fact",
    "link_rate",
    "cross_traffic",
    "link_errors_or_policer",
    "not_seen",
];

pub(crate) fn print(seed: u64) {
    println!("\n| true cause (1000 incidents each) | named | place or cause left open | wrong | the wrong ones |");
    println!("|---|--:|--:|--:|---|");
    let mut random = SplitMix64::new(seed);
    for truth in CAUSES {
        let (mut right, mut open, mut wrong) = (0, 0, Vec::new());
        for _ in 0..1000 {
            let cause = explain(&incident(truth, &mut random)).cause;
            if cause.name() == truth {
                right += 1;
            } else if matches!(cause, Cause::NotSeen | Cause::CrossTrafficSomewhere | Cause::CrossTrafficBetween { .. })
            {
                open += 1;
            } else {
                wrong.push(cause.name());
            }
        }
        let count = wrong.len();
        wrong.sort_unstable();
        wrong.dedup();
        println!("| {truth} | {right} | {open} | {count} | {} |", wrong.join(", "));
    }
}

/// The change happened in second 10 000. Everything is missing now and then, times are off by
/// chance, and one incident in twenty has a change of route that has nothing to do with it.
fn incident(truth: &str, random: &mut SplitMix64) -> Evidence {
    let mut chance = |share: f64| random.next_unit() < share;
    let (queue, loss) = (
        truth == "cross_traffic" || truth == "own_traffic" || truth == "shared_segment",
        truth == "link_errors_or_policer",
    );
    let host = truth == "host_busy";
    let states = [
        (chance(0.85), truth == "link_rate" && chance(0.9), Side::Down),
        (chance(0.95), (queue && chance(0.85)) || chance(0.02), Side::Up),
        (chance(0.95), (loss && chance(0.9)) || chance(0.02), Side::Up),
    ];
    let own = chance(0.95).then_some(OwnTraffic {
        before: BitRate::from_mbps(2),
        after: BitRate::from_mbps(if truth == "own_traffic" {
            40
        } else if chance(0.05) {
            12
        } else {
            3
        }),
    });
    let moved = truth == "fact" && chance(0.97);
    let (unrelated, checked, read) = (chance(0.05), chance(0.95), chance(0.9));
    let near = if truth == "shared_segment" { 0.85 } else { 0.03 };
    let mut others = Vec::new();
    for _ in 0..2 {
        if chance(0.8) {
            others.push(chance(near));
        }
    }
    let hops: Vec<Option<bool>> = (1..=6).map(|hop| chance(0.85).then_some(queue && hop >= 3)).collect();
    let mut at = |latest: i64| {
        let low = 10_000 - second(random, 100) + latest;
        Interval {
            low: WallTime::from_millis(low * 1000),
            high: WallTime::from_millis((low + 20 + second(random, 120)) * 1000),
        }
    };
    let mut state = |(measured, changed, side): (bool, bool, Side)| -> Option<SignalState> {
        measured.then(|| if changed { Ok(SignalChange { side, at: at(0) }) } else { Err(Unchanged) })
    };
    let [capacity, queueing, loss] = states.map(&mut state);
    let signals = PathSignals { available: None, capacity, least_round_trip: None, queueing, loss };
    let mut facts = Vec::new();
    if (moved || unrelated) && checked {
        let at = at(if moved { 0 } else { -400 });
        facts.push(FactEvidence { kind: FactKind::Route, before: "a".to_owned(), after: "b".to_owned(), at });
    }
    let time = at(0);
    let changed = narrows_units::to_u32(others.iter().filter(|one| **one).count());
    Evidence {
        change: fell(time),
        host: HostState { steal: read.then_some(if host { 0.2 } else { 0.01 }), ..HostState::default() },
        own_traffic: own,
        neighbours: vec![Neighbours {
            shared: "link".to_owned(),
            changed,
            unchanged: narrows_units::to_u32(others.len()) - changed,
            elsewhere_changed: 0,
        }],
        facts,
        facts_checked: checked,
        signals,
        hops: (1..).zip(hops).filter_map(|(hop, rose)| Some(HopQueueing { hop, rose: Some(rose?) })).collect(),
        spent: Octets::new(0),
    }
}

/// A fall of the available rate.
fn fell(time: Interval) -> Change {
    Change {
        signal: Signal::AvailableForward,
        side: Side::Down,
        before: 60e6,
        after: 20e6,
        at_low: time.low,
        at: time.low,
        at_high: time.high,
        found: time.high,
    }
}

fn second(random: &mut SplitMix64, below: u64) -> i64 {
    i64::try_from(random.next_u64() % below).unwrap_or(0)
}
