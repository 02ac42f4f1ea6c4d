//! Scheduling class and niceness of the calling thread.

#![expect(unsafe_code, reason = "sched_setscheduler and setpriority have no safe wrappers in nix")]

use std::io;

/// Puts the calling thread under `SCHED_FIFO` at this priority; needs `CAP_SYS_NICE` or a limit
/// that allows it.
pub(crate) fn set_fifo(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: the kernel reads one `sched_param` through a pointer that is valid for the whole
    // call; thread 0 is the caller.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Puts the calling thread back under the ordinary class.
pub(crate) fn set_ordinary() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: as above.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the calling thread as nice as can be.
pub(crate) fn set_nicest() -> io::Result<()> {
    // SAFETY: no pointer is passed; on Linux, `who` 0 is the calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
