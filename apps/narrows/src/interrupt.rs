//! Ctrl-C: the first asks for an end and a report, the second ends at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::Failure;

static STOP: OnceLock<Flags> = OnceLock::new();

struct Flags {
    /// The user asked for an end.
    stop: Arc<AtomicBool>,
    /// The next signal ends the program.
    armed: Arc<AtomicBool>,
    /// Who arms; empty while a screen has to be put away first.
    arming: Mutex<Vec<SigId>>,
}

/// The flag that the first interrupt sets. Installs the handlers on the first call.
pub(crate) fn flag() -> Result<&'static Arc<AtomicBool>, Failure> {
    if let Some(flags) = STOP.get() {
        return Ok(&flags.stop);
    }
    let flags = Flags { stop: Arc::default(), armed: Arc::default(), arming: Mutex::default() };
    let refused = |error| Failure::host(format!("cannot watch for interrupts: {error}"));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the program armed and exits, the first one arms.
        let code = if signal == SIGINT { 130 } else { 143 };
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flags.armed))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flags.stop)))
            .map_err(refused)?;
    }
    flags.arm().map_err(refused)?;
    Ok(&STOP.get_or_init(|| flags).stop)
}

/// Whether a second signal ends the program at once. While a screen is up it does not: the thread
/// that paints puts the terminal back first.
#[cfg(feature = "tui")]
pub(crate) fn second_quits(quits: bool) {
    let Some(flags) = STOP.get() else { return };
    if quits {
        // Without handlers for it the program still ends when asked once.
        let _ = flags.arm();
    } else {
        let ids = std::mem::take(&mut *flags.arming.lock().unwrap_or_else(PoisonError::into_inner));
        for id in ids {
            signal_hook::low_level::unregister(id);
        }
        flags.armed.store(false, Ordering::Relaxed);
    }
}

impl Flags {
    fn arm(&self) -> std::io::Result<()> {
        // Somebody who has asked once asks for the second time next.
        self.armed.store(self.stop.load(Ordering::Relaxed), Ordering::Relaxed);
        let mut arming = self.arming.lock().unwrap_or_else(PoisonError::into_inner);
        for signal in [SIGINT, SIGTERM] {
            arming.push(signal_hook::flag::register(signal, Arc::clone(&self.armed))?);
        }
        Ok(())
    }
}

/// Sleeps. Commands wait for programs and interrupts; methods never come here.
pub(crate) fn nap(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a command that waits for a person or a program, not a method")]
    std::thread::sleep(time);
}
