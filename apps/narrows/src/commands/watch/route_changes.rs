//! Hears when links, addresses or routes change, off the thread that measures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_net::clock;
use narrows_net::host::RouteChanges;

use crate::interrupt;

/// Runs until nobody listens, or the end. Where the kernel gives no notices, `changed` is called
/// every ten seconds.
pub(super) fn run(changed: impl Fn() -> bool, stop: &Arc<AtomicBool>) {
    let mut notices = RouteChanges::open().inspect_err(complain).ok();
    let mut next_ns = 0;
    while !stop.load(Ordering::Relaxed) {
        let is_changed = match notices.as_ref().map(|notices| notices.wait(LOOK)) {
            Some(Ok(changed)) => changed,
            Some(Err(error)) => {
                complain(&error);
                notices = None;
                true
            }
            None => {
                interrupt::nap(LOOK);
                clock::now_ns() >= next_ns
            }
        };
        if is_changed {
            next_ns = clock::now_ns() + clock::nanos(WITHOUT);
            if !changed() {
                return;
            }
        }
    }
}

fn complain(error: &std::io::Error) {
    tracing::warn!(%error, "no notices of other routes: they are looked at every {} s", WITHOUT.as_secs());
}

const LOOK: Duration = Duration::from_millis(500);
const WITHOUT: Duration = Duration::from_secs(10);
