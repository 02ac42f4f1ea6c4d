//! The disk: every step builds its own programs, and a linker that finds no room ends with a bus
//! error, which names nothing.

use nix::sys::statvfs::statvfs;

use crate::shell::{root, say};

/// What is left for the build's files, in units of 10^9 octets; none where the system does not say.
fn free_gb() -> Option<f64> {
    let disk = statvfs(&root()).ok()?;
    #[expect(clippy::useless_conversion, reason = "the field's width is the system's choice")]
    let octets = u64::from(disk.blocks_available()).checked_mul(u64::from(disk.fragment_size()))?;
    Some(octets as f64 / 1e9)
}

/// Says what is left, so that a step that dies for want of it can be told from one that fails.
pub(crate) fn reported() {
    if let Some(free) = free_gb() {
        say(&format!("disk: {free:.1} GB free\n"));
    }
}
