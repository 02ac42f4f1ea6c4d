//! The program as its users run it: started, watched, and ended with the test.
#![expect(clippy::disallowed_methods, reason = "a program under test runs in real time, and so do its deadlines")]

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) mod iperf3;
pub(crate) mod keys;
pub(crate) mod relay;
pub(crate) mod remote;

/// Longest that anything here may take on a busy machine. What must be quick has a bound of its
/// own.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(240);

/// The program, with no setting of the caller's environment that could change what it does.
pub(crate) fn narrows<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("NARROWS_") {
            command.env_remove(name);
        }
    }
    command.env("COLUMNS", "100").env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// What a finished program left.
#[derive(Debug)]
pub(crate) struct ProgramResult {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl ProgramResult {
    /// Standard output as the one JSON object that it must be.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not one JSON object ({error}): {self:?}"))
    }

    /// The first JSON object that stands on a line of its own: of a program that others wrote
    /// beside.
    #[track_caller]
    pub(crate) fn json_line(&self) -> Value {
        let mut lines = self.stdout.lines();
        let line = lines.find(|line| line.starts_with('{'));
        let line = line.unwrap_or_else(|| panic!("no JSON object: {self:?}"));
        serde_json::from_str(line).unwrap_or_else(|error| panic!("not a JSON object ({error}): {self:?}"))
    }

    /// Asserts an exit code, with words that the complaint must hold, and that no result is on
    /// standard output.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in the complaint: {self:?}");
        }
        assert!(self.stdout.is_empty(), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
    }
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> ProgramResult {
    Running::start(&mut narrows(arguments)).end()
}

/// A program under way; killed when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    began: Instant,
    stdout: Option<JoinHandle<String>>,
    lines: Receiver<String>,
    incoming: String,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut out = child.stdout.take().expect("piped");
        let stdout = std::thread::spawn(move || {
            let mut octets = Vec::new();
            out.read_to_end(&mut octets).expect("a pipe can be read");
            String::from_utf8(octets).expect("output is text")
        });
        let complaints = BufReader::new(child.stderr.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in complaints.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, began: Instant::now(), stdout: Some(stdout), lines, incoming: String::new() }
    }

    pub(crate) fn id(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).expect("process ids are small"))
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(self.id(), signal).expect("it is our child");
    }

    /// Waits for a line on standard error that holds `word`.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, word: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.incoming.push_str(&line);
                    self.incoming.push('\n');
                    if line.contains(word) {
                        return line;
                    }
                }
                Err(why) => panic!("no {word:?} on standard error ({why}): {}", self.incoming),
            }
        }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_none()
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn end(mut self) -> ProgramResult {
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                break status;
            }
            assert!(Instant::now() < deadline, "it hangs: {}", self.incoming);
            std::thread::sleep(Duration::from_millis(5));
        };
        let took = self.began.elapsed();
        let stdout = self.stdout.take().expect("taken once").join().expect("the reader ends");
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(1)) {
            self.incoming.push_str(&line);
            self.incoming.push('\n');
        }
        ProgramResult { status, stdout, stderr: std::mem::take(&mut self.incoming), took }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that happens by itself.
#[track_caller]
pub(crate) fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !happened() {
        assert!(Instant::now() < deadline, "{what}: it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A port of loopback that nobody has, and that the kernel gives no connection by itself: until it
/// is listened on, other tests connect.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Programs that run beside this one begin elsewhere.
    let first = std::process::id() % 1_000 * 10;
    let candidates = (0..10_000).map(|_| 20_000 + (first + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % 10_000);
    let is_free =
        |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok() && UdpSocket::bind(("127.0.0.1", *port)).is_ok();
    let found = candidates.filter_map(|port| u16::try_from(port).ok()).find(is_free);
    found.expect("some port is free")
}

/// `narrows serve` on loopback, at a port of the system's choice.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut running = Running::start(narrows(["serve", "-p", "0", "-B", "127.0.0.1"]).args(arguments));
        let line = running.wait_for("listening on");
        let word = line.split("listening on ").nth(1).and_then(|rest| rest.split(',').next());
        let address = word.and_then(|word| word.parse().ok());
        Self { running, address: address.unwrap_or_else(|| panic!("no address in {line:?}")) }
    }

    pub(crate) fn port(&self) -> String {
        self.address.port().to_string()
    }
}

/// `narrows METHOD 127.0.0.1 -p PORT …`.
pub(crate) fn client(command: &str, port: u16, arguments: &[&str]) -> Command {
    let mut client = narrows([command, "127.0.0.1", "-p", &port.to_string()]);
    client.args(arguments);
    client
}

/// A file of the test's own, readable by its owner alone.
pub(crate) fn file(directory: &tempfile::TempDir, name: &str, content: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.path().join(name);
    std::fs::write(&path, content).expect("a temporary directory can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    path
}

pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for a temporary directory")
}

/// A scenario that ships with the program.
pub(crate) fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name)
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

/// Asserts that `document` is as `schema` says.
#[track_caller]
pub(crate) fn validate(schema: &str, document: &Value) {
    let schema: Value = serde_json::from_str(schema).expect("the schema that ships is JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("the schema that ships is a schema");
    let faults: Vec<String> =
        validator.iter_errors(document).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
