//! What the method `hops` (or another named) says of a scenario's hops, over seeds:
//! `hops FILE [SEEDS] [METHOD] [KEY=VALUE …]`.

use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::outcome::PathHops;
use narrows_probe::{RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;

#[expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example that prints what it was asked for")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = std::fs::read_to_string(&args[0]).unwrap();
    let seeds: u64 = args.get(1).map_or(1, |text| text.parse().unwrap());
    let method = methods::find(args.get(2).map_or("hops", String::as_str)).unwrap();
    let params: RawParams = args.iter().skip(3).filter_map(|word| word.split_once('=')).collect();
    let scenario = Scenario::from_toml(&text).unwrap();
    let truth = scenario.truth(PathDirection::Forward).over(Duration::ZERO, Duration::from_secs(1));
    for seed in 1..=seeds {
        let mut world = SimWorld::new(&scenario, PathDirection::Forward, seed);
        let mut estimator = method.begin(&params).unwrap();
        let Ok(measured) = drive(&mut world, estimator.as_mut(), method.imposes(&params).budget());
        println!(
            "seed {seed}: {:.2} s, {} packets, {} octets, {:?}",
            measured.cost.time.as_secs_f64(),
            measured.cost.packets,
            measured.cost.octets,
            measured.outcome.caveats()
        );
        let Some(path) = PathHops::of(&measured.outcome) else {
            println!("  {:?}", measured.outcome);
            continue;
        };
        println!("  narrow {:?} tight {:?} {:?}", path.narrow_hop, path.tight_hop, path.forecast);
        for hop in path.hops {
            let Some(true_rate) = truth.hop_capacity(usize::from(hop.ttl) - 1, 1500) else {
                println!("  {} beyond the path {:?}", hop.ttl, hop.caveats);
                continue;
            };
            let claim = hop.capacity.map_or("nothing".to_owned(), |c| {
                let ratio = |rate: narrows_units::BitRate| rate.as_f64() / true_rate.as_f64();
                format!(
                    "{:?} {:.4} [{:.4} {:.4}]",
                    c.rate.verdict,
                    ratio(c.rate.value),
                    ratio(c.rate.low),
                    ratio(c.rate.high)
                )
            });
            let devices: Vec<String> = hop.hidden_devices.iter().map(|d| d.nominal.to_string()).collect();
            println!(
                "  {} {true_rate} {claim} {devices:?} seen {:?} {:?} lat {:?} queue {:?} busy {:.2?} loss {:?} {}/{} {:?}",
                hop.ttl,
                hop.apparent_rate.map(|rate| rate.to_string()),
                hop.predicted,
                hop.latency_ns.map(|ns| (ns / 1000.0).round()),
                hop.queueing_ns.map(|ns| (ns / 1000.0).round()),
                hop.busy_ratio,
                hop.loss_ratio,
                hop.answers,
                hop.probes,
                hop.caveats
            );
        }
    }
}
