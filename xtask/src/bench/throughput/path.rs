//! The project's own real-time link between two namespaces, for as long as it is wanted.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::super::host_pair::HostPair;
use super::super::program::{POLL, Program, built, command, nap};
use super::Hosts;
use crate::shell::now;

/// A path being played. Dropping it ends it.
pub(super) struct Path {
    pub(super) hosts: Hosts,
    player: Option<Program>,
    files: [PathBuf; 2],
}

/// How long a path may take until it stands.
const READY: Duration = Duration::from_secs(20);

impl Path {
    /// One link, both ways alike.
    pub(super) fn start(mbps: u64, rtt_ms: u64) -> Result<Self> {
        let file = |end: &str| std::env::temp_dir().join(format!("narrows-bench-{}-{end}", std::process::id()));
        let (scenario, said) = (file("path.toml"), file("path.txt"));
        std::fs::write(&scenario, self::scenario(mbps, rtt_ms))?;
        // It says where its hosts are while it runs, on standard error.
        let shell = "exec \"$0\" emulate \"$1\" 2>\"$2\"";
        let mut player = command("sh");
        player.args(["-c", shell]).arg(built("narrows")).arg(&scenario).arg(&said);
        let mut player = Program::start(player)?;
        let clock = now();
        let hosts = loop {
            if let Some(hosts) = std::fs::read_to_string(&said).ok().as_deref().and_then(hosts) {
                break hosts;
            }
            if clock.elapsed() > READY || !player.running() {
                let said = std::fs::read_to_string(&said).unwrap_or_default();
                anyhow::bail!("no path: {}", said.lines().last().unwrap_or("it says nothing"));
            }
            nap(POLL);
        };
        Ok(Self { hosts, player: Some(player), files: [scenario, said] })
    }

    /// Ends it; what it says of its own timing, and whether that was valid.
    pub(super) fn end(mut self) -> Result<(String, bool)> {
        if let Some(player) = self.player.take() {
            player.stop(READY)?;
        }
        let said = std::fs::read_to_string(&self.files[1]).context("what the path said")?;
        let honest = said.lines().find_map(|line| line.split_once("the path: "));
        let valid = said.lines().any(|line| line.ends_with("timing valid"));
        Ok((honest.map_or_else(String::new, |(_, what)| what.to_owned()), valid))
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        if let Some(player) = self.player.take() {
            // Killed by drop if it does not end.
            let _ = player.stop(READY);
        }
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}

fn scenario(mbps: u64, rtt_ms: u64) -> String {
    const LEAST: u64 = 100;
    let product = mbps * 1_000_000 / 8 * rtt_ms / 1_000;
    let packets = (product / 1_500).max(LEAST);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "name = \"bench-{mbps}-{rtt_ms}\"\nabout = \"a link for benchmarks\"\nseed = 1\n\n[[hop]]\nname = \"link\"\n\
         rate = \"{mbps} Mbit/s\"\ndelay = \"{} us\"\nqueue = \"{packets} packets\"\n",
        rtt_ms * 500
    );
    text
}

/// The lines `# sender ADDRESS ip netns exec NAME` and the same of the receiver.
fn hosts(said: &str) -> Option<Hosts> {
    let of = |side: &str| {
        let line = said.lines().find(|line| line.starts_with(side))?;
        let address = line.split_whitespace().nth(2)?;
        let name = line.split_once("netns exec ")?.1;
        Some((address.to_owned(), name.trim().to_owned()))
    };
    let ((_, near), (address, remote)) = (of("# sender")?, of("# receiver")?);
    Some(Hosts { host_pair: HostPair::of_others(&near, &remote), address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_in_what_a_path_says() {
        let said = "# x: capacity 1\n# sender   10.9.0.1        ip netns exec narrows-1-0-sender\n\
                    # receiver 10.9.0.2        ip netns exec narrows-1-0-receiver\n";
        let found = hosts(said).expect("both are there");
        assert_eq!(found.address, "10.9.0.2");
        assert!(hosts(said.lines().next().expect("a line")).is_none());
    }

    #[test]
    fn queues_are_a_product_deep() {
        assert!(scenario(100, 20).contains("\"166 packets\""), "{}", scenario(100, 20));
        assert!(scenario(10, 1).contains("\"100 packets\""));
    }
}
