//! One program, watched: its output is bounded, and so is its time.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::read::Printed;

/// Most octets that a program may print on either stream: a tool that prints its table every tenth
/// of a second for ten minutes stays far below.
pub const OUTPUT_LIMIT: usize = 4 << 20;

/// How often it is looked at. A look costs some microseconds; ten in a second would be seen in a
/// program's time.
const POLL: Duration = Duration::from_millis(20);
/// How long a program that was ended may take to close its streams. What a grandchild holds open
/// longer is not waited for.
const CLOSING: Duration = Duration::from_secs(1);

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The program and its arguments; not empty.
    pub(super) words: Vec<String>,
    /// Its working directory.
    pub(super) folder: PathBuf,
    /// When it is ended.
    pub(super) limit: Duration,
    /// When it is interrupted (SIGINT), because it never ends by itself.
    pub(super) interrupt_after: Option<Duration>,
}

/// How it ended.
#[derive(Debug)]
pub(super) enum End {
    /// By itself, or after it was interrupted as planned.
    Ended(ExitStatus),
    /// It was ended at its limit.
    TimedOut,
    /// It was ended because it printed too much.
    TooMuch,
    /// It was ended because it was asked for ([`Control::stop`]).
    Stopped,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) end: End,
    pub(super) printed: Printed,
    pub(super) ran: Duration,
}

/// What its watcher is told while it runs, and what it may be asked.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// End it: first politely, then not.
    stop: AtomicBool,
    stdout: Mutex<Capture>,
    stderr: Mutex<Capture>,
}

#[derive(Debug, Default)]
struct Capture {
    octets: Vec<u8>,
    over: bool,
}

impl Control {
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// What it printed so far.
    pub(super) fn printed(&self) -> Printed {
        let text = |capture: &Mutex<Capture>| {
            let capture = capture.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8_lossy(&capture.octets).into_owned()
        };
        Printed { stdout: text(&self.stdout), stderr: text(&self.stderr) }
    }

    fn over(&self) -> bool {
        let over = |capture: &Mutex<Capture>| capture.lock().unwrap_or_else(PoisonError::into_inner).over;
        over(&self.stdout) || over(&self.stderr)
    }
}

/// Runs a program from the calling thread, and so in its namespace, to its end. The thread must
/// live as long as the program: with it the program ends too (`setpriv --pdeathsig`, where
/// util-linux is there), so that nothing outlives a crash of ours. Whoever calls this handles
/// SIGINT: a program inherits a signal that is ignored, and a shell cannot trap it then.
pub(super) fn watch(plan: &Plan, control: &Arc<Control>) -> io::Result<Done> {
    let mut child = command(plan).spawn()?;
    let began = now();
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let (closed, all_closed) = mpsc::sync_channel(2);
    let streams = [
        child.stdout.take().map(|stream| gather(stream, control, Which::Stdout, &closed)),
        child.stderr.take().map(|stream| gather(stream, control, Which::Stderr, &closed)),
    ];
    let open = streams.iter().flatten().count();
    let end = wait(plan, control, group, began);
    // Its children too, before it is reaped: until then its group's number is nobody else's.
    let _ = killpg(group, Signal::SIGKILL);
    let status = child.wait();
    let ran = began.elapsed();
    let end = match end? {
        None => End::Ended(status?),
        Some(end) => end,
    };
    close(&all_closed, open);
    let end = if control.over() { End::TooMuch } else { end };
    Ok(Done { end, printed: control.printed(), ran })
}

/// Until it has ended (`None`) or must be.
fn wait(plan: &Plan, control: &Control, group: Pid, began: Instant) -> io::Result<Option<End>> {
    /// Between asking it to end and ending it.
    const GRACE: Duration = Duration::from_secs(2);
    let mut interrupt_at = plan.interrupt_after;
    let mut asked: Option<Instant> = None;
    loop {
        if has_ended(group)? {
            return Ok(asked.map(|_| End::Stopped));
        }
        let ran = began.elapsed();
        if control.over() {
            return Ok(Some(End::TooMuch));
        }
        if ran >= plan.limit && asked.is_none() {
            return Ok(Some(End::TimedOut));
        }
        if asked.is_some_and(|asked| asked.elapsed() >= GRACE) {
            return Ok(Some(End::Stopped));
        }
        if asked.is_none() && control.stop.load(Ordering::Acquire) {
            // What it has not printed yet, it prints now.
            let _ = killpg(group, Signal::SIGINT);
            asked = Some(now());
        }
        if interrupt_at.is_some_and(|time| ran >= time) {
            let _ = killpg(group, Signal::SIGINT);
            interrupt_at = None;
        }
        nap(POLL);
    }
}

/// Whether it has ended, without reaping it.
fn has_ended(child: Pid) -> io::Result<bool> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::Pid(child), flags) {
        Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn command(plan: &Plan) -> Command {
    let mut words: Vec<&str> = Vec::new();
    if find("setpriv").is_some() {
        words.extend(["setpriv", "--pdeathsig", "KILL", "--"]);
    }
    words.extend(plan.words.iter().map(String::as_str));
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    command
        .args(words.iter().skip(1))
        .current_dir(&plan.folder)
        .env("LC_ALL", "C")
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

#[derive(Clone, Copy)]
enum Which {
    Stdout,
    Stderr,
}

/// Reads a stream to its end in a thread of its own, and keeps no more than the limit.
fn gather(stream: impl Read + Send + 'static, control: &Arc<Control>, which: Which, closed: &SyncSender<()>) {
    let (control, closed) = (Arc::clone(control), closed.clone());
    thread::spawn(move || {
        let capture = match which {
            Which::Stdout => &control.stdout,
            Which::Stderr => &control.stderr,
        };
        copy(stream, capture);
        // Nobody may be waiting any more.
        let _ = closed.try_send(());
    });
}

fn copy(mut stream: impl Read, capture: &Mutex<Capture>) {
    let mut buffer = [0; 16 << 10];
    loop {
        let got = match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let mut capture = capture.lock().unwrap_or_else(PoisonError::into_inner);
        let room = OUTPUT_LIMIT - capture.octets.len();
        let kept = buffer.get(..got.min(room)).unwrap_or_default();
        capture.octets.extend_from_slice(kept);
        if got > room {
            capture.over = true;
            return;
        }
    }
}

fn close(closed: &Receiver<()>, streams: usize) {
    for _ in 0..streams {
        if closed.recv_timeout(CLOSING).is_err() {
            return;
        }
    }
}

/// The file of a program: on the search path, or where system programs are.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(Path::new(program).to_owned()).filter(|file| file.is_file());
    }
    std::env::split_paths(&search_path()).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// With the folders of system programs, where measurement tools are and which users' paths often
/// lack.
fn search_path() -> std::ffi::OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/local/sbin:/usr/sbin:/sbin");
    path
}

/// "exit code 1", "signal 15".
pub(super) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[expect(clippy::disallowed_methods, reason = "programs run against the real clock")]
pub(super) fn nap(time: Duration) {
    thread::sleep(time);
}

#[expect(clippy::disallowed_methods, reason = "programs run against the real clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
