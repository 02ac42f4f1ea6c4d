//! What makes a run that run, and no other: the key under which it is stored.

use narrows_report::World;
use sha2::{Digest, Sha256};

use crate::cell::Cell;
use crate::subject::Subject;

/// A run's name in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u128);

impl Key {
    /// As in files.
    pub fn hex(self) -> String {
        format!("{:032x}", self.0)
    }

    /// From there.
    pub fn from_hex(text: &str) -> Option<Self> {
        let fine = text.len() == 32 && text.bytes().all(|octet| octet.is_ascii_hexdigit());
        fine.then(|| u128::from_str_radix(text, 16).ok())?.map(Self)
    }
}

/// Makes the keys of one row's runs: everything but the seed is hashed once.
#[derive(Clone)]
pub(crate) struct Keys {
    hash: Sha256,
    /// First seed, and how many from there on keep their observations.
    kept: (u64, u32),
}

/// The code that simulated runs go through, as a fingerprint.
const SIMULATOR: &str = env!("NARROWS_SIMULATOR_REVISION");
/// The code that runs in the lab go through.
const LAB: &str = env!("NARROWS_LAB_REVISION");

impl Keys {
    /// Of a row: its path, method, parameters and world, which observations are kept, and the code
    /// that runs it.
    pub(crate) fn of_runs(cell: &Cell) -> Self {
        let revision = match cell.world {
            World::Simulator | World::Recording => SIMULATOR,
            World::Lab => LAB,
        };
        let mut hash = Sha256::new();
        for field in ["run", revision, cell.world.name(), &cell.scenario.text] {
            add(&mut hash, field);
        }
        if !cell.scenario.profiles.is_empty() {
            add(&mut hash, &cell.scenario.profiles);
        }
        add_subject(&mut hash, &cell.subject);
        Self { hash, kept: (cell.seed, cell.keep) }
    }

    /// Of the observations of a row's method on its path, whatever code and parameters they were
    /// made with.
    pub(crate) fn of_observations(cell: &Cell) -> Self {
        let mut hash = Sha256::new();
        let name = match &cell.subject {
            Subject::Method(method) => method.method().map_or("", |method| method.info().name),
            Subject::ExternalTool(external_tool) => &external_tool.name,
        };
        for field in ["observations", &cell.scenario.text, name] {
            add(&mut hash, field);
        }
        Self { hash, kept: (0, 0) }
    }

    /// For this seed.
    pub(crate) fn seed(&self, seed: u64) -> Key {
        self.seed_and(seed, "")
    }

    /// For this seed and what else it rests on.
    pub(crate) fn seed_and(&self, seed: u64, basis: &str) -> Key {
        let mut hash = self.hash.clone();
        hash.update(seed.to_le_bytes());
        let (first, count) = self.kept;
        let is_kept = seed.wrapping_sub(first) < u64::from(count);
        add(&mut hash, if is_kept { "kept" } else { "not kept" });
        add(&mut hash, basis);
        let digest = hash.finalize();
        Key(digest.iter().take(16).fold(0, |key, &octet| key << 8 | u128::from(octet)))
    }
}

/// With its length in front, so that no two lists of fields are the same octets.
fn add(hash: &mut Sha256, field: &str) {
    hash.update((field.len() as u64).to_le_bytes());
    hash.update(field.as_bytes());
}

fn add_subject(hash: &mut Sha256, subject: &Subject) {
    match subject {
        Subject::Method(method) => {
            add(hash, "method");
            // What "default" stands for may change with the code; its revision is in the hash
            // already.
            add(hash, method.method().map_or(&method.name, |method| method.info().name));
            add(hash, method.metric.name());
            for (name, value) in &method.params {
                add(hash, name);
                add(hash, value);
            }
        }
        Subject::ExternalTool(external_tool) => {
            add(hash, "external_tool");
            add(hash, &external_tool.name);
            add(hash, external_tool.adapter.as_deref().unwrap_or_default());
            add(hash, external_tool.metric.map_or("", narrows_units::Metric::name));
            for (name, value) in &external_tool.params {
                add(hash, name);
                add(hash, value);
            }
        }
    }
}
