//! Days of a fleet whose paths need more octets than light runs have.

use super::*;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 1_440 * MINUTE_MS;

fn subject(source: &str, target: &str) -> Subject {
    Subject { source: source.parse().unwrap(), target: target.parse().unwrap(), kind: "available".to_owned() }
}

/// A path that needs so many octets for a value; none are enough for one that needs `u64::MAX`.
struct Path {
    subject: Subject,
    rate: Option<BitRate>,
    needs: u64,
}

/// What was ordered: when, over which path, with how many octets, and whether it had a value.
type Ran = (i64, usize, u64, bool);

/// A light run on each path every hour, and orders that take a minute.
fn days(paths: &[Path], days: i64) -> Vec<Ran> {
    let (mut allowances, mut open, mut ran) = (Allowances::default(), Vec::new(), Vec::new());
    let rate = |one: &Subject| paths.iter().find(|path| path.subject == *one).unwrap().rate;
    let ending = |path: &Path, octets: u64| if octets >= path.needs { Ending::Value } else { Ending::Spent };
    for now_ms in (0..days * DAY_MS).step_by(60_000) {
        for (number, octets) in std::mem::take(&mut open) {
            let path: &Path = &paths[number];
            let found = ending(path, octets);
            ran.push((now_ms, number, octets, found == Ending::Value));
            allowances.ordered(&path.subject, found, path.rate, now_ms);
        }
        if now_ms % (60 * MINUTE_MS) == 0 {
            for path in paths {
                allowances.light(path.subject.clone(), ending(path, LIGHT.count()), now_ms);
            }
        }
        let mut busy = BTreeSet::new();
        while let Some((subject, octets)) = allowances.next(rate, now_ms) {
            for host in [&subject.source, &subject.target] {
                assert!(busy.insert(host.clone()), "{host} is an end of two runs at once");
            }
            let number = paths.iter().position(|path| path.subject == subject).unwrap();
            open.push((number, octets.count()));
        }
    }
    ran
}

#[test]
fn three_hosts_at_five_gigabits_have_values_within_minutes_and_once_a_day() {
    let mut paths = Vec::new();
    // As it was measured between hosts of one machine.
    let needs = [38_700_000, 114_000_000, 47_700_000, 74_800_000, 12_900_000, 41_900_000];
    for (source, target) in [("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")] {
        let (rate, needs) = (Some(BitRate::from_mbps(5_500)), needs[paths.len()]);
        paths.push(Path { subject: subject(source, target), rate, needs });
    }
    let ran = days(&paths, 10);
    for number in 0..paths.len() {
        let own: Vec<&Ran> = ran.iter().filter(|(_, one, ..)| *one == number).collect();
        let first = own.iter().find(|(.., value)| *value).unwrap();
        assert!(first.0 <= 10 * MINUTE_MS, "{number}: {first:?}");
        let after: Vec<_> = own.iter().filter(|(at_ms, ..)| *at_ms > first.0).collect();
        assert!((8..=10).contains(&after.len()) && after.iter().all(|(.., value)| *value), "{number}: {after:?}");
    }
    let sent: u64 = ran.iter().map(|(_, _, octets, _)| octets).sum();
    // Six paths, once a day with at most 256 MB, and the smaller tries of the first day.
    assert!(sent <= 6 * 10 * MOST.count() + 6 * LIGHT.count() * GROWTH, "{sent}");
}

#[test]
fn no_run_has_more_than_its_path_carries_in_a_second() {
    let path = |target: &str, mbps: Option<u64>, needs| Path {
        subject: subject("a", target),
        rate: mbps.map(BitRate::from_mbps),
        needs,
    };
    let paths = [path("b", Some(100), u64::MAX), path("c", None, u64::MAX), path("d", Some(10_000), u64::MAX)];
    let ran = days(&paths, 3);
    let of = |number: usize| -> Vec<u64> {
        ran.iter().filter(|(_, one, ..)| *one == number).map(|(_, _, octets, _)| *octets).collect()
    };
    // One try of 100 Mbit/s a day, and two where the first may be too small.
    assert_eq!(of(0), [12_500_000; 3]);
    assert_eq!(of(1), [64_000_000, 125_000_000].repeat(3));
    assert_eq!(of(2), [64_000_000, 256_000_000].repeat(3));
}

#[test]
fn a_light_run_with_a_value_ends_it_and_a_lost_order_waits() {
    let mut allowances = Allowances::default();
    let (one, none) = (subject("a", "b"), |_: &Subject| None);
    allowances.light(one.clone(), Ending::Other, 0);
    assert_eq!(allowances.next(none, 0), None);
    allowances.light(one.clone(), Ending::Spent, 0);
    assert_eq!(allowances.next(none, 0), Some((one.clone(), Octets::new(64_000_000))));
    // It is open: neither is it ordered again, nor does a light run change it.
    allowances.light(one.clone(), Ending::Spent, MINUTE_MS);
    assert_eq!(allowances.next(none, 9 * MINUTE_MS), None);
    assert_eq!(allowances.next(none, 11 * MINUTE_MS), None);
    assert_eq!(allowances.next(none, 11 * MINUTE_MS + DAY_MS), Some((one.clone(), Octets::new(64_000_000))));
    allowances.refused(&one, 2 * DAY_MS);
    assert_eq!(allowances.next(none, 3 * DAY_MS - 1), None);
    allowances.light(one.clone(), Ending::Value, 3 * DAY_MS - 1);
    assert_eq!(allowances.next(none, 9 * DAY_MS), None);
}
