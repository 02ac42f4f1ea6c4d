//! Programs that end when they should, or are ended.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::shell::now;

/// Time between two looks at a program.
pub(super) const POLL: Duration = Duration::from_millis(10);
/// How long a server may take until it listens.
const READY: Duration = Duration::from_secs(10);

/// A running program. Dropping it ends it.
pub(super) struct Program {
    child: Child,
    name: String,
    out: Receiver<Vec<u8>>,
    err: Receiver<Vec<u8>>,
}

/// What a program left behind.
pub(super) struct Output {
    pub(super) out: Vec<u8>,
    pub(super) err: String,
}

impl Program {
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let name = shown(&command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {name}"))?;
        let out = gather(child.stdout.take());
        let err = gather(child.stderr.take());
        Ok(Self { child, name, out, err })
    }

    /// Waits until it listens on a TCP port, seen in the tables of its own namespace.
    pub(super) fn until_listening(mut self, port: u16) -> Result<Self> {
        let pid = self.child.id();
        self.until(&format!("never listened on port {port}"), || {
            // Before it has entered its namespace it shows the tables of ours.
            std::fs::read_link(format!("/proc/{pid}/ns/net")).ok() != std::fs::read_link("/proc/self/ns/net").ok()
                && ["tcp", "tcp6"].iter().any(|table| {
                    std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).is_ok_and(|text| listens(&text, port))
                })
        })?;
        Ok(self)
    }

    /// Waits until it has a packet socket, seen in the table of its own namespace.
    pub(super) fn until_capturing(mut self) -> Result<Self> {
        let path = format!("/proc/{}/net/packet", self.child.id());
        self.until("never captured", || std::fs::read_to_string(&path).is_ok_and(|text| text.lines().count() > 1))?;
        Ok(self)
    }

    fn until(&mut self, complaint: &str, ready: impl Fn() -> bool) -> Result<()> {
        let clock = now();
        while !ready() {
            if self.child.try_wait()?.is_some() || clock.elapsed() > READY {
                let _ = self.child.kill();
                let said = self.err.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
                bail!("{} {complaint}: {}", self.name, last_line(&said));
            }
            nap(POLL);
        }
        Ok(())
    }

    /// CPU time that its threads have used so far, as far as they still run.
    pub(super) fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let used = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        };
        let nanos = threads.map_or(0, |threads| threads.filter_map(|thread| used(thread.ok()?)).sum());
        Duration::from_nanos(nanos)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// It has not ended by itself.
    pub(super) fn running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end, and waits for that, at most so long.
    pub(super) fn stop(mut self, limit: Duration) -> Result<()> {
        self.interrupt();
        let clock = now();
        while self.child.try_wait()?.is_none() {
            if clock.elapsed() > limit {
                bail!("{} did not end within {limit:?}", self.name);
            }
            nap(POLL);
        }
        Ok(())
    }

    /// Asks it to end, as Ctrl-C would.
    pub(super) fn interrupt(&self) {
        let pid = self.child.id().to_string();
        // It may have ended by itself.
        let _ = Command::new("kill").args(["-INT", &pid]).stderr(Stdio::null()).status();
    }

    /// Waits for its end, at most so long; whatever it said then, unless it failed or had to be
    /// ended.
    pub(super) fn finish(mut self, limit: Duration) -> Result<Output> {
        let clock = now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if clock.elapsed() > limit {
                bail!("{} did not end within {limit:?}", self.name);
            }
            nap(POLL);
        };
        let grace = Duration::from_secs(1);
        let out = self.out.recv_timeout(grace).unwrap_or_default();
        let err = self.err.recv_timeout(grace).unwrap_or_default();
        if !status.success() {
            let said = if err.is_empty() { &out } else { &err };
            bail!("{} ended with {status}: {}", self.name, last_line(said));
        }
        let err = String::from_utf8_lossy(&err).into_owned();
        Ok(Output { out, err })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program to its end, at most so long; its standard output.
pub(super) fn output(command: Command, limit: Duration) -> Result<String> {
    let output = Program::start(command)?.finish(limit)?;
    Ok(String::from_utf8_lossy(&output.out).into_owned())
}

/// CPU time of all programs that were waited for.
pub(super) fn ended_cpu() -> Result<Duration> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |value: nix::sys::time::TimeVal| {
        let micros = value.tv_sec().saturating_mul(1_000_000).saturating_add(value.tv_usec());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}

/// A program of the system, also looked for where system programs are.
pub(super) fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", path()).current_dir(crate::shell::root());
    command
}

/// Whether a program is installed.
pub(super) fn found(name: &str) -> bool {
    path().split(':').any(|folder| Path::new(folder).join(name).is_file())
}

/// Where the release build puts a program of ours.
pub(super) fn built(path: &str) -> PathBuf {
    crate::shell::root().join("target/release").join(path)
}

/// Builds programs of ours in release.
pub(super) fn build(args: &[&str]) -> Result<()> {
    let args = [&["build", "--release", "--locked"], args].concat();
    if !crate::shell::shown("cargo", &args, &[])? {
        bail!("the release build failed");
    }
    Ok(())
}

/// `narrows` of that folder, or as a release build makes it.
pub(super) fn narrows(folder: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(folder) = folder {
        return Ok(folder.join("narrows"));
    }
    build(&["-p", "narrows", "--all-features"])?;
    Ok(built("narrows"))
}

fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

fn gather(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before a fault still counts.
            let _ = pipe.read_to_end(&mut bytes);
        }
        // Nobody waits any more for what a killed program said.
        let _ = sender.send(bytes);
    });
    receiver
}

/// Whether a table of TCP sockets (`/proc/net/tcp`) has one that listens on the port.
fn listens(table: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&port)) && fields.nth(1) == Some("0A")
    })
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    // How it got into its namespace is of no interest in a complaint.
    if let Some(at) = words.windows(2).position(|pair| pair == ["netns", "exec"]) {
        words.drain(..words.len().min(at + 3));
    }
    words.join(" ")
}

fn last_line(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or("it said nothing").trim().to_owned()
}

#[expect(clippy::disallowed_methods, reason = "other programs are waited for")]
pub(super) fn nap(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let mut sleep = Command::new("sleep");
        sleep.arg("600");
        let program = Program::start(sleep).unwrap();
        let pid = program.child.id();
        let error = program.finish(Duration::from_millis(20)).err().unwrap().to_string();
        assert!(error.contains("did not end"), "{error}");
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn complaints_name_the_program_alone() {
        let mut inside = Command::new("setpriv");
        inside.args(["--pdeathsig", "KILL", "ip", "netns", "exec", "x", "iperf3", "-s"]);
        assert_eq!(shown(&inside), "iperf3 -s");
        let mut plain = Command::new("g++");
        plain.arg("-O2");
        assert_eq!(shown(&plain), "g++ -O2");
    }

    #[test]
    fn listeners_are_reported_from_connections() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1451 00000000:0000 0A 0:0\n   1: 0100007F:1F90 0100007F:0001 01 0:0\n";
        assert!(listens(table, 0x1451));
        assert!(!listens(table, 0x1F90));
        assert!(!listens(table, 0x0A0A));
    }
}
