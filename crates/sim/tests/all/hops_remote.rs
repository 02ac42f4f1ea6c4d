//! The last hop told by the stamps of a server at the peer: whatever that host does with its
//! answers, clocks that drift, queues there and back.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::outcome::{HopFinding, PathHops, RemoteStamped};
use narrows_probe::{BoundKind, Caveat, Measured, RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;
use narrows_stat::SplitMix64;

const LAST: usize = 2;

/// 100, 10 and `last` Mbit/s; `answers` is how the remote host answers.
fn text(last: u64, cross: &str, answers: &str) -> String {
    let mut text = "name = \"remote\"\nabout = \"a server at the end\"\nseed = 1\n".to_owned();
    for (hop, rate) in [100, 10, last].into_iter().enumerate() {
        let busy = if hop == 1 { cross } else { "" };
        write!(text, "\n[[hop]]\nname = \"h{hop}\"\nrate = \"{rate} Mbit/s\"\ndelay = \"300 us\"\n{busy}\n")
            .expect("a string");
    }
    let clock = "clock = { offset = \"-3 s\", skew_ppm = 80.0, granularity = \"1 us\" }";
    text + &format!("\n[receiver]\n{clock}\n{answers}\n")
}

fn measure(scenario: &Scenario, seed: u64, last_hop: &str) -> (Measured, PathHops) {
    let method = methods::automatic_per_hop();
    let params: RawParams = [("last_hop", last_hop)].into_iter().collect();
    let mut estimator = method.begin(&params).expect("the parameters are fine");
    let mut world = SimWorld::new(scenario, PathDirection::Forward, seed);
    let Ok(measured) = drive(&mut world, estimator.as_mut(), method.imposes(&params).budget());
    let path = PathHops::of(&measured.outcome).expect("hops are told");
    (measured, path)
}

fn truth(scenario: &Scenario, ttl: u16) -> f64 {
    let truth = scenario.truth(PathDirection::Forward).over(Duration::ZERO, Duration::from_secs(1));
    truth.hop_capacity(usize::from(ttl) - 1, 1500).map_or(0.0, narrows_units::BitRate::as_f64)
}

/// An interval, or a bound, that the truth is outside of.
fn is_wrong(scenario: &Scenario, hop: &HopFinding) -> bool {
    let truth = truth(scenario, hop.ttl);
    hop.capacity.is_some_and(|claim| {
        let high = claim.rate.verdict != BoundKind::Estimated || claim.rate.high.as_f64() > truth * 0.99;
        !(claim.rate.low.as_f64() < truth * 1.01 && high)
    })
}

fn stamped(path: &PathHops) -> RemoteStamped {
    path.remote.expect("stamps were asked for")
}

const COPIES: &str = "answers = { icmp_delay = \"30 us\", icmp_per_octet = \"150 ns\" }";

/// A host that copies what it answers for looks like a slower link by its answers, and does not by
/// its stamps.
#[test]
fn a_slow_host_is_no_slow_link() {
    // Rates that no row of standard links has.
    for last in [20, 30] {
        let scenario = Scenario::from_toml(&text(last, "", COPIES)).expect("sound");
        let (_, answers) = measure(&scenario, 1, "answers");
        let (measured, stamps) = measure(&scenario, 1, "stamps");
        assert_eq!(answers.remote, None);
        assert!(is_wrong(&scenario, &answers.hops[LAST]), "{:?}", answers.hops[LAST]);
        let hop = &stamps.hops[LAST];
        let reported = hop.capacity.expect("a capacity");
        let ratio = reported.rate.value.as_f64() / truth(&scenario, 3);
        assert!(reported.rate.verdict == BoundKind::Estimated && (ratio - 1.0).abs() < 0.02, "{hop:?}");
        assert!(!is_wrong(&scenario, hop) && hop.caveats.contains(&Caveat::SlowRouter), "{hop:?}");
        let remote = stamped(&stamps);
        assert!(remote.last_hop && !remote.other_way && remote.lost == 0, "{remote:?}");
        // All three links: 1538 octets at 100, 10 and `last` Mbit/s.
        let links: f64 = [100, 10, last].into_iter().map(|mbps| 1538.0 * 8e3 / mbps as f64).sum();
        let all = remote.all_links_ns.expect("reported");
        assert!((all / links - 1.0).abs() < 0.002, "{all} {links}");
        let forecast = stamps.forecast.expect("a forecast");
        assert!(measured.cost.time <= forecast.time && measured.cost.octets <= forecast.octets);
    }
}

/// Many paths with queues, drift and slow hosts: the last hop is never wrong by stamps.
#[test]
fn the_last_hop_is_never_wrong() {
    let mut reported = 0;
    let mut draw = SplitMix64::new(8);
    for seed in 1..=24 {
        let mut next = |most: u64| draw.next_u64() % most;
        let last = [5, 10, 25, 50, 100, 1000][usize::try_from(next(6)).unwrap_or(0)];
        let cross = ["0", "2", "5"][usize::try_from(next(3)).unwrap_or(0)];
        let cross = format!("cross = [{{ arrivals = \"poisson\", rate = \"{cross} Mbit/s\", ip_octets = 1500 }}]");
        let answers = if next(2) == 0 { COPIES } else { "" };
        let scenario = Scenario::from_toml(&text(last, &cross, answers)).expect("sound");
        let (_, path) = measure(&scenario, seed, "stamps");
        let hop = &path.hops[LAST];
        assert!(!is_wrong(&scenario, hop), "{seed}: {last} {cross} {answers} {hop:?}");
        reported += u32::from(hop.capacity.is_some_and(|claim| claim.rate.verdict == BoundKind::Estimated));
    }
    assert!(reported >= 12, "{reported}");
}
