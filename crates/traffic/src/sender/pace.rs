//! Waiting for a deadline.

use std::sync::atomic::{AtomicBool, Ordering};

use narrows_net::clock;

use crate::pacing::Pacing;

/// A sleep ends this long before the deadline, the rest is spun: above the 99th percentile of a
/// sleep's lateness on a virtual machine (some 130 µs).
const SPIN_NS: i64 = 200_000;
/// A longer sleep looks at the stop flag this often.
const POLL_NS: i64 = 20_000_000;

/// Waits; `false` if the flag was set first. A deadline that has passed is none.
pub(super) fn wait_until(target_ns: i64, pacing: Pacing, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let now = clock::now_ns();
        let left = target_ns - now;
        if left <= 0 {
            return true;
        }
        match pacing {
            Pacing::Spin if left <= SPIN_NS => std::hint::spin_loop(),
            Pacing::Spin => clock::sleep_until_ns((target_ns - SPIN_NS).min(now + POLL_NS)),
            Pacing::Sleep => clock::sleep_until_ns(target_ns.min(now + POLL_NS)),
        }
    }
}
