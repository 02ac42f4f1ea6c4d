//! Programs that a command runs on the user's behalf.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::exit::{Exit, Failure};
use crate::interrupt;

/// A program that runs. It ends with this value at the latest, whatever else goes wrong.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    /// Waits for its end. An interrupt from the terminal reaches it too: it gets time to print what
    /// it knows, then is ended.
    pub(crate) fn wait(mut self, stop: &AtomicBool) -> Result<Exit, Failure> {
        const POLL: Duration = Duration::from_millis(20);
        const GRACE: Duration = Duration::from_secs(5);
        let mut left = GRACE;
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Ok(exit_of(status)),
                Ok(None) if left.is_zero() => {
                    // It may just have ended by itself.
                    let _ = self.0.kill();
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
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program's own code; one that a signal ended gets 128 and the signal's number, as shells have
/// it.
pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(Exit::Failure, Exit::Program)
}
