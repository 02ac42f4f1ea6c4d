//! What the tests of these methods share.

use narrows_units::BitRate;

use narrows_probe::outcome::{Estimate, Outcome, Reason};
use narrows_probe::registry::{Method, RawParams};
use narrows_probe::testing::closed_form_world::ClosedFormWorld;
use narrows_probe::testing::fluid_path::Fluid;
use narrows_probe::{Measured, drive};

pub(crate) fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

pub(crate) fn raw(params: &[(&str, &str)]) -> RawParams {
    params.iter().copied().collect()
}

pub(crate) fn on_fluid(fluid: &mut Fluid, method: &dyn Method, params: &[(&str, &str)]) -> Measured {
    let raw = raw(params);
    let mut machine = method.begin(&raw).unwrap();
    let Ok(measured) = drive(fluid, machine.as_mut(), method.imposes(&raw).budget());
    measured
}

pub(crate) fn on_host_pair(host_pair: &mut ClosedFormWorld, method: &dyn Method, params: &[(&str, &str)]) -> Measured {
    let raw = raw(params);
    let mut machine = method.begin(&raw).unwrap();
    host_pair.measure(machine.as_mut(), method.imposes(&raw).budget())
}

pub(crate) fn estimate(measured: &Measured) -> &Estimate {
    let outcome = &measured.outcome;
    outcome.estimate().unwrap_or_else(|| panic!("{outcome:?}"))
}

pub(crate) fn reason(measured: &Measured) -> Reason {
    match &measured.outcome {
        Outcome::Inconclusive { reason, .. } => reason.clone(),
        Outcome::Estimated(estimate) => panic!("{estimate:?}"),
    }
}
