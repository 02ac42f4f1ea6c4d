//! Advice over simulated paths: a rule is given on a path that calls for it, and not on its twin
//! that does not. Rules that speak of what simulated hosts do not have (kernels' settings,
//! counters, cards) are tested over findings alone.

use std::time::Duration;

use narrows_diagnose::advice::{Findings, HostEnvironment, advise};
use narrows_methods as methods;
use narrows_probe::Entry;
use narrows_probe::{RawParams, World, drive};
use narrows_scenario::{
    Arrivals, Coalescing, Cross, Hop, Loss, PathDirection, Queue, Reorder, Router, Scenario, SizeMix, TokenBucket,
};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Direction, Octets};

/// A method and its parameters.
type Request = (&'static str, &'static [(&'static str, &'static str)]);

const FULL: Request = ("tcp", &[("mode", "full"), ("duration", "8 s"), ("omit", "0 s")]);
const SHORT: Request = ("tcp", &[("mode", "full"), ("duration", "3 s"), ("omit", "0 s"), ("congestion", "cubic")]);

fn hop(mbps: u64, rtt_ms: u64, queue_octets: u64) -> Hop {
    Hop::rate(BitRate::from_mbps(mbps))
        .delay(Duration::from_millis(rtt_ms) / 2)
        .queue(Queue::Octets(Octets::new(queue_octets)))
}

fn path(hop: Hop) -> Scenario {
    let mut scenario = Scenario::new("advice").hop(hop);
    scenario.receiver.tcp_receive_octets = 16 << 20;
    scenario
}

/// 50 Mbit/s over 40 ms with a queue of as much: nothing to mend.
fn sound() -> Scenario {
    path(hop(50, 40, 250_000))
}

fn changed(change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut scenario = sound();
    change(&mut scenario);
    scenario
}

fn bucket(share: u64, queue: Option<Queue>) -> Scenario {
    let bucket = TokenBucket {
        rate: BitRate::from_mbps(share),
        burst: Octets::new(if queue.is_some() { 8_000_000 } else { 150_000 }),
        queue,
        timer: Duration::ZERO,
    };
    path(hop(50, 40, 250_000).bucket(bucket))
}

fn tunnel(answers: bool) -> Scenario {
    let router = Router { answers, ..Router::default() };
    let mut scenario = Scenario::new("tunnel").hop(hop(50, 20, 250_000).router(router));
    scenario = scenario.hop(hop(50, 20, 250_000).mtu(1420));
    scenario
}

fn loaded(mbps: u64) -> Scenario {
    sound().cross(Cross::on_hop(0, Arrivals::Poisson, BitRate::from_mbps(mbps), SizeMix::constant(1500)))
}

/// A rule, what is asked, the path that calls for the rule, and its twin.
type Case = (&'static str, &'static [Request], fn() -> Scenario, fn() -> Scenario);

const CASES: &[Case] = &[
    ("send_buffer", &[("rtt", &[]), FULL], || changed(|path| path.sender.tcp.send_octets = Some(80_000)), sound),
    (
        "receive_buffer",
        &[("rtt", &[]), FULL],
        || changed(|path| path.receiver.tcp_receive_octets = 80_000),
        // As slow, because nobody reads: a larger buffer would not help.
        || changed(|path| path.receiver.tcp.segment_cost = Duration::from_micros(700)),
    ),
    (
        "shallow_queue",
        &[("rtt", &[]), ("capacity", &[]), ("slope", &[]), ("burst", &[]), FULL],
        || path(hop(50, 80, 12_000)),
        sound,
    ),
    (
        "congestion_control",
        &[("rtt", &[]), ("capacity", &[]), FULL],
        || path(hop(150, 120, 2_000_000).loss(Loss::Random { ratio: 0.0005 })),
        // The same loss on a short path: the window opens soon enough.
        || path(hop(50, 10, 250_000).loss(Loss::Random { ratio: 0.0005 })),
    ),
    ("host_processor", &[FULL], || changed(|path| path.sender.tcp.segment_cost = Duration::from_micros(700)), sound),
    ("host_processor", &[FULL], || changed(|path| path.sender.tcp.writes = Some(BitRate::from_mbps(20))), sound),
    (
        "interface",
        &[FULL],
        || {
            let mut scenario = path(hop(200, 40, 1_000_000));
            scenario.sender.interface_rate = Some(BitRate::from_mbps(50));
            scenario
        },
        || changed(|path| path.sender.interface_rate = Some(BitRate::from_mbps(1000))),
    ),
    (
        "receive_batching",
        &[("capacity", &[])],
        || {
            changed(|path| {
                path.receiver.coalescing = Some(Coalescing { timer: Duration::from_millis(2), frames: 64 });
            })
        },
        sound,
    ),
    // That probes vanish is seen by pmtu; a simulated host knows its path's MTU, so that they do
    // not.
    ("mtu_black_hole", &[FULL], || tunnel(false), || tunnel(true)),
    ("token_bucket", &[FULL], || bucket(20, None), || path(hop(50, 40, 250_000).loss(Loss::Random { ratio: 0.0005 }))),
    ("token_bucket", &[FULL], || bucket(20, Some(Queue::Octets(Octets::new(250_000)))), sound),
    (
        "reordering",
        &[SHORT],
        || path(hop(500, 20, 1_250_000).reorder(Reorder { ratio: 0.01, by: Duration::from_millis(12) })),
        || path(hop(500, 20, 1_250_000)),
    ),
    ("deep_queue", &[FULL], || path(hop(20, 40, 1_000_000)), || path(hop(20, 40, 100_000))),
    (
        "parallel_streams",
        &[("rtt", &[]), ("slope", &[]), FULL, ("streams", &[("available_bps", "48 Mbit/s")])],
        || changed(|path| path.receiver.tcp_receive_octets = 80_000),
        sound,
    ),
    (
        "test_too_short",
        &[("tcp", &[("mode", "full"), ("duration", "1 s"), ("omit", "0 s")])],
        || path(hop(200, 200, 5_000_000)),
        || path(hop(20, 5, 30_000)),
    ),
    ("path_busy", &[("capacity", &[]), ("slope", &[])], || loaded(47), || loaded(20)),
];

fn entries(world: &mut SimWorld, direction: Direction, asked: &[Request]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (name, params) in asked {
        let method = methods::find(name).expect("it is in the registry");
        let params: RawParams = params.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut estimator = method.begin(&params).expect("parameters in range");
        let budget = method.imposes(&params).budget();
        let measured = drive(world, estimator.as_mut(), budget).expect("a simulated world does not break");
        entries.push(Entry {
            metric: method.info().metric,
            direction,
            method: method.info().name,
            outcome: measured.outcome,
            cost: measured.cost,
        });
    }
    entries
}

fn found(scenario: Scenario, way: PathDirection, asked: &[Request]) -> Findings {
    let scenario = scenario.validate().expect("the scenario makes sense");
    let mut world = SimWorld::new(&scenario, way, 1);
    let facts = world.facts();
    let direction = match way {
        PathDirection::Forward => Direction::Forward,
        PathDirection::Reverse => Direction::Reverse,
    };
    let entries = entries(&mut world, direction, asked);
    let unknown = HostEnvironment::default();
    Findings::new(direction, &facts, &entries, &unknown, &unknown)
}

fn ids(found: &[Findings]) -> Vec<&'static str> {
    advise(found).iter().map(|advice| advice.id).collect()
}

#[test]
fn rules_fire_where_they_should() {
    let mut wrong = Vec::new();
    for (id, asked, fire, hush) in CASES {
        let loud = found(fire(), PathDirection::Forward, asked);
        let still = found(hush(), PathDirection::Forward, asked);
        if !ids(std::slice::from_ref(&loud)).contains(id) {
            wrong.push(format!("{id} should fire: {loud:?}"));
        }
        if ids(std::slice::from_ref(&still)).contains(id) {
            wrong.push(format!("{id} should be silent: {still:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A link of 50 Mbit/s one way and 5 the other; and one that is the same both ways.
#[test]
fn asymmetry() {
    for (back, expected) in [(5, true), (50, false)] {
        let scenario = || path(hop(50, 20, 125_000)).reverse_hop(hop(back, 20, 125_000));
        let mut ways =
            [found(scenario(), PathDirection::Forward, &[FULL]), found(scenario(), PathDirection::Reverse, &[FULL])];
        let rates = [ways[0].tcp_bps(), ways[1].tcp_bps()];
        ways[0].other_way_tcp_bps = rates[1];
        ways[1].other_way_tcp_bps = rates[0];
        assert_eq!(ids(&ways).contains(&"asymmetry"), expected, "{rates:?}");
    }
}

/// On a sound path nothing is to be mended: no rule cries wolf.
#[test]
fn a_sound_path_needs_nothing() {
    let all: &[Request] = &[("rtt", &[]), ("pmtu", &[]), ("capacity", &[]), ("slope", &[]), ("burst", &[]), FULL];
    let found = found(sound(), PathDirection::Forward, all);
    assert_eq!(ids(std::slice::from_ref(&found)), [""; 0], "{found:?}");
}
