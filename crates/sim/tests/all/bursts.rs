//! `burst` against what the simulator says: idle paths to a packet, beside others' traffic the
//! median to a tenth, and what drops.

use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::{Budget, Diagnostic, Estimate, RawParams};
use narrows_scenario::{Arrivals, Cross, EarlyDrop, Hop, PathDirection, Queue, Scenario, SizeMix, TokenBucket};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Octets};

const MS: Duration = Duration::from_millis(1);

fn measured(scenario: &Scenario, params: &[(&str, &str)], seed: u64) -> Estimate {
    let raw: RawParams = params.iter().copied().collect();
    let budget = Budget { octets: 10_000_000_000, time: Duration::from_secs(600), ..Budget::default() };
    let mut world = SimWorld::new(scenario, PathDirection::Forward, seed);
    let method = methods::find("burst").expect("it is in the registry");
    let mut method = method.begin(&raw).expect("the parameters are right");
    let outcome =
        narrows_probe::drive(&mut world, method.as_mut(), budget).expect("the simulator cannot break").outcome;
    outcome.estimate().unwrap_or_else(|| panic!("{outcome:?}")).clone()
}

/// Largest burst of an idle path, by the recursion.
fn truth_of(scenario: &Scenario, ip_octets: u16) -> u64 {
    let truth = scenario.truth(PathDirection::Forward).burst(ip_octets, None);
    truth.expect("something drops").ip_octets
}

fn number(estimate: &Estimate, name: &str) -> Option<f64> {
    reported(&estimate.diagnostics, name).and_then(Diagnostic::as_f64)
}

fn word(estimate: &Estimate, name: &str) -> String {
    match reported(&estimate.diagnostics, name) {
        Some(Diagnostic::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

/// A fast first link, and one of `rate` behind a queue.
fn path(rate: BitRate, queue: Queue) -> Scenario {
    let first = BitRate::from_bps(rate.bps() * 10);
    Scenario::new("burst")
        .hop(Hop::rate(first).delay(MS).queue(Queue::Unlimited))
        .hop(Hop::rate(rate).delay(4 * MS).queue(queue))
}

const DETAIL: [(&str, &str); 3] = [("detail", "true"), ("max_time", "300 s"), ("total_octets", "1 GB")];

/// 1 Mbit/s to 10 Gbit/s; queues in octets and in packets, of 5 to 1000 packets; packets of 1500
/// and 500 octets: within one packet of the recursion, the queue behind within a twentieth and a
/// packet, and the word for what drops.
#[test]
fn idle_paths_to_a_packet() {
    let mut wrong = Vec::new();
    for mbps in [1u64, 10, 100, 1000, 10_000] {
        for packets in [5u32, 40, 1000] {
            for (counts, queue) in [
                ("packets", Queue::Packets(packets)),
                ("octets", Queue::Octets(Octets::new(u64::from(packets) * 1500 + 700))),
            ] {
                if mbps == 1 && packets > 40 {
                    // Twelve seconds of queue: nobody would wait for that.
                    continue;
                }
                let scenario = path(BitRate::from_mbps(mbps), queue).validate().expect("a path");
                for size in ["1500", "500"] {
                    let params = [&DETAIL[..], &[("ip_octets", size)]].concat();
                    let estimate = measured(&scenario, &params, 1);
                    let packet: u64 = size.parse().expect("a number");
                    let truth = truth_of(&scenario, size.parse().expect("a number"));
                    let policy = word(&estimate, "queue_policy");
                    let counted = word(&estimate, "queue_counts");
                    let room = match queue {
                        Queue::Octets(octets) => octets.count() as f64,
                        _ => f64::from(packets) * packet as f64,
                    };
                    let effective = number(&estimate, "effective_queue_octets").unwrap_or(0.0);
                    let by_delay = number(&estimate, "queue_by_delay_octets").unwrap_or(0.0);
                    println!(
                        "{mbps} Mbit/s, {packets} x 1500 in {counts}, packets of {size}: {} for {truth}; {policy} {counted}; queue {room:.0}: {effective:.0} by {}, {by_delay:.0} by delay",
                        estimate.in_unit().value,
                        word(&estimate, "effective_queue_basis"),
                    );
                    // A queue that drains faster than stamps tell is no queue that can be named.
                    let short = room * 8.0 / (mbps as f64 * 1e6) < 25e-6;
                    let named = (policy == "drop_tail"
                        && (counted == counts || (counted.is_empty() && packets < 40 || size == "500")))
                        || (short && policy == "unknown");
                    let near = (effective - room).abs() <= 0.05 * room + 1.5 * packet as f64;
                    if estimate.in_unit().value.abs_diff(truth) > packet || !named || !near {
                        wrong.push((
                            mbps,
                            packets,
                            counts,
                            size,
                            estimate.in_unit().value,
                            truth,
                            policy,
                            counted,
                            effective,
                            room,
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Beside Poisson traffic, and beside bursts, of a quarter to three quarters of the link: p50
/// within a tenth.
#[test]
fn beside_others_the_median_to_a_tenth() {
    let mut wrong = Vec::new();
    for mbps in [10u64, 100, 1000] {
        for share in [0.25, 0.5, 0.75] {
            for packets in [30u32, 150] {
                let rate = BitRate::from_mbps(mbps);
                let taken = rate.scaled(share * 0.975).expect("a share of a rate is a rate");
                let cross = Cross::on_hop(1, Arrivals::Poisson, taken, SizeMix::constant(1500));
                let scenario = path(rate, Queue::Packets(packets)).cross(cross).validate().expect("a path");
                let truth =
                    narrows_sim::burst_median(&scenario, PathDirection::Forward, 1500).expect("something drops");
                let mut ratios = Vec::new();
                for seed in 1..=5 {
                    let params = [("max_time", "60 s"), ("total_octets", "1 GB"), ("bursts", "30")];
                    let estimate = measured(&scenario, &params, seed);
                    ratios.push(estimate.in_unit().value as f64 / truth as f64);
                }
                println!("{mbps} Mbit/s, {share} taken, {packets} packets: {ratios:.3?}");
                let off = |ratio: &f64| (ratio - 1.0).abs() > 0.1;
                if ratios.iter().any(off) {
                    wrong.push((mbps, share, packets, ratios));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A policer, a shaper, early detection and chance are told apart, over several seeds.
#[test]
fn what_drops() {
    let rate = BitRate::from_mbps(100);
    let bucket =
        |queue| TokenBucket { rate: BitRate::from_mbps(20), burst: Octets::new(90_000), queue, timer: Duration::ZERO };
    let bare = || Hop::rate(rate).delay(4 * MS);
    let early = |weight| EarlyDrop { from: Octets::new(30_000), to: Octets::new(120_000), ratio: 0.1, weight };
    let cases = [
        ("policer", bare().bucket(bucket(None))),
        ("shaper", bare().bucket(bucket(Some(Queue::Packets(100))))),
        ("early_drop", bare().queue(Queue::Packets(200)).early_drop(early(1.0))),
        ("early_drop", bare().queue(Queue::Packets(200)).early_drop(early(0.2))),
        ("random_loss", bare().queue(Queue::Packets(1000)).loss(narrows_scenario::Loss::Random { ratio: 0.005 })),
    ];
    let mut wrong = Vec::new();
    for (name, hop) in cases {
        let scenario = Scenario::new(name)
            .hop(Hop::rate(BitRate::from_gbps(1)).delay(MS).queue(Queue::Unlimited))
            .hop(hop)
            .validate()
            .expect("a path");
        for seed in 1..=6 {
            let estimate = measured(&scenario, &DETAIL, seed);
            let policy = word(&estimate, "queue_policy");
            println!(
                "{name}, seed {seed}: {policy}, {:?} {} ({} to {}), bucket {:?} at {:?}",
                estimate.verdict(),
                estimate.in_unit().value,
                estimate.in_unit().low,
                estimate.in_unit().high,
                number(&estimate, "bucket_octets"),
                number(&estimate, "bucket_rate_bps"),
            );
            if policy != name {
                wrong.push((name, seed, policy));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// One of what is told to people.
fn reported<'a>(diagnostics: &'a narrows_probe::Diagnostics, name: &str) -> Option<&'a Diagnostic> {
    let mut all = diagnostics.iter();
    all.find(|(own, _)| *own == name).map(|(_, value)| value)
}
