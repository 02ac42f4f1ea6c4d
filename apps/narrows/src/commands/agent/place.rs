//! Where an agent keeps what it knows.

use std::path::PathBuf;

use narrows_agent::State;

use super::failure;
use crate::exit::Failure;

/// Where the agent keeps its key, its plan and its results.
#[derive(Debug, clap::Args)]
pub(crate) struct StateArgs {
    /// Folder of the agent [default: /var/lib/narrows-agent for root, else
    /// ~/.local/state/narrows/agent]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl StateArgs {
    /// Opens the folder, or makes it.
    pub(super) fn open(&self) -> Result<State, Failure> {
        let folder = self.state.clone().unwrap_or_else(|| crate::state::folder("narrows-agent", "narrows/agent"));
        State::open(&folder).map_err(failure)
    }
}

/// The host's name up to its first dot, in letters that a name may have.
pub(super) fn host_name() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name_of(&text)
}

fn name_of(host: &str) -> String {
    let first = host.trim().split('.').next().unwrap_or_default();
    let name: String = first.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    if name.is_empty() { "agent".to_owned() } else { name.chars().take(narrows_fleet::keys::LONGEST_NAME).collect() }
}

/// As plans name it: `host:port`.
pub(super) fn server_address(host: &str, port: u16) -> String {
    let bare = host.trim_matches(['[', ']']);
    if bare.contains(':') { format!("[{bare}]:{port}") } else { format!("{bare}:{port}") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_address_gets_its_port() {
        for (host, address) in [("h.example", "h.example:7"), ("2001:db8::1", "[2001:db8::1]:7"), ("[::1]", "[::1]:7")]
        {
            assert_eq!(super::server_address(host, 7), address);
        }
    }

    #[test]
    fn a_hosts_name_is_a_name_of_the_fleet() {
        for (host, name) in [("ams-1.example.net\n", "ams-1"), ("web_2", "web-2"), ("", "agent")] {
            assert_eq!(super::name_of(host), name);
            assert!(name.parse::<narrows_fleet::keys::Name>().is_ok());
        }
    }
}
