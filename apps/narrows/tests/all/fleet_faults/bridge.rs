//! Namespaces on a bridge, one for each part of a fleet.

use std::process::Command;

use serde_json::Value;

use crate::common::{Running, narrows};

/// Hosts, and between them a bridge; gone when dropped.
pub(crate) struct Bridge {
    hosts: Vec<String>,
    bridge: String,
}

/// Where a part runs: in a namespace, or beside the test.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) namespace: Option<String>,
    pub(crate) address: String,
}

impl Place {
    pub(crate) fn local() -> Self {
        Self { namespace: None, address: "127.0.0.1".to_owned() }
    }

    /// The command, there.
    pub(crate) fn run(&self, program: &Command) -> Command {
        let mut command = match &self.namespace {
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(program.get_program());
                command
            }
            None => Command::new(program.get_program()),
        };
        command.args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

fn ip(arguments: &str) {
    let ended = Command::new("ip").args(arguments.split_whitespace()).output().expect("there is `ip`");
    assert!(ended.status.success(), "ip {arguments}: {ended:?}");
}

fn tc(namespace: &str, arguments: &str) {
    let ended = Command::new("tc").args(["-n", namespace]).args(arguments.split(' ')).output().expect("there is `tc`");
    assert!(ended.status.success(), "tc {arguments}: {ended:?}");
}

impl Bridge {
    pub(crate) fn new(hosts: usize) -> Self {
        let name = |role: &str| format!("nwf{role}-{}", std::process::id());
        let fleet = Self { hosts: (0..hosts).map(|host| name(&host.to_string())).collect(), bridge: name("b") };
        for name in fleet.all() {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        ip(&format!("-n {} link add bridge0 type bridge", fleet.bridge));
        ip(&format!("-n {} link set bridge0 up", fleet.bridge));
        for (number, name) in fleet.hosts.iter().enumerate() {
            ip(&format!("-n {} link add port{number} type veth peer name eth0 netns {name}", fleet.bridge));
            ip(&format!("-n {} link set port{number} master bridge0 up", fleet.bridge));
            // What a host of a small site has: light runs on a path without a rate see the hosts.
            let shaped = format!("qdisc add dev port{number} root tbf rate 100mbit burst 15kb latency 50ms");
            tc(&fleet.bridge, &shaped);
            ip(&format!("-n {name} addr add {}/24 dev eth0", address(number)));
            ip(&format!("-n {name} link set eth0 up"));
        }
        fleet
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.hosts.iter().chain([&self.bridge])
    }

    /// The program within a host.
    pub(crate) fn within(&self, host: usize, arguments: &[&str]) -> Command {
        self.place(host).run(&narrows(arguments))
    }

    pub(crate) fn place(&self, host: usize) -> Place {
        Place { namespace: Some(self.hosts[host].clone()), address: address(host) }
    }

    /// Pulls the plug of a host, or puts it back.
    pub(crate) fn plug(&self, host: usize, state: &str) {
        ip(&format!("-n {} link set port{host} {state}", self.bridge));
    }

    /// What one host sends another goes through that one, as through a router; what comes back does
    /// not.
    pub(crate) fn route_through(&self, router: usize, (from, to): (usize, usize)) {
        let forward = "cd /proc/sys/net/ipv4; echo 1 > ip_forward
            for one in all eth0; do echo 0 > conf/$one/send_redirects; done";
        let mut shell = Command::new("sh");
        let ended = self.place(router).run(shell.args(["-ec", forward])).output().expect("there is `sh`");
        assert!(ended.status.success(), "{ended:?}");
        ip(&format!("-n {} route replace {}/32 via {}", self.hosts[from], address(to), address(router)));
    }

    /// What reaches a host comes at this rate.
    pub(crate) fn shape(&self, host: usize, rate: &str) {
        tc(&self.bridge, &format!("qdisc replace dev port{host} root tbf rate {rate} burst 15kb latency 2000ms"));
    }

    pub(crate) fn start(&self, host: usize, arguments: &[&str]) -> Running {
        Running::start(&mut self.within(host, arguments))
    }

    pub(crate) fn run(&self, host: usize, arguments: &[&str]) -> Value {
        let ended = self.start(host, arguments).end();
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {ended:?}");
        serde_json::from_str(&ended.stdout).unwrap_or(Value::Null)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        for name in self.all() {
            // Best effort: a namespace that is left behind holds nothing but itself.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

pub(crate) fn address(host: usize) -> String {
    format!("10.98.0.{}", host + 1)
}
