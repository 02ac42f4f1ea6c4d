//! Three network namespaces in a row, for the tests that need a path of real kernels. Needs root
//! and the `ip` tool.

use std::fs::File;
use std::process::Command;

use nix::sched::{CloneFlags, setns};

/// The roles, in order along the path.
pub(crate) const NEAR: usize = 0;
pub(crate) const ROUTER: usize = 1;
pub(crate) const REMOTE: usize = 2;

/// Addresses of the remote host, and of the router as the near host sees it: IPv4 and IPv6.
pub(crate) const REMOTE_ADDRESSES: [&str; 2] = ["10.88.2.2", "fd88:2::2"];
pub(crate) const ROUTER_ADDRESSES: [&str; 2] = ["10.88.1.1", "fd88:1::1"];

/// near - router - far, each in a namespace of its own, gone when dropped. All are kernels and
/// nothing else; the router's interfaces are `left` and `right`, the hosts' `near0`.
pub(crate) struct Namespaces {
    names: [String; 3],
}

/// Runs a command to its end; it must succeed.
pub(crate) fn run(command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

impl Namespaces {
    /// Their names hold the label and the process, so that tests at work at once do not meet.
    pub(crate) fn new(label: &str) -> Self {
        let names = ["n", "r", "f"].map(|role| format!("nn{role}-{label}-{}", std::process::id()));
        for name in &names {
            run(&format!("ip netns add {name}"));
            run(&format!("ip -n {name} link set lo up"));
        }
        let path = Self { names };
        let [near, router, remote] = &path.names;
        run(&format!("ip -n {near} link add near0 type veth peer name left netns {router}"));
        run(&format!("ip -n {remote} link add near0 type veth peer name right netns {router}"));
        for (name, link, v4, v6) in [
            (near, "near0", "10.88.1.2/24", "fd88:1::2/64"),
            (router, "left", "10.88.1.1/24", "fd88:1::1/64"),
            (router, "right", "10.88.2.1/24", "fd88:2::1/64"),
            (remote, "near0", "10.88.2.2/24", "fd88:2::2/64"),
        ] {
            run(&format!("ip -n {name} addr add {v4} dev {link}"));
            run(&format!("ip -n {name} addr add {v6} dev {link} nodad"));
            run(&format!("ip -n {name} link set {link} up"));
        }
        for (name, v4, v6) in [(near, "10.88.1.1", "fd88:1::1"), (remote, "10.88.2.1", "fd88:2::1")] {
            run(&format!("ip -n {name} route add default via {v4}"));
            run(&format!("ip -n {name} -6 route add default via {v6}"));
        }
        path.sysctl(ROUTER, "net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
        for role in [ROUTER, REMOTE] {
            path.sysctl(role, "net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0");
        }
        path
    }

    /// The command that runs another in this role's namespace.
    pub(crate) fn within(&self, role: usize) -> String {
        format!("ip netns exec {}", self.names[role])
    }

    /// The command that configures this role's links.
    pub(crate) fn ip(&self, role: usize) -> String {
        format!("ip -n {}", self.names[role])
    }

    pub(crate) fn sysctl(&self, role: usize, settings: &str) {
        run(&format!("{} sysctl -qw {settings}", self.within(role)));
    }

    /// Moves the calling thread, and those that it will start.
    pub(crate) fn enter(&self, role: usize) {
        let file = File::open(format!("/run/netns/{}", self.names[role])).unwrap();
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            // Best effort: a namespace that is left behind holds nothing but itself.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}
