//! Clocks and calls.

use std::hint::black_box;

use narrows_diagnose::host::{Costs, Spread};

use super::{blocks, means};
use crate::clock;
use crate::sys::counter;

/// Readings one right after the other go on for this long.
const GAPS_NS: i64 = 200_000_000;

pub(super) fn measure(costs: &mut Costs) {
    calls(costs);
    costs.clock_system_call = counter::clock_by_system_call().and_then(|_| {
        blocks(32, 500, || {
            black_box(counter::clock_by_system_call());
        })
    });
    costs.cycle_counter = counter::cycles().and_then(|_| {
        blocks(64, 2000, || {
            black_box(counter::cycles());
        })
    });
    costs.yield_processor = blocks(300, 10, std::thread::yield_now);
    let gaps = Gaps::watch();
    costs.clock_resolution_ns = gaps.resolution();
    costs.clock_gaps = gaps.spread();
    costs.clock_gap_p999_ns = gaps.quantile(0.999);
}

/// The three calls that netest reports: of a function, of the clock, of the system. A few
/// milliseconds.
pub(super) fn calls(costs: &mut Costs) {
    costs.call_ns = mean(64, 2000, || {
        black_box(empty(black_box(1)));
    });
    costs.clock_read = blocks(64, 2000, || {
        black_box(clock::now_ns());
    });
    costs.system_call = blocks(64, 500, || {
        black_box(nix::unistd::getppid());
    });
}

/// The median of blocks' means, which [`blocks`] rounds to nanoseconds.
fn mean(count: usize, calls: u32, work: impl FnMut()) -> Option<f64> {
    let mut means = means(count, calls, work);
    means.sort_unstable_by(f64::total_cmp);
    means.get(means.len() / 2).copied()
}

#[inline(never)]
fn empty(value: u32) -> u32 {
    value
}

/// Differences of readings, counted per nanosecond; the few long ones each.
struct Gaps {
    counts: Vec<u32>,
    long: Vec<u64>,
    total: u64,
}

impl Gaps {
    /// Differences below this many nanoseconds are counted.
    const COUNTED: usize = 4096;
    /// Long ones that are kept; a machine that has more is known by these.
    const KEPT: usize = 100_000;

    fn watch() -> Self {
        let mut gaps = Self::new();
        let begun = clock::now_ns();
        let mut last = begun;
        while last.saturating_sub(begun) < GAPS_NS {
            let next = clock::now_ns();
            gaps.add(u64::try_from(next.saturating_sub(last)).unwrap_or(0));
            last = next;
        }
        gaps
    }

    fn new() -> Self {
        Self { counts: vec![0; Self::COUNTED], long: Vec::new(), total: 0 }
    }

    fn add(&mut self, gap: u64) {
        self.total += 1;
        match usize::try_from(gap).ok().and_then(|gap| self.counts.get_mut(gap)) {
            Some(count) => *count = count.saturating_add(1),
            None if self.long.len() < Self::KEPT => self.long.push(gap),
            None => {}
        }
    }

    /// The least difference that is not zero.
    fn resolution(&self) -> Option<u64> {
        let counted = (1..).zip(self.counts.iter().skip(1)).find(|(_, count)| **count > 0);
        counted.map(|(gap, _)| gap).or_else(|| self.long.iter().copied().min())
    }

    fn quantile(&self, share: f64) -> Option<u64> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share below one of a count")]
        let rank = (self.total.checked_sub(1)? as f64 * share) as u64;
        let mut below = 0u64;
        for (gap, count) in (0u64..).zip(&self.counts) {
            below += u64::from(*count);
            if below > rank {
                return Some(gap);
            }
        }
        let mut long = self.long.clone();
        long.sort_unstable();
        let place = usize::try_from(rank - below).ok()?;
        long.get(place).or(long.last()).copied()
    }

    fn spread(&self) -> Option<Spread> {
        let counted = (0u64..).zip(&self.counts).filter(|(_, count)| **count > 0);
        let last = counted.map(|(gap, _)| gap).last();
        Some(Spread {
            min_ns: self.quantile(0.0)?,
            median_ns: self.quantile(0.5)?,
            p99_ns: self.quantile(0.99)?,
            max_ns: self.long.iter().copied().max().or(last)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_ordered_as_they_are() {
        let mut gaps = Gaps::new();
        assert_eq!((gaps.spread(), gaps.resolution(), gaps.quantile(0.5)), (None, None, None));
        for _ in 0..98 {
            gaps.add(25);
        }
        gaps.add(0);
        gaps.add(5_000);
        gaps.add(3_000_000);
        let spread = gaps.spread().unwrap();
        assert_eq!((spread.min_ns, spread.median_ns, spread.p99_ns, spread.max_ns), (0, 25, 5_000, 3_000_000));
        assert_eq!(gaps.resolution(), Some(25));
        assert_eq!(gaps.quantile(1.0), Some(3_000_000));
    }

    /// A clock of microseconds.
    #[test]
    fn a_coarse_clock_resolves_its_step() {
        let mut gaps = Gaps::new();
        for k in 0..1000 {
            gaps.add(if k % 40 == 0 { 10_000 } else { 0 });
        }
        assert_eq!(gaps.resolution(), Some(10_000));
    }
}
