//! Plans: what to run, over which paths, where, how often, and what a paper says of it.
//!
//! ```toml
//! name = "seed001-table10"
//! about = "pathload under growing load"
//! source = "[Abut18] table 10"            # shown beside the published numbers
//! worlds = ["simulator", "lab"]           # and "recording"
//! runs = { simulator = 20, lab = 3 }      # per row and world
//! seed = 1                                # of the first run; by default the scenario's own
//! keep = "first"      # raw observations: "all", "first" (the default), "lab" or "none"
//!
//! [[scenario]]
//! template = "templates/load.toml"   # {{cross}} is replaced; or file = "…"
//! with = { cross = ["0 Mbit/s", "10 Mbit/s"] }
//! as = { cross = ["idle", "10"] }         # shorter words for the name
//! name = "load-{{cross}}"
//!
//! [[method]]
//! name = "default"    # the automatic choice, "default_per_hop", or any method
//! metric = "available_ip_capacity"
//!
//! [[external tool]]
//! name = "iperf3-tcp"
//!
//! [[published]]
//! scenario = "load-10"
//! method = "pathload"
//! value = "67.4 Mbit/s"
//! ```
//!
//! A scenario may be run between measured hosts, which `narrows host --record` wrote: `hosts =
//! ["own", "../hosts/busy.toml"]` makes a scenario of each, `own` being the hosts of its file.
//!
//! Every combination of the lists in `with` makes a scenario, and every combination of the lists in
//! a method's `params` a method. Unknown fields are refused.

mod file;
mod methods;
mod published;
mod scenarios;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use narrows_report::World;

pub(crate) use methods::begin;
pub use published::PlannedPublished;

use crate::cell::Cell;
use crate::error::PlanError;
use crate::hosts;
use crate::subject::{PlannedScenario, Subject, allows};
use crate::text_file;

/// Most rows of a plan, most runs of all of them, and most octets of a file: ours; some hundred
/// megabytes of memory each.
const MOST_ROWS: usize = 200_000;
const MOST_RUNS: u64 = 10_000_000;

/// A plan that makes sense: every file was read, every scenario and parameter checked.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Short, for file names.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Where the published numbers come from.
    pub source: String,
    /// What a reader must know before comparing.
    pub notes: Vec<String>,
    /// Where to run.
    pub worlds: Vec<World>,
    /// How often.
    pub runs: Runs,
    /// Seed of the first run; `None`: each scenario's own.
    pub seed: Option<u64>,
    /// Which raw observations are kept.
    pub keep: Keep,
    /// The paths.
    pub scenarios: Vec<Arc<PlannedScenario>>,
    /// Methods, then external tools.
    pub subjects: Vec<Subject>,
    /// The paper's numbers.
    pub published: Vec<PlannedPublished>,
}

/// Runs per row, by world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// In the simulator.
    pub simulator: u32,
    /// In the lab.
    pub lab: u32,
    /// From recordings.
    pub recording: u32,
}

/// Which runs keep their raw observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Those of every world.
    All,
    /// Those of the lab, and of the simulator the first of each row: enough for the page's pictures
    /// of what a run saw.
    #[default]
    First,
    /// Those of the lab: the simulator can repeat its own.
    Lab,
    /// None.
    None,
}

impl Runs {
    /// In one world.
    pub fn of(self, world: World) -> u32 {
        match world {
            World::Simulator => self.simulator,
            World::Lab => self.lab,
            World::Recording => self.recording,
        }
    }
}

impl Keep {
    /// How many of a row's runs in `world` keep theirs, from the first on. What comes from a
    /// recording has one already.
    pub fn count(self, world: World) -> u32 {
        match (self, world) {
            (Self::None, _) | (_, World::Recording) | (Self::Lab, World::Simulator) => 0,
            (Self::First, World::Simulator) => 1,
            (Self::All, World::Simulator) | (Self::All | Self::First | Self::Lab, World::Lab) => u32::MAX,
        }
    }
}

impl Plan {
    /// Reads and checks a plan and everything that it names.
    pub fn read(path: &Path) -> Result<Self, PlanError> {
        let text = text_file::read(path)?;
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Self::from_toml(&text, path, &folder)
    }

    /// The same from a text; files are taken relative to `folder`, and errors name `path`.
    pub fn from_toml(text: &str, path: &Path, folder: &Path) -> Result<Self, PlanError> {
        let file: file::PlanFile = toml::from_str(text)
            .map_err(|error| PlanError::Syntax { path: path.to_path_buf(), text: error.to_string() })?;
        check_name(&file.name)?;
        let scenarios = scenarios::cross(&file.scenario, folder)?;
        let mut subjects = methods::cross(&file.method)?;
        subjects.extend(methods::external_tools(&file.external_tool, folder)?);
        let published = published::read(&file.published, &scenarios, &subjects)?;
        let plan = Self {
            name: file.name,
            about: file.about,
            source: file.source,
            notes: file.notes,
            worlds: worlds("worlds", file.worlds)?,
            runs: file.runs.read()?,
            seed: file.seed,
            keep: file.keep,
            scenarios,
            subjects,
            published,
        };
        plan.check()?;
        plan.check_size()?;
        Ok(plan)
    }

    /// Every row that is to be run, in the order of the result: scenario, then subject, then world.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for scenario in &self.scenarios {
            for subject in self.subjects.iter().filter(|subject| wanted(scenario, subject)) {
                for &world in &self.worlds {
                    if !allows(scenario.worlds.as_ref(), world) || !subject.allows(world) {
                        continue;
                    }
                    cells.push(Cell {
                        scenario: Arc::clone(scenario),
                        subject: subject.clone(),
                        world,
                        runs: self.runs.of(world),
                        seed: self.seed.unwrap_or(scenario.scenario.seed),
                        keep: self.keep.count(world),
                    });
                }
            }
        }
        cells
    }

    /// Plays the host profile of this file at both ends of every path, instead of the scenarios'
    /// hosts. Only the simulator can.
    pub fn play(&mut self, file: &Path) -> Result<(), PlanError> {
        let hosts = hosts::profile("--hosts", file)?;
        let played = |own: &Arc<PlannedScenario>| scenarios::played(own, &hosts).map(Arc::new);
        self.scenarios = self.scenarios.iter().map(played).collect::<Result<_, _>>()?;
        self.only_world(World::Simulator);
        Ok(())
    }

    /// Leaves only rows of this world.
    pub fn only_world(&mut self, world: World) {
        self.worlds.retain(|own| *own == world);
    }

    /// Leaves only rows whose scenario or method contains `text`; `false` if there are none.
    pub fn only(&mut self, text: &str) -> bool {
        let scenario_fits = |name: &str| name.contains(text);
        let subject_fits = |subject: &Subject| subject.label().contains(text) || subject.answers_to(text);
        if self.scenarios.iter().any(|scenario| scenario_fits(&scenario.name)) {
            self.scenarios.retain(|scenario| scenario_fits(&scenario.name));
            self.published.retain(|published| scenario_fits(&published.scenario));
            return true;
        }
        let named: Vec<Subject> = self.subjects.iter().filter(|subject| subject_fits(subject)).cloned().collect();
        self.published.retain(|published| {
            published.method.contains(text) || named.iter().any(|subject| subject.answers_to(&published.method))
        });
        self.subjects = named;
        !self.subjects.is_empty() || !self.published.is_empty()
    }

    /// Refuses what would neither end nor fit into memory, before it is spread out.
    pub fn check_size(&self) -> Result<(), PlanError> {
        let rows = [self.scenarios.len(), self.subjects.len(), self.worlds.len()]
            .iter()
            .try_fold(1usize, |rows, &count| rows.checked_mul(count));
        if rows.is_none_or(|rows| rows > MOST_ROWS) {
            let why = format!("scenarios, methods and worlds cross to more than {MOST_ROWS} rows");
            return Err(PlanError::invalid("plan", why));
        }
        let runs: u64 = self.cells().iter().map(|cell| u64::from(cell.runs)).sum();
        if runs > MOST_RUNS {
            let why = format!("makes {runs} runs, and {MOST_RUNS} are the most; lower runs, or divide the plan");
            return Err(PlanError::invalid("plan", why));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), PlanError> {
        if self.scenarios.is_empty() {
            return Err(PlanError::invalid("plan", "names no [[scenario]]"));
        }
        if self.subjects.is_empty() && self.published.is_empty() {
            return Err(PlanError::invalid("plan", "names no [[method]], [[external_tool]] or [[published]]"));
        }
        unique("scenario", self.scenarios.iter().map(|scenario| scenario.name.as_str()))?;
        unique("method or external tool", self.subjects.iter().map(Subject::label))?;
        for scenario in &self.scenarios {
            for name in scenario.methods.iter().flatten() {
                if !self.subjects.iter().any(|subject| subject.answers_to(name)) {
                    let place = format!("scenario {}: methods", scenario.name);
                    return Err(PlanError::invalid(
                        place,
                        format!("the plan has no method or external tool \"{name}\""),
                    ));
                }
            }
        }
        Ok(())
    }
}

fn wanted(scenario: &PlannedScenario, subject: &Subject) -> bool {
    let narrowed = scenario.methods.as_ref();
    narrowed.is_none_or(|names| names.iter().any(|name| subject.answers_to(name)))
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), PlanError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let why = "occurs twice; rows could not be told apart (give a name or label of its own)";
            return Err(PlanError::invalid(format!("{what} \"{name}\""), why));
        }
    }
    Ok(())
}

/// Worlds in their own order, each once.
fn worlds(place: &str, mut given: Vec<World>) -> Result<Vec<World>, PlanError> {
    if given.is_empty() {
        return Err(PlanError::invalid(place, "is empty; leave it out or name a world"));
    }
    given.sort_unstable();
    given.dedup();
    Ok(given)
}

fn check_name(name: &str) -> Result<(), PlanError> {
    let fine = !name.is_empty() && !name.starts_with('.') && name.chars().all(is_name);
    let why = "must be letters, digits, '-', '_' and '.', not starting with a dot, for it names files";
    fine.then_some(()).ok_or_else(|| PlanError::invalid("name", why))
}

pub(crate) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

#[cfg(test)]
mod tests;
