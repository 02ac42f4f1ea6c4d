//! Constant-rate UDP loads: the sender's threads, the receiver's threads, and the account of what
//! arrived.

mod account;
mod receive;
mod send;

pub(crate) use account::Dropped;
pub use account::{Account, Interval};
pub use receive::LoadReceiver;
pub(crate) use send::rest;
pub use send::{LoadSender, LoadSpec, LoadTotals};

use std::time::Duration;

/// Share of `elapsed` for which the busiest thread was on a CPU, from each thread's CPU time before
/// and after; `None` without threads or time. Threads that began in between count from nothing.
pub fn busiest_share(before: &[Duration], after: &[Duration], elapsed: Duration) -> Option<f32> {
    let used = after
        .iter()
        .enumerate()
        .map(|(k, after)| after.saturating_sub(before.get(k).copied().unwrap_or_default()))
        .max()?;
    (!elapsed.is_zero()).then(|| (used.as_secs_f32() / elapsed.as_secs_f32()).min(1.0))
}
