//! Carrying a plan out: what is not in the store yet is run, and goes there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_report::{Status, World};
use narrows_scenario::{PathDirection, TruthFrom};

use crate::cell::{Cell, ExternalRunner, Order, Run};
use crate::error::{RunFault, StoreError};
use crate::key::{Key, Keys};
use crate::parallel::parallel;
use crate::recorded;
use crate::simulated::Simulation;
use crate::store::Store;
use crate::subject::Subject;

/// How to go about it.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Simulated runs at a time.
    pub jobs: usize,
    /// Set when the user wants an end: what is finished by then is kept.
    pub stop: &'a AtomicBool,
}

/// Told of how far it is.
pub trait Progress {
    /// So many runs are to be carried out; so many of the plan's were in the store already.
    fn begins(&mut self, to_do: u64, held: u64);
    /// What is at work now.
    fn at(&mut self, cell: &Cell);
    /// One more is over.
    fn one_more(&mut self);
    /// Something that the user should know.
    fn note(&mut self, text: &str);
}

impl Progress for () {
    fn begins(&mut self, _: u64, _: u64) {}
    fn at(&mut self, _: &Cell) {}
    fn one_more(&mut self) {}
    fn note(&mut self, _: &str) {}
}

/// Why rows of a plan lack runs, by index of the cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shortfalls(BTreeMap<usize, (Status, String)>);

impl Shortfalls {
    /// Of this cell.
    pub fn of(&self, cell: usize) -> Option<&(Status, String)> {
        self.0.get(&cell)
    }

    fn note(&mut self, cell: usize, status: Status, why: impl Into<String>) {
        self.0.entry(cell).or_insert_with(|| (status, why.into()));
    }

    fn fault(&mut self, cell: usize, fault: &RunFault) {
        let status = match fault {
            RunFault::NotInstalled { .. } => Status::NotInstalled,
            RunFault::NotOffered { .. } => Status::NotRun,
            RunFault::Broke { .. } => Status::Failed,
        };
        self.note(cell, status, fault.to_string());
    }
}

/// Runs of a cell that may break one after the other before the rest of it is left: ours.
const RETRY_LIMIT: u32 = 3;

/// Carries out every run of `cells` that `store` does not hold: the simulator's in parallel, then
/// the benches' one at a time, then those from recordings.
pub fn carry_out(
    cells: &[Cell],
    store: &mut Store,
    runners: &mut [&mut dyn ExternalRunner],
    options: Options<'_>,
    progress: &mut dyn Progress,
) -> Result<Shortfalls, StoreError> {
    let mut shortfalls = Shortfalls::default();
    let mut missing = Vec::new();
    let (mut to_do, mut held) = (0u64, 0u64);
    for (index, cell) in cells.iter().enumerate() {
        if let Subject::Method(method) = &cell.subject
            && method.method().is_none()
        {
            shortfalls.note(index, Status::NotYet, format!("there is no method {} yet", method.name));
            continue;
        }
        let keys = Keys::of_runs(cell);
        for k in 0..cell.runs {
            // What a recording gives is known only once the recordings are there.
            if cell.world != World::Recording && store.get(keys.seed(cell.seed_of(k))).is_some() {
                held += 1;
            } else {
                to_do += 1;
                missing.push((index, k));
            }
        }
    }
    progress.begins(to_do, held);
    let of_world = |world: World| -> Vec<(usize, u32)> {
        missing.iter().copied().filter(|(index, _)| cells[*index].world == world).collect()
    };
    let mut work = Work { cells, store, options, progress, shortfalls: &mut shortfalls };
    work.simulator(&of_world(World::Simulator))?;
    work.runners(&of_world(World::Lab), runners)?;
    work.recordings(&of_world(World::Recording))?;
    work.store.sync()?;
    Ok(shortfalls)
}

/// Everything under way.
struct Work<'a> {
    cells: &'a [Cell],
    store: &'a mut Store,
    options: Options<'a>,
    progress: &'a mut dyn Progress,
    shortfalls: &'a mut Shortfalls,
}

/// A run that is over, or why not.
type Finished = Result<(Key, Run), RunFault>;

impl Work<'_> {
    fn simulator(&mut self, missing: &[(usize, u32)]) -> Result<(), StoreError> {
        let (cells, options) = (self.cells, self.options);
        let keys: BTreeMap<usize, Keys> =
            missing.iter().map(|(index, _)| (*index, Keys::of_runs(&cells[*index]))).collect();
        // Names only, so that workers need not the store itself.
        let folder = self.store.path("");
        let one = |at: usize| -> Result<Finished, StoreError> {
            let (index, k) = missing[at];
            let seed = cells[index].seed_of(k);
            let key = keys[&index].seed(seed);
            Ok(simulated(&cells[index], seed, key, &folder).map(|run| (key, run)))
        };
        let store = &mut *self.store;
        let (progress, shortfalls) = (&mut *self.progress, &mut *self.shortfalls);
        parallel(missing.len(), options.jobs, options.stop, one, |at, finished| {
            let (index, k) = missing[at];
            keep(store, &cells[index], index, k, finished, shortfalls)?;
            progress.one_more();
            Ok(())
        })
    }

    fn recordings(&mut self, missing: &[(usize, u32)]) -> Result<(), StoreError> {
        let cells = self.cells;
        // Which recording each run rests on; runs that rest on the same one as before are in the
        // store already.
        let mut found = Vec::new();
        for &(index, k) in missing {
            let (cell, seed) = (&cells[index], cells[index].seed_of(k));
            let Some(key) = recording_key(self.store, cell, seed) else {
                let why = "no observations of it are kept; run the plan in the lab or simulator first, with keep = \"all\" for every run";
                self.shortfalls.note(index, Status::NotRun, why);
                self.progress.one_more();
                continue;
            };
            if self.store.get(key).is_some() {
                self.progress.one_more();
            } else if let Some((_, path)) = self.store.observations(cell, seed) {
                found.push((index, k, key, path));
            }
        }
        let one = |at: usize| -> Result<Finished, StoreError> {
            let (index, k, key, path): &(usize, u32, Key, std::path::PathBuf) = &found[at];
            let cell = &cells[*index];
            let run =
                simulation(cell).and_then(|simulation| recorded::analyse(cell, &simulation, cell.seed_of(*k), path));
            Ok(run.map(|run| (*key, run)))
        };
        let store = &mut *self.store;
        let (progress, shortfalls) = (&mut *self.progress, &mut *self.shortfalls);
        parallel(found.len(), self.options.jobs, self.options.stop, one, |at, finished| {
            let (index, k, ..) = &found[at];
            keep(store, &cells[*index], *index, *k, finished, shortfalls)?;
            progress.one_more();
            Ok(())
        })
    }

    fn runners(&mut self, missing: &[(usize, u32)], runners: &mut [&mut dyn ExternalRunner]) -> Result<(), StoreError> {
        let mut broken = (usize::MAX, 0u32);
        let mut offered = usize::MAX;
        for &(index, k) in missing {
            if self.options.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let cell = &self.cells[index];
            let runner = runners.iter_mut().find(|runner| runner.world() == cell.world);
            let Some(runner) = runner else {
                let why = format!("there is no {} on this machine", cell.world.name());
                self.shortfalls.note(index, Status::NotRun, why);
                continue;
            };
            if offered != index {
                self.progress.at(cell);
                offered = index;
                broken = (index, 0);
                if let Err(fault) = runner.offers(cell) {
                    self.shortfalls.fault(index, &fault);
                    broken = (index, RETRY_LIMIT);
                }
            }
            if broken == (index, RETRY_LIMIT) {
                self.progress.one_more();
                continue;
            }
            let finished = ordered(&mut **runner, cell, k, self.store);
            match &finished {
                Ok(_) => broken = (index, 0),
                Err(RunFault::Broke { why }) => {
                    broken.1 += 1;
                    self.progress.note(&format!("{}, {}: {why}", cell.scenario.name, cell.subject.label()));
                }
                Err(_) => broken = (index, RETRY_LIMIT),
            }
            keep(self.store, cell, index, k, finished, self.shortfalls)?;
            self.progress.one_more();
        }
        Ok(())
    }
}

/// The key of what `cell` makes of the observations with that seed; `None` where there are none.
pub(crate) fn recording_key(store: &Store, cell: &Cell, seed: u64) -> Option<Key> {
    let (name, _) = store.observations(cell, seed)?;
    Some(Keys::of_runs(cell).seed_and(seed, name))
}

fn keep(
    store: &mut Store,
    cell: &Cell,
    index: usize,
    k: u32,
    finished: Finished,
    shortfalls: &mut Shortfalls,
) -> Result<(), StoreError> {
    match finished {
        Ok((key, run)) => store.add(cell, cell.seed_of(k), key, run),
        Err(fault) => {
            shortfalls.fault(index, &fault);
            Ok(())
        }
    }
}

/// What `cell` asks of the simulator.
fn simulation(cell: &Cell) -> Result<Simulation<'_>, RunFault> {
    let not_ours = || RunFault::NotOffered { why: format!("{} is none of our methods", cell.subject.label()) };
    let Subject::Method(planned) = &cell.subject else {
        return Err(not_ours());
    };
    Ok(Simulation {
        scenario: &cell.scenario.scenario,
        way: PathDirection::Forward,
        method: planned.method().ok_or_else(not_ours)?,
        metric: planned.metric,
        params: &planned.params,
        truth: TruthFrom::Undisturbed,
    })
}

fn simulated(cell: &Cell, seed: u64, key: Key, folder: &Path) -> Result<Run, RunFault> {
    let simulation = simulation(cell)?;
    let name = Store::recording_name(key);
    let keeps_observations = cell.keeps_observations(seed);
    let simulated = if keeps_observations {
        recorded::record(&simulation, &cell.scenario.text, seed, &folder.join(&name))?
    } else {
        let run = simulation.run(seed);
        run.map_err(|error| RunFault::NotOffered { why: error.to_string() })?
    };
    let mut run = Run::from(simulated);
    run.recording = keeps_observations.then_some(name);
    Ok(run)
}

/// One run on a bench, recorded if the plan keeps it and the bench did.
fn ordered(runner: &mut dyn ExternalRunner, cell: &Cell, k: u32, store: &Store) -> Finished {
    let seed = cell.seed_of(k);
    let key = Keys::of_runs(cell).seed(seed);
    let name = Store::recording_name(key);
    let path = store.path(&name);
    let order = Order { seed, record: cell.keeps_observations(seed).then_some(path.as_path()) };
    let mut run = runner.run(cell, order)?;
    run.recording = (cell.keeps_observations(seed) && path.exists()).then_some(name);
    Ok((key, run))
}
