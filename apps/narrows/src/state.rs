//! Where programs that keep something keep it.

use std::path::{Path, PathBuf};

/// The folder that systemd gives a service; else `of_root` under /var/lib for root, and `of_user`
/// under the user's state directory for others (XDG Base Directory Specification).
pub(crate) fn folder(of_root: &str, of_user: &str) -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    // systemd separates several by colons.
    let of_service = named("STATE_DIRECTORY").and_then(|all| all.to_str()?.split(':').next().map(PathBuf::from));
    let of_all = Path::new("/var/lib");
    of_service.unwrap_or_else(|| {
        if nix::unistd::geteuid().is_root() {
            return of_all.join(of_root);
        }
        let home = named("XDG_STATE_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(Path::new(&named("HOME")?).join(".local/state")));
        home.unwrap_or_else(|| of_all.to_owned()).join(of_user)
    })
}

/// The file of `narrows watch`.
pub(crate) fn watch_store() -> PathBuf {
    folder("narrows", "narrows").join("watch.db")
}
