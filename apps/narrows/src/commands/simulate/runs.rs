//! Many runs of one method, on as many processors as allowed, in the order of their seeds.

use std::sync::atomic::AtomicBool;

use narrows_evaluate::parallel;
use narrows_evaluate::simulated::Simulation;
use narrows_report::{RunRow, SimulationDocument};
use narrows_scenario::PathDirection;
use narrows_sim::SimWorld;
use narrows_trace::{Played, Recorder, Setting, WorldKind, WriteError};
use narrows_units::Direction;

use crate::exit::Failure;
use crate::record::FileWriter;

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
    let wrong = |error: narrows_probe::ParamError| Failure::usage(error.to_string());
    // Bad parameters are the caller's, and are told once, before any run.
    batch.simulation.begin().map_err(wrong)?;
    let count = usize::try_from(batch.runs).unwrap_or(usize::MAX);
    let mut rows: Vec<Option<RunRow>> = vec![None; count];
    let one = |index: usize| {
        let seed = batch.seed.wrapping_add(index as u64);
        let run = batch.simulation.run(seed).map_err(wrong)?;
        Ok(RunRow::new(seed, run.truth, &run.measured)
            .truth_from(run.truth_basis, run.long_run_truth)
            .truth_deviation(run.truth_deviation)
            .tracking(run.tracking))
    };
    parallel(count, batch.jobs, &AtomicBool::new(false), one, |index, row| {
        rows[index] = Some(row);
        Ok(())
    })?;
    Ok(document(batch, rows.into_iter().flatten().collect()))
}

fn document(batch: &Batch<'_>, rows: Vec<RunRow>) -> SimulationDocument {
    SimulationDocument::new(
        batch.simulation.scenario.name.clone(),
        batch.name.to_owned(),
        batch.simulation.metric,
        batch.seed,
        rows,
        batch.simulation.scale(),
    )
}

/// One run, written down; `text` is the scenario's.
pub(super) fn recorded(
    batch: &Batch<'_>,
    text: &str,
    writer: Option<FileWriter>,
) -> Result<(SimulationDocument, Option<FileWriter>, Option<WriteError>), Failure> {
    let wrong = |error: narrows_probe::ParamError| Failure::usage(error.to_string());
    let simulation = &batch.simulation;
    let played = Played { scenario: simulation.scenario.name.clone(), text: text.to_owned(), seed: batch.seed };
    let direction = match simulation.way {
        PathDirection::Forward => Direction::Forward,
        PathDirection::Reverse => Direction::Reverse,
    };
    let setting = Setting::new(WorldKind::Simulator).towards(direction).playing(played);
    let world = SimWorld::new(simulation.scenario, simulation.way, batch.seed);
    let mut world = Recorder::maybe(world, writer, setting).with_true_time(|world: &SimWorld| Some(world.true_time()));
    simulation.begin().map_err(wrong)?;
    let run = simulation.run_in(&mut world, |world| world.world().true_time(), batch.seed).map_err(wrong)?;
    let (_, writer, fault) = world.into_parts();
    let row = RunRow::new(batch.seed, run.truth, &run.measured)
        .truth_from(run.truth_basis, run.long_run_truth)
        .truth_deviation(run.truth_deviation)
        .tracking(run.tracking);
    Ok((document(batch, vec![row]), writer, fault))
}
