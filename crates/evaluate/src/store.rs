//! Finished runs on disk: an append-only log that survives a kill, and the raw observations beside
//! it.
//!
//! `runs.jsonl` holds one line per run, written by one call when the run is over. A last line
//! without its end is a run that was cut off by a kill: it is dropped and run again. `recordings/`
//! holds one file per run that keeps its observations, there before the run's line is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use narrows_report::World;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Run};
use crate::error::StoreError;
use crate::key::{Key, Keys};

/// The runs of one plan, kept in a directory.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    log: Flock<File>,
    runs: BTreeMap<Key, Run>,
    /// Observations by what they are of, and where they were made.
    recordings: BTreeMap<(Key, World), String>,
}

/// One line of the log.
#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    /// What its observations are of.
    of: String,
    world: World,
    /// For people; nothing reads it.
    scenario: String,
    method: String,
    seed: u64,
    run: Run,
}

const LOG: &str = "runs.jsonl";
const RECORDINGS: &str = "recordings";

/// How every line begins.
const BEGINNING: &[u8] = b"{\"key\":\"";

fn no_run(path: &Path, number: u64) -> StoreError {
    StoreError::NotAStore {
        path: path.to_path_buf(),
        why: format!("line {number} is no run; give another --runs-dir, or remove the line"),
    }
}

/// The log for this process alone, until it ends, however it ends: two that append would each cut
/// off or repeat the other's runs.
fn locked(log: File, path: &Path) -> Result<Flock<File>, StoreError> {
    let path = path.to_path_buf();
    Flock::lock(log, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => StoreError::Busy { path },
        errno => StoreError::File { path, source: errno.into() },
    })
}

impl Store {
    /// Opens the store in `folder`, which is made if it is not there, and reads what it holds.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |source| StoreError::File { path, source }
        };
        let recordings = folder.join(RECORDINGS);
        std::fs::create_dir_all(&recordings).map_err(at(&recordings))?;
        let path = folder.join(LOG);
        let log = File::options().read(true).append(true).create(true).open(&path);
        let mut store = Self {
            folder: folder.to_path_buf(),
            log: locked(log.map_err(at(&path))?, &path)?,
            runs: BTreeMap::new(),
            recordings: BTreeMap::new(),
        };
        let whole = store.read(&path)?;
        // What follows the last whole line was being written when the program was killed.
        store.log.set_len(whole).map_err(at(&path))?;
        Ok(store)
    }

    /// Reads the log; returns the length of its whole lines.
    fn read(&mut self, path: &Path) -> Result<u64, StoreError> {
        let broken = |source| StoreError::File { path: path.to_path_buf(), source };
        self.log.seek(SeekFrom::Start(0)).map_err(broken)?;
        let file = self.log.try_clone().map_err(broken)?;
        let mut reader = BufReader::new(file);
        let (mut line, mut whole, mut number) = (Vec::new(), 0u64, 0u64);
        loop {
            line.clear();
            let count = reader.read_until(b'\n', &mut line).map_err(broken)?;
            number += 1;
            if line.last() != Some(&b'\n') {
                // A torn line is one of ours; somebody else's file is not to be cut.
                let common = line.len().min(BEGINNING.len());
                if line[..common] == BEGINNING[..common] {
                    return Ok(whole);
                }
                return Err(no_run(path, number));
            }
            let parsed: Result<Line, _> = serde_json::from_slice(&line);
            let keys = parsed.ok().and_then(|line| Some((Key::from_hex(&line.key)?, Key::from_hex(&line.of)?, line)));
            let Some((key, of, line)) = keys else {
                return Err(no_run(path, number));
            };
            self.remember(key, of, line.world, line.run);
            whole += count as u64;
        }
    }

    fn remember(&mut self, key: Key, of: Key, world: World, run: Run) {
        if world != World::Recording
            && let Some(file) = &run.recording
        {
            self.recordings.insert((of, world), file.clone());
        }
        self.runs.insert(key, run);
    }

    /// The run of that key, if it is finished.
    pub fn get(&self, key: Key) -> Option<&Run> {
        self.runs.get(&key)
    }

    /// How many it holds.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a finished run of `cell`.
    pub fn add(&mut self, cell: &Cell, seed: u64, key: Key, run: Run) -> Result<(), StoreError> {
        let of = Keys::of_observations(cell).seed(seed);
        let line = Line {
            key: key.hex(),
            of: of.hex(),
            world: cell.world,
            scenario: cell.scenario.name.clone(),
            method: cell.subject.label().to_owned(),
            seed,
            run,
        };
        let path = || self.folder.join(LOG);
        let mut text =
            serde_json::to_vec(&line).map_err(|error| StoreError::Table { path: path(), why: error.to_string() })?;
        text.push(b'\n');
        self.log.write_all(&text).map_err(|source| StoreError::File { path: path(), source })?;
        self.remember(key, of, cell.world, line.run);
        Ok(())
    }

    /// Waits until everything is on the disk.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.log.sync_all().map_err(|source| StoreError::File { path: self.folder.join(LOG), source })
    }

    /// The name, within a store, of a run's observations.
    pub fn recording_name(key: Key) -> String {
        format!("{RECORDINGS}/{}.narrows", key.hex())
    }

    /// Observations of what `cell` runs, with that seed: the lab's before the simulator's.
    pub fn observations(&self, cell: &Cell, seed: u64) -> Option<(&str, PathBuf)> {
        let of = Keys::of_observations(cell).seed(seed);
        let held = [World::Lab, World::Simulator].into_iter().find_map(|world| self.recordings.get(&(of, world)))?;
        Some((held, self.folder.join(held)))
    }

    /// A file of it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}
