//! What a lab leaves on the machine while it lives, so that other processes find it, and what finds
//! it once its process is dead.
//!
//! One file per lab, `<id>.json`, under `/run/narrows` for root of the machine; for others under
//! `$XDG_RUNTIME_DIR/narrows`, or, without one, under `narrows-<user>` in the directory for
//! temporary files. It is made before the first namespace and removed after the last, and names the
//! process with its time of birth, so that another process of the same number is not taken for it.

mod leftovers;
mod process;

use std::fmt;
use std::fs::{self, File, Permissions};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

pub use leftovers::{clean_dead_labs, dead_labs, programs_in};
pub(crate) use process::is_root_of_the_machine;

use process::{machine_uptime_s, outer_user, process_began};

use super::describe::LabDescription;
use crate::error::LabError;

/// How the names of our namespaces begin: `narrows-lab-<id>-<node>`. Ids have no `-`, so the parts
/// can be told apart.
const PREFIX: &str = "narrows-lab-";
/// Labs of one user that can live at once without names of their own.
const MOST_NUMBERED: u32 = 1_000;

/// A lab's name: 1 to 24 letters, digits and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LabId(String);

/// A lab as its file says it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabState {
    /// Its name.
    pub id: LabId,
    /// The process that holds it.
    pub process: u32,
    /// When that process began, in the kernel's ticks since it booted.
    pub process_began: u64,
    /// Whether that process does nothing else (it was started by `narrows lab up`), and so may be
    /// asked to end.
    pub held: bool,
    /// Seconds that the machine had been up when the lab began.
    pub began_uptime_s: f64,
    /// Names of its namespaces under `/run/netns`; none if they are anonymous.
    pub namespaces: Vec<String>,
    /// Numbers (inodes) of its namespaces, by which the programs inside are found.
    #[serde(default)]
    pub numbers: Vec<u64>,
    /// Processor that the links are played on.
    pub path_cpu: Option<usize>,
    /// What it is; `None` until it is ready.
    pub description: Option<LabDescription>,
    /// How its real-time links did lately; empty without any.
    pub links: Vec<LinkStatus>,
    /// How the cross traffic of real hosts does; empty without any.
    #[serde(default)]
    pub flows: Vec<FlowStatus>,
}

/// What real hosts have sent of one of the scenario's cross traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// Which of the scenario's cross traffic it is, from 0.
    pub cross: usize,
    /// `ip`, or `tcp`: payload that has been acknowledged.
    pub layer: String,
    /// Octets of that layer since it began.
    pub sent_octets: u64,
    /// For how long it was watched lately.
    pub watched_ns: u64,
    /// What it sent in that time.
    pub sent_bps: u64,
}

/// How a real-time link did since it was looked at before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Which link.
    pub name: String,
    /// For how long it was watched.
    pub watched_ns: u64,
    /// Packets handed on in that time.
    pub releases: u64,
    /// Half of them were later than this.
    pub late_ns_p50: u64,
    /// One in a hundred was later than this.
    pub late_ns_p99: u64,
    /// Whether what the nodes saw was the link rather than this machine.
    pub timing_valid: bool,
    /// How many times it was found, since the lab began, not to have had valid timing.
    pub lapses: u64,
}

/// The file of a lab of this process; removed with this value.
#[derive(Debug)]
pub(crate) struct Claim {
    file: PathBuf,
    pub(crate) state: LabState,
}

impl LabId {
    /// As it stands in names of files and namespaces.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a node's namespace.
    pub(crate) fn namespace(&self, node: &str) -> String {
        format!("{PREFIX}{}-{node}", self.0)
    }
}

impl FromStr for LabId {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let fine = (1..=24).contains(&text.len())
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if fine { Ok(Self(text.to_owned())) } else { Err(LabError::BadId { name: text.to_owned() }) }
    }
}

impl TryFrom<String> for LabId {
    type Error = LabError;

    fn try_from(text: String) -> Result<Self, LabError> {
        text.parse()
    }
}

impl From<LabId> for String {
    fn from(id: LabId) -> Self {
        id.0
    }
}

impl fmt::Display for LabId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl LabState {
    /// Whether the process that holds it lives.
    pub fn is_alive(&self) -> bool {
        process_began(self.process) == Some(self.process_began)
    }

    /// Addresses that only its namespaces have, on `lo`: see [`mark`].
    pub(crate) fn mark(&self) -> [Ipv4Addr; 2] {
        mark(self.process, self.process_began)
    }

    /// Seconds since it began; `None` if the machine does not say how long it is up.
    pub fn uptime_s(&self) -> Option<f64> {
        Some((machine_uptime_s()? - self.began_uptime_s).max(0.0))
    }
}

impl Claim {
    /// Takes a name, or the first free number, for a lab of this process.
    pub(crate) fn take(id: Option<&LabId>, held: bool) -> Result<Self, LabError> {
        let process = std::process::id();
        let state = |id| LabState {
            id,
            process,
            process_began: process_began(process).unwrap_or(0),
            held,
            began_uptime_s: machine_uptime_s().unwrap_or(0.0),
            namespaces: Vec::new(),
            numbers: Vec::new(),
            path_cpu: None,
            description: None,
            links: Vec::new(),
            flows: Vec::new(),
        };
        if let Some(id) = id {
            let taken = LabError::IdTaken { id: id.to_string() };
            return Self::make(state(id.clone()))?.ok_or(taken);
        }
        for number in 1..=MOST_NUMBERED {
            if let Some(claim) = Self::make(state(LabId(number.to_string())))? {
                return Ok(claim);
            }
        }
        let most = MOST_NUMBERED.to_string();
        Err(LabError::IdTaken { id: most })
    }

    /// `None` if the name is taken.
    fn make(state: LabState) -> Result<Option<Self>, LabError> {
        let directory = directory();
        let doing = || format!("making {} for the lab's state", directory.display());
        let wrong = |source| LabError::kernel(doing(), source);
        fs::create_dir_all(&directory).map_err(wrong)?;
        if !is_ours(&directory) {
            return Err(wrong(io::Error::other("it belongs to somebody else")));
        }
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).map_err(wrong)?;
        let file = directory.join(format!("{}.json", state.id));
        let draft = draft(&file);
        let _alone = one_at_a_time();
        write(&draft, &state).map_err(wrong)?;
        // A link is made whole or not at all, and never over another file.
        let linked = fs::hard_link(&draft, &file);
        let removed = fs::remove_file(&draft);
        match linked {
            Ok(()) => {
                let claim = Self { file, state };
                removed.map_err(wrong)?;
                Ok(Some(claim))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(wrong(error)),
        }
    }

    /// Writes the state anew, so that a reader sees the old one or the new one.
    pub(crate) fn save(&self) -> Result<(), LabError> {
        let draft = draft(&self.file);
        write(&draft, &self.state)
            .and_then(|()| fs::rename(&draft, &self.file))
            .map_err(|source| LabError::kernel(format!("writing {}", self.file.display()), source))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // What cannot be removed now is found once this process is dead.
        let _ = fs::remove_file(&self.file);
    }
}

/// Every lab of this user that lives, in order of their names.
pub fn labs() -> Vec<LabState> {
    files().into_iter().map(|(_, state)| state).filter(LabState::is_alive).collect()
}

/// The lab of this name, if it lives.
pub fn find(id: &LabId) -> Result<LabState, LabError> {
    labs().into_iter().find(|state| state.id == *id).ok_or_else(|| LabError::NoSuchLab { id: id.to_string() })
}

/// Makes other processes wait that clean, or take a name: between the look at a dead lab and its
/// removal, another process could have removed it and a third have made a new lab of its name.
/// `None`, and nobody waits, where there is nothing to lock. The lock is on a file of its own,
/// which nobody else can open and so keep.
fn one_at_a_time() -> Option<Flock<File>> {
    let directory = directory();
    if !is_ours(&directory) {
        return None;
    }
    let mut open = File::options();
    let lock = open.create(true).truncate(false).write(true).mode(0o600);
    Flock::lock(lock.open(directory.join("lock")).ok()?, FlockArg::LockExclusive).ok()
}

/// Two addresses that tell the namespaces of a process from all others, of another lab or of
/// nobody's concern, for as long as they live: anybody may read them from outside
/// (`/proc/<pid>/net`), and they outlive the lab's devices. They are within 127/8, all of which
/// `lo` answers to anyhow, so that nothing else changes. 22 bits are the process's number (2^22 is
/// the most there can be), 22 its birth's lowest (11 hours at 100 ticks per second).
pub(crate) fn mark(process: u32, began: u64) -> [Ipv4Addr; 2] {
    const BITS: u32 = (1 << 22) - 1;
    let low = u32::try_from(began & u64::from(BITS)).unwrap_or(0);
    let base = u32::from(Ipv4Addr::new(127, 64, 0, 0));
    // One block for each, so that the two cannot be taken for each other.
    [base | (process & BITS), (base + BITS + 1) | low].map(Ipv4Addr::from)
}

/// Where the process that holds a lab writes what goes wrong.
pub fn log_file(id: &LabId) -> PathBuf {
    directory().join(format!("{id}.log"))
}

/// The lab's name in the name of a namespace.
fn owner(namespace: &str) -> Option<&str> {
    let (id, node) = namespace.strip_prefix(PREFIX)?.split_once('-')?;
    (!id.is_empty() && !node.is_empty()).then_some(id)
}

/// All files of state that can be read, in order of their names.
fn files() -> Vec<(PathBuf, LabState)> {
    let directory = directory();
    if !is_ours(&directory) {
        return Vec::new();
    }
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "json"));
    let mut found: Vec<(PathBuf, LabState)> = paths
        .filter_map(|path| {
            let state = serde_json::from_str(&fs::read_to_string(&path).ok()?).ok()?;
            Some((path, state))
        })
        .collect();
    found.sort_by(|(first, _), (second, _)| first.cmp(second));
    found
}

/// Whether a directory is a real one and belongs to this user: in a directory for temporary files,
/// anybody could have made it, and its files say which processes to end.
fn is_ours(directory: &Path) -> bool {
    let own = nix::unistd::Uid::effective().as_raw();
    fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir() && found.uid() == own)
}

/// Where this user's labs have their files.
fn directory() -> PathBuf {
    match outer_user() {
        None | Some(0) => PathBuf::from("/run/narrows"),
        Some(user) => match std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path).join("narrows"),
            None => std::env::temp_dir().join(format!("narrows-{user}")),
        },
    }
}

fn draft(file: &Path) -> PathBuf {
    file.with_extension(format!("{}.draft", std::process::id()))
}

fn write(file: &Path, state: &LabState) -> io::Result<()> {
    fs::write(file, serde_json::to_vec_pretty(state)?)
}

#[cfg(test)]
mod tests;
