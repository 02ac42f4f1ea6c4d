//! Where a hub keeps what it keeps.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::commands::fleet::state_of;
use crate::exit::Failure;

/// State directory and record.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlaceArgs {
    /// Directory for keys and the bus; by default the one of the record's file if that is named,
    /// else of the service, else /var/lib/narrows-hub, for users ~/.local/state/narrows/hub
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

    /// Makes this process the only one that works in the state directory. A hub that runs keeps
    /// results that a copy of its record would lack.
    pub(super) fn lock(&self) -> Result<File, Failure> {
        let state = self.state();
        let lock = narrows_agent::lock(&state).map_err(|error| Failure::host(error.to_string()))?;
        lock.ok_or_else(|| Failure::usage(format!("a hub works in {} already: stop it first", state.display())))
    }

    /// The same for what makes no state directory: where none is, no hub works in it.
    pub(super) fn lock_if_there(&self) -> Result<Option<File>, Failure> {
        self.state().is_dir().then(|| self.lock()).transpose()
    }

    /// The address of the record.
    pub(super) fn store(&self) -> String {
        self.store.clone().unwrap_or_else(|| format!("sqlite:{}", self.state().join("hub.db").display()))
    }
}
