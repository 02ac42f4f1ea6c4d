//! Where a hub keeps what it keeps.

use std::path::{Path, PathBuf};

/// State directory and record.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlaceArgs {
    /// Directory for keys and the bus; by default the one of the record's file if that is named,
    /// else of the service, else /var/lib/narrows/hub, for users ~/.local/state/narrows/hub
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,
    /// The record: `sqlite:FILE`, or `postgres://user@host/database` for more than 50 hosts; by
    /// default hub.db in the state directory
    #[arg(long, value_name = "URL")]
    pub(super) store: Option<String>,
}

impl PlaceArgs {
    /// The state directory.
    pub(crate) fn state(&self) -> PathBuf {
        let file = self.store.as_deref().and_then(|url| url.strip_prefix("sqlite:")).map(Path::new);
        let beside = file.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
        let named = self.state.clone().or_else(|| beside.map(Path::to_owned));
        named.unwrap_or_else(|| state_of("hub"))
    }

    /// The address of the record.
    pub(super) fn store(&self) -> String {
        self.store.clone().unwrap_or_else(|| format!("sqlite:{}", self.state().join("hub.db").display()))
    }
}

/// The usual state directory of a part of a fleet.
pub(crate) fn state_of(part: &str) -> PathBuf {
    // systemd gives a service its own; several are separated by colons.
    let of_service = std::env::var("STATE_DIRECTORY").ok();
    if let Some(first) = of_service.as_deref().and_then(|all| all.split(':').next()).filter(|one| !one.is_empty()) {
        return PathBuf::from(first);
    }
    if nix::unistd::geteuid().is_root() {
        return Path::new("/var/lib/narrows").join(part);
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let base = std::env::var_os("XDG_STATE_HOME").filter(|base| !base.is_empty()).map(PathBuf::from);
    base.or_else(home).unwrap_or_else(|| PathBuf::from("/var/lib")).join("narrows").join(part)
}
