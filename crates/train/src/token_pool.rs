//! Octets that a method with a mean load may still send.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

/// Income is a share of the path's rate; what is sent is paid from it, and may be owed. A mean load
/// is kept over any time that is long against `TokenPool::LONGEST`.
#[derive(Debug, Clone)]
pub struct TokenPool {
    /// What may be sent, octets; negative: owed.
    balance: f64,
    /// Octets per second.
    income: f64,
    at: Option<Stamp<Sender>>,
}

impl TokenPool {
    /// Income that is not spent is kept for this long.
    const LONGEST: Duration = Duration::from_millis(1500);

    /// Nothing to spend.
    pub fn empty() -> Self {
        Self { balance: 0.0, income: 0.0, at: None }
    }

    /// From `now` on there is this much, octets per second.
    pub fn earn(&mut self, now: Stamp<Sender>, income: f64) {
        self.accrue(now);
        self.income = if income.is_finite() { income.max(0.0) } else { 0.0 };
    }

    /// This much income in advance.
    pub fn lend(&mut self, now: Stamp<Sender>, of: Duration) {
        self.accrue(now);
        self.balance += self.income * of.as_secs_f64();
    }

    /// So many octets went out.
    pub fn spend(&mut self, now: Stamp<Sender>, octets: u64) {
        self.accrue(now);
        self.balance -= octets as f64;
    }

    /// How long until so many octets can go out without debt; `None` while nothing is earned.
    pub fn wait_for(&mut self, now: Stamp<Sender>, octets: f64) -> Option<Duration> {
        self.accrue(now);
        let missing = (octets - self.balance).max(0.0);
        if missing <= 0.0 {
            return Some(Duration::ZERO);
        }
        Duration::try_from_secs_f64(missing / self.income).ok()
    }

    fn accrue(&mut self, now: Stamp<Sender>) {
        let since = self.at.map_or(Duration::ZERO, |at| now.since(at));
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
        let most = self.income * Self::LONGEST.as_secs_f64();
        self.balance = (self.balance + self.income * since.as_secs_f64()).min(most.max(self.balance));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Stamp<Sender> {
        Stamp::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn debts_are_paid_and_savings_are_bounded() {
        let mut token_pool = TokenPool::empty();
        assert_eq!(token_pool.wait_for(at(0), 1.0), None, "nothing is earned");
        token_pool.spend(at(0), 1000);
        token_pool.earn(at(0), 1000.0);
        assert_eq!(token_pool.wait_for(at(0), 500.0), Some(Duration::from_millis(1500)));
        assert_eq!(token_pool.wait_for(at(1500), 500.0), Some(Duration::ZERO));
        // An hour later there is no more than 1.5 s of income.
        assert_eq!(token_pool.wait_for(at(3_600_000), 1500.0), Some(Duration::ZERO));
        assert_eq!(token_pool.wait_for(at(3_600_000), 2500.0), Some(Duration::from_secs(1)));
        token_pool.lend(at(3_600_000), Duration::from_millis(500));
        assert_eq!(token_pool.wait_for(at(3_600_000), 2500.0), Some(Duration::from_millis(500)));
        // A clock that is set back earns nothing.
        assert_eq!(token_pool.wait_for(at(0), 2500.0), Some(Duration::from_millis(500)));
    }
}
