//! Where the parts of a fleet keep what they keep.

use std::path::{Path, PathBuf};

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
