//! The program under test, and what it may touch: its tree, a scratch folder, closed ports of
//! loopback.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};

use super::record::{Call, Document};
use super::{inventory, refusals};

/// What stands in calls and in the record for what differs from run to run.
const SCRATCH: &str = "$TMP";
const CLOSED_PORT: &str = "$PORT";
const BUSY_PORT: &str = "$BUSY";

/// The exit code of `timeout` when time is up.
pub(super) const TIMED_OUT: i32 = 124;

/// Longest that a call may take: ten times what the slowest takes on an idle machine.
const SECONDS: &str = "200";

/// Programs that run at a time.
const WORKERS: usize = 2;

pub(super) struct Program {
    path: PathBuf,
    pub(super) tree: PathBuf,
    pub(super) scratch: PathBuf,
    closed_port: u16,
    busy: TcpListener,
}

impl Program {
    pub(super) fn new(path: &Path, tree: &Path) -> Result<Self> {
        let path = path.canonicalize().with_context(|| path.display().to_string())?;
        let scratch = std::env::temp_dir().join(format!("narrows-golden-{}", std::process::id()));
        for folder in ["plans", "recordings", "own"] {
            std::fs::create_dir_all(scratch.join(folder))?;
        }
        refusals::write_files(&scratch)?;
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok(Self {
            path,
            tree: tree.canonicalize()?,
            scratch,
            closed_port: closed.local_addr()?.port(),
            busy: TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?,
        })
    }

    pub(super) fn run(&self, call: &Call) -> Result<Document> {
        self.run_for(call, SECONDS)
    }

    pub(super) fn run_for(&self, call: &Call, seconds: &str) -> Result<Document> {
        if call.args == [inventory::SCHEMAS] {
            return inventory::schemas(call, &self.tree);
        }
        let busy_port = self.busy.local_addr()?.port();
        let stands_for = [
            (SCRATCH, self.scratch.display().to_string()),
            (CLOSED_PORT, self.closed_port.to_string()),
            (BUSY_PORT, busy_port.to_string()),
        ];
        let put = |text: &String| stands_for.iter().fold(text.clone(), |text, (name, value)| text.replace(name, value));
        // Ports are numbers; among results they could be taken for values.
        let hidden = if call.group == refusals::GROUP { 3 } else { 1 };
        let hide = |octets: Vec<u8>| {
            let text = String::from_utf8_lossy(&octets).into_owned();
            let hidden = stands_for.iter().take(hidden);
            hidden.fold(text, |text, (name, value)| text.replace(value, name))
        };
        let mut command = Command::new("nice");
        command.args(["timeout", "--kill-after=2", seconds]).arg(&self.path);
        command.args(call.args.iter().map(put)).current_dir(&self.tree);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("NARROWS_") {
                command.env_remove(name);
            }
        }
        command.env("COLUMNS", "100");
        // Help shows what the environment says.
        if call.group == refusals::GROUP {
            command.env("NARROWS_PORT", self.closed_port.to_string());
        }
        let output = command.stdin(Stdio::null()).output().context("nice and timeout cannot be run")?;
        Ok(Document {
            group: call.group.clone(),
            call: call.args.clone(),
            exit: output.status.code(),
            stdout: hide(output.stdout),
            stderr: hide(output.stderr),
        })
    }

    /// Copies the recordings that many methods read; their octets.
    pub(super) fn keep_recordings(&self, to: &Path) -> Result<u64> {
        std::fs::create_dir_all(to)?;
        copied(&self.scratch.join("recordings"), to)
    }

    /// Puts recordings of an earlier program where those of this one are.
    pub(super) fn use_recordings(&self, from: &Path) -> Result<u64> {
        copied(from, &self.scratch.join("recordings"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A folder that stays behind is no fault.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

fn copied(from: &Path, to: &Path) -> Result<u64> {
    let mut octets = 0;
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        octets += std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(octets)
}

/// Does the work for each item, a few at a time; results in the order of the items.
pub(super) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { return };
                    let result = work(item);
                    if let Ok(mut done) = done.lock() {
                        done.insert(at, result);
                    }
                }
            });
        }
    });
    let done = done.into_inner().ok().context("a worker panicked")?;
    done.into_values().collect()
}
