//! Round-trip time and the retransmission timeout (RFC 6298, with Linux's bounds).

use crate::NEVER;

/// Estimates of the round-trip time, in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Rtt {
    smoothed: f64,
    deviation: f64,
    smallest: u64,
    backoff: u32,
}

/// Least distance of the timeout from the smoothed round-trip time (Linux `TCP_RTO_MIN`; RFC 6298
/// would have one second).
const MIN_MARGIN_NS: f64 = 200e6;
/// Longest timeout (Linux `TCP_RTO_MAX`).
const MAX_TIMEOUT_NS: u64 = 120_000_000_000;

impl Rtt {
    /// After the handshake's sample (RFC 6298 §2.2).
    pub(super) fn new(handshake: u64) -> Self {
        Self { smoothed: handshake as f64, deviation: handshake as f64 / 2.0, smallest: handshake, backoff: 0 }
    }

    /// One more sample (RFC 6298 §2.3).
    pub(super) fn sample(&mut self, rtt: u64) {
        let error = rtt as f64 - self.smoothed;
        self.deviation += (error.abs() - self.deviation) / 4.0;
        self.smoothed += error / 8.0;
        self.smallest = self.smallest.min(rtt);
    }

    /// The retransmission timeout, back-off included.
    pub(super) fn timeout(&self) -> u64 {
        let once = self.smoothed + (4.0 * self.deviation).max(MIN_MARGIN_NS);
        let once = crate::rng::round_ns(once).min(MAX_TIMEOUT_NS);
        once.checked_shl(self.backoff).unwrap_or(NEVER).min(MAX_TIMEOUT_NS)
    }

    /// Doubles the timeout (RFC 6298 §5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// New data was acknowledged.
    pub(super) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    pub(super) fn backed_off(&self) -> bool {
        self.backoff > 0
    }

    pub(super) fn smoothed(&self) -> u64 {
        crate::rng::round_ns(self.smoothed)
    }

    /// Mean deviation.
    pub(super) fn deviation(&self) -> u64 {
        crate::rng::round_ns(self.deviation)
    }

    pub(super) fn smallest(&self) -> u64 {
        self.smallest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R = 100 ms, then 200 ms: RTTVAR = 3/4 · 50 + 1/4 · 100 = 62.5 ms, SRTT = 7/8 · 100 + 1/8 ·
    /// 200 = 112.5 ms, and the timeout is 112.5 + 4 · 62.5 = 362.5 ms, then twice that.
    #[test]
    fn worked_by_hand() {
        let mut rtt = Rtt::new(100_000_000);
        assert_eq!(rtt.timeout(), 300_000_000);
        rtt.sample(200_000_000);
        assert_eq!((rtt.smoothed(), rtt.deviation(), rtt.smallest()), (112_500_000, 62_500_000, 100_000_000));
        assert_eq!(rtt.timeout(), 362_500_000);
        rtt.back_off();
        assert_eq!(rtt.timeout(), 725_000_000);
        for _ in 0..40 {
            rtt.back_off();
        }
        assert_eq!(rtt.timeout(), MAX_TIMEOUT_NS);
        rtt.reset_backoff();
        assert_eq!(rtt.timeout(), 362_500_000);
    }

    #[test]
    fn the_margin_is_at_least_200_ms() {
        let mut rtt = Rtt::new(1_000_000);
        (0..100).for_each(|_| rtt.sample(1_000_000));
        assert_eq!(rtt.timeout(), 201_000_000);
    }
}
