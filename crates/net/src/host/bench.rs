//! What this host's calls cost, how well it keeps time, and what it carries, measured on loopback
//! in about two seconds.
//!
//! Each part may fail for itself: what could not be measured is unknown, and the rest stands.

mod clocks;
mod datagrams;
mod memory;
mod pacing;
mod stamps;
mod streams;
mod switches;

use std::io;

use narrows_diagnose::host::{Costs, Spread};

use crate::clock;

pub(super) use datagrams::{PAYLOAD, loopback};
pub(super) use pacing::row as pacing_row;

/// Measures everything. `qdisc` is the discipline of the interface towards the path, which decides
/// whether departure times are kept.
pub fn costs(qdisc: Option<&str>) -> Costs {
    let mut costs = Costs::default();
    clocks::measure(&mut costs);
    switches::measure(&mut costs);
    memory::measure(&mut costs);
    note("datagrams", datagrams::measure(&mut costs));
    note("sleeps and pacing", pacing::measure(&mut costs, qdisc));
    note("stamps", stamps::measure(&mut costs));
    note("streams", streams::measure(&mut costs));
    costs
}

/// What memory and calls cost: the part of [`costs`] that is no network's, in some tens of
/// milliseconds. Not beside a measurement.
pub fn memory_costs() -> Costs {
    let mut costs = Costs::default();
    clocks::calls(&mut costs);
    memory::measure(&mut costs);
    costs
}

fn note(what: &str, result: io::Result<()>) {
    if let Err(error) = result {
        tracing::info!(%error, "{what} could not be measured");
    }
}

/// Longest that one kind of call is tried for: on a busy machine a call may take a time slice of
/// somebody else's.
const MOST_NS: i64 = 60_000_000;

/// Time per call of `work`, in blocks: one value per block, each the mean of its calls. At most so
/// many blocks, at least one.
fn blocks(count: usize, calls: u32, work: impl FnMut()) -> Option<Spread> {
    Spread::of(&means(count, calls, work))
}

/// The same, as they are.
fn means(count: usize, calls: u32, mut work: impl FnMut()) -> Vec<f64> {
    let mut means = Vec::with_capacity(count);
    let deadline = clock::now_ns().saturating_add(MOST_NS);
    while means.len() < count {
        let begun = clock::now_ns();
        for _ in 0..calls {
            work();
        }
        let ended = clock::now_ns();
        means.push(ended.saturating_sub(begun) as f64 / f64::from(calls.max(1)));
        if ended > deadline {
            break;
        }
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On any machine: everything that needs no card and no privilege has a value, of a sane size,
    /// soon.
    #[test]
    fn this_host_has_costs() {
        let begun = clock::now_ns();
        let costs = costs(Some("noqueue"));
        let took = clock::now_ns() - begun;
        assert!(took < 120_000_000_000, "{took} ns");
        for (name, spread) in [
            ("clock", costs.clock_read),
            ("call", costs.system_call),
            ("send", costs.send),
            ("batch", costs.send_batch),
            ("receive", costs.receive),
            ("receive batch", costs.receive_batch),
        ] {
            let spread = spread.unwrap_or_else(|| panic!("no {name}"));
            assert!(spread.min_ns <= spread.median_ns && spread.median_ns <= spread.p99_ns, "{name}: {spread:?}");
            assert!(spread.min_ns < 1_000_000, "{name}: {spread:?}");
        }
        let copied = costs.memory_copy_octets_per_second.unwrap();
        assert!(copied > 100_000_000 && copied < 10_000_000_000_000, "{copied}");
        assert_eq!(costs.sleeps.len(), 2);
        assert!(costs.sleeps.iter().all(|row| row.overshoot.max_ns > 0));
        let departure_times = costs.pacing.iter().find(|row| row.unknown.is_some()).unwrap();
        assert!(departure_times.error.is_none() && departure_times.unknown.as_ref().unwrap().contains("noqueue"));
        let tcp = costs.loopback.tcp_bps.unwrap();
        assert!(tcp > 1_000_000 && tcp < 10_000_000_000_000, "{tcp}");
    }
}
