//! Runs over observations that an earlier run kept, and the keeping of them.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;

use narrows_probe::Measured;
use narrows_sim::SimWorld;
use narrows_trace::{Played, Recorder, Recording, Setting, WorldKind, Writer};

use crate::cell::{Cell, Run};
use crate::error::RunFault;
use crate::simulated::{Simulated, Simulation};

/// One run in the simulator that writes its observations to `path`. The file appears there when it
/// is whole.
pub(crate) fn record(simulation: &Simulation<'_>, text: &str, seed: u64, path: &Path) -> Result<Simulated, RunFault> {
    let part = path.with_extension("part");
    let writer = File::create(&part).map_err(|error| broke(&part, &error))?;
    let writer = Writer::new(BufWriter::new(writer)).map_err(|error| broke(&part, &error))?;
    let setting = Setting::new(WorldKind::Simulator).playing(Played {
        scenario: simulation.scenario.name.clone(),
        text: text.to_owned(),
        seed,
    });
    let world = SimWorld::new(simulation.scenario, simulation.way, seed);
    let mut world = Recorder::new(world, writer, setting).with_true_time(|world| Some(world.true_time()));
    let run = simulation.run_in(&mut world, |world| world.world().true_time(), seed);
    let run = run.map_err(|error| RunFault::NotOffered { why: error.to_string() })?;
    let (_, writer, fault) = world.into_parts();
    if let Some(fault) = fault {
        return Err(broke(&part, &fault));
    }
    let sink = writer.map(Writer::finish).transpose().map_err(|error| broke(&part, &error))?;
    let file = sink.map(BufWriter::into_inner).transpose();
    file.map_err(|error| broke(&part, &error))?;
    std::fs::rename(&part, path).map_err(|error| broke(path, &error))?;
    Ok(run)
}

/// What the method of `cell` makes of the observations in the file at `path`, with the cell's
/// parameters. What it cost is what the run that made them cost.
pub(crate) fn analyse(cell: &Cell, simulation: &Simulation<'_>, seed: u64, path: &Path) -> Result<Run, RunFault> {
    let file = File::open(path).map_err(|error| broke(path, &error))?;
    let recording = Recording::read(file).map_err(|error| broke(path, &error))?;
    let run = recording.runs.first().ok_or_else(|| broke(path, &"it holds no run"))?;
    let end = run.end.as_ref().ok_or_else(|| broke(path, &"its run did not end"))?;
    let params = simulation.params.iter().cloned().collect();
    let outcome = simulation.method.analyse(&run.observations(), &params);
    let outcome =
        outcome.map_err(|error| RunFault::NotOffered { why: format!("{}: {error}", cell.subject.label()) })?;
    let (began, ended) = end.true_ns.map_or((Duration::ZERO, end.cost.time), |(began, ended)| {
        (Duration::from_nanos(began), Duration::from_nanos(ended))
    });
    let measured = Measured { outcome, cost: end.cost };
    // The simulator's time is known of its own runs alone.
    Ok(Run::from(if end.true_ns.is_some() {
        simulation.judged_as_realised(&measured, (began, ended), seed)
    } else {
        simulation.judged(measured, (began, ended), seed)
    }))
}

fn broke(path: &Path, error: &dyn std::fmt::Display) -> RunFault {
    RunFault::Broke { why: format!("{}: {error}", path.display()) }
}
