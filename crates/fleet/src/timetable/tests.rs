use std::collections::BTreeMap;
use std::time::Duration;

use narrows_stat::SplitMix64;
use narrows_units::{BitRate, Octets, Stamp};
use proptest::prelude::*;

use super::*;
use crate::clock::Hub;
use crate::keys::{Access, Name, Resource};
use crate::mesh::below;

const BEGIN: Stamp<Hub> = Stamp::from_nanos(1_795_392_000_000_000_000);
const DAY: Duration = Duration::from_secs(86_400);
const SPAN: Duration = Duration::from_secs(15);
const NONE: Octets = Octets::new(0);

fn after(seconds: u64) -> Stamp<Hub> {
    BEGIN + Duration::from_secs(seconds)
}

fn before(seconds: u64) -> Stamp<Hub> {
    Stamp::from_nanos(BEGIN.nanos() - i64::try_from(seconds).unwrap() * 1_000_000_000)
}

fn host(number: u32) -> Resource {
    Resource::Host(format!("h{number}").parse().unwrap())
}

fn site(number: u32) -> Name {
    format!("s{number}").parse().unwrap()
}

fn request(run: u64, resources: &[ResourceId]) -> Request {
    Request {
        run,
        resources: resources.to_vec(),
        length: SPAN,
        octets: Octets::new(1_000_000),
        peak: BitRate::from_mbps(100),
        earliest: BEGIN,
        latest: after(86_400),
        succeeded: None,
        skipped: false,
    }
}

/// Pairs by rotation: so many offsets of so many hosts.
fn rotation(hosts: &[ResourceId], offsets: usize) -> Vec<Request> {
    let count = hosts.len();
    let pairs = (0..offsets).flat_map(|offset| (0..count).map(move |at| (at, (at + 1 + offset % (count - 1)) % count)));
    (0..).zip(pairs).map(|(run, (from, to))| request(run, &[hosts[from], hosts[to]])).collect()
}

/// The spans of each key, which the test sweeps by itself.
fn overlaps(book: &Book, timetable: &Timetable, requests: &[Request]) -> usize {
    let mut by_key = BTreeMap::new();
    for placed in &timetable.placed {
        let request = &requests[usize::try_from(placed.run).unwrap()];
        for (id, slot) in request.resources.iter().zip(&placed.slots) {
            let spans: &mut Vec<_> = by_key.entry(book.key(*id, *slot).unwrap()).or_default();
            spans.push((placed.begin, placed.begin + request.length));
        }
    }
    let clashes = |spans: &mut Vec<(Stamp<Hub>, Stamp<Hub>)>| {
        spans.sort_unstable();
        spans.windows(2).filter(|pair| pair[0].1 > pair[1].0).count()
    };
    by_key.values_mut().map(clashes).sum()
}

#[test]
fn fifty_hosts_reach_nearly_what_their_budgets_allow() {
    let mut book = Book::new(BEGIN, DAY, 0.0);
    let hosts: Vec<_> = (0..50).map(|number| book.add(host(number), 1, Budget::default())).collect();
    let requests = rotation(&hosts, 300);
    let timetable = compile(&mut book, &requests, 3);
    assert_eq!(overlaps(&book, &timetable, &requests), 0);
    let share = timetable.placed.len() as f64 / (24.0 * most_per_hour(0.1, 50, SPAN));
    assert!((0.98..=1.0).contains(&share), "{share}");
    assert_eq!(timetable.placed.len() + timetable.unplaced.len(), requests.len());
    assert!(timetable.unplaced.iter().all(|(_, why)| why.limit == Limit::Time));
}

#[test]
fn sites_share_their_access_links() {
    let mut book = Book::new(BEGIN, DAY, 0.0);
    let mut ids = Vec::new();
    for number in 0..60 {
        ids.push(book.add(host(number), 1, Budget::default()));
    }
    let accesses: Vec<[ResourceId; 2]> = (0..12)
        .map(|number| {
            [Access::Down, Access::Up].map(|way| book.add(Resource::Access(site(number), way), 1, Budget::default()))
        })
        .collect();
    let mut requests = rotation(&ids, 100);
    for request in &mut requests {
        let sites: Vec<usize> = request.resources.iter().map(|id| id.0 as usize % 12).collect();
        if sites[0] != sites[1] {
            request.resources.extend(sites.iter().flat_map(|at| accesses[*at]));
        }
    }
    requests.retain(|request| request.resources.len() > 2);
    requests.iter_mut().zip(0..).for_each(|(request, run)| request.run = run);
    let timetable = compile(&mut book, &requests, 3);
    assert_eq!(overlaps(&book, &timetable, &requests), 0);
    let share = timetable.placed.len() as f64 / (24.0 * most_per_hour(0.1, 12, SPAN));
    assert!((0.97..=1.0).contains(&share), "{share}");
}

#[test]
fn skipped_runs_come_first_then_those_that_waited_longest() {
    // Room for three runs on one host.
    let budget = Budget { share: 45.0 / 86_400.0, ..Budget::default() };
    let mut book = Book::new(BEGIN, DAY, 0.0);
    let only = book.add(host(0), 1, budget);
    let mut requests: Vec<_> = (0..6).map(|run| request(run, &[only])).collect();
    for (request, hours_ago) in requests.iter_mut().zip([1, 5, 3, 2, 9, 4]) {
        request.succeeded = Some(Stamp::from_nanos(BEGIN.nanos() - hours_ago * 3_600_000_000_000));
    }
    requests[0].skipped = true;
    requests[2].succeeded = None;
    let timetable = compile(&mut book, &requests, 1);
    let mut runs: Vec<u64> = timetable.placed.iter().map(|placed| placed.run).collect();
    runs.sort_unstable();
    assert_eq!(runs, [0, 2, 4]);
    let refused = Refusal { resource: Some(only), limit: Limit::Time };
    assert!(timetable.unplaced.iter().all(|(_, why)| *why == refused));
    assert_eq!(book.explain(refused), "the budget of host.h0 has no time left");
}

#[test]
fn budgets_limit_octets_and_peak() {
    let mut book = Book::new(BEGIN, DAY, 0.0);
    let few = Budget { per_day: Some(Octets::new(2_500_000)), ..Budget::default() };
    let slow = Budget { peak: Some(BitRate::from_mbps(99)), ..Budget::default() };
    let (few, slow) = (book.add(host(0), 1, few), book.add(host(1), 1, slow));
    let requests: Vec<_> = (0..5).map(|run| request(run, &[if run < 4 { few } else { slow }])).collect();
    let timetable = compile(&mut book, &requests, 1);
    let limits: Vec<_> = timetable.unplaced.iter().map(|(_, why)| (why.resource.unwrap(), why.limit)).collect();
    assert_eq!(timetable.placed.len(), 2);
    assert_eq!(limits.iter().filter(|limit| **limit == (few, Limit::Octets)).count(), 2);
    assert_eq!(limits.iter().filter(|limit| **limit == (slow, Limit::Peak)).count(), 1);
}

#[test]
fn orders_take_the_earliest_gap_and_their_own_part_of_the_budget() {
    // 150 s: 120 for the plan, 30 for orders.
    let budget = Budget { share: 150.0 / 86_400.0, ..Budget::default() };
    let mut book = Book::new(BEGIN, DAY, 0.2);
    let only = book.add(host(0), 1, budget);
    let planned: Vec<_> = (0..20).map(|run| request(run, &[only])).collect();
    assert_eq!(compile(&mut book, &planned, 1).placed.len(), 8);
    book.hold(only, Some(0), (after(100), Duration::from_secs(50)), NONE, Asker::Plan);
    let mut asked = request(0, &[only]);
    asked.earliest = after(90);
    let first = book.order(&asked).unwrap().begin;
    assert!(first >= after(150) && first <= after(170 + 8 * 15), "{:?}", first - BEGIN);
    assert_eq!(book.order(&asked).unwrap().begin, first + SPAN);
    assert_eq!(book.order(&asked), Err(Refusal { resource: Some(only), limit: Limit::Time }));
}

#[test]
fn what_is_held_is_paid_for_by_who_asked_for_it_also_before_the_begin() {
    // 150 s and 10 MB: a fifth of them is for orders.
    let budget = Budget { share: 150.0 / 86_400.0, per_day: Some(Octets::new(10_000_000)), ..Budget::default() };
    let mut book = Book::new(BEGIN, DAY, 0.2);
    let only = book.add(host(0), 1, budget);
    let asked = Request { earliest: after(90), ..request(0, &[only]) };
    let refused = |limit| Err(Refusal { resource: Some(only), limit });
    let with = |spans: &[(Stamp<Hub>, u64, Asker)]| {
        let mut book = book.clone();
        for (begin, octets, asker) in spans {
            book.hold(only, Some(0), (*begin, SPAN), Octets::new(*octets), *asker);
        }
        let planned: Vec<_> = (0..20).map(|run| request(run, &[only])).collect();
        let planned = compile(&mut book.clone(), &planned, 1).placed.len();
        (book.order(&asked).map(|placed| placed.begin), planned)
    };
    assert_eq!(with(&[]), (Ok(after(90)), 8));
    // One more fits into the share, and what has passed keeps nobody off.
    assert_eq!(with(&[(before(60), 0, Asker::Hand)]), (Ok(after(90)), 8));
    assert_eq!(with(&[(before(60), 0, Asker::Hand), (after(90), 0, Asker::Hand)]), (refused(Limit::Time), 8));
    assert_eq!(with(&[(before(60), 1_500_000, Asker::Hand)]), (refused(Limit::Octets), 8));
    assert_eq!(with(&[(before(60), 7_500_000, Asker::Plan)]), (Ok(after(90)), 0));
    assert_eq!(with(&[(before(60), 0, Asker::Plan), (before(30), 0, Asker::Plan)]), (Ok(after(90)), 6));
}

#[test]
fn held_spans_and_windows_are_kept() {
    let mut book = Book::new(BEGIN, Duration::from_secs(100), 0.0);
    let all = Budget { share: 1.0, ..Budget::default() };
    let (one, two) = (book.add(host(0), 1, all), book.add(host(1), 1, all));
    // It began before the book: 40 s of it are left.
    book.hold(one, Some(0), (before(20), Duration::from_secs(60)), NONE, Asker::Plan);
    book.hold(two, Some(0), (after(50), Duration::from_secs(40)), NONE, Asker::Plan);
    let mut asked = request(0, &[one, two]);
    asked.length = Duration::from_secs(10);
    let timetable = compile(&mut book.clone(), &[asked.clone(), Request { run: 1, ..asked.clone() }], 9);
    let begins: Vec<_> = timetable.placed.iter().map(|placed| placed.begin).collect();
    assert_eq!(begins, [after(40), after(90)]);
    asked.latest = after(39);
    assert_eq!(compile(&mut book.clone(), &[asked.clone()], 9).unplaced[0].1.limit, Limit::Gap);
    asked.length = Duration::from_secs(101);
    assert_eq!(compile(&mut book, &[asked], 9).unplaced[0].1, Refusal { resource: None, limit: Limit::Window });
}

#[test]
fn a_link_with_slots_has_runs_at_once() {
    let mut book = Book::new(BEGIN, Duration::from_secs(15), 0.0);
    let all = Budget { share: 1.0, ..Budget::default() };
    let link = book.add(Resource::Link(4), 3, all);
    let requests: Vec<_> = (0..4).map(|run| request(run, &[link])).collect();
    let timetable = compile(&mut book, &requests, 2);
    let mut slots: Vec<u32> = timetable.placed.iter().map(|placed| placed.slots[0]).collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1, 2]);
}

#[test]
fn held_spans_may_overlap_and_other_slots_of_before_block_all_of_now() {
    let mut book = Book::new(BEGIN, Duration::from_secs(100), 0.0);
    let all = Budget { share: 2.0, ..Budget::default() };
    let link = book.add(Resource::Link(4), 2, all);
    let seconds = Duration::from_secs;
    book.hold(link, Some(0), (after(0), seconds(60)), NONE, Asker::Plan);
    book.hold(link, Some(0), (after(10), seconds(10)), NONE, Asker::Plan);
    book.hold(link, None, (after(30), seconds(20)), NONE, Asker::Plan);
    let mut asked = request(0, &[link]);
    asked.length = seconds(40);
    let free = |earliest, book: &mut Book| {
        let timetable =
            compile(book, &[Request { earliest: after(earliest), latest: after(earliest + 10), ..asked.clone() }], 1);
        timetable.placed.first().map(|placed| (placed.begin.since(BEGIN).as_secs(), placed.slots[0]))
    };
    assert_eq!(free(10, &mut book), None);
    assert_eq!(free(50, &mut book).map(|(_, slot)| slot), Some(1));
    assert_eq!(free(50, &mut book), Some((60, 0)));
}

#[test]
fn runs_start_at_any_time_of_the_day() {
    let timetable = |seed| {
        let mut book = Book::new(BEGIN, DAY, 0.0);
        let ids: Vec<_> = (0..400).map(|number| book.add(host(number), 1, Budget::default())).collect();
        let requests: Vec<_> = (0..).zip(&ids).map(|(run, id)| request(run, &[*id])).collect();
        compile(&mut book, &requests, seed)
    };
    let minutes: Vec<u64> = timetable(1).placed.iter().map(|placed| placed.begin.since(BEGIN).as_secs() / 60).collect();
    let mean = minutes.iter().sum::<u64>() / 400;
    // Uniform over 1440 min: the mean of 400 has a standard deviation of 21 min.
    assert!((654..786).contains(&mean), "{mean}");
    assert!((0..24).all(|hour| minutes.iter().any(|minute| minute / 60 == hour)));
    assert_eq!(timetable(1), timetable(1));
    assert_ne!(timetable(1), timetable(2));
}

#[test]
fn windows_follow_the_last_success() {
    let hours = |number: u64| Duration::from_secs(3600 * number);
    let of = |succeeded| {
        let windows = windows(hours(6), succeeded, BEGIN, DAY);
        windows
            .iter()
            .map(|(from, to)| ((from.since(BEGIN).as_secs() / 3600), to.since(BEGIN).as_secs() / 3600))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(None), [(0, 6), (6, 12), (12, 18), (18, 24)]);
    assert_eq!(of(Some(Stamp::from_nanos(BEGIN.nanos() - 3_600_000_000_000))), [(5, 11), (11, 17), (17, 23), (23, 24)]);
    assert_eq!(of(Some(Stamp::from_nanos(0))), of(None));
}

proptest! {
    /// Whatever is asked, no key is reserved twice and no span leaves its window.
    #[test]
    fn no_key_is_reserved_twice(seed in any::<u64>(), runs in 1_u64..120, resources in 1_u32..8) {
        let mut random = SplitMix64::new(seed);
        let mut book = Book::new(BEGIN, Duration::from_secs(600), 0.2);
        let budget = Budget { share: 0.8, per_day: Some(Octets::new(20_000_000_000)), peak: None };
        let ids: Vec<_> = (0..resources).map(|number| {
            let slots = if number % 2 == 0 { 1 } else { 3 };
            book.add(if slots == 1 { host(number) } else { Resource::Link(u64::from(number)) }, slots, budget)
        }).collect();
        let mut draw = |most: usize| below(most, &mut random) as u64;
        let requests: Vec<_> = (0..runs).map(|run| {
            let mut wanted: Vec<_> = ids.iter().copied().filter(|_| draw(3) == 0).collect();
            if wanted.is_empty() {
                wanted.push(ids[0]);
            }
            let mut request = request(run, &wanted);
            request.length = Duration::from_millis(1 + draw(30_000));
            request.earliest = after(draw(500));
            request.latest = request.earliest + Duration::from_secs(draw(300));
            request
        }).collect();
        let timetable = compile(&mut book, &requests, seed);
        prop_assert_eq!(overlaps(&book, &timetable, &requests), 0);
        for placed in &timetable.placed {
            let request = &requests[usize::try_from(placed.run).unwrap()];
            prop_assert!((request.earliest..=request.latest).contains(&placed.begin));
            prop_assert!(placed.begin + request.length <= after(600));
        }
        prop_assert_eq!(timetable.placed.len() + timetable.unplaced.len(), requests.len());
    }
}

/// Of a path that nobody traced it is not known which links it loads: it may be any.
#[test]
fn paths_that_nobody_traced_meet_no_other_load_of_a_link() {
    let mut book = Book::new(BEGIN, DAY, 0.5);
    let hosts: Vec<_> = (0..8).map(|number| book.add(host(number), 1, Budget::default())).collect();
    let [link, other] = [1, 2].map(|number| book.add(Resource::Link(number), 2, Budget::default()));
    let untraced = book.add(Resource::UNTRACED, 1, Budget::default());
    let mut begin = |pair: usize, more: &[ResourceId]| {
        let resources = [&hosts[2 * pair..2 * pair + 2], more].concat();
        book.order(&request(0, &resources)).unwrap().begin
    };
    let first = [begin(0, &[link]), begin(1, &[other]), begin(2, &[]), begin(3, &[untraced])];
    // The run over the link may start when its span ends, and last as long as that.
    assert_eq!(first, [BEGIN, BEGIN, BEGIN, BEGIN + 2 * SPAN]);
    // Both slots of the link are free then, but who knows.
    assert_eq!(begin(0, &[link]), BEGIN + 4 * SPAN);
    assert_eq!(begin(1, &[untraced]), BEGIN + 6 * SPAN);
    // Without links a run meets none.
    assert_eq!(begin(2, &[]), BEGIN + SPAN);
    // What an older plan reserved counts like what this one did.
    for (held, wants) in [(link, untraced), (untraced, other)] {
        let mut book = book.clone();
        book.hold(held, None, (after(1_000), SPAN), NONE, Asker::Plan);
        let wish = Request { earliest: after(990), ..request(0, &[hosts[6], hosts[7], wants]) };
        assert_eq!(book.order(&wish).unwrap().begin, after(1_000) + 2 * SPAN);
    }
}
