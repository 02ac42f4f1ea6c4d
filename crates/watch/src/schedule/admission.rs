//! When to ask a server again that was gone or refused.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::BootTime;

/// Growing pauses after failures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Backoff {
    refusals: u32,
    failures: Vec<BootTime>,
    retries: u32,
    until: Option<BootTime>,
}

impl Backoff {
    /// Whether the server may be asked now.
    pub fn allows(&self, now: BootTime) -> bool {
        self.until.is_none_or(|until| now >= until)
    }

    /// When it may be asked.
    pub const fn until(&self) -> Option<BootTime> {
        self.until
    }

    /// The server failed three times within 90 s, and did not answer since.
    pub const fn is_gone(&self) -> bool {
        self.retries > 0
    }

    /// Somebody mended something: it may be asked now. What is known of it stays.
    pub const fn ask_now(&mut self) {
        self.until = None;
    }

    /// The server measured with us.
    pub fn answered(&mut self) {
        *self = Self::default();
    }

    /// It refused: 1 min, 2, 4 .. 1 h.
    pub fn refused(&mut self, now: BootTime) {
        self.until = Some(now.after(doubled(self.refusals, LONGEST_REFUSED)));
        self.refusals += 1;
    }

    /// It did not answer. The third failure within 90 s means that it is gone: 1 min, 2, 4 ..
    /// 15 min. A server that is gone needs no three failures again.
    pub fn failed(&mut self, now: BootTime) {
        self.failures.retain(|then| now.since(*then) <= FAILING);
        self.failures.push(now);
        if self.failures.len() >= 3 || self.is_gone() {
            self.until = Some(now.after(doubled(self.retries, LONGEST_GONE)));
            self.retries += 1;
        } else {
            self.until = Some(now.after(SOON));
        }
    }
}

/// A minute, doubled with each try.
pub(super) fn doubled(times: u32, longest: Duration) -> Duration {
    (Duration::from_secs(60) * 2_u32.pow(times.min(10))).min(longest)
}

const FAILING: Duration = Duration::from_secs(90);
const SOON: Duration = Duration::from_secs(20);
const LONGEST_GONE: Duration = Duration::from_secs(15 * 60);
const LONGEST_REFUSED: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: u64) -> BootTime {
        BootTime::from_millis(second * 1000)
    }

    #[test]
    fn three_failures_in_90_s_mean_gone() {
        let mut backoff = Backoff::default();
        for second in [0, 20, 40] {
            assert!(!backoff.is_gone() && backoff.allows(at(second)));
            backoff.failed(at(second));
        }
        assert!(backoff.is_gone() && !backoff.allows(at(99)) && backoff.allows(at(100)));
        let mut now = 100;
        for minutes in [2, 4, 8, 15, 15] {
            backoff.failed(at(now));
            now += minutes * 60;
            assert!(!backoff.allows(at(now - 1)) && backoff.allows(at(now)), "{minutes} min");
        }
        backoff.answered();
        assert!(!backoff.is_gone() && backoff.allows(at(now)));
    }

    #[test]
    fn refusals_wait_up_to_an_hour() {
        let mut backoff = Backoff::default();
        (0..9).for_each(|_| backoff.refused(at(0)));
        assert_eq!(backoff.until(), Some(at(3600)));
    }
}
