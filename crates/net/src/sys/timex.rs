//! What the kernel knows of its clock's discipline.

#![expect(unsafe_code, reason = "adjtimex takes a raw pointer and has no safe wrapper among our dependencies")]

use std::time::Duration;

/// By how much `CLOCK_REALTIME` may be off, as whoever disciplines it told the kernel; `None`:
/// nobody does.
pub(crate) fn clock_error() -> Option<Duration> {
    // SAFETY: `timex` is a C structure of integers, for all of which the all-zero pattern is a
    // valid value.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is valid for reads and writes for the whole call; with no mode set the kernel
    // changes nothing.
    let result = unsafe { libc::adjtimex(&raw mut state) };
    let disciplined = result >= 0 && result != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0;
    let micros = u64::try_from(state.maxerror).ok()?;
    disciplined.then(|| Duration::from_micros(micros))
}
