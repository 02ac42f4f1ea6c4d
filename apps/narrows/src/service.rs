//! `narrows serve` under a service manager: what that gives, and what it is told.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use narrows_wire::Psk;
use sd_notify::NotifyState;

use crate::exit::Failure;

/// Tells the manager, if there is one, that clients can come.
pub(crate) fn is_ready() {
    tell(&NotifyState::Ready);
}

/// Tells the manager that no more will be answered.
pub(crate) fn is_stopping() {
    tell(&NotifyState::Stopping);
}

fn tell(state: &NotifyState) {
    // A manager that does not listen is no reason to stop serving.
    if let Err(error) = sd_notify::notify(std::slice::from_ref(state)) {
        tracing::warn!(%error, "cannot tell the service manager");
    }
}

/// The key that the manager hands over: systemd's `LoadCredential=psk:FILE`. The manager keeps
/// others from reading it; its mode may show an access list, which `key::read` would refuse.
pub(crate) fn key() -> Result<Option<Psk>, Failure> {
    let Some(folder) = std::env::var_os("CREDENTIALS_DIRECTORY") else { return Ok(None) };
    let path = PathBuf::from(folder).join("psk");
    if !path.exists() {
        return Ok(None);
    }
    let unreadable = |error: &dyn std::fmt::Display| Failure::usage(format!("the key in {}: {error}", path.display()));
    let mut content = Vec::new();
    let file = File::open(&path).map_err(|error| unreadable(&error))?;
    // Two more for the newline, one more to tell that it is too long.
    file.take(Psk::MAX_OCTETS as u64 + 3).read_to_end(&mut content).map_err(|error| unreadable(&error))?;
    Psk::from_file_content(&content).map(Some).map_err(|error| unreadable(&error))
}
