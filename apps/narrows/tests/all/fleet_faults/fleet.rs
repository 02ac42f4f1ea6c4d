//! A whole fleet of processes on loopback, each of which can be killed at any time.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::bridge::{Bridge, Place};
use super::postgres::Cluster;
use crate::common::{ProgramResult, Running, TIMEOUT, directory, free_port, narrows, run, text};

/// A part of the fleet that is to run.
pub(crate) struct Part {
    name: String,
    command: Box<dyn Fn() -> Command>,
    child: Option<Child>,
    log: PathBuf,
}

impl Part {
    pub(crate) fn new(name: &str, home: &Path, command: impl Fn() -> Command + 'static) -> Self {
        let log = home.join(format!("{name}.log"));
        let mut part = Self { name: name.to_owned(), command: Box::new(command), child: None, log };
        part.start();
        part
    }

    pub(crate) fn start(&mut self) {
        let open = |path: &Path| OpenOptions::new().create(true).append(true).open(path).expect("a log");
        let mut command = (self.command)();
        command.stdin(Stdio::null()).stderr(open(&self.log)).stdout(open(&self.log.with_extension("out")));
        self.child = Some(command.spawn().expect("it starts"));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill(Pid::from_raw(i32::try_from(child.id()).expect("a process")), signal).expect("it is our child");
    }

    /// Ends it in the midst of all.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
        }
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn end(&mut self) {
        self.signal(Signal::SIGTERM);
        let status = self.child.take().expect("it runs").wait().expect("it is our child");
        assert!(status.success(), "{}: {status}: {}", self.name, self.said());
    }

    /// Starts it again if it ended by itself, as a service manager does.
    pub(crate) fn tend(&mut self) {
        if self.ended().is_some() {
            self.start();
        }
    }

    /// Tries again what failed.
    pub(crate) fn tend_failed(&mut self) {
        if self.ended() == Some(false) {
            self.start();
        }
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// How it ended by itself; `None`: it did not.
    pub(crate) fn ended(&mut self) -> Option<bool> {
        let child = self.child.as_mut()?;
        child.try_wait().expect("our child").map(|status| status.success())
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Part {
    #[expect(clippy::print_stdout, reason = "shown by a test that failed")]
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let said = self.said();
            let last: Vec<&str> = said.lines().rev().take(12).collect();
            println!("--- {}: {}", self.name, last.into_iter().rev().collect::<Vec<_>>().join("\n    "));
        }
    }
}

/// Where everything of a fleet lies.
pub(crate) struct Fleet {
    pub(crate) agents: Vec<Part>,
    pub(crate) hub: Part,
    /// The servers of NATS.
    pub(crate) bus: Option<String>,
    pub(crate) nats: Option<Part>,
    pub(crate) postgres: Option<Cluster>,
    /// A host for each part; without, all are on loopback.
    pub(crate) net: Option<Bridge>,
    pub(crate) home: tempfile::TempDir,
}

impl Fleet {
    /// With the bus and the record in the hub.
    pub(crate) fn embedded(agents: usize) -> Self {
        Self::new(agents, false, false)
    }

    /// With NATS.
    pub(crate) fn on_nats(agents: usize) -> Self {
        Self::new(agents, true, false)
    }

    /// With NATS in operator mode: the hub signs who may connect.
    pub(crate) fn with_operator(agents: usize) -> Self {
        let home = directory();
        let (state, tokens) = (home.path().join("hub"), home.path().join("jwt"));
        let words = ["hub", "operator", "--bus-size", "200 MB", "--state", text(&state), "--tokens", text(&tokens)];
        let made = run(&words);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
        std::fs::write(home.path().join(OPERATOR), made.stdout).expect("a temporary directory can be written");
        Self::in_folder(home, None, agents, true, false)
    }

    /// Each part on a host of its own.
    pub(crate) fn apart(agents: usize, on_servers: bool) -> Self {
        Self::in_folder(directory(), Some(Bridge::new(AGENTS + agents)), agents, on_servers, on_servers)
    }

    /// Hub and agents under clocks of their own, which [`Self::set_clock`] sets.
    pub(crate) fn with_clocks(agents: usize) -> Self {
        let home = directory();
        for name in ["hub".to_owned()].into_iter().chain((0..agents).map(agent_name)) {
            set_clock(home.path(), &name, 0);
        }
        Self::in_folder(home, None, agents, false, false)
    }

    /// Sets the wall clock of a part, in seconds from the true one.
    pub(crate) fn set_clock(&self, name: &str, seconds: i64) {
        set_clock(self.home.path(), name, seconds);
    }

    /// With NATS and PostgreSQL.
    pub(crate) fn large(agents: usize) -> Self {
        Self::new(agents, true, true)
    }

    fn new(agents: usize, on_nats: bool, on_postgres: bool) -> Self {
        Self::in_folder(directory(), None, agents, on_nats, on_postgres)
    }

    fn in_folder(
        home: tempfile::TempDir,
        net: Option<Bridge>,
        agents: usize,
        on_nats: bool,
        on_postgres: bool,
    ) -> Self {
        let (nats_port, hub_port) = (free_port(), free_port());
        let place = |host| place(net.as_ref(), host);
        let nats = on_nats.then(|| nats(home.path(), nats_port, &place(BUS)));
        let postgres = on_postgres.then(|| Cluster::new(place(RECORD)));
        let store = postgres.as_ref().map(Cluster::url);
        let bus = on_nats.then(|| format!("nats://{}:{nats_port}", place(BUS).address));
        let hub = hub(home.path(), hub_port, bus.as_deref(), store.as_deref(), place(HUB));
        let mut fleet = Self { agents: Vec::new(), hub, bus, nats, postgres, net, home };
        let (url, join) = fleet.announced();
        fleet.agents = (0..agents).map(|number| fleet.agent(number, &url, &join)).collect();
        fleet
    }

    pub(crate) fn place(&self, host: usize) -> Place {
        place(self.net.as_ref(), host)
    }

    /// Another hub on the port of the one that has ended.
    pub(crate) fn replace_hub(&mut self, bus: Option<&str>, store: Option<&str>) {
        let (url, _) = self.announced();
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        std::fs::remove_file(self.home.path().join("hub.out")).expect("what it said");
        self.hub = hub(self.home.path(), port, bus, store, self.place(HUB));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The URL of the hub, and the token by which hosts join.
    pub(crate) fn announced(&self) -> (String, String) {
        let line = || {
            let said = std::fs::read_to_string(self.path("hub.out")).ok()?;
            serde_json::from_str::<Value>(said.lines().next()?).ok()
        };
        within("the hub's first line", Duration::from_secs(60), || line().is_some());
        let line = line().expect("it was there");
        let word = |key: &str| line[key].as_str().expect("a text").to_owned();
        (word("url"), word("join"))
    }

    fn agent(&self, number: usize, url: &str, join: &str) -> Part {
        let (name, state, port) = (agent_name(number), self.path(&agent_name(number)), free_port().to_string());
        let place = self.place(AGENTS + number);
        let words =
            ["agent", "join", url, join, "--name", &name, "--address", &place.address, "--port", &port, "--state"];
        let joined = there(&place, &[&words[..], &[text(&state)]].concat());
        assert_eq!(joined.status.code(), Some(0), "{joined:?}");
        let (home, own) = (self.home.path().to_owned(), name.clone());
        Part::new(&name, self.home.path(), move || {
            let mut agent =
                narrows([std::ffi::OsStr::new("agent"), "run".as_ref(), "--state".as_ref(), state.as_os_str()]);
            by_clock(&home, &own, &mut agent);
            place.run(&agent)
        })
    }

    /// What the hub says of the fleet; `None` if it does not answer.
    pub(crate) fn status(&self) -> Option<Value> {
        let ended = self.ask(&["fleet", "status", "--json"]);
        (ended.status.code() == Some(0)).then(|| ended.json())
    }

    /// How many agents the hub hears.
    pub(crate) fn online(&self) -> usize {
        let status = self.status().unwrap_or_default();
        let agents = status["agents"].as_array().cloned().unwrap_or_default();
        agents.iter().filter(|agent| agent["state"] == "online").count()
    }

    /// A command for the hub, with its state directory.
    pub(crate) fn ask(&self, words: &[&str]) -> ProgramResult {
        there(&self.place(HUB), &[words, &["--state", text(&self.path("hub"))]].concat())
    }

    /// Makes this the configuration of the fleet, in which there is room for all of it.
    pub(crate) fn apply(&self, toml: &str) {
        self.apply_with(toml, 0);
    }

    /// The same of one that asks for more runs than there is room for.
    pub(crate) fn apply_what_fits(&self, toml: &str) {
        self.apply_with(toml, 10);
    }

    fn apply_with(&self, toml: &str, code: i32) {
        let file = self.path("fleet.toml");
        std::fs::write(&file, toml).expect("a temporary directory can be written");
        let ended = self.ask(&["fleet", "apply", text(&file)]);
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
    }

    /// Somebody orders a run and waits for it, meanwhile.
    pub(crate) fn order(&self, source: usize, target: usize, command: &str) -> Part {
        let (source, target, state) = (agent_name(source), agent_name(target), self.path("hub"));
        let words: Vec<String> = command.split(' ').map(ToOwned::to_owned).collect();
        let place = self.place(HUB);
        Part::new(&format!("order-{source}-{target}"), self.home.path(), move || {
            let mut order = narrows(["fleet", "run", &source, &target, "--state", text(&state), "--"]);
            order.args(&words);
            place.run(&order)
        })
    }

    /// The same to its end, which has to be a good one.
    #[track_caller]
    pub(crate) fn carry_out(&self, source: usize, target: usize, command: &str) {
        let mut order = self.order(source, target, command);
        within("the order is carried out", TIMEOUT, || {
            let ended = order.ended();
            assert!(ended != Some(false), "{command}: {}", order.said());
            ended == Some(true)
        });
    }

    /// Starts again what ended by itself, as a service manager does.
    pub(crate) fn tend(&mut self) {
        self.hub.tend();
        self.agents.iter_mut().chain(&mut self.nats).for_each(Part::tend);
    }

    /// What an agent says of itself.
    pub(crate) fn own(&self, number: usize) -> Value {
        let ended = run(&["agent", "status", "--json", "--state", text(&self.path(&agent_name(number)))]);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        ended.json()["status"].clone()
    }

    /// What the hub answers to a GET below `/api/v1`; null if it does not.
    pub(crate) fn get(&self, path: &str) -> Value {
        let (url, _) = self.announced();
        let mut asked = Command::new("curl");
        asked.args(["-sk", &format!("{url}/api/v1/{path}")]);
        let asked = self.place(HUB).run(&asked).output().expect("curl");
        serde_json::from_slice(&asked.stdout).unwrap_or_default()
    }

    /// The audit, the newest first: what, and more about it.
    pub(crate) fn audit(&self) -> Vec<(String, String)> {
        let answer = self.get("audit");
        let word = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let entries = answer["entries"].as_array().or_else(|| answer["audit"].as_array()).cloned().unwrap_or_default();
        entries.iter().map(|entry| (word(entry, "what"), word(entry, "text"))).collect()
    }

    /// The port of an agent's server.
    pub(crate) fn port(&self, number: usize) -> String {
        let file = std::fs::read(self.path(&agent_name(number)).join("joined.json")).expect("it has joined");
        let joined: Value = serde_json::from_slice(&file).expect("JSON");
        joined["port"].to_string()
    }
}

/// Loading runs under way of the fleet that lies there: process, source, and port of the target.
pub(crate) fn loads(home: &Path) -> Vec<(u32, String, String)> {
    let mut loads = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that has ended has no words any more.
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|octet| *octet == 0).map(String::from_utf8_lossy).collect();
        let after = |flag: &str| words.get(words.iter().position(|word| word == flag)? + 1);
        if words.get(1).is_none_or(|word| word != "throughput") {
            continue;
        }
        if let (Some(key), Some(port)) = (after("--psk-file"), after("--port")) {
            let state = Path::new(&**key).parent().filter(|state| state.parent() == Some(home));
            let source = state.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
            loads.extend(source.map(|source| (process, source, port.to_string())));
        }
    }
    loads
}

/// What a server of NATS in operator mode is told.
const OPERATOR: &str = "operator.conf";

pub(crate) fn agent_name(number: usize) -> String {
    format!("h{number}")
}

/// The hosts of a fleet whose parts are apart; agents come after these.
pub(crate) const HUB: usize = 0;
pub(crate) const BUS: usize = 1;
pub(crate) const RECORD: usize = 2;
pub(crate) const AGENTS: usize = 3;

fn place(net: Option<&Bridge>, host: usize) -> Place {
    net.map_or_else(Place::local, |net| net.place(host))
}

/// A command of the program, from beginning to end.
fn there(place: &Place, words: &[&str]) -> ProgramResult {
    Running::start(&mut place.run(&narrows(words))).end()
}

/// What faketime reads: by how many seconds a part's wall clock is off.
fn clock(home: &Path, name: &str) -> PathBuf {
    home.join(format!("{name}.clock"))
}

fn set_clock(home: &Path, name: &str, seconds: i64) {
    let fresh = home.join("clock.new");
    std::fs::write(&fresh, format!("{seconds:+}")).expect("it is ours");
    std::fs::rename(&fresh, clock(home, name)).expect("it is ours");
}

fn by_clock(home: &Path, name: &str, command: &mut Command) {
    let file = clock(home, name);
    if file.exists() {
        command.env("LD_PRELOAD", "/usr/$LIB/faketime/libfaketimeMT.so.1").env("FAKETIME_TIMESTAMP_FILE", file);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
}

pub(crate) fn nats(home: &Path, port: u16, place: &Place) -> Part {
    let (folder, operator, own) = (home.join("nats"), home.join(OPERATOR), place.clone());
    let server = Part::new("nats", home, move || {
        let program = if Path::new("/usr/sbin/nats-server").exists() { "/usr/sbin/nats-server" } else { "nats-server" };
        let mut command = Command::new(program);
        command.args(["-js", "-a", &own.address, "-p", &port.to_string(), "-sd", text(&folder)]);
        if operator.exists() {
            command.arg("-c").arg(&operator);
        }
        own.run(&command)
    });
    let mut asked = Command::new("bash");
    asked.args(["-c", &format!("exec 3<>/dev/tcp/{}/{port}", place.address)]);
    let answers = || place.run(&asked).output().is_ok_and(|asked| asked.status.success());
    within("nats-server", Duration::from_secs(30), answers);
    server
}

fn hub(home: &Path, port: u16, bus: Option<&str>, store: Option<&str>, place: Place) -> Part {
    let words = |flag: &str, value: Option<&str>| value.map(|value| [flag.to_owned(), value.to_owned()]);
    let more: Vec<String> = [words("--bus", bus), words("--store", store)].into_iter().flatten().flatten().collect();
    let (state, own) = (home.join("hub"), home.to_owned());
    Part::new("hub", home, move || {
        let listen = format!("{}:{port}", place.address);
        let mut command = narrows(["hub", "--listen", &listen, "--json", "--bus-size", "200 MB"]);
        command.arg("--state").arg(&state).args(&more);
        by_clock(&own, "hub", &mut command);
        place.run(&command)
    })
}

/// The paths that have an answer; on a busy machine that may be *inconclusive*.
pub(crate) fn answered(status: &Value) -> Option<u64> {
    let matrix = &status["matrix"];
    Some(matrix["with_value"].as_u64()? + matrix["inconclusive"].as_u64()?)
}

/// Waits for something that happens by itself, and says after how long it did.
#[track_caller]
pub(crate) fn within(what: &str, longest: Duration, happened: impl FnMut() -> bool) -> Duration {
    waited(longest, happened).unwrap_or_else(|| panic!("{what}: not within {longest:?}"))
}

/// After how long it happened; `None` if it did not.
pub(crate) fn waited(longest: Duration, mut happened: impl FnMut() -> bool) -> Option<Duration> {
    let began = Instant::now();
    while !happened() {
        if began.elapsed() >= longest {
            return None;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Some(began.elapsed())
}

/// A file that takes nothing but what is in it already.
pub(crate) fn fill(path: &Path) -> File {
    use std::io::Write as _;
    let mut file = File::create(path).expect("there was room for a name");
    let block = [0_u8; 4096];
    // Until there is no room.
    while file.write_all(&block).is_ok() {}
    file
}
