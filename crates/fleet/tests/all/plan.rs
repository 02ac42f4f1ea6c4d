//! From a file to a timetable: how the parts fit each other.

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_fleet::clock::Hub;
use narrows_fleet::config::{Agent, Config, Fleet};
use narrows_fleet::keys::{Key, Path, Resource, link_slots};
use narrows_fleet::timetable::{Book, Budget, Request, ResourceId, Timetable, compile, windows};
use narrows_units::{BitRate, Octets, Stamp};

const FILE: &str = r#"
[sites.ams]
hosts = ["ams-*"]
access = { down = "1 Gbit/s", up = "200 Mbit/s", budget = "10 GB/day" }
[groups]
all = ["*"]
[[test]]
pairs = "all of all"
run = "throughput -t 10"
every = "6 h"
"#;

const DAY: Duration = Duration::from_secs(86_400);
const BEGIN: Stamp<Hub> = Stamp::from_nanos(1_795_392_000_000_000_000);
/// A link that every pair crosses, but those of one site.
const BACKBONE: u64 = 7;

fn fleet() -> Fleet {
    let agent = |name: &str| Agent { name: name.parse().unwrap(), labels: BTreeMap::new() };
    let agents = ["ams-1", "ams-2", "fra-1", "lon-1", "par-1"].map(agent);
    Config::read(FILE).unwrap().resolve(&agents, 1, 0).unwrap()
}

/// The resources of the runs, each entered into the book when it is first needed.
fn enter(book: &mut Book, ids: &mut BTreeMap<Resource, ResourceId>, fleet: &Fleet, resource: &Resource) -> ResourceId {
    *ids.entry(resource.clone()).or_insert_with(|| {
        let slots = match resource {
            Resource::Link(_) => link_slots(Some(BitRate::from_gbps(2)), BitRate::from_mbps(100)),
            _ => 1,
        };
        let per_day = match resource {
            Resource::Access(site, _) => fleet.sites[site].access.and_then(|access| access.per_day),
            _ => None,
        };
        book.add(resource.clone(), slots, Budget { per_day, ..Budget::default() })
    })
}

fn plan(fleet: &Fleet, book: &mut Book) -> (Vec<Request>, Timetable) {
    let mut ids = BTreeMap::new();
    let mut requests = Vec::new();
    let test = &fleet.tests[0];
    assert!(test.command.loads());
    for (source, target) in &test.pairs {
        let (source_site, target_site) = (fleet.site_of(source), fleet.site_of(target));
        let links: &[u64] = if source_site.is_some() && source_site == target_site { &[] } else { &[BACKBONE] };
        let path =
            Path { source, target, source_site, target_site, forward: links, reverse: &[], both_directions: true };
        let resources: Vec<_> = path.resources().iter().map(|one| enter(book, &mut ids, fleet, one)).collect();
        for (earliest, latest) in windows(test.every, None, BEGIN, DAY) {
            requests.push(Request {
                run: requests.len() as u64,
                resources: resources.clone(),
                length: Duration::from_secs(15),
                octets: Octets::new(125_000_000),
                peak: BitRate::from_mbps(100),
                earliest,
                latest,
                succeeded: None,
                skipped: false,
            });
        }
    }
    let timetable = compile(book, &requests, 1);
    (requests, timetable)
}

#[test]
fn a_file_becomes_a_timetable_without_collisions() {
    let fleet = fleet();
    let mut book = Book::new(BEGIN, DAY, 0.2);
    let (requests, timetable) = plan(&fleet, &mut book);
    // Twenty pairs, four windows a day: but 12 pairs cross the access link of ams, and 80 % of its
    // 10 GB are 64 runs; 48 of them are wanted.
    assert_eq!((requests.len(), timetable.placed.len()), (80, 80), "{:?}", timetable.unplaced);
    let mut spans: BTreeMap<Key, Vec<_>> = BTreeMap::new();
    for placed in &timetable.placed {
        let request = &requests[usize::try_from(placed.run).unwrap()];
        for (id, slot) in request.resources.iter().zip(&placed.slots) {
            let key = book.key(*id, *slot).unwrap();
            spans.entry(key).or_default().push((placed.begin, placed.begin + request.length));
        }
    }
    for (key, mut spans) in spans {
        spans.sort_unstable();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{key}");
    }
}

#[test]
fn a_budget_in_the_file_limits_the_plan_and_is_named() {
    let mut fleet = fleet();
    let ams = "ams".parse().unwrap();
    let access = fleet.sites.get_mut(&ams).and_then(|site| site.access.as_mut()).unwrap();
    access.per_day = Some(Octets::new(5_000_000_000));
    let mut book = Book::new(BEGIN, DAY, 0.2);
    let (_, timetable) = plan(&fleet, &mut book);
    // 80 % of 5 GB are 32 of the 48 runs.
    assert_eq!(timetable.unplaced.len(), 48 - 32);
    let why = book.explain(timetable.unplaced[0].1);
    assert_eq!(why, "the budget of access.ams.down has no octets left");
}
