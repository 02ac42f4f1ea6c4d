//! Claims of `[Jin03a]` about methods, each a test of the method by name, and of the automatic
//! choice on the same path. Methods that are not in the registry are left out, by name;
//! [`claims_are_of_methods_that_exist`] says which those may be.

use narrows_methods as methods;
use narrows_probe::{BoundKind, Confidence, Method};
use narrows_scenario::{PathDirection, Scenario};
use narrows_units::Metric;

use super::{measured, median, read, truth};

const SEEDS: u64 = 5;

/// What a method makes of a path: signed errors of its points as a share of the capacity, runs
/// without a point, and runs that are wrong by a tenth and sure of themselves.
#[derive(Debug)]
struct Record {
    errors: Vec<f64>,
    silent: usize,
    bounds: usize,
    lies: usize,
}

impl Record {
    fn of(scenario: &Scenario, method: &dyn Method, params: &[(&str, &str)]) -> Self {
        let (free, capacity) = truth(scenario, PathDirection::Forward);
        let mut record = Self { errors: Vec::new(), silent: 0, bounds: 0, lies: 0 };
        for seed in 0..SEEDS {
            let outcome = measured(scenario, method, params, seed);
            let Some(estimate) = outcome.estimate() else {
                record.silent += 1;
                continue;
            };
            if estimate.verdict() != BoundKind::Estimated {
                record.bounds += 1;
                continue;
            }
            let miss = (estimate.in_unit().low as f64 - free).max(free - estimate.in_unit().high as f64);
            record.lies += usize::from(estimate.confidence > Confidence::Low && miss > 0.1 * capacity);
            record.errors.push((estimate.in_unit().value as f64 - free) / capacity);
        }
        record
    }

    fn answers(&self) -> usize {
        self.errors.len()
    }

    /// It says so itself (no answer, a bound), or its points are wrong by more than this share of
    /// the capacity.
    fn fails(&self, by: f64) -> bool {
        self.answers() * 2 <= self.silent + self.bounds + self.answers() || median(self.absolute()).abs() > by
    }

    fn absolute(&self) -> Vec<f64> {
        self.errors.iter().map(|error| error.abs()).collect()
    }
}

/// Right in the median, and no lie: what the automatic choice owes on each of these paths.
fn the_default_is_right(scenario: &Scenario, within: f64) {
    let method = methods::automatic(Metric::AvailableIpCapacity).expect("a method");
    let record = Record::of(scenario, method, &[]);
    assert_eq!(record.lies, 0, "{} {record:?}", scenario.name);
    assert!(record.answers() > 2, "{} {record:?}", scenario.name);
    assert!(median(record.absolute()) <= within, "{} {record:?}", scenario.name);
}

/// One link with Poisson traffic, between clocks and a receiver as described.
fn link(mbps: u32, cross_mbps: f64, tick: &str, coalescing: &str) -> Scenario {
    loaded_link("poisson", mbps, cross_mbps, tick, coalescing)
}

fn loaded_link(arrivals: &str, mbps: u32, cross_mbps: f64, tick: &str, coalescing: &str) -> Scenario {
    read(&format!(
        r#"
name = "link-{mbps}-{cross_mbps}"
seed = 44

[[hop]]
name = "access"
rate = "10 Gbit/s"
delay = "20 us"

[[hop]]
name = "busy"
rate = "{mbps} Mbit/s"
delay = "500 us"
queue = "1000 packets"
cross = [{{ arrivals = "{arrivals}", rate = "{cross_mbps} Mbit/s", ip_octets = 1500 }}]

[sender]
clock = {{ granularity = "{tick}" }}

[receiver]
clock = {{ offset = "1 ms", granularity = "{tick}" }}
{coalescing}
"#
    ))
}

const COALESCED: &str = "coalescing = { timer = \"148 us\", frames = 12 }";

/// §4.2: IGI finds 219 Mbit/s on a path of 1 Gbit/s of which 7 % are taken.
#[test]
fn igi_underestimates_at_a_gigabit() {
    let scenario = link(1000, 68.27, "1 us", COALESCED);
    let igi = methods::find("igi").expect("a method");
    let record = Record::of(&scenario, igi, &[]);
    let low = || record.errors.iter().all(|error| *error < 0.0) && median(record.absolute()) > 0.1;
    assert!(record.answers() < 3 || low(), "{record:?}");
    assert_eq!(record.lies, 0, "{record:?}");
    the_default_is_right(&scenario, 0.03);
}

/// §4.2: trains of shrinking gaps, timed by a clock of 1 us, end at OC-12; below they do not. The
/// tool as it is: our own constants take several packets per rate instead, and are right there.
#[test]
fn chirps_by_a_clock_of_a_microsecond_fail_above_oc_12() {
    let fast = link(1000, 487.65, "1 us", "");
    let chirp = methods::find("pathchirp").expect("a method");
    let tool: &[(&str, &str)] = &[("preset", "tool")];
    let record = Record::of(&fast, chirp, tool);
    assert!(record.fails(0.1), "{record:?}");
    assert_eq!(record.lies, 0, "{record:?}");
    let slow = Record::of(&link(100, 48.76, "1 us", ""), chirp, tool);
    assert!(slow.answers() > 2 && median(slow.absolute()) < 0.3, "{slow:?}");
    let ours = Record::of(&fast, chirp, &[]);
    assert!(ours.answers() > 2 && median(ours.absolute()) < 0.08, "{ours:?}");
    assert_eq!(ours.lies, 0, "{ours:?}");
    the_default_is_right(&fast, 0.03);
}

/// §3.1, §6: pairs need coalescing off.
#[test]
fn pairs_fail_under_coalescing() {
    let scenario = link(1000, 300.0, "1 us", COALESCED);
    for name in ["spruce", "abing"] {
        let method = methods::find(name).expect("a method");
        let reported = method.info().parameter("capacity").is_some();
        let params: &[(&str, &str)] = if reported { &[("capacity", "975293117")] } else { &[] };
        let record = Record::of(&scenario, method, params);
        assert!(record.fails(0.1), "{name} {record:?}");
        assert_eq!(record.lies, 0, "{name} {record:?}");
    }
    the_default_is_right(&scenario, 0.03);
}

/// Links and cross traffic of figure 7 below 70 % utilisation, Mbit/s.
const FIGURE_7: [(u32, f64); 6] =
    [(1000, 97.53), (1000, 292.59), (1000, 487.65), (1000, 633.9), (100, 29.26), (100, 48.76)];

/// Figure 7: accuracy close to 99 % below 70 % utilisation. The paper does not say of what its
/// cross traffic was. Beside evenly spaced traffic the algorithm, which is the feedback loop alone,
/// keeps its claim.
#[test]
fn fac2s_feedback_is_right_to_a_hundredth_beside_constant_traffic() {
    let fac2 = methods::find("fac2").expect("a method");
    for (mbps, cross) in FIGURE_7 {
        let scenario = loaded_link("cbr", mbps, cross, "1 us", "");
        let record = Record::of(&scenario, fac2, &[("preset", "feedback")]);
        assert_eq!((record.silent + record.bounds, record.lies), (0, 0), "{mbps} {cross} {record:?}");
        assert!(median(record.absolute()) <= 0.01, "{mbps} {cross} {record:?}");
    }
}

/// Beside Poisson traffic the feedback loop alone does not keep the claim. With our fit it is off
/// by twice as much as claimed, at most.
#[test]
fn beside_poisson_traffic_fac2_needs_a_fit_for_two_hundredths() {
    let fac2 = methods::find("fac2").expect("a method");
    let mut beyond = 0;
    for (mbps, cross) in FIGURE_7 {
        let scenario = link(mbps, cross, "1 us", "");
        let feedback = Record::of(&scenario, fac2, &[("preset", "feedback")]);
        beyond += usize::from(feedback.fails(0.01));
        let record = Record::of(&scenario, fac2, &[]);
        assert_eq!((record.silent + record.bounds, record.lies), (0, 0), "{mbps} {cross} {record:?}");
        assert!(median(record.absolute()) <= 0.02, "{mbps} {cross} {record:?}");
        the_default_is_right(&scenario, 0.03);
    }
    assert!(beyond > 3, "the loop alone errs by over a hundredth on most of them: {beyond} of 6");
}
