//! The steps against the fluid law, and against paths whose truth is known.

use narrows_probe::outcome::{BoundKind, Diagnostic, Limit};
use narrows_probe::testing::fluid::{Fluid, between, number};
use narrows_probe::{Caveat, Estimate, Outcome, Reason};

fn series(estimate: &Estimate, name: &str) -> Vec<f64> {
    match estimate.diagnostics.get(name) {
        Some(Diagnostic::Series(values)) => values.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

/// With factor 1 the steps are the feedback map: from `R_0 = C` the error is
/// `u^(k+1)/(1 - u^(k+1))`; 6.7 % after three rounds at u = 0.5, 13 % after five at 0.7.
#[test]
fn with_factor_one_the_error_law_is_that_of_fac2() {
    for used in [0.3f64, 0.5, 0.7] {
        let mut path = Fluid::new(1e9, 1e9, 0.01);
        path.sender = 1e9;
        path.cross = used * 1e9;
        let available = 1e9 * (1.0 - used);
        let estimate = path.estimate(&crate::kite::Kite, &[("allowance", "0"), ("resolution", "0.001")]);
        let rates = series(&estimate, "rate_in_bps");
        for (k, rate) in (1..).zip(rates.iter().take(6)) {
            let left = used.powi(k);
            let error = left / (1.0 - left);
            between(rate / available - 1.0, error - 0.003, error + 0.003);
        }
        between(estimate.in_unit().value as f64 / available, 0.997, 1.01);
    }
}

#[test]
fn smaller_factors_take_more_rounds_and_end_at_the_same() {
    let mut rounds = Vec::new();
    for factor in ["1", "0.5"] {
        let mut path = Fluid::new(1e9, 1e9, 0.01);
        path.cross = 4e8;
        let estimate = path.estimate(&crate::kite::Kite, &[("factor", factor)]);
        between(estimate.in_unit().value as f64, 5.9e8, 6.15e8);
        rounds.push(number(&estimate, "rounds"));
    }
    assert!(rounds[1] > rounds[0], "{rounds:?}");
}

#[test]
fn a_low_start_climbs() {
    let mut path = Fluid::new(1e9, 1e9, 0.01);
    path.cross = 4e8;
    let estimate = path.estimate(&crate::kite::Kite, &[("start", "50M")]);
    between(estimate.in_unit().value as f64, 5.85e8, 6.15e8);
    let rates = series(&estimate, "rate_in_bps");
    between(rates[1], 0.98e8, 1.02e8);
}

#[test]
fn at_least_three_rounds_even_on_an_idle_path() {
    let mut path = Fluid::new(1e9, 1e8, 0.01);
    let estimate = path.estimate(&crate::kite::Kite, &[]);
    between(estimate.in_unit().value as f64, 0.99e9, 1.01e9);
    assert!(number(&estimate, "rounds") >= 3.0);
}

#[test]
fn hosts_slower_than_the_path_give_a_bound() {
    let mut path = Fluid::new(1e9, 1e6, 0.02);
    path.sender = 200e6;
    let estimate = path.estimate(&crate::kite::Kite, &[]);
    assert_eq!((estimate.verdict(), estimate.limited_by), (BoundKind::LowerBound, Limit::Sender));
    between(estimate.in_unit().value as f64, 180e6, 200.1e6);
    assert!(estimate.caveats.contains(&Caveat::SenderLimited));
}

#[test]
fn total_loss_ends() {
    let mut path = Fluid::new(1e9, 1e6, 0.02);
    path.dead = true;
    match path.measure(&crate::kite::Kite, &[]).outcome {
        Outcome::Inconclusive { reason, .. } => assert_eq!(reason, Reason::NoAnswer),
        Outcome::Estimated(estimate) => panic!("{estimate:?}"),
    }
    assert!(path.probes <= 10, "{}", path.probes);
}

#[test]
fn parameters_are_checked() {
    for (name, value) in [("factor", "0"), ("factor", "2"), ("packets", "5"), ("resolution", "-1"), ("step", "1")] {
        let raw = [(name, value)].into_iter().collect();
        assert!(narrows_probe::Method::begin(&crate::kite::Kite, &raw).is_err(), "{name}={value}");
    }
}
