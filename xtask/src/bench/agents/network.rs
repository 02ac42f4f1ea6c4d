//! Hosts in namespaces on two sides of one link of 100 Mbit/s, whose ends are routers.

use std::net::Ipv4Addr;
use std::process::Command;

use anyhow::{Result, bail};

use crate::bench::program::command;

/// Hosts on either side, at most.
pub(super) const MOST_PER_SIDE: u8 = 10;
/// The ends of the shared link as traces from the left see it, and from the right.
pub(super) const SHARED: [[&str; 2]; 2] = [["10.90.1.254", "10.90.9.2"], ["10.90.2.254", "10.90.9.1"]];

/// Gone when dropped.
pub(super) struct Network {
    names: Vec<String>,
}

/// A host: `left-3` is 10.90.1.3. The hub is one of the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) side: u8,
    pub(super) number: u8,
}

impl Host {
    pub(super) const HUB: Self = Self { side: 1, number: MOST_PER_SIDE + 1 };

    /// All that measure, with so many on either side.
    pub(super) fn all(per_side: u8) -> impl Iterator<Item = Self> {
        [1, 2].into_iter().flat_map(move |side| (1..=per_side).map(move |number| Self { side, number }))
    }

    pub(super) fn name(self) -> String {
        format!("{}-{}", if self.side == 1 { "left" } else { "right" }, self.number)
    }

    pub(super) fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 90, self.side, self.number)
    }
}

impl Network {
    pub(super) fn lay(per_side: u8) -> Result<Self> {
        let mut network = Self { names: Vec::new() };
        for side in [1, 2] {
            let router = network.add(&router(side))?;
            run("ip", &format!("netns exec {router} sysctl -qw net.ipv4.ip_forward=1"))?;
            // Every hop answers every trace.
            run("ip", &format!("netns exec {router} sysctl -qw net.ipv4.icmp_ratelimit=0"))?;
            run("ip", &format!("-n {router} link add lan type bridge"))?;
            run("ip", &format!("-n {router} addr add 10.90.{side}.254/24 dev lan"))?;
            run("ip", &format!("-n {router} link set lan up"))?;
        }
        let [left, right] = [1, 2].map(|side| name(&router(side)));
        run("ip", &format!("-n {left} link add core type veth peer name core netns {right}"))?;
        for (side, router) in [(1, &left), (2, &right)] {
            run("ip", &format!("-n {router} addr add 10.90.9.{side}/30 dev core"))?;
            run("ip", &format!("-n {router} link set core up"))?;
            run("ip", &format!("-n {router} route add 10.90.{0}.0/24 via 10.90.9.{0}", 3 - side))?;
            shape(router, "core", 100)?;
        }
        for host in Host::all(per_side).chain([Host::HUB]) {
            let (own, router, port) =
                (network.add(&host.name())?, name(&router(host.side)), format!("port{}", host.number));
            run("ip", &format!("-n {router} link add {port} type veth peer name eth0 netns {own}"))?;
            run("ip", &format!("-n {router} link set {port} master lan up"))?;
            run("ip", &format!("-n {own} addr add {}/24 dev eth0", host.address()))?;
            run("ip", &format!("-n {own} link set eth0 up"))?;
            run("ip", &format!("-n {own} route add default via 10.90.{}.254", host.side))?;
            shape(&router, &port, 300)?;
            shape(&own, "eth0", 300)?;
        }
        Ok(network)
    }

    fn add(&mut self, role: &str) -> Result<String> {
        let name = name(role);
        run("ip", &format!("netns add {name}"))?;
        self.names.push(name.clone());
        run("ip", &format!("-n {name} link set lo up"))?;
        Ok(name)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            // What is left behind holds nothing but itself.
            let _ = run("ip", &format!("netns del {name}"));
        }
    }
}

/// A program at a host, or at a router.
pub(super) fn within(role: &str, program: &str) -> Command {
    // Nothing outlives a benchmark that was killed.
    let mut command = command("setpriv");
    command.args(["--pdeathsig", "KILL", "ip", "netns", "exec", &name(role), program]);
    command
}

pub(super) fn router(side: u8) -> String {
    format!("router{side}")
}

fn name(role: &str) -> String {
    format!("narrows-agents-{}-{role}", std::process::id())
}

fn shape(namespace: &str, interface: &str, mbps: u32) -> Result<()> {
    // As little at once as the kernel can time: short trains see the rate, and no bucket.
    let shaper = format!("qdisc add dev {interface} root tbf rate {mbps}mbit burst 15kb latency 50ms");
    run("tc", &format!("-n {namespace} {shaper}"))
}

fn run(program: &str, arguments: &str) -> Result<()> {
    let output = command(program).args(arguments.split(' ')).output()?;
    if !output.status.success() {
        bail!("{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
