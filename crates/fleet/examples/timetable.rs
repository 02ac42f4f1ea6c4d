//! Compiles a day for fleets of three sizes, and prints what fits beside what the budgets allow.
//!
//! `cargo run --release -p narrows-fleet --example timetable`

#![allow(clippy::print_stdout, reason = "a program that prints a table")]
#![allow(clippy::disallowed_methods, reason = "how long the compiler takes is one of its columns")]

use std::time::{Duration, Instant};

use narrows_fleet::keys::{Access, Resource};
use narrows_fleet::mesh::{Mesh, fan_out};
use narrows_fleet::timetable::{Book, Budget, Request, ResourceId, compile, most_per_hour};
use narrows_units::{BitRate, Octets, Stamp};

const DAY: Duration = Duration::from_secs(86_400);
const SPAN: Duration = Duration::from_secs(15);

fn main() {
    println!(
        "| hosts | access links | k | light runs/h | each pair after | R, runs/h | for orders | placed/h | of R | compiled in |"
    );
    println!("|-|-|-|-|-|-|-|-|-|-|");
    for (hosts, sites) in [(50, None), (1_000, None), (1_000, Some(100)), (10_000, None), (10_000, Some(1_000))] {
        for by_hand in [0.0, 0.2] {
            println!("{}", row(hosts, sites, by_hand));
        }
    }
}

fn row(hosts: u32, sites: Option<u32>, by_hand: f64) -> String {
    let mut book = Book::new(Stamp::from_nanos(0), DAY, by_hand);
    let all = 24.0 * most_per_hour(0.1, sites.unwrap_or(hosts), SPAN);
    let requests = requests(&mut book, hosts, sites, all);
    let began = Instant::now();
    let timetable = compile(&mut book, &requests, 7);
    let took = began.elapsed();
    let (mesh, placed) = (Mesh::new(hosts, 7), timetable.placed.len() as f64);
    format!(
        "| {hosts} | {} | {} | {} | {} h | {:.0} | {:.0} % | {:.0} | {:.1} % | {:.2} s |",
        sites.map_or_else(|| "-".to_owned(), |sites| sites.to_string()),
        fan_out(hosts),
        hosts * fan_out(hosts),
        mesh.cycle(),
        all / 24.0,
        by_hand * 100.0,
        placed / 24.0,
        placed / all * 100.0,
        took.as_secs_f64(),
    )
}

/// Pairs by rotation, a twentieth more than fit.
fn requests(book: &mut Book, hosts: u32, sites: Option<u32>, fit: f64) -> Vec<Request> {
    let name = |kind: char, number: u32| format!("{kind}{number}").parse().expect("a letter and a number");
    let ids: Vec<_> =
        (0..hosts).map(|number| book.add(Resource::Host(name('h', number)), 1, Budget::default())).collect();
    let accesses: Vec<[ResourceId; 2]> = (0..sites.unwrap_or(0))
        .map(|number| {
            [Access::Down, Access::Up]
                .map(|direction| book.add(Resource::Access(name('s', number), direction), 1, Budget::default()))
        })
        .collect();
    let mut requests = Vec::new();
    for offset in (1..hosts).cycle() {
        for from in 0..hosts {
            let to = (from + offset) % hosts;
            let mut resources = vec![ids[from as usize], ids[to as usize]];
            if let Some(sites) = sites {
                if from % sites == to % sites {
                    continue;
                }
                resources.extend([from, to].iter().flat_map(|host| accesses[(host % sites) as usize]));
            }
            requests.push(request(requests.len() as u64, resources));
        }
        if requests.len() as f64 > 1.05 * fit {
            break;
        }
    }
    requests
}

fn request(run: u64, resources: Vec<ResourceId>) -> Request {
    Request {
        run,
        resources,
        length: SPAN,
        octets: Octets::new(100_000_000),
        peak: BitRate::from_mbps(100),
        earliest: Stamp::from_nanos(0),
        latest: Stamp::from_nanos(0) + DAY,
        succeeded: None,
        skipped: false,
    }
}
