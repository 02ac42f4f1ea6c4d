//! A program of the user's, with the notice as JSON on its standard input. No shell is involved.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use super::one_line;
use crate::body::NoticeBody;
use crate::error::{SendError, SettingsError};
use crate::secret::Folders;
use crate::{settings, shape};

#[derive(Debug)]
pub(super) struct Exec {
    program: String,
    arguments: Vec<String>,
    /// It runs in the folder of the settings.
    folder: PathBuf,
    limit: Duration,
    stop: Arc<AtomicBool>,
}

impl Exec {
    pub(super) fn new(
        channel: &str,
        exec: &settings::Exec,
        (folders, limit): (Folders<'_>, Duration),
        stop: Arc<AtomicBool>,
    ) -> Result<Self, SettingsError> {
        let Some((program, arguments)) = exec.command.split_first().filter(|(program, _)| !program.is_empty()) else {
            let text = "command is empty: [\"/path/of/program\", \"argument\"]".to_owned();
            return Err(SettingsError::Channel { channel: channel.to_owned(), text });
        };
        let folder = Path::new(".").join(folders.settings);
        Ok(Self { program: program.clone(), arguments: arguments.to_vec(), folder, limit, stop })
    }

    pub(super) fn send(&self, body: &NoticeBody) -> Result<String, SendError> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| SendError::Settings(format!("cannot start {}: {error}", self.program)))?;
        let (output, outputs) = mpsc::channel();
        let input = shape::json(body).to_string() + "\n";
        let plumbed = plumb(&mut child, input, &output);
        drop(output);
        let ended = match plumbed {
            Ok(()) => self.wait_for(&child),
            Err(error) => Err(SendError::Program(format!("{}: no thread: {error}", self.program))),
        };
        // Whatever it has left behind goes with it. The group's number cannot be another's yet:
        // nobody has collected the program's status.
        if let Some(group) = group(&child) {
            let _ = killpg(group, Signal::SIGKILL);
        }
        let status = child.wait().map_err(|error| SendError::Program(error.to_string()))?;
        ended?;
        // Who holds the pipes was killed with the group. A program that left its group may still
        // hold them; nobody waits for that one.
        let said: Vec<u8> = (0..2).filter_map(|_| outputs.recv_timeout(DRAIN).ok()).flatten().collect();
        self.verdict(status, &one_line(&said))
    }

    /// Returns when the program has ended, without collecting its status.
    fn wait_for(&self, child: &Child) -> Result<(), SendError> {
        let Some(pid) = group(child) else { return Ok(()) };
        let (sender, ended) = mpsc::channel();
        let waiting = thread::Builder::new().name("notify-wait".to_owned()).spawn(move || {
            while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
            let _ = sender.send(());
        });
        waiting.map_err(|error| SendError::Program(format!("{}: no thread: {error}", self.program)))?;
        let mut left = self.limit;
        while !left.is_zero() {
            let slice = left.min(SLICE);
            match ended.recv_timeout(slice) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) if self.stop.load(Ordering::Relaxed) => {
                    return Err(SendError::Program(format!("{} was ended: narrows stops", self.program)));
                }
                Err(RecvTimeoutError::Timeout) => left -= slice,
            }
        }
        let limit = narrows_units::format_duration(self.limit);
        Err(SendError::Program(format!("{} ran longer than {limit} and was killed", self.program)))
    }

    fn verdict(&self, status: ExitStatus, said: &str) -> Result<String, SendError> {
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => "ended".to_owned(),
        };
        let text = if said.is_empty() { how } else { format!("{how}: {said}") };
        if status.success() { Ok(text) } else { Err(SendError::Program(format!("{}: {text}", self.program))) }
    }
}

fn group(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().map(Pid::from_raw)
}

/// A thread for each pipe, so that neither side can block the other.
fn plumb(child: &mut Child, input: String, output: &mpsc::Sender<Vec<u8>>) -> std::io::Result<()> {
    if let Some(mut pipe) = child.stdin.take() {
        // A program need not read; its exit code tells.
        thread::Builder::new().name("notify-in".to_owned()).spawn(move || drop(pipe.write_all(input.as_bytes())))?;
    }
    if let Some(pipe) = child.stdout.take() {
        drain(pipe, output.clone())?;
    }
    if let Some(pipe) = child.stderr.take() {
        drain(pipe, output.clone())?;
    }
    Ok(())
}

/// Keeps the beginning, reads the rest away.
fn drain(mut pipe: impl Read + Send + 'static, output: mpsc::Sender<Vec<u8>>) -> std::io::Result<()> {
    let drained = thread::Builder::new().name("notify-out".to_owned()).spawn(move || {
        let mut kept = Vec::new();
        let _ = pipe.by_ref().take(4096).read_to_end(&mut kept);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        let _ = output.send(kept);
    });
    drained.map(drop)
}

/// How soon a request to stop is seen.
const SLICE: Duration = Duration::from_millis(100);

/// How long the rest of a dead program's output may take.
const DRAIN: Duration = Duration::from_millis(500);
