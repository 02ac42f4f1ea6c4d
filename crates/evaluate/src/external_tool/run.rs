//! Carrying an adapter out: the server, the client, what comes afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::adapter::{Adapter, Command, Host, Ready, Setting};
use super::error::ExternalToolError;
use super::listening;
use super::process::{self, Control, Done, End, Plan};
use super::read::{self, Number, ParsedNumber, Printed, Reading, Texts};

/// The two hosts at the ends of a path.
pub trait Hosts {
    /// Starts a thread inside a host: programs that it starts live there too. The error says why
    /// that cannot be.
    fn spawn_thread(&self, host: Host, work: Box<dyn FnOnce() + Send>) -> Result<JoinHandle<()>, String>;
}

/// What came of one run that ended well.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalToolRun {
    /// What it says.
    pub reading: Reading,
    /// From the start of the client to its end.
    pub time: Duration,
}

/// How long a server has to be ready.
const READY: Duration = Duration::from_secs(10);
/// How long a server that serves once may take to end and print its report, once its client has
/// ended.
const REPORT: Duration = Duration::from_secs(3);
/// Between two looks at what goes on.
const POLL: Duration = Duration::from_millis(20);

type Values = BTreeMap<String, String>;

/// Whether all that it needs is there; the error names the first program that is not.
pub fn installed(adapter: &Adapter) -> Result<(), ExternalToolError> {
    match adapter.needs().iter().find(|program| process::find(program).is_none()) {
        None => Ok(()),
        Some(program) => Err(ExternalToolError::NotInstalled {
            program: program.clone(),
            package: adapter.package().map(ToOwned::to_owned),
        }),
    }
}

/// The program's version, as it says itself; `None` if it says none, or the adapter does not know
/// how to ask.
pub fn version(adapter: &Adapter) -> Option<String> {
    let (words, pattern) = adapter.version_command()?;
    let plan = Plan {
        words: words.clone(),
        folder: std::env::temp_dir(),
        limit: Duration::from_secs(5),
        interrupt_after: None,
    };
    let done = process::watch(&plan, &Arc::default()).ok()?;
    let texts = [done.printed.stdout, done.printed.stderr];
    let captures = texts.iter().find_map(|text| pattern.captures(text))?;
    Some(captures.name("version")?.as_str().to_owned())
}

/// One run. Whatever happens, all that was started has ended when it returns; `stop` ends it early.
pub fn run(
    adapter: &Adapter,
    setting: &Setting,
    params: &BTreeMap<String, String>,
    hosts: &dyn Hosts,
    stop: &AtomicBool,
) -> Result<ExternalToolRun, ExternalToolError> {
    installed(adapter)?;
    let folder = tempfile::Builder::new()
        .prefix("narrows-tool-")
        .tempdir()
        .map_err(|source| host("making a folder for its files", source))?;
    let values = adapter.values(setting, folder.path(), params)?;
    let play = Play {
        adapter,
        seconds: adapter.seconds(&values)?.unwrap_or_default(),
        values,
        folder: folder.path(),
        hosts,
        stop,
    };
    play.through()
}

struct Play<'a> {
    adapter: &'a Adapter,
    values: Values,
    seconds: Duration,
    folder: &'a Path,
    hosts: &'a dyn Hosts,
    stop: &'a AtomicBool,
}

impl Play<'_> {
    fn through(&self) -> Result<ExternalToolRun, ExternalToolError> {
        let mut texts = Texts::default();
        let server = match &self.adapter.server {
            None => None,
            Some((command, ready)) => {
                let limit = READY + self.client_limit() + REPORT + Duration::from_secs(5);
                let server = self.start(command, limit, None)?;
                self.wait_until_ready(&server, command, ready)?;
                Some(server)
            }
        };
        let interrupt = self.adapter.interrupt.then_some(self.seconds);
        let client = self.start(&self.adapter.client, self.client_limit(), interrupt)?;
        let program = client.name.clone();
        let done = client.end(self.stop)?;
        let time = done.ran;
        let inconclusive = self.judge(&program, &done)?;
        texts.client = done.printed;
        if let Some(server) = server {
            texts.server = server.finish().map(|done| done.printed).unwrap_or_default();
        }
        if let Some(why) = inconclusive {
            let number = Number { hop: None, found: ParsedNumber::Inconclusive(why) };
            let reading = Reading { numbers: vec![number], printed: read::PrintedCost::default() };
            return Ok(ExternalToolRun { reading, time });
        }
        if let Some(after) = &self.adapter.after {
            let after = self.start(after, after.timeout, None)?;
            let program = after.name.clone();
            let done = after.end(self.stop)?;
            self.judge(&program, &done)?;
            texts.after = done.printed;
        }
        let reading = self.adapter.read(&texts);
        let reading = reading.map_err(|source| ExternalToolError::Unreadable { program, source })?;
        Ok(ExternalToolRun { reading, time })
    }

    fn client_limit(&self) -> Duration {
        self.seconds + self.adapter.client.timeout
    }

    fn start(
        &self,
        command: &Command,
        limit: Duration,
        interrupt_after: Option<Duration>,
    ) -> Result<Program, ExternalToolError> {
        let plan = Plan { words: command.words(&self.values), folder: self.folder.to_owned(), limit, interrupt_after };
        Program::start(self.hosts, command.host, plan)
    }

    /// What a client's or a later command's end means: an error, a number, or words in its place.
    fn judge(&self, program: &str, done: &Done) -> Result<Option<String>, ExternalToolError> {
        let program = program.to_owned();
        match &done.end {
            End::TooMuch => Err(ExternalToolError::TooMuch { program, limit: process::OUTPUT_LIMIT }),
            End::Stopped => Err(ExternalToolError::Interrupted),
            End::TimedOut => {
                Err(ExternalToolError::TimedOut { program, seconds: done.ran.as_secs_f64(), said: said(&done.printed) })
            }
            End::Ended(status) => {
                let code = status.code();
                let listed = |codes: &[i32]| code.is_some_and(|code| codes.contains(&code));
                if listed(&self.adapter.inconclusive_exit_codes) {
                    return Ok(Some(process::describe(*status)));
                }
                // One that we interrupt ends as it likes.
                if status.success() || self.adapter.interrupt || listed(&self.adapter.success_exit_codes) {
                    return Ok(None);
                }
                Err(ExternalToolError::Failed {
                    program,
                    status: process::describe(*status),
                    said: said(&done.printed),
                })
            }
        }
    }

    fn wait_until_ready(&self, server: &Program, command: &Command, ready: &Ready) -> Result<(), ExternalToolError> {
        let ear = match ready {
            Ready::TcpPort(port) => Some(self.listen_for(command.host, port.port(&self.values), Transport::Tcp)?),
            Ready::UdpPort(port) => Some(self.listen_for(command.host, port.port(&self.values), Transport::Udp)?),
            Ready::Line(_) | Ready::After(_) => None,
        };
        let began = process::now();
        while began.elapsed() < READY {
            let is_ready = match ready {
                Ready::TcpPort(_) | Ready::UdpPort(_) => ear.as_ref().is_some_and(Ear::has_heard),
                Ready::Line(pattern) => {
                    let printed = server.control.printed();
                    pattern.is_match(&printed.stdout) || pattern.is_match(&printed.stderr)
                }
                Ready::After(time) => began.elapsed() >= *time,
            };
            if self.stop.load(Ordering::Relaxed) {
                return Err(ExternalToolError::Interrupted);
            }
            if server.has_ended() {
                return Err(ExternalToolError::ServerEnded {
                    program: server.name.clone(),
                    said: said(&server.control.printed()),
                });
            }
            if is_ready {
                return Ok(());
            }
            process::nap(POLL);
        }
        Err(ExternalToolError::NotReady {
            program: server.name.clone(),
            seconds: READY.as_secs(),
            said: said(&server.control.printed()),
        })
    }

    fn listen_for(&self, host: Host, port: Option<u16>, transport: Transport) -> Result<Ear, ExternalToolError> {
        let port = port.ok_or_else(|| ExternalToolError::ParamValue {
            adapter: self.adapter.name().to_owned(),
            name: "port",
            value: self.values.get("port").cloned().unwrap_or_default(),
            why: "no port",
        })?;
        Ear::prick(self.hosts, host, port, transport)
    }
}

/// A program in one of the hosts, and its watcher there. It ends with this value at the latest.
struct Program {
    name: String,
    control: Arc<Control>,
    done: Receiver<std::io::Result<Done>>,
    watcher: Option<JoinHandle<()>>,
}

impl Program {
    fn start(hosts: &dyn Hosts, where_: Host, plan: Plan) -> Result<Self, ExternalToolError> {
        let control = Arc::new(Control::default());
        let (tell, done) = mpsc::sync_channel(1);
        let name = plan.words.first().cloned().unwrap_or_default();
        let watcher = {
            let control = Arc::clone(&control);
            let work = move || {
                // Nobody may be waiting any more.
                let _ = tell.send(process::watch(&plan, &control));
            };
            hosts.spawn_thread(where_, Box::new(work)).map_err(ExternalToolError::Hosts)?
        };
        Ok(Self { name, control, done, watcher: Some(watcher) })
    }

    fn has_ended(&self) -> bool {
        self.watcher.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end, which its limit brings if nothing else does.
    fn end(self, stop: &AtomicBool) -> Result<Done, ExternalToolError> {
        loop {
            if stop.load(Ordering::Relaxed) {
                self.control.stop();
            }
            match self.done.recv_timeout(POLL) {
                Ok(done) => return done.map_err(|source| host(&format!("running {}", self.name), source)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ExternalToolError::Hosts(format!("the watcher of {} is gone", self.name)));
                }
            }
        }
    }

    /// Gives it time for its last words, then ends it.
    fn finish(self) -> Option<Done> {
        if let Ok(done) = self.done.recv_timeout(REPORT) {
            return done.ok();
        }
        self.control.stop();
        self.done.recv().ok()?.ok()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(watcher) = self.watcher.take() {
            // It has no panic to tell of that its channel did not tell.
            let _ = watcher.join();
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Transport {
    Tcp,
    Udp,
}

/// A thread in a host that looks until somebody listens at a port.
struct Ear {
    heard: Arc<AtomicBool>,
    enough: Arc<AtomicBool>,
}

impl Ear {
    fn prick(hosts: &dyn Hosts, where_: Host, port: u16, transport: Transport) -> Result<Self, ExternalToolError> {
        let heard = Arc::new(AtomicBool::new(false));
        let enough = Arc::new(AtomicBool::new(false));
        let ear = Self { heard: Arc::clone(&heard), enough: Arc::clone(&enough) };
        let work = move || {
            let began = process::now();
            while !enough.load(Ordering::Relaxed) && began.elapsed() < READY {
                if listens(port, transport) {
                    heard.store(true, Ordering::Release);
                    return;
                }
                process::nap(POLL);
            }
        };
        // It ends by itself, in its own time.
        hosts.spawn_thread(where_, Box::new(work)).map_err(ExternalToolError::Hosts)?;
        Ok(ear)
    }

    fn has_heard(&self) -> bool {
        self.heard.load(Ordering::Acquire)
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
    }
}

/// In the calling thread's namespace.
fn listens(port: u16, transport: Transport) -> bool {
    let has = |file: &str, check: fn(&str, u16) -> bool| {
        let table = fs::read_to_string(Path::new("/proc/thread-self/net").join(file));
        table.is_ok_and(|table| check(&table, port))
    };
    match transport {
        Transport::Tcp => has("tcp", listening::tcp) || has("tcp6", listening::tcp),
        Transport::Udp => has("udp", listening::udp) || has("udp6", listening::udp),
    }
}

fn host(doing: &str, source: std::io::Error) -> ExternalToolError {
    ExternalToolError::Host { doing: doing.to_owned(), source }
}

/// The end of what it said, behind a colon, for an error: complaints first.
fn said(printed: &Printed) -> String {
    let reported = [&printed.stderr, &printed.stdout];
    let text = reported.iter().find(|text| !text.trim().is_empty());
    text.map_or_else(String::new, |text| format!("; it said {:?}", read::tail(text)))
}

#[cfg(test)]
mod tests;
