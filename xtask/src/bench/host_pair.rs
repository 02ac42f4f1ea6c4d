//! Two network namespaces with a veth pair between them, for one comparison.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::program;

/// Where iproute2 keeps named namespaces.
const NAMED: &str = "/run/netns";
/// How our names begin: `narrows-bench-<process>-<side>`.
const PREFIX: &str = "narrows-bench-";
/// The near end's interface.
pub(super) const INTERFACE: &str = "veth-near";
/// The peer's address.
pub(super) const REMOTE: &str = "10.77.0.2";
const NEAR: &str = "10.77.0.1";

/// The pair. Dropping it removes both namespaces, and with them the interfaces.
pub(super) struct HostPair {
    near: String,
    remote: String,
    ours: bool,
}

impl HostPair {
    /// Lays the pair, with every offload as the kernel sets it.
    pub(super) fn lay() -> Result<Self> {
        sweep();
        let name = |side: &str| format!("{PREFIX}{}-{side}", std::process::id());
        let host_pair = Self { near: name("near"), remote: name("remote"), ours: true };
        let (near, remote) = (host_pair.near.as_str(), host_pair.remote.as_str());
        ip(&["netns", "add", near])?;
        ip(&["netns", "add", remote])?;
        let peer = ["peer", "name", "veth-far", "netns", remote];
        let pair = ["link", "add", INTERFACE, "netns", near, "type", "veth"];
        ip(&[&pair[..], &peer[..]].concat())?;
        for (side, interface, address) in [(near, INTERFACE, NEAR), (remote, "veth-far", REMOTE)] {
            ip(&["-n", side, "addr", "add", &format!("{address}/24"), "dev", interface])?;
            ip(&["-n", side, "link", "set", interface, "up"])?;
            ip(&["-n", side, "link", "set", "lo", "up"])?;
        }
        Ok(host_pair)
    }

    /// Why there can be no pair on this machine.
    pub(super) fn obstacle() -> Option<&'static str> {
        let root = crate::shell::quiet("id", &["-u"]).is_some_and(|id| id.trim() == "0");
        if !root {
            return Some("network namespaces need root");
        }
        (!program::found("ip")).then_some("ip (iproute2) is not installed")
    }

    /// Two namespaces that something else made, and will take away again.
    pub(super) fn of_others(near: &str, remote: &str) -> Self {
        Self { near: near.to_owned(), remote: remote.to_owned(), ours: false }
    }

    /// Shapes what the sender's end sends by the kernel's token bucket: Mb/s, and the depth of its
    /// queue.
    pub(super) fn shape(&self, mbps: u64, queue_octets: u64) -> Result<()> {
        let (rate, limit) = (format!("{mbps}mbit"), queue_octets.to_string());
        // Two milliseconds of the rate, and a segmented frame at least.
        let burst = (mbps * 1_000_000 / 8 / 500).max(70_000).to_string();
        let shaper = ["qdisc", "replace", "dev", INTERFACE, "root", "tbf", "rate", &rate];
        let output = self.near("tc", &[&shaper[..], &["burst", &burst, "limit", &limit]].concat()).output()?;
        if !output.status.success() {
            bail!("tc: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(())
    }

    /// A program in the sender's namespace.
    pub(super) fn near(&self, name: &str, args: &[&str]) -> Command {
        inside(&self.near, name, args)
    }

    /// A program in the receiver's namespace.
    pub(super) fn remote(&self, name: &str, args: &[&str]) -> Command {
        inside(&self.remote, name, args)
    }
}

impl Drop for HostPair {
    fn drop(&mut self) {
        for name in [&self.near, &self.remote].into_iter().filter(|_| self.ours) {
            // What was never made need not go.
            let _ = ip(&["netns", "del", name]);
        }
    }
}

fn inside(namespace: &str, name: &str, args: &[&str]) -> Command {
    // A server must not outlive a benchmark that was killed.
    let mut command = if program::found("setpriv") {
        let mut command = program::command("setpriv");
        command.args(["--pdeathsig", "KILL", "ip"]);
        command
    } else {
        program::command("ip")
    };
    command.args(["netns", "exec", namespace, name]).args(args);
    command
}

fn ip(args: &[&str]) -> Result<()> {
    let output = program::command("ip").args(args).output()?;
    if !output.status.success() {
        bail!("ip {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Removes what earlier benchmarks left that were killed.
fn sweep() {
    let Ok(entries) = fs::read_dir(NAMED) else {
        return;
    };
    for name in entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        if owner(&name).is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // Another benchmark may be sweeping too.
            let _ = ip(&["netns", "del", &name]);
        }
    }
}

/// The process that made a namespace of this name; `None` if it is not one of ours.
fn owner(name: &str) -> Option<u32> {
    let (process, side) = name.strip_prefix(PREFIX)?.split_once('-')?;
    matches!(side, "near" | "remote").then(|| process.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::owner;

    #[test]
    fn only_our_names_have_owners() {
        assert_eq!(owner("narrows-bench-17-near"), Some(17));
        assert_eq!(owner("narrows-bench-17-remote"), Some(17));
        for other in ["narrows-17-0-sender", "narrows-bench-near", "narrows-bench-x-remote", "blue"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
