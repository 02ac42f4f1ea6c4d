//! Ctrl-C: the first asks for an end and a report, the second ends at once.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::Failure;

static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The flag that the first interrupt sets. Installs the handlers on the first call.
pub(crate) fn flag() -> Result<&'static Arc<AtomicBool>, Failure> {
    if let Some(flag) = STOP.get() {
        return Ok(flag);
    }
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag set and exits, the first one sets it.
        let code = if signal == SIGINT { 130 } else { 143 };
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .map_err(|error| Failure::host(format!("cannot watch for interrupts: {error}")))?;
    }
    Ok(STOP.get_or_init(|| flag))
}

/// Sleeps. Commands wait for programs and interrupts; methods never come here.
pub(crate) fn nap(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a command that waits for a person or a program, not a method")]
    std::thread::sleep(time);
}
