//! What a page under `docs/results/` begins with, so that its numbers can be made again.

use std::time::Instant;

use crate::shell::{now, quiet};
use crate::sources;

/// How a page is made, from its beginning.
pub(crate) struct Provenance {
    command: String,
    began: Instant,
}

impl Provenance {
    /// The work begins.
    pub(crate) fn begins(command: &str) -> Self {
        Self { command: command.trim().to_owned(), began: now() }
    }

    /// Five lines, when the work is done: the command, the commit that was checked out, what the
    /// numbers were made of, how long it took, and the machine.
    pub(crate) fn lines(&self) -> String {
        let commit = quiet("git", &["rev-parse", "--short", "HEAD"]);
        // Pages that were just made change no number.
        let status = ["status", "--porcelain", "--untracked-files=no", "--", ":(exclude)docs"];
        let changed = quiet("git", &status).is_some_and(|text| !text.is_empty());
        let system = quiet("uname", &["-sr"]);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        format!(
            "- Command: `{}`\n- Commit: {}{}\n{}- Duration: {} s\n- Machine: {cores} cores, {}\n",
            self.command,
            commit.as_deref().map_or("unknown", str::trim),
            if changed { ", with changes that are in no commit" } else { "" },
            sources::line(&sources::states()),
            self.began.elapsed().as_secs(),
            system.as_deref().map_or("system unknown", str::trim),
        )
    }
}
