//! What the tests of these methods share.

use units::BitRate;

use crate::fluid_path::Fluid;
use crate::outcome::{Estimate, Outcome, Reason};
use crate::registry::{Method, RawParams};
use crate::testbed::Testbed;
use crate::{Measured, drive};

pub(in crate::methods) fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

pub(in crate::methods) fn raw(params: &[(&str, &str)]) -> RawParams {
    params.iter().copied().collect()
}

pub(in crate::methods) fn on_fluid(fluid: &mut Fluid, method: &dyn Method, params: &[(&str, &str)]) -> Measured {
    let raw = raw(params);
    let mut machine = method.begin(&raw).unwrap();
    let Ok(measured) = drive(fluid, machine.as_mut(), method.imposes(&raw).budget());
    measured
}

pub(in crate::methods) fn on_bed(bed: &mut Testbed, method: &dyn Method, params: &[(&str, &str)]) -> Measured {
    let raw = raw(params);
    let mut machine = method.begin(&raw).unwrap();
    bed.measure(machine.as_mut(), method.imposes(&raw).budget())
}

pub(in crate::methods) fn estimate(measured: &Measured) -> &Estimate {
    let outcome = &measured.outcome;
    outcome.estimate().unwrap_or_else(|| panic!("{outcome:?}"))
}

pub(in crate::methods) fn reason(measured: &Measured) -> Reason {
    match &measured.outcome {
        Outcome::Inconclusive { reason, .. } => reason.clone(),
        Outcome::Estimated(estimate) => panic!("{estimate:?}"),
    }
}
