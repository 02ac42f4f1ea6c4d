//! Where the parts of a fleet keep what they keep.

use std::path::PathBuf;

/// The usual state directory of a part of a fleet.
pub(crate) fn state_of(part: &str) -> PathBuf {
    crate::state::folder(&format!("narrows-{part}"), &format!("narrows/{part}"))
}
