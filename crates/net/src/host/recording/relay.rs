//! The path in software: forwards each packet at once, and watches for times in which it did not
//! run.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use narrows_host_profile::Span;

use super::Watch;
use crate::socket::{ProbeSocket, retry_over_queued_errors};
use crate::sys::receive::Slots;
use crate::sys::send;

/// Packets that it takes with one call.
const BATCH: usize = 8;

/// Its stalls. It never sleeps, so that a packet that waits has met one.
pub(super) fn run(from: &ProbeSocket, to: &ProbeSocket, deadline_ns: i64, over: &AtomicBool) -> io::Result<Vec<Span>> {
    let mut watch = Watch::new();
    let mut slots = Slots::new(BATCH, 2048);
    while watch.now() < deadline_ns && !over.load(Ordering::Relaxed) {
        match slots.receive(from.as_fd(), false) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::hint::spin_loop();
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        for (_, payload) in slots.iter() {
            retry_over_queued_errors(|| send::send_plain(to.as_fd(), payload))?;
            watch.now();
        }
    }
    Ok(watch.stalls)
}
