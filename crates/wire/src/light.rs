//! What is light enough to go without the load slot.

use std::time::Duration;

use crate::limits::SessionLimits;

/// A token bucket over the IP octets of trains and echoes that go without the load slot. Both sides
/// keep one: the client to wait or to ask for the slot, the server, with some slack for the
/// difference of the two clocks, to refuse.
#[derive(Debug, Clone)]
pub struct LightMeter {
    rate_bps: u128,
    burst_octets: u64,
    /// Octets available at `at`.
    level: u64,
    at: Duration,
}

impl LightMeter {
    /// The client's: exactly the announced limits. `now` is any monotonic time.
    pub fn new(limits: &SessionLimits, now: Duration) -> Self {
        Self {
            rate_bps: u128::from(limits.light_rate_bps),
            burst_octets: limits.light_burst_octets,
            level: limits.light_burst_octets,
            at: now,
        }
    }

    /// The server's: a quarter more (ours).
    pub fn with_slack(limits: &SessionLimits, now: Duration) -> Self {
        let burst_octets = limits.light_burst_octets.saturating_add(limits.light_burst_octets / 4);
        Self { rate_bps: u128::from(limits.light_rate_bps) * 5 / 4, burst_octets, level: burst_octets, at: now }
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_nanos();
        let octets = u64::try_from(self.rate_bps.saturating_mul(passed) / 8_000_000_000).unwrap_or(u64::MAX);
        if octets > 0 {
            self.level = self.level.saturating_add(octets).min(self.burst_octets);
            self.at = now;
        }
    }

    /// Takes `octets`, if they are there.
    pub fn admit(&mut self, octets: u64, now: Duration) -> bool {
        self.refill(now);
        let enough = octets <= self.level;
        if enough {
            self.level -= octets;
        }
        enough
    }

    /// How long until `octets` are there; `None` if they never will be: that needs the load slot.
    pub fn wait_for(&mut self, octets: u64, now: Duration) -> Option<Duration> {
        self.refill(now);
        if octets > self.burst_octets {
            return None;
        }
        let missing = u128::from(octets.saturating_sub(self.level)) * 8_000_000_000;
        if missing == 0 {
            return Some(Duration::ZERO);
        }
        let nanos = missing.checked_div(self.rate_bps)?.saturating_add(1);
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> SessionLimits {
        SessionLimits { light_rate_bps: 8_000_000, light_burst_octets: 100_000, ..SessionLimits::default() }
    }

    #[test]
    fn refills_at_the_rate_up_to_the_burst() {
        let mut meter = LightMeter::new(&limits(), Duration::ZERO);
        assert!(meter.admit(100_000, Duration::ZERO));
        assert!(!meter.admit(1, Duration::ZERO));
        // 8 Mbit/s are 1000 octets each millisecond.
        let wait = meter.wait_for(10_000, Duration::ZERO).unwrap();
        assert_eq!(wait, Duration::from_nanos(10_000_001));
        assert!(meter.admit(10_000, wait));
        assert!(!meter.admit(1, wait));
        assert!(!meter.admit(100_001, Duration::from_secs(99)));
        assert!(meter.admit(100_000, Duration::from_secs(99)));
        assert_eq!(meter.wait_for(100_001, Duration::from_secs(99)), None);
    }

    #[test]
    fn frequent_looks_lose_no_octets() {
        let mut meter = LightMeter::new(&limits(), Duration::ZERO);
        assert!(meter.admit(100_000, Duration::ZERO));
        for nanos in 0..1_000_000u64 {
            assert!(!meter.admit(1_001, Duration::from_nanos(nanos)));
        }
        assert!(meter.admit(1_000, Duration::from_millis(1)));
    }
}
