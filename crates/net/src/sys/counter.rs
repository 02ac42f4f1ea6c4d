//! Times past the usual way: the clock by a real system call, and the processor's cycle counter.

#![expect(
    unsafe_code,
    reason = "the C library's clock_gettime goes by the vDSO; the call itself and the counter have no safe wrapper"
)]

/// `CLOCK_MONOTONIC` by the system call, in nanoseconds; `None` if the kernel refuses.
pub(crate) fn clock_by_system_call() -> Option<i64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec` through a pointer that is valid for the whole call.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut time) };
    #[allow(clippy::useless_conversion, reason = "the fields' types differ between architectures")]
    let (seconds, nanos) = (i64::from(time.tv_sec), i64::from(time.tv_nsec));
    (result == 0).then(|| seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// The cycle counter of this processor; `None` where none can be read without privilege.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::unnecessary_wraps, reason = "other architectures have none")]
pub(crate) fn cycles() -> Option<u64> {
    // SAFETY: every processor of this architecture has the instruction, which only reads a counter.
    // (A process that asked the kernel to forbid it, PR_SET_TSC, would get a signal; this one never
    // asks.)
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The cycle counter of this processor; `None` where none can be read without privilege.
#[cfg(target_arch = "aarch64")]
#[allow(clippy::unnecessary_wraps, reason = "other architectures have none")]
pub(crate) fn cycles() -> Option<u64> {
    let ticks: u64;
    // SAFETY: Linux lets programs read the virtual counter, and the instruction does nothing else.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    Some(ticks)
}

/// The cycle counter of this processor; `None` where none can be read without privilege.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn cycles() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on() {
        let (before, after) = (clock_by_system_call().unwrap(), clock_by_system_call().unwrap());
        assert!(after >= before && before > 0);
        // The counter may differ from processor to processor; that it is there depends on the
        // architecture alone.
        assert_eq!(cycles().is_some(), cfg!(any(target_arch = "x86_64", target_arch = "aarch64")));
    }
}
