//! A server in a process of its own, which can be killed, and its clients.

use std::future::Future;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use narrows_bus::{Bus, Condition, Key, Permissions, Settings};

/// Nothing takes that long, unless it never comes.
const NEVER: Duration = Duration::from_secs(60);

/// The bucket that agents may write.
pub(crate) const LEASES: &str = "lease_1";

/// Agents that the servers know.
pub(crate) const AGENTS: [&str; 2] = ["a", "b"];

/// Clients of one server.
pub(crate) struct World {
    pub(crate) hub: Arc<dyn Bus>,
    pub(crate) a: Arc<dyn Bus>,
    pub(crate) b: Arc<dyn Bus>,
    pub(crate) server: Process,
}

impl World {
    /// Waits until all clients are connected, and makes the streams.
    pub(crate) async fn new(server: Process, [hub, a, b]: [Arc<dyn Bus>; 3], settings: &Settings) -> Self {
        let world = Self { hub, a, b, server };
        for client in [&world.hub, &world.a, &world.b] {
            until(&**client, |now| now.server.is_some()).await;
        }
        world.hub.provide(settings).await.unwrap();
        world
    }
}

/// A server.
pub(crate) struct Process {
    child: Child,
    start: Box<dyn Fn() -> Child>,
}

impl Process {
    pub(crate) fn new(start: impl Fn() -> Child + 'static) -> Self {
        Self { child: start(), start: Box::new(start) }
    }

    /// `kill -9`, and the next one on the same files and the same port.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = (self.start)();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, which other asserts show.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program, and returns when it has said that it is ready.
pub(crate) fn ready(command: &mut Command, sign: &str) -> Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (out, log) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let mut said = String::new();
    // One of the two is silent until the end.
    let streams: [Box<dyn Read + Send>; 2] = [Box::new(out), Box::new(log)];
    let (sender, lines) = std::sync::mpsc::channel();
    for stream in streams {
        let sender = sender.clone();
        // The pipe is read to its end, so that the server never waits for us.
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                // Nobody listens once the server is ready.
                let _ = sender.send(line);
            }
        });
    }
    drop(sender);
    while !said.contains(sign) {
        let line = lines.recv_timeout(NEVER).unwrap_or_else(|_| panic!("not ready: {said}"));
        said.push_str(&line);
        said.push('\n');
    }
    child
}

/// An address that nobody else has, also while its server is down: of this process alone, and
/// with a port that the kernel gives to nobody.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let octet = 1 + high % 254;
    SocketAddr::from(([127, octet, middle, low], NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Keys that stay the same for all processes of a test: from numbers, not secret.
pub(crate) struct Keys {
    pub(crate) hub: Key,
    pub(crate) agents: [(Key, Permissions); 2],
}

impl Keys {
    pub(crate) fn new() -> Self {
        let agent = |id: &&str| (Key::new(), Permissions::agent(id, LEASES));
        Self { hub: Key::new(), agents: AGENTS.each_ref().map(agent) }
    }

    /// The same in another process.
    pub(crate) fn from_seeds(text: &str) -> Self {
        let mut keys = text.split(',').map(|seed| Key::from_seed(seed).unwrap());
        let hub = keys.next().unwrap();
        let agents = AGENTS.map(|id| (keys.next().unwrap(), Permissions::agent(id, LEASES)));
        Self { hub, agents }
    }

    pub(crate) fn seeds(&self) -> String {
        let agents = self.agents.iter().map(|(key, _)| key.seed());
        [self.hub.seed()].into_iter().chain(agents).collect::<Vec<_>>().join(",")
    }
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(NEVER, what).await.expect("it never came")
}

/// Waits until a client's condition is as wanted, and returns it.
pub(crate) async fn until(bus: &dyn Bus, wanted: impl FnMut(&Condition) -> bool) -> Condition {
    let mut condition = bus.condition();
    soon(condition.wait_for(wanted)).await.unwrap().clone()
}
