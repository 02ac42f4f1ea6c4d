//! What a page under `docs/results/` begins with, so that its numbers can be made again.

use crate::shell::quiet;

/// Three lines: the command, the commit that was checked out, and the machine.
pub(crate) fn lines(command: &str) -> String {
    let commit = quiet("git", &["rev-parse", "--short", "HEAD"]);
    let changed = quiet("git", &["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    let system = quiet("uname", &["-sr"]);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!(
        "- Command: `{command}`\n- Commit: {}{}\n- Machine: {cores} cores, {}\n",
        commit.as_deref().map_or("unknown", str::trim),
        if changed { ", with changes that are in no commit" } else { "" },
        system.as_deref().map_or("system unknown", str::trim),
    )
}
