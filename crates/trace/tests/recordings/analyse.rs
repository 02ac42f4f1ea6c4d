//! The pure analysis of a run's own rows is the run's own outcome.

use narrows_methods::{METHODS, find};
use narrows_probe::{AnalyseError, RawParams};

use crate::common::{of_method, params, read, recorded, text, waiting_path};

/// Exactly: both are one piece of code, and the clock's readings are among the rows.
#[test]
fn every_method_over_all_its_scenarios() {
    for method in METHODS {
        let name = method.info().name;
        let scenarios = of_method(name);
        // One where it is right, one where it must not be sure.
        assert!(scenarios.len() >= 2, "{name}");
        for (seed, (scenario, toml, expectation)) in (11..).zip(scenarios) {
            let raw = params(&expectation.params);
            let (measured, octets) = recorded(&scenario, &toml, *method, &raw, seed);
            let recording = read(&octets);
            let analysed = method
                .analyse(&recording.runs[0].observations(), &raw)
                .unwrap_or_else(|error| panic!("{name} on {}: {error}", scenario.name));
            assert_eq!(text(&analysed), text(&measured.outcome), "{name} on {}", scenario.name);
        }
    }
}

#[test]
fn rows_of_no_use_are_refused_by_their_kinds() {
    let (scenario, toml, _) = waiting_path();
    let rtt = find("rtt").expect("registered");
    let (_, octets) = recorded(&scenario, &toml, rtt, &RawParams::new(), 1);
    let observations = read(&octets).runs[0].observations();
    for name in ["capacity", "fac2", "pathload", "burst", "udp", "tcp", "streams"] {
        let method = find(name).expect("registered");
        let error = method.analyse(&observations, &RawParams::new()).expect_err(name);
        assert!(matches!(error, AnalyseError::NothingToGoOn { .. }), "{error}");
        assert!(error.to_string().ends_with("there is 2 echoed train(s)"), "{error}");
    }
}
