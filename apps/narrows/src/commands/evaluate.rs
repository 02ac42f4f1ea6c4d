//! `narrows evaluate PLAN.toml`: scenarios, methods, parameters, seeds and worlds crossed, with the published numbers beside ours.

mod check;
mod lab;

use std::path::PathBuf;

use evaluate::Plan;
use report::World;

use crate::exit::{Exit, Failure};
use crate::output;

/// Run a plan: methods over scenarios, in the simulator and in the lab, beside what was published.
#[derive(Debug, clap::Args)]
pub(crate) struct EvaluateArgs {
    /// Plan file
    plan: PathBuf,
    /// List the rows and how many runs each takes; run nothing
    #[arg(long)]
    check: bool,
    /// Only this world
    #[arg(long, value_parser = world, value_name = "simulator|lab|recording")]
    world: Option<World>,
    /// Runs per row, instead of the plan's
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    runs: Option<u32>,
    /// Only rows whose scenario or method contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

pub(crate) fn run(args: &EvaluateArgs) -> Result<Exit, Failure> {
    let mut plan = Plan::read(&args.plan).map_err(|error| Failure::usage(error.to_string()))?;
    narrow(args, &mut plan)?;
    if args.check {
        output::write(&check::text(&plan), None)?;
        return Ok(Exit::Valid);
    }
    Err(Failure::usage("only --check for now"))
}

fn world(text: &str) -> Result<World, String> {
    let found = World::ALL.into_iter().find(|world| world.name() == text);
    found.ok_or_else(|| "there are the worlds simulator, lab and recording".to_owned())
}

/// What the flags leave of the plan.
fn narrow(args: &EvaluateArgs, plan: &mut Plan) -> Result<(), Failure> {
    if let Some(world) = args.world {
        plan.only_world(world);
    }
    if let Some(runs) = args.runs {
        plan.runs = evaluate::plan::Runs {
            simulator: runs,
            lab: runs,
            recording: runs,
        };
    }
    if let Some(text) = &args.only
        && !plan.only(text)
    {
        let why = format!("--only {text}: no row's scenario or method contains it");
        return Err(Failure::usage(why));
    }
    Ok(())
}
