use narrows_units::{BitRate, Receiver, Stamp};

use super::*;
use narrows_probe::outcome::{BoundKind, Caveat, Confidence, Estimate, Limit};
use narrows_probe::probes::{Arrival, Fate, PacingCheck};
use narrows_probe::testing::closed_form_world::{Bucket, ClosedFormWorld, Cross, Hop, real_host};
use narrows_probe::{Budget, Measured, StampSource};

mod ends;
mod filter;
mod hosts;
mod known;
mod paths;

fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn run_on(host_pair: &mut ClosedFormWorld, params: &Params) -> Measured {
    host_pair.measure(&mut Run::new(params.clone()), Pathrate.info().imposes.budget())
}

/// A budget for the tool's own 18 minutes.
fn long_budget() -> Budget {
    Budget { octets: 100_000_000, time: Duration::from_secs(3600), ..Budget::default() }
}

/// A narrow hop between two faster ones.
fn between(edge: BitRate, narrow: Hop, seed: u64) -> ClosedFormWorld {
    ClosedFormWorld::new(vec![Hop::ethernet(edge), narrow, Hop::ethernet(edge)], seed)
}

fn error(estimate: &Estimate, truth: BitRate) -> f64 {
    estimate.in_unit().value as f64 / truth.as_f64() - 1.0
}
