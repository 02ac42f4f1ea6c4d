//! Passive methods on transfers over simulated paths: right, or rightly without a number, from
//! every place.

use std::fmt::Write as _;
use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::{BoundKind, Budget, Confidence, Outcome, RawParams, drive};
use narrows_scenario::{
    Arrivals, Cross, Elastic, ElasticControl, Hop, Passing, PathDirection, Queue, Scenario, SizeMix,
};
use narrows_sim::SimWorld;
use narrows_units::BitRate;

const METHODS: [&str; 4] = ["passive", "pprate", "multiq", "nettimer-passive"];
const PLACES: [&str; 4] = ["sender", "1", "2", "receiver"];

#[derive(Clone, Copy, Debug)]
enum Load {
    Idle,
    /// Percent of the narrow link, from Poisson packets of 1500 octets.
    Poisson(u64),
    /// The same from IMIX.
    Imix(u64),
    /// Connections that share it.
    Elastic(u16),
}

fn path(kbps: u64, load: Load, passing: Passing) -> Scenario {
    let rate = BitRate::from_bps(kbps * 1000);
    let edge = BitRate::from_bps((kbps * 10_000).max(100_000_000));
    let hop = |rate, ms| Hop::rate(rate).delay(Duration::from_millis(ms));
    let deep = |hop: Hop, rate: BitRate| {
        // 100 ms of the link, or 30 packets.
        let octets = (rate.bps() / 80).max(45_000);
        hop.queue(Queue::Octets(narrows_units::Octets::new(octets)))
    };
    let mut scenario = Scenario::new("passive").hop(hop(edge, 1)).hop(deep(hop(rate, 5), rate)).hop(hop(edge, 2));
    scenario = match load {
        Load::Idle => scenario,
        Load::Poisson(percent) => scenario.cross(Cross::on_hop(
            1,
            Arrivals::Poisson,
            BitRate::from_bps(rate.bps() * percent / 100),
            SizeMix::constant(1500),
        )),
        Load::Imix(percent) => scenario.cross(Cross::on_hop(
            1,
            Arrivals::Poisson,
            BitRate::from_bps(rate.bps() * percent / 100),
            SizeMix::imix(),
        )),
        Load::Elastic(flows) => scenario.cross(Cross::elastic_on_hop(
            1,
            Elastic { extra_rtt: Duration::from_millis(20), ..Elastic::greedy(flows, ElasticControl::Cubic) },
        )),
    };
    scenario.passing = passing;
    scenario.validate().expect("it makes sense")
}

/// What came of some runs: errors of estimates, lower bounds that hold, wrong and confident ones,
/// none.
#[derive(Default, Debug)]
struct Tally {
    errors: Vec<f64>,
    bounds: u32,
    wrong: u32,
    confident_wrong: u32,
    none: u32,
    reason: Option<String>,
}

fn tally(scenario: &Scenario, method: &str, vantage: &str, seconds: u64, runs: u64) -> Tally {
    let truth = scenario.truth(PathDirection::Forward).capacity(1500).as_f64();
    let mut tally = Tally::default();
    for seed in 0..runs {
        let mut params = RawParams::new();
        params.set("vantage", vantage);
        params.set("duration", format!("{seconds} s"));
        let mut world = SimWorld::new(scenario, PathDirection::Forward, 1000 + seed);
        let mut machine = methods::find(method).expect("registered").begin(&params).expect("good parameters");
        let Ok(measured) = drive(&mut world, machine.as_mut(), Budget::default());
        match measured.outcome {
            Outcome::Estimated(estimate) if estimate.verdict() == BoundKind::LowerBound => {
                if estimate.in_unit().value as f64 <= 1.03 * truth {
                    tally.bounds += 1;
                } else {
                    tally.wrong += 1;
                    tally.confident_wrong += 1;
                }
            }
            Outcome::Estimated(estimate) => {
                let error = estimate.in_unit().value as f64 / truth - 1.0;
                tally.errors.push(error);
                if error.abs() > 0.03 {
                    tally.wrong += 1;
                    tally.confident_wrong += u32::from(estimate.confidence > Confidence::Low);
                    tally.reason = Some(format!("{:?} {:?}", estimate.caveats, estimate.diagnostics));
                }
            }
            Outcome::Inconclusive { reason, diagnostics: evidence, .. } => {
                tally.none += 1;
                tally.reason = Some(format!("{reason:?} {evidence:?}"));
            }
        }
    }
    tally
}

/// Of the default's answers over many paths at most one in fifty is wrong and sure. `TABLE=FILE`
/// writes what each method said.
#[test]
#[ignore = "soak: a thousand transfers take minutes"]
fn sure_answers_over_many_paths_are_right() {
    let usual = Passing::default();
    let mut text = String::new();
    let (mut asked, mut wrong) = (0, 0);
    let runs: u64 = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(3);
    let wanted = std::env::var("ONLY").unwrap_or_default();
    let loads = [
        Load::Idle,
        Load::Poisson(30),
        Load::Poisson(70),
        Load::Imix(30),
        Load::Imix(70),
        Load::Elastic(1),
        Load::Elastic(3),
    ];
    for kbps in [1_000, 5_000, 10_000, 50_000, 100_000, 1_000_000] {
        for load in loads {
            let scenario = path(kbps, load, usual);
            let seconds = if kbps <= 1000 {
                30
            } else if kbps >= 100_000 {
                4
            } else {
                10
            };
            for vantage in PLACES {
                for method in METHODS {
                    let row = format!("{kbps:>8} {load:?} {vantage:<8} {method} ");
                    if !row.contains(&wanted) {
                        continue;
                    }
                    let tally = tally(&scenario, method, vantage, seconds, runs);
                    if method == METHODS[0] {
                        asked += u32::try_from(runs).unwrap();
                        wrong += tally.confident_wrong;
                    }
                    let errors: Vec<String> =
                        tally.errors.iter().map(|error| format!("{:+.2}%", error * 100.0)).collect();
                    let _ = writeln!(
                        text,
                        "{row:<50} bounds {} wrong {} confident {} none {} {} {}",
                        tally.bounds,
                        tally.wrong,
                        tally.confident_wrong,
                        tally.none,
                        errors.join(" "),
                        tally.reason.unwrap_or_default()
                    );
                }
            }
        }
    }
    std::fs::write(std::env::var("TABLE").unwrap_or("/dev/null".into()), text).unwrap();
    assert!(wrong * 50 <= asked, "{wrong} of {asked} answers are wrong and sure");
}

/// With no load, a half and an elastic one on 10 Mbit/s, from every place: the answer is the path's
/// rate, or, where acknowledgements are all there is and others take a part, what was carried at
/// least.
#[test]
fn the_answer_is_right_at_every_place() {
    for load in [Load::Idle, Load::Poisson(50), Load::Elastic(1)] {
        let scenario = path(10_000, load, Passing::default());
        for vantage in PLACES {
            let tally = tally(&scenario, "passive", vantage, 10, 2);
            assert_eq!((tally.wrong, tally.none), (0, 0), "{load:?} at {vantage}: {tally:?}");
            let bounds = if matches!(load, Load::Idle) || vantage == "receiver" { 0 } else { 2 };
            assert!(
                tally.bounds <= bounds && tally.bounds as usize + tally.errors.len() == 2,
                "{load:?} at {vantage}: {tally:?}"
            );
        }
    }
}

/// A connection that its window or its application holds back, on an idle path: whatever the place
/// and the method, no number but the right one, and mostly none.
#[test]
fn what_is_held_back_gives_no_wrong_number() {
    let usual = Passing::default();
    let held = [
        Passing { application: Some(BitRate::from_mbps(3)), ..usual },
        Passing { application: Some(BitRate::from_mbps(3)), timestamps: false, ..usual },
        Passing { application: Some(BitRate::from_mbps(9)), ..usual },
        Passing { window_octets: Some(2 * 1448), ..usual },
        Passing { window_octets: Some(8 * 1448), timestamps: false, ..usual },
    ];
    for passing in held {
        for load in [Load::Idle, Load::Imix(10)] {
            let scenario = path(100_000, load, passing);
            for (vantage, method) in PLACES.into_iter().flat_map(|place| METHODS.map(|method| (place, method))) {
                let tally = tally(&scenario, method, vantage, 5, 2);
                assert_eq!(tally.confident_wrong, 0, "{passing:?} {load:?} {method} at {vantage}: {tally:?}");
            }
        }
    }
}
