//! Files that hold a secret.

use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Any use by others than the owner.
pub(crate) const OTHERS: u32 = 0o077;
/// The same, but the owner's group may read: keys of certificates are often given to a group of
/// programs.
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS has keys"))]
pub(crate) const BEYOND_GROUP: u32 = 0o037;

/// Refuses a file that grants a permission of `forbidden`.
pub(crate) fn check(metadata: &Metadata, forbidden: u32) -> Result<(), String> {
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & forbidden == 0 {
        return Ok(());
    }
    Err(format!("is open to others (mode {mode:04o}): chmod 600"))
}

/// The service manager hands the file over and keeps others away; its access list shows as the
/// permissions of a group.
pub(crate) fn is_credential(path: &Path, credentials: Option<&Path>) -> bool {
    credentials.is_some_and(|folder| path.parent() == Some(folder))
}
