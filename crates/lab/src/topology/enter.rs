//! Into a node of a lab that another process holds.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use nix::sched::{CloneFlags, setns};

use super::state::{LabId, find};
use crate::error::LabError;
use crate::placement::Placement;

/// Moves this process into a node of a lab. What it starts, or becomes by `exec`, lives there.
///
/// Must be called before any thread starts: the kernel lets only a process of one thread into
/// another user namespace.
pub fn enter_node(id: &LabId, node: &str) -> Result<(), LabError> {
    let state = find(id)?;
    let nodes = state.description.map(|description| description.nodes).unwrap_or_default();
    let Some(found) = nodes.iter().find(|one| one.name == node) else {
        return Err(LabError::NoSuchNode {
            id: id.to_string(),
            node: node.to_owned(),
            nodes: nodes.into_iter().map(|one| one.name).collect(),
        });
    };
    let wrong = |source| LabError::kernel(format!("entering the {node} of lab {id}"), source);
    let network = File::open(&found.path).map_err(wrong)?;
    let holders = format!("/proc/{}/ns/user", state.process);
    // Both are opened before the first step: inside, this process has no rights to what is outside.
    let user = File::open(&holders).map_err(wrong)?;
    let same = fs::metadata("/proc/self/ns/user").map_err(wrong)?.ino() == user.metadata().map_err(wrong)?.ino();
    if !same {
        setns(&user, CloneFlags::CLONE_NEWUSER).map_err(|errno| wrong(errno.into()))?;
    }
    setns(&network, CloneFlags::CLONE_NEWNET).map_err(|errno| wrong(errno.into()))?;
    if let Some(placement) = state.path_cpu.and_then(|cpu| Placement::choose(Some(cpu))) {
        placement.keep_host_here();
    }
    Ok(())
}
