//! A node of a lab: a namespace to run code and programs in.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::error::LabError;
use crate::namespace::Namespace;
use crate::placement::Placement;
use crate::plan::Addresses;

/// A node. Clones are the same node; its namespace lives until the last clone, thread and process
/// in it is gone, but its devices and the path end with the lab.
#[derive(Debug, Clone)]
pub struct Node {
    name: String,
    addresses: Option<Addresses>,
    namespace: Arc<Namespace>,
    placement: Option<Placement>,
}

impl Node {
    pub(crate) fn new(
        name: impl Into<String>,
        addresses: Option<Addresses>,
        namespace: Arc<Namespace>,
        placement: Option<&Placement>,
    ) -> Self {
        Self { name: name.into(), addresses, namespace, placement: placement.copied() }
    }

    /// A node made by hand: a new namespace without addresses, links or routes.
    pub fn alone(name: &str) -> Result<Self, LabError> {
        let namespace = Namespace::create(name, None)?;
        Ok(Self::new(name, None, Arc::new(namespace), Placement::choose(None).as_ref()))
    }

    /// `sender`, `receiver`, `router1`, `switch1`, `cross-1-source`, and so on.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The addresses by which the others know it: of a router, those that answer on the way from
    /// the sender. A switch has none.
    pub fn addresses(&self) -> Option<Addresses> {
        self.addresses
    }

    /// The name for `ip netns exec`, if it has one.
    pub fn namespace_name(&self) -> Option<&str> {
        self.namespace.name()
    }

    /// A file that stands for its namespace, for `nsenter --net=…`, as long as this process lives.
    pub fn namespace_path(&self) -> PathBuf {
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(self.namespace.file());
        PathBuf::from(format!("/proc/{}/fd/{descriptor}", std::process::id()))
    }

    /// Where it lives.
    pub fn namespace(&self) -> &Arc<Namespace> {
        &self.namespace
    }

    /// Runs `work` in a thread inside the node and waits for it: sockets it makes live there, also
    /// after it is done. A panic of `work` goes on in the caller.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, LabError> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| self.enter().map(|()| work()));
            match inside.join() {
                Ok(result) => result.map_err(|source| self.entering(source)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Starts a thread inside the node. Threads and processes that it starts live there too.
    pub fn spawn_thread<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<JoinHandle<R>, LabError> {
        // A thread is born where its parent is.
        let name = format!("narrows-{}", self.name);
        self.run(|| thread::Builder::new().name(name).spawn(work))?
            .map_err(|source| LabError::kernel("starting a thread", source))
    }

    /// Starts a program inside the node.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, LabError> {
        let program = command.get_program().to_string_lossy().into_owned();
        self.run(|| command.spawn())?
            .map_err(|source| LabError::kernel(format!("starting {program} in the {}", self.name), source))
    }

    fn enter(&self) -> io::Result<()> {
        if let Some(placement) = self.placement {
            placement.keep_host_here();
        }
        self.namespace.enter()
    }

    fn entering(&self, source: io::Error) -> LabError {
        LabError::kernel(format!("entering the namespace of the {}", self.name), source)
    }
}
