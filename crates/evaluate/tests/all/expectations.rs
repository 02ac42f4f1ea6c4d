//! What the scenarios expect, against answers that say nothing.

use std::path::Path;

use narrows_evaluate::expected::faults;
use narrows_probe::{BoundKind, SampleCounts, Samples};
use narrows_report::{RunRow, SamplesRow, SimulationDocument, TruthBasis};
use narrows_scenario::Scenario;
use narrows_units::Metric;

/// Twenty runs that all answer this, where the truth is 1000.
fn answers(verdict: BoundKind, value: Option<u64>) -> SimulationDocument {
    let run = RunRow {
        seed: 1,
        truth_bps: Some(1_000),
        truth_basis: TruthBasis::Scenario,
        long_run_truth_bps: None,
        truth_deviation_bps: None,
        value_bps: value,
        low_bps: value,
        high_bps: value,
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
    };
    SimulationDocument::new("s".to_owned(), "m".to_owned(), Metric::IpCapacity, 1, vec![run; 20], Some(1e3))
}

/// "At least 0", "at most everything" and a value of nothing are true or bold, and never enough; to
/// say nothing is enough where that is expected by name.
#[test]
fn no_scenario_is_content_with_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut expectations = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let scenario = Scenario::from_toml(&text).unwrap();
        for expectation in &scenario.expect {
            expectations += 1;
            for (verdict, value) in [
                (BoundKind::LowerBound, Some(0)),
                (BoundKind::UpperBound, Some(u64::MAX)),
                (BoundKind::Estimated, Some(0)),
            ] {
                let found = faults(expectation, &answers(verdict, value));
                assert!(!found.is_empty(), "{}: {expectation:?} is content with {verdict:?} {value:?}", scenario.name);
            }
            let is_refusal = matches!(expectation.expected, narrows_scenario::Expected::Inconclusive { .. });
            let nothing = faults(expectation, &answers(BoundKind::Inconclusive, None));
            assert_eq!(nothing.is_empty(), is_refusal, "{}: {expectation:?}", scenario.name);
        }
    }
    assert!(expectations > 300, "{expectations}");
}
