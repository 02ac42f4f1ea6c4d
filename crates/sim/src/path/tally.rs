//! Counting what crosses a hop.

use narrows_scenario::Crossed;

use crate::NEVER;

/// Counts packets by the time at which they have left the hop's link.
#[derive(Debug)]
pub(super) struct Tally {
    from: u64,
    to: u64,
    /// The wire behind the link.
    delay: u64,
    crossed: Crossed,
}

impl Tally {
    /// Of what leaves from `from` up to `to`, on its way over a wire of `delay`.
    pub(super) fn new(from: u64, to: u64, delay: u64) -> Self {
        Self { from, to, delay, crossed: Crossed::default() }
    }

    /// A packet that entered at `at` and reaches the next node at `passed`, where that is known by
    /// now.
    pub(super) fn add(&mut self, ip_octets: u16, at: u64, passed: Option<u64>) {
        let left = match passed {
            Some(NEVER) => return,
            Some(passed) => passed.saturating_sub(self.delay),
            None => at,
        };
        if (self.from..self.to).contains(&left) {
            self.crossed.add(ip_octets);
        }
    }

    pub(super) fn crossed(&self) -> Crossed {
        self.crossed.clone()
    }
}
