//! Measurements as child processes of this very program.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use narrows_agent::{Credential, Fence, Measure, Outcome, Task};
use narrows_fleet::clock::Boot;
use narrows_fleet::message::Hop;
use narrows_units::Stamp;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};
use tokio::sync::watch;

use crate::commands::watch::route;
use crate::connect::Peer;
use crate::leased::Until;

/// Starts this program again for each measurement.
pub(super) struct Children {
    pub(super) program: PathBuf,
    /// Where keys for children lie while they run: the agent's own folder.
    pub(super) folder: PathBuf,
    /// Ends a trace under way.
    pub(super) stop: Arc<AtomicBool>,
}

/// This program with nothing of the caller's settings, ended when dropped and when we are gone.
pub(super) fn program(path: &Path, until: Until) -> Command {
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("NARROWS_") {
            command.env_remove(name);
        }
    }
    // What a service manager gives is the agent's alone.
    for name in ["NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY", "STATE_DIRECTORY"] {
        command.env_remove(name);
    }
    let (name, value) = until.variable();
    command.env(name, value).stdin(Stdio::piped()).kill_on_drop(true);
    command
}

#[async_trait]
impl Measure for Children {
    async fn run(&self, task: &Task, until: Option<watch::Receiver<Stamp<Boot>>>) -> Outcome {
        let leased = if until.is_some() { Until::Stdin } else { Until::Closed };
        let mut command = program(&self.program, leased);
        let key = match task.credential.as_ref().map(|credential| KeyFile::new(&self.folder, credential)).transpose() {
            Ok(key) => key,
            Err(error) => return Outcome { said: format!("the key to the peer: {error}"), ..Outcome::default() },
        };
        if let Err(why) = arguments(&mut command, task, key.as_ref().map(|key| key.0.as_path())) {
            return Outcome { said: why, ..Outcome::default() };
        }
        let mut child = match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => {
                return Outcome { said: format!("cannot start a measurement: {error}"), ..Outcome::default() };
            }
        };
        let stdin = child.stdin.take();
        tokio::select! {
            ended = child.wait_with_output() => match ended {
                Ok(output) => outcome(output.status, &output.stdout, &output.stderr),
                Err(error) => Outcome { said: error.to_string(), ..Outcome::default() },
            },
            () = tell(stdin, until) => Outcome::default(),
        }
    }

    async fn trace(&self, address: &str) -> Vec<Hop> {
        let (address, stop) = (address.to_owned(), Arc::clone(&self.stop));
        let traced = tokio::task::spawn_blocking(move || {
            let target = resolved(&address)?;
            let peer = Peer::plain(target.ip().to_string(), target.port());
            route::trace(&peer, target.ip(), LONGEST_TRACE, &stop).ok().map(|traced| hops(&traced, target.ip()))
        });
        traced.await.ok().flatten().unwrap_or_default()
    }
}

/// `narrows <kind> <host> -p <port> --json <flags..>`
fn arguments(command: &mut Command, task: &Task, key: Option<&Path>) -> Result<(), String> {
    let wrong = || format!("\"{}\" is no address of a server", task.address);
    let (host, port) = task.address.rsplit_once(':').ok_or_else(wrong)?;
    let host = host.trim_matches(['[', ']']);
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let (kind, flags) = task.words.split_first().ok_or("a run without a command")?;
    // A host that begins with a dash would be a flag.
    if host.is_empty() || host.starts_with('-') {
        return Err(wrong());
    }
    command.arg(kind).arg(host);
    // `hops` walks towards any host; its -p is another one.
    let port_flag = if kind == "hops" { "--server-port" } else { "--port" };
    command.arg(port_flag).arg(port.to_string()).arg("--json").args(flags);
    if let (Some(credential), Some(key)) = (&task.credential, key) {
        command.arg("--psk-file").arg(key).arg("--key-name").arg(&credential.name);
        if let Some(Fence { run, revision }) = task.fence {
            command.arg("--run").arg(run.to_string()).arg("--fence").arg(revision.to_string());
        }
    }
    Ok(())
}

/// A key that only this user can read, for one child; removed when dropped.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new(folder: &Path, credential: &Credential) -> std::io::Result<Self> {
        let path = folder.join("peer.key");
        // One run at a time: what is there was left by a process that was killed.
        let _ = std::fs::remove_file(&path);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(credential.secret.as_bytes())?;
        Ok(Self(path))
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        // It may have been removed with the folder.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Keeps standard input open, and writes there until when the child may send. Never ends while the
/// lease is somebody's business.
async fn tell(stdin: Option<ChildStdin>, until: Option<watch::Receiver<Stamp<Boot>>>) {
    let Some(mut stdin) = stdin else { return std::future::pending().await };
    if let Some(mut until) = until {
        loop {
            let line = format!("{}\n", until.borrow_and_update().nanos());
            // A child that reads no more has ended; whoever waits for it notices.
            if stdin.write_all(line.as_bytes()).await.is_err() {
                break;
            }
            if until.changed().await.is_err() {
                return;
            }
        }
    }
    std::future::pending::<()>().await;
    drop(stdin);
}

fn outcome(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Outcome {
    let said = String::from_utf8_lossy(stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let said = last.trim_start_matches("narrows: ").chars().take(300).collect();
    Outcome { code: status.code(), document: serde_json::from_slice(stdout).ok(), said }
}

fn resolved(address: &str) -> Option<SocketAddr> {
    address.to_socket_addrs().ok()?.next()
}

/// The routers that answered, without the host itself unless it is reached through none: a way
/// without hops was not traced.
fn hops(traced: &route::Traced, host: IpAddr) -> Vec<Hop> {
    let mut hops: Vec<Hop> = traced.route.iter().map(|hop| Hop { address: hop.first().copied() }).collect();
    if hops.last().is_some_and(|last| last.address == Some(host)) || traced.reached {
        hops.pop();
    }
    if hops.is_empty() && traced.reached {
        hops.push(Hop { address: Some(host) });
    }
    hops
}

/// After this no more hops are asked.
const LONGEST_TRACE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn line(words: &str, address: &str, credential: Option<Credential>) -> Result<String, String> {
        let words = words.split(' ').map(ToOwned::to_owned).collect();
        let fence = credential.is_some().then_some(Fence { run: uuid::Uuid::nil(), revision: 7 });
        let task = Task { words, address: address.to_owned(), credential, fence };
        let mut command = Command::new("narrows");
        arguments(&mut command, &task, Some(Path::new("/k")))?;
        let words: Vec<String> = command.as_std().get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn a_child_gets_words_and_no_more() {
        let plain = |words, address| line(words, address, None);
        assert_eq!(plain("rtt", "10.0.0.2:8620").unwrap(), "rtt 10.0.0.2 --port 8620 --json");
        let throughput = "throughput 2001:db8::2 --port 99 --json -P 4";
        assert_eq!(plain("throughput -P 4", "[2001:db8::2]:99").unwrap(), throughput);
        assert_eq!(plain("hops -m 20", "h:1").unwrap(), "hops h --server-port 1 --json -m 20");
        for wrong in ["10.0.0.2", "-o:8620", ":8620", "h:x"] {
            assert!(plain("rtt", wrong).is_err(), "{wrong}");
        }
        let credential = Credential { name: "a@2951".to_owned(), secret: "00".repeat(32) };
        let proved = line("burst", "h:1", Some(credential)).unwrap();
        let fence = "--run 00000000-0000-0000-0000-000000000000 --fence 7";
        assert_eq!(proved, format!("burst h --port 1 --json --psk-file /k --key-name a@2951 {fence}"));
    }

    #[test]
    fn a_key_is_a_file_as_long_as_its_child_runs() {
        let folder = tempfile::tempdir().unwrap();
        let credential = Credential { name: "a@2951".to_owned(), secret: "00".repeat(32) };
        let key = KeyFile::new(folder.path(), &credential).unwrap();
        let about = std::fs::metadata(&key.0).unwrap();
        assert_eq!((about.permissions().mode() & 0o777, about.len()), (0o600, 64));
        let path = key.0.clone();
        drop(key);
        assert!(!path.exists());
    }

    #[test]
    fn the_host_itself_is_no_router() {
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let hop = |last: Option<u8>| last.map(address).into_iter().collect();
        let traced = |hops: &[Option<u8>], reached| {
            let mut traced = route::Traced::default();
            traced.route = hops.iter().map(|last| hop(*last)).collect();
            traced.reached = reached;
            traced
        };
        let found = |hops_met: &[Option<u8>], reached| {
            hops(&traced(hops_met, reached), address(9)).iter().map(|hop| hop.address).collect::<Vec<_>>()
        };
        assert_eq!(found(&[Some(1), None, Some(9)], true), [Some(address(1)), None]);
        assert_eq!(found(&[Some(9)], true), [Some(address(9))], "nobody in between, and that is known");
        assert_eq!(found(&[], false), [], "nothing is known");
        assert_eq!(found(&[Some(1), None], false), [Some(address(1)), None]);
    }
}
