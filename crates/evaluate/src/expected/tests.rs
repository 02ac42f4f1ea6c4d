use super::*;
use narrows_probe::{SampleCounts, Samples};
use narrows_report::{SamplesRow, TruthBasis};
use narrows_scenario::{MedianOf, TIGHT, TruthFrom};
use narrows_units::Metric;

fn run(verdict: BoundKind, claim: Option<[u64; 3]>) -> RunRow {
    RunRow {
        seed: 1,
        truth_bps: Some(1_000),
        truth_basis: TruthBasis::Scenario,
        long_run_truth_bps: None,
        truth_deviation_bps: None,
        low_bps: claim.map(|claim| claim[0]),
        value_bps: claim.map(|claim| claim[1]),
        high_bps: claim.map(|claim| claim[2]),
        verdict,
        confidence: None,
        octets: 1,
        packets: 1,
        seconds: 1.0,
        peak_rate_bps: 1,
        samples: SamplesRow::new(Samples::default(), &SampleCounts::default()),
        caveats: Vec::new(),
        reason: None,
        tracking: None,
    }
}

fn bound(value: u64) -> RunRow {
    run(BoundKind::LowerBound, Some([value, value, value]))
}

fn kinds(expected: Expected, exact: bool, runs: Vec<RunRow>) -> Vec<FaultKind> {
    let expectation = Expectation {
        method: "m".to_owned(),
        params: Vec::new(),
        metric: None,
        exact,
        expected,
        truth: TruthFrom::Undisturbed,
    };
    let document = SimulationDocument::new("s".to_owned(), "m".to_owned(), Metric::IpCapacity, 1, runs, Some(1e3));
    faults(&expectation, &document).iter().map(|fault| fault.kind).collect()
}

fn near() -> Expected {
    Expected::Within { of: MedianOf::Ratio, low: 0.8, high: 1.2, wrong_confident: 1.0, inconclusive: 0.0, bounds: 0.0 }
}

fn at_least(low: f64, high: f64) -> ExpectedBound {
    let loose = (low < TIGHT).then(|| "why".to_owned());
    ExpectedBound {
        side: BoundSide::AtLeast,
        low,
        high,
        scale: BoundScale::Truth,
        share: 1.0,
        inconclusive: 0.0,
        loose,
    }
}

/// So many of `count` intervals hold the truth.
fn intervals(held: usize, count: usize, half_width: u64) -> Vec<RunRow> {
    let one = |k| {
        let value = if k < held { 1_000 } else { 1_000 + 2 * half_width };
        run(BoundKind::Estimated, Some([value - half_width, value, value + half_width]))
    };
    (0..count).map(one).collect()
}

/// What a bound of nothing would pass before: at least 0.
#[test]
fn a_bound_that_says_nothing_fails() {
    let bounds = |value| vec![bound(value); 20];
    assert_eq!(kinds(Expected::Bounded(at_least(0.85, 1.0)), false, bounds(0)), [FaultKind::Bound]);
    assert_eq!(kinds(Expected::Bounded(at_least(0.85, 1.0)), false, bounds(500)), [FaultKind::Bound]);
    assert_eq!(
        kinds(Expected::Bounded(at_least(0.85, 1.0)), false, bounds(1_001)),
        [FaultKind::Bound, FaultKind::CoverageLow]
    );
    assert_eq!(kinds(Expected::Bounded(at_least(0.85, 1.0)), false, bounds(900)), []);
}

/// Before, bounds did not count where a value was expected: one value in a hundred runs would do.
#[test]
fn bounds_are_no_values() {
    let mut runs = intervals(10, 10, 20);
    runs.push(bound(10));
    assert_eq!(kinds(near(), false, runs), [FaultKind::Bounds]);
}

#[test]
fn nothing_is_no_bound_unless_expected_by_share() {
    let mut runs = vec![bound(900); 19];
    runs.push(run(BoundKind::Inconclusive, None));
    let expected = at_least(0.85, 1.0);
    assert_eq!(kinds(Expected::Bounded(expected.clone()), false, runs.clone()), [FaultKind::Inconclusive]);
    let allowed = ExpectedBound { inconclusive: 0.05, ..expected };
    assert_eq!(kinds(Expected::Bounded(allowed), false, runs), []);
}

/// An excuse may not be wider than what is excused.
#[test]
fn a_loose_range_fits_its_bounds() {
    let expected = || Expected::Bounded(at_least(0.2, 0.6));
    assert_eq!(kinds(expected(), false, vec![bound(500); 100]), [FaultKind::BoundRange]);
    assert_eq!(kinds(expected(), false, vec![bound(210); 100]), []);
    assert_eq!(kinds(expected(), false, vec![bound(500); 20]), [], "20 runs do not show the smallest");
}

/// The sums of the binomial at 0.9: of 20 at most 12 have 4.2e-4 and at most 13 have 2.4e-3; of 100
/// at most 79 have 8.1e-4 and at most 80 have 2.0e-3.
#[test]
fn coverage_that_is_too_low_fails() {
    for (held, count, low) in [(12, 20, true), (13, 20, false), (79, 100, true), (80, 100, false), (0, 2, false)] {
        let found = kinds(near(), false, intervals(held, count, 20));
        assert_eq!(found.contains(&FaultKind::CoverageLow), low, "{held} of {count}: {found:?}");
    }
}

#[test]
fn bounds_on_the_wrong_side_are_counted_too() {
    let tolerant = Expected::Within {
        of: MedianOf::Ratio,
        low: 0.8,
        high: 1.2,
        wrong_confident: 1.0,
        inconclusive: 0.0,
        bounds: 0.9,
    };
    let runs = |wrong: usize| {
        let bounds = (0..60).map(|k| bound(if k < wrong { 1_010 } else { 990 }));
        bounds.chain(intervals(20, 20, 20)).collect::<Vec<_>>()
    };
    assert_eq!(kinds(tolerant.clone(), false, runs(6)), []);
    assert_eq!(kinds(tolerant, false, runs(30)), [FaultKind::CoverageLow]);
}

#[test]
fn one_run_that_stands_for_all_must_hold_the_truth() {
    assert_eq!(kinds(near(), true, intervals(0, 1, 20)), [FaultKind::CoverageLow]);
    assert_eq!(kinds(near(), true, intervals(1, 1, 20)), []);
}

/// Intervals that hold the truth every time are too wide if half of them would do, and if they are
/// wide at all.
#[test]
fn intervals_twice_as_wide_as_needed_fail() {
    let off = |by: u64, half: u64| -> Vec<RunRow> {
        let one = |value: u64| run(BoundKind::Estimated, Some([value - half, value, value + half]));
        (0..100).map(|k| one(if k % 2 == 0 { 1_000 - by } else { 1_000 + by })).collect()
    };
    assert_eq!(kinds(near(), false, off(10, 100)), [FaultKind::CoverageHigh]);
    assert_eq!(kinds(near(), false, off(60, 100)), []);
    assert_eq!(kinds(near(), false, off(1, 20)), [], "4 % of the truth is narrow");
    assert_eq!(kinds(near(), false, off(10, 100)[..20].to_vec()), [], "20 of 20 are no proof");
    let alike = vec![run(BoundKind::Estimated, Some([900, 1_000, 1_100])); 100];
    assert_eq!(kinds(near(), false, alike), [], "no noise, no experiment");
}

#[test]
fn exact_rows_do_not_scatter() {
    let runs = vec![
        run(BoundKind::Estimated, Some([900, 1_000, 1_100])),
        run(BoundKind::Estimated, Some([900, 1_010, 1_100])),
    ];
    assert_eq!(kinds(near(), true, runs.clone()), [FaultKind::NotExact]);
    assert_eq!(kinds(near(), false, runs), []);
}

#[test]
fn what_should_be_refused_is() {
    let expected = || Expected::Inconclusive { share: 0.9 };
    let none = run(BoundKind::Inconclusive, None);
    assert_eq!(kinds(expected(), false, vec![none.clone(), bound(10)]), [FaultKind::Refused]);
    assert_eq!(kinds(expected(), false, vec![none; 3]), []);
}
