//! Gives the program a fingerprint of the code that decides what a run gives, so that stored runs
//! of other code are not taken for its own.

use std::path::{Path, PathBuf};

/// Crates whose code decides what a simulated run gives, and those that a run in the lab passes
/// through besides.
const SIMULATOR: [&str; 12] = [
    "units",
    "stat",
    "host-profile",
    "scenario",
    "probe",
    "train",
    "diagnose",
    "measure",
    "published",
    "methods",
    "sim",
    "trace",
];
const LAB: [&str; 4] = ["wire", "net", "lab", "traffic"];
/// Files of this crate that do.
const OWN: [&str; 5] = ["judge.rs", "simulated.rs", "truth.rs", "recorded.rs", "plan/methods.rs"];
/// What else runs in the lab pass through: the code around other programs, their built-in
/// descriptions, and the program's bench.
const RUNNER: [&str; 3] = ["src/external_tool", "../../external-tools", "../../apps/narrows/src/commands/evaluate/lab"];
const RUNNER_FILES: [&str; 1] = ["../../apps/narrows/src/commands/evaluate/lab.rs"];

fn main() -> std::io::Result<()> {
    let crates = Path::new("..");
    let mut hash = Fnv::default();
    for name in OWN {
        hash.file(&Path::new("src").join(name))?;
    }
    for name in SIMULATOR {
        hash.folder(&crates.join(name).join("src"))?;
    }
    println!("cargo:rustc-env=NARROWS_SIMULATOR_REVISION={:016x}", hash.0);
    for name in LAB {
        hash.folder(&crates.join(name).join("src"))?;
    }
    for name in RUNNER {
        hash.folder(Path::new(name))?;
    }
    for name in RUNNER_FILES {
        hash.file(Path::new(name))?;
    }
    println!("cargo:rustc-env=NARROWS_LAB_REVISION={:016x}", hash.0);
    Ok(())
}

/// FNV-1a, 64 bits: nobody attacks it, and a build script should need no crate.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn octets(&mut self, octets: &[u8]) {
        for &octet in octets {
            self.0 = (self.0 ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn file(&mut self, path: &Path) -> std::io::Result<()> {
        println!("cargo:rerun-if-changed={}", path.display());
        self.octets(path.to_string_lossy().as_bytes());
        self.octets(&std::fs::read(path)?);
        Ok(())
    }

    fn folder(&mut self, path: &Path) -> std::io::Result<()> {
        println!("cargo:rerun-if-changed={}", path.display());
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        entries.sort();
        for entry in entries {
            if entry.is_dir() {
                self.folder(&entry)?;
            } else if entry.extension().is_some_and(|extension| extension == "rs" || extension == "toml") {
                self.file(&entry)?;
            }
        }
        Ok(())
    }
}
