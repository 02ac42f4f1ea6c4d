//! A host that plays a profile, recorded again, has that profile.
//!
//! Bounds: each quantile of the second recording lies between the first one's quantiles at half a
//! percent less and more, four standard errors of a share of that many values, and eight values
//! (for the ends: the least of many values is rarely behind the eighth).

use std::sync::Arc;

use super::*;
use narrows_host_profile::{About, HostProfile, PERCENTS, PacketRow, Quantiles, Recorded, Rows, Span};

/// Every profile that ships.
fn shipped() -> Vec<Arc<HostProfile>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hosts");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    let text = |path: &std::path::PathBuf| std::fs::read_to_string(path).unwrap();
    files.iter().map(|path| Arc::new(HostProfile::from_toml(&text(path)).unwrap())).collect()
}

fn about(seed: u64) -> About {
    let recorded = Recorded {
        at: format!("seed {seed}"),
        seconds: 1.0,
        over: "no path".to_owned(),
        machine: "simulated".to_owned(),
        busy_share: None,
    };
    About { name: "again".to_owned(), about: String::new(), recorded, virtual_interface: false }
}

/// What `seconds` of recording see of two hosts of this profile, without a path between them.
fn record(profile: &Arc<HostProfile>, seed: u64, seconds: u64) -> Rows {
    let host = Host::default().playing(Arc::clone(profile));
    let [mut sender, mut receiver] =
        [PathDirection::Forward, PathDirection::Reverse].map(|way| HostState::new(&host, way, seed));
    let mut intake = Intake::new(None);
    let mut rows = Rows::default();
    let end = seconds * 1_000_000_000;
    let mut begin = 1_000_000_000;
    let mut trains = 0;
    while begin < end {
        let (packets, gap) = Rows::train(trains);
        let gap = u64::try_from(gap).unwrap();
        let mut planned = begin;
        for place in 0..packets {
            let cost = sender.send_time(0);
            let left = if place > 0 && gap == 0 {
                sender.departure(planned, cost)
            } else {
                sender.paced_departure(planned, cost)
            };
            intake.arrive(left.leaves, 0, (left, (place == 0 || gap > 0).then_some(planned)), &mut receiver);
            let late = left.stamped - planned;
            planned = if late > (gap / 2).max(5_000) || gap == 0 { left.stamped } else { planned } + gap;
        }
        trains += 1;
        begin = (begin + 10_000_000).max(planned + 5_000_000);
    }
    while let Some(reading) = intake.pop_until(NEVER - 1, &mut receiver) {
        let (left, planned) = reading.payload;
        let ns = |at: u64| i64::try_from(at).unwrap();
        let row = PacketRow {
            planned_ns: planned.map(ns),
            stamped_ns: ns(left.stamped),
            left_ns: ns(left.leaves),
            returned_ns: ns(left.returned),
            arrived_ns: ns(left.leaves),
            seen_ns: ns(reading.stamped),
            read_ns: ns(reading.at),
        };
        if let Some(last) = rows.packets.last().filter(|last| last.read_ns >= row.seen_ns) {
            rows.receive_calls_ns.push(row.read_ns - last.read_ns);
        }
        rows.packets.push(row);
    }
    rows.clock_reads_ns = profile.clock.read_ns.at.clone();
    let both = profile.ends == Ends::Both;
    watch(&mut rows, end, &mut sender, both.then_some(&mut receiver));
    rows
}

/// One window over all of the time, and the stalls in it.
fn watch(rows: &mut Rows, end: u64, sender: &mut HostState, receiver: Option<&mut HostState>) {
    let stalls = |host: &mut HostState| -> Vec<Span> {
        host.running(end);
        let list = host.stalls.iter().flat_map(|stalls| &stalls.list);
        list.map(|&(from, to)| Span { from: i64::try_from(from).unwrap(), to: i64::try_from(to).unwrap() }).collect()
    };
    rows.windows = vec![Span { from: 0, to: i64::try_from(end).unwrap() }];
    rows.sender_stalls = stalls(sender);
    rows.receiver_stalls = receiver.map(stalls);
}

/// See the bounds above.
fn same(what: &str, known: &Quantiles, again: &Quantiles) {
    for (percent, value) in PERCENTS.iter().zip(&again.at) {
        let share = percent / 100.0;
        let count = again.count as f64;
        let error = 0.005 + 4.0 * (share * (1.0 - share) / count).sqrt() + 8.0 / count;
        let (low, high) = (known.value((share - error).max(0.0)), known.value((share + error).min(1.0)));
        assert!(
            (low..=high).contains(value),
            "{what}: the quantile at {percent} % is {value}, not within {low} and {high} ({} values)",
            again.count
        );
    }
}

#[test]
fn packets_have_the_profile_again() {
    for (known, seed) in shipped().iter().zip((1..).step_by(10)) {
        for seed in [seed, seed + 1] {
            let again = HostProfile::of_rows(&record(known, seed, 4), about(seed)).unwrap();
            for ((key, known_part, _), (_, again_part, _)) in known.parts().iter().zip(again.parts()) {
                // Simulated hosts read their clock without calls; batches follow from the rest.
                if !matches!(*key, "clock.read_ns" | "receive.batch_packets") {
                    same(&format!("{} with seed {seed}: {key}", known.name), known_part, again_part);
                }
            }
        }
    }
}

/// Five minutes: quiet hosts stall rarely.
#[test]
fn stalls_have_the_profile_again() {
    for known in shipped() {
        for seed in [7, 8, 9] {
            let host = Host::default().playing(Arc::clone(&known));
            let [mut sender, mut receiver] =
                [PathDirection::Forward, PathDirection::Reverse].map(|way| HostState::new(&host, way, seed));
            let mut rows = record(&known, seed, 2);
            let both = known.ends == Ends::Both;
            watch(&mut rows, 300_000_000_000, &mut sender, both.then_some(&mut receiver));
            let again = HostProfile::of_rows(&rows, about(seed)).unwrap();
            let states: Vec<_> = known.stalls.states.keys().collect();
            assert_eq!(states, again.stalls.states.keys().collect::<Vec<_>>(), "{}", known.name);
            for (state, sojourn) in &known.stalls.states {
                let what = format!("{} with seed {seed}: {}", known.name, state.key());
                let found = &again.stalls.states[state];
                same(&what, &sojourn.lasting_ns, &found.lasting_ns);
                let all = |next: &std::collections::BTreeMap<_, u64>| next.values().sum::<u64>() as f64;
                for (to, count) in &sojourn.next {
                    let share = *count as f64 / all(&sojourn.next);
                    let seen = found.next.get(to).copied().unwrap_or(0) as f64 / all(&found.next);
                    let error = 0.005 + 4.0 * (share * (1.0 - share) / all(&found.next)).sqrt();
                    assert!((share - seen).abs() <= error, "{what} to {}: {seen}, not {share}", to.key());
                }
            }
        }
    }
}

/// The same seed plays the same host, another one another; and both ends of a machine stall
/// together.
#[test]
fn hosts_are_seeded() {
    let all = shipped();
    let known = all.iter().find(|known| known.ends == Ends::Both).unwrap();
    let first = record(known, 5, 2);
    assert_eq!(first, record(known, 5, 2));
    assert_ne!(first.sender_stalls, record(known, 6, 2).sender_stalls);
    let joint = |rows: &Rows| {
        let receiver = rows.receiver_stalls.as_ref().unwrap();
        rows.sender_stalls
            .iter()
            .filter(|stall| receiver.iter().any(|other| other.from < stall.to && stall.from < other.to))
            .count()
    };
    assert!(joint(&first) > 0, "{:?}", first.sender_stalls);
}
