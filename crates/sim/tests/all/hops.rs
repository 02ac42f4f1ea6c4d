//! The default answer per hop over simulated paths: the testbed of `[Abut18]`, twelve hops, and
//! routers that misbehave.

use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::outcome::{HopFinding, PathHops, Predicted};
use narrows_probe::{BoundKind, Caveat, Measured, Method, RawParams, drive};
use narrows_scenario::{PathDirection, Scenario};
use narrows_sim::SimWorld;
use narrows_units::BitRate;

fn measure(text: &str, seed: u64) -> (Scenario, Measured) {
    let scenario = Scenario::from_toml(text).expect("the scenario is sound");
    let method: &dyn Method = methods::automatic_per_hop();
    let params = RawParams::new();
    let mut estimator = method.begin(&params).expect("defaults are fine");
    let mut world = SimWorld::new(&scenario, PathDirection::Forward, seed);
    let Ok(measured) = drive(&mut world, estimator.as_mut(), method.imposes(&params).budget());
    (scenario, measured)
}

fn path(measured: &Measured) -> PathHops {
    PathHops::of(&measured.outcome).expect("hops are told")
}

/// A file under `scenarios/`.
macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../../../scenarios/", $name, ".toml"))
    };
}

fn closed_form_world(template: &str, cross: &str) -> String {
    template.replace("{{edge}}", "100 Mbit/s").replace("{{transit}}", "10 Mbit/s").replace("{{cross}}", cross)
}

fn capacity(scenario: &Scenario, ttl: u16) -> f64 {
    let truth = scenario.truth(PathDirection::Forward).over(Duration::ZERO, Duration::from_secs(1));
    let hop = usize::from(ttl) - 1;
    truth.hop_capacity(hop, 1500).map_or(0.0, BitRate::as_f64)
}

/// A value within this share of the truth, in an interval that holds the truth.
fn assert_near(scenario: &Scenario, hop: &HopFinding, share: f64) {
    let truth = capacity(scenario, hop.ttl);
    let reported = hop.capacity.expect("a capacity");
    assert_eq!(reported.rate.verdict, BoundKind::Estimated, "{hop:?}");
    assert!((reported.rate.value.as_f64() / truth - 1.0).abs() < share, "{truth} {hop:?}");
    assert_holds(scenario, hop);
}

/// Whatever is claimed is not wrong by more than a hundredth.
fn assert_holds(scenario: &Scenario, hop: &HopFinding) {
    let Some(reported) = hop.capacity else { return };
    let truth = capacity(scenario, hop.ttl);
    assert!(reported.rate.low.as_f64() < truth * 1.01, "{truth} {hop:?}");
    if reported.rate.verdict == BoundKind::Estimated {
        assert!(reported.rate.high.as_f64() > truth * 0.99, "{truth} {hop:?}");
    }
}

fn in_time(measured: &Measured, path: &PathHops) {
    let forecast = path.forecast.expect("a forecast");
    assert!(measured.cost.time <= forecast.time, "{:?} {forecast:?}", measured.cost);
    assert!(measured.cost.octets <= forecast.octets, "{:?} {forecast:?}", measured.cost);
}

fn has(caveats: &[Caveat], wanted: fn(&Caveat) -> bool) -> bool {
    caveats.iter().any(wanted)
}

/// `[Abut18]` table 8, in 20 s and 600 kB: the original tools were 1.5 to 43 % off after 37 to 63
/// minutes and 3.6 to 5.1 MB.
#[test]
fn hops_without_switches_are_reported_within_two_per_cent() {
    for cross in ["0 Mbit/s", "3 Mbit/s", "7 Mbit/s"] {
        let template = include_str!("../../../../plans/templates/abut18-without-switches.toml");
        let (scenario, measured) = measure(&closed_form_world(template, cross), 1);
        let path = path(&measured);
        assert_eq!((path.hops.len(), path.narrow_hop), (3, Some(2)), "{cross}");
        for hop in &path.hops {
            assert_near(&scenario, hop, 0.02);
            assert!(hop.hidden_devices.is_empty(), "{hop:?}");
            assert_eq!(hop.predicted, Some(Predicted::Resolved));
        }
        assert!(measured.cost.time < Duration::from_secs(20) && measured.cost.octets < 600_000);
        in_time(&measured, &path);
    }
}

/// Table 7: the same, and the switches by name.
#[test]
fn switches_inside_hops_are_reported() {
    for cross in ["0 Mbit/s", "3 Mbit/s", "7 Mbit/s"] {
        let template = include_str!("../../../../plans/templates/abut18.toml");
        let (scenario, measured) = measure(&closed_form_world(template, cross), 1);
        let path = path(&measured);
        for hop in &path.hops {
            assert_near(&scenario, hop, 0.02);
            let hidden: Vec<u64> = hop.hidden_devices.iter().map(|device| device.nominal.bps()).collect();
            let expected: &[u64] = if hop.ttl == 2 { &[] } else { &[100_000_000] };
            assert_eq!(hidden, expected, "{cross} {hop:?}");
        }
        // Pairs tell the first; behind the narrow link nothing but standard rates does.
        assert!(path.hops[0].caveats.is_empty(), "{:?}", path.hops[0]);
        assert!(has(&path.hops[2].caveats, |c| *c == Caveat::StagesAssumed));
        assert!(measured.cost.time < Duration::from_secs(20) && measured.cost.octets < 600_000);
    }
}

/// One of 50 Mbit/s is not two of 100 where pairs can tell.
#[test]
fn one_slower_link_is_not_two() {
    let text = closed_form_world(include_str!("../../../../plans/templates/abut18-without-switches.toml"), "0 Mbit/s");
    let text = text.replacen("rate = \"100 Mbit/s\"", "rate = \"50 Mbit/s\"", 1);
    let (scenario, measured) = measure(&text, 1);
    let path = path(&measured);
    assert_near(&scenario, &path.hops[0], 0.02);
    assert!(path.hops[0].hidden_devices.is_empty());
}

/// The Linux default, everywhere: slower by as much as was said, and the same values.
#[test]
fn limited_routers_cost_time_alone() {
    let (scenario, measured) = measure(file!("hops-rate-limited"), 1);
    let path = path(&measured);
    in_time(&measured, &path);
    for hop in &path.hops {
        assert_near(&scenario, hop, 0.02);
        let limit = hop.limited.expect("a limit");
        assert!((1..=6).contains(&limit.burst), "{limit:?}");
        let every = limit.every.as_secs_f64();
        assert!((0.9..1.3).contains(&every), "{limit:?}");
        // Nothing was lost.
        assert!(hop.loss_ratio.is_none_or(|ratio| ratio <= 0.0), "{hop:?}");
    }
}

/// What is predicted of twelve hops comes true; what is bounded is bounded truly.
#[test]
fn what_is_predicted_of_twelve_hops_comes_true() {
    for seed in 1..=2 {
        let (scenario, measured) = measure(file!("hops-twelve"), seed);
        let path = path(&measured);
        in_time(&measured, &path);
        assert_eq!((path.hops.len(), path.narrow_hop), (12, Some(6)));
        for hop in &path.hops {
            let reported = hop.capacity.expect("a claim");
            let resolved = reported.rate.verdict == BoundKind::Estimated;
            assert_eq!(resolved, hop.predicted == Some(Predicted::Resolved), "{hop:?}");
            assert_eq!(resolved, capacity(&scenario, hop.ttl) < 9e9, "{hop:?}");
            if resolved {
                assert_near(&scenario, hop, 0.1);
            } else {
                assert_holds(&scenario, hop);
            }
        }
    }
}

/// A router that copies, and two in a row that keep silent, behind the narrow link: trains tell
/// every hop.
#[test]
fn trains_tell_hops_whose_routers_do_not() {
    for seed in 1..=3 {
        let (scenario, measured) = measure(file!("hops-silent-behind"), seed);
        let path = path(&measured);
        in_time(&measured, &path);
        assert_eq!((path.hops.len(), path.narrow_hop), (8, Some(2)));
        for hop in &path.hops {
            assert_eq!(hop.predicted, Some(Predicted::Resolved), "{hop:?}");
            assert_near(&scenario, hop, 0.08);
        }
        for ttl in [5, 6] {
            assert!(has(&path.hops[ttl - 1].caveats, |c| *c == Caveat::SilentRouter));
        }
        assert!(has(&path.hops[2].caveats, |c| *c == Caveat::SlowRouter));
    }
}

/// Nobody takes another's word for it: each misbehaviour has its caveat, and no claim is wrong.
#[test]
fn misbehaving_routers_have_their_caveats() {
    type Wanted = (u16, fn(&Caveat) -> bool);
    let cases: [(&str, &[Wanted]); 6] = [
        (
            file!("hops-liars"),
            &[
                (1, |c| *c == Caveat::QuotesUneven),
                (2, |c| matches!(c, Caveat::SeveralRouters { routers: 2 })),
                (3, |c| *c == Caveat::ForwardsExpired),
            ],
        ),
        (file!("hops-slow-routers"), &[(1, |c| *c == Caveat::SlowRouter), (2, |c| *c == Caveat::SlowRouter)]),
        (file!("hops-loop"), &[(4, |c| matches!(c, Caveat::RoutingLoop { earlier_ttl: 2 }))]),
        (file!("hops-rerouted"), &[(1, |c| *c == Caveat::RouteChanged)]),
        (file!("hops-silent-router"), &[(2, |c| *c == Caveat::SilentRouter)]),
        (file!("hops-lossy"), &[(1, |c| matches!(c, Caveat::AnswersLimited { .. } | Caveat::TimerLimited))]),
    ];
    for (text, wanted) in cases {
        let (scenario, measured) = measure(text, 1);
        let path = path(&measured);
        in_time(&measured, &path);
        for hop in &path.hops {
            assert_holds(&scenario, hop);
        }
        for (ttl, wanted) in wanted {
            let hop = &path.hops[usize::from(*ttl) - 1];
            assert!(has(&hop.caveats, *wanted), "{}: {hop:?}", scenario.name);
        }
    }
}

/// The other side of it: routers that do nothing odd are accused of nothing.
#[test]
fn honest_routers_have_none_of_these_caveats() {
    for text in [file!("hops-three-hops"), file!("hops-switches"), file!("hops-other-way-back")] {
        for seed in 1..=2 {
            let (scenario, measured) = measure(text, seed);
            for hop in &path(&measured).hops {
                let odd = |caveat: &Caveat| {
                    matches!(
                        caveat,
                        Caveat::QuotesUneven
                            | Caveat::SeveralRouters { .. }
                            | Caveat::ForwardsExpired
                            | Caveat::SlowRouter
                            | Caveat::RoutingLoop { .. }
                            | Caveat::RouteChanged
                            | Caveat::SilentRouter
                            | Caveat::AnswersLimited { .. }
                    )
                };
                assert!(!hop.caveats.iter().any(odd), "{}: {hop:?}", scenario.name);
            }
        }
    }
}

#[test]
fn losses_are_reported_from_limits() {
    let (_, measured) = measure(file!("hops-lossy"), 3);
    let path = path(&measured);
    let lost = path.hops[2].loss_ratio.expect("a share");
    // 5 % there; the answers' reverse direction loses none or as many (the hop is mirrored).
    assert!((0.02..0.2).contains(&lost), "{lost}");
    assert!(path.hops[0].loss_ratio.is_none_or(|ratio| ratio <= 0.0), "{:?}", path.hops[0]);
}

/// 2 Mbit/s back and 10 there: answers that grow with probes are not taken for them.
#[test]
fn a_slow_way_back_is_not_the_way_there() {
    let (scenario, measured) = measure(file!("hops-other-way-back"), 1);
    for hop in &path(&measured).hops {
        assert_near(&scenario, hop, 0.02);
    }
}

#[test]
fn a_dead_path_has_no_hops() {
    let (_, measured) = measure(file!("hops-dead-path"), 1);
    assert_eq!(PathHops::of(&measured.outcome), None);
}

/// Three hops as in the lab: links that keep each packet for some microseconds more, and a sender
/// that stands still now and then.
fn as_in_the_lab(back: &str) -> String {
    let hop = |name: &str, rate: u32| {
        format!(
            "[[hop]]\nname = \"{name}\"\nrate = \"{rate} Mbit/s\"\ndelay = \"100 us\"\njitter = {{ exponential = \"15 us\" }}\n"
        )
    };
    let hops = [("a", 100), ("b", 10), ("c", 100)].map(|(name, rate)| hop(name, rate));
    format!(
        "name = \"lab\"\nabout = \"noise of real hosts\"\nseed = 1\n{}{back}[sender]\nclock = {{ granularity = \"1 us\" }}\nstalls = {{ every = \"200 ms\", lasting = \"5 ms\" }}\n",
        hops.concat()
    )
}

/// Behind the narrow link the forward direction alone leaves a wide interval; both ways together
/// say where in it the hop is.
#[test]
fn a_hop_of_one_rate_both_ways_is_reported_by_both() {
    let mut assumed = 0;
    for seed in 1..=10 {
        let (scenario, measured) = measure(&as_in_the_lab(""), seed);
        let path = path(&measured);
        let hop = &path.hops[2];
        if has(&hop.caveats, |c| *c == Caveat::SymmetryAssumed) {
            assumed += 1;
            assert_near(&scenario, hop, 0.1);
            let reported = hop.capacity.expect("a capacity");
            assert!(reported.rate.high.as_f64() / reported.rate.low.as_f64() > 1.08, "{hop:?}");
        }
        assert!(!has(&path.hops[1].caveats, |c| *c == Caveat::SymmetryAssumed));
    }
    assert!((6..=10).contains(&assumed), "{assumed}");
}

/// With another reverse direction nothing is taken for granted.
#[test]
fn another_way_back_is_not_assumed_away() {
    let back = [("x", 1000), ("y", 20), ("z", 300)]
        .map(|(name, rate)| format!("[[reverse]]\nname = \"{name}\"\nrate = \"{rate} Mbit/s\"\ndelay = \"100 us\"\n"));
    for seed in 1..=5 {
        let (scenario, measured) = measure(&as_in_the_lab(&back.concat()), seed);
        for hop in &path(&measured).hops {
            assert!(!has(&hop.caveats, |c| *c == Caveat::SymmetryAssumed), "{hop:?}");
            assert_holds(&scenario, hop);
        }
    }
}

/// Behind 100 Mbit/s: one link of 200, which has no standard rate, is told from a row; and two of
/// 200 in a row, which look like one of 100, are not taken for that.
#[test]
fn tails_tell_one_link_from_a_row() {
    let path_of = |inside: &str| {
        let hop = |name: &str, rate: u32, inside: &str| {
            format!("[[hop]]\nname = \"{name}\"\nrate = \"{rate} Mbit/s\"\ndelay = \"300 us\"\n{inside}")
        };
        format!(
            "name = \"tails\"\nabout = \"one link or two\"\nseed = 1\n{}{}{}{}[sender]\nclock = {{ granularity = \"1 us\" }}\n",
            hop("a", 100, ""),
            hop("b", 200, inside),
            hop("c", 1000, ""),
            hop("d", 1000, "")
        )
    };
    let (scenario, measured) = measure(&path_of(""), 1);
    let one = path(&measured);
    assert_near(&scenario, &one.hops[1], 0.02);
    assert!(one.hops[1].caveats.is_empty(), "{:?}", one.hops[1]);
    let row = "layer2 = [{ rate = \"200 Mbit/s\", queue = \"1000 packets\" }]\n";
    let (scenario, measured) = measure(&path_of(row), 1);
    let two = path(&measured);
    assert_near(&scenario, &two.hops[1], 0.1);
    assert!(has(&two.hops[1].caveats, |c| *c == Caveat::StagesAmbiguous), "{:?}", two.hops[1]);
}
