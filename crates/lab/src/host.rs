//! A host at an end of the real-time path.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::error::LabError;
use crate::namespace::Namespace;
use crate::node::Node;
use crate::placement::Placement;
use crate::plan::{Addresses, Side};

/// A host at one end of the path: a [`Node`] with one device. Clones are the same host; its
/// namespace lives until the last clone, thread and process in it is gone, but its device and the
/// path end with the lab.
#[derive(Debug, Clone)]
pub struct LabHost {
    side: Side,
    addresses: Addresses,
    mtu: u16,
    node: Node,
}

impl LabHost {
    pub(crate) fn new(
        side: Side,
        addresses: Addresses,
        mtu: u16,
        namespace: Namespace,
        placement: Option<&Placement>,
    ) -> Self {
        Self { side, addresses, mtu, node: Node::new(side.name(), Some(addresses), Arc::new(namespace), placement) }
    }

    /// Which end it is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Its addresses on the path.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// MTU of its device, in IP octets: that of the first hop on its way out.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// The name for `ip netns exec`, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.node.namespace_name()
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        self.node.namespace()
    }

    /// A file that stands for its namespace, for `nsenter --net=…`, as long as this process lives.
    pub fn namespace_path(&self) -> PathBuf {
        self.node.namespace_path()
    }

    /// As [`Node::run`].
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, LabError> {
        self.node.run(work)
    }

    /// As [`Node::spawn_thread`].
    pub fn spawn_thread<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<JoinHandle<R>, LabError> {
        self.node.spawn_thread(work)
    }

    /// As [`Node::spawn`].
    pub fn spawn(&self, command: &mut Command) -> Result<Child, LabError> {
        self.node.spawn(command)
    }
}
