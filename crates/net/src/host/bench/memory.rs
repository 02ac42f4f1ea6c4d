//! How fast memory is copied.

use std::fs;

use narrows_diagnose::host::Costs;

use crate::clock;
use crate::host::text;

/// A block should be several times the caches, and never more than an eighth of what is free.
const MOST_OCTETS: u64 = 64 << 20;
const LEAST_OCTETS: u64 = 4 << 20;
const REPEATS: usize = 5;

pub(super) fn measure(costs: &mut Costs) {
    let free = fs::read_to_string("/proc/meminfo").ok().and_then(|text| text::available_memory(&text));
    let octets = free.map_or(LEAST_OCTETS, |free| (free / 8).min(MOST_OCTETS));
    let Some(octets) = usize::try_from(octets).ok().filter(|_| octets >= LEAST_OCTETS) else {
        return;
    };
    // Written to, so that the pages are there.
    let from = vec![1u8; octets];
    let mut to = vec![2u8; octets];
    let rates: Vec<u64> = (0..REPEATS)
        .filter_map(|_| {
            // Processor time: what another program had of the processor meanwhile is not memory's.
            let begun = clock::thread_cpu();
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&mut to);
            let took = clock::thread_cpu().saturating_sub(begun).as_nanos();
            u64::try_from((u128::from(octets as u64) * 1_000_000_000).checked_div(took)?).ok()
        })
        .collect();
    costs.memory_copy_octets_per_second = rates.iter().copied().max();
    costs.memory_copy_lowest_octets_per_second = rates.iter().copied().min();
}
