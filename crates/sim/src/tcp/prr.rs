//! Proportional rate reduction (RFC 6937, slow-start reduction bound, as Linux sends by it).

/// One recovery.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prr {
    threshold: u32,
    window_before: u32,
    delivered: u32,
    sent: u32,
}

impl Prr {
    pub(super) fn new(threshold: u32, window_before: u32) -> Self {
        Self { threshold, window_before: window_before.max(1), delivered: 0, sent: 0 }
    }

    /// A segment leaves.
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// The window after an acknowledgement. `safe`: it acknowledged data cumulatively and told of
    /// no further loss.
    pub(super) fn window(&mut self, delivered: u32, in_flight: u32, safe: bool) -> u32 {
        self.delivered += delivered;
        let allowed = match self.threshold.checked_sub(in_flight) {
            None => {
                let share = u64::from(self.threshold) * u64::from(self.delivered);
                let share = u32::try_from(share.div_ceil(u64::from(self.window_before))).unwrap_or(u32::MAX);
                share.saturating_sub(self.sent)
            }
            Some(room) => {
                let owed = self.delivered.saturating_sub(self.sent).max(delivered);
                (owed + u32::from(safe)).min(room)
            }
        };
        // The first retransmission leaves at once.
        let allowed = allowed.max(u32::from(self.sent == 0));
        in_flight + allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6937 §3.1: 20 segments, the first lost, threshold 10. The retransmission
    /// leaves at the first reduction, then one segment for every two delivered.
    #[test]
    fn one_segment_for_every_two() {
        let mut prr = Prr::new(10, 20);
        let mut in_flight: u32 = 16;
        let mut sent = Vec::new();
        for _ in 0..16 {
            let now = prr.window(1, in_flight, false).saturating_sub(in_flight);
            (0..now).for_each(|_| prr.on_sent());
            sent.push(now);
            in_flight = in_flight + now - 1;
        }
        assert_eq!(sent.iter().sum::<u32>(), 8 + 1, "{sent:?}");
        assert!((8..=10).contains(&in_flight), "{in_flight}");
    }
    /// With less in flight than the threshold, what was delivered is replaced, and one segment more
    /// per safe acknowledgement.
    #[test]
    fn slow_start_up_to_the_threshold() {
        let mut prr = Prr::new(10, 20);
        assert_eq!(prr.window(1, 4, false), 5);
        prr.on_sent();
        assert_eq!(prr.window(1, 4, true), 6);
        assert_eq!(prr.window(3, 8, true), 10, "not beyond it");
    }
}
