//! `narrows lab`: a scenario as real namespaces, one per host, router and layer-2 device.

mod down;
mod enter;
mod flows;
mod hold;
mod program;
mod status;
mod up;

use std::path::PathBuf;

use narrows_lab::LabId;

use super::emulate::failure;
use crate::exit::{Exit, Failure};
use crate::output;

/// Build a scenario from real namespaces, routers, bridges and shapers, to run anything inside.
#[derive(Debug, clap::Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Build a lab that stays until `narrows lab down`
    Up(up::UpArgs),
    /// End labs, and remove what crashed ones left behind
    Down(down::DownArgs),
    /// Build a lab, run a program inside, and end the lab with it
    Run(program::RunArgs),
    /// Run a program in a node of a lab that is up; its exit code is passed on
    Exec(enter::ExecArgs),
    /// List the labs that are up, and whether the timing of their real-time links is valid
    Status(status::StatusArgs),
    /// Hold a lab (what `up` starts)
    #[command(hide = true)]
    Hold(hold::HoldArgs),
}

/// What is built, and how.
#[derive(Debug, Clone, clap::Args)]
struct BuildArgs {
    /// Scenario file
    scenario: PathBuf,
    /// Name of the lab: letters, digits and '_'; the first free number by default
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// Seed of everything random; the scenario's own by default
    #[arg(long)]
    seed: Option<u64>,
    /// Processor for the thread that plays real-time links
    #[arg(long)]
    cpu: Option<usize>,
    /// Use the scenario's rates where the kernel plays a hop, instead of saturating it for a second
    /// in each direction
    #[arg(long)]
    no_calibration: bool,
}

impl LabArgs {
    /// Whether this process makes namespaces itself.
    pub(crate) fn builds(&self) -> bool {
        matches!(self.action, Action::Run(_) | Action::Hold(_))
    }
}

impl BuildArgs {
    /// Of a lab of this process; `held`: one that it does nothing else with.
    fn options(&self, held: bool) -> Result<narrows_lab::LabOptions, Failure> {
        Ok(narrows_lab::LabOptions {
            id: self.id.as_deref().map(id).transpose()?,
            seed: self.seed,
            cpu: self.cpu,
            held,
            uncalibrated: self.no_calibration,
            ..narrows_lab::LabOptions::default()
        })
    }
}

pub(crate) fn run(args: &LabArgs) -> Result<Exit, Failure> {
    match &args.action {
        Action::Up(args) => up::run(args),
        Action::Down(args) => down::run(args),
        Action::Run(args) => program::run(args),
        Action::Exec(args) => enter::run(args),
        Action::Status(args) => status::run(args),
        Action::Hold(args) => hold::run(args),
    }
}

fn id(text: &str) -> Result<LabId, Failure> {
    text.parse().map_err(|error| failure(&error))
}

/// Removes what dead labs left, and says so.
fn clean() -> Vec<String> {
    let cleaned = narrows_lab::clean_dead_labs();
    if !cleaned.is_empty() {
        output::complain(&format!("removed what dead labs left: {}", cleaned.join(" ")));
    }
    cleaned
}
