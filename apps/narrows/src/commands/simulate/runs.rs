//! Many runs of one method, on as many processors as allowed, in the order of their seeds.

use std::sync::atomic::AtomicBool;

use evaluate::parallel;
use evaluate::simulated::Simulation;
use report::{RunRow, SimulationDocument};

use crate::exit::Failure;

/// What to run.
pub(super) struct Batch<'a> {
    pub(super) simulation: Simulation<'a>,
    /// What the user calls the method.
    pub(super) name: &'a str,
    pub(super) seed: u64,
    pub(super) runs: u32,
    pub(super) jobs: usize,
}

pub(super) fn simulate(batch: &Batch<'_>) -> Result<SimulationDocument, Failure> {
    let wrong = |error: estimate::ParamError| Failure::usage(error.to_string());
    // Bad parameters are the caller's, and are told once, before any run.
    batch.simulation.begin().map_err(wrong)?;
    let count = usize::try_from(batch.runs).unwrap_or(usize::MAX);
    let mut rows: Vec<Option<RunRow>> = vec![None; count];
    let one = |index: usize| {
        let seed = batch.seed.wrapping_add(index as u64);
        let run = batch.simulation.run(seed).map_err(wrong)?;
        Ok(RunRow::new(seed, run.truth, &run.measured))
    };
    parallel(count, batch.jobs, &AtomicBool::new(false), one, |index, row| {
        rows[index] = Some(row);
        Ok(())
    })?;
    Ok(SimulationDocument::new(
        batch.simulation.scenario.name.clone(),
        batch.name.to_owned(),
        batch.simulation.metric,
        batch.seed,
        rows.into_iter().flatten().collect(),
        batch.simulation.scale(),
    ))
}
