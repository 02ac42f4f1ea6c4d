//! One method over one scenario, many seeds: the document of `narrows simulate --json` beside the
//! capacity that its errors are shares of. Needs a fraction of the program's build, which counts
//! where estimators are built anew: `cargo xtask ablate`.
//!
//! `simulate SCENARIO.toml METHOD SEED RUNS JOBS [hosts/PROFILE.toml]`

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use narrows_evaluate::simulated::Simulation;
use narrows_evaluate::{parallel, scenario_beside, truth};
use narrows_host_profile::HostProfile;
use narrows_report::{RunRow, SimulationDocument};
use narrows_scenario::{PathDirection, TruthFrom};

type Fault = Box<dyn std::error::Error + Send + Sync>;

#[expect(clippy::print_stdout, reason = "an example speaks to its user")]
fn main() -> Result<(), Fault> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, method, seed, runs, jobs, hosts @ ..] = args.as_slice() else {
        return Err("SCENARIO.toml METHOD SEED RUNS JOBS [hosts/PROFILE.toml]".into());
    };
    let mut scenario = scenario_beside(&std::fs::read_to_string(file)?, Path::new(file))?;
    if let [profile] = hosts {
        let profile = HostProfile::from_toml(&std::fs::read_to_string(profile)?)?;
        scenario = scenario.hosts(&Arc::new(profile)).validate()?;
    }
    let found = narrows_methods::find(method).ok_or("there is no such method")?;
    let (way, metric, truth) = (PathDirection::Forward, found.info().metric, TruthFrom::Undisturbed);
    let simulation = Simulation { scenario: &scenario, way, method: found, metric, params: &[], truth };
    let (seed, runs): (u64, usize) = (seed.parse()?, runs.parse()?);
    let mut rows: Vec<Option<RunRow>> = vec![None; runs];
    let one = |index: usize| -> Result<RunRow, Fault> {
        let seed = seed + index as u64;
        let run = simulation.run(seed)?;
        Ok(RunRow::new(seed, run.truth, &run.measured).truth_from(run.truth_basis, run.long_run_truth))
    };
    parallel(runs, jobs.parse()?, &AtomicBool::new(false), one, |index, row| {
        rows[index] = Some(row);
        Ok(())
    })?;
    let (name, rows) = (scenario.name.clone(), rows.into_iter().flatten().collect());
    let document = SimulationDocument::new(name, method.clone(), metric, seed, rows, simulation.scale());
    println!("{{\"capacity_bps\":{},\"document\":{}}}", truth::scale(&scenario, way), document.json());
    Ok(())
}
