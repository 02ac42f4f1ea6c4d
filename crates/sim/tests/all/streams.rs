//! The numbers of parallel streams, on paths that have them: how many fill, from how many on they
//! disturb, whose connections they share with; and paths on which none may be claimed.

#![expect(clippy::print_stdout, reason = "the curves are worth reading")]

use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::{BoundKind, Budget, Diagnostic, Estimate, RawParams};
use narrows_scenario::{Elastic, ElasticControl, Hop, Host, PathDirection, Queue, Scenario};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Octets};

fn streams(scenario: &Scenario, params: &[(&str, &str)], seed: u64) -> Estimate {
    let raw: RawParams = params.iter().copied().collect();
    let budget = Budget { octets: 1_000_000_000_000, time: Duration::from_secs(3600), ..Budget::default() };
    let mut world = SimWorld::new(scenario, PathDirection::Forward, seed);
    let method = methods::find("streams").expect("the method is in the registry");
    let mut method = method.begin(&raw).expect("the parameters are right");
    let measured = narrows_probe::drive(&mut world, method.as_mut(), budget).expect("the simulator cannot break");
    let estimate = measured.outcome.estimate().expect("something comes through").clone();
    for name in
        ["streams_tried", "sum_bps", "rtt_loaded_ns", "retransmitted_share", "basis", "intrusive_by", "competing_flows"]
    {
        println!("{name}: {:?}", reported(&estimate.diagnostics, name));
    }
    println!(
        "fill {}, intrusive {:?}, harmful {:?}",
        estimate.in_unit().value,
        number(&estimate, "intrusive_streams"),
        number(&estimate, "harmful_streams")
    );
    estimate
}

fn number(estimate: &Estimate, name: &str) -> Option<f64> {
    reported(&estimate.diagnostics, name).and_then(Diagnostic::as_f64)
}

fn path(mbps: u64, rtt_ms: u64, queue: Queue, window: u32) -> Scenario {
    let receiver = Host { tcp_receive_octets: window, ..Host::default() };
    let hop = Hop::rate(BitRate::from_mbps(mbps)).delay(Duration::from_millis(rtt_ms) / 2).queue(queue);
    Scenario::new("streams").hop(hop).receiver(receiver)
}

const THOROUGH: [(&str, &str); 3] = [("thorough", "true"), ("run", "2 s"), ("runs", "3")];

/// Windows of 300 kB over 40 ms carry 60 Mbit/s each: two fill 94. Every further one only lengthens
/// the queue: three make the round trip half as long again as two, or four do, and none gets what
/// one gets alone.
#[test]
fn windows_fill_and_then_only_wait() {
    let deep = Queue::Octets(Octets::new(10_000_000));
    let scenario = path(100, 40, deep, 300_000).validate().expect("a path");
    for seed in 1..=3 {
        let params = [&THOROUGH[..], &[("available_bps", "97.5M")]].concat();
        let estimate = streams(&scenario, &params, seed);
        assert_eq!((estimate.in_unit().value, estimate.verdict()), (2, BoundKind::Estimated));
        let intrusive = number(&estimate, "intrusive_streams");
        assert!(intrusive.is_some_and(|streams| (3.0..=4.0).contains(&streams)), "{intrusive:?}");
        assert_eq!(number(&estimate, "harmful_streams"), None);
    }
}

/// A queue of eight packets in front of 10 Mbit/s, 17 packets in flight.
#[test]
fn many_over_a_small_queue_are_intrusive() {
    let scenario = path(10, 20, Queue::Packets(8), 3 << 20).validate().expect("a path");
    let params = [&THOROUGH[..], &[("available_bps", "9.75M"), ("beyond", "20"), ("congestion", "reno")]].concat();
    let estimate = streams(&scenario, &params, 1);
    // Retransmissions double and each starves, but the sum does not fall: intrusive it is, harmful
    // nobody may say.
    let intrusive = number(&estimate, "intrusive_streams");
    assert!(intrusive.is_some_and(|streams| (4.0..=8.0).contains(&streams)), "{intrusive:?}");
    assert_eq!(number(&estimate, "harmful_streams"), None);
}

/// Beside four connections of others the sums follow `C n / (n + 4)`.
#[test]
fn others_show_in_the_curve() {
    let elastic = Elastic::greedy(4, ElasticControl::Reno);
    let queue = Queue::Octets(Octets::new(250_000));
    let scenario = path(50, 20, queue, 3 << 20)
        .cross(narrows_scenario::Cross::elastic_on_hop(0, elastic))
        .validate()
        .expect("a path");
    let params = [
        ("thorough", "true"),
        ("run", "20 s"),
        ("runs", "3"),
        ("congestion", "reno"),
        ("max_streams", "12"),
        ("beyond", "20"),
        ("max_time", "1 h"),
    ];
    let estimate = streams(&scenario, &params, 1);
    let flows = number(&estimate, "competing_flows");
    assert!(flows.is_some_and(|flows| (2.5..=6.0).contains(&flows)), "{flows:?}");
}

/// A receiver of two processors that has 25 us of work on a segment, and 5 more when its threads
/// take turns: up to two connections get more together than one, from three on each turn is a sixth
/// longer, so that all together get less: 2 / 25 us against 2 / 30 us.
#[test]
fn more_threads_than_processors_harm() {
    let busy = |switch_us| {
        let mut scenario = path(2000, 10, Queue::Octets(Octets::new(10_000_000)), 20 << 20);
        scenario.receiver.tcp.segment_cost = Duration::from_micros(25);
        scenario.receiver.tcp.processors = std::num::NonZeroU16::new(2);
        scenario.receiver.tcp.switch_cost = Duration::from_micros(switch_us);
        scenario.validate().expect("a path")
    };
    let params = [&THOROUGH[..], &[("available_bps", "1.9G"), ("max_streams", "8"), ("beyond", "20")]].concat();
    for seed in 1..=2 {
        let estimate = streams(&busy(5), &params, seed);
        let harmful = number(&estimate, "harmful_streams");
        assert!(harmful.is_some_and(|streams| (3.0..=4.0).contains(&streams)), "{harmful:?}");
    }
    // The same turns for nothing: the sum stays as it is, and nobody is harmed.
    let estimate = streams(&busy(0), &params, 1);
    assert_eq!(number(&estimate, "harmful_streams"), None);
}

/// Held by their windows, with more allowed than the path needs but fewer than it would take, and
/// nothing known of what is available: a bound.
#[test]
fn a_rising_sum_is_a_bound() {
    let scenario = path(100, 40, Queue::Packets(400), 60_000).validate().expect("a path");
    let params = [&THOROUGH[..], &[("max_streams", "4")]].concat();
    let estimate = streams(&scenario, &params, 1);
    assert_eq!((estimate.in_unit().value, estimate.verdict()), (4, BoundKind::LowerBound));
    assert_eq!((number(&estimate, "intrusive_streams"), number(&estimate, "harmful_streams")), (None, None));
}

/// One of what is told to people.
fn reported<'a>(diagnostics: &'a narrows_probe::Diagnostics, name: &str) -> Option<&'a Diagnostic> {
    let mut all = diagnostics.iter();
    all.find(|(own, _)| *own == name).map(|(_, value)| value)
}
