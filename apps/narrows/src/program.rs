//! Programs that a command runs on the user's behalf.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::exit::{Exit, Failure};
use crate::interrupt;

/// A program that runs. It ends with this value at the latest, whatever else goes wrong.
pub(crate) struct Program {
    child: Child,
    leads_group: bool,
}

impl Program {
    /// One that shares the terminal's signals with us.
    pub(crate) fn beside(child: Child) -> Self {
        Self { child, leads_group: false }
    }

    /// One that was started as the leader of a process group: what it left running ends with it.
    pub(crate) fn with_group(child: Child) -> Self {
        Self { child, leads_group: true }
    }

    /// Waits for its end. An interrupt from the terminal reaches it too: it gets time to print what
    /// it knows, then is ended.
    pub(crate) fn wait(mut self, stop: &AtomicBool) -> Result<Exit, Failure> {
        const POLL: Duration = Duration::from_millis(20);
        const GRACE: Duration = Duration::from_secs(5);
        let mut left = GRACE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(exit_of(status)),
                Ok(None) if left.is_zero() => {
                    // It may just have ended by itself.
                    let _ = self.child.kill();
                }
                Ok(None) if stop.load(Ordering::Relaxed) => left = left.saturating_sub(POLL),
                Ok(None) => {}
                Err(error) => return Err(Failure::host(format!("waiting for the program: {error}"))),
            }
            interrupt::nap(POLL);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // That it may have ended by itself is fine.
        let _ = match i32::try_from(self.child.id()) {
            Ok(leader) if self.leads_group => killpg(Pid::from_raw(leader), Signal::SIGKILL).map_err(Into::into),
            _ => self.child.kill(),
        };
        let _ = self.child.wait();
    }
}

/// The program's own code; one that a signal ended gets 128 and the signal's number, as shells have
/// it.
pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(Exit::Failure, Exit::Program)
}
