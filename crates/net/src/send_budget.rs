//! What several threads may send together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Whoever ends with what a send budget held looks at it this often (ours).
pub(crate) const POLL: Duration = Duration::from_millis(2);

/// So much, and then nothing more: octets or packets, whichever its owner counts.
#[derive(Debug)]
pub(crate) struct SendBudget(AtomicU64);

impl SendBudget {
    /// So much; all there is where there is no such limit.
    pub(crate) fn new(most: Option<u64>) -> Self {
        Self(AtomicU64::new(most.unwrap_or(u64::MAX)))
    }

    /// Takes up to `most`; how much was left of it.
    pub(crate) fn take(&self, most: u64) -> u64 {
        if self.is_endless() {
            return most;
        }
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - left.min(most)));
        taken.unwrap_or(0).min(most)
    }

    /// Gives back what was not sent.
    pub(crate) fn give_back(&self, unused: u64) {
        if self.is_endless() || unused == 0 {
            return;
        }
        // The closure never refuses. One below the mark of what has no end.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_add(unused).min(u64::MAX - 1))
        });
    }

    /// There is no limit.
    pub(crate) fn is_endless(&self) -> bool {
        self.0.load(Ordering::Relaxed) == u64::MAX
    }

    /// Nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        let send_budget = SendBudget::new(Some(10));
        assert_eq!((send_budget.take(7), send_budget.take(7), send_budget.take(7)), (7, 3, 0));
        assert!(send_budget.is_empty());
        send_budget.give_back(2);
        assert_eq!((send_budget.take(7), send_budget.take(7)), (2, 0));
        let endless = SendBudget::new(None);
        assert_eq!((endless.take(7), endless.take(u64::MAX)), (7, u64::MAX));
        endless.give_back(3);
        assert!(endless.is_endless() && !endless.is_empty());
    }
}
