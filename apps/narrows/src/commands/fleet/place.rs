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
        return of_root(Path::new("/var/lib"), part);
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let base = std::env::var_os("XDG_STATE_HOME").filter(|base| !base.is_empty()).map(PathBuf::from);
    base.or_else(home).unwrap_or_else(|| PathBuf::from("/var/lib")).join("narrows").join(part)
}

/// The folder that the service has too. Earlier versions had another one when they were started by
/// hand: who has that keeps it.
fn of_root(base: &Path, part: &str) -> PathBuf {
    let (usual, earlier) = (base.join(format!("narrows-{part}")), base.join("narrows").join(part));
    if earlier.exists() && !usual.exists() { earlier } else { usual }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_an_earlier_version_stays_in_use() {
        let base = tempfile::tempdir().unwrap();
        let of = || of_root(base.path(), "hub").strip_prefix(base.path()).unwrap().to_str().unwrap().to_owned();
        assert_eq!(of(), "narrows-hub");
        std::fs::create_dir_all(base.path().join("narrows/hub")).unwrap();
        assert_eq!(of(), "narrows/hub");
        std::fs::create_dir(base.path().join("narrows-hub")).unwrap();
        assert_eq!(of(), "narrows-hub");
    }
}
